"""The benchmark of one budget for ten views, in small."""

from __future__ import annotations

from pathlib import Path

import pytest

from slackwater.bench.division import TEN, command

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_both_sides_are_right_and_within_the_budget(tmp_path: Path) -> None:
    found = command(sf=0.01, share=0.3, repeats=1, output=tmp_path, json_only=True)
    assert (tmp_path / "division.json").exists()
    assert [side["label"] for side in found["sides"]] == ["divided", "equal split"]
    assert all(set(side["refreshes"]) == set(TEN) for side in found["sides"])
    assert found["summary"]["all verified"] == 1.0
    assert found["summary"]["never above the budget"] == 1.0

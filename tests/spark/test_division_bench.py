"""The benchmark of one budget for ten views, in small."""

from __future__ import annotations

from pathlib import Path

import pytest

from slackwater.bench.division import TEN, command
from tests.spark.test_tpch_bench import steps_told

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_both_sides_are_right_and_within_the_budget(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = command(sf=0.01, share=0.3, repeats=1, output=tmp_path)
    told = steps_told(capsys.readouterr().err)
    assert told[:4] == [
        "making TPC-H data at scale factor 0.01",
        "starting Spark",
        "divided: loading the tables",
        "what all views would keep",
    ]
    assert told[-3:] == ["equal split: delta 4 of 4", "divided: verifying", "equal split: verifying"]
    assert (tmp_path / "division.json").exists()
    assert [side["label"] for side in found["sides"]] == ["divided", "equal split"]
    assert all(set(side["refreshes"]) == set(TEN) for side in found["sides"])
    assert found["summary"]["all verified"] == 1.0
    assert found["summary"]["never above the budget"] == 1.0

"""The experiments of intermittent query processing run at a tiny size, and every result in them is verified."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("spark")]


def checked(place: Path, name: str) -> dict[str, object]:
    document: dict[str, object] = json.loads((place / f"{name}.json").read_text())
    assert (place / f"{name}.png").stat().st_size > 5_000
    assert document["summary"]["all verified"] == 1.0
    return document


def test_data_cleaning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from slackwater.bench import iqp_cleaning
    from slackwater.bench.iqp import command
    from slackwater.bench.iqp_cleaning import ORDER

    monkeypatch.setattr(iqp_cleaning, "REFRESHES", 2)
    command(4, sf=0.01, output=tmp_path, json_only=True)
    runs = {run["label"]: run for run in checked(tmp_path, "iqp-4")["runs"]}
    assert set(runs) == {"rebatch", "auto", "plain", "higher_order"}
    for run in runs.values():
        assert len(run["timeline"]) == len(ORDER) * 3
        assert set(run["refreshes"]) == {x for t in ORDER for x in (t, f"{t}, first")}
    assert not any(runs["rebatch"]["state_bytes"].values())
    assert all(runs["higher_order"]["state_bytes"].values())


def test_what_is_kept_beyond_a_pipelined_run(tmp_path: Path) -> None:
    from slackwater.bench.iqp import command

    command(8, sf=0.01, queries=[3], output=tmp_path, json_only=True)
    runs = {run["label"]: run for run in checked(tmp_path, "iqp-8")["runs"]}
    sizes = [runs[label]["state_bytes"]["1%"] for label in ("as it runs", "materialized too", "both sides too")]
    assert sizes == sorted(sizes)
    assert sizes[0] > 0
    assert runs["rebatch"]["state_bytes"]["1%"] == 0


def test_many_joins(tmp_path: Path) -> None:
    from slackwater.bench.iqp_movies import command

    command(sf=0.01, queries=[2, 33], output=tmp_path, json_only=True)
    document = checked(tmp_path, "iqp-table-2")
    failures = {(run["query"], run["label"]): run["failure"] for run in document["runs"]}
    assert len(failures) == 8
    assert failures[33, "higher_order"] == "HIGHER_ORDER_TOO_LARGE"
    assert {key for key, failure in failures.items() if failure} == {(33, "higher_order")}

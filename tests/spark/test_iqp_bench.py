"""The experiments of intermittent query processing run at a tiny size, and every result in them is verified."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.spark.test_tpch_bench import steps_told

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("spark")]


def checked(place: Path, name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((place / f"{name}.json").read_text())
    assert (place / f"{name}.png").stat().st_size > 5_000
    assert document["summary"]["all verified"] == 1.0
    assert all(target["met"] in (True, False, None) for target in document["targets"])
    return document


def asked(document: dict[str, Any]) -> set[str]:
    """The names of the targets, but for those that every experiment has."""
    names = {str(target["name"]) for target in document["targets"]}
    assert "results that are not verified" in names
    return names - {
        "results that are not verified",
        "auto: initial run over rebatch's, worst",
        "auto: initial run and what the first refresh took more over rebatch's, worst",
    }


def few_small_ones(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    from slackwater.bench import iqp_figures

    monkeypatch.setattr(iqp_figures, "SMALL_WARM_UPS", count)
    monkeypatch.setattr(iqp_figures, "REHEARSED", iqp_figures.REHEARSED[: 2 + count])


def test_late_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from slackwater.bench.iqp import command

    few_small_ones(monkeypatch, 2)
    command(3, sf=0.01, queries=[3, 7], output=tmp_path, json_only=True)
    document = checked(tmp_path, "iqp-3")
    assert asked(document) == {
        "auto: queries whose total is at most rebatch's",
        "auto: total over rebatch's, worst",
        "auto, 0.1%: faster than rebatch, geometric mean",
        "auto, 0.1%: faster than rebatch, best",
        "auto: delta time over higher_order's, five or more joins, worst",
        "auto: memory over higher_order's, geometric mean",
        "auto: memory over higher_order's, best",
    }
    runs = {(run["query"], run["label"]): run for run in document["runs"]}
    assert {label for _, label in runs} == {"rebatch", "auto", "plain", "incremental", "higher_order"}
    assert len(runs) == 10
    for run in runs.values():
        assert {label: len(seconds) for label, seconds in run["refreshes"].items()} == {"9%": 1, "0.9%": 1, "0.1%": 3}
        assert run["warm_ups"] == [], "these were in the rehearsal"
    assert document["summary"]["auto: queries compared with higher_order"] == 2


def test_late_data_for_auto_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from slackwater.bench.iqp import command

    few_small_ones(monkeypatch, 5)
    command(3, sf=0.01, queries=[3], output=tmp_path, json_only=True, only_auto=True)
    runs = {run["label"]: run for run in checked(tmp_path, "iqp-3")["runs"]}
    assert set(runs) == {"rebatch", "auto"}


def test_forecasts_of_the_wrong_size(tmp_path: Path) -> None:
    from slackwater.bench.iqp import command

    command(5, sf=0.01, output=tmp_path, json_only=True)
    document = checked(tmp_path, "iqp-5")
    wrong = ("30% foreseen, 1% came", "0.03% foreseen, 1% came", "1% foreseen, 30% came")
    assert asked(document) == {f"{one}: time over that of the right forecast, worst" for one in wrong}
    assert all(target["value"] is not None for target in document["targets"])
    limits = ("", ", 5% of memory", ", 15% of memory", ", 40% of memory")
    assert [run["label"] for run in document["runs"]] == [
        "rebatch", *(f"{share} foreseen{limit}" for share in ("1%", "30%", "0.03%") for limit in limits),
    ]  # fmt: skip
    assert all(len(run["refreshes"]["30%"]) == 1 for run in document["runs"])


def test_forecasts_of_the_wrong_tables(tmp_path: Path) -> None:
    from slackwater.bench.iqp import command

    command(6, sf=0.01, output=tmp_path, json_only=True)
    document = checked(tmp_path, "iqp-6")
    assert asked(document) == {
        "a table foreseen but absent: time over that of the right forecast, worst",
        "a table unforeseen: time over rebatch's, worst",
    }
    assert all(target["value"] is not None for target in document["targets"])
    for run in document["runs"]:
        assert {len(seconds) for seconds in run["refreshes"].values()} == {3}
        assert set(run["refreshes"]) == {f"{count} of 5 arrive" for count in (1, 2, 3, 4, 5)}


def test_budgets(tmp_path: Path) -> None:
    from slackwater.bench.iqp import command

    command(7, sf=0.01, queries=[3], output=tmp_path, json_only=True)
    document = checked(tmp_path, "iqp-7")
    assert asked(document) == {
        "auto: time over that under a smaller budget, worst",
        "auto without memory: time over rebatch's or the other way, worst",
        "auto: time over the recycler's, worst",
        "auto: faster than the recycler, best",
    }
    assert all(target["value"] is not None for target in document["targets"])
    runs = {run["label"]: run for run in document["runs"]}
    assert len(runs) == 11
    assert not any(runs["auto 0%"]["state_bytes"].values())
    assert runs["auto 100%"]["state_bytes"]["1%"] > 0


def test_deletes(tmp_path: Path) -> None:
    from slackwater.bench.iqp import command

    command(9, sf=0.01, queries=[3], output=tmp_path, json_only=True)
    document = checked(tmp_path, "iqp-9")
    assert asked(document) == {"auto: slowest share of deletes over fastest, worst"}
    assert all(target["value"] is not None for target in document["targets"])
    runs = {run["label"]: run for run in document["runs"]}
    assert set(runs) == {"rebatch", "auto", "plain"}
    for run in runs.values():
        assert [len(seconds) for seconds in run["refreshes"].values()] == [3] * 5


def test_data_cleaning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from slackwater.bench import iqp_cleaning
    from slackwater.bench.iqp import command
    from slackwater.bench.iqp_cleaning import ORDER

    monkeypatch.setattr(iqp_cleaning, "REFRESHES", 2)
    command(4, sf=0.01, output=tmp_path)
    told = steps_told(capsys.readouterr().err)
    assert told[:3] == ["starting Spark", "making TPC-H data at scale factor 0.01", "loading the tables"]
    assert told[-1] == "verifying every result"
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
    assert asked(document) == {"auto: queries finished"}

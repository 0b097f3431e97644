"""What fails after a commit is not told as if nothing had been applied."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.cli import cli

pytestmark = [pytest.mark.spark, pytest.mark.fault]

QUERY = "SELECT a, count(*) AS n FROM t GROUP BY a"


def _rows(view: sw.View) -> list[tuple[int, int]]:
    return sorted((row.a, row.n) for row in view.result().collect())


def _on_disk(engine: sw.Engine) -> set[str]:
    found = {d for area in ("data", "states") for d in (engine.path / area).glob("*/*")}
    return {str(d.relative_to(engine.path)) for d in found}


@pytest.mark.usefixtures("eager_compaction")
@pytest.mark.parametrize("point", ["compact.before_commit", "compact.after_commit"])
def test_a_merge_that_fails_does_not_fail_the_refresh(
    point: str, engine: sw.Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = engine.create_table("t", "a INT")
    table.insert([(0,)])
    view = engine.create_view("v", QUERY, strategy="incremental")
    monkeypatch.setenv("SLACKWATER_FAIL_AT", point)
    with caplog.at_level(logging.WARNING, "slackwater"):
        for n in range(1, 5):
            table.insert([(n,)])
            assert view.refresh().rows_inserted == 1
    monkeypatch.delenv("SLACKWATER_FAIL_AT")
    assert "what has piled up under the view v is merged another time" in caplog.text
    assert _on_disk(engine) == engine.catalog.all_paths()
    assert _rows(view) == [(n, 1) for n in range(5)]
    assert view.verify()
    assert view.refresh().mode == "none"
    table.insert([(5,)])
    view.refresh()
    assert view.verify()
    assert _rows(view) == [(n, 1) for n in range(6)]


@pytest.mark.usefixtures("eager_compaction")
def test_a_view_is_there_when_the_tables_below_it_cannot_be_merged(
    engine: sw.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = engine.create_table("t", "a INT")
    monkeypatch.setenv("SLACKWATER_FAIL_AT", "compact.before_commit")
    for n in range(5):
        table.insert([(n,)])
    view = engine.create_view("v", QUERY)
    monkeypatch.delenv("SLACKWATER_FAIL_AT")
    assert _rows(view) == [(n, 1) for n in range(5)]
    assert engine.view("v") is view


@pytest.mark.parametrize("point", ["segment.before_write", "segment.after_write:2", "states.saving"])
def test_states_that_cannot_be_saved_are_made_again(
    point: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    engine = sw.Engine(tmp_path / "wh", spark=spark)
    table = engine.create_table("t", "a INT")
    table.insert([(1,), (2,)])
    views = [engine.create_view(name, f"SELECT a, sum(a + {i}) AS n, max(a + {i}) AS m FROM t GROUP BY a",
                                strategy="incremental") for i, name in enumerate(("v", "w"))]  # fmt: skip
    table.insert([(3,)])
    for view in views:
        view.refresh()
        assert view.states
    monkeypatch.setenv("SLACKWATER_FAIL_AT", point)
    with caplog.at_level(logging.WARNING, "slackwater"):
        engine.close()
    monkeypatch.delenv("SLACKWATER_FAIL_AT")
    assert "the states of the view w are not saved" in caplog.text
    assert ("of the view v are not" in caplog.text) == (point != "segment.after_write:2")
    with sw.Engine(tmp_path / "wh", spark=spark, read_only=True) as reader:
        assert _on_disk(reader) == reader.catalog.all_paths()
    with sw.Engine(tmp_path / "wh", spark=spark) as again:
        again.table("t").insert([(4,)])
        for name in ("v", "w"):
            again.view(name).refresh()
            assert again.view(name).verify()


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("point", ["states.saving", "segment.after_write:3"])
def test_a_command_tells_what_it_did(
    point: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    place = tmp_path / "wh"
    with sw.Engine(place) as engine:
        engine.create_table("t", "a INT").insert([(1,), (2,)])
        engine.create_view("v", QUERY, strategy="incremental")
        engine.table("t").insert([(2,)])
    monkeypatch.setenv("SLACKWATER_FAIL_AT", point)
    result = CliRunner().invoke(cli, ["refresh", str(place), "--json"], catch_exceptions=False)
    monkeypatch.delenv("SLACKWATER_FAIL_AT")
    assert "the states of the view v are not saved" in caplog.text
    assert result.exit_code == 0, result.output
    assert [report["view"] for report in json.loads(result.stdout)["refreshes"]] == ["v"]
    with sw.Engine(place) as engine:
        assert engine.view("v").refresh().mode == "none"
        assert _rows(engine.view("v")) == [(1, 1), (2, 2)]

"""Segments that pile up under tables are merged after their changes; what was merged long ago has no history."""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from slackwater.execution import compaction
from slackwater.sources import Poll
from tests.spark.landed import HEADER, SCHEMA, land, left_behind, line

pytestmark = pytest.mark.spark


def pieces(engine: sw.Engine, table: sw.Table) -> int:
    return len(engine.catalog.segments(f"t{table.id}"))


def numbers(frame: Any) -> list[int]:
    return sorted(row[0] for row in frame.collect())


@pytest.mark.usefixtures("eager_compaction")
def test_a_table_that_no_view_reads_is_merged(engine: sw.Engine) -> None:
    table = engine.create_table("t", "a INT, b STRING", key=["a"])
    rows: dict[int, str] = {}
    snapshots = {}
    for n in range(6):
        table.upsert([(n, f"new {n}"), (n + 1, "next")])
        rows |= {n: f"new {n}", n + 1: "next"}
        if n == 3:
            table.delete_keys([{"a": 0}])
            del rows[0]
        snapshots[engine.catalog.version()] = dict(rows)
        assert pieces(engine, table) <= 4
    for version, then in snapshots.items():
        assert {row.a: row.b for row in table.snapshot(version).collect()} == then
    assert table.count() == len(rows)
    assert any(commit.kind == "compact" for commit in engine.catalog.commits())
    assert left_behind(engine) == []


@pytest.mark.usefixtures("eager_compaction")
def test_a_landing_directory_that_is_polled_often(engine: sw.Engine, landing: Path) -> None:
    table = engine.create_table("orders", SCHEMA)
    source = table.landing_directory(str(landing))
    for n in range(8):
        land(landing, f"{n}.csv", HEADER + line(n))
        assert source.poll().applied == (f"{n}.csv",)
        assert pieces(engine, table) <= 3
    assert source.poll() == Poll("orders")
    assert numbers(table.snapshot()) == list(range(8))
    assert left_behind(engine) == []


@pytest.mark.usefixtures("eager_compaction")
def test_a_view_that_lags_is_waited_for(engine: sw.Engine) -> None:
    table = engine.create_table("t", "a INT")
    table.insert([(0,)])
    view = engine.create_view("v", "SELECT a FROM t", strategy="incremental")
    for n in range(1, 6):
        table.insert([(n,)])
    assert pieces(engine, table) == 6, "the view has yet to read five of them one by one"
    assert view.refresh().mode == "incremental"
    assert pieces(engine, table) <= 3
    table.insert([(6,)])
    assert view.refresh().rows_inserted == 1
    assert view.verify()
    assert numbers(view.result()) == list(range(7))


def test_a_merge_that_fails_does_not_fail_the_change(
    engine: sw.Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(compaction, "TABLE_SEGMENTS", 2)
    table = engine.create_table("t", "a INT")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING, "slackwater"):
        patch.setattr(compaction, "_merged_table", full)
        versions = [table.insert([(n,)]) for n in range(4)]
    assert versions == sorted(set(versions))
    assert "is merged another time" in caplog.text
    assert (numbers(table.snapshot()), pieces(engine, table)) == ([0, 1, 2, 3], 4)
    table.insert([(4,)])
    assert (numbers(table.snapshot()), pieces(engine, table)) == ([0, 1, 2, 3, 4], 1)


# --- where history ends --------------------------------------------------------------------------


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merge every second change, and forget at the next merge what the last one was made of."""
    for name, value in (("TABLE_SEGMENTS", 2), ("RESULT_SEGMENTS", 2), ("KEEP_VERSIONS", 0)):
        monkeypatch.setattr(compaction, name, value)


def forgotten(call: Any) -> int:
    """Since which version there is history again, as a refusal says."""
    with pytest.raises(sw.SlackwaterError) as caught:
        call()
    assert caught.value.code == "HISTORY_COMPACTED"
    since = caught.value.details["last_version"]
    assert f"version {since} or later" in caught.value.advice
    return int(str(since))


@pytest.mark.usefixtures("forgetful")
def test_the_history_of_a_table_ends_where_it_was_merged(engine: sw.Engine) -> None:
    table = engine.create_table("t", "a INT")
    versions = [table.insert([(n,)]) for n in range(6)]
    assert numbers(table.snapshot()) == list(range(6))
    since = forgotten(lambda: table.snapshot(versions[0]))
    assert versions[0] < since <= versions[4]
    assert forgotten(table.changes) == since
    kept = [n for n, version in enumerate(versions) if version <= since]
    assert numbers(table.snapshot(since)) == kept
    assert numbers(table.changes(since=since)) == [n for n in range(6) if n not in kept]


@pytest.mark.usefixtures("forgetful")
def test_the_history_of_a_view_ends_where_it_was_merged(engine: sw.Engine) -> None:
    table = engine.create_table("t", "a INT")
    table.insert([(0,)])
    view = engine.create_view("v", "SELECT a FROM t")
    versions = [view.version]
    for n in range(1, 8):
        table.insert([(n,)])
        view.refresh()
        versions.append(view.version)
    assert numbers(view.result()) == list(range(8))
    since = forgotten(lambda: view.result(versions[0]))
    assert forgotten(view.changes) == since
    kept = [n for n, version in enumerate(versions) if version <= since]
    assert numbers(view.result(since)) == kept
    assert numbers(view.changes(since=since)) == [n for n in range(8) if n not in kept]
    assert view.verify()

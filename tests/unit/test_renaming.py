"""Renames through the engine; none of this needs a running Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql.types import LongType, StructField, StructType

import slackwater as sw
from slackwater.algebra.nodes import Field, Scan
from slackwater.algebra.serialize import to_json
from slackwater.arrivals.policy_text import policy_to_json
from slackwater.cli import cli
from slackwater.ddl_running import Done
from slackwater.errors import SlackwaterError

SCHEMA = StructType([StructField("id", LongType())])
POLICY = sw.cron("0 0 6 ? * MON-FRI", "Europe/Oslo")


def add_view(engine: sw.Engine, name: str, reads: str) -> sw.View:
    """A view without a result: computing one is Spark's business."""
    plan = Scan(reads, (Field("id", "bigint"),), (0,))
    query = json.dumps({"sql": f"SELECT id FROM {reads}", "columns": ["id"], "order": []})
    options = json.dumps({"strategy": "auto", "refresh": policy_to_json(POLICY)})
    with engine.catalog.commit("create_view", name) as tx:
        tx.add_view(name, query, json.dumps(to_json(plan)), "{}", options)
    return engine.view(name)


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise AssertionError("a rename asked for Spark")

    monkeypatch.setattr("slackwater.engine.start_spark", refuse)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """orders → totals → best, and items that nobody reads."""
    with sw.Engine(tmp_path / "wh") as engine:
        for name in ("orders", "items"):
            engine.create_table(name, SCHEMA)
        add_view(engine, "totals", "orders")
        add_view(engine, "best", "totals")
    return tmp_path / "wh"


def test_what_is_read_keeps_its_name(place: Path) -> None:
    with sw.Engine(place) as engine:
        version = engine.catalog.version()
        with pytest.raises(SlackwaterError) as caught:
            engine.sql("ALTER MATERIALIZED VIEW totals RENAME TO sums")
        assert (caught.value.code, caught.value.details) == ("VIEW_IN_USE", {"view": "totals", "readers": ["best"]})
        with pytest.raises(SlackwaterError) as caught:
            engine.table("orders").rename("sales")
        assert caught.value.code == "TABLE_IN_USE"
        assert caught.value.details == {"table": "orders", "readers": ["totals", "best"]}
        assert engine.catalog.version() == version
        engine.view("best").drop()
        engine.view("totals").rename("sums")
        engine.view("sums").drop()
        engine.table("orders").rename("sales")
        assert [table.name for table in engine.tables()] == ["sales", "items"]


def test_names_are_refused_as_for_new_ones(place: Path) -> None:
    with sw.Engine(place) as engine:
        best, items, version = engine.view("best"), engine.table("items"), engine.catalog.version()
        for name, code in (("Orders", "_EXISTS"), ("totals", "_EXISTS"), ("", "NAME_INVALID"), (5, "NAME_INVALID"),
                           ("x" * 256, "NAME_INVALID"), ("a\0b", "NAME_INVALID")):  # fmt: skip
            with pytest.raises(SlackwaterError) as caught:
                best.rename(name)  # type: ignore[arg-type]
            assert caught.value.code == code.replace("_EXISTS", "VIEW_EXISTS")
            with pytest.raises(SlackwaterError) as caught:
                items.rename(name)  # type: ignore[arg-type]
            assert caught.value.code == code.replace("_EXISTS", "TABLE_EXISTS")
        with pytest.raises(SlackwaterError, match="NAME_INVALID"):
            items.rename("sw@items")
        with pytest.raises(SlackwaterError, match="VIEW_UNKNOWN"):
            engine.sql("ALTER MATERIALIZED VIEW items RENAME TO things")
        assert (best.name, items.name, engine.catalog.version()) == ("best", "items", version)
        best.drop()
        with pytest.raises(SlackwaterError, match="VIEW_DROPPED"):
            best.rename("better")
    with sw.Engine(place, read_only=True) as reader, pytest.raises(SlackwaterError, match="WAREHOUSE_LOCKED"):
        reader.table("items").rename("things")


def test_a_rename_from_the_shell_needs_no_spark(place: Path) -> None:
    text = "ALTER MATERIALIZED VIEW best RENAME TO top; ALTER MATERIALIZED VIEW totals RENAME TO sums"
    result = CliRunner().invoke(cli, ["sql", str(place), text, "--json"])
    found = json.loads(result.stdout)
    assert [done["result"]["outcome"] for done in found["results"]] == ["renamed"]
    assert (result.exit_code, found["error"]["code"], found["error"]["details"]["readers"]) == (
        1,
        "VIEW_IN_USE",
        ["top"],
    )


def test_a_renamed_view_is_the_same_view(place: Path) -> None:
    with sw.Engine(place) as engine:
        best, version = engine.view("best"), engine.catalog.version()
        done = engine.sql("alter materialized view BEST rename to `the best`")
        assert isinstance(done, Done)
        assert (done.view, done.outcome, str(done)) == ("the best", "renamed", "view best is called the best now")
        assert engine.catalog.version() == version + 1, "one commit"
        assert engine.view("the best") is best
        assert engine.sql("ALTER MATERIALIZED VIEW `the best` RENAME TO Best").view == "Best"  # type: ignore[union-attr]
        best.rename("BEST")
        assert (best.name, best.inputs) == ("BEST", ("totals",))
        with pytest.raises(SlackwaterError, match="VIEW_UNKNOWN"):
            engine.view("best")
    with sw.Engine(place, read_only=True) as again:
        assert [view.name for view in again.views()] == ["totals", "BEST"]
        assert (again.view("BEST").id, again.view("BEST").policy) == (best.id, POLICY)


def test_readers_beside_the_writer_see_the_new_name(place: Path) -> None:
    with sw.Engine(place) as engine, sw.Engine(place, read_only=True) as reader:
        held = reader.view("best")
        engine.view("best").rename("top")
        assert reader.view("top") is held
        assert held.name == "top"


def test_all_objects_of_a_table_know_its_name(place: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with sw.Engine(place) as engine:
        items, held = engine.table("items"), engine.table("items")
        landing = held.landing_directory(str(tmp_path / "in"), "parquet")
        items.rename("things")
        assert (held.name, landing.table.name, engine.table("things").name) == ("things",) * 3
        # Another table takes the name: what is held still means the old one.
        engine.create_table("items", SCHEMA)
        assert held.mark_complete() == engine.catalog.version()
        assert (engine.table("things").complete, engine.table("items").complete) == (True, False)
        assert engine.catalog.commits(limit=1)[0].subject == "things"
        held.rename("stuff")
        assert items.name == "stuff"
        engine.drop_table("stuff")
        with pytest.raises(SlackwaterError, match="TABLE_UNKNOWN"):
            held.rename("more")
    with sw.Engine(place, read_only=True) as again:
        assert [table.name for table in again.tables()] == ["orders", "items"]


def test_a_dropped_table_is_no_empty_one(place: Path) -> None:
    with sw.Engine(place) as engine, sw.Engine(place, read_only=True) as reader:
        held = [engine.create_table("more", SCHEMA), engine.table("more"), reader.table("more")]
        assert [table.count() for table in held] == [0, 0, 0]
        engine.drop_table("more")
        for table in held:
            for asked in (table.count, table.snapshot, table.changes, table.relation):
                with pytest.raises(SlackwaterError, match="was dropped") as caught:
                    asked()
                assert caught.value.code == "TABLE_UNKNOWN"

"""Tables: keys, feeds of changes, completeness, time travel and reopening."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

import slackwater as sw
from tests.spark.tabled import bag, refused, segment_files, table_names

# --- keys ------------------------------------------------------------------------------------------------------------


def test_keys(warehouse: sw.Engine, make: Callable[..., sw.Table]) -> None:
    table = make("k INT, part STRING, v DOUBLE", [(1, "a", 1.0), (1, "b", 2.0), (2, "a", 3.0)], key=["part", "k"])
    with refused(warehouse, "KEY_EXISTS"):
        table.insert([(3, "a", 0.0), (1, "b", 0.0)])
    with refused(warehouse, "KEY_DUPLICATE"):
        table.insert([(3, "a", 0.0), (3, "a", 0.0)])
    with refused(warehouse, "KEY_NULL"):
        table.insert([(None, "a", 0.0)])
    with refused(warehouse, "KEY_NULL"):
        table.upsert([(3, None, 0.0)])
    with refused(warehouse, "KEY_DUPLICATE"):
        table.upsert([(1, "a", 0.0), (1, "a", 1.0)])
    with refused(warehouse, "ROW_ABSENT"):
        table.delete_keys([{"k": 1, "part": "a"}, {"k": 9, "part": "a"}])
    with refused(warehouse, "KEY_DUPLICATE"):
        table.delete_keys([{"k": 1, "part": "a"}, {"k": 1, "part": "a"}])
    with refused(warehouse, "COLUMN_EXTRA"):
        table.delete_keys([{"k": 1, "part": "a", "v": 1.0}])
    table.upsert([(1, "a", 9.0), (7, "z", None)])
    table.delete_keys([{"k": 2, "part": "a"}])
    assert bag(table) == Counter({(1, "a", "9.0"): 1, (1, "b", "2.0"): 1, (7, "z", None): 1})
    table.delete([(1, "a", 9.0)])
    table.insert([(1, "a", 5.0)])
    assert table.snapshot().where("k = 1 AND part = 'a'").first().v == 5.0


def test_keys_are_looked_for_where_they_can_be(warehouse: sw.Engine, make: Callable[..., sw.Table]) -> None:
    """Files below and above the new keys are not read, those around them are; a name inside of a struct is no key."""
    table = make("s STRUCT<c1: INT>, k DATE, part INT", [], key=["part", "k"])
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=n) for n in range(6)]
    for part in (3, 1, 2):
        table.insert([((9,), day, part) for day in days[1:5]])
    for part, day in ((1, days[1]), (2, days[3]), (3, days[4])):
        with refused(warehouse, "KEY_EXISTS"):
            table.insert([((0,), days[0], part), ((0,), day, part)])
    table.insert([((0,), days[0], 0), ((0,), days[5], 4)])
    table.delete_keys([{"part": 2, "k": days[2]}])
    table.insert([((0,), days[2], 2)])
    with refused(warehouse, "KEY_EXISTS"):
        table.insert([((0,), days[2], 2)])
    assert table.count() == 14


def test_key_operations_need_a_key(warehouse: sw.Engine, make: Callable[..., sw.Table]) -> None:
    table = make("k INT", [(1,)])
    with refused(warehouse, "KEY_REQUIRED"):
        table.upsert([(1,)])
    with refused(warehouse, "KEY_REQUIRED"):
        table.delete_keys([(1,)])


# --- feeds of changes ------------------------------------------------------------------------------------------------


def test_apply_change_types_in_one_version(make: Callable[..., sw.Table]) -> None:
    table = make("a INT, b STRING", [(1, "x"), (1, "x"), (2, "y")])
    feed = [(1, "x", "delete"), (2, "y", "update_preimage"), (2, "z", "update_postimage"), (3, None, "insert")]
    version = table.apply([{"a": a, "b": b, "_change_type": kind} for a, b, kind in feed])
    assert bag(table) == Counter({(1, "x"): 1, (2, "z"): 1, (3, None): 1})
    changes = table.changes(since=version - 1).collect()
    assert {r["_version"] for r in changes} == {version}
    assert Counter(r["_change_type"] for r in changes) == {"insert": 2, "delete": 2}


@pytest.mark.parametrize("row", [tuple, list, lambda values: Row(*values)])
def test_apply_tuples_that_end_in_the_change(make: Callable[..., sw.Table], row: Callable[..., Any]) -> None:
    table = make("a INT, b STRING", [(1, "x"), (1, "x"), (2, "y")])
    table.apply([row(values) for values in ((1, "x", "delete"), (2, "y", "update_preimage"), (3, None, "insert"))])
    assert bag(table) == Counter({(1, "x"): 1, (3, None): 1})
    table.apply([row(values) for values in ((3, None, -1), (4, "w", 2))])
    assert bag(table) == Counter({(1, "x"): 1, (4, "w"): 2})


def test_apply_weights_cancel_first(warehouse: sw.Engine, make: Callable[..., sw.Table]) -> None:
    table = make("a INT, d DOUBLE", [(1, 0.5)])
    weights = [(1, 0.5, -1), (1, 0.5, 3), (7, None, 1), (7, None, -1), (8, math.nan, 2), (9, 1.0, 0)]
    table.apply([{"a": a, "d": d, "_weight": w} for a, d, w in weights])
    assert bag(table) == Counter({(1, "0.5"): 3, (8, "nan"): 2})
    before = table.apply(pd.DataFrame({"a": [8, 8], "d": [2.5, 2.5], "_weight": [5, -5]}))
    assert table.changes(since=before - 1).count() == 0
    with refused(warehouse, "ROW_ABSENT"):
        table.apply([{"a": 1, "d": 0.5, "_weight": -4}, {"a": 50, "d": 0.5, "_weight": 1}])
    assert table.count() == 5


def test_apply_keeps_negative_zero(make: Callable[..., sw.Table]) -> None:
    table = make("d DOUBLE")
    table.apply([{"d": -0.0, "_weight": 1}])
    assert bag(table) == Counter({("-0.0",): 1})


def test_apply_respects_keys(warehouse: sw.Engine, make: Callable[..., sw.Table]) -> None:
    table = make("k INT, v INT", [(1, 10), (2, 20)], key=["k"])
    table.apply(
        [{"k": 1, "v": 10, "_change_type": "update_preimage"}, {"k": 1, "v": 11, "_change_type": "update_postimage"}]
    )
    assert bag(table) == Counter({(1, 11): 1, (2, 20): 1})
    with refused(warehouse, "KEY_EXISTS"):
        table.apply([{"k": 2, "v": 21, "_weight": 1}])
    with refused(warehouse, "KEY_DUPLICATE"):
        table.apply([{"k": 3, "v": 21, "_weight": 2}])


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ([{"a": 1, "_change_type": "upsert"}], "CHANGE_INVALID"),
        ([{"a": 1, "_change_type": None}], "CHANGE_INVALID"),
        ([{"a": 1, "_weight": None}], "CHANGE_INVALID"),
        ([{"a": 1}], "CHANGE_INVALID"),
        ([(1, "upsert")], "CHANGE_INVALID"),
        ([(1, None)], "CHANGE_INVALID"),
        ([(1, True)], "CHANGE_INVALID"),
        ([(1, 0.5)], "CHANGE_INVALID"),
        ([()], "CHANGE_INVALID"),
        (["insert"], "CHANGE_INVALID"),
        ([(1,)], "COLUMN_MISSING"),
        ([(1, 1, 1)], "COLUMN_EXTRA"),
        ([(1, "insert"), (1, 1)], "COLUMN_TYPE"),
        ([(1, 1), (1, "insert")], "COLUMN_TYPE"),
        (pa.table({"a": [1]}), "CHANGE_INVALID"),
        ([{"a": 1, "_weight": 1, "_change_type": "insert"}], "COLUMN_EXTRA"),
        ([{"a": 1, "_weight": "many"}], "COLUMN_TYPE"),
        ([{"_weight": 1}], "COLUMN_MISSING"),
    ],
)
def test_refused_changes(warehouse: sw.Engine, changes: Any, code: str) -> None:
    table = warehouse.table("feed") if "feed" in table_names(warehouse) else warehouse.create_table("feed", "a INT")
    with refused(warehouse, code):
        table.apply(changes)


# --- completeness, versions, reopening -------------------------------------------------------------------------------


def test_a_complete_table_takes_no_more(warehouse: sw.Engine, make: Callable[..., sw.Table]) -> None:
    table = make("k INT", [(1,)], key=["k"])
    assert not table.complete
    table.mark_complete()
    assert table.complete
    for change in (table.insert, table.delete, table.upsert, table.delete_keys):
        with refused(warehouse, "TABLE_COMPLETE"):
            change([(1,)])
    with refused(warehouse, "TABLE_COMPLETE"):
        table.apply([{"k": 1, "_weight": -1}])
    assert bag(table) == Counter({(1,): 1})


def test_time_travel_and_changes(warehouse: sw.Engine, make: Callable[..., sw.Table]) -> None:
    table = make("a INT")
    empty = warehouse.catalog.version()
    one = table.insert([(1,), (1,)])
    two = table.delete([(1,)])
    three = table.insert([(2,)])
    assert [bag(table, v) for v in (empty, one, two, three, None)] == [
        Counter(), Counter({(1,): 2}), Counter({(1,): 1}), Counter({(1,): 1, (2,): 1}), Counter({(1,): 1, (2,): 1}),
    ]  # fmt: skip
    feed = [tuple(r) for r in table.changes(since=one).orderBy("_version").collect()]
    assert feed == [(1, "delete", two), (2, "insert", three)]
    assert table.changes().count() == 4
    assert table.changes(since=three).count() == 0
    for unknown in (-1, three + 1000, True, "1", 1.5):
        with refused(warehouse, "VERSION_UNKNOWN"):
            table.snapshot(unknown)
    with refused(warehouse, "VERSION_UNKNOWN"):
        table.changes(since=three + 1000)


def test_hostile_names_are_only_names(warehouse: sw.Engine, spark: SparkSession) -> None:
    columns = [
        "a.b",
        "`",
        "x`; DROP TABLE y; --",
        "sélect * ⚓",
        "q\"uo'te",
        "{0}",
        "${spark.app.name}",
        "*",
        "c0",
        "_",
    ]
    schema = StructType([StructField(c, StringType()) for c in columns])
    table = warehouse.create_table("t`.`x'; DROP TABLE t --", schema, key=["a.b", "x`; DROP TABLE y; --"])
    rows = [tuple(f"{c}{i}" for c in columns) for i in range(3)]
    table.insert(rows)
    table.upsert([dict(zip(columns, (*rows[0][:3], *("new",) * (len(columns) - 3)), strict=True))])
    table.delete_keys([{"a.b": rows[1][0], "x`; DROP TABLE y; --": rows[1][2]}])
    table.delete(spark.createDataFrame([rows[2]], schema))
    table.apply([dict(zip([*columns, "_weight"], (*rows[2], 1), strict=True))])
    assert table.snapshot().columns == columns
    assert bag(table) == Counter([rows[2], (*rows[0][:3], *("new",) * (len(columns) - 3))])
    assert table.changes().columns == [*columns, "_change_type", "_version"]
    assert warehouse.table(table.name).id == table.id


def test_what_was_committed_is_there_after_reopening(tmp_path: Any, spark: SparkSession) -> None:
    with sw.Engine(tmp_path / "wh", spark=spark) as first:
        table = first.create_table("t", "a INT, b STRING", key=["a"])
        table.insert([(1, "x"), (2, "y")])
        version = table.upsert([(2, "z")])
        with pytest.raises(sw.SlackwaterError, match="WAREHOUSE_LOCKED"):
            sw.Engine(tmp_path / "wh", spark=spark)
        with sw.Engine(tmp_path / "wh", spark=spark, read_only=True) as reader:
            assert bag(reader.table("t")) == Counter({(1, "x"): 1, (2, "z"): 1})
            with pytest.raises(sw.SlackwaterError, match="WAREHOUSE_LOCKED"):
                reader.table("t").insert([(3, "w")])
    with pytest.raises(sw.SlackwaterError, match="ENGINE_CLOSED"):
        table.insert([(3, "w")])
    with sw.Engine(tmp_path / "wh", spark=spark) as second:
        assert second.catalog.version() >= version
        again = second.table("t")
        assert (again.key, bag(again)) == (("a",), Counter({(1, "x"): 1, (2, "z"): 1}))
        assert not (tmp_path / "wh" / "staging").exists()
        second.drop_table("t")
        assert segment_files(second) == set()

"""Tables: schemas, inserts and deletes. A refused change leaves nothing behind."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, NullType, StructField, StructType

import slackwater as sw
from tests.spark.landed import left_behind
from tests.spark.tabled import bag, refused, table_names

# --- schemas ---------------------------------------------------------------------------------------------------------


def test_schemas_from_ddl_struct_type_and_frame(warehouse: sw.Engine, spark: SparkSession) -> None:
    ddl = warehouse.create_table("from ddl", "id BIGINT, name STRING COMMENT 'x', amount DECIMAL(12,2)", key=["id"])
    struct = warehouse.create_table("from struct", StructType([StructField("id", LongType(), False)]))
    frame = warehouse.create_table("from frame", spark.createDataFrame([(1, "a"), (1, "a")], "id INT, name STRING"))
    assert [f.dataType.simpleString() for f in ddl.schema] == ["bigint", "string", "decimal(12,2)"]
    assert ddl.key == ("id",)
    assert struct.snapshot().columns == ["id"]
    assert bag(frame) == Counter({(1, "a"): 2})
    assert [f.name for f in warehouse.table("from frame").schema] == ["id", "name"]
    assert "from ddl" in repr(ddl)
    assert "id" in repr(ddl)


def test_a_frame_that_cannot_be_inserted_makes_no_table(warehouse: sw.Engine, spark: SparkSession) -> None:
    twice = spark.createDataFrame([(1,), (1,)], "id INT")
    with pytest.raises(sw.SlackwaterError, match="KEY_DUPLICATE"):
        warehouse.create_table("never", twice, key=["id"])
    with pytest.raises(sw.SlackwaterError, match="TABLE_UNKNOWN"):
        warehouse.table("never")
    warehouse.create_table("never", twice)


@pytest.mark.parametrize(
    ("name", "schema", "key", "code"),
    [
        ("", "a INT", (), "NAME_INVALID"),
        ("  ", "a INT", (), "NAME_INVALID"),
        ("a\nb", "a INT", (), "NAME_INVALID"),
        ("x" * 256, "a INT", (), "NAME_INVALID"),
        (7, "a INT", (), "NAME_INVALID"),
        ("SW@result", "a INT", (), "NAME_INVALID"),
        ("ok", StructType([StructField(" ", LongType())]), (), "NAME_INVALID"),
        ("ok", StructType([StructField("a\tb", LongType())]), (), "NAME_INVALID"),
        ("ok", "a INT, oops", (), "SCHEMA_INVALID"),
        ("ok", "a NOSUCHTYPE", (), "SCHEMA_INVALID"),
        ("ok", StructType([]), (), "SCHEMA_INVALID"),
        ("ok", 42, (), "SCHEMA_INVALID"),
        ("ok", "a INT, A INT", (), "SCHEMA_INVALID"),
        ("ok", StructType([StructField("a", NullType())]), (), "TYPE_UNSUPPORTED"),
        ("ok", "a ARRAY<VOID>", (), "TYPE_UNSUPPORTED"),
        ("ok", "a MAP<STRING, STRUCT<x: VOID>>", (), "TYPE_UNSUPPORTED"),
        ("ok", "a ARRAY<INT>", ["a"], "TYPE_UNSUPPORTED"),
        ("ok", "a INT, _w INT", (), "COLUMN_RESERVED"),
        ("ok", "a INT, _CHANGE_TYPE INT", (), "COLUMN_RESERVED"),
        ("ok", "a INT, _metadata INT", (), "COLUMN_RESERVED"),
        ("ok", "a INT", ["b"], "KEY_UNKNOWN"),
        ("ok", "a INT", ["a", "a"], "KEY_UNKNOWN"),
        ("ok", "a INT", "a", "KEY_UNKNOWN"),
    ],
)
def test_refused_schemas(warehouse: sw.Engine, name: Any, schema: Any, key: Any, code: str) -> None:
    with refused(warehouse, code):
        warehouse.create_table(name, schema, key=key)


def test_names_are_taken_once(warehouse: sw.Engine, make: Callable[..., sw.Table]) -> None:
    table = make("a INT")
    with refused(warehouse, "TABLE_EXISTS"):
        warehouse.create_table(table.name.upper(), "a INT")
    with refused(warehouse, "TABLE_UNKNOWN"):
        warehouse.table("no such table")


# --- inserts ---------------------------------------------------------------------------------------------------------

ROW_SCHEMA = "id BIGINT, name STRING, amount DECIMAL(12,2), at TIMESTAMP, day DATE, ok BOOLEAN, x DOUBLE"
NOON = dt.datetime(2024, 2, 29, 12, 0, tzinfo=dt.timezone.utc)
FIRST = (1, "a", Decimal("1.50"), NOON, dt.date(2024, 2, 29), True, 0.5)
EMPTY = (2, None, None, None, None, None, None)


def _kinds(spark: SparkSession) -> dict[str, Any]:
    names = [part.split()[0] for part in ROW_SCHEMA.replace("12,2", "12;2").split(", ")]
    types = (
        pa.int64(),
        pa.string(),
        pa.decimal128(12, 2),
        pa.timestamp("us", "UTC"),
        pa.date32(),
        pa.bool_(),
        pa.float64(),
    )
    arrow = pa.schema(list(zip(names, types, strict=True)))
    dicts = [dict(zip(names, row, strict=True)) for row in (FIRST, EMPTY)]
    table = pa.Table.from_pylist(dicts, arrow)
    return {
        "spark": spark.createDataFrame([FIRST, EMPTY], ROW_SCHEMA),
        "spark, other order": spark.createDataFrame([FIRST, EMPTY], ROW_SCHEMA).select(*reversed(names)),
        "pandas": pd.DataFrame(dicts, columns=names).astype(object),
        "polars": pl.from_arrow(table),
        "arrow": table,
        "arrow batch": table.to_batches()[0],
        "dicts": dicts,
        "dicts, other order": [dict(reversed(d.items())) for d in dicts],
        "tuples": [FIRST, EMPTY],
        "lists": [list(FIRST), list(EMPTY)],
        "rows": [Row(**d) for d in dicts],
        "rows without names": [Row(*FIRST), Row(*EMPTY)],
    }


def test_every_kind_of_input_gives_the_same_rows(make: Callable[..., sw.Table], spark: SparkSession) -> None:
    table = make(ROW_SCHEMA)
    kinds = {table.insert(rows): kind for kind, rows in _kinds(spark).items()}
    found: dict[str, list[Any]] = {kind: [] for kind in kinds.values()}
    for row in table.changes().withColumn("at", F.unix_micros("at")).orderBy("id").collect():
        assert row["_change_type"] == "insert"
        found[kinds[row["_version"]]].append(tuple(row)[:-2])
    at = int(NOON.timestamp() * 1e6)
    expected = [(*FIRST[:3], at, *FIRST[4:]), EMPTY]
    assert {kind: rows for kind, rows in found.items() if rows != expected} == {}
    assert table.count() == 2 * len(kinds)


def test_narrow_types_widen_and_nothing_else_is_converted(
    warehouse: sw.Engine, make: Callable[..., sw.Table], spark: SparkSession
) -> None:
    table = make("l BIGINT, d DOUBLE, m DECIMAL(20,2)")
    table.insert(spark.sql("SELECT 1Y AS l, CAST(0.5 AS FLOAT) AS d, CAST(1.5 AS DECIMAL(5,1)) AS m"))
    table.insert(spark.sql("SELECT 1 AS l, 0.5D AS d, 7 AS m"))
    table.insert(spark.sql("SELECT 1L AS l, CAST(NULL AS DOUBLE) AS d, NULL AS m"))
    assert table.snapshot().collect() == [
        Row(l=1, d=0.5, m=Decimal("1.50")), Row(l=1, d=0.5, m=Decimal("7.00")), Row(l=1, d=None, m=None),
    ]  # fmt: skip
    for wrong in ("1.5D AS l, 1D AS d, 1 AS m", "1L AS l, '1' AS d, 1 AS m", "1L AS l, 1D AS d, 1.001 AS m",
                  "1L AS l, 1D AS d, 1L AS m", "true AS l, 1D AS d, 1 AS m"):  # fmt: skip
        with refused(warehouse, "COLUMN_TYPE"):
            table.insert(spark.sql(f"SELECT {wrong}"))


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([{"a": 1}], "COLUMN_MISSING"),
        ([(1,)], "COLUMN_MISSING"),
        (pd.DataFrame({"a": [1]}), "COLUMN_MISSING"),
        (pa.table({"a": [1]}), "COLUMN_MISSING"),
        (pl.DataFrame({"a": [1]}), "COLUMN_MISSING"),
        ([{"a": 1, "b": "x", "c": 2}], "COLUMN_EXTRA"),
        ([(1, "x", 2)], "COLUMN_EXTRA"),
        (pa.table([[1], ["x"], ["y"]], names=["a", "b", "b"]), "COLUMN_EXTRA"),
        ([{"A": 1, "b": "x"}], "COLUMN_MISSING"),
        ([("one", "x")], "COLUMN_TYPE"),
        ([(2**40, "x")], "COLUMN_TYPE"),
        ([{"a": 1, "b": "x"}, {"a": "y", "b": "x"}], "COLUMN_TYPE"),
        (pa.table({"a": ["one"], "b": ["x"]}), "COLUMN_TYPE"),
        (pa.table({"a": pa.array([1.5]), "b": ["x"]}), "COLUMN_TYPE"),
        (42, "INPUT_KIND"),
        ("a,b", "INPUT_KIND"),
        (None, "INPUT_KIND"),
        ([1, 2], "INPUT_KIND"),
        (["ab"], "INPUT_KIND"),
        ((row for row in [(1, "x")]), "INPUT_KIND"),
        (pd.Series([1]), "INPUT_KIND"),
        (pl.Series([1]), "INPUT_KIND"),
        (pl.LazyFrame({"a": [1], "b": ["x"]}), "INPUT_KIND"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_refused_rows(warehouse: sw.Engine, rows: Any, code: str) -> None:
    table = (
        warehouse.table("strict")
        if "strict" in table_names(warehouse)
        else warehouse.create_table("strict", "a INT, b STRING")
    )
    with refused(warehouse, code):
        table.insert(rows)


def test_a_number_in_a_list_is_no_string(warehouse: sw.Engine, make: Callable[..., sw.Table]) -> None:
    table = make("a STRING")
    with refused(warehouse, "COLUMN_TYPE"):
        table.insert(pa.table({"a": [1]}))
    with refused(warehouse, "COLUMN_TYPE"):
        table.insert([(1,)])


# --- deletes ---------------------------------------------------------------------------------------------------------


def test_deletes_are_bag_wise(warehouse: sw.Engine, make: Callable[..., sw.Table]) -> None:
    table = make("a INT, b STRING", [(1, "x"), (1, "x"), (1, "x"), (2, None)])
    table.insert([(1, "x")])
    table.delete([(1, "x")])
    assert bag(table) == Counter({(1, "x"): 3, (2, None): 1})
    table.delete([(1, "x"), (2, None), (1, "x")])
    assert bag(table) == Counter({(1, "x"): 1})
    for absent in ([(1, "x"), (1, "x")], [(1, "x"), (9, "y")], [(2, None)], [(1, None)]):
        with refused(warehouse, "ROW_ABSENT"):
            table.delete(absent)
    assert bag(table) == Counter({(1, "x"): 1})
    table.delete([(1, "x")])
    assert (table.count(), table.snapshot().count()) == (0, 0)
    with refused(warehouse, "ROW_ABSENT"):
        table.delete([(1, "x")])
    table.insert([(1, "x")])
    assert table.count() == 1


def test_an_absent_row_is_named(make: Callable[..., sw.Table]) -> None:
    table = make("a INT, b STRING", [(1, "x")])
    with pytest.raises(sw.SlackwaterError, match=r"1 of 2 rows.*\(7, 'gone'\)"):
        table.delete([(1, "x"), (7, "gone")])


def test_null_nan_and_both_zeros_are_values_that_can_be_deleted(make: Callable[..., sw.Table]) -> None:
    odd = [(None,), (math.nan,), (0.0,), (-0.0,), (math.inf,), (-math.inf,)]
    table = make("d DOUBLE", [*odd, (1.0,), (None,)])
    table.delete([(None,), (math.nan,), (math.inf,)])
    assert bag(table) == Counter({(None,): 1, ("0.0",): 1, ("-0.0",): 1, ("-inf",): 1, ("1.0",): 1})
    table.delete([(-0.0,)])  # to Spark it equals 0.0, but that row stays
    assert bag(table) == Counter({(None,): 1, ("0.0",): 1, ("-inf",): 1, ("1.0",): 1})
    table.delete([(0.0,), (-math.inf,), (None,), (1.0,)])
    assert table.count() == 0


def test_structs_arrays_and_binary_are_deleted_by_value(warehouse: sw.Engine, make: Callable[..., sw.Table]) -> None:
    table = make("s STRUCT<x: INT, y: DOUBLE>, a ARRAY<STRING>, b BINARY")
    rows = [((1, 0.5), ["p", None], b"\x00\xff"), ((None, math.nan), [], None), (None, None, b"")]
    table.insert([*rows, rows[0]])
    table.delete([rows[0], rows[1]])
    assert bag(table) == Counter({((1, "0.5"), ("p", None), b"\x00\xff"): 1, (None, None, b""): 1})
    with refused(warehouse, "ROW_ABSENT"):
        table.delete([((1, 0.5), [None, "p"], b"\x00\xff")])


def test_rows_with_maps_are_deleted_by_key(make: Callable[..., sw.Table]) -> None:
    table = make("k INT, m MAP<STRING, INT>", [(1, {"a": 1}), (2, None)], key=["k"])
    table.upsert([(1, {"a": 2})])
    table.delete_keys([{"k": 2}])
    assert bag(table) == Counter({(1, (("a", 2),)): 1})


def test_maps_cannot_be_compared(warehouse: sw.Engine, make: Callable[..., sw.Table]) -> None:
    table = make("k INT, m MAP<STRING, INT>", [(1, {"a": 1})])
    with refused(warehouse, "TYPE_UNSUPPORTED"):
        table.delete([(1, {"a": 1})])
    with refused(warehouse, "TYPE_UNSUPPORTED"):
        table.apply([{"k": 1, "m": {"a": 1}, "_weight": -1}])


# --- the first rows --------------------------------------------------------------------------------------------------


def test_a_table_comes_with_its_rows_or_not_at_all(engine: sw.Engine, spark: SparkSession) -> None:
    rows = spark.range(3).selectExpr("id", "id * 2 AS v")
    table = engine.create_table("t", rows, key=["id"])
    assert (engine.catalog.version(), table.count()) == (1, 3)
    assert sorted(tuple(r) for r in table.snapshot(1).collect()) == [(0, 0), (1, 2), (2, 4)]
    files = left_behind(engine)
    for bad, code in (
        (rows.unionAll(rows), "KEY_DUPLICATE"),
        (rows.selectExpr("nullif(id, 1) AS id", "v"), "KEY_NULL"),
    ):
        with refused(engine, code):
            engine.create_table("u", bad, key=["id"])
    with refused(engine, "TABLE_EXISTS"):
        engine.create_table("T", rows)
    assert (engine.catalog.version(), left_behind(engine)) == (1, files)
    empty = engine.create_table("u", rows.where("id < 0"))
    assert (empty.count(), left_behind(engine)) == (0, files)
    empty.insert([(1, 1)])
    table.delete_keys([(2,)])
    assert sorted(tuple(r) for r in table.snapshot().collect()) == [(0, 0), (1, 2)]


def test_a_view_comes_with_its_result_or_not_at_all(engine: sw.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.create_table("t", "a INT").insert([(1,), (2,)])
    version = engine.catalog.version()
    monkeypatch.setenv("SLACKWATER_FAIL_AT", "commit.inside")
    with pytest.raises((sw.SlackwaterError, OSError)):
        engine.create_view("v", "SELECT sum(a) AS s FROM t")
    monkeypatch.delenv("SLACKWATER_FAIL_AT")
    assert (engine.views(), engine.catalog.version(), left_behind(engine)) == ([], version, [])
    view = engine.create_view("v", "SELECT sum(a) AS s FROM t", strategy="incremental")
    assert (view.version, engine.catalog.version()) == (version + 1, version + 1)
    assert engine.view("v") is view
    assert [commit.kind for commit in engine.catalog.commits(2)] == ["create_view", "change"]
    with pytest.raises(sw.SlackwaterError, match="VIEW_EXISTS"):
        engine.create_view("V", "SELECT count(*) AS s FROM t")
    engine.table("t").insert([(3,)])
    assert view.refresh().mode == "incremental"
    assert view.verify()


def test_tables_from_frames_that_are_not_sparks(engine: sw.Engine) -> None:
    days = [dt.date(2024, 2, 29), None]
    amounts = [Decimal("1.50"), None]
    arrow = pa.table({"id": pa.array([1, 2], pa.int32()), "name": ["a", None], "day": days, "at": [NOON, None],
                      "amount": pa.array(amounts, pa.decimal128(12, 2)), "list": [[1.5], []]})  # fmt: skip
    wanted = [(1, "a", days[0], NOON.timestamp(), amounts[0], [1.5]), (2, None, None, None, None, [])]
    types = ["int", "string", "date", "timestamp", "decimal(12,2)", "array<double>"]
    given = {"arrow": arrow, "batch": arrow.to_batches()[0], "polars": pl.from_arrow(arrow)}
    for name, rows in given.items():
        table = engine.create_table(name, rows, key=["id"])
        assert [f.dataType.simpleString() for f in table.schema] == types, name
        found = table.snapshot().selectExpr("id", "name", "day", "unix_timestamp(at)", "amount", "list").collect()
        assert sorted(tuple(row) for row in found) == wanted, name
        with refused(engine, "KEY_EXISTS"):
            table.insert(arrow)
        table.insert(rows.slice(0, 0))
        assert (table.count(), engine.create_table(f"no {name}", rows.slice(0, 0)).schema) == (2, table.schema)
    frame = pd.DataFrame({"id": [1, 2], "x": [0.5, math.nan], "name": ["a", None], "day": days}, index=[7, 8])
    table = engine.create_table("pandas", frame)
    assert [f.dataType.simpleString() for f in table.schema] == ["bigint", "double", "string", "date"]
    assert bag(table) == Counter({(1, "0.5", "a", days[0]): 1, (2, None, None, None): 1})


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        (pa.table({"a": pa.array([1], pa.uint64())}), "SCHEMA_INVALID"),
        (pd.DataFrame({"a": [1, "one"]}), "SCHEMA_INVALID"),
        (pd.DataFrame({"a": [None, None]}), "TYPE_UNSUPPORTED"),
        (pa.table({"a": pa.nulls(2)}), "TYPE_UNSUPPORTED"),
        (pd.Series([1]), "SCHEMA_INVALID"),
        (pl.LazyFrame({"a": [1]}), "SCHEMA_INVALID"),
        ([{"a": 1}], "SCHEMA_INVALID"),
    ],
)
def test_frames_that_make_no_table(warehouse: sw.Engine, rows: Any, code: str) -> None:
    with refused(warehouse, code):
        warehouse.create_table("never made", rows)

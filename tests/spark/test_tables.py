"""Tables: every way in, every way out, and every refusal. A refused change leaves nothing behind."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, NullType, StringType, StructField, StructType

import slackwater as sw

_NUMBERS = itertools.count(1)


@pytest.fixture
def make(warehouse: sw.Engine) -> Callable[..., sw.Table]:
    """Create a table under a name that no other test has."""

    def create(schema: Any, rows: Any = None, key: Any = ()) -> sw.Table:
        table = warehouse.create_table(f"t{next(_NUMBERS)}", schema, key=key)
        if rows is not None:
            table.insert(rows)
        return table

    return create


def bag(table: sw.Table, version: int | None = None) -> Counter[Any]:
    """The rows of a snapshot, with floats told apart by their text: NaN equals itself, -0.0 is not 0.0."""
    return Counter(tuple(map(_plain, row)) for row in table.snapshot(version).collect())


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Row | tuple | list):
        return tuple(map(_plain, value))
    return tuple(sorted(value.items())) if isinstance(value, dict) else value


@contextmanager
def refused(engine: sw.Engine, code: str) -> Iterator[None]:
    """A refusal with this code that leaves version and files as they were."""
    version, files = engine.catalog.version(), _segments(engine)
    with pytest.raises(sw.SlackwaterError) as caught:
        yield
    assert caught.value.code == code, str(caught.value)
    assert caught.value.advice
    assert (engine.catalog.version(), _segments(engine)) == (version, files)


def _segments(engine: sw.Engine) -> set[str]:
    return {str(p) for p in (engine.path / "data").glob("*/*")}


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


def test_an_empty_insert_is_a_version_without_rows(make: Callable[..., sw.Table]) -> None:
    table = make("a INT", [(1,)])
    before = table.insert([(2,)])
    assert table.insert([]) == before + 1
    assert table.count() == 2
    assert table.changes(since=before).count() == 0


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
        if "strict" in _names(warehouse)
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


def _names(engine: sw.Engine) -> set[str]:
    return {t.name for t in engine.tables()}


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


def test_null_nan_and_negative_zero_are_deleted_as_spark_compares_them(make: Callable[..., sw.Table]) -> None:
    odd = [(None,), (math.nan,), (0.0,), (-0.0,), (math.inf,), (-math.inf,)]
    table = make("d DOUBLE", [*odd, (1.0,), (None,)])
    table.delete([(None,), (math.nan,), (math.inf,)])
    assert bag(table) == Counter({(None,): 1, ("0.0",): 1, ("-0.0",): 1, ("-inf",): 1, ("1.0",): 1})
    # To Spark both zeros are one value: one of the two rows goes.
    table.delete([(-0.0,)])
    assert table.snapshot().where("d = 0").count() == 1
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
        ([(1, "insert")], "CHANGE_INVALID"),
        (pa.table({"a": [1]}), "CHANGE_INVALID"),
        ([{"a": 1, "_weight": 1, "_change_type": "insert"}], "COLUMN_EXTRA"),
        ([{"a": 1, "_weight": "many"}], "COLUMN_TYPE"),
        ([{"_weight": 1}], "COLUMN_MISSING"),
    ],
)
def test_refused_changes(warehouse: sw.Engine, changes: Any, code: str) -> None:
    table = warehouse.table("feed") if "feed" in _names(warehouse) else warehouse.create_table("feed", "a INT")
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
        assert _segments(second) == set()

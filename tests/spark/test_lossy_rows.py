"""Rows that would lose something on their way into a table are refused whole; what loses nothing goes in as it is."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from tests.spark.settling import session_with
from tests.spark.tabled import bag, refused

NOON = dt.datetime(2024, 2, 29, 12)
ZONED = NOON.replace(tzinfo=dt.timezone.utc)
NANO = 1_709_208_000_000_000_001
NAN = float("nan")

PANDAS: list[tuple[str, Any]] = [
    ("BIGINT", [1.7]),
    ("BIGINT", [1e19]),
    ("BIGINT", [2.0**53, NAN]),
    ("TINYINT", [300]),
    ("INT", [2**40]),
    ("INT", [True]),
    ("BOOLEAN", [2.5]),
    ("FLOAT", [1e300]),
    ("DOUBLE", [2**53 + 1]),
    ("TIMESTAMP", [7]),
    ("BIGINT", [pd.Timestamp(NOON)]),
    ("DATE", [pd.Timestamp(NOON)]),
    ("TIMESTAMP_NTZ", [pd.Timestamp(ZONED)]),
    ("TIMESTAMP", [pd.Timestamp(NANO)]),
    ("STRING", [7]),
    ("DECIMAL(10,2)", [Decimal("1.005")]),
    ("ARRAY<STRING>", [[7]]),
]
LISTS: list[tuple[str, Any]] = [
    ("DECIMAL(10,2)", Decimal("1.005")),
    ("DECIMAL(10,2)", Decimal("123456789.1")),
    ("DECIMAL(10,2)", Decimal("NaN")),
    ("DATE", NOON),
    ("TIMESTAMP_NTZ", ZONED),
    ("FLOAT", 1e300),
    ("STRING", 7),
    ("ARRAY<STRING>", [7]),
    ("ARRAY<DECIMAL(10,2)>", [Decimal("1.005")]),
    ("STRUCT<x: STRING>", (7,)),
    ("STRUCT<x: STRING>", {"x": "a", "y": "b"}),
    ("STRUCT<x: INT, y: INT>", Row(y=1, x=2)),
    ("INTERVAL DAY", dt.timedelta(hours=25)),
]
MAPS: list[tuple[str, Any]] = [
    ("MAP<STRING, STRING>", {"a": 7}),
    ("MAP<STRING, STRING>", {7: "a"}),
    ("MAP<STRING, DATE>", {"a": NOON}),
]
TIMES: list[tuple[str, Any]] = [
    ("TIMESTAMP", pa.array([NANO], pa.timestamp("ns", "UTC"))),
    ("TIMESTAMP", pa.array([NANO], pa.timestamp("ns"))),
    ("ARRAY<TIMESTAMP>", pa.array([[NANO]], pa.list_(pa.timestamp("ns", "UTC")))),
]
KEYS = ("TINYINT", "INT", "BIGINT", "DATE", "DECIMAL(10,2)", "STRING", "TIMESTAMP_NTZ", "TIMESTAMP")


def _refused_everywhere(engine: sw.Engine, table: sw.Table, rows: Any) -> None:
    """Whatever is done with the rows, also with those that have the value for a key."""
    before = bag(table)
    for change in (table.insert, table.upsert):
        with refused(engine, "COLUMN_TYPE"):
            change(rows)
    if "map" not in table.schema["x"].dataType.simpleString():
        with refused(engine, "COLUMN_TYPE"):
            table.delete(rows)
    assert bag(table) == before


@pytest.mark.parametrize(("dtype", "values"), PANDAS)
def test_frames_of_pandas(warehouse: sw.Engine, make: Callable[..., sw.Table], dtype: str, values: Any) -> None:
    table = make(f"k INT, x {dtype}", [(0, None)], key=["k"])
    _refused_everywhere(warehouse, table, pd.DataFrame({"k": range(len(values)), "x": values}))
    if dtype in KEYS:
        keyed = make(f"x {dtype}", key=["x"])
        with refused(warehouse, "COLUMN_TYPE"):
            keyed.delete_keys(pd.DataFrame({"x": values}))


@pytest.mark.parametrize(("dtype", "value"), LISTS + MAPS)
def test_lists(warehouse: sw.Engine, make: Callable[..., sw.Table], dtype: str, value: Any) -> None:
    table = make(f"k INT, x {dtype}", [(0, None)], key=["k"])
    _refused_everywhere(warehouse, table, [(1, None), (0, value)])
    _refused_everywhere(warehouse, table, [{"k": 0, "x": value}])
    if dtype in KEYS:
        keyed = make(f"x {dtype}", key=["x"])
        with refused(warehouse, "COLUMN_TYPE"):
            keyed.delete_keys([(value,)])


@pytest.mark.parametrize(("dtype", "values"), TIMES)
def test_times_too_fine(warehouse: sw.Engine, make: Callable[..., sw.Table], dtype: str, values: pa.Array) -> None:
    table = make(f"k INT, x {dtype}", [(0, None)], key=["k"])
    rows = pa.table({"k": pa.array([0], pa.int32()), "x": values})
    _refused_everywhere(warehouse, table, rows)
    _refused_everywhere(warehouse, table, pl.from_arrow(rows))


def test_a_decimal_that_would_be_rounded_deletes_no_other_row(
    warehouse: sw.Engine, make: Callable[..., sw.Table]
) -> None:
    table = make("x DECIMAL(10,2)", [(Decimal("1.01"),), (Decimal("1.5"),)])
    with refused(warehouse, "COLUMN_TYPE"):
        table.delete([(Decimal("1.005"),)])
    with refused(warehouse, "COLUMN_TYPE"):
        table.apply([{"x": Decimal("1.005"), "_weight": -1}])
    table.delete([(Decimal("1.500"),)])
    assert bag(table) == Counter({(Decimal("1.01"),): 1})


def test_what_loses_nothing_in_lists(make: Callable[..., sw.Table]) -> None:
    table = make(
        "m DECIMAL(10,2), d DATE, f FLOAT, a ARRAY<STRING>, p MAP<STRING, STRING>, s STRUCT<x: INT, y: STRING>"
    )
    midnight = dt.datetime(2024, 2, 29)
    table.insert([(Decimal("1.500"), midnight, 0.5, ["a", None], {"b": "c"}, Row(x=1, y="d"))])
    table.insert([{"m": Decimal("1E+3"), "d": midnight.date(), "f": None, "a": [], "p": None, "s": {"y": "e"}}])
    assert bag(table) == Counter(
        {
            (Decimal("1.50"), midnight.date(), "0.5", ("a", None), (("b", "c"),), (1, "d")): 1,
            (Decimal("1000.00"), midnight.date(), None, (), None, (None, "e")): 1,
        }
    )


def test_what_pandas_has_by_default_fits(make: Callable[..., sw.Table]) -> None:
    orders = make("o_id BIGINT, amount INT", key=["o_id"])
    orders.insert(pd.DataFrame({"o_id": [1], "amount": [10]}))
    orders.upsert(pd.DataFrame({"amount": [20, NAN], "o_id": [1, 2]}))
    orders.insert(pd.DataFrame({"o_id": [], "amount": []}))
    assert bag(orders) == Counter({(1, 20): 1, (2, None): 1})
    orders.delete_keys(pd.DataFrame({"o_id": pd.array([2], dtype="Int64")}))
    orders.delete(pd.DataFrame({"o_id": [1], "amount": [20.0]}))
    assert orders.count() == 0


def test_every_dtype_of_pandas(make: Callable[..., sw.Table], spark: SparkSession) -> None:
    table = make(
        "b BOOLEAN, t TINYINT, f FLOAT, d DOUBLE, s STRING, c STRING COLLATE UTF8_LCASE, x BINARY, day DATE, "
        "at TIMESTAMP, z TIMESTAMP, n TIMESTAMP_NTZ, m DECIMAL(10,2), a ARRAY<INT>, p MAP<STRING, INT>, "
        "r STRUCT<x: INT, y: ARRAY<TIMESTAMP>>, i INTERVAL DAY TO SECOND, none INT"
    )
    frame = pd.DataFrame(
        {
            "b": pd.array([True, None], dtype="boolean"),
            "t": [7.0, NAN],
            "f": [0.5, NAN],
            "d": [1, 2],
            "s": pd.Categorical(["a", None]),
            "c": pd.array(["Ann", None], dtype="string"),
            "x": [b"x", None],
            "day": pd.to_datetime(["2024-02-29", None]),
            "at": pd.to_datetime([NOON, None]),
            "z": pd.to_datetime([ZONED, None]),
            "n": pd.to_datetime([NOON, None]),
            "m": [Decimal("1.500"), None],
            "a": [np.array([1.0, NAN]), None],
            "p": [{"k": 1}, None],
            "r": [{"x": 1, "y": [NOON]}, None],
            "i": pd.to_timedelta(["1s", None]),
            "none": [None, None],
        }
    )
    with session_with(spark, session__timeZone="America/New_York"):
        table.insert(frame)
        table.insert(frame.head(0))
        times = [F.unix_micros("at"), F.unix_micros("z"), F.unix_micros(F.col("r.y")[0])]
        shown = table.snapshot().select(*times, "n").orderBy("n").collect()
    seconds = int(ZONED.timestamp()) * 10**6
    late = seconds + 5 * 3600 * 10**6
    assert [tuple(row) for row in shown] == [(None, None, None, None), (late, seconds, late, NOON)]
    rest = table.snapshot().drop("at", "z", "n", "r").orderBy("d").collect()
    first = (True, 7, 0.5, 1.0, "a", "Ann", b"x", NOON.date(), Decimal("1.50"), [1, None], {"k": 1})
    assert tuple(rest[0]) == (*first, dt.timedelta(seconds=1), None)
    assert tuple(rest[1]) == (*(None,) * 3, 2.0, *(None,) * 9)


def test_times_without_a_zone_in_lists_of_polars_are_the_sessions(
    make: Callable[..., sw.Table], spark: SparkSession
) -> None:
    table = make("x TIMESTAMP, a ARRAY<TIMESTAMP>")
    with session_with(spark, session__timeZone="America/New_York"):
        table.insert(pl.DataFrame({"x": [NOON], "a": [[NOON]]}))
        assert table.snapshot().where("a[0] = x").count() == 1


def test_changes_from_pandas_are_weighed_exactly(warehouse: sw.Engine, make: Callable[..., sw.Table]) -> None:
    table = make("x TINYINT", [(44,)])
    for changes in ({"x": [300], "_weight": [-1]}, {"x": [44], "_weight": [-1.5]}):
        with refused(warehouse, "COLUMN_TYPE"):
            table.apply(pd.DataFrame(changes))
    table.apply(pd.DataFrame({"x": [44, 45], "_weight": [-1, 1]}))
    assert bag(table) == Counter({(45,): 1})

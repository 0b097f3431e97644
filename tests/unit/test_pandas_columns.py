"""Columns of pandas as columns of a table: what fits goes in as it is, all else is refused with a code."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    TimeType,
)  # fmt: skip

from slackwater.errors import TableError
from slackwater.pandas_columns import from_pandas

NOON, DAY = dt.datetime(2024, 2, 29, 12), dt.datetime(2024, 2, 29)
ZONED = NOON.replace(tzinfo=dt.timezone(dt.timedelta(hours=2)))
POINT = StructType([StructField("x", IntegerType()), StructField("y", StringType())])
NAN = float("nan")


def _column(values: Any, dtype: DataType) -> pa.ChunkedArray:
    schema = StructType([StructField("a", dtype, False)])
    return from_pandas(pd.DataFrame({"a": values}), schema, "t").column("a")


def _objects(*values: Any) -> pd.Series[Any]:
    return pd.Series(list(values), dtype=object)


@pytest.mark.parametrize(
    ("values", "dtype", "kept"),
    [
        ([1, -1], LongType(), [1, -1]),
        ([1, 2**31 - 1], IntegerType(), [1, 2**31 - 1]),
        ([-(2**15)], ShortType(), [-(2**15)]),
        ([127], ByteType(), [127]),
        (np.array([7], dtype="u8"), ByteType(), [7]),
        (pd.array([2**53 + 1, None], dtype="Int64"), LongType(), [2**53 + 1, None]),
        (pd.array([2**53 + 1, None], dtype="int64[pyarrow]"), LongType(), [2**53 + 1, None]),
        ([1.0, NAN], IntegerType(), [1, None]),
        ([2.0**53 - 1, NAN], LongType(), [2**53 - 1, None]),
        ([1, 2], DoubleType(), [1.0, 2.0]),
        ([1, 2], FloatType(), [1.0, 2.0]),
        ([0.5, NAN, float("inf")], DoubleType(), [0.5, None, float("inf")]),
        ([0.1, 0.0, NAN, float("-inf")], FloatType(), [float(np.float32(0.1)), 0.0, None, float("-inf")]),
        (np.array([0.5], dtype="f4"), DoubleType(), [0.5]),
        (np.array([0.5], dtype="f2"), DoubleType(), [0.5]),
        ([NAN, NAN], StringType(), [None, None]),
        ([NAN], DecimalType(10, 2), [None]),
        ([pd.NaT], DateType(), [None]),
        (np.array([7], dtype="i1"), DecimalType(10, 2), [Decimal(7)]),
        ([True, False], BooleanType(), [True, False]),
        (pd.array([True, None], dtype="boolean"), BooleanType(), [True, None]),
        (_objects(True, None, np.True_), BooleanType(), [True, None, True]),
        (["a", None], StringType(), ["a", None]),
        (["a", None], StringType("UTF8_LCASE"), ["a", None]),
        (pd.array(["a", None], dtype="string"), StringType("UTF8_LCASE"), ["a", None]),
        (pd.array(["a", None], dtype="string[pyarrow]"), StringType(), ["a", None]),
        (pd.Categorical(["a", None, "b", "a"]), StringType(), ["a", None, "b", "a"]),
        (pd.Categorical([1, None]), IntegerType(), [1, None]),
        ([b"x", bytearray(b"y")], BinaryType(), [b"x", b"y"]),
        (pd.to_datetime([NOON, None]), TimestampNTZType(), [NOON, None]),
        (pd.to_datetime([NOON]), TimestampType(), [NOON]),  # Spark takes it in the session's zone
        (pd.to_datetime([ZONED]), TimestampType(), [ZONED]),
        (_objects(NOON, pd.NaT), TimestampType(), [NOON, None]),
        (_objects(pd.Timestamp(ZONED), None), TimestampType(), [ZONED, None]),
        (pd.to_datetime([DAY, None]), DateType(), [DAY.date(), None]),
        ([DAY.date(), None], DateType(), [DAY.date(), None]),
        (_objects(pd.Timestamp(DAY)), DateType(), [DAY.date()]),
        (np.array(["2024-02-29"], dtype="M8[s]"), TimestampNTZType(), [DAY]),
        (pd.to_timedelta(["1s", None]), DayTimeIntervalType(), [dt.timedelta(seconds=1), None]),
        (pd.to_timedelta(["2d"]), DayTimeIntervalType(0, 0), [dt.timedelta(days=2)]),
        ([dt.time(1, 2, 3, 4)], TimeType(), [dt.time(1, 2, 3, 4)]),
        ([Decimal("1.500"), Decimal("7"), None], DecimalType(10, 2), [Decimal("1.50"), Decimal("7.00"), None]),
        (_objects(Decimal("NaN"), 7), DecimalType(10, 2), [None, Decimal(7)]),
        ([[1, 2], None], ArrayType(LongType()), [[1, 2], None]),
        ([np.array([1.0, NAN])], ArrayType(IntegerType()), [[1, None]]),
        ([np.array(["2024-02-29T12"], dtype="M8[ns]")], ArrayType(TimestampType()), [[NOON]]),
        ([{"k": 1}], MapType(StringType(), IntegerType()), [[("k", 1)]]),
        ([[("k", 1)]], MapType(StringType(), IntegerType()), [[("k", 1)]]),
        ([{"x": 1}, (2, "b")], POINT, [{"x": 1, "y": None}, {"x": 2, "y": "b"}]),
        (pd.Series([[1]], dtype=pd.ArrowDtype(pa.list_(pa.int32()))), ArrayType(IntegerType()), [[1]]),
        ([], IntegerType(), []),
    ],
)
def test_what_fits(values: Any, dtype: DataType, kept: list[Any]) -> None:
    assert _column(values, dtype).to_pylist() == kept


@pytest.mark.parametrize(
    ("values", "dtype", "said"),
    [
        ([1.7], LongType(), "1.7"),
        ([1e19], LongType(), "1e.19"),
        ([2.0**53, NAN], LongType(), "9007199254740992"),
        ([300], ByteType(), "300"),
        ([2**40], IntegerType(), str(2**40)),
        ([2**40, NAN], IntegerType(), str(2**40)),
        (np.array([2**63], dtype="u8"), LongType(), str(2**63)),
        (pd.array([1.5, None], dtype="Float64"), IntegerType(), "1.5"),
        ([2.5], BooleanType(), "double"),
        ([1], BooleanType(), "int64"),
        ([True], IntegerType(), "bool"),
        ([True], StringType(), "bool"),
        ([1e300], FloatType(), r"1e\+300"),
        ([3.5e38], FloatType(), r"3.5e\+38"),
        ([1e-300], FloatType(), "1e-300"),
        ([2**53 + 1], DoubleType(), str(2**53 + 1)),
        ([1], TimestampType(), "int64"),
        ([1], DateType(), "int64"),
        ([10], DecimalType(10, 2), "int64"),
        ([0.5], DecimalType(10, 2), "double"),
        ([1], StringType(), "int64"),
        (["1"], LongType(), "'1'"),
        (["x"], BinaryType(), "'x'"),
        ([b"x"], StringType(), "b'x'"),
        (pd.Categorical([1, 2]), StringType(), "int64"),
        (pd.Categorical([300]), ByteType(), "300"),
        (pd.to_datetime([NOON]), LongType(), "timestamp"),
        (pd.to_datetime([NOON]), DateType(), "2024-02-29 12"),
        (_objects(NOON), DateType(), "2024, 2, 29, 12"),
        (pd.to_datetime([ZONED]), TimestampNTZType(), "timestamp"),
        (_objects(ZONED), TimestampNTZType(), "2024, 2, 29, 12"),
        (pd.to_datetime([ZONED]), DateType(), "timestamp"),
        (_objects(NOON, ZONED), TimestampType(), "zone"),
        (_objects(7), TimestampType(), "7"),
        (pd.to_datetime(["2024-02-29 12:00:00.000000001"]), TimestampType(), "lose data"),
        (_objects(pd.Timestamp("2024-02-29 12:00:00.000000001")), TimestampType(), "finer"),
        (pd.to_timedelta([1]), DayTimeIntervalType(), "lose data"),
        (_objects(pd.Timedelta(1)), DayTimeIntervalType(), "finer"),
        (pd.to_timedelta(["1h"]), DayTimeIntervalType(0, 0), "hour|1:00"),
        ([Decimal("1.005")], DecimalType(10, 2), "1.005"),
        ([Decimal("123456789")], DecimalType(10, 2), "123456789"),
        ([1.5, Decimal("1.5")], DecimalType(10, 2), "1.5"),
        ([[1, 2.5]], ArrayType(IntegerType()), "2.5"),
        ([["a", 1]], ArrayType(StringType()), "1"),
        ([{"k": 300}], MapType(StringType(), ByteType()), "300"),
        ([[("k", 1), ("k", 2)]], MapType(StringType(), ByteType()), "twice"),
        ([{"x": 1, "z": 2}], POINT, "'z'"),
        ([(1,)], POINT, "1"),
        (pd.period_range("2024", periods=1, freq="Y"), LongType(), "period"),
        (np.array([1j]), DoubleType(), "umpy"),
    ],
)
def test_what_would_change_is_refused(values: Any, dtype: DataType, said: str) -> None:
    with pytest.raises(TableError, match=rf"column 'a' of 't' is .*({said})") as caught:
        _column(values, dtype)
    assert caught.value.code == "COLUMN_TYPE"


def test_columns_are_found_by_what_their_names_print() -> None:
    frame = pd.DataFrame({2: ["x"], 1: [7], "rest": [0]}, index=[5])
    schema = StructType([StructField("1", IntegerType()), StructField("2", StringType())])
    found = from_pandas(frame, schema, "t")
    assert (found.schema.names, found.to_pylist()) == (["1", "2"], [{"1": 7, "2": "x"}])
    assert list(frame.columns) == [2, 1, "rest"]

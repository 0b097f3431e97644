"""Values in lists that PySpark would change, and those of which nothing is lost."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Row
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    FloatType,
    IntegerType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    TimeType,
)  # fmt: skip

from slackwater.cell_checks import refuse_lossy_rows
from slackwater.errors import TableError

NOON = dt.datetime(2024, 2, 29, 12)
ZONED = NOON.replace(tzinfo=dt.timezone.utc)
MONEY = DecimalType(10, 2)
POINT = StructType([StructField("x", IntegerType()), StructField("y", MONEY)])

KEPT: list[tuple[DataType, list[Any]]] = [
    (MONEY, [None, Decimal("1"), Decimal("1.5"), Decimal("1.500"), Decimal("-99999999.99"), Decimal("0E-9"),
             Decimal("1E+7"), Decimal("12000E-3"), Decimal("0E+20")]),
    (DecimalType(38, 38), [Decimal("0.1"), Decimal("1E-38")]),
    (DecimalType(3, 0), [Decimal("999"), Decimal("999.000")]),
    (DateType(), [NOON.date(), dt.datetime(2024, 2, 29)]),
    (TimestampType(), [NOON, ZONED]),
    (TimestampNTZType(), [NOON]),
    (TimeType(), [dt.time(1, 2, 3, 4)]),
    (DayTimeIntervalType(), [dt.timedelta(microseconds=1)]),
    (DayTimeIntervalType(0, 1), [dt.timedelta(hours=-25)]),
    (FloatType(), [0.1, 0.0, 3.4e38, float("inf"), float("nan"), 1e-45]),
    (StringType(), ["", "x"]),
    (StringType("UTF8_LCASE"), ["x"]),
    (ArrayType(StringType()), [[], ["x", None], ("x",)]),
    (MapType(StringType(), MONEY), [{}, {"x": Decimal(1)}]),
    (POINT, [(1, None), [1, Decimal("1.5")], {"x": 1}, Row(1, Decimal(1)), Row(x=1, y=None)]),
    (ArrayType(POINT), [[(1, Decimal(1)), None]]),
]  # fmt: skip
LOST: list[tuple[DataType, list[Any]]] = [
    (MONEY, [Decimal("1.005"), Decimal("1E-3"), Decimal("100000000"), Decimal("1E+8"), Decimal("NaN"), Decimal("inf"),
             Decimal("0.0001"), Decimal("100000000.001")]),
    (DecimalType(38, 38), [Decimal("1")]),
    (DateType(), [NOON, ZONED, dt.datetime(2024, 2, 29, tzinfo=dt.timezone.utc)]),
    (TimestampNTZType(), [ZONED]),
    (TimeType(), [dt.time(1, tzinfo=dt.timezone.utc)]),
    (DayTimeIntervalType(0, 1), [dt.timedelta(minutes=90)]),
    (FloatType(), [1e300, -3.5e38, 1e-300]),
    (StringType(), [1, b"x", 1.5, True, NOON]),
    (StringType("UTF8_LCASE"), [1]),
    (ArrayType(StringType()), [[1], ["x", 2]]),
    (MapType(StringType(), StringType()), [{1: "x"}, {"x": 1}]),
    (MapType(StringType(), MONEY), [{"x": Decimal("0.001")}]),
    (POINT, [(1, Decimal("0.001")), {"y": Decimal("0.001")}, {"x": 1, "z": 2}, (1,), Row(y=1, x=None)]),
    (ArrayType(POINT), [[(1, None), (1, Decimal("0.001"))]]),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "value"), [(dtype, value) for dtype, values in KEPT for value in values])
def test_nothing_is_lost(dtype: DataType, value: Any) -> None:
    refuse_lossy_rows([(value,), (None,)], StructType([StructField("a", dtype)]), "t")


@pytest.mark.parametrize(("dtype", "value"), [(dtype, value) for dtype, values in LOST for value in values])
def test_what_is_lost_is_refused_by_column_and_value(dtype: DataType, value: Any) -> None:
    schema = StructType([StructField("k", IntegerType()), StructField("a", dtype)])
    with pytest.raises(TableError) as caught:
        refuse_lossy_rows([(1, None), (2, value)], schema, "t")
    assert caught.value.code == "COLUMN_TYPE"
    assert f"column 'a' of 't' is {dtype.simpleString()}, the rows have {value!r}" in caught.value.message

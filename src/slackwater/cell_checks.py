"""Python values that a column can hold as they are.

PySpark checks values in lists by their class alone. What the class does not tell is changed on the way: decimals are
rounded, times of day and time zones dropped, numbers made into strings, fields that a struct lacks left out. So every
value is looked at here before Spark sees it, where its column is of a type that this can happen to.
"""

from __future__ import annotations

import datetime as dt
from array import array
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    CharType,
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
    StructType,
    TimestampNTZType,
    TimestampType,
    TimeType,
    VarcharType,
    VariantType,
    VariantVal,
)

from slackwater.errors import TableError

Check = Callable[[Any], bool]

_BITS: dict[type[DataType], int] = {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}
_BY_CLASS: tuple[type[DataType], ...] = (BooleanType, *_BITS, DoubleType, BinaryType, VariantType)
"""Types for which PySpark's own look at the class and the range is enough."""

WHOLE_DOUBLES, WHOLE_FLOATS = 2**53, 2**24
"""Below these, a whole floating-point number is no other whole number that was rounded."""

MOST_FLOAT, LEAST_FLOAT = 3.4028235677973366e38, 2.0**-150
"""From the one upwards a number becomes infinity as a FLOAT, from the other downwards zero."""

_UNITS = {
    DayTimeIntervalType.DAY: dt.timedelta(days=1),
    DayTimeIntervalType.HOUR: dt.timedelta(hours=1),
    DayTimeIntervalType.MINUTE: dt.timedelta(minutes=1),
}
_SIMPLE: dict[type[DataType], Check] = {
    BooleanType: lambda value: isinstance(value, bool),
    DoubleType: lambda value: isinstance(value, float) or (_is_whole(value) and abs(value) <= WHOLE_DOUBLES),
    BinaryType: lambda value: isinstance(value, bytes | bytearray),
    StringType: lambda value: isinstance(value, str),
    CharType: lambda value: isinstance(value, str),
    VarcharType: lambda value: isinstance(value, str),
    TimestampType: lambda value: isinstance(value, dt.datetime),
    TimestampNTZType: lambda value: isinstance(value, dt.datetime) and value.tzinfo is None,
    TimeType: lambda value: isinstance(value, dt.time) and value.tzinfo is None,
    VariantType: lambda value: isinstance(value, VariantVal),
}


def refuse_lossy_rows(rows: Sequence[tuple[Any, ...]], schema: StructType, table: str) -> None:
    """Refuse rows from a list with a value that PySpark would take, but change."""
    for at, field in enumerate(schema):
        if isinstance(field.dataType, _BY_CLASS):
            continue
        keeps = keeper(field.dataType)
        for row in rows:
            if not keeps(row[at]):
                raise unfit(field.name, field.dataType, table, row[at])


def unfit(column: str, dtype: DataType, table: str, value: Any) -> TableError:
    """The refusal of a value that a column cannot hold as it is."""
    shown = repr(value)
    return TableError(
        "COLUMN_TYPE",
        f"column {column!r} of {table!r} is {dtype.simpleString()}, "
        f"the rows have {shown if len(shown) <= 200 else shown[:200] + '…'}",
        "convert the values first, see table.schema for the types: nothing is converted that could lose a digit",
    )


def keeper(dtype: DataType) -> Check:
    """Tells whether a value, or NULL, is one of the type, with nothing lost."""
    keeps = _keeper(dtype)
    return lambda value: value is None or keeps(value)


def _keeper(dtype: DataType) -> Check:
    if type(dtype) in _BITS:
        most = 2 ** (_BITS[type(dtype)] - 1)
        return lambda value: _is_whole(value) and -most <= value < most
    if isinstance(dtype, FloatType):
        return _is_float
    if isinstance(dtype, DecimalType):
        return lambda value: isinstance(value, Decimal) and _has_room(value, dtype.precision, dtype.scale)
    if isinstance(dtype, DateType):
        return _is_day
    if isinstance(dtype, DayTimeIntervalType):
        unit = _UNITS.get(dtype.endField, dt.timedelta(microseconds=1))
        return lambda value: isinstance(value, dt.timedelta) and not value % unit
    if isinstance(dtype, ArrayType):
        keeps = keeper(dtype.elementType)
        return lambda value: isinstance(value, list | tuple | array) and all(map(keeps, value))
    if isinstance(dtype, MapType):
        keys, values = keeper(dtype.keyType), keeper(dtype.valueType)
        return lambda value: isinstance(value, dict) and all(map(keys, value)) and all(map(values, value.values()))
    if isinstance(dtype, StructType):
        return _struct_keeper(dtype)
    # Of types that no library but PySpark has, PySpark knows more than we do.
    return _SIMPLE.get(type(dtype), lambda value: True)


def _struct_keeper(dtype: StructType) -> Check:
    names, checks = dtype.names, [keeper(f.dataType) for f in dtype]

    def keeps(value: Any) -> bool:
        if isinstance(value, tuple | list):
            # Spark goes by position also where the fields have names.
            if len(value) != len(names) or list(getattr(value, "__fields__", names)) != names:
                return False
            return all(check(v) for check, v in zip(checks, value, strict=True))
        if isinstance(value, dict):
            # Spark leaves out what has no field.
            return value.keys() <= set(names) and all(
                check(value.get(n)) for check, n in zip(checks, names, strict=True)
            )
        return hasattr(value, "__dict__") and all(
            check(vars(value).get(n)) for check, n in zip(checks, names, strict=True)
        )

    return keeps


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_float(value: Any) -> bool:
    """A Python number is a FLOAT when it is rounded to one: there is no other way to write one down."""
    if _is_whole(value):
        return bool(abs(value) <= WHOLE_FLOATS)
    if not isinstance(value, float):
        return False
    size = abs(value)
    return not LEAST_FLOAT >= size > 0 and not MOST_FLOAT <= size < float("inf")


def _is_day(value: Any) -> bool:
    if isinstance(value, dt.datetime):
        return value.tzinfo is None and value.time() == dt.time()
    return isinstance(value, dt.date)


def _has_room(value: Decimal, precision: int, scale: int) -> bool:
    """Whether a decimal has no digits beyond the scale, but for zeros, and not too many before the point."""
    if not value.is_finite():
        return False
    if not value:
        return True
    _, digits, exponent = value.as_tuple()
    beyond = -scale - int(exponent)
    return value.adjusted() < precision - scale and (beyond <= 0 or not any(digits[-beyond:]))

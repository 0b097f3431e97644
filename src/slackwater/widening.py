"""Which types of input may become which types of columns without looking at the values."""

from __future__ import annotations

from pyspark.sql.types import (
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
)

INTEGERS: tuple[type[DataType], ...] = (ByteType, ShortType, IntegerType, LongType)
_DIGITS: dict[type[DataType], int] = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 20}


def widens(given: DataType, wanted: DataType) -> bool:
    """Whether every value of one type is a value of the other."""
    if isinstance(given, NullType):
        return True
    if type(given) in INTEGERS and type(wanted) in INTEGERS:
        return INTEGERS.index(type(given)) <= INTEGERS.index(type(wanted))
    if type(given) in INTEGERS and isinstance(wanted, DecimalType):
        return wanted.precision - wanted.scale >= _DIGITS[type(given)]
    if isinstance(given, FloatType) and isinstance(wanted, DoubleType):
        return True
    if isinstance(given, DecimalType) and isinstance(wanted, DecimalType):
        return wanted.scale >= given.scale and wanted.precision - wanted.scale >= given.precision - given.scale
    # Nullability and field metadata do not matter.
    return given.simpleString() == wanted.simpleString()

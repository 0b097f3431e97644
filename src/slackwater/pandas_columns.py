"""Frames of pandas as Arrow tables that have the types of a table.

PySpark makes whatever there is into the types that are wanted: 300 becomes 44 as a TINYINT. Here, a frame is judged
like an Arrow table, by the types that its columns have. But pandas knows fewer types than Spark, so where it has only
one way of saying something, the values are looked at instead:

- whole numbers are `int64` whatever their size: they fit where each of them fits, also into DOUBLE;
- whole numbers with missing ones are `float64` with NaN: they fit an integer column if all are whole and below 2^53,
  since from there on pandas may have rounded them itself;
- floating-point numbers are `float64`: they are rounded to a FLOAT as those in a list are, but not to infinity or zero;
- days are `datetime64` at midnight;
- a column in which all is missing has a type that says nothing;
- all that has no dtype of its own is `object`: such values are treated like those in a list.

NaN is how pandas says that a value is missing. So it becomes NULL, also in a column of DOUBLE.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
    VariantType,
    VariantVal,
)

from slackwater.arrow_times import in_microseconds
from slackwater.cell_checks import LEAST_FLOAT, MOST_FLOAT, WHOLE_DOUBLES, WHOLE_FLOATS, keeper, unfit
from slackwater.errors import TableError
from slackwater.widening import INTEGERS, widens


def from_pandas(rows: pd.DataFrame, schema: StructType, table: str) -> pa.Table:
    """The columns of a frame whose names are those of the schema, in its order and types, or a refusal."""
    frame = rows.set_axis([str(c) for c in rows.columns], axis="columns")
    columns = [_column(frame[field.name], field, table) for field in schema]
    return in_microseconds(pa.Table.from_arrays(columns, names=schema.names))


def _column(series: pd.Series[Any], field: StructField, table: str) -> pa.Array:
    try:
        # Columns of types that Arrow has not, as intervals of months, end here too.
        target = to_arrow_type(field.dataType, timezone="UTC")
        if series.dtype == object:
            return _objects(series, field, table)
        array = pa.array(series, from_pandas=True)
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if array.null_count == len(array):
            return pa.nulls(len(array), target)
        wrong = _misfits(array, field.dataType)
        if wrong is not None and pc.any(wrong).as_py():
            raise unfit(field.name, field.dataType, table, array.filter(wrong)[0].as_py())
        return array.cast(_unzoned(array.type, field.dataType, target))
    except (PySparkException, pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        reason = str(error).splitlines()[0][:300]
        raise TableError(
            "COLUMN_TYPE",
            f"column {field.name!r} of {table!r} is {field.dataType.simpleString()}, the rows do not fit it: {reason}",
            "convert the values first, see table.schema for the types: nothing is converted that could lose a digit",
        ) from error


def _misfits(array: pa.Array, wanted: DataType) -> pa.Array | None:
    """Which values the column cannot hold as they are; None where a safe cast tells."""
    given, kinds = array.type, pa.types
    if kinds.is_integer(given) and isinstance(wanted, (*INTEGERS, FloatType, DoubleType)):
        return None
    if kinds.is_floating(given) and isinstance(wanted, INTEGERS):
        limit = WHOLE_DOUBLES if kinds.is_float64(given) else WHOLE_FLOATS
        return pc.invert(pc.less(pc.abs(array), pa.scalar(limit, given)))
    if kinds.is_float64(given) and isinstance(wanted, FloatType):
        size = pc.abs(array)
        infinite = pc.and_(pc.greater_equal(size, MOST_FLOAT), pc.less(size, float("inf")))
        return pc.or_(infinite, pc.and_(pc.less_equal(size, LEAST_FLOAT), pc.greater(size, 0.0)))
    if kinds.is_floating(given) and isinstance(wanted, FloatType | DoubleType):
        return None
    if kinds.is_timestamp(given) and given.tz is None and isinstance(wanted, DateType):
        return pc.not_equal(pc.floor_temporal(array, unit="day"), array)
    if kinds.is_duration(given) and isinstance(wanted, DayTimeIntervalType):
        if wanted.endField == DayTimeIntervalType.SECOND:
            return None
        keeps = keeper(wanted)
        return pa.array([v.as_py() is not None and not keeps(v.as_py()) for v in array])
    if any(widens(from_arrow_type(given, ntz), wanted) for ntz in (True, False)):
        return None
    if _is_text(given) and isinstance(wanted, StringType):
        return None  # under whatever collation
    raise TypeError(f"they are {given}")


def _is_text(given: pa.DataType) -> bool:
    return bool(pa.types.is_string(given) or pa.types.is_large_string(given))


def _unzoned(given: pa.DataType, wanted: DataType, target: pa.DataType) -> pa.DataType:
    """What to cast to: times without a zone stay so, because Spark knows the session's zone."""
    if pa.types.is_timestamp(given):
        return pa.timestamp("us", given.tz) if isinstance(wanted, TimestampType) else target
    # Times inside of others are Spark's to convert, and are of the types that are wanted.
    return given if pa.types.is_nested(given) else target


def _objects(series: pd.Series[Any], field: StructField, table: str) -> pa.Array:
    dtype = field.dataType
    keeps, zones, values = keeper(dtype), set[bool](), []
    for given in series:
        value = _plain(given, dtype)
        if not keeps(value):
            raise unfit(field.name, dtype, table, given)
        values.append(_arranged(value, dtype, zones))
    if len(zones) > 1:
        raise TypeError("some times have a zone, and some have none")
    return pa.array(values, to_arrow_type(dtype, timezone="" if False in zones else "UTC"))


def _plain(value: Any, dtype: DataType) -> Any:
    """A cell as a value that could stand in a list, without what is only NumPy's or pandas' way of saying it."""
    if isinstance(value, np.ndarray):
        # NumPy makes its own times into numbers.
        value = list(pd.Series(value)) if value.dtype.kind in "mM" else value.tolist()
    elif isinstance(value, np.datetime64):
        value = pd.Timestamp(value)
    elif isinstance(value, np.timedelta64):
        value = pd.Timedelta(value)
    elif isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, list | tuple):
        return _plain_many(value, dtype)
    if isinstance(value, Mapping):
        if isinstance(dtype, MapType):
            return {_plain(k, dtype.keyType): _plain(v, dtype.valueType) for k, v in value.items()}
        fields = {f.name: f.dataType for f in dtype} if isinstance(dtype, StructType) else {}
        return {k: _plain(v, fields[k]) if k in fields else v for k, v in value.items()}
    if pd.isna(value):
        return None
    if isinstance(value, pd.Timestamp | pd.Timedelta):
        if value.nanoseconds if isinstance(value, pd.Timedelta) else value.nanosecond:
            raise TypeError(f"{value} is finer than a microsecond")
        return value.to_pydatetime() if isinstance(value, pd.Timestamp) else value.to_pytimedelta()
    if isinstance(value, float) and isinstance(dtype, INTEGERS) and value.is_integer() and abs(value) < WHOLE_DOUBLES:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and isinstance(dtype, DecimalType):
        return Decimal(value)
    return value


def _plain_many(values: list[Any] | tuple[Any, ...], dtype: DataType) -> Any:
    if isinstance(dtype, ArrayType):
        return [_plain(v, dtype.elementType) for v in values]
    if isinstance(dtype, MapType):
        # Arrow gives maps to pandas as lists of pairs.
        pairs = {_plain(k, dtype.keyType): _plain(v, dtype.valueType) for k, v in values}
        if len(pairs) < len(values):
            raise TypeError(f"a map has a key twice: {values!r}"[:300])
        return pairs
    if isinstance(dtype, StructType) and len(values) == len(dtype):
        names = getattr(values, "__fields__", dtype.names)
        if list(names) == dtype.names:
            return tuple(_plain(v, f.dataType) for v, f in zip(values, dtype, strict=True))
    return values


def _arranged(value: Any, dtype: DataType, zones: set[bool]) -> Any:
    """A value that the type keeps, as Arrow wants to be given it; notes whether its times have zones."""
    if value is None:
        return None
    if isinstance(dtype, TimestampType):
        zones.add(value.tzinfo is not None)
    elif isinstance(dtype, ArrayType):
        return [_arranged(v, dtype.elementType, zones) for v in value]
    elif isinstance(dtype, MapType):
        return [(_arranged(k, dtype.keyType, zones), _arranged(v, dtype.valueType, zones)) for k, v in value.items()]
    elif isinstance(dtype, StructType):
        by_name = dict(zip(dtype.names, value, strict=True)) if isinstance(value, list | tuple) else value
        return {f.name: _arranged(by_name.get(f.name), f.dataType, zones) for f in dtype}
    elif isinstance(dtype, VariantType) and isinstance(value, VariantVal):
        return {"value": bytes(value.value), "metadata": bytes(value.metadata)}
    return value

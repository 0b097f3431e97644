"""What Spark's readers of CSV and JSON would take and change: found in the text, before it is read as values.

Spark rounds a decimal to its column's scale, drops the time of day from a date and what is finer than a microsecond
from a time, makes infinity of a number too large for a FLOAT, and -56 of 200 in a TINYINT of JSON. So columns of these
types are first read as the text that they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from slackwater.algebra.expressions import quote

Changed = Callable[[Column], Column]
"""Whether the text of a value, which may be NULL, would become another value."""

NUMBER: Final = r"^[+-]?(\d*\.?(\d*))(?:[eE]([+-]?\d+))?$"
"""A number, with its digits, those after the point, and its exponent."""
NOT_ZERO: Final = r"^[+-]?[0.]*[1-9]"
DAY_WITH_TIME: Final = r"^\s*[+-]?\d+-\d+-\d+[T ](?!\s*$|00:00(?::00(?:\.0*)?)?\s*$)"
"""A day and more than midnight."""
FINER_THAN_MICROSECONDS: Final = r"\.\d{6}\d*[1-9]"

_FIELDS: Final = "MAP<STRING, STRING>"
_ELEMENTS: Final = ArrayType(StringType())


class Screen:
    """Knows which columns of a table need a look at their text in files of a format."""

    def __init__(self, schema: StructType, format_: str, options: Mapping[str, str]) -> None:
        self._schema, self._format, self._options = schema, format_, options

    def as_text(self) -> StructType | None:
        """The columns under which to read files to be screened; None where there is nothing to look at."""
        if not any(self._texts(field.dataType) for field in self._schema):
            return None
        if self._format == "csv":  # where a column is told by its place
            return StructType([StructField(field.name, StringType()) for field in self._schema])
        return _some_fields(self._schema, self._texts)

    def complaint(self) -> Column:
        """What is wrong with a row that was read as text; NULL if nothing is."""
        found = []
        for field in self._schema:
            if self._texts(field.dataType):
                value = F.col(quote(field.name))
                found.append(_told(field, self._changed(value, field.dataType), value))
        return F.coalesce(*found)

    def _texts(self, dtype: DataType) -> DataType | None:
        """The type under which what is to be looked at in values of a type is text."""
        if self._leaf(dtype) is not None:
            return StringType()
        if self._format == "csv":
            return None
        if isinstance(dtype, ArrayType):
            element = self._texts(dtype.elementType)
            return ArrayType(element) if element else None
        if isinstance(dtype, MapType):
            value = self._texts(dtype.valueType)
            return MapType(StringType(), value) if value else None
        return _some_fields(dtype, self._texts) if isinstance(dtype, StructType) else None

    def _changed(self, value: Column, dtype: DataType) -> Column:
        leaf = self._leaf(dtype)
        if leaf is not None:
            return leaf(value)
        if isinstance(dtype, ArrayType):
            return F.exists(value, lambda x: _surely(self._changed(x, dtype.elementType)))
        if isinstance(dtype, MapType):
            return F.exists(F.map_values(value), lambda x: _surely(self._changed(x, dtype.valueType)))
        if isinstance(dtype, StructType):
            fields = [f for f in dtype if self._texts(f.dataType)]
            return _any([self._changed(value.getField(f.name), f.dataType) for f in fields])
        return F.lit(False)

    def _leaf(self, dtype: DataType) -> Changed | None:
        if isinstance(dtype, DecimalType):
            scale = dtype.scale
            # Elsewhere the point is a comma, and the comma a point.
            american = self._options.get("locale", "en-US").lower() == "en-us"
            return (lambda text: _too_fine(text, scale)) if american else None
        if isinstance(dtype, ByteType):
            return _wraps if self._format == "json" else None
        if isinstance(dtype, FloatType | DoubleType):
            return lambda text: _out_of_range(text, dtype)
        if isinstance(dtype, DateType):
            return None if "dateformat" in self._options else lambda text: text.rlike(DAY_WITH_TIME)
        if isinstance(dtype, TimestampType | TimestampNTZType):
            name = "timestampformat" if isinstance(dtype, TimestampType) else "timestampntzformat"
            return None if name in self._options else lambda text: text.rlike(FINER_THAN_MICROSECONDS)
        return None


def odd_fields(line: Column, schema: StructType, options: Mapping[str, str]) -> Column | None:
    """What is wrong with the fields inside of the values of a JSON object, given as a map from names to their texts.

    Spark leaves out a field that a struct lacks, and of one that is there twice takes the last. None where the table
    has no struct; NULL where nothing is wrong.
    """
    found = []
    for field in schema:
        text = F.try_element_at(line, F.lit(field.name))
        odd = _odd_inside(text, field.dataType, options)
        if odd is not None:
            found.append(_told(field, odd, text))
    return F.coalesce(*found) if found else None


def _odd_inside(text: Column, dtype: DataType, options: Mapping[str, str]) -> Column | None:
    """Whether a struct in a JSON value has a field that its type lacks, or one twice; None where there is no struct."""
    if not _has_struct(dtype):
        return None
    if isinstance(dtype, StructType):
        fields = F.from_json(text, _FIELDS, dict(options))
        names = F.map_keys(fields)
        odd = [F.exists(names, lambda name: ~name.isin(dtype.names)), F.size(F.array_distinct(names)) < F.size(names)]
        inside = (_odd_inside(F.try_element_at(fields, F.lit(f.name)), f.dataType, options) for f in dtype)
        return _any([*odd, *(found for found in inside if found is not None)])
    if isinstance(dtype, ArrayType):
        element, texts = dtype.elementType, F.from_json(text, _ELEMENTS, dict(options))
    elif isinstance(dtype, MapType):
        element, texts = dtype.valueType, F.map_values(F.from_json(text, _FIELDS, dict(options)))
    else:
        return None
    return F.exists(texts, lambda x: _surely(_odd_inside(x, element, options)))


def _has_struct(dtype: DataType) -> bool:
    if isinstance(dtype, ArrayType):
        return _has_struct(dtype.elementType)
    return _has_struct(dtype.valueType) if isinstance(dtype, MapType) else isinstance(dtype, StructType)


def _some_fields(struct: StructType, kind: Callable[[DataType], DataType | None]) -> StructType | None:
    fields = [StructField(f.name, found) for f in struct if (found := kind(f.dataType)) is not None]
    return StructType(fields) if fields else None


def _told(field: StructField, wrong: Column, value: Column) -> Column:
    said = f"column {field.name!r} is {field.dataType.simpleString()}, the file has "
    return F.when(wrong, F.concat(F.lit(said), F.substring(value.cast("string"), 1, 200)))


def _any(conditions: list[Column]) -> Column:
    return reduce(lambda a, b: a | b, (_surely(c) for c in conditions))


def _surely(condition: Column | None) -> Column:
    return F.lit(False) if condition is None else F.coalesce(condition, F.lit(False))


def _too_fine(text: Column, scale: int) -> Column:
    """Whether a decimal has digits, other than zeros, beyond a scale; a text that is no number is left to Spark."""
    number = F.regexp_replace(text, ",", "")  # as Spark does
    digits = F.regexp_replace(F.regexp_extract(number, NUMBER, 1), r"\.", "")
    behind = F.length(F.regexp_extract(number, NUMBER, 2))
    exponent = F.coalesce(F.regexp_extract(number, NUMBER, 3).try_cast("int"), F.lit(0))
    told = F.rtrim(digits, F.lit("0"))
    return (F.length(told) > 0) & (behind - (F.length(digits) - F.length(told)) - exponent > scale)


def _out_of_range(text: Column, dtype: DataType) -> Column:
    """Whether a number would become infinity, or zero without being it."""
    size = F.abs(text.try_cast(dtype))
    return text.rlike(NUMBER) & ((size == float("inf")) | ((size == 0) & text.rlike(NOT_ZERO)))


def _wraps(text: Column) -> Column:
    """Whether Spark's JSON reader takes a number for a TINYINT that is none: it asks for eight bits only."""
    return text.try_cast("int").between(128, 255)

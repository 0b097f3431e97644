"""What a table may be: its name, its columns and its key, checked before anything is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from pyspark.errors import PySparkException
from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StructType

from slackwater.capture.type_names import twin_field
from slackwater.errors import TableError

RESERVED = ("_w", "_n", "_d", "_file", "_pos", "_born", "_change_type", "_version", "_weight")


def table_schema(schema: str | StructType) -> StructType:
    """The columns that a DDL string or a Spark schema names; a string needs a running Spark."""
    if isinstance(schema, StructType):
        return schema
    if not isinstance(schema, str):
        raise TableError(
            "SCHEMA_INVALID",
            f"a {type(schema).__name__} is no schema",
            "give a DDL string, a StructType, a Spark, pandas or polars DataFrame, or an Arrow table",
        )
    try:
        return cast(StructType, StructType.fromDDL(schema))
    except PySparkException as error:
        raise TableError(
            "SCHEMA_INVALID",
            f"cannot read the schema: {str(error).splitlines()[0][:200]}",
            "write it as in CREATE TABLE: id BIGINT, name STRING, amount DECIMAL(12,2)",
        ) from error


def check_table_name(name: str) -> None:
    """Refuse a name that a table cannot have."""
    if isinstance(name, str) and name.casefold().startswith("sw@"):
        raise TableError("NAME_INVALID", f"{name!r} starts like a name of our own", "start it with something else")
    if not isinstance(name, str) or not name.strip() or len(name) > 255 or any(ord(c) < 32 for c in name):
        raise TableError("NAME_INVALID", f"{name!r} cannot name a table", "use 1 to 255 printable characters")


def check_table(name: str, schema: StructType, key: Sequence[str]) -> None:
    """Refuse names, types and keys that a table cannot have."""
    check_table_name(name)
    names = [f.name for f in schema]
    if not names:
        raise TableError("SCHEMA_INVALID", "a table needs a column", "name at least one column")
    lowered = [c.casefold() for c in names]
    for column in names:
        if lowered.count(column.casefold()) > 1:
            raise TableError(
                "SCHEMA_INVALID", f"the column {column!r} is there twice", "columns differ in more than case"
            )
        if column.casefold() in RESERVED or column.startswith("_metadata"):
            raise TableError(
                "COLUMN_RESERVED", f"{column!r} is a name that changes use", "call the column something else"
            )
        if not column.strip() or any(ord(c) < 32 for c in column):
            raise TableError("NAME_INVALID", f"{column!r} cannot name a column", "use printable characters")
    for field in schema:
        if _has_void(field.dataType):
            raise TableError(
                "TYPE_UNSUPPORTED", f"column {field.name!r} has no type", "give it one, for example STRING"
            )
        if twin := twin_field(field.dataType):
            raise TableError(
                "SCHEMA_INVALID",
                f"a struct in column {field.name!r} has the field {twin!r} twice",
                "give its fields names that differ in more than case",
            )
    unknown = [k for k in key if k not in names]
    if unknown or isinstance(key, str) or len(set(key)) != len(key):
        raise TableError(
            "KEY_UNKNOWN", f"the key {list(key)!r} does not name columns of {name!r}", f"choose from {', '.join(names)}"
        )
    for k in key:
        if isinstance(schema[names.index(k)].dataType, MapType | ArrayType | StructType):
            raise TableError(
                "TYPE_UNSUPPORTED",
                f"{k!r} cannot be a key: it is {schema[names.index(k)].dataType.simpleString()}",
                "choose columns of plain types",
            )


def _has_void(dtype: DataType) -> bool:
    if isinstance(dtype, NullType):
        return True
    if isinstance(dtype, ArrayType):
        return _has_void(dtype.elementType)
    if isinstance(dtype, MapType):
        return _has_void(dtype.keyType) or _has_void(dtype.valueType)
    return isinstance(dtype, StructType) and any(_has_void(f.dataType) for f in dtype)

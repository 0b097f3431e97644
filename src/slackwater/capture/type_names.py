"""The names of Spark's types, as SQL reads them.

`DataType.simpleString` writes the fields of a struct as they are called: `struct<a b:int>` is a type that Spark's own
parser does not read. Here such names are quoted; all others look as Spark writes them.
"""

from __future__ import annotations

import re

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from slackwater.algebra.expressions import quote

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def type_text(dtype: DataType) -> str:
    """The name of a type, which `CAST(… AS …)` and a schema's DDL take.

    >>> from pyspark.sql.types import StructType
    >>> type_text(StructType().add("a b", "int").add("c", "string"))
    'struct<`a b`:int,c:string>'
    """
    if isinstance(dtype, StructType):
        return f"struct<{','.join(f'{_field(f.name)}:{type_text(f.dataType)}' for f in dtype)}>"
    if isinstance(dtype, ArrayType):
        return f"array<{type_text(dtype.elementType)}>"
    if isinstance(dtype, MapType):
        return f"map<{type_text(dtype.keyType)},{type_text(dtype.valueType)}>"
    return str(dtype.simpleString())


def twin_field(dtype: DataType) -> str:
    """A field that some struct in a type has twice, in whatever case, which no file can hold; empty if there is none.

    >>> from pyspark.sql.types import ArrayType, StructType
    >>> twin_field(ArrayType(StructType().add("a", "int").add("A", "int")))
    'A'
    """
    if isinstance(dtype, ArrayType):
        return twin_field(dtype.elementType)
    if isinstance(dtype, MapType):
        return twin_field(dtype.keyType) or twin_field(dtype.valueType)
    if not isinstance(dtype, StructType):
        return ""
    seen: set[str] = set()
    for f in dtype:
        if f.name.casefold() in seen:
            return str(f.name)
        seen.add(f.name.casefold())
    return next(filter(None, (twin_field(f.dataType) for f in dtype)), "")


def _field(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else quote(name)

"""Rows that are grouped by value, told apart as an update tells them apart."""

from __future__ import annotations

from slackwater.algebra.aggregates import has_floats, is_float
from slackwater.algebra.expressions import quote
from slackwater.algebra.nodes import Schema


def told_apart(fields: Schema, *, loose: bool = False) -> tuple[list[str], list[str]]:
    """The columns of grouped rows, and what they are grouped by.

    Floating-point columns are grouped by their text, because GROUP BY alone would turn -0.0 into 0.0; where such
    numbers are inside of an array or a struct, by value and text, because the text alone could be that of another
    value. Strings with a collation are grouped by their bytes, unless rows are to be `loose`: "Ann" and "ann" may be
    equal, but an update is an update.
    """
    columns, keys = [], []
    for f in fields:
        name = quote(f.name)
        if is_float(f.dtype):
            columns.append(f"ANY_VALUE({name}) AS {name}")
            keys.append(f"CAST({name} AS STRING)")
        elif has_floats(f.dtype) and "map<" not in f.dtype:
            columns.append(f"ANY_VALUE({name}) AS {name}")
            keys += [name, f"CAST({name} AS STRING)"]
        elif f.dtype.startswith("string collate ") and not loose:
            columns.append(f"ANY_VALUE({name}) AS {name}")
            keys.append(f"({name} COLLATE UTF8_BINARY)")
        else:
            columns.append(name)
            keys.append(name)
    return columns, keys

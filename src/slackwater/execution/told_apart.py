"""Rows that are grouped by value, told apart as an update tells them apart."""

from __future__ import annotations

import re
from functools import lru_cache

from sqlglot import exp

from slackwater.algebra.aggregates import has_floats, is_float
from slackwater.algebra.expressions import quote, string_text
from slackwater.algebra.nodes import Schema

_SORTLESS = re.compile(r"\b(variant|void|geometry|geography|interval(?! (year|month|day|hour|minute|second)))")


def told_apart(fields: Schema, *, loose: bool = False) -> tuple[list[str], list[str]]:
    """The columns of grouped rows, and what they are grouped by.

    Floating-point columns are grouped by their text, because GROUP BY alone would turn -0.0 into 0.0; where such
    numbers are inside of an array or a struct, by value and text, because the text alone could be that of another
    value. Strings with a collation are grouped by their bytes, unless rows are to be `loose`: "Ann" and "ann" may be
    equal, but an update is an update. Maps are grouped by their entries: where Spark puts a map in order itself, the
    code that it generates reads 0, or the number before, for a number that is NULL (Spark 4.2).
    """
    columns, keys = [], []
    for f in fields:
        name = quote(f.name)
        value = _by_entries(name, f.dtype) if "map<" in f.dtype else name
        if is_float(f.dtype):
            columns.append(f"ANY_VALUE({name}) AS {name}")
            keys.append(f"CAST({name} AS STRING)")
        elif has_floats(f.dtype) and (value != name or "map<" not in f.dtype):
            columns.append(f"ANY_VALUE({name}) AS {name}")
            keys += [value, f"CAST({value} AS STRING)"]
        elif f.dtype.startswith("string collate ") and not loose:
            columns.append(f"ANY_VALUE({name}) AS {name}")
            keys.append(f"({name} COLLATE UTF8_BINARY)")
        elif value != name:
            columns.append(f"ANY_VALUE({name}) AS {name}")
            keys.append(value)
        else:
            columns.append(name)
            keys.append(name)
    return columns, keys


@lru_cache(512)
def _by_entries(text: str, dtype: str) -> str:
    """A value with its maps, however deep, as arrays of their entries in order; itself where these have no order."""
    return text if _SORTLESS.search(dtype) else _entries(text, exp.DataType.build(dtype, dialect="spark"), 0)


def _entries(text: str, kind: exp.DataType, depth: int) -> str:
    if not _has_map(kind):
        return text
    each = f"x{depth}"
    if kind.is_type("map"):
        _, of_value = kind.expressions
        entries = f"MAP_ENTRIES({text})"
        if not _has_map(of_value):  # a key has none
            return f"SORT_ARRAY({entries})"
        value = _entries(f"{each}['value']", of_value, depth + 1)
        pair = f"NAMED_STRUCT('key', {each}['key'], 'value', {value})"
        return f"SORT_ARRAY(TRANSFORM({entries}, {each} -> {pair}))"
    if kind.is_type("array"):
        (item,) = kind.expressions
        return f"TRANSFORM({text}, {each} -> {_entries(each, item, depth + 1)})"
    named = [(field.name, field.args["kind"]) for field in kind.expressions]
    fields = [f"{string_text(name)}, {_entries(f'{text}[{string_text(name)}]', k, depth)}" for name, k in named]
    return f"IF({text} IS NULL, NULL, NAMED_STRUCT({', '.join(fields)}))"


def _has_map(kind: exp.DataType) -> bool:
    return any(inside.is_type("map") for inside in kind.find_all(exp.DataType))

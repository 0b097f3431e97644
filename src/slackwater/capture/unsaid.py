"""What Spark's JSON does not say of single expressions, noted beside them from the plan itself.

* `try_cast(x AS INT)` looks like `CAST(x AS INT)`, `try_add(x, y)` like `x + y`: noted as `lenient`;
* `x LIKE y ESCAPE '!'` looks like `x LIKE y`: its character is noted as `escape`;
* a constant that is binary, an array, a map or a struct has no value that can be read: its SQL is noted as `sql`.

To look at an expression is to call the JVM, so nothing is done for a query without any of these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import ArrayType, DataType, MapType, StructType, _parse_datatype_json_value

from slackwater.capture.hidden import java_nodes, java_seq
from slackwater.capture.trees import Unsupported, class_names

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

LENIENT = {"Cast": "try_cast", "Add": "try_add", "Subtract": "try_subtract", "Multiply": "try_multiply",
           "Divide": "try_divide", "Remainder": "try_mod", "ElementAt": "try_element_at"}  # fmt: skip
"""Spark's classes that can be lenient, and how each is then written."""

_CALLED = re.compile(r"\b(try_(?!(?:sum|avg)\()\w+)\(", re.IGNORECASE)
_OWN_ESCAPE = re.compile(r" ESCAPE '")
_SPELLED = re.compile(r"boolean|(tiny|small|big)?int|float|double|string|date|binary|decimal\(\d+,\d+\)")
"""Types whose constants Spark prints as SQL that means the same under any settings."""


def note_unsaid(optimized: list[dict[str, Any]], plan: JavaObject, analyzed: str) -> None:
    """Note what is missing; refuses what cannot be noted."""
    called = {name.lower() for name in _CALLED.findall(analyzed)}
    if others := sorted(called - set(LENIENT.values())):
        raise Unsupported("EXPRESSION_UNSUPPORTED", others[0], "lenient functions of this kind are not incremental yet")
    constants = any(name == "Literal" and _is_composed(item) for name, item in class_names(optimized))
    if called or constants or _OWN_ESCAPE.search(analyzed):
        _note_plan(optimized, plan)


def _note_plan(items: list[dict[str, Any]], plan: JavaObject) -> None:
    for item, node in zip(items, java_nodes(plan), strict=True):
        said, meant = list(_expressions(list(item.values()))), java_seq(node.expressions())
        if len(said) != len(meant):
            raise Unsupported("EXPRESSION_UNSUPPORTED", str(item["class"]).rsplit(".", 1)[-1],
                              "what Spark does not tell of its expressions cannot be found out")  # fmt: skip
        for parts, expr in zip(said, meant, strict=True):
            for part, one in zip(parts, _prefix(expr), strict=True):
                _note(part, one)


def _expressions(value: list[Any]) -> Iterator[list[dict[str, Any]]]:
    """The expressions among an operator's properties, in order."""
    if value and all(isinstance(x, dict) and "class" in x for x in value):
        yield value
        return
    for item in value:
        if isinstance(item, list):
            yield from _expressions(item)


def _prefix(expr: JavaObject) -> Iterator[JavaObject]:
    yield expr
    for child in java_seq(expr.children()):
        yield from _prefix(child)


def _note(part: dict[str, Any], expr: JavaObject) -> None:
    name = str(part["class"]).rsplit(".", 1)[-1]
    if name == "ElementAt":
        part["lenient"] = not expr.failOnError()
    elif name in LENIENT:
        part["lenient"] = str(expr.evalMode().toString()) == "TRY"
    elif name == "Like":
        part["escape"] = str(expr.escapeChar())
    elif name == "Literal" and _is_composed(part) and has_spelling(_parse_datatype_json_value(part["dataType"])):
        part["sql"] = str(expr.sql())
    elif isinstance(part.get("plan"), list):
        _note_plan(part["plan"], expr.plan())


def _is_composed(literal: dict[str, Any]) -> bool:
    """Whether a constant is there whose value Spark's JSON garbles."""
    dtype = literal.get("dataType")
    return literal.get("value") is not None and (dtype == "binary" or isinstance(dtype, dict))


def has_spelling(dtype: DataType) -> bool:
    """Whether Spark prints constants of a type as SQL that means the same anywhere."""
    if isinstance(dtype, ArrayType):
        return has_spelling(dtype.elementType)
    if isinstance(dtype, MapType):
        return has_spelling(dtype.keyType) and has_spelling(dtype.valueType)
    if isinstance(dtype, StructType):
        return all(has_spelling(f.dataType) for f in dtype)
    return _SPELLED.fullmatch(dtype.simpleString()) is not None

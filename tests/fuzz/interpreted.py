"""What the interpreter says of a captured plan, where it knows every function in it."""

from __future__ import annotations

import dataclasses
import re
from datetime import date
from decimal import Decimal
from typing import Any

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import Expr
from slackwater.algebra.interpreter import Bag, Catalogue, evaluate
from slackwater.algebra.windows import WindowCall
from tests.fuzz.tables import Row, Story

_AGGREGATES = frozenset(("count", "sum", "min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor"))
_CALLS = frozenset((
    "col", "lit", "and", "or", "case", "if", "coalesce", "is_null", "is_not_null", "<=>", "in", "array", "not", "neg",
    "+", "-", "*", "=", "<", "<=", ">", ">=", "explode", "array_repeat",
))  # fmt: skip
_ODD = re.compile(r"collate|timestamp|interval|binary|struct<|map<")
"""Types that it compares in another way than Spark, or not at all."""

_UNKNOWN = object()


def interpreted(plan: n.Rel, story: Story, rounds: int) -> list[Row] | None:
    """The rows of a plan after some rounds; None where the interpreter cannot tell."""
    if not all(_known(value) for value in _parts(plan)):
        return None
    if any(_ODD.search(field.dtype) for node in plan.walk() for field in node.schema):
        return None
    tables = {(name, ""): Bag.of(rows) for name, rows in _hashable(story.rows(rounds)).items()}
    try:
        return evaluate(_with_values(plan), Catalogue(tables)).rows()
    except (TypeError, KeyError, IndexError, NotImplementedError):
        return None


def _parts(value: Any) -> list[Any]:
    """All the nodes, calls and expressions of a plan."""
    if isinstance(value, tuple):
        return [part for item in value for part in _parts(item)]
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return []
    below = [getattr(value, f.name) for f in dataclasses.fields(value)]
    return [value, *(part for item in below for part in _parts(item))]


def _known(value: Any) -> bool:
    if isinstance(value, AggCall):
        exact = not value.args or value.args[0].dtype in ("int", "bigint", "string", "date", "boolean")
        return value.func in _AGGREGATES and not value.form and exact
    if isinstance(value, WindowCall):
        return value.func not in ("avg",)
    if isinstance(value, Expr) and value.op == "cast":
        return value.dtype in ("int", "bigint")
    if isinstance(value, Expr):
        return value.op in _CALLS and (value.op != "lit" or _literal(value) is not _UNKNOWN)
    return not isinstance(value, n.Opaque)


def _literal(expr: Expr) -> Any:
    """The value that a constant's text stands for."""
    if expr.value is not None or re.fullmatch(r"NULL|CAST\(NULL AS .*\)", expr.text):
        return expr.value
    inner = re.fullmatch(r"CAST\('?([^']*?)'? AS .*\)", expr.text)
    text = inner[1] if inner else expr.text.strip("()")
    if expr.dtype in ("int", "bigint") and re.fullmatch(r"-?\d+L?", text):
        return int(text.rstrip("L"))
    if expr.dtype == "double":
        return float(text)
    if expr.dtype.startswith("decimal"):
        return Decimal(text)
    if expr.dtype == "boolean":
        return text.lower() == "true"
    if expr.dtype == "date":
        return date.fromisoformat(text.removeprefix("DATE '").rstrip("'"))
    if expr.dtype == "string" and re.fullmatch(r"'(?:[^'\\]|\\')*'", expr.text):
        return expr.text[1:-1].replace("\\'", "'")
    return _UNKNOWN


def _with_values(value: Any) -> Any:
    """The plan with a Python value in every constant: a stored plan has their text only."""
    if isinstance(value, tuple):
        return tuple(map(_with_values, value))
    if isinstance(value, Expr):
        held = _literal(value) if value.op == "lit" else value.value
        return Expr(value.op, tuple(map(_with_values, value.args)), value.text, value.dtype, held)
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    found = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
    return type(value)(**{name: _with_values(item) for name, item in found.items()})


def _hashable(tables: dict[str, list[Row]]) -> dict[str, list[Row]]:
    return {name: [tuple(tuple(v) if isinstance(v, list | dict) else v for v in row) for row in rows]
            for name, rows in tables.items()}  # fmt: skip

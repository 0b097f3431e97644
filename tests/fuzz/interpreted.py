"""What the interpreter says of a captured plan, where it knows every function in it."""

from __future__ import annotations

import dataclasses
import re
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
    "col", "lit", "and", "or", "case", "coalesce", "is_null", "is_not_null", "<=>", "in", "array", "not", "neg", "+",
    "-", "*", "=", "<", "<=", ">", ">=", "explode", "array_repeat",
))  # fmt: skip
_INTEGER = re.compile(r"\(?-?\d+L?\)?")
_UNKNOWN = object()


def interpreted(plan: n.Rel, story: Story, rounds: int) -> list[Row] | None:
    """The rows of a plan after some rounds; None where the interpreter cannot tell."""
    if not all(_known(value) for value in _parts(plan)):
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
    if isinstance(value, Expr):
        return value.op in _CALLS and (value.op != "lit" or _literal(value) is not _UNKNOWN)
    return not isinstance(value, n.Opaque)


def _literal(expr: Expr) -> Any:
    text = expr.text
    if expr.value is not None or text == "NULL" or re.fullmatch(r"CAST\(NULL AS .*\)", text):
        return expr.value
    if _INTEGER.fullmatch(text):
        return int(text.strip("()").rstrip("L"))
    if text in ("TRUE", "true", "FALSE", "false"):
        return text.lower() == "true"
    if re.fullmatch(r"'[^'\\]*'", text) and expr.dtype == "string":
        return text[1:-1]
    if re.fullmatch(r"-?\d+\.\d+BD", text):
        return Decimal(text[:-2])
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
    return {name: [tuple(tuple(v) if isinstance(v, list) else v for v in row) for row in rows]
            for name, rows in tables.items()}  # fmt: skip

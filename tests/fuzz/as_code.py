"""Cases as Python text: what the fuzzer prints when it finds something is a test that can be pasted."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from datetime import date, datetime, timedelta
from typing import Any

from slackwater.algebra.expressions import Expr, call, col, lit
from slackwater.algebra.interpreter import Bag

_PLAIN_NODES = ("Scan", "Filter", "Project", "Union", "Expand", "Join", "Aggregate", "TopK", "Field", "Item", "SortKey")


def code(value: Any) -> str:
    """A Python expression that makes the value again."""
    if isinstance(value, Expr):
        return _expression(value)
    if isinstance(value, Bag):
        return f"Bag({[(row, weight) for row, weight in value.items()]!r})".replace("nan", "math.nan")
    if isinstance(value, tuple):
        return f"({', '.join(map(code, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(map(code, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{code(k)}: {code(v)}" for k, v in value.items()) + "}"
    if isinstance(value, float) and math.isnan(value):
        return "math.nan"
    if isinstance(value, datetime | timedelta):
        return repr(value).replace("datetime.", "")
    if isinstance(value, date):
        return f"date({value.year}, {value.month}, {value.day})"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _made(value)
    return repr(value)


def _expression(expr: Expr) -> str:
    if expr.op == "col":
        return f"col({expr.value!r}, {expr.dtype!r})" if expr == col(str(expr.value), expr.dtype) else repr(expr)
    if expr.op == "lit":
        same = expr == lit(expr.value, dtype=expr.dtype)
        return f"lit({code(expr.value)}, {'' if same else repr(expr.text) + ', '}dtype={expr.dtype!r})"
    made = call(expr.op, *expr.args, dtype=expr.dtype)
    if made != expr:
        return repr(expr)
    return f"call({', '.join([repr(expr.op), *map(code, expr.args)])}, dtype={expr.dtype!r})"


def _made(value: Any) -> str:
    name = type(value).__name__
    given = []
    for field in dataclasses.fields(value):
        if not field.init:
            continue
        found = getattr(value, field.name)
        if field.default is not dataclasses.MISSING and found == field.default:
            continue
        if field.default_factory is not dataclasses.MISSING and found == field.default_factory():
            continue
        given.append(f"{field.name}={code(found)}")
    return f"{'n.' if name in _PLAIN_NODES else ''}{name}({', '.join(given)})"


def as_test(checker: str, case: Any, remark: str, fixture: str = "") -> str:
    """A test function that checks one case; `fixture` is what the checker wants first."""
    body = code(case)
    name = hashlib.sha256(body.encode()).hexdigest()[:8]
    remarks = "\n".join(f"    # {line}" for line in remark.splitlines())
    wants, given = (f"{fixture}: sw.Engine", f"{fixture}, ") if fixture else ("", "")
    return f"def test_found_{name}({wants}) -> None:\n{remarks}\n    {checker}({given}{body})\n"

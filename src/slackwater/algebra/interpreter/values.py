"""Values as Spark sees them: three-valued logic, NaN equal to itself and largest, -0.0 equal to 0.0."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from functools import cmp_to_key
from typing import Any

from slackwater.algebra.expressions import Expr

Row = tuple[Any, ...]


def grouping_key(value: Any) -> Any:
    """What GROUP BY, DISTINCT and joins compare: NaN is one value, and so are 0.0 and -0.0."""
    if isinstance(value, float):
        if math.isnan(value):
            return ("nan",)
        return value + 0.0 if value else 0.0
    return value


def identity(row: Row) -> tuple[Any, ...]:
    """What makes two rows the very same row: -0.0 and 0.0 differ here, inside of other values as well."""
    return tuple(_identity(v) for v in row)


def _identity(value: Any) -> Any:
    if isinstance(value, float):
        return repr(value), type(value).__name__
    return identity(value) if isinstance(value, tuple) else value


def grouped(value: Any) -> Any:
    """The value that a GROUP BY shows: -0.0 becomes 0.0."""
    return value + 0.0 if isinstance(value, float) and value == 0 else value


def compare(a: Any, b: Any) -> int:
    """Spark's order of two values that are not NULL."""
    a_nan, b_nan = (isinstance(v, float) and math.isnan(v) for v in (a, b))
    if a_nan or b_nan:
        return int(a_nan) - int(b_nan)
    return int(a > b) - int(a < b)


ordered = cmp_to_key(compare)


def evaluate_expr(expr: Expr, row: Mapping[str, Any]) -> Any:
    """The value of an expression for one row."""
    if expr.op == "col":
        return row[str(expr.value)]
    if expr.op == "lit":
        return expr.value
    if expr.op in ("and", "or"):
        return _logic(expr, row)
    if expr.op == "case":
        return _case(expr, row)
    if expr.op == "if":
        return evaluate_expr(expr.args[1 if evaluate_expr(expr.args[0], row) is True else 2], row)
    if expr.op == "coalesce":
        return next((v for v in (evaluate_expr(a, row) for a in expr.args) if v is not None), None)
    values = [evaluate_expr(arg, row) for arg in expr.args]
    if expr.op == "is_null":
        return values[0] is None
    if expr.op == "is_not_null":
        return values[0] is not None
    if expr.op == "<=>":
        if values[0] is None or values[1] is None:
            return values[0] is None and values[1] is None
        return compare(*values) == 0
    if expr.op == "in":
        return _contains(values[0], values[1:])
    if expr.op == "array":
        return values
    if any(v is None for v in values):
        return None
    if expr.op == "cast" and expr.dtype == "string":
        return str(values[0])
    if expr.op == "cast" and expr.dtype in ("int", "bigint") and isinstance(values[0], int):
        return int(values[0])
    if expr.op == "cast" and expr.dtype == "double" and isinstance(values[0], int | float):
        return float(values[0])
    return _strict(expr.op, values)


def _logic(expr: Expr, row: Mapping[str, Any]) -> bool | None:
    values = [evaluate_expr(arg, row) for arg in expr.args]
    decisive = expr.op == "or"
    if any(v is decisive for v in values):
        return decisive
    return None if any(v is None for v in values) else not decisive


def _case(expr: Expr, row: Mapping[str, Any]) -> Any:
    for i in range(0, len(expr.args) - 1, 2):
        if evaluate_expr(expr.args[i], row) is True:
            return evaluate_expr(expr.args[i + 1], row)
    return evaluate_expr(expr.args[-1], row) if len(expr.args) % 2 else None


def _contains(value: Any, options: list[Any]) -> bool | None:
    if value is None:
        return None
    if any(o is not None and compare(value, o) == 0 for o in options):
        return True
    return None if any(o is None for o in options) else False


def _strict(op: str, values: list[Any]) -> Any:
    a = values[0]
    if op == "not":
        return not a
    if op == "neg":
        return -a
    b = values[1]
    if op == "array_repeat":
        return [a] * b
    if op in ("+", "-", "*"):
        return {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b}[op]()
    if op == "/":
        return a / b if not isinstance(a, int) else Decimal(a) / b
    if op == "%":
        return math.fmod(a, b) if isinstance(a, float) else a - b * int(a / b)
    if op == "||":
        return a + b
    order = compare(a, b)
    return {"=": order == 0, "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[op]

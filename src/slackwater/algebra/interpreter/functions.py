"""Aggregate functions over plain bags, and the merging of their partial columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import reduce
from typing import Any

from slackwater.algebra.aggregates import AggCall, is_variance
from slackwater.algebra.interpreter.values import grouping_key, ordered
from slackwater.algebra.partials import MERGE


def _told_apart(value: Any) -> Any:
    """The order of values, with -0.0 before 0.0: they are equal, and Spark may give either."""
    return ordered(value), math.copysign(1.0, value) if isinstance(value, float) else 0.0


def aggregate(call: AggCall, values: list[Any], rows: int) -> Any:
    """The function's value over the input values; `rows` counts the rows of a `count(*)`."""
    if call.func == "count" and not call.args:
        return rows
    present = [v for v in values if v is not None]
    if call.distinct:
        present = list({grouping_key(v): v for v in present}.values())
    if call.func == "count":
        return len(present)
    if not present:
        return None
    if is_variance(call.func):
        return _variance(call.func, present)
    if call.func == "avg":
        return sum(present) / len(present)
    return _FOLDS[call.func](present)


def merge(function: str, values: Iterable[Any]) -> Any:
    """Combine one partial column over several partial rows."""
    present = [v for v in values if v is not None]
    if function == "first":
        return present[0] if present else None
    if function.startswith(MERGE):  # of a user-defined function: results in tuples
        return (merge(function.removeprefix(MERGE), (v for (v,) in present)),) if present else None
    return _FOLDS[function](present) if present else None


_FOLDS: dict[str, Callable[[list[Any]], Any]] = {
    "sum": sum,
    "min": lambda v: min(v, key=_told_apart),
    "max": lambda v: max(v, key=_told_apart),
    "bool_and": all,
    "bool_or": any,
    "bit_and": lambda v: reduce(lambda a, b: a & b, v),
    "bit_or": lambda v: reduce(lambda a, b: a | b, v),
    "bit_xor": lambda v: reduce(lambda a, b: a ^ b, v),
}


def _variance(func: str, values: list[Any]) -> float | None:
    exact = [Fraction(v) for v in values]
    mean = sum(exact) / len(exact)
    moment = sum((v - mean) ** 2 for v in exact)
    return finish_variance(func, float(moment), len(exact))


def finish_variance(func: str, moment: float, count: int) -> float | None:
    """Variance or deviation from the second central moment."""
    divisor = count if func.endswith("_pop") else count - 1
    if divisor <= 0:
        return None
    value = moment / divisor
    return math.sqrt(value) if func.startswith("stddev") else value

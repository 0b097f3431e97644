"""Aggregate functions and how their partial results combine.

Four classes, from the best to the least:

* **additive**: partials are sums, so inserts and deletes both merge (`count`, exact `sum` and `avg`, exact variance).
* **mergeable**: partials of inserts merge, a delete redoes the group (`min`, `max`, bit and boolean functions, and sums
  of FLOAT/DOUBLE, which would drift or turn into NaN if deletes were subtracted).
* **kept**: any change redoes the group, and the last results are kept, so that old rows can be taken back whatever they
  hold (user-defined aggregates, and groups with results that could not be computed again bit by bit, such as the
  correlation of two columns).
* **redo**: any change redoes the group on both versions (everything else).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

from slackwater.algebra.expressions import Expr


class Combine(IntEnum):
    """How an aggregate follows a change of its input; the larger, the more work."""

    ADDITIVE = 0
    MERGEABLE = 1
    KEPT = 2
    REDO = 3


@dataclass(frozen=True, slots=True)
class AggCall:
    """One aggregate function call with the name of its output column.

    Attributes:
        name: the output column.
        func: Spark's name of the function.
        args: its arguments.
        dtype: Spark's type of the result.
        distinct: only different arguments count.
        where: the condition of its FILTER.
        form: the spelling where it is not `func(args)`: the places of arguments are `{0}`, `{1}`, …, and `{filter}` is
            that of the FILTER, if it is not at the end.
        completed: Spark could give several answers; `form` or the arguments choose one.
        user: for a user-defined function "merge" where its results merge, else "kept"; empty for Spark's own.
    """

    name: str
    func: str
    args: tuple[Expr, ...]
    dtype: str
    distinct: bool = False
    where: Expr | None = None
    form: str = ""
    completed: bool = False
    user: str = ""

    @property
    def inputs(self) -> frozenset[str]:
        """The input columns the call reads."""
        exprs = self.args + ((self.where,) if self.where is not None else ())
        return frozenset().union(*(e.inputs for e in exprs)) if exprs else frozenset()

    @property
    def text(self) -> str:
        """The call as Spark SQL text."""
        where = f" FILTER (WHERE {self.where.text})" if self.where is not None else ""
        if self.form:
            text = self.form.format(*(a.text for a in self.args), filter=where)
            return text if "{filter}" in self.form else text + where
        inner = ", ".join(a.text for a in self.args) or "*"
        return f"{self.func}({'DISTINCT ' if self.distinct else ''}{inner}){where}"

    @property
    def combine(self) -> Combine:
        """The class of the call; see the module's text."""
        if self.distinct and self.func not in ("min", "max"):
            return Combine.REDO
        if self.user:
            merges = Combine.MERGEABLE if self.user == "merge" else Combine.KEPT
            return merges if self.comparable else Combine.REDO
        return _combine(self.func, self.args[0].dtype if self.args else "")

    @property
    def comparable(self) -> bool:
        """Whether an old and a new result can be compared, which Spark cannot do with maps."""
        return "map<" not in self.dtype and "variant" not in self.dtype

    @property
    def repeatable(self) -> bool:
        """Whether the same rows give the same bits again: floating-point results depend on the order of the rows."""
        if self.func in _PICKED and not any(map(has_floats, (a.dtype for a in self.args[:1]))):
            return True
        return not has_floats(self.dtype) or self.combine is Combine.ADDITIVE


@dataclass(frozen=True, slots=True)
class Decimal38:
    """The precision and scale of a decimal type."""

    precision: int
    scale: int


NEGATED_EXACTLY = 34
"""Spark rounds to so many digits when it negates a decimal. A delete of a longer number cannot be subtracted."""

_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_SMALL_INTS = ("tinyint", "smallint", "int")
_FLOATS = ("float", "double")
_VARIANCES = ("var_samp", "var_pop", "variance", "stddev", "stddev_samp", "stddev_pop")
_PICKED = ("percentile", "percentile_disc")
"""Functions that give a DOUBLE for exact values, computed from at most two of them."""
_MERGED_BY_THEMSELVES = ("min", "max", "bit_and", "bit_or", "bit_xor", "bool_and", "bool_or", "every", "any", "some")


def decimal_of(dtype: str) -> Decimal38 | None:
    """Read a decimal type's precision and scale; None for any other type."""
    match = _DECIMAL.fullmatch(dtype)
    return Decimal38(int(match[1]), int(match[2])) if match else None


def _combine(func: str, dtype: str) -> Combine:
    decimal = decimal_of(dtype)
    if func == "count":
        return Combine.ADDITIVE
    if func in _MERGED_BY_THEMSELVES:
        return Combine.MERGEABLE
    if func == "sum":
        if dtype in _SMALL_INTS or dtype == "bigint" or decimal or is_interval(dtype):
            return Combine.ADDITIVE
        return Combine.MERGEABLE if dtype in _FLOATS else Combine.REDO
    if func == "avg":
        if dtype in _SMALL_INTS or is_interval(dtype) or (decimal and average_is_exact(decimal)):
            return Combine.ADDITIVE
        return Combine.MERGEABLE if dtype in _FLOATS else Combine.REDO
    if func in _VARIANCES and (dtype in _SMALL_INTS or (decimal and decimal.precision <= 14 and decimal.scale <= 3)):
        return Combine.ADDITIVE
    return Combine.REDO


def average_is_exact(decimal: Decimal38) -> bool:
    """Whether `sum / count` at the scale of Spark's division, then rounded, is always what `avg` returns.

    Spark's avg rounds the exact quotient once. Ours rounds at the division's scale first; that cannot change the
    answer while the division keeps eight digits more than the result (for groups of fewer than 10^8 / 2 rows).
    """
    sum_precision = decimal.precision + 10
    if sum_precision > 38:
        return False
    integral = sum_precision - decimal.scale
    scale = max(6, decimal.scale + 21)
    if integral + scale > 38:
        scale = max(38 - integral, min(scale, 6))
    return scale - (decimal.scale + 4) >= 8


def is_float(dtype: str) -> bool:
    """Whether values of the type are floating-point numbers."""
    return dtype in _FLOATS


def is_interval(dtype: str) -> bool:
    """Whether values of the type are months, or microseconds: whole numbers, whose sums raise where they overflow."""
    return dtype.startswith("interval ")


def is_collated(dtype: str) -> bool:
    """Whether values of the type are strings with a collation, or have some inside: equal ones may differ."""
    return "string collate " in dtype


def has_floats(dtype: str) -> bool:
    """Whether values of the type are or contain floating-point numbers."""
    return bool(re.search(r"\b(float|double)\b", dtype))


def is_variance(func: str) -> bool:
    """Whether the function is of the variance family."""
    return func in _VARIANCES

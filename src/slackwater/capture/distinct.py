"""Rewrite: one DISTINCT argument becomes an aggregate over an aggregate, so that it merges like any other.

before:  γ[g; count(DISTINCT x), sum(y), avg(y)](R)
after:   π[g, count, sum, sum / rows](γ[g; count(x), sum(s), sum(n)](γ[g, x; sum(y) AS s, count(y) AS n](R)))

Precondition: all DISTINCT calls have the same single argument and no FILTER, and every other call is one of
count, sum, min, max, none with a floating-point result, or an average that is exactly its sum by its count.
Counter-example without it: `avg(y)` of averages per x is not the average of y.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall, Combine, decimal_of, has_floats, is_interval
from slackwater.algebra.expressions import Expr, call, col, lit

_MERGED_WITH = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}


def split_distinct(node: n.Rel) -> n.Rel | None:
    """Split a DISTINCT aggregate in two; None where it does not apply."""
    if not isinstance(node, n.Aggregate) or not any(a.distinct for a in node.aggs) or any(a.form for a in node.aggs):
        return None
    taken = set(node.names) | set(node.child.names)
    averages = _Averages.of(node, taken)
    distinct = [a for a in averages.calls if a.distinct]
    others = [a for a in averages.calls if not a.distinct]
    if len({a.args for a in distinct}) != 1 or len(distinct[0].args) != 1:
        return None
    if any(a.where is not None for a in distinct) or any(a.func not in _MERGED_WITH for a in others):
        return None
    if any(has_floats(a.dtype) for a in others):
        return None  # what cannot be computed again bit by bit must not be what another aggregate reads
    argument = distinct[0].args[0]
    inner_key = free_name(f"{distinct[0].name}_value", taken)
    partials = {a.name: free_name(f"{a.name}_part", taken) for a in others}
    inner = n.Aggregate(
        node.child,
        (*node.groups, n.Item(inner_key, argument)),
        tuple(AggCall(partials[a.name], a.func, a.args, a.dtype, where=a.where, completed=a.completed) for a in others),
    )
    outer_calls, values = [], {}
    for agg in averages.calls:
        if agg.distinct:
            outer_calls.append(AggCall(agg.name, agg.func, (col(inner_key, argument.dtype),), agg.dtype))
            values[agg.name] = col(agg.name, agg.dtype)
        else:
            part = col(partials[agg.name], agg.dtype)
            outer_calls.append(AggCall(agg.name, _MERGED_WITH[agg.func], (part,), _merged_type(agg)))
            values[agg.name] = _same_type(agg)
    keys = tuple(n.Item(g.name, col(g.name, g.expr.dtype)) for g in node.groups)
    outer = n.Aggregate(inner, keys, tuple(outer_calls))
    items = (n.Item(a.name, averages.value(a, values)) for a in node.aggs)
    return n.Project(outer, (*keys, *items))


@dataclass(frozen=True, slots=True)
class _Averages:
    """The calls of an aggregate with a sum and a count in the place of each average that is exactly their quotient.

    Attributes:
        calls: the calls; a sum or a count that is there already serves the average as well.
        parts: the names of the sum and the count of each average.
    """

    calls: tuple[AggCall, ...]
    parts: dict[str, tuple[str, str]]

    @classmethod
    def of(cls, node: n.Aggregate, taken: set[str]) -> _Averages:
        split = [a for a in node.aggs if a.func == "avg" and not a.distinct and a.combine is Combine.ADDITIVE]
        calls = [a for a in node.aggs if a not in split]
        names = {a.text: a.name for a in calls}
        parts = {}
        for agg in split:
            total, rows = replace(agg, func="sum", dtype=_total_type(agg)), replace(agg, func="count", dtype="bigint")
            for part, word in ((total, "total"), (rows, "rows")):
                if part.text not in names:
                    names[part.text] = free_name(f"{agg.name}_{word}", taken)
                    calls.append(replace(part, name=names[part.text]))
            parts[agg.name] = (names[total.text], names[rows.text])
        return cls(tuple(calls), parts)

    def value(self, agg: AggCall, values: dict[str, Expr]) -> Expr:
        """What a call of the aggregate is, by what its parts are."""
        if agg.name not in self.parts:
            return values[agg.name]
        total, rows = (values[name] for name in self.parts[agg.name])
        return call("if", call(">", rows, lit(0, "0L", "bigint"), dtype="boolean"), _quotient(agg, total, rows),
                    lit(None, f"CAST(NULL AS {agg.dtype.upper()})", agg.dtype), dtype=agg.dtype)  # fmt: skip


def _total_type(agg: AggCall) -> str:
    """The type of the sum that an average divides."""
    decimal = decimal_of(agg.args[0].dtype)
    if is_interval(agg.args[0].dtype):
        return agg.args[0].dtype
    return f"decimal({decimal.precision + 10},{decimal.scale})" if decimal else "bigint"


def _quotient(agg: AggCall, total: Expr, rows: Expr) -> Expr:
    """The same division as where partial rows are finished; see `average_is_exact`."""
    if is_interval(agg.args[0].dtype):
        return call("cast", call("/", total, rows), dtype=agg.dtype)
    if decimal_of(agg.args[0].dtype) is None:
        return call("/", call("cast", total, dtype="double"), call("cast", rows, dtype="double"), dtype=agg.dtype)
    return call("cast", call("/", total, call("cast", rows, dtype="decimal(20,0)")), dtype=agg.dtype)


def _merged_type(agg: AggCall) -> str:
    """The type of a sum of sums: Spark widens decimals once more."""
    decimal = decimal_of(agg.dtype)
    if agg.func == "sum" and decimal is not None:
        return f"decimal({min(38, decimal.precision + 10)},{decimal.scale})"
    return agg.dtype


def _same_type(agg: AggCall) -> Expr:
    """The merged value in the type of the original call; a count of nothing is 0, not NULL."""
    value = col(agg.name, _merged_type(agg))
    if agg.func == "count":
        return call("coalesce", value, lit(0, "0L", "bigint"), dtype="bigint")
    if agg.func == "sum":
        return Expr("cast", (value,), f"CAST({value.text} AS {agg.dtype})", agg.dtype)
    return value


def free_name(wish: str, taken: set[str]) -> str:
    """A name like the one wished for that is not taken; it is now."""
    name, count = wish, 1
    while name in taken:
        count += 1
        name = f"{wish}_{count}"
    taken.add(name)
    return name

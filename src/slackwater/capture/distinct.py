"""Rewrite: one DISTINCT argument becomes an aggregate over an aggregate, so that it merges like any other.

before:  γ[g; count(DISTINCT x), sum(y)](R)
after:   π[g, count, sum](γ[g; count(x), sum(s)](γ[g, x; sum(y) AS s](R)))

Precondition: all DISTINCT calls have the same single argument and no FILTER, and every other call is one of
count, sum, min, max, none with a floating-point result. Counter-example without it: `avg(y)` of averages per x is not
the average of y.
"""

from __future__ import annotations

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall, decimal_of, has_floats
from slackwater.algebra.expressions import Expr, call, col, lit

_MERGED_WITH = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}


def split_distinct(node: n.Rel) -> n.Rel | None:
    """Split a DISTINCT aggregate in two; None where it does not apply."""
    if not isinstance(node, n.Aggregate):
        return None
    distinct = [a for a in node.aggs if a.distinct]
    others = [a for a in node.aggs if not a.distinct]
    if not distinct or len({a.args for a in distinct}) != 1 or len(distinct[0].args) != 1:
        return None
    if any(a.where is not None for a in distinct) or any(a.func not in _MERGED_WITH for a in others):
        return None
    if any(a.form for a in node.aggs):
        return None
    if any(has_floats(a.dtype) for a in others):
        return None  # what cannot be computed again bit by bit must not be what another aggregate reads
    argument = distinct[0].args[0]
    taken = set(node.names) | set(node.child.names)
    inner_key = free_name(f"{distinct[0].name}_value", taken)
    partials = {a.name: free_name(f"{a.name}_part", taken) for a in others}
    inner = n.Aggregate(
        node.child,
        (*node.groups, n.Item(inner_key, argument)),
        tuple(AggCall(partials[a.name], a.func, a.args, a.dtype, where=a.where, completed=a.completed) for a in others),
    )
    outer_calls, items = [], [n.Item(g.name, col(g.name, g.expr.dtype)) for g in node.groups]
    for agg in node.aggs:
        if agg.distinct:
            outer_calls.append(AggCall(agg.name, agg.func, (col(inner_key, argument.dtype),), agg.dtype))
            items.append(n.Item(agg.name, col(agg.name, agg.dtype)))
        else:
            part = col(partials[agg.name], agg.dtype)
            outer_calls.append(AggCall(agg.name, _MERGED_WITH[agg.func], (part,), _merged_type(agg)))
            items.append(n.Item(agg.name, _same_type(agg)))
    outer = n.Aggregate(
        inner, tuple(n.Item(g.name, col(g.name, g.expr.dtype)) for g in node.groups), tuple(outer_calls)
    )
    return n.Project(outer, tuple(items))


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

"""Rewrite: strings with a collation may be equal without being the same, so a group of them gets one defined text.

before:  γ[g; count(*)](R)                                        -- g STRING COLLATE UTF8_LCASE
after:   π[rep COLLATE UTF8_LCASE AS g, count](γ[g AS k; count(*), min(g COLLATE UTF8_BINARY) AS rep](R))

before:  min(x)
after:   min(struct(x, x COLLATE UTF8_BINARY)).x                  -- among equal strings the smallest by its bytes

Filters, projections, joins and windows need nothing: Spark compares by the collation wherever a key is looked up.
Precondition: the collation is that of a column, not of a part of one, and no other aggregate function reads it; groups
have no user-defined aggregate, because Spark computes no function of its own beside one.
Counter-example to leaving groups alone: "Ann" and "ann" are one group, which is called "Ann" or "ann", as it comes; a
refresh that takes the old row away by the other name takes away nothing.
"""

from __future__ import annotations

from dataclasses import replace

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall, is_collated
from slackwater.algebra.expressions import Expr, call, col, field_text, lit
from slackwater.capture.distinct import free_name
from slackwater.capture.trees import Unsupported

_TYPE = "string collate "
_ORDER, _TEXT = "o", "v"


def collation_of(dtype: str) -> str:
    """The collation's name; refuses a type that has it inside."""
    if not dtype.startswith(_TYPE):
        raise Unsupported("EXPRESSION_UNSUPPORTED", "collation", f"values of {dtype} may be equal without being alike")
    return dtype.removeprefix(_TYPE)


def check_collations(rel: n.Rel) -> None:
    """Refuse values that have strings with a collation inside: their texts cannot be told apart by a query."""
    for node in rel.walk():
        for field in node.schema:
            if is_collated(field.dtype):
                collation_of(field.dtype)


def with_collation(text: Expr, dtype: str) -> Expr:
    """A string under the collation of a type."""
    return Expr("collate", (text,), f"({text.text} COLLATE {collation_of(dtype)})", dtype)


def by_bytes(text: Expr) -> Expr:
    """A string without its collation."""
    return Expr("collate", (text,), f"({text.text} COLLATE UTF8_BINARY)", "string")


def settle_collations(node: n.Rel) -> n.Rel | None:
    """Give the groups of one aggregate, its minima and maxima, one defined text; None where nothing was open."""
    if not isinstance(node, n.Aggregate):
        return None
    open_groups = [g for g in node.groups if is_collated(g.expr.dtype)]
    open_calls = [a for a in node.aggs if any(is_collated(arg.dtype) for arg in a.args) and not _counts(a)]
    if not open_groups and not open_calls:
        return None
    taken = set(node.names) | set(node.child.names)
    aggs, items = {a.name: a for a in node.aggs}, {f.name: col(f.name, f.dtype) for f in node.schema}
    for made in open_calls:
        if made.func not in ("min", "max") or made.distinct or made.form:
            reason = f"among strings that {collation_of(made.args[0].dtype)} takes for equal any may be the answer"
            raise Unsupported("EXPRESSION_UNSUPPORTED", made.func, reason)
        both = _with_bytes(made.args[0])
        aggs[made.name] = replace(made, args=(both,), dtype=both.dtype, completed=True)
        column = col(made.name, both.dtype)
        items[made.name] = Expr("GetStructField", (column,), field_text(column, _ORDER), made.dtype)
    for group in open_groups:
        collation = collation_of(group.expr.dtype)
        if own := next((a.func for a in node.aggs if a.user), ""):
            reason = (
                f"a group of strings that {collation} takes for equal is named by min, which Spark refuses beside it"
            )
            raise Unsupported("EXPRESSION_UNSUPPORTED", own, reason)
        name = free_name(f"{group.name}_text", taken)
        aggs[name] = AggCall(name, "min", (by_bytes(group.expr),), "string", completed=True)
        items[group.name] = with_collation(col(name, "string"), group.expr.dtype)
    aggregate = n.Aggregate(node.child, node.groups, tuple(aggs.values()))
    return n.Project(aggregate, tuple(n.Item(f.name, items[f.name]) for f in node.schema))


def _counts(made: AggCall) -> bool:
    """Whether the answer is a number that depends on what is equal, not on how it is written."""
    return made.func == "count"


def _with_bytes(value: Expr) -> Expr:
    """The value and its bytes, to be compared in this order; NULL where it is NULL."""
    collation_of(value.dtype)
    dtype = f"struct<{_ORDER}:{value.dtype},{_TEXT}:string>"
    both = call("named_struct", lit(_ORDER), value, lit(_TEXT), by_bytes(value), dtype=dtype)
    return call("if", call("is_null", value, dtype="boolean"), lit(None), both, dtype=dtype)

"""Values that cannot be told apart or stored: VARIANT, by which Spark does not group, and calendar intervals.

A result is kept as rows added and taken away, and whoever reads it groups by all its columns; so is a state. So no
output may have such a column. Inside of a query they may pass through whatever treats each row by itself.

before:  γ[g; sum(variant_get(v, '$.a', 'int'))](R)
after:   γ[g; sum(x)](π[g, variant_get(v, '$.a', 'int') AS x](R))

Precondition: the functions read parts of `v`, not `v` itself. Counter-example to doing so for each operator: a join may
ask for `v` above it, and its inputs are kept.
"""

from __future__ import annotations

import re
from dataclasses import replace

from pyspark.sql import DataFrame

from slackwater.algebra import nodes as n
from slackwater.algebra.expressions import Expr, col
from slackwater.algebra.relation import Linearity
from slackwater.capture.distinct import free_name
from slackwater.capture.trees import Unsupported
from slackwater.capture.type_names import type_text
from slackwater.errors import QueryRefused

_INDISTINCT = re.compile(r"(?<![\w`])(?:variant|interval)(?=[,>]|$)")
"""Such a type, or a type with one inside; a field may be called like one, and an interval of days is none."""


def indistinct(dtype: str) -> str:
    """VARIANT or INTERVAL where values of a type are such, or have such values inside; else empty.

    >>> indistinct("array<struct<a:variant>>"), indistinct("struct<variant:int>"), indistinct("interval day")
    ('VARIANT', '', '')
    """
    found = _INDISTINCT.search(dtype)
    return found[0].upper() if found else ""


def refuse_indistinct(frame: DataFrame) -> None:
    """Refuse a query that gives out values that cannot be told apart."""
    for field in frame.schema:
        kind = indistinct(type_text(field.dataType))
        if kind == "VARIANT":
            raise QueryRefused(
                "QUERY_UNSUPPORTED",
                f"the column {field.name!r} holds VARIANT values, by which Spark cannot group: a row that a change"
                " takes away would not be found",
                "convert the value with to_json, or take out what you need with variant_get",
            )
        if kind:
            raise QueryRefused(
                "QUERY_UNSUPPORTED",
                f"the column {field.name!r} holds calendar intervals, which Parquet cannot hold",
                "use an interval of days and seconds or of years and months (make_dt_interval, make_ym_interval), or"
                " cast it to STRING",
            )


def taken_below(node: n.Rel) -> n.Rel | None:
    """Take what an aggregate reads of such values out of them below it; None where it reads none."""
    if not isinstance(node, n.Aggregate) or not any(indistinct(f.dtype) for f in node.child.schema):
        return None
    hidden = {f.name for f in node.child.schema if indistinct(f.dtype)}
    taken, items = set(node.child.names) | set(node.names), dict[str, n.Item]()

    def below(expr: Expr) -> Expr:
        if not expr.inputs & hidden:
            return expr
        if expr.text not in items:
            items[expr.text] = n.Item(free_name("part", taken), expr)
        return col(items[expr.text].name, expr.dtype)

    groups = tuple(replace(g, expr=below(g.expr)) for g in node.groups)
    aggs = tuple(
        replace(a, args=tuple(map(below, a.args)), where=None if a.where is None else below(a.where)) for a in node.aggs
    )
    passed = n.pass_through(tuple(f for f in node.child.schema if f.name not in hidden))
    return n.Aggregate(n.Project(node.child, (*passed, *items.values())), groups, aggs)


def check_distinct(rel: n.Rel) -> None:
    """Refuse to follow rows with such values where more than each row by itself is looked at."""
    for node in rel.walk():
        if node.linearity in (Linearity.LINEAR, Linearity.LEAF):
            continue
        for field in (f for child in node.children for f in child.schema):
            if kind := indistinct(field.dtype):
                reason = f"rows with {kind} values cannot be told apart: convert {field.name} in a subquery"
                raise Unsupported("EXPRESSION_UNSUPPORTED", type(node).__name__, reason)

"""Filters against scalar subqueries as Spark SQL."""

from __future__ import annotations

from slackwater.algebra.expressions import Expr, quote
from slackwater.algebra.nodes import Rel

WEIGHT = "_w"


def scalar_filter(child: Rel, predicate: Expr, source: str, scalar: str) -> str:
    """The rows for which the predicate is true, given the one row of the scalar."""
    columns = _columns(child)
    return f"SELECT /*+ BROADCAST(s) */ {columns}\nFROM {source} AS c CROSS JOIN {scalar} AS s\nWHERE {predicate.text}"


def flip(child: Rel, predicate: Expr, source: str, old: str, new: str) -> str:
    """The rows that pass with one of the two scalars only; both have the same column names, so they come in turn."""
    columns = _columns(child)
    verdict = f"COALESCE({predicate.text}, FALSE)"
    was = f"SELECT /*+ BROADCAST(s) */ {columns}, {verdict} AS _was FROM {source} AS c CROSS JOIN {old} AS s"
    both = f"SELECT /*+ BROADCAST(s) */ {columns}, _was, {verdict} AS _is FROM ({was}) AS c CROSS JOIN {new} AS s"
    sign = f"IF(_is, 1, -1){f' * {WEIGHT}' if child.weighted else ''} AS {WEIGHT}"
    names = ", ".join([*(quote(name) for name in child.names), sign])
    return f"SELECT {names}\nFROM ({both})\nWHERE _was <> _is"


def _columns(child: Rel) -> str:
    names = [f"c.{quote(name)}" for name in child.names] + ([f"c.{WEIGHT}"] if child.weighted else [])
    return ", ".join(names) or "1 AS `_`"

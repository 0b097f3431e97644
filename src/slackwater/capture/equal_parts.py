"""Equal aggregates of one query, under one set of names.

A CTE that is read twice, a subquery that Spark pushes to both sides of a join: the optimized plan has them twice, alike
but for the names of their columns. The second becomes a renaming of the first. Both then have one key, so that their
change is computed once and their rows are kept once.

Only aggregates are looked for. Joins are put in order together with those around them, and a renaming in between would
stand in the way of that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import Expr, col, substitute
from slackwater.algebra.joins import MatchJoin, OuterJoin
from slackwater.algebra.nodes import Aggregate, Filter, Item, Join, Project, Rel, Scan, Union


def with_equal_parts_once(plan: Rel) -> Rel:
    """The plan with later aggregates that equal an earlier one in all but names replaced by renamings of it."""
    first: dict[str, Rel] = {}

    def visit(node: Rel) -> Rel:
        shape = _shape(node) if isinstance(node, Aggregate) else None
        if shape in first:
            return _renamed(first[shape], node)
        made = node.with_children(tuple(visit(child) for child in node.children)) if node.children else node
        if isinstance(made, Project) and made.child != node.children[0] and _renames(made.child):
            made = _through(made, made.child)
        if shape is not None:
            first[shape] = made
        return made

    return visit(plan)


def _renamed(known: Rel, node: Rel) -> Rel:
    if known.names == node.names:
        return known
    pairs = zip(node.schema, known.schema, strict=True)
    return Project(known, tuple(Item(mine.name, col(own.name, own.dtype)) for mine, own in pairs))


def _renames(node: Rel) -> TypeGuard[Project]:
    return isinstance(node, Project) and all(item.expr.column is not None for item in node.items)


def _through(above: Project, renaming: Project) -> Rel:
    """A projection of what was renamed, of what it was before: what stands above both parts is then equal as well."""
    before = {item.name: item.expr for item in renaming.items}
    try:
        return Project(renaming.child, tuple(Item(i.name, substitute(i.expr, before)) for i in above.items))
    except ValueError:
        return above


def _shape(node: Rel) -> str | None:
    """What a node computes, with columns by position in place of names; None for operators that are not followed."""
    if isinstance(node, Scan):
        return f"scan {node.table!r} {node.positions} {[f.dtype for f in node.fields]}"
    below = [_shape(child) for child in node.children]
    if not below or None in below:
        return None
    places = {
        name: col(f"#{i}.{j}") for i, child in enumerate(node.children) for j, name in enumerate(child.names)
    }  # fmt: skip
    try:
        own = _own_shape(node, places)
    except ValueError:  # an expression whose text cannot be taken apart
        return None
    return f"{own} [{'] ['.join(map(str, below))}]" if own else None


def _own_shape(node: Rel, places: Mapping[str, Expr]) -> str:
    def said(expr: Expr | None) -> tuple[str, str] | None:
        return (substitute(expr, places).text, expr.dtype) if expr is not None else None

    def called(agg: AggCall) -> tuple[object, ...]:
        args = tuple(map(said, agg.args))
        return (agg.func, args, agg.dtype, agg.distinct, said(agg.where), agg.form, agg.completed, agg.user)

    match node:
        case Filter():
            return f"filter {said(node.predicate)}"
        case Project():
            return f"project {[said(item.expr) for item in node.items]}"
        case Aggregate():
            return f"aggregate {[said(g.expr) for g in node.groups]} {[called(a) for a in node.aggs]}"
        case Union():
            return f"union {[f.dtype for f in node.fields]}"
        case Join():
            return f"join {said(node.condition)}"
        case MatchJoin() | OuterJoin():
            return f"{node.kind} join {said(node.condition)}"
    return ""

"""Rewrite: below an aggregate that does not see NULLs an outer join is a union.

before:  γ[l; count(r)](L ⟕ R)
after:   γ[l; count(r)]((L ⋈ R) ∪ π[L, NULLs](L))

Every row of L gives a row without a match, whether it has one or not: the functions do not see it, and it keeps the
group. Precondition: the groups read L alone, every argument is NULL where R's columns are, and L gives the same bits
when it is computed twice. Counter-examples: `count(*)` would count the rows of L that have a match once more; a sum of
floating-point numbers in L that differs in its last digit makes two groups of one.
"""

from __future__ import annotations

from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import Expr
from slackwater.algebra.joins import LEFT, RIGHT, OuterJoin
from slackwater.algebra.nodes import Aggregate, Item, Join, Project, Rel, Union, pass_through
from slackwater.delta.rules import repeatable

_BLIND = ("count", "sum", "avg", "min", "max", "var_samp", "var_pop", "stddev_samp", "stddev_pop", "bit_and", "bit_or",
          "bit_xor", "bool_and", "bool_or")  # fmt: skip
_STRICT = ("+", "-", "*", "neg", "cast")
"""Operators that give NULL where an argument is NULL."""


def outer_joins_unseen(plan: Rel) -> Rel:
    """Apply the rewrite wherever it holds."""

    def rule(node: Rel) -> Rel | None:
        return _unseen(node) if isinstance(node, Aggregate) else None

    return plan.transform_up(rule)


def _unseen(node: Aggregate) -> Rel | None:
    above, below = [], node.child
    while isinstance(below, Project):
        above.append(below)
        below = below.child
    if not isinstance(below, OuterJoin) or below.kind not in (LEFT, RIGHT) or not node.groups or not node.aggs:
        return None
    kept, lost = (below.left, below.right) if below.kind == LEFT else (below.right, below.left)
    if not all(map(repeatable, kept.walk())):
        return None
    ours, theirs = set(kept.names), set(lost.names)
    for project in reversed(above):  # what each column above is made of
        nulls = {i.name for i in project.items if _is_null(i.expr, theirs)}
        ours, theirs = {i.name for i in project.items if i.expr.inputs <= ours}, nulls
    if not all(g.expr.inputs <= ours for g in node.groups) or not all(_blind(a, theirs) for a in node.aggs):
        return None
    padded = {f.name: Item(f.name, Expr("lit", (), f"CAST(NULL AS {f.dtype})", f.dtype)) for f in lost.schema}
    shown = {i.name: i for i in pass_through(kept.schema)} | padded
    joined = Join(below.left, below.right, below.condition)
    made: Rel = Union((joined, Project(kept, tuple(shown[f.name] for f in below.schema))), below.schema)
    for project in reversed(above):
        made = Project(made, project.items)
    return Aggregate(made, node.groups, node.aggs)


def _blind(made: AggCall, theirs: set[str]) -> bool:
    return (
        made.func in _BLIND
        and not made.form
        and made.where is None
        and len(made.args) == 1
        and _is_null(made.args[0], theirs)
    )


def _is_null(expr: Expr, theirs: set[str]) -> bool:
    """Whether an expression is NULL as soon as these columns are."""
    if expr.column is not None:
        return expr.column in theirs
    return expr.op in _STRICT and any(_is_null(arg, theirs) for arg in expr.args)

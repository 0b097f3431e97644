"""Aggregates, in four ways.

*Merge*: with the state S (partial rows) at hand and only additive functions, or no deletes in the delta:

    dP = Partial(D(child));   D = AggChange(S, dP);   S' = S ∪ dP

*Merge and redo*: with mergeable functions (`min`, `max`, …) and deletes, the groups K that lost a row are redone:

    R = Partial(F_new(child) ⋉ K);   D = AggChange(S, dP, R);   S' = (S ▷ K) ∪ (dP ▷ K) ∪ R

*Keep and redo*: a user-defined function that does not merge keeps its last results as S; K is every touched group. So
does a group whose results could not be computed again bit by bit.

*Redo*: without a state, or with functions that do not merge, every touched group is redone on both versions:

    K = keys(D(child));   D = −γ(F_old(child) ⋉ K)  ∪  γ(F_new(child) ⋉ K)

Counter-example to merging `max` under deletes: {a: 1, 3} with state max = 3; deleting 3 leaves no partial that says 1.
"""

from __future__ import annotations

from slackwater.algebra.aggregates import Combine
from slackwater.algebra.expressions import Expr, call, col, lit
from slackwater.algebra.nodes import (
    Aggregate,
    Filter,
    Negate,
    Project,
    Rel,
    SemiJoin,
    Union,
    pass_through,
    plain_bag,
    union,
)  # fmt: skip
from slackwater.algebra.partials import DELETES, Partial, partial_schema


def keeps_partials(node: Aggregate) -> bool:
    """Whether the aggregate can keep partial rows at all."""
    return node.combine is not Combine.REDO


def key_pairs(node: Aggregate, *, inner: bool) -> tuple[tuple[Expr, Expr], ...]:
    """The key of a row and the key of a partial row, pairwise; `inner` where the row is an input row."""
    return tuple((g.expr if inner else col(g.name, g.expr.dtype), col(g.name, g.expr.dtype)) for g in node.groups)


def groups_with_deletes(change: Rel) -> Rel:
    """The touched groups that lost a row."""
    return Filter(change, call(">", col(DELETES, "bigint"), lit(0), dtype="boolean"))


def redone(node: Aggregate, change: Rel, new_child: Rel, *, small: bool) -> Rel:
    """Fresh partial rows for the groups that lost a row."""
    keys = groups_with_deletes(change)
    if not node.groups:
        return Partial(plain_bag(new_child), node)
    return Partial(plain_bag(SemiJoin(new_child, keys, key_pairs(node, inner=True), small=small)), node)


def plain_partials(node: Aggregate, rel: Rel) -> Rel:
    """Partial rows without the count of deletes."""
    schema = partial_schema(node)
    return rel if rel.schema == schema else Project(rel, pass_through(schema))


def replaced_state(node: Aggregate, state: Rel, change: Rel, redo: Rel, *, small: bool) -> Rel:
    """S' of *merge and redo*; with no keys there is one group and it is the redone one."""
    if not node.groups:
        return plain_partials(node, redo)
    keys, pairs = groups_with_deletes(change), key_pairs(node, inner=False)
    kept = SemiJoin(state, keys, pairs, anti=True, small=small)
    merged = SemiJoin(plain_partials(node, change), keys, pairs, anti=True, small=small)
    return Union((kept, merged, plain_partials(node, redo)), partial_schema(node))


def redo_delta(node: Aggregate, keys: Rel, old_child: Rel, new_child: Rel, *, small: bool) -> Rel:
    """D by redoing every touched group on both versions."""

    def over(child: Rel) -> Rel:
        pairs = tuple((g.expr, g.expr) for g in node.groups)
        touched = SemiJoin(child, keys, pairs, small=small) if node.groups else child
        return node.with_children((plain_bag(touched),))

    return union(Negate(over(old_child)), over(new_child))

"""Rewrite: what a constant relation without rows makes empty is left out of the plan.

    before:  (R ⋈ ∅) ∪ S          after:  S
    before:  R ▷ ∅                after:  R

Spark leaves such relations where a filter contradicts a constant, as in a union of channels that is filtered by one of
them. Its own rule for them is switched off in a capture, because it would also take the symbolic leaves for empty.

Precondition: the relation is part of the query. Counter-example: a table that is empty now can receive rows later. Nor
is an aggregate without groups empty where its input is: `count(*)` of nothing is 0.
"""

from __future__ import annotations

from slackwater.algebra import nodes as n
from slackwater.algebra.expressions import col, lit
from slackwater.algebra.generate import Generate, Values
from slackwater.algebra.joins import ANTI, EXISTS, FULL, LEFT, RIGHT, SEMI, MatchJoin, OuterJoin
from slackwater.algebra.scalars import ScalarFilter
from slackwater.algebra.windows import Window


def prune_empty(rel: n.Rel) -> n.Rel:
    """The same bag without its empty parts."""
    return rel.transform_up(_pruned)


def _pruned(node: n.Rel) -> n.Rel | None:
    if isinstance(node, n.Union):
        return _union(node)
    if isinstance(node, MatchJoin):
        return _match(node)
    return Values(node.schema, ()) if _is_empty(node) else None


def _is_empty(node: n.Rel) -> bool:
    """Whether a node has no rows because some input has none."""
    if isinstance(node, n.Filter | n.Project | n.Expand | Generate | n.TopK | Window | ScalarFilter):
        return _empty(node.children[0])
    if isinstance(node, n.Aggregate):
        return bool(node.groups) and _empty(node.child)
    if isinstance(node, n.Join):
        return _empty(node.left) or _empty(node.right)
    if isinstance(node, OuterJoin):
        kept = {LEFT: (node.left,), RIGHT: (node.right,), FULL: (node.left, node.right)}[node.kind]
        return all(map(_empty, kept))
    return False


def _empty(rel: n.Rel) -> bool:
    return isinstance(rel, Values) and not rel.rows


def _union(node: n.Union) -> n.Rel | None:
    """The inputs that may have rows; of one, that one under the union's names."""
    kept = tuple(child for child in node.inputs if not _empty(child))
    if len(kept) == len(node.inputs):
        return None
    if not kept:
        return Values(node.schema, ())
    if len(kept) > 1:
        return n.Union(kept, node.fields)
    renamed = zip(node.fields, kept[0].schema, strict=True)
    return n.Project(kept[0], tuple(n.Item(f.name, col(g.name, g.dtype)) for f, g in renamed))


def _match(node: MatchJoin) -> n.Rel | None:
    """Nothing matches nothing: a semi join is empty, an anti join is its left side, existence is false."""
    if _empty(node.left) or (node.kind == SEMI and _empty(node.right)):
        return Values(node.schema, ())
    if not _empty(node.right):
        return None
    if node.kind == ANTI:
        return node.left
    if node.kind != EXISTS:
        return None
    flag = n.Item(node.schema[-1].name, lit(False, dtype="boolean"))
    return n.Project(node.left, (*n.pass_through(node.left.schema), flag))

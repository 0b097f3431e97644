"""Groups of inner joins: their inputs and conditions, whatever the order in which they are joined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import is_

from slackwater.algebra.expressions import Expr, conjunction
from slackwater.algebra.nodes import Filter, Join, Project, Rel, Scan

UniqueKeys = Callable[[str], tuple[int, ...]]
"""The column positions of a table's key; empty where it has none."""


def flatten(plan: Rel) -> tuple[list[Rel], list[Expr]]:
    """The inputs and the conditions of a tree of joins; projections that only drop columns are looked through."""
    if isinstance(plan, Project) and isinstance(plan.child, Join):
        return flatten(plan.child)
    if isinstance(plan, Join):
        inputs, conditions = [], list(plan.condition.conjuncts()) if plan.condition is not None else []
        for side, opened in zip((plan.left, plan.right), _opened(plan), strict=True):
            below, more = flatten(side) if opened else ([side], [])
            inputs += below
            conditions += more
        return inputs, conditions
    return [plan], []


def with_inputs(plan: Rel, inputs: Iterable[Rel]) -> Rel:
    """A group of joins with other inputs, in the order in which `flatten` gives them.

    They go by their place, because one and the same input may stand in two.
    """
    rest = iter(inputs)

    def visit(node: Rel) -> Rel:
        if isinstance(node, Project):
            children: tuple[Rel, ...] = (visit(node.child),)
        elif isinstance(node, Join):
            sides = zip((node.left, node.right), _opened(node), strict=True)
            children = tuple(visit(side) if opened else next(rest) for side, opened in sides)
        else:
            return next(rest)
        return node if all(map(is_, children, node.children)) else node.with_children(children)

    return visit(plan)


def joined(inputs: Sequence[Rel], conditions: Sequence[Expr]) -> Rel:
    """The inputs joined one after another, each condition as soon as it can be asked."""
    made, pending = inputs[0], list(conditions)
    for rel in inputs[1:]:
        known = set(made.names) | set(rel.names)
        usable = tuple(c for c in pending if c.inputs <= known)
        pending = [c for c in pending if not c.inputs <= known]
        made = Join(made, rel, conjunction(usable) if usable else None)
    return Filter(made, conjunction(tuple(pending))) if pending else made


def connected(inputs: Sequence[Rel], conditions: Sequence[Expr]) -> bool:
    """Whether conditions lead from the first of the inputs to every other, so that none is multiplied with the rest."""
    known, apart = set(inputs[0].names), list(inputs[1:])
    while apart:
        met = next((x for x in apart if any(c.inputs & known and c.inputs & set(x.names) for c in conditions)), None)
        if met is None:
            return False
        known |= set(met.names)
        apart = [x for x in apart if x is not met]
    return True


def filters(rel: Rel) -> bool:
    """Whether a filtered, projected scan leaves rows out."""
    return any(isinstance(x, Filter) and any(c.op != "is_not_null" for c in x.predicate.conjuncts())
               for x in rel.walk())  # fmt: skip


def keys_of(rel: Rel, unique: UniqueKeys) -> tuple[frozenset[str], ...]:
    """Columns that identify a row of a filtered, projected scan, under the names that they have there."""
    node, named = rel, {name: name for name in rel.names}
    while isinstance(node, Project | Filter):
        if isinstance(node, Project):
            below = {i.name: i.expr.column for i in node.items}
            named = {name: inner for name, now in named.items() if (inner := below[now]) is not None}
        node = node.child
    if not isinstance(node, Scan):
        return ()
    key = unique(node.table)
    at = {f.name: p for f, p in zip(node.fields, node.positions, strict=True)}
    columns = {at[inner]: name for name, inner in named.items()}
    return (frozenset(columns[p] for p in key),) if key and columns.keys() >= set(key) else ()


def _opened(plan: Join) -> tuple[bool, bool]:
    """Which sides of a join belong to its group; neither where a name would then stand for two columns.

    Counter-example to opening them always: two semi joins with the same table, made joins by its key. Each shows the
    columns of its left side alone, so that both may call the table's key by one name.
    """
    names = _names_inside(plan)
    if len(set(names)) < len(names):
        return False, False
    return _is_join(plan.left), _is_join(plan.right)


def _names_inside(plan: Rel) -> list[str]:
    if not _is_join(plan):
        return list(plan.names)
    sides = (plan.child if isinstance(plan, Project) else plan).children
    return [name for side in sides for name in _names_inside(side)]


def _is_join(plan: Rel) -> bool:
    if isinstance(plan, Join):
        return True
    return (
        isinstance(plan, Project) and isinstance(plan.child, Join) and all(i.expr.column == i.name for i in plan.items)
    )

"""Rewrites: semi and anti joins by a key become lookups, which read no old rows again.

A match join asks, at every refresh, both sides for all rows of the keys that changed. Where one side is told apart by
the key that is compared, there is less to ask:

1.  L ⋉ R, R has each key once       →  π[L](L ⋈ R)
2.  L ⋉ R, the key is that of L      →  γ[L](L ⋈ R)
3.  L ▷ R, the key is that of L      →  π[L](σ[n = 0](γ[L; count(m) AS n](π[L, NULL AS m](L) ∪ π[L, 1 AS m](L ⋈ R))))
4.  (L ⋉ R) ⋈ σ(S), S by its key     →  (L ⋈ σ(S)) ⋉ R, and the same for ▷: fewer rows are left to be asked for
5.  σs(L) ⋉ R, s a scalar subquery   →  σs(L ⋉ R), and the same for ▷: what is kept does not change with the scalar

Precondition of 1 and 2: each row of L has one match at most, or each row of R; of 2 and 3 as well: GROUP BY gives every
column of L back as it was. Counter-example to 2 without a key: two equal rows of L that match are two, not one. To 3
with a NOT IN: a NULL in R leaves no row of L, and pairs with none.
"""

from __future__ import annotations

from operator import is_

from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import Expr, call, col, conjunction, lit
from slackwater.algebra.joins import ANTI, LEFT, RIGHT, SEMI, MatchJoin
from slackwater.algebra.nodes import Aggregate, Field, Filter, Item, Join, Project, Rel, Schema, Union, pass_through
from slackwater.algebra.scalars import ScalarFilter
from slackwater.planning.join_groups import UniqueKeys, filters, flatten, joined, keys_of, with_inputs
from slackwater.planning.lookups import comes_back, lookup_of, with_lookups


def matches_by_key(plan: Rel, unique: UniqueKeys) -> Rel:
    """Apply the rewrites wherever they hold, inputs first."""

    def rule(node: Rel) -> Rel | None:
        if isinstance(node, ScalarFilter):
            return _split(node)
        return _above_scalar(node) if isinstance(node, MatchJoin) and node.kind in (SEMI, ANTI) else None

    def by_key(node: Rel) -> Rel | None:
        return _by_key(node, unique) if isinstance(node, MatchJoin) else None

    return _lifted(plan.transform_up(rule), unique).transform_up(by_key)


def _by_key(node: MatchJoin, unique: UniqueKeys) -> Rel | None:
    """Rewrites 1, 2 and 3."""
    left, right = node.left, node.right
    names = set(left.names) & set(right.names)
    if names or node.kind not in (SEMI, ANTI):
        return None
    pairs = Join(left, right, node.condition)
    if node.kind == SEMI and _one_match(pairs, unique):
        return Project(pairs, pass_through(left.schema))
    if lookup_of(Join(with_lookups(left, unique, _alike), right, node.condition), LEFT, unique) is None:
        return None
    if not all(comes_back(f.dtype) for f in left.schema):
        return None
    groups = pass_through(left.schema)
    if node.kind == SEMI:
        return Aggregate(Project(pairs, groups), groups, ())
    return _without_match(left, pairs, groups)


def _without_match(left: Rel, pairs: Join, groups: tuple[Item, ...]) -> Rel:
    mark, count = _free("matched", pairs.names), _free("matches", pairs.names)
    none = Item(mark, Expr("lit", (), "CAST(NULL AS int)", "int"))
    one = Item(mark, lit(1, dtype="int"))
    fields: Schema = (*left.schema, Field(mark, "int"))
    marked = Union((Project(left, (*groups, none)), Project(pairs, (*groups, one))), fields)
    counted = Aggregate(marked, groups, (AggCall(count, "count", (col(mark, "int"),), "bigint"),))
    unmatched = Filter(counted, call("=", col(count, "bigint"), lit(0, "0L", "bigint"), dtype="boolean"))
    return Project(unmatched, groups)


def _one_match(pairs: Join, unique: UniqueKeys) -> bool:
    """Whether each row of the left side has one match at most, by the key of a table on the right."""
    right = with_lookups(pairs.right, unique, _alike)
    return lookup_of(Join(pairs.left, right, pairs.condition), RIGHT, unique) is not None


def _alike(_: Rel) -> float:
    return 1.0


# --- what moves above ------------------------------------------------------------------------------


def _lifted(plan: Rel, unique: UniqueKeys) -> Rel:
    """Rewrite 4, for every group of joined inputs."""
    if isinstance(plan, Join) or (isinstance(plan, Project) and isinstance(plan.child, Join)):
        inputs, conditions = flatten(plan)
        found = tuple(_lifted(rel, unique) for rel in inputs)
        for at, rel in enumerate(found):
            others = (*found[:at], *found[at + 1 :])
            if any(map(filters, others)) and all(_by_its_key(x, conditions, unique) for x in others):
                moved = _above(plan, rel, found, conditions)
                if moved is not None:
                    return moved
        return with_inputs(plan, found)
    children = tuple(_lifted(child, unique) for child in plan.children)
    return plan if all(map(is_, children, plan.children)) else plan.with_children(children)


def _above(plan: Rel, rel: Rel, inputs: tuple[Rel, ...], conditions: list[Expr]) -> Rel | None:
    """The group with the match joins of one of its inputs above the others; None where there are none."""
    rows, matches = _uncovered(rel)
    names = [name for x in inputs for name in (rows if x is rel else x).names]
    names += [name for match in matches for name in match.right.names]
    if not matches or len(set(names)) < len(names):
        return None
    made: Rel = joined([rows if x is rel else x for x in inputs], conditions)
    for match in reversed(matches):
        made = MatchJoin(made, match.right, match.condition, match.kind)
    return Project(made, plan.items if isinstance(plan, Project) else pass_through(plan.schema))


def _uncovered(rel: Rel) -> tuple[Rel, list[MatchJoin]]:
    """What is below the semi and anti joins at the top of a relation, and these, the upper ones first.

    Projections in between that only drop columns are looked through: what a condition reads stays.
    """
    matches: list[MatchJoin] = []
    kept, rows = set(rel.names), rel
    while True:
        below = rows
        while isinstance(below, Project) and _only_drops(below):
            below = below.child
        if not isinstance(below, MatchJoin) or below.kind not in (SEMI, ANTI):
            return Project(rows, pass_through(tuple(f for f in rows.schema if f.name in kept))), matches
        matches.append(below)
        kept |= below.condition.inputs
        rows = below.left


def _by_its_key(rel: Rel, conditions: list[Expr], unique: UniqueKeys) -> bool:
    """Whether a row of the others finds one row of this input at most."""
    equal = {str(arg.column) for c in conditions if c.op == "=" for arg in c.args if arg.column is not None}
    return any(key <= equal for key in keys_of(rel, unique))


def _only_drops(rel: Project) -> bool:
    return all(i.expr.column == i.name for i in rel.items)


def _above_scalar(node: MatchJoin) -> Rel | None:
    """Rewrite 5: a filter by a scalar subquery moves above the match join."""
    shown, left = node.left.schema, node.left
    if isinstance(left, Project) and _only_drops(left):
        left = left.child
    if not isinstance(left, ScalarFilter) or set(node.right.names) & (set(left.child.names) | set(left.scalar.names)):
        return None
    kept = {f.name for f in shown} | left.predicate.inputs
    rows = Project(left.child, pass_through(tuple(f for f in left.child.schema if f.name in kept)))
    moved = ScalarFilter(MatchJoin(rows, node.right, node.condition, node.kind), left.scalar, left.predicate)
    return Project(moved, pass_through(shown))


def _split(node: ScalarFilter) -> Rel | None:
    """The terms of the predicate that do not read the scalar filter first."""
    terms = node.predicate.conjuncts()
    known = set(node.child.names)
    plain = tuple(t for t in terms if t.inputs <= known)
    rest = tuple(t for t in terms if not t.inputs <= known)
    if not plain or not rest:
        return None
    return ScalarFilter(Filter(node.child, conjunction(plain)), node.scalar, conjunction(rest))


def _free(wish: str, taken: tuple[str, ...]) -> str:
    name, count = wish, 1
    while name in taken:
        count += 1
        name = f"{wish}_{count}"
    return name

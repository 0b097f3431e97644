"""Semi, anti, existence and outer joins: only rows whose match status changes are redone.

Let M(l, R) say whether the left row l has a match in R. For a fixed R each match join is linear in L, so

    D(op(L, R))  =  op(D(L), F_new(R))  ∪  [op(F_old(L), F_new(R)) − op(F_old(L), F_old(R))]

and the bracket holds nothing but the rows of F_old(L) with M(l, F_old(R)) ≠ M(l, F_new(R)): with their weight where
they come, negated where they go. Such a row matches a row of D(R), so only those are looked at. An outer join is the
inner join and, for each side it keeps, the padded anti join; the right side's anti join changes in the other order,

    D(R ▷ L)  =  D(R) ▷ F_old(L)  ∪  [F_new(R) ▷ F_new(L) − F_new(R) ▷ F_old(L)]

so that all terms read the same two relations, F_old(L) and F_new(R). Both are cut down first to what the changes can
touch: by the keys of the equalities in the condition where it has some, else by the condition itself. The other two
versions follow from these by adding D(L) or taking away D(R).

Precondition: the side that is asked for matches is a plain bag, and what cuts is implied by the join's condition.

Counter-examples to simpler rules:

* The anti join as linear in R, `L ▷ D(R)`: with R = {1} and D(R) = {+1}, the row l = 1 would be taken away a second
  time; the delete of one of two matches would bring it back although one is left. Taking M from D(R) alone, without
  F_old(R), makes the same mistakes.
* Cutting by the net keys of both deltas: an insert of key 1 on the left and a delete of key 1 on the right would
  cancel, and neither would be joined.
* Cutting by keys with NULLs in: a NULL on the left of `L.k = R.k` would read every row of R with a NULL key, none of
  which can match.
"""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.algebra.expressions import Expr, call, col, conjunction, lit
from slackwater.algebra.joins import ANTI, EXISTS, SEMI, KeyedJoin, MatchJoin, Support
from slackwater.algebra.nodes import (
    Consolidate,
    Field,
    Filter,
    Item,
    Join,
    Negate,
    Project,
    Rel,
    SemiJoin,
    Union,
    pass_through,
    plain_bag,
    union,
)  # fmt: skip
from slackwater.algebra.printer import node_key
from slackwater.delta.environment import Environment, Purpose

WAS, IS = "_was", "_is"
"""Whether a row had a match, and whether it has one now."""


@dataclass(frozen=True, slots=True)
class Sides:
    """Both inputs of a join around one refresh; None stands for an empty delta.

    `small_left` and `small_right` say that the delta of that side is worth broadcasting.
    """

    left: Rel | None
    right: Rel | None
    old_left: Rel
    new_right: Rel
    small_left: bool
    small_right: bool

    @property
    def small(self) -> bool:
        """Whether all that changed is worth broadcasting."""
        return (self.left is None or self.small_left) and (self.right is None or self.small_right)


@dataclass(frozen=True, slots=True)
class Touched:
    """What the changes can touch.

    Attributes:
        left: the changes of the left side that can have a match at all.
        right: those of the right side.
        old_left: rows of the old left side.
        new_right: rows of the new right side.
    """

    left: Rel | None
    right: Rel | None
    old_left: Rel | None
    new_right: Rel | None


def keyed_join_delta(node: KeyedJoin, sides: Sides, env: Environment) -> Rel | None:
    """D of a match join or an outer join."""
    if sides.left is None and sides.right is None:
        return None
    key = node_key(node)
    touched = _by_keys(node, sides, env, key) if node.equi_pairs else _by_condition(node, sides, env, key)
    if isinstance(node, MatchJoin):
        return union(*_match_terms(node, sides, touched, env, key))
    terms = _inner_terms(node, sides, touched)
    fields = node.schema
    if node.keeps_left:
        unmatched = MatchJoin(node.left, node.right, node.condition, ANTI)
        terms += [_padded(t, fields) for t in _match_terms(unmatched, sides, touched, env, key)]
    if node.keeps_right:
        terms += [_padded(t, fields) for t in _mirrored_terms(node, sides, touched, env, key)]
    return Union(tuple(terms), fields)


# --- cutting both sides down -----------------------------------------------------------------------------------------


def _by_keys(node: KeyedJoin, sides: Sides, env: Environment, key: str) -> Touched:
    """Rows with a key of a changed row."""
    pairs = node.equi_pairs
    names = [f"_m{i}" for i in range(len(pairs))]
    arrived = []
    for change, exprs in ((sides.left, [p.left for p in pairs]), (sides.right, [p.right for p in pairs])):
        if change is not None:
            items = tuple(Item(name, expr) for name, expr in zip(names, exprs, strict=True))
            arrived.append(Project(Support(_not_null(change, node, exprs)), items))
    columns = [col(name) for name in names]
    keys = union(*arrived)
    right_keys = arrived[-1] if not node.keeps_right else keys
    left = _not_null(sides.left, node, [p.left for p in pairs]) if sides.left is not None else None
    right = _not_null(sides.right, node, [p.right for p in pairs]) if sides.right is not None else None
    old_left = new_right = None
    if sides.right is not None or node.keeps_right:
        cut = SemiJoin(sides.old_left, right_keys, _zip([p.left for p in pairs], columns), small=sides.small)
        old_left = env.add_step(f"left_{key}", cut, Purpose.SHARE)
    by_right = _zip([p.right for p in pairs], columns)
    if right is not None and old_left is not None and not node.keeps_right:
        # Only left rows are asked whether they match: keys that none of them has are of no use.
        met = Project(Support(old_left), tuple(Item(name, p.left) for name, p in zip(names, pairs, strict=True)))
        keys = union(*arrived[:-1], met)
        right = SemiJoin(right, keys, by_right, small=sides.small)
    if sides.left is not None or node.keeps_left:
        new_right = env.add_step(f"right_{key}", SemiJoin(sides.new_right, keys, by_right, small=sides.small),
                                 Purpose.SHARE)  # fmt: skip
    return Touched(left, right, old_left, new_right)


def _zip(mine: list[Expr], theirs: list[Expr]) -> tuple[tuple[Expr, Expr], ...]:
    return tuple(zip(mine, theirs, strict=True))


def _not_null(change: Rel, node: KeyedJoin, exprs: list[Expr]) -> Rel:
    """The changes whose keys can match: those of `=` are not NULL."""
    strict = [e for e, pair in zip(exprs, node.equi_pairs, strict=True) if not pair.nulls_match]
    if not strict:
        return change
    return Filter(change, conjunction(tuple(call("is_not_null", e, dtype="boolean") for e in strict)))


def _by_condition(node: KeyedJoin, sides: Sides, env: Environment, key: str) -> Touched:
    """Rows that match a changed row, or a row of the other side that does."""

    def cut(rel: Rel, probes: list[Rel | None]) -> Rel:
        present = [_slim(Support(p), node) for p in probes if p is not None]
        return MatchJoin(rel, union(*present), node.condition, SEMI, broadcast=sides.small)

    def step(side: str, rel: Rel, probes: list[Rel | None]) -> Rel | None:
        if all(p is None for p in probes):
            return None
        return env.add_step(f"{side}_{key}", cut(rel, probes), Purpose.SHARE)

    old_left = step("left", sides.old_left, [sides.right])
    probes = [sides.left, old_left] if node.keeps_left else [sides.left]
    new_right = step("right", sides.new_right, probes)
    right = cut(sides.right, probes) if sides.right is not None and node.keeps_left else None
    if not node.keeps_right:
        return Touched(sides.left, right, old_left, new_right)
    came = cut(new_right, [sides.left]) if new_right is not None and sides.left is not None else None
    old_left = step("both", sides.old_left, [sides.right, came])
    left = cut(sides.left, [sides.right, came]) if sides.left is not None else None
    return Touched(left, right, old_left, new_right)


def _slim(rel: Rel, node: KeyedJoin) -> Rel:
    """Only the columns that the condition reads; a constant where it reads none of this side."""
    fields = tuple(f for f in rel.schema if f.name in node.condition.inputs)
    return Project(rel, pass_through(fields) or (Item("_one", lit(1, dtype="int")),))


# --- terms -----------------------------------------------------------------------------------------------------------


def _inner_terms(node: KeyedJoin, sides: Sides, touched: Touched) -> list[Rel]:
    """The two terms of the inner join."""
    terms: list[Rel] = []
    if sides.left is not None and touched.new_right is not None:
        hint = "left" if sides.small_left else ""
        terms.append(Join(sides.left, touched.new_right, node.condition, hint))
    if sides.right is not None and touched.old_left is not None:
        hint = "right" if sides.small_right else ""
        terms.append(Join(touched.old_left, sides.right, node.condition, hint))
    return terms


def _match_terms(node: MatchJoin, sides: Sides, touched: Touched, env: Environment, key: str) -> list[Rel]:
    """What the left side's changes bring, and the old left rows whose status changes."""
    if touched.new_right is None:
        raise ValueError("a match join reads its right side whenever anything changes")
    rows = _slim(touched.new_right, node)
    after = plain_bag(rows)
    terms: list[Rel] = []
    if sides.left is not None:
        terms.append(MatchJoin(sides.left, after, node.condition, node.kind, node.flag, sides.small))
    if touched.right is not None and touched.old_left is not None:
        before = Consolidate(union(rows, Negate(_slim(touched.right, node))))
        changed = _status(touched.old_left, before, after, node, env, f"status_{key}", broadcast=sides.small)
        terms += _flipped(changed, node)
    return terms


def _mirrored_terms(node: KeyedJoin, sides: Sides, touched: Touched, env: Environment, key: str) -> list[Rel]:
    """Right rows without a match, in the other order: the right side's changes meet the old left side."""
    if touched.old_left is None:
        raise ValueError("an outer join reads a side whose matches it shows whenever anything changes")
    rows = _slim(touched.old_left, node)
    before = plain_bag(rows)
    terms: list[Rel] = []
    if sides.right is not None:
        terms.append(MatchJoin(sides.right, before, node.condition, ANTI, "", sides.small))
    if touched.left is not None and touched.new_right is not None:
        after = plain_bag(union(rows, _slim(touched.left, node)))
        mirrored = MatchJoin(node.right, node.left, node.condition, ANTI)
        changed = _status(
            touched.new_right, before, after, mirrored, env, f"mirrored_{key}", broadcast=sides.small
        )  # fmt: skip
        terms += _flipped(changed, mirrored)
    return terms


def _status(rows: Rel, before: Rel, after: Rel, node: KeyedJoin, env: Environment, name: str, *,
            broadcast: bool) -> Rel:  # fmt: skip
    """Rows whose match status changes, with both flags."""
    was = MatchJoin(rows, before, node.condition, EXISTS, WAS, broadcast)
    both = env.add_step(name, MatchJoin(was, after, node.condition, EXISTS, IS, broadcast), Purpose.SHARE)
    return Filter(both, call("not", call("=", col(WAS), col(IS), dtype="boolean"), dtype="boolean"))


def _flipped(changed: Rel, node: MatchJoin) -> list[Rel]:
    """What a change of status means for the output: rows come and go, or their flag does."""
    columns = pass_through(node.left.schema)
    if node.kind == EXISTS:
        now, then = (Project(changed, (*columns, Item(node.flag, col(c, "boolean")))) for c in (IS, WAS))
        return [now, Negate(then)]
    come, go = (IS, WAS) if node.kind == SEMI else (WAS, IS)
    return [
        Project(Filter(changed, col(come, "boolean")), columns),
        Negate(Project(Filter(changed, col(go, "boolean")), columns)),
    ]


def _padded(rel: Rel, fields: tuple[Field, ...]) -> Rel:
    """The same rows under an outer join's columns: those that it does not have are NULL."""
    have = set(rel.names)
    items = (
        Item(f.name, col(f.name, f.dtype) if f.name in have else lit(None, f"CAST(NULL AS {f.dtype})", f.dtype))
        for f in fields
    )
    return Project(rel, tuple(items))

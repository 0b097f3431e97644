"""Rewrite: put inner joins in an order that suits deltas.

before:  ((A ⋈ B) ⋈ C) ⋈ D, in the order of the query's text
after:   the pair with the smallest output first, again and again (a bushy tree)

Why: with the two-term delta every input of a join is scanned once a refresh, and what is kept is the inputs of joins.
Small intermediate results make both cheap. Precondition: inner joins only, where any order gives the same bag.
Counter-example: an outer join cannot move across an inner one.

The sizes are estimates; a bad one costs time, never correctness.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from slackwater.algebra.expressions import Expr, col, conjunction
from slackwater.algebra.nodes import Filter, Item, Join, Project, Rel, pass_through
from slackwater.planning.join_groups import UniqueKeys, flatten, keys_of

LeafRows = Callable[[Rel], float]
"""How many rows a join's input has."""

ALIKE = 0.75
"""From this share on, two tables are about as large as each other."""


@dataclass(slots=True)
class Part:
    """A subtree on the way to one tree: its estimated rows, and whether columns of it are a key."""

    rel: Rel
    rows: float
    base_rows: float
    keys: tuple[frozenset[str], ...]


def order_joins(plan: Rel, leaf_rows: LeafRows, base_rows: LeafRows, unique: UniqueKeys) -> Rel:
    """Reorder every group of joined inputs in the plan."""
    if isinstance(plan, Join) or (isinstance(plan, Project) and isinstance(plan.child, Join)):
        inputs, conditions = flatten(plan)
        if len(inputs) > 2:
            parts = []
            for rel in inputs:
                rel = order_joins(rel, leaf_rows, base_rows, unique)
                parts.append(Part(rel, max(leaf_rows(rel), 1.0), max(base_rows(rel), 1.0), keys_of(rel, unique)))
            joined = _greedy(parts, conditions, frozenset(plan.names) | read_by(plan))
            return _restore(plan, joined)
    children = tuple(order_joins(child, leaf_rows, base_rows, unique) for child in plan.children)
    return plan if children == plan.children else plan.with_children(children)


def read_by(plan: Rel) -> frozenset[str]:
    """The columns of its joins that a group of joins gives out, or computes from."""
    if isinstance(plan, Project):
        return frozenset().union(*(i.expr.inputs for i in plan.items))
    return frozenset(plan.names)


def _restore(plan: Rel, joined: Rel) -> Rel:
    """Give out the columns that the original gave out, in its order."""
    if isinstance(plan, Project):
        return Project(joined, plan.items)
    return Project(joined, pass_through(plan.schema))


def _greedy(parts: list[Part], conditions: list[Expr], needed: frozenset[str]) -> Rel:
    pending = list(conditions)
    distinct = _distinct_values(parts, conditions)
    while len(parts) > 1:
        pairs = [(a, b) for i, a in enumerate(parts) for b in parts[i + 1 :]]
        best = min(pairs, key=lambda pair: _rank(pair[0], pair[1], pending, distinct))
        parts = [p for p in parts if p is not best[0] and p is not best[1]]
        joined, pending = _join(best[0], best[1], pending, needed, distinct)
        parts.append(joined)
    rel = parts[0].rel
    return Filter(rel, conjunction(tuple(pending))) if pending else rel


def _between(a: Part, b: Part, conditions: list[Expr]) -> list[Expr]:
    left, right = set(a.rel.names), set(b.rel.names)
    return [c for c in conditions if c.inputs <= left | right and c.inputs & left and c.inputs & right]


def _distinct_values(parts: list[Part], conditions: list[Expr]) -> dict[str, float]:
    """A bound on the distinct values of join columns.

    Columns that must be equal form a class. Where one of them is the key of its table, no column of the class can join
    on more values than that table has rows: `c_nationkey = s_nationkey = n_nationkey` has 25.
    """
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while leader.setdefault(name, name) != name:
            name = leader[name]
        return name

    for c in conditions:
        if c.op in ("=", "<=>") and len(c.args) == 2 and all(x.column for x in c.args):
            leader[find(str(c.args[0].column))] = find(str(c.args[1].column))
    bounds: dict[str, float] = {}
    for part in parts:
        for name in part.rel.names:
            if name in leader and frozenset((name,)) in part.keys:
                bounds[find(name)] = min(bounds.get(find(name), part.base_rows), part.base_rows)
    return {name: bounds[find(name)] for name in leader if find(name) in bounds}


def _rank(a: Part, b: Part, conditions: list[Expr], distinct: dict[str, float]) -> tuple[int, float]:
    usable = _between(a, b, conditions)
    return (0 if _equalities(a, b, usable) else 1, _output(a, b, usable, distinct))


def _equalities(a: Part, b: Part, conditions: list[Expr]) -> list[tuple[str, str]]:
    """Pairs of columns that must be equal, a's first."""
    found = []
    for c in conditions:
        if c.op in ("=", "<=>") and len(c.args) == 2 and all(x.column for x in c.args):
            one, two = (str(x.column) for x in c.args)
            found.append((one, two) if one in a.rel.names else (two, one))
    return found


def _output(a: Part, b: Part, conditions: list[Expr], distinct: dict[str, float]) -> float:
    """Rows of the join: a key on one side keeps the other side's rows, thinned by what the key's side lost."""
    equal = _equalities(a, b, conditions)
    if not equal:
        return a.rows * b.rows * (0.3 if conditions else 1.0)
    if any(key <= {y for _, y in equal} for key in b.keys):
        return a.rows * min(1.0, b.rows / b.base_rows)
    if any(key <= {x for x, _ in equal} for key in a.keys):
        return b.rows * min(1.0, a.rows / a.base_rows)
    smaller, larger = sorted((a.base_rows, b.base_rows))
    # Where nobody has declared a key, the smaller of two tables is taken to be looked up in; two alike, many to many.
    guess = smaller if smaller <= ALIKE * larger else smaller**0.75
    values = 1.0
    for x, y in equal[:2]:
        values *= min(distinct.get(x, guess), distinct.get(y, guess))
    return float(a.rows * b.rows / max(min(values, smaller), 1.0))


def _join(
    a: Part, b: Part, pending: list[Expr], needed: frozenset[str], distinct: dict[str, float]
) -> tuple[Part, list[Expr]]:
    usable = _between(a, b, pending)
    rows = _output(a, b, usable, distinct)
    rest = [c for c in pending if c not in usable]
    joined: Rel = Join(a.rel, b.rel, conjunction(tuple(usable)) if usable else None)
    wanted = needed.union(*(c.inputs for c in rest))
    kept = tuple(f for f in joined.schema if f.name in wanted)
    if kept and len(kept) < len(joined.schema):
        joined = Project(joined, tuple(Item(f.name, col(f.name, f.dtype)) for f in kept))
    survivors = tuple(key for part in (a, b) for key in part.keys if key <= set(joined.names))
    keys = survivors if any(k <= {y for _, y in _equalities(a, b, usable)} for k in b.keys) else ()
    return Part(joined, max(rows, 1.0), max(a.base_rows, b.base_rows), tuple(k for k in keys if k in a.keys)), rest


def join_parts(a: Part, b: Part, condition: Expr | None, rel: Rel) -> Part:
    """What is known of a join that the plan has already: its rows by the same estimate that ordered it."""
    usable = list(condition.conjuncts()) if condition is not None else []
    rows = max(_output(a, b, usable, _distinct_values([a, b], usable)), 1.0)
    of_a, of_b = keys_joined(a, b, condition)
    keys = (a.keys if of_b else ()) + (b.keys if of_a else ())
    return Part(rel, rows, max(a.base_rows, b.base_rows), tuple(k for k in keys if k <= set(rel.names)))


def keys_joined(a: Part, b: Part, condition: Expr | None) -> tuple[bool, bool]:
    """Whether a join's condition names a key of the one side, and of the other: each row then has one match at most."""
    equal = _equalities(a, b, list(condition.conjuncts()) if condition is not None else [])
    of_a = any(key <= {x for x, _ in equal} for key in a.keys)
    return of_a, any(key <= {y for _, y in equal} for key in b.keys)


def leaf_part(rel: Rel, rows: float, base_rows: float, unique: UniqueKeys) -> Part:
    """What is known of a join's input."""
    return Part(rel, max(rows, 1.0), max(base_rows, 1.0), keys_of(rel, unique))

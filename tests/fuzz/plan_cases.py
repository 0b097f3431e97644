"""Random cases for the interpreter: a plan of any operators, changes of any shape, and which states are kept when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import Expr, call, col, lit
from slackwater.algebra.generate import Generate
from slackwater.algebra.interpreter import Bag
from slackwater.algebra.joins import MatchJoin
from tests.property.plans import (
    TABLES,
    VALUES,
    Names,
    _aggregate,
    _build,
    _generate,
    _join,
    _keyed_join,
    _pick,
    _predicate,
    plans,
)  # fmt: skip
from tests.property.window_plans import _bounded, _ordering, scalar_filter, window, window_plans

STEPS = 4
RELATIONS = ("states", "merge", "permute", "split", "invert", "strategies", "partition", "reorder")
OFTEN = (*RELATIONS * 3, "duckdb")
"""How often each is drawn; the last takes longest."""

Changes = dict[str, Bag]


@dataclass(frozen=True, slots=True)
class PlanCase:
    """All that happens to one view.

    Attributes:
        plan: its query.
        history: what changes in each table, step by step.
        kept: for each step, a bit mask over the nodes whose states are to exist afterwards.
        lost: for each step, a bit mask over the states that are gone when it begins.
        ways: how each step is made: by the delta, by comparing results, or by a recompute.
        relation: which relation between runs is looked at besides.
        predicate: what the relation `partition` splits by.
        budget: the bytes that the relation `strategies` allows.
    """

    plan: n.Rel
    history: tuple[Changes, ...]
    kept: tuple[int, ...]
    lost: tuple[int, ...]
    ways: tuple[str, ...]
    relation: str
    predicate: Expr
    budget: int


# --- data ------------------------------------------------------------------------------------------------------------

_FEW: dict[str, list[Any]] = {"int": [0, 1], "string": ["a"], "double": [0.0, -0.0]}
PROFILES: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "mixed": VALUES,
    "null-heavy": {t: st.one_of(st.none(), st.none(), VALUES[t]) for t in VALUES},
    "duplicate-heavy": {t: st.sampled_from(few) for t, few in _FEW.items()},
    "skewed": {t: st.one_of(*[st.just(few[0])] * 4, VALUES[t]) for t, few in _FEW.items()},
}


@st.composite
def shaped_histories(draw: st.DrawFn, steps: int = STEPS) -> tuple[Changes, ...]:
    """Rows added, deleted, moved and replaced by themselves; a table may be emptied or filled at once."""
    values = PROFILES[draw(st.sampled_from(sorted(PROFILES)))]
    now: dict[str, list[Any]] = {t: [] for t in TABLES}
    out = []
    for step in range(steps):
        changes = {}
        for table, have in now.items():
            if step and draw(st.booleans()):
                continue
            row = st.tuples(*(values[t] for t in TABLES[table]))
            if have and draw(st.integers(0, 7)) == 0:
                gone = list(range(len(have)))
            else:
                gone = draw(st.lists(st.sampled_from(range(len(have))), unique=True, max_size=3)) if have else []
            come = draw(st.lists(row, max_size=3 if step else 5))
            if gone or come:
                changes[table] = Bag([(have[i], -1) for i in gone] + [(r, 1) for r in come])
                now[table] = [r for i, r in enumerate(have) if i not in gone] + come
        out.append(changes)
    return tuple(out)


# --- plans -----------------------------------------------------------------------------------------------------------


def _distinct(rel: n.Rel, names: Names) -> n.Rel:
    if not rel.schema:
        return n.Aggregate(rel, (), (AggCall(names.new(), "count", (), "bigint"),))
    return n.Aggregate(rel, tuple(n.Item(names.new(), col(f.name, f.dtype)) for f in rel.schema), ())


def _alike(draw: st.DrawFn, left: n.Rel, right: n.Rel, names: Names) -> tuple[n.Rel, n.Rel]:
    """Both sides with columns of the same types."""
    width = draw(st.integers(1, 2))
    mine = [_pick(draw, left) for _ in range(width)]
    theirs = [_pick(draw, right, e.dtype) for e in mine]
    return (n.Project(left, tuple(n.Item(names.new(), e) for e in mine)),
            n.Project(right, tuple(n.Item(names.new(), e) for e in theirs)))  # fmt: skip


def _same(left: n.Rel, right: n.Rel) -> Expr:
    terms = [call("<=>", col(a.name, a.dtype), col(b.name, b.dtype), dtype="boolean")
             for a, b in zip(left.schema, right.schema, strict=True)]  # fmt: skip
    return terms[0] if len(terms) == 1 else call("and", terms[0], terms[1], dtype="boolean")


def _set_operation(draw: st.DrawFn, left: n.Rel, right: n.Rel, names: Names) -> n.Rel:
    """UNION, INTERSECT and EXCEPT as Spark's optimizer writes them, and EXCEPT ALL by signed counts."""
    left, right = _alike(draw, left, right, names)
    kind = draw(st.sampled_from(["union", "semi", "anti", "except_all"]))
    if kind == "union":
        return _distinct(n.union(left, right), names)
    if kind != "except_all":
        return _distinct(MatchJoin(left, right, _same(left, right), kind), names)
    sign = names.new()
    signed = [n.Project(side, (*n.pass_through(side.schema), n.Item(sign if at == 0 else names.new(),
                                                                    lit(1 - 2 * at, dtype="int"))))
              for at, side in enumerate((left, right))]  # fmt: skip
    both = n.union(*signed)
    total = AggCall(names.new(), "sum", (col(sign, "int"),), "int")
    keys = tuple(n.Item(names.new(), col(f.name, f.dtype)) for f in left.schema)
    counted = n.Aggregate(both, keys, (total,))
    more = n.Filter(counted, call(">", col(total.name, "int"), lit(0, dtype="int"), dtype="boolean"))
    copies = call("explode", call("array_repeat", lit(1, dtype="int"), col(total.name, "int")))
    made = Generate(more, copies, (n.Field(names.new(), "int"),), tuple(k.name for k in keys))
    return n.Project(made, n.pass_through(made.schema[:-1]))


def _rollup(draw: st.DrawFn, rel: n.Rel, names: Names) -> n.Rel:
    """GROUP BY ROLLUP (a, b), with the id of the grouping among the keys."""
    keys = [_pick(draw, rel), _pick(draw, rel)]
    kept = rel.schema
    rows = tuple(
        tuple(col(f.name, f.dtype) for f in kept)
        + tuple(k if i >= hidden else lit(None, dtype=k.dtype) for i, k in enumerate(reversed(keys)))
        + (lit(hidden, dtype="int"),)
        for hidden in range(3)
    )
    fields = (*(n.Field(names.new(), f.dtype) for f in kept), n.Field(names.new(), keys[1].dtype),
              n.Field(names.new(), keys[0].dtype), n.Field(names.new(), "int"))  # fmt: skip
    expanded = n.Expand(rel, rows, fields)
    made = _aggregate(draw, expanded, names)
    groups = tuple(n.Item(names.new(), col(f.name, f.dtype)) for f in fields[-3:])
    assert isinstance(made, n.Aggregate)
    return n.Aggregate(expanded, groups, made.aggs)


def _bits(draw: st.DrawFn, rel: n.Rel, names: Names) -> n.Rel:
    """Aggregates that merge but cannot be subtracted, beside those that can."""
    ints, keys = (
        _pick(draw, rel, "int"),
        tuple(n.Item(names.new(), _pick(draw, rel)) for _ in range(draw(st.integers(0, 1)))),
    )
    funcs = draw(
        st.lists(st.sampled_from(["bit_and", "bit_or", "bit_xor", "stddev_samp", "sum"]), min_size=1, max_size=3)
    )
    aggs = [AggCall(names.new(), f, (ints,), "double" if f == "stddev_samp" else "int") for f in funcs]
    flag = _predicate(draw, rel)
    aggs.append(AggCall(names.new(), draw(st.sampled_from(["bool_and", "bool_or"])), (flag,), "boolean"))
    return n.Aggregate(rel, keys, tuple(aggs))  # fmt: skip


def _grow(draw: st.DrawFn, rel: n.Rel, names: Names) -> n.Rel:
    kinds = ("filter", "project", "aggregate", "distinct", "rollup", "bits", "window", "top", "scalar", "generate",
             "join", "keyed_join", "set", "set")  # fmt: skip
    kind = draw(st.sampled_from(kinds))
    if kind not in ("project", "distinct") and draw(st.integers(0, 9)) == 0:
        rel = n.Project(rel, ())  # only how many rows there are counts
    if kind == "filter":
        return n.Filter(rel, _predicate(draw, rel))
    if kind == "project":
        return n.Project(rel, tuple(n.Item(names.new(), _pick(draw, rel)) for _ in range(draw(st.integers(1, 3)))))
    if kind == "distinct":
        return _distinct(rel, names)
    if kind == "top":
        return _ordering(draw, rel)
    alone = {"aggregate": _aggregate, "rollup": _rollup, "bits": _bits, "window": window, "scalar": scalar_filter,
             "generate": _generate}  # fmt: skip
    if kind in alone:
        return alone[kind](draw, rel, names)
    other = _bounded(_build(draw, draw(st.integers(0, 1)), names))
    if kind == "join" and draw(st.integers(0, 3)) == 0:
        return n.Join(rel, n.Project(other, ()), None)
    left, right = (rel, other) if draw(st.booleans()) else (other, rel)
    if kind == "set":
        return _set_operation(draw, left, right, names)
    return _join(draw, left, right) if kind == "join" else _keyed_join(draw, left, right, names)


@st.composite
def grown_plans(draw: st.DrawFn) -> n.Rel:
    """Any operators above each other."""
    names = Names()
    rel = _build(draw, draw(st.integers(0, 1)), names)
    for _ in range(draw(st.integers(1, 4))):
        rel = _grow(draw, _bounded(rel), names)
    return rel


@st.composite
def plan_cases(draw: st.DrawFn) -> PlanCase:
    """A whole case."""
    plan = draw(st.one_of(plans(), window_plans(), grown_plans(), grown_plans()))
    masks = st.one_of(st.just(0), st.just(-1), st.integers(0, 2**20 - 1))
    return PlanCase(
        plan=plan,
        history=draw(shaped_histories()),
        kept=tuple(draw(masks) for _ in range(STEPS)),
        lost=(0, *(draw(st.one_of(st.just(0), st.integers(0, 2**20 - 1))) for _ in range(STEPS - 1))),
        ways=tuple(draw(st.sampled_from(["delta", "delta", "delta", "compare", "recompute"])) for _ in range(STEPS)),
        relation=draw(st.sampled_from(OFTEN)),
        predicate=_predicate(draw, plan) if plan.schema else lit(True, dtype="boolean"),
        budget=draw(st.sampled_from([0, 50, 200, 1000, 10**6])),
    )

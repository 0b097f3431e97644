"""Semi, anti, existence and outer joins over few keys, where nearly every change meets a match."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from slackwater.algebra import nodes as n
from slackwater.algebra.expressions import Expr, call, col, lit
from slackwater.algebra.interpreter import Bag, Catalogue, evaluate
from slackwater.algebra.joins import KeyedJoin, MatchJoin, OuterJoin
from slackwater.algebra.printer import node_key, tree_text
from slackwater.delta.environment import Change, Environment
from slackwater.delta.rules import delta
from tests.property.refresher import Refresher

KINDS = ("semi", "anti", "exists", "left", "right", "full")


def scan(table: str, *names: str) -> n.Rel:
    types = {"r": ("int", "int", "string"), "s": ("int", "double", "string"), "t": ("int", "int", "double")}[table]
    fields = tuple(n.Field(name, dtype) for name, dtype in zip(names, types, strict=True))
    return n.Scan(table, fields, tuple(range(len(names))))


def _call(op: str, *args: Expr) -> Expr:
    return call(op, *args, dtype="boolean")


R, S, T = scan("r", "a", "b", "x"), scan("s", "c", "d", "y"), scan("t", "e", "f", "z")
EQUAL = _call("=", col("a", "int"), col("c", "int"))
CONDITIONS = {
    "equal": EQUAL,
    "null-safe": _call("<=>", col("c", "int"), col("a", "int")),
    "two keys": _call("and", EQUAL, _call("<=>", col("x", "string"), col("y", "string"))),
    "mixed": _call("and", EQUAL, _call("<", col("b", "int"), col("c", "int"))),
    "one-sided": _call("and", EQUAL, _call(">", col("b", "int"), lit(0, dtype="int"))),
    "less": _call("<", col("b", "int"), col("c", "int")),
    "null-aware": _call("or", EQUAL, _call("is_null", EQUAL)),
    "only left": _call(">", col("b", "int"), lit(0, dtype="int")),
    "always": lit(True, dtype="boolean"),
    "never": lit(False, dtype="boolean"),
}


def join(kind: str, left: n.Rel, right: n.Rel, condition: Expr, flag: str = "has") -> KeyedJoin:
    if kind in ("left", "right", "full"):
        return OuterJoin(left, right, condition, kind)
    return MatchJoin(left, right, condition, kind, flag if kind == "exists" else "")


ROWS: dict[str, st.SearchStrategy[tuple[Any, ...]]] = {
    "r": st.tuples(st.sampled_from([None, 0, 1]), st.sampled_from([None, 0, 1]), st.sampled_from([None, "p"])),
    "s": st.tuples(st.sampled_from([None, 0, 1]), st.sampled_from([-0.0, 0.0]), st.sampled_from([None, "p"])),
    "t": st.tuples(st.sampled_from([None, 0, 1]), st.just(1), st.just(0.0)),
}


@st.composite
def dense_histories(draw: st.DrawFn, tables: str, steps: int) -> list[dict[str, Bag]]:
    """Changes of few rows over few values: duplicates, last matches that go, and rows replaced by themselves."""
    now: dict[str, list[Any]] = {t: [] for t in tables}
    out = []
    for _ in range(steps):
        changes = {}
        for table, have in now.items():
            gone = draw(st.lists(st.sampled_from(range(len(have))), unique=True, max_size=3)) if have else []
            come = draw(st.lists(ROWS[table], max_size=3))
            if gone or come:
                changes[table] = Bag([(have[i], -1) for i in gone] + [(r, 1) for r in come])
                now[table] = [r for i, r in enumerate(have) if i not in gone] + come
        out.append(changes)
    return out


@settings(max_examples=300, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    condition=st.sampled_from(sorted(CONDITIONS)),
    history=dense_histories("rs", 4),
    kept=st.sets(st.sampled_from(["left", "right", "join"])),
)
@example("right", "equal", [{}, {"r": Bag.of([(1, None, None)]), "s": Bag.of([(1, 0.0, None)])},
                            {"r": Bag.of([(1, None, None)]), "s": Bag([((1, 0.0, None), -1)])}], set())  # fmt: skip
def test_every_kind_of_join(kind: str, condition: str, history: list[dict[str, Bag]], kept: set[str]) -> None:
    plan = join(kind, R, S, CONDITIONS[condition])
    engine = Refresher(plan)
    nodes = {"left": R, "right": S, "join": plan}
    wanted = frozenset(node_key(nodes[name]) for name in kept)
    for changes in history:
        engine.refresh(changes, wanted)
        assert engine.result == engine.reference(), tree_text(plan)
        engine.check_states()


@settings(max_examples=300, deadline=None)
@given(
    kinds=st.tuples(st.sampled_from(KINDS), st.sampled_from(("left", "right", "full"))),
    condition=st.sampled_from(sorted(CONDITIONS)),
    second=st.sampled_from(["=", "<=>", "<"]),
    flipped=st.booleans(),
    history=dense_histories("rst", 3),
    kept=st.booleans(),
)
def test_chains(
    kinds: tuple[str, str], condition: str, second: str, flipped: bool, history: list[dict[str, Bag]], kept: bool
) -> None:
    first = join(kinds[0], R, S, CONDITIONS[condition])
    above = _call(second, col("a", "int"), col("e", "int"))
    plan = join(kinds[1], T, first, above) if flipped else join(kinds[1], first, T, above)
    engine = Refresher(plan)
    wanted = frozenset(node_key(x) for x in (R, S, T, first)) if kept else frozenset()
    for changes in history:
        engine.refresh(changes, wanted)
        assert engine.result == engine.reference(), tree_text(plan)
        engine.check_states()


@settings(max_examples=200, deadline=None)
@given(
    kind=st.sampled_from(("semi", "anti", "exists")),
    condition=st.sampled_from(sorted(set(CONDITIONS) - {"two keys"})),
    left=st.lists(ROWS["r"], max_size=4),
    right=st.lists(ROWS["s"], min_size=1, max_size=4),
    payload=st.sampled_from([None, "p", "q"]),
    data=st.data(),
)
def test_what_does_not_change_a_status_changes_nothing(
    kind: str, condition: str, left: list[Any], right: list[Any], payload: str | None, data: st.DataObject
) -> None:
    """A new payload, or another copy of a row that is there: every term of the delta is empty, not only their sum."""
    plan = join(kind, R, S, CONDITIONS[condition])
    row = data.draw(st.sampled_from(right))
    change = [((*row[:2], payload), 1)] + ([(row, -1)] if data.draw(st.booleans()) else [])
    old = {"r": Bag.of(left), "s": Bag.of(right)}
    cat = Catalogue({(t, "old"): bag for t, bag in old.items()})
    cat.tables |= {("r", "new"): old["r"], ("s", "new"): old["s"] + Bag(change), ("s", "delta"): Bag(change)}
    env = Environment({"s": Change(1, 1)})
    root = delta(plan, env)
    for step in env.steps:
        cat.inputs[step.name] = evaluate(step.rel, cat)
    assert isinstance(root, n.Union)
    for term in root.inputs:
        assert evaluate(term, cat) == Bag(), tree_text(term)

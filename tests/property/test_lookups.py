"""Joins that look up a key, against the interpreter: whatever waits, comes and goes, the result is the query's."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import call, col, lit
from slackwater.algebra.interpreter import Bag
from slackwater.algebra.lookups import Indexed, LookupJoin, Probe, Waiting
from slackwater.algebra.printer import node_key, tree_text
from slackwater.algebra.serialize import from_json, to_json
from slackwater.planning.lookups import with_lookups
from tests.property.plans import TABLES, VALUES
from tests.property.refresher import Refresher

KEYS: dict[str, tuple[int, ...]] = {"r": (), "s": (0,), "t": (0, 1)}
"""`r` names rows of `s` and `t`; `s` names rows of `t` by its own columns."""


@st.composite
def keyed_histories(draw: st.DrawFn, steps: int, deletes: bool = True) -> list[dict[str, Bag]]:
    """Changes under which no two rows of a table have the same key, and no key is NULL."""
    now: dict[str, list[tuple[Any, ...]]] = {t: [] for t in TABLES}
    out = []
    for _ in range(steps):
        changes = {}
        for table, have in now.items():
            some = deletes and draw(st.integers(0, 2)) == 0
            doomed = draw(st.lists(st.sampled_from(range(len(have))), unique=True, max_size=2)) if some and have else []
            left = [r for i, r in enumerate(have) if i not in doomed]
            fresh = []
            for row in draw(st.lists(st.tuples(*(VALUES[t] for t in TABLES[table])), max_size=4)):
                key = tuple(row[p] for p in KEYS[table])
                taken = {tuple(r[p] for p in KEYS[table]) for r in (*left, *fresh)}
                if not key or (None not in key and key not in taken):
                    fresh.append(row)
            bag = Bag([(have[i], -1) for i in doomed] + [(r, 1) for r in fresh])
            if bag.items():
                changes[table] = bag
            now[table] = left + fresh
        out.append(changes)
    return out


def scan(table: str, prefix: str) -> n.Rel:
    fields = tuple(n.Field(f"{prefix}{i}", t) for i, t in enumerate(TABLES[table]))
    return n.Scan(table, fields, tuple(range(len(fields))))


def equal(a: str, b: str) -> n.Expr:
    return call("=", col(a, "int"), col(b, "int"), dtype="boolean")


@st.composite
def lookups(draw: st.DrawFn) -> n.Rel:
    """One to three lookups, one after another or one behind another, filtered, renamed, and from either side."""

    def part(table: str, prefix: str) -> n.Rel:
        rel = scan(table, prefix)
        if draw(st.booleans()):
            bound = call("<", col(f"{prefix}0", "int"), lit(draw(st.integers(0, 2)), dtype="int"), dtype="boolean")
            kept = draw(st.sampled_from([bound, call("not", bound, dtype="boolean")]))
            rel = n.Filter(rel, kept)
        return n.Project(rel, n.pass_through(rel.schema)) if draw(st.booleans()) else rel

    def join(left: n.Rel, right: n.Rel, *terms: n.Expr) -> n.Rel:
        condition = terms[0]
        for term in terms[1:]:
            condition = call("and", condition, term, dtype="boolean")
        if draw(st.integers(0, 3)) == 0:
            odd = call(
                "not", call("=", col(left.names[0], "int"), lit(1, dtype="int"), dtype="boolean"), dtype="boolean"
            )
            condition = call("and", condition, odd, dtype="boolean")
        return n.Join(left, right, condition) if draw(st.booleans()) else n.Join(right, left, condition)

    shape = draw(st.sampled_from(["one", "two keys", "behind", "both", "chain", "twice"]))
    r, s, t = part("r", "r"), part("s", "s"), part("t", "t")
    if shape == "one":
        plan = join(r, s, equal("r0", "s0"))
    elif shape == "two keys":
        plan = join(r, t, equal("r0", "t0"), equal("r1", "t1"))
    elif shape == "behind":
        behind = join(t, s, equal("t1", "s0"))
        plan = join(r, behind, equal("r0", "t0"), equal("r1", "t1"))
    elif shape == "both":
        plan = join(join(r, s, equal("r0", "s0")), t, equal("r0", "t0"), equal("r1", "t1"))
    elif shape == "twice":
        other = part("s", "z")
        plan = join(join(r, s, equal("r0", "s0")), other, equal("r1", "z0"))
    else:
        inner = join(t, s, equal("t0", "s0"))
        outer = join(inner, part("s", "z"), equal("t1", "z0"))
        plan = join(r, outer, equal("r1", "t0"), equal("r0", "t1"))
    if draw(st.booleans()):
        key, value = col(draw(st.sampled_from(["r0", "r1"])), "int"), col("r1", "int")
        agg = draw(st.sampled_from(["sum", "max", "count"]))
        return n.Aggregate(plan, (n.Item("k", key),), (AggCall("v", agg, (value,), "int"),))
    return plan


def marked(plan: n.Rel) -> n.Rel:
    return with_lookups(plan, lambda table: KEYS[table], lambda _: 1.0)


@settings(max_examples=300, deadline=None)
@given(plan=lookups(), history=keyed_histories(5), data=st.data())
def test_any_states_kept_lost_or_settled(plan: n.Rel, history: list[dict[str, Bag]], data: st.DataObject) -> None:
    engine = Refresher(marked(plan))
    assert any(isinstance(x, LookupJoin) for x in engine.plan.walk())
    assert from_json(to_json(engine.plan)) == engine.plan
    keys = sorted(engine.nodes)
    for at, changes in enumerate(history):
        wanted = frozenset(data.draw(st.lists(st.sampled_from(keys), unique=True)))
        lost = frozenset(data.draw(st.lists(st.sampled_from(keys), max_size=1))) if at else frozenset()
        engine.refresh(changes, wanted, lost, compare=data.draw(st.booleans()), settle=data.draw(st.booleans()))
        assert engine.result == engine.reference(), tree_text(engine.plan)
        assert set(engine.states) == wanted or not at
        engine.check_states()
        if data.draw(st.booleans()):
            engine.compact()


@settings(max_examples=200, deadline=None)
@given(plan=lookups(), history=keyed_histories(6, deletes=False), data=st.data())
def test_what_waits_is_kept_from_the_start(plan: n.Rel, history: list[dict[str, Bag]], data: st.DataObject) -> None:
    engine = Refresher(marked(plan))
    waiting = {key for key, x in engine.nodes.items() if isinstance(x, Waiting)}
    aggregates = {node_key(x) for x in engine.plan.walk() if isinstance(x, n.Aggregate)}
    for changes in history:
        engine.refresh(changes, frozenset(waiting | aggregates), settle=data.draw(st.booleans()))
        assert engine.result == engine.reference(), tree_text(engine.plan)
        assert set(engine.states) == waiting | aggregates
        engine.check_states()
        if data.draw(st.booleans()):
            engine.compact()
            engine.check_states()


def test_what_waits_behind_is_found_in_the_tables() -> None:
    """Where it is not kept, and what waits for it is cut down after every refresh."""
    looked = []

    @settings(max_examples=300, deadline=None)
    @given(plan=lookups(), history=keyed_histories(6, deletes=False))
    def check(plan: n.Rel, history: list[dict[str, Bag]]) -> None:
        engine = Refresher(marked(plan))
        waiting = {key: x for key, x in engine.nodes.items() if isinstance(x, Waiting)}
        behind = {node_key(lookup.waiting) for x in waiting.values() for lookup, _ in x.path.lookups}
        for changes in history:
            engine.refresh(changes, frozenset(waiting.keys() - behind))
            assert engine.result == engine.reference(), tree_text(engine.plan)
            engine.compact()
            engine.check_states()
        looked.append(engine.looked_behind)

    check()
    assert sum(looked) > 20, "else nothing was tried"


@settings(max_examples=200, deadline=None)
@given(plan=lookups(), history=keyed_histories(4, deletes=False))
def test_old_rows_are_not_read_again(plan: n.Rel, history: list[dict[str, Bag]]) -> None:
    """With what waits kept, a refresh without deletes reads no table at its old version."""
    engine = Refresher(marked(plan))
    wanted = frozenset(k for k, x in engine.nodes.items() if isinstance(x, Waiting | n.Aggregate))
    engine.refresh(history[0], wanted)
    for changes in history[1:]:
        changed = {t: b for t, b in changes.items() if b.items()}
        program = engine._compiled("incremental", changed, wanted, compare=False, settle=False)
        largest = {x.table for x in marked(plan).walk() if isinstance(x, n.Scan)} & {"r"}
        assert not {(t, at) for t, at in program.scans if at == "old" and t in largest and t in changed}
        assert ("r", "new") not in program.scans
        engine.refresh(changes, wanted)
    assert engine.result == engine.reference()


@settings(max_examples=300, deadline=None)
@given(plan=lookups(), history=keyed_histories(6), data=st.data())
def test_indexes_kept_from_the_start(plan: n.Rel, history: list[dict[str, Bag]], data: st.DataObject) -> None:
    engine = Refresher(marked(plan))
    wanted = frozenset(k for k, x in engine.nodes.items() if isinstance(x, Indexed | n.Aggregate))
    assert any(isinstance(engine.nodes[key], Indexed) for key in wanted)
    for changes in history:
        engine.refresh(changes, wanted, settle=data.draw(st.booleans()))
        assert engine.result == engine.reference(), tree_text(engine.plan)
        assert set(engine.states) == wanted
        engine.check_states()


@settings(max_examples=200, deadline=None)
@given(plan=lookups(), history=keyed_histories(4, deletes=False))
def test_with_indexes_no_other_side_is_read(plan: n.Rel, history: list[dict[str, Bag]]) -> None:
    """With indexes and what waits kept, a refresh without deletes reads nothing but changes and states."""
    engine = Refresher(marked(plan))
    wanted = frozenset(k for k, x in engine.nodes.items() if isinstance(x, Indexed | Waiting | n.Aggregate))
    mergeable = not any(isinstance(x, n.Aggregate) and x.aggs[0].func == "max" for x in engine.plan.walk())
    engine.refresh(history[0], wanted)
    for changes in history[1:]:
        changed = {t: b for t, b in changes.items() if b.items()}
        program = engine._compiled("incremental", changed, wanted, compare=False, settle=False)
        assert not mergeable or all(at == "delta" for _, at in program.scans), program.scans
        engine.refresh(changes, wanted)
    assert engine.result == engine.reference()


def test_a_delete_since_is_not_looked_up() -> None:
    """An order that was deleted is still in the index: its line must meet both the row and what takes it back."""
    plan = marked(n.Join(scan("r", "r"), scan("s", "s"), equal("r0", "s0")))
    engine = Refresher(plan)
    wanted = frozenset(k for k, x in engine.nodes.items() if isinstance(x, Indexed))
    key_row = (1, *(None for _ in TABLES["s"][1:]))
    engine.refresh({"s": Bag([(key_row, 1)])}, wanted)
    asks = (1, *(None for _ in TABLES["r"][1:]))
    engine.refresh({"s": Bag([(key_row, -1)])}, wanted)
    engine.refresh({"r": Bag([(asks, 1)])}, wanted)
    assert engine.result == engine.reference() == Bag()
    program = engine._compiled("incremental", {"r": Bag([(asks, 1)])}, wanted, compare=False, settle=False)
    assert program.root is not None
    assert [x.since for x in program.root.walk() if isinstance(x, Probe)] == [None]


def test_a_whole_join_is_looked_up() -> None:
    """What comes to `t` meets all of `r ⋈ s`; with an index on `s` at hand, `s` is not read for it."""
    found = call("and", equal("r0", "t0"), equal("r1", "t1"), dtype="boolean")
    engine = Refresher(marked(n.Join(n.Join(scan("r", "r"), scan("s", "s"), equal("r0", "s0")), scan("t", "t"), found)))
    on_s = frozenset(
        key
        for key, x in engine.nodes.items()
        if isinstance(x, Indexed) and {s.table for s in x.walk() if isinstance(s, n.Scan)} == {"s"}
    )
    assert len(on_s) == 1

    def row(table: str, *ints: int) -> tuple[Any, ...]:
        return (*ints, *(None for _ in TABLES[table][len(ints) :]))

    engine.refresh({"r": Bag([(row("r", 1, 2), 1)]), "s": Bag([(row("s", 1, 5), 1)])}, on_s)
    came = {"t": Bag([(row("t", 1, 2), 1)])}
    program = engine._compiled("incremental", came, on_s, compare=False, settle=False)
    assert program.scans == {("r", "old"), ("t", "delta")}
    engine.refresh(came, on_s)
    assert engine.result == engine.reference()
    assert len(engine.result.rows()) == 1


def test_a_row_that_another_took_the_place_of_keeps_its_key_waiting() -> None:
    """What waits of `s` is then a row less and a row more of one key, and that key is not settled."""
    found = call("and", equal("s1", "t0"), equal("s1", "t1"), dtype="boolean")
    inner = n.Join(scan("s", "s"), scan("t", "t"), found)
    engine = Refresher(with_lookups(n.Join(scan("r", "r"), inner, equal("r0", "s0")), lambda t: KEYS[t], lambda _: 1.0))
    waiting = frozenset(key for key, node in engine.nodes.items() if isinstance(node, Waiting))
    assert len(waiting) == 2

    def row(table: str, *ints: int) -> tuple[Any, ...]:
        return (*ints, *(None for _ in TABLES[table][len(ints) :]))

    engine.refresh(
        {"r": Bag([(row("r", 3), 1)]), "s": Bag([(row("s", 3, 1), 1)]), "t": Bag([(row("t", 1, 1), 1)])}, waiting
    )
    engine.refresh({"s": Bag([(row("s", 3, 1), -1), (row("s", 3, 2), 1)])}, waiting)
    engine.refresh({"t": Bag([(row("t", 2, 2), 1)])}, waiting)
    assert engine.result == engine.reference()
    assert len(engine.result.rows()) == 1


def test_sides_without_a_key_are_not_looked_up() -> None:
    r, s = scan("r", "r"), scan("s", "s")
    by_other = n.Join(r, s, call("=", col("r2", "string"), col("s2", "string"), dtype="boolean"))
    assert not any(isinstance(x, LookupJoin) for x in marked(by_other).walk())
    half = n.Join(r, scan("t", "t"), equal("r0", "t0"))
    assert not any(isinstance(x, LookupJoin) for x in marked(half).walk())
    many = n.Join(s, n.Join(r, scan("t", "t"), equal("r0", "t0")), equal("s0", "t1"))
    assert [x.keyed for x in marked(many).walk() if isinstance(x, LookupJoin)] == ["left"]


def test_conditions_that_an_index_cannot_answer() -> None:
    """A term over the side that is looked up alone would be a filter below the table; NULLs are in no table."""

    def index_of(condition: n.Expr) -> Indexed | None:
        (found,) = [x for x in marked(n.Join(scan("r", "r"), scan("s", "s"), condition)).walk()
                    if isinstance(x, LookupJoin)]  # fmt: skip
        return found.index

    key, null_safe = equal("r0", "s0"), call("<=>", col("r0", "int"), col("s0", "int"), dtype="boolean")
    alone = call("<", col("s0", "int"), lit(3, dtype="int"), dtype="boolean")
    beside = call("<", col("r1", "int"), col("s0", "int"), dtype="boolean")
    assert index_of(key) is not None
    assert index_of(call("and", key, beside, dtype="boolean")) is not None
    assert index_of(call("and", key, alone, dtype="boolean")) is None
    assert index_of(null_safe) is None

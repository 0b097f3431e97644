"""Rewrites of semi, anti and outer joins and of aggregates: the same result, whatever is kept, comes and goes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import Expr, call, col, lit
from slackwater.algebra.interpreter import Bag, Catalogue, evaluate
from slackwater.algebra.joins import KeyedJoin, MatchJoin, OuterJoin
from slackwater.algebra.printer import tree_text
from slackwater.algebra.scalars import ScalarFilter
from slackwater.planning.blind_aggregates import outer_joins_unseen
from slackwater.planning.grouped_first import group_first
from slackwater.planning.lookups import with_lookups
from slackwater.planning.match_lookups import matches_by_key
from slackwater.planning.narrowed_groups import narrow_groups
from tests.property.refresher import Refresher
from tests.property.test_lookups import KEYS, equal, keyed_histories, scan

SHAPES = ("left key", "right key", "lifted", "scalar", "outer", "narrow", "grouped", "twice", "first")


def unique(table: str) -> tuple[int, ...]:
    return KEYS[table]


def rewritten(plan: n.Rel) -> n.Rel:
    found = group_first(outer_joins_unseen(matches_by_key(plan, unique)), unique)
    return with_lookups(narrow_groups(found, lambda _: 1.0, lambda _: 10.0, unique), unique, lambda _: 1.0)


def columns(rel: n.Rel, *names: str) -> n.Rel:
    return n.Project(rel, n.pass_through(tuple(f for f in rel.schema if f.name in names)))


def exact(rel: n.Rel) -> n.Rel:
    """Without floating-point columns: groups would not give them back as they were."""
    return n.Project(rel, n.pass_through(tuple(f for f in rel.schema if f.dtype != "double")))


def both(*terms: Expr) -> Expr:
    found = terms[0]
    for term in terms[1:]:
        found = call("and", found, term, dtype="boolean")
    return found


@st.composite
def plans(draw: st.DrawFn) -> n.Rel:
    """Match joins by the key of one side or of none, below and above other joins, and what reads them."""

    def part(table: str, prefix: str) -> n.Rel:
        rel = exact(scan(table, prefix)) if draw(st.booleans()) else scan(table, prefix)
        if draw(st.booleans()):
            bound = call("<", col(f"{prefix}0", "int"), lit(draw(st.integers(0, 2)), dtype="int"), dtype="boolean")
            rel = n.Filter(rel, draw(st.sampled_from([bound, call("not", bound, dtype="boolean")])))
        return rel

    def odd(name: str) -> Expr:
        return call("not", call("=", col(name, "int"), lit(1, dtype="int"), dtype="boolean"), dtype="boolean")

    r, s, t = part("r", "r"), part("s", "s"), part("t", "t")
    kind = draw(st.sampled_from(["semi", "anti"]))
    shape = draw(st.sampled_from(SHAPES))
    terms = [odd("r1")] if draw(st.integers(0, 2)) == 0 else []
    if shape == "left key":
        plan: n.Rel = MatchJoin(s, r, both(equal("r0", "s0"), *terms), kind)
    elif shape == "right key":
        plan = MatchJoin(r, s, both(equal("r0", "s0"), *terms), kind)
    elif shape == "lifted":
        match: n.Rel = MatchJoin(r, t, both(equal("r1", "t1"), *terms), kind)
        match = columns(match, "r0") if draw(st.booleans()) else match
        sides = (match, s) if draw(st.booleans()) else (s, match)
        plan = n.Join(*sides, equal("r0", "s0"))
    elif shape == "twice":
        match = MatchJoin(MatchJoin(r, t, equal("r1", "t1"), kind), part("r", "q"), equal("r0", "q1"), "anti")
        plan = n.Join(match, s, equal("r0", "s0"))
    elif shape == "scalar":
        low = n.Aggregate(scan("t", "z"), (), (AggCall("low", draw(st.sampled_from(["min", "max"])),
                                                       (col("z0", "int"),), "int"),))  # fmt: skip
        tested = both(odd("s0"), call(">", col("s0", "int"), col("low", "int"), dtype="boolean"))
        filtered: n.Rel = ScalarFilter(s, low, tested)
        plan = MatchJoin(exact(filtered) if draw(st.booleans()) else filtered, r, equal("r0", "s0"), kind)
    elif shape == "outer":
        sides = (s, r) if draw(st.booleans()) else (r, s)
        outer = OuterJoin(*sides, both(equal("r0", "s0"), *terms), draw(st.sampled_from(["left", "right"])))
        kept = "s" if (outer.kind == "left") == (sides[0] is s) else "r"
        other = "r" if kept == "s" else "s"
        func = draw(st.sampled_from(["count", "sum", "max"]))
        group = draw(st.sampled_from([f"{kept}0", f"{other}0"]))
        value = col(draw(st.sampled_from([f"{other}0", f"{kept}0"])), "int")
        value = call("+", value, lit(1, dtype="int"), dtype="int") if draw(st.booleans()) else value
        args = (value,) if draw(st.integers(0, 3)) else ()
        func, dtype = (func if args else "count"), "int" if func != "count" and args else "bigint"
        return n.Aggregate(outer, (n.Item("k", col(group, "int")),), (AggCall("v", func, args, dtype),))
    elif shape == "first":
        met: n.Rel = n.Join(r, s, both(equal("r0", "s0"), *terms))
        if draw(st.booleans()):  # another one behind it, by the same table's key
            met = n.Join(met, part("s", "z"), equal("s0" if draw(st.booleans()) else "r1", "z0"))
        if draw(st.integers(0, 3)) == 0:  # something is computed before it is grouped by
            more = n.Item("y", call("+", col("r1", "int"), lit(1, dtype="int"), dtype="int"))
            met = n.Project(met, (*n.pass_through(met.schema), more))
        shown = draw(st.lists(st.sampled_from([f.name for f in met.schema]), min_size=1, max_size=3, unique=True))
        types = {f.name: f.dtype for f in met.schema}
        groups = tuple(n.Item(f"g_{name}", col(name, types[name])) for name in shown)
        func = draw(st.sampled_from(["count", "sum", "max"]))
        made = AggCall("v", func, (col("r1", "int"),), "bigint" if func == "count" else "int")
        return n.Aggregate(met, groups, (made,))
    elif shape == "grouped":
        grouped = n.Aggregate(r, (n.Item("k", col("r0", "int")),), (AggCall("v", "count", (), "bigint"),))
        few = n.Filter(grouped, call(">", col("v", "bigint"), lit(1, "1L", "bigint"), dtype="boolean"))
        plan = MatchJoin(t, columns(few, "k"), equal("t0", "k"), kind)
    else:
        grouped = n.Aggregate(r, (n.Item("k", col("r0", "int")),), (AggCall("v", "count", (), "bigint"),))
        renamed = n.Project(grouped, (n.Item("c", col("k", "int")), n.Item("v", col("v", "bigint"))))
        inner = n.Join(part("r", "q"), s, equal("q0", "s0"))
        plan = n.Join(inner, renamed, equal("c", "s0"))
    return plan


@settings(max_examples=500, deadline=None)
@given(plan=plans(), history=keyed_histories(4), data=st.data())
def test_the_same_result_in_every_state(plan: n.Rel, history: list[dict[str, Bag]], data: st.DataObject) -> None:
    engine = Refresher(rewritten(plan))
    keys = sorted(engine.nodes)
    for at, changes in enumerate(history):
        wanted = frozenset(data.draw(st.lists(st.sampled_from(keys), unique=True)))
        lost = frozenset(data.draw(st.lists(st.sampled_from(keys), max_size=1))) if at else frozenset()
        engine.refresh(changes, wanted, lost, compare=data.draw(st.booleans()))
        asked = evaluate(plan, Catalogue({(t, ""): bag for t, bag in engine.tables.items()}))
        assert engine.result == asked, f"{tree_text(plan)}\n\n{tree_text(engine.plan)}"
        engine.check_states()


S, R, T = scan("s", "s"), scan("r", "r"), scan("t", "t")


def asks(plan: n.Rel) -> list[str]:
    return [x.kind for x in plan.walk() if isinstance(x, KeyedJoin)]


def test_match_joins_by_a_key_are_gone() -> None:
    for kind in ("semi", "anti"):
        assert asks(rewritten(MatchJoin(exact(S), R, equal("r0", "s0"), kind))) == []
    assert asks(rewritten(MatchJoin(R, S, equal("r0", "s0"), "semi"))) == []
    assert asks(rewritten(MatchJoin(R, S, equal("r0", "s0"), "anti"))) == ["anti"]


def test_without_a_key_nothing_changes() -> None:
    plan = MatchJoin(S, R, equal("s1", "r1"), "semi")
    assert rewritten(plan) == plan
    null_aware = call("or", equal("r0", "s0"), call("is_null", equal("r0", "s0"), dtype="boolean"), dtype="boolean")
    plan = MatchJoin(exact(S), R, null_aware, "anti")
    assert rewritten(plan) == plan


def test_an_outer_join_stays_where_rows_are_counted() -> None:
    outer = OuterJoin(S, R, equal("r0", "s0"), "left")
    by_key = (n.Item("k", col("s0", "int")),)
    seen = n.Aggregate(outer, by_key, (AggCall("v", "count", (), "bigint"),))
    assert asks(rewritten(seen)) == ["left"]
    unseen = n.Aggregate(outer, by_key, (AggCall("v", "count", (col("r1", "int"),), "bigint"),))
    assert asks(rewritten(unseen)) == []


def test_a_key_is_grouped_by_before_it_is_looked_up() -> None:
    met = n.Join(R, S, equal("r0", "s0"))
    total = (AggCall("v", "sum", (col("r1", "int"),), "int"),)
    plan = n.Aggregate(met, (n.Item("k", col("s0", "int")), n.Item("t", col("s2", "string"))), total)
    found = next(x for x in group_first(plan, unique).walk() if isinstance(x, n.Aggregate))
    assert {x.table for x in found.walk() if isinstance(x, n.Scan)} == {"r"}
    by_name = n.Aggregate(met, (n.Item("t", col("s2", "string")),), total)
    assert group_first(by_name, unique) == by_name, "two rows of one name are one group"


def test_groups_are_narrowed_to_the_keys_that_are_joined() -> None:
    grouped = n.Aggregate(R, (n.Item("k", col("r0", "int")),), (AggCall("v", "count", (), "bigint"),))
    plan = n.Join(S, grouped, equal("s0", "k"))
    found = next(x for x in rewritten(plan).walk() if isinstance(x, n.Aggregate))
    assert {x.table for x in found.walk() if isinstance(x, n.Scan)} == {"r", "s"}
    many = narrow_groups(plan, lambda _: 10.0, lambda _: 10.0, unique)
    assert many == plan

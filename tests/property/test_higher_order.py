"""Joins of many against the interpreter: whatever parts are kept, and whatever changes, the result is the query's."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import Expr, call, col
from slackwater.algebra.interpreter import Bag
from slackwater.algebra.multi_join import MultiJoin
from slackwater.algebra.printer import node_key, tree_text
from slackwater.algebra.serialize import from_json, to_json
from slackwater.planning.higher_order import higher_order
from tests.property.plans import TABLES, histories, plans
from tests.property.test_delta_rules import Refresher

EVERYTHING = tuple(TABLES)


def _column(draw: st.DrawFn, rel: n.Rel, dtype: str) -> Expr:
    return col(draw(st.sampled_from([f.name for f in rel.schema if f.dtype == dtype])), dtype)


@st.composite
def joins(draw: st.DrawFn) -> n.Rel:
    """Two to five inputs: chains, stars, rings, cross products, conditions over three inputs, aggregates inside."""
    inputs: list[n.Rel] = []
    for at in range(draw(st.integers(2, 5))):
        table = draw(st.sampled_from(sorted(TABLES)))
        fields = tuple(n.Field(f"x{at}_{i}", t) for i, t in enumerate(TABLES[table]))
        rel: n.Rel = n.Scan(table, fields, tuple(range(len(fields))))
        if draw(st.integers(0, 3)) == 0:
            rel = n.Filter(rel, call("is_not_null", _column(draw, rel, "int"), dtype="boolean"))
        if draw(st.integers(0, 5)) == 0:
            rel = n.Aggregate(rel, (n.Item(f"x{at}_k", _column(draw, rel, "int")),),
                              (AggCall(f"x{at}_n", "max", (_column(draw, rel, "int"),), "int"),))  # fmt: skip
        inputs.append(rel)
    joined = inputs[0]
    for at, rel in enumerate(inputs[1:], 1):
        terms = []
        for _ in range(draw(st.integers(0, 2))):
            other = inputs[draw(st.integers(0, at - 1))]
            op = draw(st.sampled_from(["=", "=", "=", "<=>", "<"]))
            terms.append(call(op, _column(draw, other, "int"), _column(draw, rel, "int"), dtype="boolean"))
        if at > 1 and draw(st.integers(0, 4)) == 0:
            total = call("+", _column(draw, inputs[0], "int"), _column(draw, inputs[1], "int"), dtype="int")
            terms.append(call("=", total, _column(draw, rel, "int"), dtype="boolean"))
        if draw(st.integers(0, 4)) == 0:
            terms.append(call("is_not_null", _column(draw, rel, "int"), dtype="boolean"))
        condition = None
        for term in terms:
            condition = term if condition is None else call("and", condition, term, dtype="boolean")
        joined = n.Join(joined, rel, condition)
    shape = draw(st.sampled_from(["join", "project", "count", "sum", "top"]))
    if shape == "project":
        names = draw(st.lists(st.sampled_from(joined.names), min_size=1, max_size=2, unique=True))
        return n.Project(joined, tuple(i for i in n.pass_through(joined.schema) if i.name in names))
    if shape == "count":
        return n.Aggregate(joined, (), (AggCall("n", "count", (), "bigint"),))
    if shape == "sum":
        key = n.Item("k", _column(draw, joined, "int"))
        return n.Aggregate(joined, (key,), (AggCall("s", "sum", (_column(draw, joined, "int"),), "int"),))
    if shape == "top":
        return n.TopK(joined, (n.SortKey(_column(draw, joined, "int"), True, False),), 3)
    return joined


@settings(max_examples=150, deadline=None)
@given(plan=joins(), history=histories(4), data=st.data())
def test_every_view_is_kept_and_right(plan: n.Rel, history: list[dict[str, Bag]], data: st.DataObject) -> None:
    changing = data.draw(st.sets(st.sampled_from(EVERYTHING), min_size=1))
    many = higher_order(plan, changing)
    assert many.schema == plan.schema
    assert from_json(to_json(many)) == many
    engine, reference = Refresher(many), Refresher(plan)
    wanted = frozenset(engine.nodes)
    for at, changes in enumerate(history):
        coming = changes if not at else {t: b for t, b in changes.items() if t in changing}
        coming = {t: b for t, b in coming.items() if all(w > 0 for _, w in (engine.tables[t] + b).items())}
        for each in (engine, reference):
            each.refresh(coming, wanted if each is engine else frozenset(), compare=data.draw(st.booleans()))
        assert engine.result == reference.reference(), tree_text(many)
        if at:
            assert set(engine.states) == wanted
        engine.check_states()


@settings(max_examples=150, deadline=None)
@given(plan=joins(), history=histories(3), data=st.data())
def test_any_views_kept_or_lost(plan: n.Rel, history: list[dict[str, Bag]], data: st.DataObject) -> None:
    engine = Refresher(higher_order(plan, EVERYTHING))
    keys = sorted(engine.nodes)
    for at, changes in enumerate(history):
        wanted = frozenset(data.draw(st.lists(st.sampled_from(keys), unique=True)))
        lost = frozenset(data.draw(st.lists(st.sampled_from(keys), max_size=2))) if at else frozenset()
        engine.refresh(changes, wanted, lost, compare=data.draw(st.booleans()))
        assert engine.result == engine.reference(), tree_text(engine.plan)
        if at:
            assert set(engine.states) == wanted
        engine.check_states()


@settings(max_examples=100, deadline=None)
@given(plan=plans(), history=histories(3))
def test_any_plan_can_be_kept_this_way(plan: n.Rel, history: list[dict[str, Bag]]) -> None:
    many = higher_order(plan, EVERYTHING)
    engine, plain = Refresher(many), Refresher(plan)
    wanted = frozenset(engine.nodes)
    for changes in history:
        engine.refresh(changes, wanted)
        plain.refresh(changes, frozenset())
        assert engine.result == plain.reference(), tree_text(plan)
        engine.check_states()


@settings(max_examples=100, deadline=None)
@given(plan=joins())
def test_a_part_is_the_same_however_it_is_arrived_at(plan: n.Rel) -> None:
    for joined in (x for x in higher_order(plan, EVERYTHING).walk() if isinstance(x, MultiJoin) and x.kept):
        for places in joined.kept:
            part = joined.part(places)
            fresh = from_json(to_json(joined)).part(places)
            assert node_key(part) == node_key(fresh)
            if isinstance(part, MultiJoin):
                for at in range(len(places)):
                    for group in part.rest(at):
                        again = joined.part([places[i] for i in group])
                        assert part.part(group) is again or len(group) == 1
                        assert tuple(places[i] for i in group) in joined.kept

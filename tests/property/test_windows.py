"""Windows, orderings and scalar subqueries anywhere in a plan: the delta rules against the interpreter."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import call, col
from slackwater.algebra.interpreter import Bag
from slackwater.algebra.ordering import completed
from slackwater.algebra.printer import tree_text
from slackwater.algebra.scalars import ScalarFilter
from slackwater.algebra.serialize import from_json, to_json
from slackwater.algebra.windows import Window, WindowCall
from tests.property.plans import histories
from tests.property.refresher import Refresher, assert_restored
from tests.property.window_plans import window_plans


@settings(max_examples=400, deadline=None)
@given(plan=window_plans(), history=histories(4), data=st.data())
def test_any_changes_any_states(plan: n.Rel, history: list[dict[str, Bag]], data: st.DataObject) -> None:
    engine = Refresher(plan)
    keys = sorted(engine.nodes)
    wanted = frozenset(data.draw(st.lists(st.sampled_from(keys), unique=True))) if keys else frozenset()
    for i, changes in enumerate(history):
        lost = frozenset(data.draw(st.lists(st.sampled_from(keys), max_size=1))) if i and keys else frozenset()
        engine.refresh(changes, wanted, lost)
        assert engine.result == engine.reference(), tree_text(plan)
        engine.check_states()


@settings(max_examples=100, deadline=None)
@given(plan=window_plans(), history=histories(2), everything=st.booleans())
def test_a_delta_and_its_inverse_restore_the_result(
    plan: n.Rel, history: list[dict[str, Bag]], everything: bool
) -> None:
    assert_restored(plan, history, everything)


@settings(max_examples=50, deadline=None)
@given(plan=window_plans())
def test_a_stored_plan_is_the_same_plan(plan: n.Rel) -> None:
    assert tree_text(from_json(to_json(plan))) == tree_text(plan)


def test_the_naive_rule_is_wrong() -> None:
    """The counter-example of the rule's text: a row in the middle moves one that nobody touched."""
    scan = n.Scan("r", (n.Field("k", "int"), n.Field("v", "int")), (0, 1))
    order = (n.SortKey(col("v", "int"), False, True),)
    numbered = WindowCall("n", "row_number", (), "int", completed(order, scan.schema), completed=True)
    engine = Refresher(Window(scan, (col("k", "int"),), (numbered,)))
    engine.refresh({"r": Bag.of([(1, 10, ""), (1, 20, ""), (2, 5, "")])}, frozenset())
    before = engine.result
    engine.refresh({"r": Bag.of([(1, 15, "")])}, frozenset())
    assert engine.result + -before == Bag([((1, 15, 2), 1), ((1, 20, 2), -1), ((1, 20, 3), 1)])


def test_a_scalar_that_moves_takes_back_only_what_fails_now() -> None:
    """The counter-example of the rule's text: those above the average, and the average passes one of them."""
    scan = n.Scan("r", (n.Field("v", "int"),), (1,))
    mean = n.Aggregate(n.Scan("r", (n.Field("w", "int"),), (1,)), (), (AggCall("m", "avg", (col("w", "int"),), "int"),))
    plan = ScalarFilter(scan, mean, call(">", col("v", "int"), col("m", "int"), dtype="boolean"))
    engine = Refresher(plan)
    engine.refresh({"r": Bag.of([(0, 1, ""), (0, 5, ""), (0, 9, "")])}, frozenset())
    before = engine.result
    engine.refresh({"r": Bag.of([(0, 25, "")])}, frozenset())
    assert engine.result + -before == Bag([((25,), 1), ((9,), -1)])

"""Every delta rule against the interpreter: after any changes, kept or dropped states, the result is the query's."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.algebra import nodes as n
from slackwater.algebra.interpreter import Bag
from slackwater.algebra.printer import node_key, tree_text
from tests.property.plans import histories, plans
from tests.property.refresher import Refresher, assert_restored, stateful


@settings(max_examples=600, deadline=None)
@given(plan=plans(), history=histories(4), data=st.data())
def test_any_changes_any_states(plan: n.Rel, history: list[dict[str, Bag]], data: st.DataObject) -> None:
    engine = Refresher(plan)
    keys = sorted(engine.nodes)
    for i, changes in enumerate(history):
        wanted = frozenset(data.draw(st.lists(st.sampled_from(keys), unique=True))) if keys else frozenset()
        lost = frozenset(data.draw(st.lists(st.sampled_from(keys), max_size=1))) if i and keys else frozenset()
        engine.refresh(changes, wanted, lost, compare=data.draw(st.booleans()))
        if i:
            assert set(engine.states) == wanted
        if data.draw(st.booleans()):
            engine.compact()
        assert engine.result == engine.reference(), tree_text(plan)
        engine.check_states()


@settings(max_examples=300, deadline=None)
@given(plan=plans(), history=histories(3), everything=st.booleans())
def test_splitting_and_merging_deltas_changes_nothing(
    plan: n.Rel, history: list[dict[str, Bag]], everything: bool
) -> None:
    wanted = frozenset(node_key(x) for x in stateful(plan)) if everything else frozenset()
    stepwise, at_once, one_table_at_a_time = Refresher(plan), Refresher(plan), Refresher(plan)
    merged: dict[str, Bag] = {}
    for engine in (stepwise, at_once, one_table_at_a_time):
        engine.refresh({}, wanted)
    for changes in history:
        stepwise.refresh(changes, wanted)
        for table, bag in changes.items():
            merged[table] = merged.get(table, Bag()) + bag
    at_once.refresh({t: b for t, b in merged.items() if b.items()}, wanted)
    for table in sorted(merged, reverse=True):
        one_table_at_a_time.refresh({table: merged[table]}, wanted)
    assert stepwise.result == at_once.result == one_table_at_a_time.result == stepwise.reference()


@settings(max_examples=300, deadline=None)
@given(plan=plans(), history=histories(2), everything=st.booleans())
def test_a_delta_and_its_inverse_restore_the_result(
    plan: n.Rel, history: list[dict[str, Bag]], everything: bool
) -> None:
    assert_restored(plan, history, everything)

"""User-defined aggregates by the delta rules: kept results are taken back, redone or merged, and never go stale."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall, Combine
from slackwater.algebra.expressions import col
from slackwater.algebra.interpreter import Bag
from slackwater.algebra.printer import node_key, tree_text
from tests.property.plans import histories, plans
from tests.property.test_delta_rules import Refresher


@st.composite
def aggregated(draw: st.DrawFn) -> n.Rel:
    """Functions that the interpreter can merge, taken for user-defined ones, over any plan."""
    below = draw(plans())
    columns = [col(f.name, f.dtype) for f in below.schema]
    groups = tuple(n.Item(f"key{i}", draw(st.sampled_from(columns))) for i in range(draw(st.integers(1, 2))))
    calls = []
    for i in range(draw(st.integers(1, 2))):
        arg = draw(st.sampled_from(columns))
        func = draw(st.sampled_from(["min", "max", "sum"] if arg.dtype == "int" else ["min", "max"]))
        calls.append(AggCall(f"own{i}", func, (arg,), arg.dtype, user=draw(st.sampled_from(["kept", "merge"]))))
    return n.Aggregate(below, groups, tuple(calls))


@settings(max_examples=300, deadline=None)
@given(plan=aggregated(), history=histories(4), data=st.data())
def test_any_changes_any_states(plan: n.Rel, history: list[dict[str, Bag]], data: st.DataObject) -> None:
    engine = Refresher(plan)
    keys = sorted(engine.nodes)
    for i, changes in enumerate(history):
        own = {node_key(plan)} if data.draw(st.integers(0, 4)) else set()
        wanted = frozenset(own.union(data.draw(st.lists(st.sampled_from(keys), unique=True))))
        lost = frozenset(data.draw(st.lists(st.sampled_from(keys), max_size=1))) if i else frozenset()
        engine.refresh(changes, wanted, lost, compare=data.draw(st.booleans()))
        if data.draw(st.booleans()):
            engine.compact()
        assert engine.result == engine.reference(), tree_text(plan)


def test_classes_of_user_defined_functions() -> None:
    scan = n.Scan("t", (n.Field("k", "int"), n.Field("v", "int")), (0, 1))
    group = (n.Item("k", col("k", "int")),)

    def of(user: str, dtype: str = "int", groups: tuple[n.Item, ...] = group) -> Combine:
        return n.Aggregate(scan, groups, (AggCall("x", "own", (col("v", "int"),), dtype, user=user),)).combine

    assert of("kept") is of("kept", "double") is Combine.KEPT
    assert of("merge") is Combine.MERGEABLE
    assert of("merge", "map<string,int>") is Combine.REDO
    assert of("merge", groups=()) is Combine.REDO

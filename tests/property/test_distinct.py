"""DISTINCT beside other aggregates, split in two: the same result, and nothing is recomputed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import call, col, lit
from slackwater.algebra.interpreter import Bag, Catalogue, evaluate
from slackwater.algebra.printer import tree_text
from slackwater.capture.distinct import split_distinct
from slackwater.eligibility import eligibility
from tests.property.plans import histories
from tests.property.refresher import Refresher

SCAN = n.Scan("r", (n.Field("a", "int"), n.Field("b", "int"), n.Field("c", "string")), (0, 1, 2))
A, B = col("a", "int"), col("b", "int")
KINDS = AggCall("kinds", "count", (A,), "bigint", distinct=True)
MEAN = AggCall("mean", "avg", (B,), "double")


@st.composite
def aggregates(draw: st.DrawFn) -> n.Aggregate:
    """One or two DISTINCT calls and some others, an average among them, over everything or by a key."""
    calls = [KINDS, MEAN]
    some = call(">", B, lit(0, dtype="int"), dtype="boolean")
    for at in range(draw(st.integers(0, 3))):
        func, dtype = draw(st.sampled_from([("avg", "double"), ("sum", "bigint"), ("count", "bigint"), ("max", "int")]))
        where = some if draw(st.booleans()) else None
        calls.append(AggCall(f"x{at}", func, (draw(st.sampled_from([A, B])),), dtype, where=where))
    if draw(st.booleans()):
        calls.append(AggCall("all", "avg", (A,), "double", distinct=True))
    groups = (n.Item("k", col("c", "string")),) if draw(st.booleans()) else ()
    return n.Aggregate(SCAN, groups, tuple(draw(st.permutations(calls))))


@settings(max_examples=200, deadline=None)
@given(plan=aggregates(), history=histories(4))
def test_the_same_result(plan: n.Aggregate, history: list[dict[str, Bag]]) -> None:
    split = split_distinct(plan)
    assert split is not None
    assert split.schema == plan.schema
    assert eligibility(split), tree_text(split)
    engine = Refresher(split)
    for changes in history:
        engine.refresh(changes, frozenset(engine.nodes))
        asked = evaluate(plan, Catalogue({(t, ""): bag for t, bag in engine.tables.items()}))
        assert engine.result == asked, tree_text(split)
        engine.check_states()


def test_a_sum_and_a_count_that_are_there_serve_the_average() -> None:
    total, rows = AggCall("total", "sum", (B,), "bigint"), AggCall("rows", "count", (B,), "bigint")
    split = split_distinct(n.Aggregate(SCAN, (), (KINDS, MEAN, total, rows)))
    assert split is not None
    inner = [x for x in split.walk() if isinstance(x, n.Aggregate)][-1]
    assert [a.text for a in inner.aggs] == ["sum(`b`)", "count(`b`)"]
    assert split.names == ("kinds", "mean", "total", "rows")


@pytest.mark.parametrize("dtype", ["bigint", "double", "decimal(38,6)"])
def test_an_average_that_is_no_exact_quotient_stays(dtype: str) -> None:
    mean = replace(MEAN, args=(col("b", dtype),))
    child = n.Scan("r", (n.Field("a", "int"), n.Field("b", dtype)), (0, 1))
    assert split_distinct(n.Aggregate(child, (), (KINDS, mean))) is None

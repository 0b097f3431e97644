"""The first rows of an input that is not kept: sorted in, and read again when too many of them went."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.algebra import nodes as n
from slackwater.algebra.expressions import col
from slackwater.algebra.first_rows import First
from slackwater.algebra.interpreter import Bag
from slackwater.algebra.printer import node_key, tree_text
from slackwater.capture.first_rows import SPARE, keep_first_rows
from tests.property.plans import histories
from tests.property.refresher import Refresher

R = n.Scan("r", (n.Field("k", "int"), n.Field("v", "int")), (0, 1))
BY_V = (n.SortKey(col("v", "int"), False, True),)


def first(need: int, most: int, rel: n.Rel = R, keys: tuple[n.SortKey, ...] = BY_V) -> tuple[n.Rel, frozenset[str]]:
    """An ordering over first rows, and the key of their state."""
    kept = First(rel, keys, need, most)
    return n.TopK(kept, keys, need), frozenset({node_key(kept)})


@settings(max_examples=500, deadline=None)
@given(
    history=histories(6), need=st.integers(1, 3), spare=st.integers(0, 3), down=st.booleans(), nulls=st.booleans(),
    offset=st.integers(0, 2),
)  # fmt: skip
def test_any_changes(
    history: list[dict[str, Bag]], need: int, spare: int, down: bool, nulls: bool, offset: int
) -> None:
    keys = (n.SortKey(col("v", "int"), down, nulls),)
    kept = First(R, keys, need + offset, need + offset + spare)
    engine = Refresher(n.TopK(kept, keys, need, offset))
    for changes in history:
        engine.refresh(changes, frozenset({node_key(kept)}))
        assert engine.result == engine.reference(), tree_text(engine.plan)
        engine.check_states()


def rows(*values: int) -> Bag:
    return Bag.of((0, v, "") for v in values)


def test_what_comes_behind_the_last_kept_row_is_not_sorted_in() -> None:
    """The counter-example of the rule's text."""
    plan, kept = first(2, 3)
    engine = Refresher(plan)
    engine.refresh({"r": rows(1, 2, 3, 4, 5)}, kept)
    engine.refresh({"r": rows(9) + -rows(2)}, kept)
    assert (engine.gone, engine.result) == (0, Bag.of([(0, 1), (0, 3)]))
    assert engine.states[next(iter(kept))] == Bag.of([(0, 1), (0, 3)]), "9 is behind 3, and 4 was never kept"
    engine.refresh({"r": -rows(1)}, kept)
    assert (engine.gone, engine.result) == (1, Bag.of([(0, 3), (0, 4)]))
    assert engine.states[next(iter(kept))] == Bag.of([(0, 3), (0, 4), (0, 5)]), "all were read again"


def test_a_prefix_of_all_there_is_takes_everything() -> None:
    plan, kept = first(3, 4)
    engine = Refresher(plan)
    engine.refresh({"r": rows(1, 5)}, kept)
    engine.refresh({"r": rows(9, 7)}, kept)
    assert (engine.gone, engine.result) == (0, Bag.of([(0, 1), (0, 5), (0, 7)]))
    engine.refresh({"r": -rows(1)}, kept)
    assert (engine.gone, engine.result) == (0, Bag.of([(0, 5), (0, 7), (0, 9)])), "one row to spare"


def test_a_row_that_is_replaced_makes_up_for_itself() -> None:
    plan, kept = first(2, 2)
    engine = Refresher(plan)
    engine.refresh({"r": rows(1, 3, 5)}, kept)
    engine.refresh({"r": rows(2) + -rows(1)}, kept)
    assert (engine.gone, engine.result) == (0, Bag.of([(0, 2), (0, 3)]))


def test_where_it_applies() -> None:
    plain = n.TopK(R, BY_V, 5, 2)
    kept = keep_first_rows(plain)
    assert isinstance(kept, n.TopK)
    assert kept.child == First(R, BY_V, 7, 14 + SPARE)
    assert keep_first_rows(n.TopK(n.Aggregate(R, (n.Item("k", col("k", "int")),), ()), (), 5)) is None
    assert keep_first_rows(n.TopK(R, BY_V, 20_000)) is None
    assert keep_first_rows(n.TopK(R, BY_V, 0)) is None
    assert keep_first_rows(R) is None

"""The state choice against trying every set of states, over the memo of random plans as they are really priced."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import Expr, call, col, lit
from slackwater.algebra.nodes import Aggregate, Filter, Item, Join, Project, Rel
from slackwater.planning.cardinality import Cardinalities, Expected
from slackwater.planning.costing import AtHand, Pricing
from slackwater.planning.lookup_costing import NEVER
from slackwater.planning.lookups import with_lookups
from slackwater.planning.rates import Rates
from slackwater.planning.state_choice import Root, choose
from slackwater.planning.strategies import STRATEGIES, plan_states
from tests.property.plans import TABLES, plans
from tests.property.test_lookups import KEYS, lookups

MOST_STATES = 8
"""A plan with more nodes that could be kept may keep these only: every set of states is tried, and no plan left out."""

COUNTS = st.sampled_from([1.0, 40.0, 3_000.0, 500_000.0, 6_000_000.0])
SHARES = st.sampled_from([0.0, 0.0, 0.0001, 0.01, 0.3])


@st.composite
def roots(draw: st.DrawFn, queries: st.SearchStrategy[Rel]) -> Root:
    """The memo of a random plan: tables of random sizes, random deltas, some states at hand and some measured."""
    plan = draw(queries)
    rows = {table: draw(COUNTS) for table in TABLES}
    coming = {t: Expected(n * share, draw(st.sampled_from([0.0, 0.5]))) for t, n in rows.items()
              if (share := draw(SHARES))}  # fmt: skip
    cards = Cardinalities(rows, coming, unique=KEYS.__getitem__)
    if draw(st.booleans()):
        plan = with_lookups(plan, KEYS.__getitem__, lambda leaf: cards.of(leaf).full)
    names = sorted(states(priced(plan, cards, AtHand())))
    there = frozenset(draw(st.lists(st.sampled_from(names), unique=True))) if names else frozenset()
    at_hand = AtHand(there, draw(st.booleans()), {key: draw(st.integers(1, 10**6)) for key in there},
                     serves=draw(st.sampled_from([1.0, 50.0])))  # fmt: skip
    return priced(plan, cards, at_hand, frozenset(names[:MOST_STATES]))


@st.composite
def with_equal_parts(draw: st.DrawFn) -> Rel:
    """A query that reads the same groups in two places: in the memo they are one node, twice."""
    below = draw(plans(depth=2, top=False).filter(lambda plan: plan.schema))
    count = AggCall("k", "count", (), "bigint")
    group = below.schema[0]
    part = Aggregate(below, (Item("g", col(group.name, group.dtype)),), (count,))
    one = Filter(part, equal("k", "bigint", lit(1, dtype="bigint")))
    renamed = Project(part, (Item("h", col("g", group.dtype)), Item("m", col("k", "bigint"))))
    if draw(st.booleans()):
        return Join(one, renamed, equal("g", group.dtype, col("h", group.dtype)))
    counted = Aggregate(renamed, (Item("n", col("m", "bigint")),), (AggCall("q", "count", (), "bigint"),))
    return Join(one, counted, equal("k", "bigint", col("n", "bigint")))


def equal(column: str, dtype: str, other: Expr) -> Expr:
    return call("=", col(column, dtype), other, dtype="boolean")


def priced(plan: Rel, cards: Cardinalities, at_hand: AtHand, allowed: frozenset[str] | None = None) -> Root:
    return Pricing(cards, Rates(write=2e-8), at_hand, allowed).root(plan, by_delta=True)


def states(root: Root) -> dict[str, int]:
    """The nodes that can be kept, each once, with their bytes."""
    return {k.key: k.size for group in root.group.walk() for k in group.keepings}


def every_set(sizes: dict[str, int]) -> Iterator[tuple[int, frozenset[str]]]:
    for chosen in itertools.product((False, True), repeat=len(sizes)):
        kept = frozenset(itertools.compress(sizes, chosen))
        yield sum(sizes[key] for key in kept), kept


def is_exact(root: Root, share: float) -> None:
    sizes = states(root)
    budget = int(share * sum(sizes.values()))
    cheapest = min(root.price(kept) for size, kept in every_set(sizes) if size <= budget)
    found = choose(root, budget)
    kept = frozenset(found.decisions)
    assert len(kept) == len(found.decisions)
    assert sum(sizes[key] for key in kept) == found.bytes <= budget
    assert found.seconds == pytest.approx(cheapest, rel=1e-9)
    assert root.price(kept) == pytest.approx(cheapest, rel=1e-9)
    assert plan_states(root, "auto", budget).size <= budget


trees = roots(st.one_of(plans(), lookups()))
budgets = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.8, 1.0])


@settings(max_examples=500, deadline=None)
@given(trees, budgets)
def test_no_states_of_a_priced_plan_are_cheaper(root: Root, share: float) -> None:
    is_exact(root, share)


@settings(max_examples=500, deadline=None)
@given(trees, budgets, st.sampled_from(STRATEGIES), st.data())
def test_every_strategy_keeps_what_fits_and_what_a_refresh_can_use(
    root: Root, share: float, strategy: str, data: st.DataObject
) -> None:
    sizes = states(root)
    budget = int(share * sum(sizes.values()))
    there = frozenset(data.draw(st.lists(st.sampled_from(sorted(sizes)), unique=True))) if sizes else frozenset()
    found = plan_states(root, strategy, budget, there=there)
    assert found.kept <= sizes.keys()
    assert sum(sizes[key] for key in found.kept) == found.size <= budget
    assert found.seconds < NEVER


@pytest.mark.slow
@settings(max_examples=4_000, deadline=None)
@given(trees, budgets)
def test_no_states_of_many_more_priced_plans_are_cheaper(root: Root, share: float) -> None:
    is_exact(root, share)


@settings(max_examples=300, deadline=None)
@given(roots(with_equal_parts()), budgets)
def test_a_node_in_two_places_counts_twice_and_never_for_less(root: Root, share: float) -> None:
    """What is chosen fits, and no set is cheaper that would fit if each place had a copy of its own."""
    sizes = states(root)
    copies = Counter(k.key for group in root.group.walk() for k in group.keepings)
    budget = int(share * sum(sizes[key] * n for key, n in copies.items()))
    found = choose(root, budget)
    kept = frozenset(found.decisions)
    assert sum(sizes[key] for key in kept) <= found.bytes <= budget
    apart = min(root.price(some) for _, some in every_set(sizes) if sum(sizes[k] * copies[k] for k in some) <= budget)
    assert found.seconds <= apart * (1 + 1e-9)
    assert root.price(kept) <= apart * (1 + 1e-9)

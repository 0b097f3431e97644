"""The prices of joins that look up a key: what waits is one more state to choose, and the choice stays exact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations

import pytest

from slackwater.algebra.lookups import LookupJoin
from slackwater.algebra.nodes import Rel
from slackwater.algebra.printer import node_key
from slackwater.planning.cardinality import Cardinalities, Expected
from slackwater.planning.costing import AtHand, Pricing
from slackwater.planning.lookup_costing import NEVER
from slackwater.planning.lookups import with_lookups
from slackwater.planning.memo import Demand
from slackwater.planning.state_choice import Root, choose, price
from slackwater.planning.strategies import STRATEGIES, plan_states
from tests.unit.test_costing import CHEAP_WRITES, ROWS, SHARES, TOP, unique

MARKED = with_lookups(TOP, unique, lambda _: 1.0)
ALL = {"lineitem": Expected(60_000), "orders": Expected(15_000), "customer": Expected(1_500)}


def memo(plan: Rel, expected: Mapping[str, Expected], at_hand: AtHand | None = None) -> Root:
    cards = Cardinalities(ROWS, expected, {}, SHARES, unique)
    return Pricing(cards, CHEAP_WRITES, at_hand or AtHand()).root(plan, by_delta=True)


def waiting(plan: Rel) -> set[str]:
    return {node_key(x.waiting) for x in plan.walk() if isinstance(x, LookupJoin)}


def indexes(plan: Rel) -> set[str]:
    return {node_key(x.index) for x in plan.walk() if isinstance(x, LookupJoin) and x.index is not None}


def test_an_index_takes_the_place_of_the_side_that_is_looked_up() -> None:
    few = {"lineitem": Expected(6_000), "orders": Expected(1_500)}
    long = AtHand(serves=1000.0)
    kept = set(choose(memo(MARKED, few, long), 1e12).decisions)
    assert isinstance(MARKED, LookupJoin)
    assert MARKED.index is not None
    assert node_key(MARKED.index) in kept
    assert node_key(MARKED.looked_up) not in kept, "its rows are not read any more"
    asked = memo(MARKED, few, AtHand(frozenset(kept), everything=False)).demanded(frozenset(kept))
    assert not asked.get(node_key(MARKED.looked_up), Demand.NOTHING) & (Demand.NEW | Demand.OLD)


def test_a_whole_join_is_sought_in_an_index() -> None:
    """What comes to the side above then costs no copy of the join below it, which would be kept otherwise."""
    assert isinstance(MARKED, LookupJoin)
    assert MARKED.index is not None
    index = node_key(MARKED.index)
    (join,) = [g for g in memo(MARKED, ALL).group.walk() if g.key == node_key(MARKED.waiting)]
    with_it = price(join, Demand.OLD, frozenset({index}), building=False)
    without = price(join, Demand.OLD, frozenset(), building=False)
    assert with_it < without < NEVER


def test_deletes_where_it_is_looked_up_are_priced() -> None:
    """What came since the index was made is then met by a join of its own, and a whole join is not sought in it."""
    assert isinstance(MARKED, LookupJoin)
    assert MARKED.index is not None
    index = frozenset({node_key(MARKED.index)})

    def seconds(demand: Demand, deletes: float) -> float:
        expected = ALL | {"orders": Expected(15_000, deletes)}
        (join,) = [g for g in memo(MARKED, expected).group.walk() if g.key == node_key(MARKED.waiting)]
        return price(join, demand, index, building=False)

    assert seconds(Demand.DELTA, 0.1) > seconds(Demand.DELTA, 0.0) + CHEAP_WRITES.step / 2
    assert seconds(Demand.OLD, 0.1) > seconds(Demand.OLD, 0.0), "it is read instead"


def test_looking_up_many_rows_in_a_large_index_is_dearer_than_in_a_small_one() -> None:
    """Counter-example to one price for both: all of a fact table is looked up again at every refresh."""
    assert isinstance(MARKED, LookupJoin)
    assert MARKED.index is not None
    index = node_key(MARKED.index)

    def for_missing_the_cache(orders: float) -> float:
        cards = Cardinalities({**ROWS, "orders": orders}, ALL, {}, {}, unique)
        seconds = []
        for rates in (CHEAP_WRITES, replace(CHEAP_WRITES, seek=0.0)):
            root = Pricing(cards, rates, AtHand()).root(MARKED, by_delta=True)
            (join,) = [g for g in root.group.walk() if g.key == node_key(MARKED.waiting)]
            seconds.append(price(join, Demand.OLD, frozenset({index}), building=False))
        return seconds[0] - seconds[1]

    assert for_missing_the_cache(5_000_000.0) > 2 * for_missing_the_cache(1_000_000.0) > 0


def test_an_index_is_of_no_use_where_nobody_asks() -> None:
    only = memo(MARKED, {"customer": Expected(1_500)}, AtHand(serves=1000.0))
    offered = {g.key for g in only.group.walk() if g.keepings}
    assert isinstance(MARKED, LookupJoin)
    inner = MARKED.looked_up
    assert isinstance(inner, LookupJoin)
    assert inner.index is not None
    assert node_key(inner.index) not in offered, "no order comes that would look up its customer"


@pytest.mark.parametrize("rows", [20_000.0, 200_000_000.0])
def test_an_index_has_neither_few_nor_very_many_rows(rows: float) -> None:
    cards = Cardinalities({**ROWS, "orders": rows, "customer": rows}, ALL, {}, {}, unique)
    root = Pricing(cards, CHEAP_WRITES, AtHand()).root(MARKED, by_delta=True)
    assert not indexes(MARKED) & {g.key for g in root.group.walk() if g.keepings}


def test_what_waits_takes_the_place_of_all_rows() -> None:
    """Once what it costs to find out is spread over many refreshes."""
    long = AtHand(serves=1000.0)
    found = choose(memo(MARKED, ALL, long), 1e12)
    assert waiting(MARKED) <= set(found.decisions)
    assert not set(found.decisions) & {node_key(x.rows) for x in MARKED.walk() if isinstance(x, LookupJoin)}
    assert found.seconds < choose(memo(TOP, ALL, long), 1e12).seconds


def test_it_is_of_no_use_where_nothing_comes_or_deletes_are_expected() -> None:
    assert not waiting(MARKED) & set(choose(memo(MARKED, {"lineitem": Expected(60_000)}), 1e12).decisions)
    deletes = {t: Expected(e.rows, 0.1) for t, e in ALL.items()}
    assert not waiting(MARKED) & set(choose(memo(MARKED, deletes), 1e12).decisions)


@pytest.mark.parametrize("budget", [0, 10**6, 10**7, 5 * 10**7, 2 * 10**8, 10**12])
@pytest.mark.parametrize("tables", [("lineitem",), ("customer",), ("orders", "customer"), tuple(ALL)])
def test_no_choice_is_cheaper(budget: int, tables: tuple[str, ...]) -> None:
    root = memo(MARKED, {t: ALL[t] for t in tables})
    sizes = {g.key: g.keepings[0].size for g in root.group.walk() if g.keepings}
    best = min(
        root.price(frozenset(kept))
        for n in range(len(sizes) + 1)
        for kept in combinations(sizes, n)
        if sum(sizes[k] for k in kept) <= budget
    )
    found = choose(root, budget)
    assert found.seconds == pytest.approx(best)
    assert root.price(frozenset(found.decisions)) == pytest.approx(best)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_prices_it(strategy: str) -> None:
    plan = plan_states(memo(MARKED, ALL), strategy, 10**9)
    assert plan.size <= 10**9
    assert all(c.reason for c in plan.choices)


def test_one_that_is_there_costs_nothing_to_build() -> None:
    assert isinstance(MARKED, LookupJoin)
    outer = node_key(MARKED.waiting)
    there = memo(MARKED, ALL, AtHand(frozenset({outer}), everything=False))
    built = {g.key: g.keepings[0].build for g in there.group.walk() if g.keepings}
    assert built[outer] == 0.0
    assert all(seconds > 0 for key, seconds in built.items() if key != outer)

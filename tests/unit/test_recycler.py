"""The cache's heuristic, computed by hand: seconds to make a state again, times its uses, for each byte.

Two inputs, `a` and `b`, come by before what is made of both, `c`. With 10 bytes each, `a` has a benefit of 6 / 10 and
`b` of 2 / 10. `c` has 15 bytes, and can be made from the two while these are cached: its benefit is its seconds / 15.
"""

from __future__ import annotations

from collections.abc import Collection

import pytest

from slackwater.algebra.lookups import Indexed, LookupJoin, Waiting
from slackwater.algebra.nodes import Rel, Scan
from slackwater.algebra.printer import node_key
from slackwater.execution.plan_shape import narrowed, rewritten, shaped
from slackwater.execution.state_planning import Facts, plan_next
from slackwater.planning.cardinality import Expected
from slackwater.planning.costing import AtHand
from slackwater.planning.memo import Demand, Group, Keeping, Way
from slackwater.planning.rates import Rates
from slackwater.planning.state_choice import Root
from slackwater.planning.strategies import plan_states
from tests.unit.test_plain_rules import NARROW, total


def group(key: str, seconds: float, size: int, *inputs: Group) -> Group:
    made = Way(seconds, (Demand.OLD,) * len(inputs))
    kept = Keeping(key, size, 0.0, lambda _: (Way(0.0, (Demand.NOTHING,) * len(inputs)),))
    return Group(key, key, inputs, lambda _: (made,), (kept,) if size else ())


def cached(own: float, budget: float, places: int = 1, there: Collection[str] = ()) -> set[str]:
    c = group("c", own, 15, group("a", 6.0, 10), group("b", 2.0, 10))
    root = Root(group("root", 1.0, 0, *(c,) * places), ((Demand.OLD, 0.0),))
    return set(plan_states(root, "recycler", budget, there=frozenset(there)).kept)


@pytest.mark.parametrize(("own", "budget", "places", "kept"), [
    (1.0, 35, 1, {"a", "b", "c"}),  # there is room for all
    (1.0, 20, 1, {"a", "b"}),       # both would have to go: 1/15 is less than (6/10 + 2/10) / 2
    (5.9, 20, 1, {"a", "b"}),       # 5.9/15 = 0.393
    (6.1, 20, 1, {"c"}),            # 6.1/15 = 0.407
    (2.9, 30, 1, {"a", "b"}),       # b alone would have to go, and 2.9/15 = 0.193
    (3.1, 30, 1, {"a", "c"}),       # 3.1/15 = 0.207
    (6.1, 14, 1, {"a"}),            # c does not fit at all, and a takes the place of b
    (0.9, 30, 2, {"a", "b"}),       # in two places c counts twice, and so do a and b below it
    (3.1, 30, 2, {"a", "c"}),
])  # fmt: skip
def test_what_stays_in_the_cache(own: float, budget: float, places: int, kept: set[str]) -> None:
    assert cached(own, budget, places) == kept


@pytest.mark.parametrize(("own", "there", "kept"), [
    (2.9, {"c"}, {"c"}),             # 10.9/15 = 0.727 while its inputs are not there: `a` does not push it out
    (0.5, {"c"}, {"a"}),             # 8.5/15 = 0.567 is less than 6/10, and more than the 2/10 of `b`, which came first
    (6.1, {"a", "b"}, {"c"}),        # as from nothing: both were updated, and came in again before `c`
    (5.9, {"a", "b", "c"}, {"c"}),   # too much for the budget: neither `b` nor then `a` gets in again beside `c`
])  # fmt: skip
def test_what_is_there_counts_until_it_is_pushed_out(own: float, there: set[str], kept: set[str]) -> None:
    assert cached(own, 20, there=there) == kept


def test_a_state_that_two_places_read_counts_twice() -> None:
    """`x` makes 3 seconds and 10 bytes, `y` 4 and 10: for one of them there is room."""

    def kept(places: int) -> set[str]:
        x, y = group("x", 3.0, 10), group("y", 4.0, 10)
        root = Root(group("root", 1.0, 0, *(x,) * places, y), ((Demand.OLD, 0.0),))
        return set(plan_states(root, "recycler", 10).kept)

    assert kept(places=1) == {"y"}
    assert kept(places=2) == {"x"}


ROWS = {"lines": 6_000_000, "orders": 1_500_000, "customers": 150_000}


def made_for(strategy: str) -> Rel:
    """The plan of a query over three tables, as a strategy gets it."""

    def unique(table: str) -> tuple[int, ...]:
        return () if table == "lines" else (0,)

    def rows(node: Rel) -> float:
        return float(max(ROWS[leaf.table] for leaf in node.walk() if isinstance(leaf, Scan)))

    plan = narrowed(rewritten(total("sum"), strategy, unique), strategy, rows, rows, unique)
    return shaped(plan, strategy, ROWS, unique, rows)


def test_the_recycler_selects_from_what_auto_selects_from() -> None:
    plan = made_for("recycler")
    assert plan == made_for("auto")
    assert any(isinstance(node, LookupJoin) for node in plan.walk())
    facts = Facts(plan, ROWS, {}, NARROW, lambda t: () if t == "lines" else (0,), {}, Rates())
    coming = {t: Expected(0.01 * n) for t, n in ROWS.items()}
    auto, recycler = (plan_next(facts, strategy, 10**12, coming, AtHand()) for strategy in ("auto", "recycler"))
    assert {c.key for c in recycler.choices} == {c.key for c in auto.choices}
    kinds = {type(node) for node in plan.keepable() if node_key(node) in recycler.kept}
    assert {Waiting, Indexed} <= kinds, "with room for all, all is kept"

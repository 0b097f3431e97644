"""States that are there stay where another choice is hardly cheaper, and go where they help nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slackwater.execution.state_planning import Situation
from slackwater.planning import staircase
from slackwater.planning.cardinality import Expected
from slackwater.planning.costing import AtHand
from slackwater.planning.memo import Demand, Group, Keeping, Way
from slackwater.planning.rates import Rates
from slackwater.planning.state_choice import Root
from slackwater.planning.strategies import LEFT_OUT, plan_states


def memo(one: float, two: float, third: float = 100.0, build: float = 0.0) -> Root:
    """A node that is read in 100 seconds, or faster from one of several states, of which the first is there."""

    def keeping(key: str, seconds: float, build: float) -> Keeping:
        return Keeping(key, 10, build, lambda _: (Way(seconds, (Demand.NOTHING,)),))

    leaf = Group("leaf", "leaf", (), lambda _: (Way(100.0),))
    lower = Group("two", "two", (leaf,), lambda d: (Way(0.0, (d,)),), (keeping("two", two, build),))
    upper = Group("one", "one", (lower,), lambda d: (Way(0.0, (d,)),), (keeping("one", one, 0.0),))
    top = Group("useless", "useless", (upper,), lambda d: (Way(0.0, (d,)),), (Keeping(
        "useless", 5, 0.0, lambda d: (Way(0.0, (d,)),)),))  # fmt: skip
    return Root(top, ((Demand.DELTA, 0.0),))


def kept(root: Root, there: set[str], budget: float = 1000.0) -> frozenset[str]:
    return plan_states(root, "auto", budget, there=frozenset(there)).kept


def test_a_choice_that_is_hardly_cheaper_is_not_made() -> None:
    assert kept(memo(one=20.0, two=19.5), {"one"}) == {"one"}
    assert kept(memo(one=20.0, two=19.5), set()) == {"two"}


def test_one_that_is_clearly_cheaper_is() -> None:
    assert kept(memo(one=20.0, two=15.0), {"one"}) == {"two"}


def test_what_must_be_built_first_has_to_be_worth_it() -> None:
    assert kept(memo(one=20.0, two=15.0, build=10.0), {"one"}) == {"one"}


def test_a_state_that_helps_nothing_goes() -> None:
    assert kept(memo(one=20.0, two=19.5), {"one", "useless"}) == {"one"}
    assert kept(memo(one=20.0, two=19.5), {"useless"}) == {"two"}


def test_states_stay_within_the_budget_only() -> None:
    assert kept(memo(one=20.0, two=19.5), {"one"}, budget=9.0) == frozenset()


def test_a_state_that_the_plan_does_not_know_is_no_reason_to_stay() -> None:
    assert kept(memo(one=20.0, two=19.5), {"of another plan"}) == {"two"}


def situation(free: float = 1e9, states: tuple[str, ...] = ("one",), **coming: float) -> Situation:
    return Situation("incremental", AtHand(frozenset(states)), free, {t: Expected(n) for t, n in coming.items()})


def test_a_plan_stays_good_while_the_situation_is_about_the_same() -> None:
    now = situation(orders=1000.0, lines=4000.0)
    assert now.like(situation(orders=1300.0, lines=3000.0))
    assert now.like(situation(free=1.3e9, orders=1000.0, lines=4000.0))


def test_a_plan_is_made_anew_for_another_situation() -> None:
    now = situation(orders=1000.0, lines=4000.0)
    assert not now.like(situation(orders=1000.0))
    assert not now.like(situation(orders=1500.0, lines=4000.0))
    assert not now.like(situation(free=2e9, orders=1000.0, lines=4000.0))
    assert not now.like(situation(states=(), orders=1000.0, lines=4000.0))
    assert not now.like(replace(now, plan="of another join order"))
    assert replace(now, rows={"orders": 1e6}).like(replace(now, rows={"orders": 1.3e6}))
    assert not replace(now, rows={"orders": 1e6}).like(replace(now, rows={"orders": 2e6}))
    deleting = replace(now, coming={**now.coming, "orders": Expected(1000.0, 0.5)})
    assert not now.like(deleting)


def test_a_plan_is_made_anew_when_the_rates_were_measured_anew() -> None:
    before = replace(situation(lines=5.0), rates=Rates())
    assert before.like(replace(situation(lines=5.0), rates=Rates()))
    assert not before.like(replace(situation(lines=5.0), rates=Rates(write=1.0)))


def test_a_choice_among_too_many_sizes_says_that_some_were_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def leaf(name: str) -> Group:
        kept = Keeping(name, 10, 0.0, lambda _: (Way(1.0),))
        return Group(name, name, (), lambda _: (Way(5.0),), (kept,))

    both = Group("both", "both", (leaf("a"), leaf("b")), lambda d: (Way(0.0, (d, d)),))
    root = Root(both, ((Demand.DELTA, 0.0),))
    assert LEFT_OUT not in plan_states(root, "auto", 20).next_best
    monkeypatch.setattr(staircase, "MOST_POINTS", 1)
    told = plan_states(root, "auto", 20)
    assert told.next_best.endswith(LEFT_OUT)
    assert LEFT_OUT not in plan_states(root, "incremental", 20).next_best, "it keeps all there is"

"""One budget, many views: no division is cheaper than the one that is found."""

from __future__ import annotations

import itertools
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.planning.division import divide, equal_split
from slackwater.planning.staircase import Staircase, best, flat, shift

COSTS = st.integers(0, 60).map(float)


@st.composite
def staircases(draw: st.DrawFn) -> Staircase:
    """A view that costs `most` with nothing kept, and less with one of some sets of states."""
    steps = draw(st.lists(st.tuples(st.integers(1, 40), COSTS), max_size=4))
    made = [flat(float(draw(st.integers(30, 90))))]
    made += [shift(flat(0.0), size, cost, f"s{i}", math.inf) for i, (size, cost) in enumerate(steps)]
    return best(made, math.inf)


@settings(max_examples=300, deadline=None)
@given(st.lists(staircases(), min_size=1, max_size=4), st.integers(-5, 120))
def test_no_division_is_cheaper(views: list[Staircase], budget: int) -> None:
    named = {f"v{i}": s for i, s in enumerate(views)}
    found = divide(named, budget)
    assert set(found) == set(named)
    assert sum(s.bytes for s in found.values()) <= max(budget, 0)
    cheapest = min(
        sum(p.seconds for p in points)
        for points in itertools.product(*(s.points() for s in views))
        if sum(p.bytes for p in points) <= max(budget, 0)
    )
    assert sum(s.seconds for s in found.values()) == cheapest
    assert cheapest <= sum(s.seconds for s in equal_split(named, budget).values())


def test_ten_views_of_different_worth_beat_an_equal_split() -> None:
    views = {
        f"v{i}": best([flat(10.0), shift(flat(0.0), 100 * (i + 1), 9.0 - i, "s", math.inf)], math.inf)
        for i in range(10)
    }
    budget = 2_000
    divided, equal = divide(views, budget), equal_split(views, budget)
    assert sum(s.seconds for s in divided.values()) < sum(s.seconds for s in equal.values())
    assert sum(s.bytes for s in divided.values()) <= budget

"""The cache's heuristic, computed by hand: seconds to make a state again, times its uses, for each byte.

Two inputs, `a` and `b`, come by before what is made of both, `c`. With 10 bytes each, `a` has a benefit of 6 / 10 and
`b` of 2 / 10. `c` has 15 bytes, and can be made from the two while these are cached: its benefit is its seconds / 15.
"""

from __future__ import annotations

import pytest

from slackwater.planning.memo import Demand, Group, Keeping, Way
from slackwater.planning.state_choice import Root
from slackwater.planning.strategies import plan_states


def group(key: str, seconds: float, size: int, *inputs: Group) -> Group:
    made = Way(seconds, (Demand.OLD,) * len(inputs))
    kept = Keeping(key, size, 0.0, lambda _: (Way(0.0, (Demand.NOTHING,) * len(inputs)),))
    return Group(key, key, inputs, lambda _: (made,), (kept,) if size else ())


def cached(own: float, budget: float, places: int = 1) -> set[str]:
    c = group("c", own, 15, group("a", 6.0, 10), group("b", 2.0, 10))
    root = Root(group("root", 1.0, 0, *(c,) * places), ((Demand.OLD, 0.0),))
    return set(plan_states(root, "recycler", budget).kept)


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


def test_a_state_that_two_places_read_counts_twice() -> None:
    """`x` makes 3 seconds and 10 bytes, `y` 4 and 10: for one of them there is room."""

    def kept(places: int) -> set[str]:
        x, y = group("x", 3.0, 10), group("y", 4.0, 10)
        root = Root(group("root", 1.0, 0, *(x,) * places, y), ((Demand.OLD, 0.0),))
        return set(plan_states(root, "recycler", 10).kept)

    assert kept(places=1) == {"y"}
    assert kept(places=2) == {"x"}

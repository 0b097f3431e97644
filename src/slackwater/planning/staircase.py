"""Staircases: the least cost for every amount of memory, kept as the few points where it changes.

A staircase is the Pareto front of (bytes, seconds): bytes rise, seconds fall. Nothing is rounded to units of memory, so
what is found is exact. Three operations are enough for a dynamic program over a plan:

    shift    pay some bytes and seconds for a decision
    add      two subtrees side by side share the memory: a min-plus merge
    best     the cheaper of several ways, at every amount of memory

Every point remembers how it came about, so that the decisions behind it can be read off afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Decisions = tuple[str, ...]

MOST_POINTS = 2_000
"""Beyond so many points a staircase is thinned, and says so; plans of real queries stay far below."""


@dataclass(frozen=True, slots=True)
class Point:
    """One step of a staircase: with so many bytes of state it costs so many seconds.

    Where the staircase is not `exact`, a step that was left out may be better.
    """

    bytes: int
    seconds: float
    decisions: Decisions
    exact: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Staircase:
    """The least seconds for every number of bytes.

    Attributes:
        sizes: bytes, strictly rising.
        costs: seconds, strictly falling.
        trace: the decisions behind a point.
        exact: no point was left out to save time.
    """

    sizes: NDArray[np.int64]
    costs: NDArray[np.float64]
    trace: Callable[[int], Decisions] = field(repr=False)
    exact: bool = True

    def __len__(self) -> int:
        return len(self.sizes)

    def points(self) -> tuple[Point, ...]:
        """All steps, cheapest memory first."""
        return tuple(self._point(i) for i in range(len(self)))

    def _point(self, i: int) -> Point:
        return Point(int(self.sizes[i]), float(self.costs[i]), self.trace(i), self.exact)

    def within(self, limit: float) -> Staircase:
        """The steps that take no more bytes."""
        fits = int(np.searchsorted(self.sizes, limit, side="right"))
        return Staircase(self.sizes[:fits], self.costs[:fits], self.trace, self.exact)

    def at(self, budget: float) -> Point | None:
        """The best that fits a budget; None where nothing does."""
        found = int(np.searchsorted(self.sizes, budget, side="right")) - 1
        return None if found < 0 else self._point(found)


def flat(seconds: float, decisions: Decisions = ()) -> Staircase:
    """A cost that no memory changes."""
    return Staircase(np.zeros(1, np.int64), np.full(1, seconds), lambda _: decisions)


def shift(stairs: Staircase, size: int, seconds: float, decision: str, limit: float) -> Staircase:
    """The same steps after a decision that takes bytes and seconds."""
    fits = int(np.searchsorted(stairs.sizes, limit - size, side="right"))
    return Staircase(stairs.sizes[:fits] + size, stairs.costs[:fits] + seconds,
                     lambda i: (*stairs.trace(i), decision), stairs.exact)  # fmt: skip


def add(one: Staircase, two: Staircase, limit: float) -> Staircase:
    """Both at once: every way to divide the memory between them, the useless ones left out."""
    if len(two) == 1 and two.sizes[0] == 0 and not two.trace(0):
        return Staircase(one.sizes, one.costs + two.costs[0], one.trace, one.exact and two.exact)
    if len(one) == 1 and one.sizes[0] == 0 and not one.trace(0):
        return Staircase(two.sizes, two.costs + one.costs[0], two.trace, one.exact and two.exact)
    one, two = _thinned(one), _thinned(two)
    sizes = np.add.outer(one.sizes, two.sizes).ravel()
    costs = np.add.outer(one.costs, two.costs).ravel()
    width = len(two)

    def trace(i: int) -> Decisions:
        return one.trace(i // width) + two.trace(i % width)

    return _front(sizes, costs, trace, limit, one.exact and two.exact)


def best(stairs: Iterable[Staircase], limit: float) -> Staircase:
    """At every amount of memory the cheapest of several; the earlier one where they are equal."""
    found = [s for s in stairs if len(s)]
    if len(found) == 1:
        return found[0]
    if not found:
        return Staircase(np.zeros(0, np.int64), np.zeros(0), lambda _: ())
    starts = np.cumsum([0, *(len(s) for s in found)])

    def trace(i: int) -> Decisions:
        which = int(np.searchsorted(starts, i, side="right")) - 1
        return found[which].trace(i - int(starts[which]))

    sizes, costs = np.concatenate([s.sizes for s in found]), np.concatenate([s.costs for s in found])
    return _front(sizes, costs, trace, limit, all(s.exact for s in found))


def _front(
    sizes: NDArray[np.int64], costs: NDArray[np.float64], trace: Callable[[int], Decisions], limit: float, exact: bool
) -> Staircase:
    """Only the points that no other one beats in both bytes and seconds."""
    order = np.lexsort((costs, sizes))
    order = order[sizes[order] <= limit]
    falling = costs[order]
    before = np.concatenate(([np.inf], np.minimum.accumulate(falling)[:-1])) if len(order) else falling
    kept = order[falling < before]
    return Staircase(sizes[kept], costs[kept], lambda i: trace(int(kept[i])), exact)


def _thinned(stairs: Staircase) -> Staircase:
    if len(stairs) <= MOST_POINTS:
        return stairs
    kept = np.unique(np.linspace(0, len(stairs) - 1, MOST_POINTS).astype(np.int64))
    return Staircase(stairs.sizes[kept], stairs.costs[kept], lambda i: stairs.trace(int(kept[i])), exact=False)

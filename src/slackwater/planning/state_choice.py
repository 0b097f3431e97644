"""Which states to keep: a dynamic program over the memo, exact for every budget at once.

For each group and each demand the program finds a staircase: the least seconds for every number of bytes of state in
that group and below. A group's staircase is the best over its ways, with and without a state of its own; a way's is its
cost plus those of its inputs, side by side. This is the recursion over D(m) and F(m) of intermittent query processing,
with m left whole: one pass gives the answer for all budgets, and nothing is rounded.

A node is asked for its delta, its old and its new output in one run, and one set of states must serve them all.
That is why a demand is a set: adding the staircases of the single demands would let each have states of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from slackwater.planning.memo import Demand, Group, Way
from slackwater.planning.staircase import Point, Staircase, add, best, flat, shift


@dataclass(slots=True)
class StateChoice:
    """Solves one memo within a limit of bytes."""

    limit: float = math.inf
    _found: dict[tuple[str, Demand], Staircase] = field(default_factory=dict)

    def stairs(self, group: Group, demand: Demand) -> Staircase:
        """The least seconds to answer a demand, for every number of bytes."""
        if demand is Demand.NOTHING:
            return flat(0.0)
        slot = (group.key, demand)
        if slot not in self._found:
            options = [self._way(group, way) for way in group.ways(demand)]
            options += [shift(self._way(group, way), kept.size, kept.share, kept.key, self.limit)
                        for kept in group.keepings if kept.size <= self.limit
                        for way in kept.ways(demand)]  # fmt: skip
            self._found[slot] = best(options, self.limit)
        return self._found[slot]

    def _way(self, group: Group, way: Way) -> Staircase:
        total = flat(way.seconds)
        for child, demand in zip(group.inputs, way.demands, strict=True):
            if demand is not Demand.NOTHING:
                total = add(total, self.stairs(child, demand), self.limit)
        return total


@dataclass(slots=True)
class Pricer:
    """Prices given sets of states; what two sets have in common is priced once."""

    _found: dict[tuple[str, Demand, frozenset[str], bool], float] = field(default_factory=dict)
    _states: dict[str, frozenset[str]] = field(default_factory=dict)

    def price(self, group: Group, demand: Demand, kept: frozenset[str], *, building: bool = True) -> float:
        """The least seconds to answer a demand with exactly these states; a state that serves nothing costs nothing."""
        if demand is Demand.NOTHING:
            return 0.0
        slot = (group.key, demand, kept & self._below(group), building)
        if slot not in self._found:
            self._found[slot] = self._price(group, demand, slot[2], building)
        return self._found[slot]

    def _price(self, group: Group, demand: Demand, kept: frozenset[str], building: bool) -> float:
        found = next((k for k in group.keepings if k.key in kept), None)
        ways = group.ways(demand) if found is None else found.ways(demand)
        extra = found.share if found is not None and building else 0.0

        def cost(way: Way) -> float:
            below = zip(group.inputs, way.demands, strict=True)
            return way.seconds + sum(self.price(g, d, kept, building=building) for g, d in below)

        return extra + min((cost(way) for way in ways), default=math.inf)

    def demanded(self, group: Group, demand: Demand, kept: frozenset[str], found: dict[str, Demand]) -> None:
        """Put down what the cheapest ways ask of each node that has no state."""
        if demand is Demand.NOTHING:
            return
        state = next((k for k in group.keepings if k.key in kept), None)
        if state is None:
            found[group.key] = found.get(group.key, Demand.NOTHING) | demand

        def cost(way: Way) -> float:
            below = zip(group.inputs, way.demands, strict=True)
            return way.seconds + sum(self.price(g, d, kept, building=False) for g, d in below)

        way = min((group if state is None else state).ways(demand), key=cost)
        for child, asked in zip(group.inputs, way.demands, strict=True):
            self.demanded(child, asked, kept, found)

    def _below(self, group: Group) -> frozenset[str]:
        """The states that a group and all below it can have."""
        if group.key not in self._states:
            own = frozenset(k.key for k in group.keepings)
            self._states[group.key] = own.union(*(self._below(g) for g in group.inputs))
        return self._states[group.key]


def price(group: Group, demand: Demand, kept: frozenset[str], *, building: bool = True) -> float:
    """The least seconds to answer a demand with exactly these states."""
    return Pricer().price(group, demand, kept, building=building)


@dataclass(frozen=True, slots=True)
class Root:
    """How a view's change can be asked for: by the delta of its plan, or by comparing full outputs."""

    group: Group
    demands: tuple[tuple[Demand, float], ...]
    """What to ask of the plan's root, and what it costs on top of the answer."""
    pricer: Pricer = field(default_factory=Pricer, compare=False, repr=False)

    def stairs(self, limit: float = math.inf) -> Staircase:
        """The least seconds of a refresh for every number of bytes."""
        solver = StateChoice(limit)
        return best((add(solver.stairs(self.group, d), flat(extra), limit) for d, extra in self.demands), limit)

    def price(self, kept: frozenset[str], *, building: bool = True) -> float:
        """The least seconds of a refresh with exactly these states."""
        return min(self.pricer.price(self.group, d, kept, building=building) + extra for d, extra in self.demands)

    def demanded(self, kept: frozenset[str]) -> dict[str, Demand]:
        """What a refresh with these states asks of the nodes that have none."""
        found: dict[str, Demand] = {}
        self.pricer.demanded(self.group, self.demand(kept), kept, found)
        return found

    def demand(self, kept: frozenset[str]) -> Demand:
        """Which of the demands is the cheaper with these states."""
        return min(self.demands, key=lambda x: self.pricer.price(self.group, x[0], kept, building=False) + x[1])[0]


def choose(root: Root, budget: float) -> Point:
    """The states to keep within a budget. Keeping nothing always fits a budget of zero or more."""
    found = root.stairs(max(budget, 0.0)).at(max(budget, 0.0))
    return found if found is not None else Point(0, root.price(frozenset()), ())

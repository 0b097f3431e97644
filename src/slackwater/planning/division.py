"""One budget for many views: divided by their staircases, exactly.

Each view has a staircase of its own: what its next refresh costs for every number of bytes. Side by side they add up,
as the two inputs of a join do, so the best division of the budget is a min-plus merge of all of them. An equal split is
one of the divisions that it looks at, and so is never better.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slackwater.planning.staircase import Staircase, add, flat


@dataclass(frozen=True, slots=True)
class Share:
    """What one view gets: bytes for its states, which states these are, and what its next refresh then costs."""

    bytes: int
    seconds: float
    states: frozenset[str]


def divide(stairs: Mapping[str, Staircase], budget: float) -> dict[str, Share]:
    """Divide a budget among views so that their next refreshes together cost least."""
    budget = max(budget, 0.0)
    total = flat(0.0)
    for name, own in stairs.items():
        total = add(total, _named(name, own), budget)
    found = total.at(budget)
    chosen: dict[str, set[str]] = {name: set() for name in stairs}
    for decision in found.decisions if found is not None else ():
        name, _, key = decision.partition("\0")
        chosen[name].add(key)
    return {name: _share(stairs[name], frozenset(keys)) for name, keys in chosen.items()}


def equal_split(stairs: Mapping[str, Staircase], budget: float) -> dict[str, Share]:
    """The plain alternative: every view gets the same bytes."""
    each = max(budget, 0.0) / max(len(stairs), 1)
    found = {name: own.at(each) for name, own in stairs.items()}
    return {name: Share(p.bytes, p.seconds, frozenset(p.decisions)) for name, p in found.items() if p is not None}


def _named(name: str, own: Staircase) -> Staircase:
    """The same steps, with decisions that say whose they are."""
    return Staircase(own.sizes, own.costs, lambda i: tuple(f"{name}\0{d}" for d in own.trace(i)), own.exact)


def _share(own: Staircase, states: frozenset[str]) -> Share:
    for point in own.points():
        if frozenset(point.decisions) == states:
            return Share(point.bytes, point.seconds, states)
    raise AssertionError("a share is a point of its view's staircase")

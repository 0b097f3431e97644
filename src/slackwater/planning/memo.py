"""The memo: for every node of a plan, the ways to produce what is asked of it, and what each way asks of the inputs.

A refresh asks a node for up to three things: its *delta*, its *old* output and its *new* output; and the side of a join
that is looked up by key, to be *looked up* at the new version by the rows that came, or to be *sought* by all rows of
the other side, at any version. A way says what it costs on top of its inputs and what it asks of each of them. Whether
the node's own output was kept as a state decides which ways there are. The state choice is the first client of the
memo; other rules may add ways to the same groups.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Flag


class Demand(Flag):
    """What a node is asked for."""

    NOTHING = 0
    DELTA = 1
    OLD = 2
    NEW = 4
    LOOKUP = 8
    SEEK = 16


@dataclass(frozen=True, slots=True)
class Way:
    """One way to answer a demand.

    Attributes:
        seconds: what it costs, without the inputs.
        demands: what it asks of each input.
    """

    seconds: float
    demands: tuple[Demand, ...] = ()


Ways = Callable[[Demand], tuple[Way, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Keeping:
    """One configuration of a node's state: what it takes to have it, and the ways it opens.

    Attributes:
        key: the name of the decision; the node's own key where there is one kind of state only.
        size: bytes, while the query is inactive.
        build: seconds to make it now; nothing where it is there already.
        ways: the ways to answer a demand with it.
        serves: how many refreshes it is expected to serve: each bears its part of what it cost.
    """

    key: str
    size: int
    build: float
    ways: Ways
    serves: float = 1.0

    @property
    def share(self) -> float:
        """The part of the building that the next refresh bears."""
        return self.build / self.serves


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """One node of a plan in the memo.

    Attributes:
        key: the node's key.
        label: the node, for people.
        inputs: the groups below.
        ways: how to answer without a state of its own.
        keepings: the states it can have, one of which is chosen at most.
    """

    key: str
    label: str
    inputs: tuple[Group, ...]
    ways: Ways
    keepings: tuple[Keeping, ...] = ()

    def walk(self) -> list[Group]:
        """This group and all below it, parents first."""
        return [self, *(g for child in self.inputs for g in child.walk())]

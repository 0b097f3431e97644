"""Program nodes that say where rows are, not what they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from slackwater.algebra.joins import MatchJoin
from slackwater.algebra.nodes import Join, Linearity, Rel, Schema


@dataclass(frozen=True, slots=True)
class Gather(Rel):
    """The same rows in one partition.

    Attributes:
        child: whose rows.
        parallel: the rows are made by many tasks and then moved; otherwise one task makes them all.
    """

    child: Rel
    parallel: bool = False
    linearity: ClassVar[Linearity] = Linearity.LINEAR
    child_names: ClassVar[tuple[str, ...]] = ("child",)

    @property
    def schema(self) -> Schema:
        """The input's columns."""
        return self.child.schema


@dataclass(frozen=True, slots=True)
class LocalJoin(Join):
    """A join by key of two sides that are in one task: the one that would be sent to every task is hashed there."""


@dataclass(frozen=True, slots=True)
class LocalMatch(MatchJoin):
    """A match join by key of two sides that are in one task."""

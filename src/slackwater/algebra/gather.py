"""A program node that says where rows are, not what they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from slackwater.algebra.nodes import Linearity, Rel, Schema


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

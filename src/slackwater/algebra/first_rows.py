"""The first rows of an input and some more, kept so that an ORDER BY … LIMIT need not read its input again.

    τ[k, limit, offset](R)  =  τ[k, limit, offset](First[k, need, most](R)),    need = limit + offset ≤ most

A *prefix* of R is a number of first rows in the order, which is total. `First` gives the longest it may, `most` rows.
What is kept of it may be any prefix of at least `need` rows, or all rows of R: to an ordering above they are all one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from slackwater.algebra.nodes import Linearity, Rel, Schema, SortKey, require, require_known

REFILL = "SLACKWATER_FIRST_ROWS_GONE"
"""What a program raises where too many of the first rows went; the refresh then recomputes instead."""


class FirstRowsGone(Exception):
    """The interpreter's way to say so."""


@dataclass(frozen=True, slots=True)
class First(Rel):
    """The first `most` rows of an input; `need` of them must be there for what stands above."""

    child: Rel
    keys: tuple[SortKey, ...]
    need: int
    most: int
    linearity: ClassVar[Linearity] = Linearity.KEYED
    child_names: ClassVar[tuple[str, ...]] = ("child",)

    def __post_init__(self) -> None:
        """Keys read only the input; there is room for what is needed."""
        require_known(tuple(k.expr for k in self.keys), self.child.schema, "a sort key")
        require(0 < self.need <= self.most, "I7", "too few rows are kept for a LIMIT")
        require(not self.child.weighted, "I8", "an ordering reads a plain bag: consolidate its input first")
        Rel.__post_init__(self)

    @property
    def plain_inputs(self) -> tuple[int, ...]:
        """Its input."""
        return (0,)

    @property
    def schema(self) -> Schema:
        """The input's columns."""
        return self.child.schema

    @property
    def weighted(self) -> bool:
        """The chosen rows are a plain bag."""
        return False


@dataclass(frozen=True, slots=True)
class FirstChange(Rel):
    """A prefix of the new input, from a prefix of the old one and the input's change.

    Rows that come are sorted in as far as the old prefix reaches: behind its last row there may be rows that nobody has
    seen. A prefix of fewer rows than are needed is all there is, so everything that comes belongs to it.
    """

    old: Rel
    change: Rel
    first: First
    child_names: ClassVar[tuple[str, ...]] = ("old", "change")

    @property
    def schema(self) -> Schema:
        """The input's columns."""
        return self.first.schema

    @property
    def weighted(self) -> bool:
        """A plain bag."""
        return False

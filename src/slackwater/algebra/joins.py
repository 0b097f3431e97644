"""Joins that ask whether a row has a match: semi, anti, existence and outer joins.

For a fixed right side a match join is linear in its left side, whatever the left side's weights. It is not linear in
the right side: a second match changes nothing, and the loss of the last one changes everything. So the side that is
asked for matches must be a plain bag (I9).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from slackwater.algebra.expressions import Expr
from slackwater.algebra.nodes import Field, Linearity, Rel, Schema, require, require_known

SEMI, ANTI, EXISTS = "semi", "anti", "exists"
LEFT, RIGHT, FULL = "left", "right", "full"


@dataclass(frozen=True, slots=True)
class EquiPair:
    """Two expressions that a condition wants to be equal, one over each side."""

    left: Expr
    right: Expr
    nulls_match: bool


@dataclass(frozen=True, slots=True)
class KeyedJoin(Rel):
    """What match joins and outer joins have in common: two sides without a common column, and a condition."""

    left: Rel
    right: Rel
    condition: Expr
    kind: str
    kinds: ClassVar[tuple[str, ...]] = ()
    linearity: ClassVar[Linearity] = Linearity.KEYED
    child_names: ClassVar[tuple[str, ...]] = ("left", "right")

    def __post_init__(self) -> None:
        """Sides have no column in common, the condition reads only them, and the asked side is a plain bag."""
        require(self.kind in self.kinds, "I9", f"no such kind of {type(self).__name__}: {self.kind}")
        common = set(self.left.names) & set(self.right.names)
        require(not common, "I1", f"both sides of a join have the columns {sorted(common)}")
        require_known((self.condition,), self.left.schema + self.right.schema, "the join condition")
        for at in self.plain_inputs:
            require(not self.children[at].weighted, "I9", "matches are looked for in a plain bag: consolidate it first")
        Rel.__post_init__(self)

    @property
    def keeps_left(self) -> bool:
        """Whether the left rows' match status shows in the output."""
        return self.kind != RIGHT

    @property
    def keeps_right(self) -> bool:
        """Whether the right rows' match status shows in the output."""
        return self.kind in (RIGHT, FULL)

    @property
    def plain_inputs(self) -> tuple[int, ...]:
        """The sides in which matches are looked for."""
        return (0,) * self.keeps_right + (1,) * self.keeps_left

    @property
    def rereads(self) -> tuple[tuple[Rel, tuple[Rel, ...]], ...]:
        """A side is read when the other changes and, where matches are looked for in it, when it changes itself."""
        both = (self.left, self.right)
        return (
            (self.left, both if self.keeps_right else (self.right,)),
            (self.right, both if self.keeps_left else (self.left,)),
        )

    @property
    def weighted(self) -> bool:
        """The weights are those of the sides that are not asked for matches."""
        return any(child.weighted for at, child in enumerate(self.children) if at not in self.plain_inputs)

    @property
    def equi_pairs(self) -> tuple[EquiPair, ...]:
        """The equalities among the condition's terms, each with one side's columns on one side."""
        left, right = set(self.left.names), set(self.right.names)
        found = []
        for term in self.condition.conjuncts():
            if term.op not in ("=", "<=>") or len(term.args) != 2 or not all(a.inputs for a in term.args):
                continue
            a, b = term.args
            if a.inputs <= left and b.inputs <= right:
                found.append(EquiPair(a, b, term.op == "<=>"))
            elif a.inputs <= right and b.inputs <= left:
                found.append(EquiPair(b, a, term.op == "<=>"))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class MatchJoin(KeyedJoin):
    """Left rows that have a match (semi), that have none (anti), or all of them with a flag that says so (exists)."""

    flag: str = ""
    broadcast: bool = field(default=False, compare=False)
    kinds: ClassVar[tuple[str, ...]] = (SEMI, ANTI, EXISTS)

    def __post_init__(self) -> None:
        """Only an existence join has a flag."""
        require(bool(self.flag) == (self.kind == EXISTS), "I9", "an existence join, and no other, names its flag")
        KeyedJoin.__post_init__(self)

    @property
    def schema(self) -> Schema:
        """Left columns, and the flag."""
        return self.left.schema + ((Field(self.flag, "boolean"),) if self.flag else ())


@dataclass(frozen=True, slots=True)
class OuterJoin(KeyedJoin):
    """All pairs that match, and the rows of the kept sides that have no match, padded with NULLs."""

    kinds: ClassVar[tuple[str, ...]] = (LEFT, RIGHT, FULL)

    @property
    def schema(self) -> Schema:
        """Left columns, then right ones."""
        return self.left.schema + self.right.schema


@dataclass(frozen=True, slots=True)
class Support(Rel):
    """Every row that occurs with any weight, as a plain bag; how often it occurs means nothing."""

    child: Rel
    child_names: ClassVar[tuple[str, ...]] = ("child",)

    @property
    def schema(self) -> Schema:
        """The input's columns."""
        return self.child.schema

    @property
    def weighted(self) -> bool:
        """Never: weights are forgotten."""
        return False

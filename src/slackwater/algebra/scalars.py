"""Filters that compare with the one row of a scalar subquery."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from slackwater.algebra.expressions import Expr
from slackwater.algebra.nodes import (
    Aggregate,
    Expand,
    Filter,
    Join,
    Linearity,
    Project,
    Rel,
    Scan,
    Schema,
    TopK,
    require,
    require_known,
)  # fmt: skip


def has_one_row(rel: Rel) -> bool:
    """Whether a relation of a query has exactly one row, whatever its tables hold."""
    if isinstance(rel, Aggregate):
        return not rel.groups
    if isinstance(rel, Project):
        return has_one_row(rel.child)
    return isinstance(rel, Join) and rel.condition is None and has_one_row(rel.left) and has_one_row(rel.right)


def _may_have_other_rows(rel: Rel) -> bool:
    """Whether a node of a query could have no row or several; inputs and steps of a program are taken at their word."""
    while isinstance(rel, Project):
        rel = rel.child
    return isinstance(rel, Scan | Filter | Expand | TopK) or (isinstance(rel, Aggregate) and bool(rel.groups))


@dataclass(frozen=True, slots=True)
class ScalarFilter(Rel):
    """The rows of `child` for which the predicate is true; it also reads the columns of `scalar`, which has one row."""

    child: Rel
    scalar: Rel
    predicate: Expr
    linearity: ClassVar[Linearity] = Linearity.BILINEAR
    child_names: ClassVar[tuple[str, ...]] = ("child", "scalar")

    def __post_init__(self) -> None:
        """The sides have no column in common, and the predicate reads only them."""
        both = self.child.schema + self.scalar.schema
        require(len({f.name for f in both}) == len(both), "I1", "a scalar subquery repeats a column of its query")
        require_known((self.predicate,), both, "the predicate")
        require(not self.scalar.weighted, "I8", "a scalar is one plain row: consolidate it first")
        require(not _may_have_other_rows(self.scalar), "I11", "a scalar subquery must have exactly one row")
        Rel.__post_init__(self)

    @property
    def plain_inputs(self) -> tuple[int, ...]:
        """The scalar."""
        return (1,)

    @property
    def schema(self) -> Schema:
        """The filtered input's columns."""
        return self.child.schema

    @property
    def weighted(self) -> bool:
        """As the filtered input: the scalar is one plain row."""
        return self.child.weighted


@dataclass(frozen=True, slots=True)
class Flip(Rel):
    """A program node: rows of `child` that pass with the new scalar only (+1) or with the old one only (−1)."""

    child: Rel
    old: Rel
    new: Rel
    predicate: Expr
    child_names: ClassVar[tuple[str, ...]] = ("child", "old", "new")

    @property
    def schema(self) -> Schema:
        """The input's columns."""
        return self.child.schema

    @property
    def weighted(self) -> bool:
        """Always."""
        return True

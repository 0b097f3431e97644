"""Relations made from expressions: rows generated from a row (explode and its kin), and constant rows (VALUES)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from slackwater.algebra.expressions import Expr
from slackwater.algebra.nodes import Linearity, Rel, Schema, require, require_known


@dataclass(frozen=True, slots=True)
class Generate(Rel):
    """Each input row once for every row that a deterministic generator makes of it: linear.

    Attributes:
        child: the input.
        generator: a call such as `explode(xs)`.
        fields: the generated columns.
        kept: the input's columns that are handed on.
        outer: a row of which the generator makes nothing is kept once, with NULLs.
    """

    child: Rel
    generator: Expr
    fields: Schema
    kept: tuple[str, ...]
    outer: bool = False
    linearity: ClassVar[Linearity] = Linearity.LINEAR
    child_names: ClassVar[tuple[str, ...]] = ("child",)

    def __post_init__(self) -> None:
        """The generator and the kept columns read only the input."""
        require_known((self.generator,), self.child.schema, "a generator")
        missing = set(self.kept) - set(self.child.names)
        require(not missing, "I2", f"a generator hands on {sorted(missing)}, which its input does not have")
        Rel.__post_init__(self)

    @property
    def schema(self) -> Schema:
        """Kept columns, then generated ones."""
        types = {f.name: f for f in self.child.schema}
        return tuple(types[name] for name in self.kept) + self.fields


@dataclass(frozen=True, slots=True)
class Values(Rel):
    """Constant rows. With no columns and one row it is what a SELECT without FROM reads."""

    fields: Schema
    rows: tuple[tuple[Expr, ...], ...]
    linearity: ClassVar[Linearity] = Linearity.LEAF

    def __post_init__(self) -> None:
        """Every row is as wide as the output and made of constants."""
        for row in self.rows:
            require(len(row) == len(self.fields), "I4", "constant rows differ in width")
            require(not any(cell.inputs for cell in row), "I2", "a constant row reads a column")
        Rel.__post_init__(self)

    @property
    def schema(self) -> Schema:
        """The declared columns."""
        return self.fields

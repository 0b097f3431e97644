"""The operators: frozen nodes with a derived schema. An illegal node cannot be built.

Two families share one base class. *Query* nodes say what a view means. *Program* nodes are what the delta rules add:
inputs bound to a version, negation, semi-joins on touched keys, and partial aggregates. Both denote Z-sets: rows with
integer weights. `weighted` tells whether weights other than +1 can occur; where it is false no weight column is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from slackwater.algebra.aggregates import AggCall, Combine
from slackwater.algebra.expressions import Expr, col
from slackwater.algebra.relation import Field as Field
from slackwater.algebra.relation import IllegalNode as IllegalNode
from slackwater.algebra.relation import Linearity as Linearity
from slackwater.algebra.relation import Rel as Rel
from slackwater.algebra.relation import Schema as Schema
from slackwater.algebra.relation import require as require
from slackwater.algebra.relation import require_known as require_known


@dataclass(frozen=True, slots=True)
class Scan(Rel):
    """A base table; `positions` says which of the table's columns are read.

    In a program `at` says when: "old" and "new" are snapshots, "delta" the changes between them.
    """

    table: str
    fields: Schema
    positions: tuple[int, ...]
    at: str = ""
    has_weights: bool = False
    linearity: ClassVar[Linearity] = Linearity.LEAF

    def __post_init__(self) -> None:
        """A scan names a position for each column."""
        require(len(self.fields) == len(self.positions), "I3", "a scan needs one position for each column")
        require(self.at in ("", "old", "new", "delta"), "I3", f"no such time: {self.at}")
        Rel.__post_init__(self)

    @property
    def schema(self) -> Schema:
        """The columns read."""
        return self.fields

    @property
    def weighted(self) -> bool:
        """Only changes can have weights: a snapshot is a plain bag."""
        return self.has_weights


@dataclass(frozen=True, slots=True)
class Filter(Rel):
    """The rows for which the predicate is true."""

    child: Rel
    predicate: Expr
    linearity: ClassVar[Linearity] = Linearity.LINEAR
    child_names: ClassVar[tuple[str, ...]] = ("child",)

    def __post_init__(self) -> None:
        """The predicate reads only the input."""
        require_known((self.predicate,), self.child.schema, "the predicate")
        Rel.__post_init__(self)

    @property
    def schema(self) -> Schema:
        """The input's columns."""
        return self.child.schema


@dataclass(frozen=True, slots=True)
class Item:
    """A named output expression."""

    name: str
    expr: Expr


@dataclass(frozen=True, slots=True)
class Project(Rel):
    """Computed columns."""

    child: Rel
    items: tuple[Item, ...]
    linearity: ClassVar[Linearity] = Linearity.LINEAR
    child_names: ClassVar[tuple[str, ...]] = ("child",)

    def __post_init__(self) -> None:
        """Items read only the input."""
        require_known(tuple(i.expr for i in self.items), self.child.schema, "a projection")
        Rel.__post_init__(self)

    @property
    def schema(self) -> Schema:
        """The items, typed."""
        return tuple(Field(i.name, i.expr.dtype) for i in self.items)


@dataclass(frozen=True, slots=True)
class Union(Rel):
    """UNION ALL: weights add up. Inputs match by position; `fields` names the output."""

    inputs: tuple[Rel, ...]
    fields: Schema
    linearity: ClassVar[Linearity] = Linearity.LINEAR
    child_names: ClassVar[tuple[str, ...]] = ("inputs",)

    def __post_init__(self) -> None:
        """Inputs are as wide as the output."""
        require(bool(self.inputs), "I4", "a union needs an input")
        for child in self.inputs:
            require(len(child.schema) == len(self.fields), "I4", "inputs of a union differ in width")
        Rel.__post_init__(self)

    @property
    def schema(self) -> Schema:
        """The declared columns."""
        return self.fields


def union(*inputs: Rel) -> Rel:
    """UNION ALL under the first input's column names; of one input, that input."""
    return inputs[0] if len(inputs) == 1 else Union(inputs, inputs[0].schema)


@dataclass(frozen=True, slots=True)
class Expand(Rel):
    """Each input row once for every projection (GROUPING SETS, several DISTINCT aggregates)."""

    child: Rel
    projections: tuple[tuple[Expr, ...], ...]
    fields: Schema
    linearity: ClassVar[Linearity] = Linearity.LINEAR
    child_names: ClassVar[tuple[str, ...]] = ("child",)

    def __post_init__(self) -> None:
        """Every projection is as wide as the output."""
        for projection in self.projections:
            require(len(projection) == len(self.fields), "I4", "projections of an expand differ in width")
            require_known(projection, self.child.schema, "an expand")
        Rel.__post_init__(self)

    @property
    def schema(self) -> Schema:
        """The declared columns."""
        return self.fields


@dataclass(frozen=True, slots=True)
class Join(Rel):
    """Inner or cross join: weights multiply. `condition` is None for a cross join."""

    left: Rel
    right: Rel
    condition: Expr | None
    broadcast: str = field(default="", compare=False)
    linearity: ClassVar[Linearity] = Linearity.BILINEAR
    child_names: ClassVar[tuple[str, ...]] = ("left", "right")

    def __post_init__(self) -> None:
        """Sides have no column in common and the condition reads only them."""
        if self.condition is not None:
            require_known((self.condition,), self.schema, "the join condition")
        require(self.broadcast in ("", "left", "right"), "I5", f"no such side: {self.broadcast}")
        Rel.__post_init__(self)

    @property
    def schema(self) -> Schema:
        """Left columns, then right ones."""
        return self.left.schema + self.right.schema

    @property
    def rereads(self) -> tuple[tuple[Rel, tuple[Rel, ...]], ...]:
        """Each side is read when the other one changes."""
        return ((self.left, (self.right,)), (self.right, (self.left,)))


@dataclass(frozen=True, slots=True)
class Aggregate(Rel):
    """GROUP BY; with no groups it has exactly one row, with no aggregates it is DISTINCT."""

    child: Rel
    groups: tuple[Item, ...]
    aggs: tuple[AggCall, ...]
    linearity: ClassVar[Linearity] = Linearity.MERGEABLE
    child_names: ClassVar[tuple[str, ...]] = ("child",)

    def __post_init__(self) -> None:
        """Keys and aggregates read only the input."""
        require_known(tuple(g.expr for g in self.groups), self.child.schema, "a grouping")
        known = set(self.child.names)
        for agg in self.aggs:
            require(agg.inputs <= known, "I2", f"{agg.name} reads {sorted(agg.inputs - known)}")
        require(bool(self.groups or self.aggs), "I6", "an aggregate needs a key or a function")
        require(not self.child.weighted, "I8", "an aggregate reads a plain bag: consolidate its input first")
        Rel.__post_init__(self)

    @property
    def schema(self) -> Schema:
        """Keys, then aggregates."""
        return tuple(Field(g.name, g.expr.dtype) for g in self.groups) + tuple(
            Field(a.name, a.dtype) for a in self.aggs
        )

    @property
    def weighted(self) -> bool:
        """An aggregate's own output is a plain bag, whatever its input's weights."""
        return False

    @property
    def combine(self) -> Combine:
        """The hardest class among its functions; the last results of groups that could not be redone twice are kept."""
        if not self.groups and any(a.user for a in self.aggs):
            return Combine.REDO  # without keys Spark gives no row for no input, which partial rows cannot say
        hardest = max((a.combine for a in self.aggs), default=Combine.ADDITIVE)
        if hardest is Combine.REDO and self.groups and not self.repeatable and all(a.comparable for a in self.aggs):
            return Combine.KEPT
        return hardest

    @property
    def repeatable(self) -> bool:
        """Whether an old row can be computed again, bit by bit, in order to take it back."""
        return all(a.repeatable for a in self.aggs)

    @property
    def breaks_ties(self) -> bool:
        """Whether some function was given one of several answers that its query allows."""
        return any(a.completed for a in self.aggs)


@dataclass(frozen=True, slots=True)
class SortKey:
    """One ORDER BY key."""

    expr: Expr
    descending: bool
    nulls_first: bool

    @property
    def text(self) -> str:
        """The key as Spark SQL text."""
        direction = "DESC" if self.descending else "ASC"
        return f"{self.expr.text} {direction} NULLS {'FIRST' if self.nulls_first else 'LAST'}"


@dataclass(frozen=True, slots=True)
class TopK(Rel):
    """ORDER BY … LIMIT … OFFSET; ties are broken by all the remaining columns."""

    child: Rel
    keys: tuple[SortKey, ...]
    limit: int
    offset: int = 0
    linearity: ClassVar[Linearity] = Linearity.KEYED
    child_names: ClassVar[tuple[str, ...]] = ("child",)

    def __post_init__(self) -> None:
        """Keys read only the input; counts are not negative."""
        require_known(tuple(k.expr for k in self.keys), self.child.schema, "a sort key")
        require(self.limit >= 0 and self.offset >= 0, "I7", "LIMIT and OFFSET cannot be negative")
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

    @property
    def breaks_ties(self) -> bool:
        """Always: rows with equal keys are told apart by the remaining columns."""
        return True


@dataclass(frozen=True, slots=True)
class Opaque(Rel):
    """A query that the algebra cannot follow: recomputed from its SQL text, with the reason said."""

    sql: str
    tables: tuple[str, ...]
    fields: Schema
    code: str
    reason: str

    @property
    def schema(self) -> Schema:
        """The query's columns."""
        return self.fields

    @property
    def weighted(self) -> bool:
        """A query's result is a plain bag."""
        return False


# --- program nodes ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Input(Rel):
    """A relation bound at run time: a state, a step of the program, or the view's own last result."""

    name: str
    fields: Schema
    has_weights: bool = False
    linearity: ClassVar[Linearity] = Linearity.LEAF

    @property
    def schema(self) -> Schema:
        """The declared columns."""
        return self.fields

    @property
    def weighted(self) -> bool:
        """As declared."""
        return self.has_weights


@dataclass(frozen=True, slots=True)
class Negate(Rel):
    """The same rows with their weights negated."""

    child: Rel
    linearity: ClassVar[Linearity] = Linearity.LINEAR
    child_names: ClassVar[tuple[str, ...]] = ("child",)

    @property
    def schema(self) -> Schema:
        """The input's columns."""
        return self.child.schema

    @property
    def weighted(self) -> bool:
        """Always."""
        return True


@dataclass(frozen=True, slots=True)
class SemiJoin(Rel):
    """Rows of `child` whose key is (or, with `anti`, is not) among those of `keys`; NULL matches NULL."""

    child: Rel
    keys: Rel
    pairs: tuple[tuple[Expr, Expr], ...]
    anti: bool = False
    small: bool = field(default=True, compare=False)
    linearity: ClassVar[Linearity] = Linearity.LINEAR
    child_names: ClassVar[tuple[str, ...]] = ("child", "keys")

    @property
    def schema(self) -> Schema:
        """The input's columns."""
        return self.child.schema

    @property
    def weighted(self) -> bool:
        """As the restricted input."""
        return self.child.weighted


@dataclass(frozen=True, slots=True)
class Consolidate(Rel):
    """A full output whose deletes have met their inserts: a plain bag again."""

    child: Rel
    child_names: ClassVar[tuple[str, ...]] = ("child",)

    @property
    def schema(self) -> Schema:
        """The input's columns."""
        return self.child.schema

    @property
    def weighted(self) -> bool:
        """Never: that is what it is for."""
        return False


def plain_bag(full: Rel) -> Rel:
    """A full output without weights, consolidated only where it has some."""
    return Consolidate(full) if full.weighted else full


@dataclass(frozen=True, slots=True)
class Difference(Rel):
    """`new - old` by value, with rows that cancel removed."""

    new: Rel
    old: Rel
    gather: bool = field(default=False, compare=False)
    child_names: ClassVar[tuple[str, ...]] = ("new", "old")

    @property
    def schema(self) -> Schema:
        """The new side's columns."""
        return self.new.schema

    @property
    def weighted(self) -> bool:
        """Always."""
        return True


def pass_through(fields: Schema) -> tuple[Item, ...]:
    """Items that hand columns on unchanged."""
    return tuple(Item(f.name, col(f.name, f.dtype)) for f in fields)

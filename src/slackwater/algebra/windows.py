"""Window functions: one node for each set of PARTITION BY keys, any number of functions over it.

A function brings its own order and frame. *Ranks* give equal answers to rows that the order takes for equal (peers),
and so do RANGE frames. Everything else depends on the position of a row among its peers, which the query leaves open:
there `completed` says that the order was continued by the remaining columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from slackwater.algebra.aggregates import AggCall, Combine, has_floats
from slackwater.algebra.expressions import Expr
from slackwater.algebra.nodes import Field, Linearity, Rel, Schema, SortKey, require, require_known

UNBOUNDED_PRECEDING, CURRENT_ROW, UNBOUNDED_FOLLOWING = "UNBOUNDED PRECEDING", "CURRENT ROW", "UNBOUNDED FOLLOWING"

RANKS = frozenset(("rank", "dense_rank", "percent_rank", "cume_dist"))
"""Functions that treat peers alike."""

POSITIONS = frozenset(("row_number", "ntile", "lag", "lead"))
"""Functions of a row's place in the order; they have no frame."""

VALUES = frozenset(("first_value", "last_value", "nth_value"))
"""Functions that hand on the value of one row of the frame."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The rows around the current one that a function sees: `unit` is ROWS or RANGE, bounds are Spark SQL text."""

    unit: str
    lower: str
    upper: str

    @property
    def whole(self) -> bool:
        """Whether every row sees its whole partition."""
        return self.lower == UNBOUNDED_PRECEDING and self.upper == UNBOUNDED_FOLLOWING

    @property
    def text(self) -> str:
        """The frame as Spark SQL text."""
        return f"{self.unit} BETWEEN {self.lower} AND {self.upper}"


@dataclass(frozen=True, slots=True)
class WindowCall:
    """One function over a window, with the name of its output column.

    Attributes:
        name: the output column.
        func: Spark's name of the function.
        args: its arguments.
        dtype: Spark's type of the result.
        order: the ORDER BY of its window.
        frame: its frame; None for functions that have none.
        ignore_nulls: it was called with IGNORE NULLS.
        completed: the order, or what stands for it, was continued so that there is one answer.
    """

    name: str
    func: str
    args: tuple[Expr, ...]
    dtype: str
    order: tuple[SortKey, ...] = ()
    frame: Frame | None = None
    ignore_nulls: bool = False
    completed: bool = False

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """All the expressions it reads."""
        return self.args + tuple(k.expr for k in self.order)

    @property
    def positional(self) -> bool:
        """Whether the answer depends on the order among rows that the ORDER BY takes for equal."""
        if self.func in RANKS:
            return False
        if self.func in POSITIONS or self.func in VALUES:
            return True
        return self.frame is not None and self.frame.unit == "ROWS" and not self.frame.whole

    @property
    def repeatable(self) -> bool:
        """Whether the same rows give the same bits again; sums of floating-point numbers depend on their order."""
        if not has_floats(self.dtype) or self.func in RANKS | POSITIONS | VALUES:
            return True
        exact = AggCall(self.name, self.func, self.args, self.dtype).combine is Combine.ADDITIVE
        return exact and self.func in ("sum", "avg")

    def text(self, partition: tuple[Expr, ...]) -> str:
        """The call as Spark SQL text."""
        inner = ", ".join(a.text for a in self.args) or ("*" if self.func == "count" else "")
        nulls = " IGNORE NULLS" if self.ignore_nulls else ""
        parts = []
        if partition:
            parts.append(f"PARTITION BY {', '.join(e.text for e in partition)}")
        if self.order:
            parts.append(f"ORDER BY {', '.join(k.text for k in self.order)}")
        if self.frame is not None:
            parts.append(self.frame.text)
        return f"{self.func}({inner}){nulls} OVER ({' '.join(parts)})"


@dataclass(frozen=True, slots=True)
class Window(Rel):
    """The input's rows with one more column for each function; without `partition` all rows are one partition."""

    child: Rel
    partition: tuple[Expr, ...]
    calls: tuple[WindowCall, ...]
    linearity: ClassVar[Linearity] = Linearity.KEYED
    child_names: ClassVar[tuple[str, ...]] = ("child",)

    def __post_init__(self) -> None:
        """Keys, arguments and orders read only the input, which is a plain bag."""
        require(bool(self.calls), "I10", "a window needs a function")
        require_known(self.partition, self.child.schema, "PARTITION BY")
        for made in self.calls:
            require_known(made.exprs, self.child.schema, made.func)
            ordered = made.func not in RANKS | POSITIONS or bool(made.order)
            require(ordered, "I10", f"{made.func} needs an order")
        require(not self.child.weighted, "I8", "a window reads a plain bag: consolidate its input first")
        Rel.__post_init__(self)

    @property
    def schema(self) -> Schema:
        """The input's columns, then one for each function."""
        return self.child.schema + tuple(Field(c.name, c.dtype) for c in self.calls)

    @property
    def weighted(self) -> bool:
        """Each row of a plain bag is given out once."""
        return False

    @property
    def repeatable(self) -> bool:
        """Whether an old row can be computed again, bit by bit, in order to take it back."""
        return all(c.repeatable for c in self.calls)

    @property
    def breaks_ties(self) -> bool:
        """Whether some order was completed."""
        return any(c.completed for c in self.calls)

    @property
    def plain_inputs(self) -> tuple[int, ...]:
        """Its input."""
        return (0,)

    @property
    def whole(self) -> bool:
        """Whether any change of the input may change every row."""
        return not self.partition

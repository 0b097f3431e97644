"""Partial aggregates: what an aggregate keeps between two refreshes, and how it is merged and finished.

A partial row has the group's key, one or more columns per aggregate call, and `_n`, the number of input rows. Partial
rows of one group may lie in several places; merging them with the columns' `merge` functions gives the group's row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from slackwater.algebra.aggregates import AggCall, Combine, decimal_of, is_float, is_interval, is_variance
from slackwater.algebra.expressions import quote
from slackwater.algebra.nodes import Aggregate, Field, Linearity, Rel, Schema

ROWS = "_n"
"""The number of input rows behind a partial row; a group lives while it is above zero."""

DELETES = "_d"
"""The number of deleted input rows behind a change; what decides whether a mergeable group is redone."""


CARRIED = "s$"
"""How the names of columns start that show a new partial row."""

MERGE = "slackwater_merge_"
"""How the names of the SQL functions start that merge the results of user-defined aggregates."""


def user_merge(func: str) -> str:
    """The SQL function that merges a list of a user-defined aggregate's results."""
    return f"{MERGE}{func}"


def user_rows(func: str) -> str:
    """The SQL function that counts rows beside a user-defined aggregate: Spark lets no function of its own do so."""
    return f"slackwater_rows_{func}"


OVERFLOW = "SLACKWATER_PARTIAL_OVERFLOW"
"""What a program raises where a partial result leaves its type; the refresh then recomputes instead."""


@dataclass(frozen=True, slots=True)
class PartialColumn:
    """One column of a partial row.

    Attributes:
        name: the column's name.
        merge: the function that combines it over partial rows (`sum`, `min`, …).
        role: `total`, `square`, `seen`, `value` or `result`: what the finishing expression takes it for.
        dtype: Spark's type, to which it is cast so that every segment of a state agrees.
    """

    name: str
    merge: str
    role: str
    dtype: str


def total_type(call: AggCall) -> str:
    """The type in which a call's exact or floating total is kept."""
    dtype = call.args[0].dtype
    decimal = decimal_of(dtype)
    if decimal is not None:
        return f"decimal(38,{decimal.scale})"
    if is_interval(dtype):
        return dtype
    return "double" if is_float(dtype) else "bigint"


def square_type(call: AggCall, *, squared: bool = True) -> str:
    """The exact decimal type of a total of values or of their squares."""
    decimal = decimal_of(call.args[0].dtype)
    scale = decimal.scale if decimal else 0
    return f"decimal(38,{2 * scale if squared else scale})"


def partial_columns(call: AggCall) -> tuple[PartialColumn, ...]:
    """The columns that a call keeps."""

    def column(suffix: str, merge: str, role: str, dtype: str) -> PartialColumn:
        return PartialColumn(f"{call.name}${suffix}", merge, role, dtype)

    if call.user or call.combine is Combine.REDO:
        merge = user_merge(call.func) if call.user == "merge" else "first"
        return (column("v", merge, "result", f"struct<v:{call.dtype}>"),)
    if call.func == "count":
        return (column("n", "sum", "seen", "bigint"),)
    if call.func in ("sum", "avg"):
        return (column("s", "sum", "total", total_type(call)), column("n", "sum", "seen", "bigint"))
    if is_variance(call.func):
        return (
            column("s", "sum", "total", square_type(call, squared=False)),
            column("q", "sum", "square", square_type(call)),
            column("n", "sum", "seen", "bigint"),
        )
    return (column("v", call.func, "value", call.dtype),)


def partial_schema(agg: Aggregate, *, deletes: bool = False) -> Schema:
    """The columns of an aggregate's partial rows."""
    keys = tuple(Field(g.name, g.expr.dtype) for g in agg.groups)
    columns = tuple(Field(c.name, c.dtype) for call in agg.aggs for c in partial_columns(call))
    counts = (Field(ROWS, "bigint"),) + ((Field(DELETES, "bigint"),) if deletes else ())
    return keys + columns + counts


def carried_fields(agg: Aggregate) -> Schema:
    """The columns in which a change shows an aggregate's new partial rows."""
    return tuple(Field(f"{CARRIED}{f.name}", f.dtype) for f in partial_schema(agg))


def finish_text(call: AggCall, prefix: str = "") -> str:
    """The Spark SQL expression that turns merged partial columns into the call's value.

    `prefix` is put before each partial column's name.
    """
    roles = {c.role: quote(prefix + c.name) for c in partial_columns(call)}
    seen, total = roles.get("seen", ""), roles.get("total", "")
    if "result" in roles:
        return f"{roles['result']}.v"
    if call.func == "count":
        return f"COALESCE({seen}, 0L)"
    if "value" in roles:
        return roles["value"]
    if call.func == "sum":
        return f"IF({seen} > 0, CAST({total} AS {call.dtype.upper()}), NULL)"
    if call.func == "avg":
        return f"IF({seen} > 0, {_average_text(call, total, seen)}, NULL)"
    return _variance_text(call, total, roles["square"], seen)


def _average_text(call: AggCall, total: str, seen: str) -> str:
    decimal = decimal_of(call.args[0].dtype)
    if is_interval(call.args[0].dtype):
        return f"CAST({total} / {seen} AS {call.dtype.upper()})"
    if decimal is None:
        return f"CAST({total} AS DOUBLE) / {seen}"
    exact = f"CAST({total} AS DECIMAL({decimal.precision + 10},{decimal.scale}))"
    return f"CAST({exact} / CAST({seen} AS DECIMAL(20,0)) AS {call.dtype.upper()})"


def _variance_text(call: AggCall, total: str, square: str, seen: str) -> str:
    """The variance from exact sums: the subtraction that would cancel in floating point is done in decimals."""
    population = call.func.endswith("_pop")
    n = f"CAST({seen} AS DOUBLE)"
    exact = f"CAST({seen} AS DECIMAL(12,0)) * {square} - {total} * {total}"
    moment = f"CAST(COALESCE({exact}, raise_error('{OVERFLOW}')) AS DOUBLE) / {n}"
    variance = f"{moment} / {n}" if population else f"{moment} / ({n} - 1D)"
    value = f"SQRT({variance})" if call.func.startswith("stddev") else variance
    return f"IF({seen} > {0 if population else 1}, {value}, NULL)"


# --- program nodes over partial rows ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Partial(Rel):
    """Aggregate weighted rows into partial rows; inserts add, deletes subtract (and can be counted in `_d`)."""

    child: Rel
    agg: Aggregate
    count_deletes: bool = False
    linearity: ClassVar[Linearity] = Linearity.LINEAR
    child_names: ClassVar[tuple[str, ...]] = ("child",)

    @property
    def schema(self) -> Schema:
        """Keys, partial columns, counts."""
        return partial_schema(self.agg, deletes=self.count_deletes)

    @property
    def weighted(self) -> bool:
        """Partial rows carry their signs inside."""
        return False


@dataclass(frozen=True, slots=True)
class MergePartials(Rel):
    """One partial row for each group that still has rows (always one where there are no keys)."""

    child: Rel
    agg: Aggregate
    child_names: ClassVar[tuple[str, ...]] = ("child",)

    @property
    def schema(self) -> Schema:
        """The partial columns."""
        return partial_schema(self.agg)

    @property
    def weighted(self) -> bool:
        """Partial rows carry their signs inside."""
        return False


@dataclass(frozen=True, slots=True)
class Finish(Rel):
    """Merge partial rows and finish them into the aggregate's output; with `carry`, the merged rows stand beside it."""

    child: Rel
    agg: Aggregate
    carry: bool = False
    child_names: ClassVar[tuple[str, ...]] = ("child",)

    @property
    def schema(self) -> Schema:
        """The aggregate's output, and the partial rows where they are carried along."""
        return self.agg.schema + (carried_fields(self.agg) if self.carry else ())

    @property
    def weighted(self) -> bool:
        """A plain bag."""
        return False


@dataclass(frozen=True, slots=True)
class AggChange(Rel):
    """The change of an aggregate's output: minus the old row and plus the new row of each touched group.

    Attributes:
        old: partial rows of the state, of all groups or of the touched ones.
        change: the change's partial rows, one for each touched group.
        redo: fresh partial rows of the groups that had deletes, where the class of the aggregate asks for it.
        restrict: look up only the touched groups of `old` before merging; worth a join where the state is large.
        gather: one task reads it all.
        carry: beside its output, a group's row shows its new partial row, and a group whose output stays as it is has a
            row of weight 0 for that.
    """

    old: Rel
    change: Rel
    redo: Rel | None
    agg: Aggregate
    restrict: bool = field(default=True, compare=False)
    gather: bool = field(default=False, compare=False)
    carry: bool = False
    child_names: ClassVar[tuple[str, ...]] = ("old", "change", "redo")

    @property
    def schema(self) -> Schema:
        """The aggregate's output, and the partial rows where they are carried along."""
        return self.agg.schema + (carried_fields(self.agg) if self.carry else ())

    @property
    def weighted(self) -> bool:
        """Always."""
        return True

"""What a query reads: a table, or the result of another view. A refresh treats both alike.

A view's result changes only by its own refreshes, and these are commits like any other: its segments say what it was at
any version and what changed in between. A view that reads others has them refreshed first, under the same lock, so that
all of them stand for the same version of the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from slackwater.algebra.nodes import Field, Opaque, Rel, Scan
from slackwater.capture.type_names import type_text
from slackwater.delta.environment import Change
from slackwater.errors import TableError, ViewError
from slackwater.execution.render import WEIGHT, consolidated
from slackwater.storage.records import SegmentRecord

if TYPE_CHECKING:
    from slackwater.engine import Engine
    from slackwater.table import Table
    from slackwater.view import View


class Leaf(Protocol):
    """A relation that a query reads, with its columns named `c0`, `c1`, … by position."""

    @property
    def owner(self) -> str:
        """The name under which its segments are filed."""

    @property
    def schema(self) -> StructType:
        """Its columns."""

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that tell its rows apart, where that is known."""

    @property
    def complete(self) -> bool:
        """Whether no more changes will come."""

    def segments(self) -> tuple[SegmentRecord, ...]:
        """Where its rows are now."""

    def snapshot(self, spark: SparkSession, at: int) -> DataFrame:
        """The bag of rows at a version."""

    def delta(self, spark: SparkSession, segments: Sequence[SegmentRecord], before: int) -> DataFrame:
        """The net change that segments bring to the rows at `before`; with weights where some are deletes."""


class TableLeaf:
    """A table of the warehouse."""

    def __init__(self, table: Table) -> None:
        self._table, self._catalog = table, table._engine.catalog
        self.owner, self.schema, self.key = f"t{table.id}", table.schema, table.key

    @property
    def complete(self) -> bool:
        """Whether the table was marked complete."""
        return self._table.complete

    def segments(self) -> tuple[SegmentRecord, ...]:
        """Where its rows are now."""
        return self._catalog.segments(self.owner)

    def snapshot(self, spark: SparkSession, at: int) -> DataFrame:
        """The bag of rows at a version."""
        return self._table.reader(spark).snapshot(self._catalog.segments(self.owner, at=at))

    def delta(self, spark: SparkSession, segments: Sequence[SegmentRecord], before: int) -> DataFrame:
        """Net by position: a row that came and went is never seen."""
        reader = self._table.reader(spark)
        inserted = reader.inserted(segments)
        if not any(s.sign < 0 for s in segments):
            return inserted
        deleted = reader.deleted(segments, before).withColumn(WEIGHT, F.lit(-1))
        return inserted.withColumn(WEIGHT, F.lit(1)).unionAll(deleted)


class ViewLeaf:
    """The result of a view."""

    key: tuple[str, ...] = ()

    def __init__(self, view: View) -> None:
        self._view, self._catalog = view, view.engine.catalog
        self.owner = f"v{view.id}"
        self._names = [f"c{i}" for i in range(len(view.columns))]

    @property
    def schema(self) -> StructType:
        """The result's columns."""
        return self._view.schema

    @property
    def complete(self) -> bool:
        """Whether all the tables below are: the view is refreshed before it is read."""
        return all(self._view.engine.table(name).complete for name in self._view.tables)

    def segments(self) -> tuple[SegmentRecord, ...]:
        """Where its rows are now."""
        return self._catalog.segments(self.owner)

    def snapshot(self, spark: SparkSession, at: int) -> DataFrame:
        """The bag of rows at a version."""
        return self._view.result_reader(spark).bag(self._catalog.segments(self.owner, at=at), self._names)

    def delta(self, spark: SparkSession, segments: Sequence[SegmentRecord], before: int) -> DataFrame:
        """Net by value, because results have no positions."""
        signed = self._view.result_reader(spark).signed(segments, self._names)
        if WEIGHT not in signed.columns:
            return signed
        fields = tuple(Field(n, type_text(f.dataType)) for n, f in zip(self._names, self.schema, strict=True))
        return spark.sql(consolidated("SELECT * FROM {changes}", fields, plain=False), changes=signed)


@dataclass(slots=True)
class TableState:
    """A table, or the result of a view that is read, between the two versions of a refresh."""

    complete: bool
    segments: tuple[SegmentRecord, ...]
    key: tuple[int, ...]
    delta: tuple[SegmentRecord, ...]
    rows: int = field(init=False)

    def __post_init__(self) -> None:
        self.rows = sum(s.sign * s.row_count for s in self.segments)

    @property
    def lost_rows(self) -> bool:
        """Whether its files hold rows that have been deleted since."""
        return any(s.sign < 0 for s in self.segments)

    @property
    def change(self) -> Change | None:
        """What the delta brings; None where nothing came."""
        if not self.delta:
            return None
        plus = sum(s.row_count for s in self.delta if s.sign > 0)
        minus = sum(s.row_count for s in self.delta if s.sign < 0)
        return Change(plus, minus, max(self.rows - plus + minus, 0))


def table_state(engine: Engine, leaf: Leaf, before: int, upto: int) -> TableState:
    """What a refresh from one version to another finds of a leaf; all is there already where there was no version."""
    delta = engine.catalog.segments_between(leaf.owner, before, upto) if before else ()
    names = [f.name for f in leaf.schema]
    return TableState(leaf.complete, leaf.segments(), tuple(names.index(k) for k in leaf.key), delta)


def leaves(engine: Engine, names: Iterable[str]) -> dict[str, Leaf]:
    """What names in a plan stand for; tables and views share one namespace."""
    views = engine.catalog.view_names()
    return {name: ViewLeaf(engine.view(name)) if name in views else TableLeaf(engine.table(name)) for name in names}


def inputs_of(plan: Rel) -> tuple[str, ...]:
    """The names that a plan reads, of tables and of views."""
    if isinstance(plan, Opaque):
        return plan.tables
    return tuple(sorted({node.table for node in plan.walk() if isinstance(node, Scan)}))


def _views(engine: Engine, names: Iterable[str]) -> list[View]:
    known = engine.catalog.view_names()
    return [engine.view(name) for name in names if name in known]


def views_read(engine: Engine, names: Iterable[str]) -> list[View]:
    """The views behind these names and behind them in turn, each after those that it reads."""
    found: dict[str, View] = {}
    for view in _views(engine, names):
        for below in views_read(engine, view.inputs):
            found.setdefault(below.name, below)
        found.setdefault(view.name, view)
    return list(found.values())


def tables_read(engine: Engine, names: Iterable[str]) -> tuple[str, ...]:
    """The tables behind these names, read directly or through views."""
    known, found = engine.catalog.view_names(), set[str]()
    for name in names:
        found |= set(tables_read(engine, engine.view(name).inputs)) if name in known else {name}
    return tuple(sorted(found))


def readers_of(view: View) -> list[View]:
    """The views that read a view directly."""
    return [other for other in view.engine.views() if view.name in other.inputs]


def refuse_while_read(view: View, what: str) -> None:
    """Refuse what would pull a view from under those that read it."""
    readers = [reader.name for reader in readers_of(view)]
    if readers:
        raise ViewError(
            "VIEW_IN_USE",
            f"view {view.name!r} cannot be {what}: it is read by {', '.join(map(repr, readers))}",
            f"drop {'that view' if len(readers) == 1 else 'these views'} first",
            {"view": view.name, "readers": readers},
        )


def refuse_table_while_read(engine: Engine, table: str, what: str) -> None:
    """Refuse what would pull a table from under the views that read it, directly or through other views."""
    readers = [view.name for view in engine.views() if table in view.tables]
    if readers:
        raise TableError(
            "TABLE_IN_USE",
            f"table {table!r} cannot be {what}: it is read by {', '.join(readers)}",
            f"drop {'that view' if len(readers) == 1 else 'these views'} first",
            {"table": table, "readers": readers},
        )


def refuse_cycle(engine: Engine, name: str, plan: Rel) -> None:
    """Refuse a query that reads the view it is for, directly or through other views."""
    path = _path_to(engine, name.casefold(), inputs_of(plan))
    if path:
        shown = " → ".join([path[-1], *path])
        raise ViewError(
            "VIEW_CYCLE",
            f"view {name!r} would read itself: {shown}",
            "a view can read tables and views that do not read it",
            {"path": [path[-1], *path]},
        )


def _path_to(engine: Engine, name_key: str, names: Iterable[str]) -> list[str]:
    for view in _views(engine, names):
        below = [] if view.name.casefold() == name_key else _path_to(engine, name_key, view.inputs)
        if below or view.name.casefold() == name_key:
            return [view.name, *below]
    return []

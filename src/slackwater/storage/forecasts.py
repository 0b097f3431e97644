"""Forecasts beside what came, and the records that forecasts are made from: arrivals, paces and delays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, and_, bindparam, delete, insert, select, update

from slackwater.storage import schema
from slackwater.storage.records import RENAME_TABLE, TableRecord

KEPT_DELAYS = 500
"""Delays are kept of so many versions of a table; older ones say little about those to come."""


@dataclass(frozen=True, slots=True)
class NewForecast:
    """What is expected of one table in a view's next delta, about to be recorded."""

    table_id: int
    table_name: str
    horizon_seconds: float
    kind: str
    rows: float
    low: float
    high: float
    deletes: float
    complete_after: bool
    reason: str
    detail: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ForecastRecord:
    """What was expected of one table in one delta of a view and, once it was refreshed again, what came."""

    id: int
    view_id: int
    table_id: int
    table_name: str
    made_version: int
    made_at: float
    horizon_seconds: float
    kind: str
    rows: float
    low: float
    high: float
    deletes: float
    complete_after: bool
    reason: str
    detail: Mapping[str, Any]
    actual_rows: int | None
    actual_deleted: int | None
    settled_version: int | None
    settled_at: float | None


@dataclass(frozen=True, slots=True)
class ArrivalRecord:
    """One change of a table: when it came and how many rows it brought and took."""

    version: int
    at: float
    inserted: int
    deleted: int

    @property
    def rows(self) -> int:
        """All changed rows."""
        return self.inserted + self.deleted


@dataclass(frozen=True, slots=True)
class PaceRecord:
    """What an upstream system said about the table it is delivering; `remaining` is None where it does not know."""

    table_id: int
    rows_per_second: float
    remaining: int | None
    at: float


@dataclass(frozen=True, slots=True)
class DelayRecord:
    """How late the rows of one version were: pairs of seconds and rows; `measured` says by which column and rule."""

    table_id: int
    measured: str
    version: int
    points: Sequence[Sequence[float]]


def arrivals(connection: Connection, table: TableRecord, after: int, limit: int) -> tuple[ArrivalRecord, ...]:
    """Read the last changes of a table after a version; those of other tables that had its name are not its own.

    Commits go by name. A table had its name since it was made or since the last commit that gave it the name; before
    that one, it is followed under the name that it had then.
    """
    commits, found = schema.commits, list[ArrivalRecord]()
    name: str | None = table.name
    later = commits.c.version > max(after, table.created_version)
    while name is not None and len(found) < limit:
        query = select(commits.c.version, commits.c.at, commits.c.kind, commits.c.detail).where(
            commits.c.subject == name, commits.c.kind.in_(("change", RENAME_TABLE)), later
        )
        name = None
        for row in connection.execute(query.order_by(commits.c.version.desc()).limit(limit - len(found))).all():
            if row.kind == RENAME_TABLE:
                name = str(row.detail["from"])
                later = and_(later, commits.c.version < row.version)
                break
            inserted, deleted = int(row.detail.get("inserted", 0)), int(row.detail.get("deleted", 0))
            found.append(ArrivalRecord(row.version, row.at, inserted, deleted))
    return tuple(reversed(found))


def settle(
    connection: Connection, view_id: int, actual: Mapping[int, tuple[int, int]], version: int, at: float
) -> None:
    """Put what came beside the forecasts that wait for it; a table that is not named brought nothing."""
    table = schema.forecasts
    waiting = and_(table.c.view_id == view_id, table.c.settled_version.is_(None))
    found = connection.execute(select(table.c.id, table.c.table_id).where(waiting)).all()
    if not found:
        return
    answers: dict[str, Any] = {"actual_rows": bindparam("_rows"), "actual_deleted": bindparam("_deleted")}
    settled = (
        update(table).where(table.c.id == bindparam("_id")).values(settled_version=version, settled_at=at, **answers)
    )
    came = ((row.id, *actual.get(row.table_id, (0, 0))) for row in found)
    connection.execute(settled, [{"_id": ident, "_rows": rows, "_deleted": gone} for ident, rows, gone in came])


def add(connection: Connection, view_id: int, new: Iterable[NewForecast], version: int, at: float) -> None:
    """Record a forecast; one that still waits for what came is replaced."""
    table = schema.forecasts
    connection.execute(delete(table).where(table.c.view_id == view_id, table.c.settled_version.is_(None)))
    made = {"view_id": view_id, "made_version": version, "made_at": at}
    values = [{**{name: getattr(one, name) for name in one.__slots__}, **made} for one in new]
    if values:
        connection.execute(insert(table), values)


def replace_pace(connection: Connection, pace: PaceRecord) -> None:
    """Record what upstream says now, instead of what it said before."""
    connection.execute(delete(schema.paces).where(schema.paces.c.table_id == pace.table_id))
    connection.execute(insert(schema.paces).values({name: getattr(pace, name) for name in pace.__slots__}))


def add_delays(connection: Connection, new: Iterable[DelayRecord]) -> None:
    """Record the delays of versions that have none on record yet, and forget those of long ago."""
    table = schema.delays
    new = list(new)
    for one in new:
        same = and_(table.c.table_id == one.table_id, table.c.measured == one.measured, table.c.version == one.version)
        if connection.scalar(select(table.c.version).where(same)) is None:
            connection.execute(insert(table).values({name: getattr(one, name) for name in one.__slots__}))
    for table_id, measured in sorted({(one.table_id, one.measured) for one in new}):
        same = and_(table.c.table_id == table_id, table.c.measured == measured)
        newest = select(table.c.version).where(same).order_by(table.c.version.desc())
        last = connection.scalar(newest.offset(KEPT_DELAYS - 1).limit(1))
        if last is not None:
            connection.execute(delete(table).where(same, table.c.version < last))


def forget_table(connection: Connection, table_id: int) -> None:
    """Remove what is known about how a table's rows arrive; forecasts made stay on record."""
    for table in (schema.paces, schema.delays):
        connection.execute(delete(table).where(table.c.table_id == table_id))

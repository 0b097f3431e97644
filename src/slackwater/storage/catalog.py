"""The catalog: what the warehouse's files mean, version by version."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Select, Table, delete, func, insert, select, union

from slackwater.errors import CatalogError, TableError, ViewError
from slackwater.storage import forecasts as forecast_rows
from slackwater.storage import rows, schema
from slackwater.storage.covers import Covers, records_of
from slackwater.storage.database import Database
from slackwater.storage.faults import crash_point
from slackwater.storage.forgetting import forget_segments
from slackwater.storage.records import (
    RENAME_TABLE,
    CommitRecord,
    Fence,
    NewSourceFile,
    NewState,
    RefreshRecord,
    SegmentRecord,
    SourceFileRecord,
    SourceRecord,
    StateRecord,
    TableRecord,
    ViewRecord,
)
from slackwater.storage.source_files import seen_files, write_source_files
from slackwater.storage.transaction import Transaction, replace_states

T = TypeVar("T")


class Catalog:
    """The catalog of one warehouse. Safe to use from several threads; readers are never blocked.

    A version is one row of `commits`, written in the one SQL transaction that `commit` opens.
    """

    def __init__(self, database: Database, now: Callable[[], float] = time.time) -> None:
        """Read from an open database; use `open`."""
        self.database = database
        self._now = now
        self._covers = Covers()
        with database.read() as connection:
            self.warehouse_id = schema.warehouse_id(connection)
            self.schema_version = schema.schema_version(connection)

    @classmethod
    def open(
        cls,
        url: str | URL,
        *,
        create: bool = True,
        now: Callable[[], float] = time.time,
        check: Callable[[Connection | None], None] | None = None,
    ) -> Catalog:
        """Open the catalog at a URL: `sqlite:///path/to/file` or `postgresql://…`; an empty database becomes one.

        Args:
            url: where the catalog is.
            create: make it if it is not there, and bring an old one up to date.
            now: gives the time that commits and refreshes are recorded with.
            check: raises to refuse a catalog, or to make one where there is none (`None`), before anything is written.
        """
        database = Database.open(url, create=create, check=check)
        try:
            return cls(database, now)
        except BaseException:
            database.close()
            raise

    def close(self) -> None:
        """Close all connections."""
        self.database.close()

    def __enter__(self) -> Catalog:
        """Give itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all connections."""
        self.close()

    # Writing

    @contextmanager
    def commit(
        self, kind: str, subject: str, detail: Mapping[str, object] | None = None, lease: Fence | None = None
    ) -> Iterator[Transaction]:
        """Write one version: all of it when the body ends well, nothing (and no version is used) when it raises.

        Args:
            kind: what is done, such as `change` or `refresh`.
            subject: the table or view it is done to.
            detail: more for the record.
            lease: the writer's lease; it must still hold when the transaction starts.
        """
        crash_point("commit.before")
        with self._writing(lease) as connection:
            version, at = _version(connection) + 1, self._now()
            yield Transaction(connection, version, at)
            # Last, because the body checks the names that the subject is made of.
            values = {"version": version, "at": at, "kind": kind, "subject": subject}
            connection.execute(insert(schema.commits).values(**values, detail=dict(detail or {})))
            crash_point("commit.inside")
        crash_point("commit.after")

    def save_states(self, view_id: int, states: Iterable[NewState], lease: Fence | None = None) -> None:
        """Record a view's saved states, instead of all it had; states are soft, so this makes no version."""
        with self._writing(lease) as connection:
            replace_states(connection, view_id, states)
            crash_point("states.saving")

    def record_rejected_files(self, source_id: int, files: Iterable[NewSourceFile], lease: Fence | None = None) -> None:
        """Record files that brought no change because they were refused."""
        with self._writing(lease) as connection:
            write_source_files(connection, source_id, files, None)

    def forget_segments(self, ids: Iterable[int], lease: Fence | None = None) -> int:
        """Remove superseded segments from the record, so that their files become garbage; give their number."""
        with self._writing(lease) as connection:
            return forget_segments(connection, ids)

    def set_fact(self, key: str, value: str, lease: Fence | None = None) -> None:
        """Remember something about the warehouse as a whole; this makes no version."""
        with self._writing(lease) as connection:
            connection.execute(delete(schema.meta).where(schema.meta.c.key == f"fact.{key}"))
            connection.execute(insert(schema.meta).values(key=f"fact.{key}", value=value))

    def report_pace(self, pace: forecast_rows.PaceRecord, lease: Fence | None = None) -> None:
        """Record what an upstream system says about a table, instead of what it said before; makes no version."""
        with self._writing(lease) as connection:
            rows.live_table(connection, pace.table_id)
            forecast_rows.replace_pace(connection, pace)

    @contextmanager
    def _writing(self, lease: Fence | None) -> Iterator[Connection]:
        with self.database.write() as connection:
            if connection.dialect.name != "sqlite":  # there a transaction excludes other writers, here this row's lock
                connection.execute(select(schema.meta.c.value).filter_by(key="schema_version").with_for_update())
            _check_lease(connection, lease)
            yield connection

    # Reading

    def reading(self) -> AbstractContextManager[None]:
        """Let all that this thread reads, as long as it lasts, be of one state; what is asked for again is known.

        Nothing may be written by the same thread meanwhile.
        """
        return self.database.reading()

    def look_at(self, tables: Collection[str], owners: Collection[str] = ()) -> None:
        """Within `reading`, find in two questions what reads of some tables' records and segments would ask for singly.

        Args:
            tables: names of tables; a name that is none's is passed over.
            owners: others whose segments will be asked for.
        """
        shared = self.database.shared
        if shared is None:
            return
        wanted = schema.tables.c.name.in_(tables)
        found = [rows.as_table(row) for row in shared.connection.execute(rows.live(schema.tables).where(wanted))]
        for table in found:
            shared.found["table", table.name] = shared.found["table", table.id] = table
        everyone = (*(table.owner for table in found), *owners)
        for owner, state in records_of(shared.connection, everyone).items():
            shared.found["segments", owner] = state

    def _known(self, connection: Connection, what: Any, find: Callable[[Connection], T]) -> T:
        """An answer that holds within one transaction, found once where several reads share it."""
        shared = self.database.shared
        if shared is None:
            return find(connection)
        if what not in shared.found:
            shared.found[what] = find(connection)
        known: T = shared.found[what]
        return known

    def version(self) -> int:
        """Give the last version; 0 for an empty warehouse."""
        with self.database.read() as connection:
            return self._known(connection, "version", _version)

    def fact(self, key: str) -> str | None:
        """What was remembered about the warehouse under a key."""
        with self.database.read() as connection:
            found = connection.scalar(select(schema.meta.c.value).where(schema.meta.c.key == f"fact.{key}"))
            return None if found is None else str(found)

    def commits(self, limit: int | None = None) -> tuple[CommitRecord, ...]:
        """List the versions, the newest first."""
        return self._all(CommitRecord, select(schema.commits).order_by(schema.commits.c.version.desc()).limit(limit))

    def commit_time(self, version: int) -> float | None:
        """When a version was committed; None where there is no such version."""
        with self.database.read() as connection:
            return connection.scalar(select(schema.commits.c.at).where(schema.commits.c.version == version))

    def tables(self) -> tuple[TableRecord, ...]:
        """List the tables, in the order they were made."""
        with self.database.read() as connection:
            return tuple(rows.as_table(row) for row in connection.execute(rows.live(schema.tables)))

    def table(self, name: str) -> TableRecord:
        """Find a table by its exact name."""

        def find(connection: Connection) -> TableRecord:
            row = connection.execute(rows.live(schema.tables).where(schema.tables.c.name == name)).one_or_none()
            if row is None:
                advice = _nearest(connection, schema.tables, name)
                raise TableError("TABLE_UNKNOWN", f"there is no table {name!r}", advice, {"table": name})
            return rows.as_table(row)

        with self.database.read() as connection:
            return self._known(connection, ("table", name), find)

    def check_free(self, name: str, *, view: bool) -> None:
        """Refuse a name that a new table or view cannot have; what is made says so itself, but later."""
        with self.database.read() as connection:
            rows.check_free(connection, name, view=view)

    def table_by_id(self, table_id: int) -> TableRecord:
        """Find a table by its id; a dropped one is TABLE_UNKNOWN even if its name was given to another."""
        with self.database.read() as connection:
            return self._known(connection, ("table", table_id), lambda c: rows.live_table(c, table_id))

    def views(self) -> tuple[ViewRecord, ...]:
        """List the views, in the order they were made."""
        return self._all(ViewRecord, rows.live(schema.views))

    def view_names(self) -> frozenset[str]:
        """Give the names of the views, without their plans."""
        live = select(schema.views.c.name).filter_by(dropped_version=None)
        with self.database.read() as connection:
            return self._known(connection, "views", lambda c: frozenset(c.scalars(live)))

    def view(self, name: str) -> ViewRecord:
        """Find a view by its exact name."""
        with self.database.read() as connection:
            row = connection.execute(rows.live(schema.views).where(schema.views.c.name == name)).one_or_none()
            if row is None:
                advice = _nearest(connection, schema.views, name)
                raise ViewError("VIEW_UNKNOWN", f"there is no view {name!r}", advice, {"view": name})
            return rows.read_as(ViewRecord, row)

    def view_by_id(self, view_id: int) -> ViewRecord:
        """Find a view by its id; a dropped one is VIEW_DROPPED even if its name was given to another."""
        with self.database.read() as connection:
            return rows.live_view(connection, view_id)

    def segments(self, owner: str, *, at: int | None = None) -> tuple[SegmentRecord, ...]:
        """Give the fewest segments that hold exactly an owner's changes up to a version, or all its changes."""
        with self.database.read() as connection:
            upto = self._known(connection, "version", _version) if at is None else at
            return self._cover(connection, owner, 0, upto)

    def segments_between(
        self, owner: str, after: int, upto: int, *, per_version: bool = False
    ) -> tuple[SegmentRecord, ...]:
        """Give the fewest segments that hold exactly an owner's changes in `(after, upto]`.

        Args:
            owner: `t<id>` or `v<id>`.
            after: the version before the first one wanted.
            upto: the last version wanted.
            per_version: use no segment that mixes versions, as a feed of changes needs it.
        """
        with self.database.read() as connection:
            return self._cover(connection, owner, after, upto, per_version=per_version)

    def _cover(
        self, connection: Connection, owner: str, after: int, upto: int, *, per_version: bool = False
    ) -> tuple[SegmentRecord, ...]:
        state = self._known(connection, ("segments", owner), lambda c: records_of(c, (owner,))[owner])
        return self._covers.find(connection, owner, state, after, upto, per_version=per_version)

    def superseded(self, owner: str, before_version: int) -> tuple[SegmentRecord, ...]:
        """List the segments of an owner that were superseded before a version, for `forget_segments`."""
        table = schema.segments
        query = select(table).where(table.c.owner == owner, table.c.superseded_version < before_version)
        return self._all(SegmentRecord, query.order_by(table.c.id))

    def all_paths(self) -> frozenset[str]:
        """Give every path that any record names; files elsewhere in the warehouse are garbage."""
        with self.database.read() as connection:
            return named_paths(connection)

    def settled_paths(self) -> frozenset[str]:
        """The same once no commit is under way: a server may still be at work on one that its client has given up."""
        with self._writing(None) as connection:
            return named_paths(connection)

    def states(self, view_id: int) -> tuple[StateRecord, ...]:
        """List the saved states of a view."""
        return self._all(StateRecord, select(schema.states).filter_by(view_id=view_id).order_by(schema.states.c.id))

    def refreshes(self, view_id: int, limit: int | None = None) -> tuple[RefreshRecord, ...]:
        """List the refreshes of a view, the newest first; they outlive it."""
        query = select(schema.refreshes).filter_by(view_id=view_id).order_by(schema.refreshes.c.id.desc())
        return self._all(RefreshRecord, query.limit(limit))

    def refresh_points(self, view_id: int, limit: int, after: int = 0) -> tuple[tuple[int, float], ...]:
        """Give the version and the time of a view's last refreshes to versions after one, the oldest first."""
        table = schema.refreshes
        query = select(table.c.to_version, table.c.at).where(table.c.view_id == view_id, table.c.to_version > after)
        with self.database.read() as connection:
            found = connection.execute(query.order_by(table.c.id.desc()).limit(limit)).all()
        return tuple((row.to_version, row.at) for row in reversed(found))

    def changed_since(self, version: int) -> tuple[int, frozenset[str] | None]:
        """Give the last version, and the tables that changed after one; None for all, where one was given a name."""
        commits = schema.commits.c
        query = select(commits.subject, commits.kind).where(
            commits.version > version, commits.kind.in_(("change", RENAME_TABLE))
        )
        with self.database.read() as connection:
            found = connection.execute(query).all()
            last = self._known(connection, "version", _version)
        renamed = any(row.kind == RENAME_TABLE for row in found)
        return last, None if renamed else frozenset(row.subject for row in found)

    def arrivals(self, table: TableRecord, after: int, limit: int) -> tuple[forecast_rows.ArrivalRecord, ...]:
        """Give the last changes that a table received after a version, the oldest first."""
        with self.database.read() as connection:
            return forecast_rows.arrivals(connection, table, after, limit)

    def forecasts(self, view_id: int, limit: int | None = None) -> tuple[forecast_rows.ForecastRecord, ...]:
        """List the forecasts made for a view, table by table, the newest first; they outlive it."""
        query = select(schema.forecasts).filter_by(view_id=view_id).order_by(schema.forecasts.c.id.desc())
        return self._all(forecast_rows.ForecastRecord, query.limit(limit)) if self._has(schema.forecasts) else ()

    def pace(self, table_id: int) -> forecast_rows.PaceRecord | None:
        """Give what an upstream system last said about a table."""
        query = select(schema.paces).filter_by(table_id=table_id)
        found = self._all(forecast_rows.PaceRecord, query) if self._has(schema.paces) else ()
        return found[0] if found else None

    def delays(self, table_id: int, measured: str, after: int, limit: int) -> tuple[forecast_rows.DelayRecord, ...]:
        """Give how late the rows of a table's last versions were, by one measure, the oldest first."""
        table = schema.delays
        query = select(table).filter_by(table_id=table_id, measured=measured).where(table.c.version > after)
        query = query.order_by(table.c.version.desc()).limit(limit)
        return self._all(forecast_rows.DelayRecord, query)[::-1] if self._has(table) else ()

    def _has(self, table: Table) -> bool:
        # A catalog that is only read may be older than this program; it says nothing about what came later.
        return self.schema_version >= schema.TABLES_SINCE.get(table.name, 1)

    def sources(self, table_id: int) -> tuple[SourceRecord, ...]:
        """List the sources of a table."""
        return self._all(
            SourceRecord, select(schema.sources).filter_by(table_id=table_id).order_by(schema.sources.c.id)
        )

    def source_files(self, source_id: int) -> tuple[SourceFileRecord, ...]:
        """List the files of a source that were applied or rejected."""
        table = schema.source_files
        order = (table.c.file, table.c.mtime_ns, table.c.size)
        return self._all(SourceFileRecord, select(table).filter_by(source_id=source_id).order_by(*order))

    def seen_files(self, source_id: int, files: Collection[str]) -> frozenset[tuple[str, int, int]]:
        """Give name, size and time of change of a source's files that were applied or rejected, as far as asked for."""
        with self.database.read() as connection:
            return seen_files(connection, source_id, files)

    def _all(self, record: type[rows.R], query: Select[Any]) -> tuple[rows.R, ...]:
        with self.database.read() as connection:
            return rows.all_as(record, connection, query)


def named_paths(connection: Connection) -> frozenset[str]:
    """Give every path that any record names."""
    return frozenset(connection.scalars(union(select(schema.segments.c.path), select(schema.states.c.path))))


def _version(connection: Connection) -> int:
    return connection.scalar(select(func.max(schema.commits.c.version))) or 0


def _check_lease(connection: Connection, lease: Fence | None) -> None:
    if lease is None:
        return
    # Locked until the transaction ends: nobody can take the lease over between this look and the commit.
    found = connection.execute(select(schema.lease).with_for_update()).one()
    if found.token != lease.token or not found.holder:
        raise CatalogError(
            "LEASE_LOST",
            "the writer's lease was released or taken over; nothing was written",
            "Open the warehouse again; another process may be writing to it.",
            {"token": lease.token, "found": found.token, "holder": found.holder, "host": found.host, "pid": found.pid},
        )


def _nearest(connection: Connection, table: Table, name: str) -> str:
    found = connection.execute(rows.live(table).where(table.c.name_key == name.casefold())).one_or_none()
    if found is not None:
        return f"Names are matched exactly: did you mean {found.name!r}?"
    names = connection.scalars(select(table.c.name).where(table.c.dropped_version.is_(None)).limit(10)).all()
    return f"There are: {', '.join(sorted(map(repr, names)))}." if names else f"There are no {table.name} yet."

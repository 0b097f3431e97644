"""What can be written in one version of the warehouse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, and_, delete, insert, select, update

from slackwater.errors import SourceError
from slackwater.storage import coverage, forecasts, rows, schema
from slackwater.storage.records import (
    NewSegment,
    NewSourceFile,
    NewState,
    RefreshRecord,
    SegmentRecord,
    SourceRecord,
    TableRecord,
    ViewRecord,
    broken,
    check_owner,
)
from slackwater.storage.source_files import write_source_files


class Transaction:
    """One version in the making; see `Catalog.commit`. All of it becomes visible at once, or none."""

    def __init__(self, connection: Connection, version: int, at: float) -> None:
        """Write through the connection, as the version of a moment."""
        self.version, self.at = version, at
        self._connection = connection
        self._alive: set[str] = set()
        """The owners of segments that were found not to be dropped."""

    def add_table(self, name: str, schema_json: str, key: Sequence[str] = ()) -> TableRecord:
        """Record a new table."""
        rows.check_free(self._connection, name, view=False)
        values = {"name": name, "name_key": name.casefold(), "schema_json": schema_json, "key_json": list(key)}
        row = self._insert(schema.tables, {**values, "complete": False, "created_version": self.version})
        return rows.as_table(row)

    def rename_table(self, table_id: int, name: str) -> TableRecord:
        """Call a table otherwise; its segments and sources are filed by its id and stay."""
        rows.live_table(self._connection, table_id)
        self._rename(schema.tables, table_id, name)
        return rows.live_table(self._connection, table_id)

    def mark_complete(self, table_id: int, complete: bool = True) -> None:
        """Record whether more changes will come."""
        rows.live_table(self._connection, table_id)
        self._update(schema.tables, schema.tables.c.id == table_id, complete=complete)

    def drop_table(self, table_id: int) -> None:
        """Drop a table with its segments and sources; their files become garbage."""
        table = rows.live_table(self._connection, table_id)
        for source_id in self._connection.scalars(select(schema.sources.c.id).filter_by(table_id=table_id)).all():
            self.drop_source(source_id)
        forecasts.forget_table(self._connection, table_id)
        self._drop(schema.tables, table_id, table.owner)

    def add_view(
        self, name: str, query_json: str, plan_json: str, settings_json: str, options_json: str, version: int = 0
    ) -> ViewRecord:
        """Record a new view; `version` is where its result stands: 0, the empty warehouse, before its first refresh."""
        rows.check_free(self._connection, name, view=True)
        row = self._insert(
            schema.views,
            {
                "name": name,
                "name_key": name.casefold(),
                "query_json": query_json,
                "plan_json": plan_json,
                "settings_json": settings_json,
                "options_json": options_json,
                "created_version": self.version,
                "version": version,
            },
        )
        return rows.read_as(ViewRecord, row)

    def update_view(
        self,
        view_id: int,
        *,
        version: int | None = None,
        query_json: str | None = None,
        plan_json: str | None = None,
        settings_json: str | None = None,
        options_json: str | None = None,
    ) -> ViewRecord:
        """Move a view to a version, or give it another query, plan, settings or options; what is not given stays."""
        before = rows.live_view(self._connection, view_id)
        if version is not None and version < before.version:
            raise broken(f"view {before.name!r} stands at {before.version} and cannot go back to {version}")
        given = {
            "version": version,
            "query_json": query_json,
            "plan_json": plan_json,
            "settings_json": settings_json,
            "options_json": options_json,
        }
        changes = {name: value for name, value in given.items() if value is not None}
        if not changes:
            return before
        changed = update(schema.views).where(schema.views.c.id == view_id).values(**changes).returning(schema.views)
        return rows.read_as(ViewRecord, self._connection.execute(changed).one())

    def rename_view(self, view_id: int, name: str) -> ViewRecord:
        """Call a view otherwise; its result, states and refreshes are filed by its id and stay."""
        rows.live_view(self._connection, view_id)
        self._rename(schema.views, view_id, name)
        return rows.live_view(self._connection, view_id)

    def drop_view(self, view_id: int) -> None:
        """Drop a view with its result and states; its refreshes stay on record."""
        view = rows.live_view(self._connection, view_id)
        self._connection.execute(delete(schema.states).where(schema.states.c.view_id == view_id))
        self._drop(schema.views, view_id, view.owner)

    def add_refresh(
        self,
        view_id: int,
        from_version: int,
        to_version: int,
        seconds: float,
        report: Mapping[str, object],
        at: float | None = None,
    ) -> RefreshRecord:
        """Record how a refresh went."""
        values = {"view_id": view_id, "from_version": from_version, "to_version": to_version, "seconds": seconds}
        row = self._insert(schema.refreshes, {**values, "report": dict(report), "at": self.at if at is None else at})
        return rows.read_as(RefreshRecord, row)

    def settle_forecasts(self, view_id: int, actual: Mapping[int, tuple[int, int]], at: float) -> None:
        """Put what came, as changed and deleted rows by table, beside a view's last forecast."""
        forecasts.settle(self._connection, view_id, actual, self.version, at)

    def add_forecasts(self, view_id: int, new: Iterable[forecasts.NewForecast], at: float) -> None:
        """Record a view's forecast of its next delta, instead of one that nothing was put beside."""
        self._check_live(f"v{view_id}")
        forecasts.add(self._connection, view_id, new, self.version, at)

    def add_delays(self, new: Iterable[forecasts.DelayRecord]) -> None:
        """Record how late the rows of some versions were; what is on record already stays."""
        forecasts.add_delays(self._connection, new)

    def replace_states(self, view_id: int, states: Iterable[NewState]) -> None:
        """Record the saved states of a view, instead of all it had."""
        replace_states(self._connection, view_id, states)

    def add_segments(self, owner: str, new: Iterable[NewSegment]) -> tuple[SegmentRecord, ...]:
        """Make written segments visible, as the changes of this version."""
        self._check_live(owner)
        return self._add_segments(owner, new, self.version, self.version, None)

    def merge_segments(self, owner: str, ids: Iterable[int], new: Iterable[NewSegment]) -> tuple[SegmentRecord, ...]:
        """Let new segments stand for old ones: for all that the owner has, live, in their range of versions.

        There may be no new segment, where all changes cancel out. The old ones are superseded, not removed: they still
        answer for versions inside the range, until `Catalog.forget_segments`.
        """
        self._check_live(owner)
        wanted = set(ids)
        segments = [found for found in rows.segments_of(self._connection, owner) if found.superseded_by is None]
        merges = [found for found in rows.merges_of(self._connection, owner) if found.superseded_by is None]
        chosen = [segment for segment in segments if segment.id in wanted]
        if not wanted or len(chosen) < len(wanted):
            raise broken(f"only live segments of {owner} can be merged", owner=owner, ids=sorted(wanted))
        first, last = coverage.merged_range(chosen, segments, merges)

        values = {"owner": owner, "first_version": first, "last_version": last, "inputs_kept": True}
        merge_id: int = self._insert(schema.merges, values).id
        for table in (schema.segments, schema.merges):
            # By range, not by id: there may be more segments than a statement can name.
            inside = and_(
                table.c.owner == owner,
                table.c.superseded_by.is_(None),
                table.c.first_version >= first,
                table.c.last_version <= last,
            )
            if table is schema.merges:
                inside = and_(inside, table.c.id != merge_id)
            self._update(table, inside, superseded_by=merge_id, superseded_version=self.version)
        return self._add_segments(owner, new, first, last, merge_id)

    def add_source(self, table_id: int, name: str, kind: str, config: Mapping[str, object]) -> SourceRecord:
        """Record where changes of a table come from."""
        rows.check_name(name)
        table = rows.live_table(self._connection, table_id)
        same = and_(schema.sources.c.table_id == table_id, schema.sources.c.name == name)
        if self._connection.scalar(select(schema.sources.c.id).where(same)) is not None:
            message = f"table {table.name!r} has a source {name!r} already"
            raise SourceError("SOURCE_EXISTS", message, "Choose another name or drop it first.", {"source": name})
        values = {"table_id": table_id, "name": name, "kind": kind, "config": dict(config)}
        return rows.read_as(SourceRecord, self._insert(schema.sources, values))

    def drop_source(self, source_id: int) -> None:
        """Forget a source and which of its files were applied."""
        self._connection.execute(delete(schema.source_files).where(schema.source_files.c.source_id == source_id))
        self._connection.execute(delete(schema.sources).where(schema.sources.c.id == source_id))

    def add_source_files(self, source_id: int, files: Iterable[NewSourceFile]) -> None:
        """Record the files whose changes this version brings, so that they are never applied again."""
        write_source_files(self._connection, source_id, files, self.version)

    def _add_segments(
        self, owner: str, new: Iterable[NewSegment], first: int, last: int, merge_id: int | None
    ) -> tuple[SegmentRecord, ...]:
        place = {"owner": owner, "first_version": first, "last_version": last, "merge_id": merge_id}
        values = [
            {
                **place,
                "sign": segment.sign,
                "path": segment.path,
                "row_count": segment.row_count,
                "byte_count": segment.byte_count,
            }
            for segment in new
        ]
        if not values:
            return ()
        made = insert(schema.segments).returning(schema.segments, sort_by_parameter_order=True)
        return tuple(rows.read_as(SegmentRecord, row) for row in self._connection.execute(made, values))

    def _rename(self, table: Table, row_id: int, name: str) -> None:
        rows.check_free(self._connection, name, view=table is schema.views, renamed=row_id)
        self._update(table, table.c.id == row_id, name=name, name_key=name.casefold())

    def _drop(self, table: Table, row_id: int, owner: str) -> None:
        self._connection.execute(delete(schema.segments).where(schema.segments.c.owner == owner))
        # Merges point at one another; without that they can go in any order.
        self._update(schema.merges, schema.merges.c.owner == owner, superseded_by=None)
        self._connection.execute(delete(schema.merges).where(schema.merges.c.owner == owner))
        self._update(table, table.c.id == row_id, dropped_version=self.version)
        self._alive.discard(owner)

    def _check_live(self, owner: str) -> None:
        check_owner(owner)
        if owner not in self._alive:
            find = rows.live_table if owner.startswith("t") else rows.live_view
            find(self._connection, int(owner[1:]))
            self._alive.add(owner)

    def _insert(self, table: Table, values: Mapping[str, object]) -> Any:
        return self._connection.execute(insert(table).values(**values).returning(table)).one()

    def _update(self, table: Table, where: ColumnElement[bool], **values: object) -> None:
        self._connection.execute(update(table).where(where).values(**values))


def replace_states(connection: Connection, view_id: int, states: Iterable[NewState]) -> None:
    """Record the saved states of a view, instead of all it had."""
    rows.live_view(connection, view_id)
    connection.execute(delete(schema.states).where(schema.states.c.view_id == view_id))
    values = [
        {
            "view_id": view_id,
            "node": state.node,
            "version": state.version,
            "path": state.path,
            "row_count": state.row_count,
            "byte_count": state.byte_count,
            "detail": dict(state.detail),
        }
        for state in states
    ]
    if values:
        connection.execute(insert(schema.states), values)

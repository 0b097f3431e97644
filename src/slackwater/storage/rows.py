"""Rows of the catalog's database, read as records."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, Row, Select, Table, select

from slackwater.errors import SlackwaterError, TableError, ViewError
from slackwater.storage import schema
from slackwater.storage.records import MergeRecord, SegmentRecord, TableRecord, ViewRecord, broken

R = TypeVar("R")

NAME_LENGTH = 255
"""The longest name, in characters; indexes on PostgreSQL limit it too."""


def read_as(record: type[R], row: Row[Any]) -> R:
    """Read a row whose columns are named as the record's fields."""
    values = row._mapping
    names: tuple[str, ...] = _names(cast(Any, record))
    return record(**{name: values[name] for name in names})


@cache
def _names(record: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(record))


def all_as(record: type[R], connection: Connection, query: Select[Any]) -> tuple[R, ...]:
    """Read all rows of a query as records."""
    return tuple(read_as(record, row) for row in connection.execute(query))


def as_table(row: Row[Any]) -> TableRecord:
    """Read a row of `tables`."""
    return TableRecord(
        id=row.id,
        name=row.name,
        schema_json=row.schema_json,
        key=tuple(row.key_json),
        complete=row.complete,
        created_version=row.created_version,
        dropped_version=row.dropped_version,
    )


def live(table: Table) -> Select[Any]:
    """Select the tables or views that are not dropped, in the order they were made."""
    return select(table).where(table.c.dropped_version.is_(None)).order_by(table.c.id)


def live_table(connection: Connection, table_id: int) -> TableRecord:
    """Find a table by id, as those who hold its record do."""
    row = connection.execute(live(schema.tables).where(schema.tables.c.id == table_id)).one_or_none()
    if row is None:
        raise TableError("TABLE_UNKNOWN", "the table was dropped", "Create it again.", {"table_id": table_id})
    return as_table(row)


def live_view(connection: Connection, view_id: int) -> ViewRecord:
    """Find a view by id, as those who hold its record do."""
    row = connection.execute(select(schema.views).where(schema.views.c.id == view_id)).one_or_none()
    if row is None:
        raise broken(f"there never was a view with id {view_id}", view_id=view_id)
    if row.dropped_version is not None:
        raise _dropped(connection, read_as(ViewRecord, row))
    return read_as(ViewRecord, row)


def _dropped(connection: Connection, view: ViewRecord) -> ViewError:
    another = connection.execute(live(schema.views).where(schema.views.c.name == view.name)).one_or_none()
    message = f"view {view.name!r} was {'replaced' if another else 'dropped'} at version {view.dropped_version}"
    advice = f"Ask for the new one: engine.view({view.name!r})." if another else "Create it again."
    return ViewError("VIEW_DROPPED", message, advice, {"view": view.name, "version": view.dropped_version})


def segments_of(connection: Connection, owner: str) -> tuple[SegmentRecord, ...]:
    """Read all segments of an owner, superseded ones included."""
    return all_as(SegmentRecord, connection, select(schema.segments).where(schema.segments.c.owner == owner))


def merges_of(connection: Connection, owner: str) -> tuple[MergeRecord, ...]:
    """Read all merges of an owner, superseded ones included."""
    return all_as(MergeRecord, connection, select(schema.merges).where(schema.merges.c.owner == owner))


def check_name(name: str) -> None:
    """Refuse a name that a database could not store or a person could not see; all others are data, however odd."""
    if not isinstance(name, str):
        message = f"a {type(name).__name__} cannot be a name"
        raise SlackwaterError("NAME_INVALID", message, "Choose a name that is text.")
    reason = None
    if not name.strip():
        reason = "it is empty"
    elif len(name) > NAME_LENGTH:
        reason = f"it is longer than {NAME_LENGTH} characters"
    elif any(char < " " or "\ud800" <= char <= "\udfff" for char in name):
        reason = "it holds a control character or half a character"
    if reason:
        raise SlackwaterError("NAME_INVALID", f"{name[:80]!r} cannot be a name: {reason}", "Choose another name.")


def check_free(connection: Connection, name: str, *, view: bool, renamed: int | None = None) -> None:
    """Refuse a name that is taken; what is renamed may take its own in another case."""
    check_name(name)
    for table, kind in ((schema.tables, "table"), (schema.views, "view")):
        same = table.c.name_key == name.casefold()
        if found := connection.execute(live(table).where(same)).one_or_none():
            if found.id == renamed and (table is schema.views) == view and found.name != name:
                continue
            message = f"there is a {kind} {found.name!r} already; tables and views share their names, in any case"
            advice = "Choose another name or drop it first."
            details = {"name": name, "found": found.name, "kind": kind}
            if view:
                raise ViewError("VIEW_EXISTS", message, advice, details)
            raise TableError("TABLE_EXISTS", message, advice, details)

"""Which files of a source were applied or rejected: the source's offset."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from sqlalchemy import Connection, and_, insert, select, update

from slackwater.storage import schema
from slackwater.storage.records import NewSourceFile, broken

_BY_NAME: Final = 500
"""Up to so many files are asked for by name: a statement cannot hold any number of them."""


def seen_files(connection: Connection, source_id: int, files: Collection[str]) -> frozenset[tuple[str, int, int]]:
    """Read name, size and time of change of the files that were applied or rejected: at least of those asked for."""
    table = schema.source_files
    query = select(table.c.file, table.c.size, table.c.mtime_ns).where(table.c.source_id == source_id)
    if len(files) <= _BY_NAME:
        query = query.where(table.c.file.in_(files))
    return frozenset((row.file, row.size, row.mtime_ns) for row in connection.execute(query))


def write_source_files(
    connection: Connection, source_id: int, files: Iterable[NewSourceFile], version: int | None
) -> None:
    """Record files as applied at a version or, without one, as rejected.

    A rejected file may be rejected again or applied later; one that was applied stays so, because recording it twice
    would mean that its changes were committed twice.
    """
    table = schema.source_files
    status = "rejected" if version is None else "applied"
    for file in files:
        key = {"source_id": source_id, "file": file.file, "size": file.size, "mtime_ns": file.mtime_ns}
        same = and_(*(table.c[name] == value for name, value in key.items()))
        values = {"status": status, "version": version, "report": dict(file.report)}
        before = connection.scalar(select(table.c.status).where(same))
        if before == "applied":
            raise broken(f"source file {file.file!r} was applied before and is now {status}", **key)
        if before is None:
            connection.execute(insert(table).values(**key, **values))
        else:
            connection.execute(update(table).where(same).values(**values))

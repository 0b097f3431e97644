"""Which files of a source were applied or rejected: the source's offset."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, and_, insert, select, update

from slackwater.storage import schema
from slackwater.storage.records import NewSourceFile, broken


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

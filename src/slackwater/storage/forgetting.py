"""Forgetting superseded segments: the end of history for the versions inside a merge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from sqlalchemy import Connection, delete, exists, or_, select, update

from slackwater.storage import schema
from slackwater.storage.records import broken

_AT_ONCE: Final = 500  # a statement cannot name any number of rows


def forget_segments(connection: Connection, ids: Iterable[int]) -> int:
    """Remove superseded segments; versions inside the merges made of them can then no longer be told apart."""
    wanted = sorted(set(ids))
    count = sum(_forget(connection, wanted[start : start + _AT_ONCE]) for start in range(0, len(wanted), _AT_ONCE))
    _remove_unreachable_merges(connection)
    return count


def _forget(connection: Connection, ids: Sequence[int]) -> int:
    segments = schema.segments
    found = connection.execute(select(segments.c.id, segments.c.superseded_by).where(segments.c.id.in_(ids))).all()
    if live := [row.id for row in found if row.superseded_by is None]:
        raise broken(f"segments {live} are in use and cannot be forgotten", ids=live)
    parents = {row.superseded_by for row in found}
    connection.execute(update(schema.merges).where(schema.merges.c.id.in_(parents)).values(inputs_kept=False))
    connection.execute(delete(segments).where(segments.c.id.in_([row.id for row in found])))
    return len(found)


def _remove_unreachable_merges(connection: Connection) -> None:
    # A merge below one whose inputs are gone is never looked into. It goes once nothing points at it any more.
    merges, segments, other = schema.merges, schema.segments, schema.merges.alias()
    sealed = select(other.c.id).where(other.c.inputs_kept.is_(False))
    pointed_at = or_(
        exists().where(or_(segments.c.merge_id == merges.c.id, segments.c.superseded_by == merges.c.id)),
        exists().where(other.c.superseded_by == merges.c.id),
    )
    while connection.execute(delete(merges).where(merges.c.superseded_by.in_(sealed), ~pointed_at)).rowcount:
        pass

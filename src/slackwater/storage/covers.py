"""Which segments hold an owner's changes, remembered while the owner has no others.

A refresh asks for the same few answers over and over, and each takes all the owner's records, those that were merged
into others included. One look at how many there are, and at the last of them, tells whether an answer still holds:
records are added and forgotten, but what they say about a range of versions never changes by itself.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, Select, Table, func, literal, select, union_all

from slackwater.storage import coverage, rows, schema
from slackwater.storage.records import MergeRecord, SegmentRecord

KEPT = 64
"""So many answers are remembered for one owner."""

State = tuple[Any, ...]
_NONE: State = (0, None, None)
_Range = tuple[int, int, bool]


class Covers:
    """The answers of one catalog."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[State, dict[_Range, tuple[SegmentRecord, ...]]]] = {}

    def find(
        self, connection: Connection, owner: str, state: State, after: int, upto: int, *, per_version: bool = False
    ) -> tuple[SegmentRecord, ...]:
        """The fewest segments that hold exactly an owner's changes in `(after, upto]`; `state` is that of its records.

        All are of one transaction.
        """
        last = max(state[2] or 0, state[5] or 0)
        known = self._known.get(owner)
        if known is None or known[0] != state:
            known = self._known[owner] = (state, {})
        asked = (after, min(upto, last), per_version)  # beyond the last change there is nothing to tell apart
        found = known[1].get(asked)
        if found is None:
            found = _cover(connection, owner, after, upto, per_version=per_version)
            if len(known[1]) >= KEPT:
                known[1].clear()
            known[1][asked] = found
        return found


def records_of(connection: Connection, owners: Collection[str]) -> dict[str, State]:
    """How many records each owner has, and the last of them."""

    def told(table: Table, part: int) -> Select[Any]:
        known = table.c
        counted = (func.count().label("count"), func.max(known.id).label("id"), func.max(known.last_version))
        return select(known.owner, literal(part), *counted).where(known.owner.in_(owners)).group_by(known.owner)

    parts: dict[str, list[State]] = {owner: [_NONE, _NONE] for owner in owners}
    for owner, part, *found in connection.execute(union_all(told(schema.segments, 0), told(schema.merges, 1))):
        parts[owner][part] = tuple(found)
    return {owner: (*of_segments, *of_merges) for owner, (of_segments, of_merges) in parts.items()}


def _cover(
    connection: Connection, owner: str, after: int, upto: int, *, per_version: bool
) -> tuple[SegmentRecord, ...]:
    def touching(table: Table) -> Select[Any]:
        # What lies outside the range is never looked at by `cover`.
        return select(table).where(table.c.owner == owner, table.c.last_version > after, table.c.first_version <= upto)

    segments = rows.all_as(SegmentRecord, connection, touching(schema.segments))
    merges = rows.all_as(MergeRecord, connection, touching(schema.merges))
    return coverage.cover(segments, merges, after, upto, per_version=per_version)

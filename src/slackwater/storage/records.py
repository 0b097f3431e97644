"""What the catalog says, as plain immutable values. Nothing here knows SQL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final, Protocol

from slackwater.errors import CatalogError

RENAME_TABLE: Final = "rename_table"
"""The kind of commit that calls a table otherwise: its subject is the new name, its detail has the old as `from`."""

_OWNER = re.compile(r"[tv][1-9][0-9]*", re.ASCII)


def broken(message: str, **details: object) -> CatalogError:
    """Build the error for records that contradict each other."""
    return CatalogError("INVARIANT_BROKEN", message, "This is a bug in Slackwater: please report it.", details)


def check_path(path: str) -> None:
    """Refuse a path that could lead out of the warehouse: vacuuming deletes what paths name."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\\" in path or "\0" in path:
        raise broken(f"{path!r} is not a path inside the warehouse", path=path)


def check_owner(owner: str) -> None:
    """Refuse an owner that is neither a table (`t7`) nor a view (`v7`)."""
    if not _OWNER.fullmatch(owner):
        raise broken(f"{owner!r} is neither a table nor a view", owner=owner)


class Fence(Protocol):
    """Whatever proves the right to write: a `WriterLease`, known here only by its token."""

    @property
    def token(self) -> int:
        """The token that the catalog must still hold when a transaction commits."""


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """One version of the warehouse."""

    version: int
    at: float
    kind: str
    subject: str
    detail: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class TableRecord:
    """A base relation."""

    id: int
    name: str
    schema_json: str
    key: tuple[str, ...]
    complete: bool
    created_version: int
    dropped_version: int | None

    @property
    def owner(self) -> str:
        """The name under which its segments are filed."""
        return f"t{self.id}"


@dataclass(frozen=True, slots=True)
class ViewRecord:
    """A standing query, and the version its result stands at."""

    id: int
    name: str
    query_json: str
    plan_json: str
    settings_json: str
    options_json: str
    created_version: int
    version: int
    dropped_version: int | None

    @property
    def owner(self) -> str:
        """The name under which the segments of its result are filed."""
        return f"v{self.id}"


@dataclass(frozen=True, slots=True)
class NewSegment:
    """A segment whose files are written, about to be made visible."""

    sign: int
    path: str
    row_count: int
    byte_count: int

    def __post_init__(self) -> None:
        """Refuse what could not be read back."""
        check_path(self.path)
        if self.sign not in (1, -1) or self.row_count < 0 or self.byte_count < 0:
            raise broken(f"{self} is not a segment")


@dataclass(frozen=True, slots=True)
class SegmentRecord:
    """An immutable set of Parquet files holding the changes of one owner, of one sign, in a range of versions.

    As written, a segment holds one version. A *merged* one (`merge_id` set) stands, with the others of its merge, for
    all changes of the owner from `first_version` to `last_version`.
    """

    id: int
    owner: str
    sign: int
    first_version: int
    last_version: int
    path: str
    row_count: int
    byte_count: int
    merge_id: int | None
    superseded_by: int | None
    superseded_version: int | None

    def __post_init__(self) -> None:
        """Refuse a path that a tampered catalog might hold."""
        check_path(self.path)

    @property
    def merged(self) -> bool:
        """Whether it came from merging others."""
        return self.merge_id is not None


@dataclass(frozen=True, slots=True)
class MergeRecord:
    """One merge: its inputs are the rows it superseded, its outputs the segments that carry its id (possibly none)."""

    id: int
    owner: str
    first_version: int
    last_version: int
    inputs_kept: bool
    superseded_by: int | None
    superseded_version: int | None


@dataclass(frozen=True, slots=True)
class NewState:
    """A saved copy of a state, about to be recorded."""

    node: str
    version: int
    path: str
    row_count: int
    byte_count: int
    detail: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a path that leads out of the warehouse."""
        check_path(self.path)


@dataclass(frozen=True, slots=True)
class StateRecord:
    """A saved copy of a view's state, valid at exactly one version."""

    id: int
    view_id: int
    node: str
    version: int
    path: str
    row_count: int
    byte_count: int
    detail: Mapping[str, object]

    def __post_init__(self) -> None:
        """Refuse a path that a tampered catalog might hold."""
        check_path(self.path)


@dataclass(frozen=True, slots=True)
class RefreshRecord:
    """One refresh of a view, with what was predicted and what happened."""

    id: int
    view_id: int
    from_version: int
    to_version: int
    at: float
    seconds: float
    report: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """Where a table's changes come from."""

    id: int
    table_id: int
    name: str
    kind: str
    config: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class NewSourceFile:
    """A source file that was read, about to be recorded as applied or rejected."""

    file: str
    size: int
    mtime_ns: int
    report: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SourceFileRecord:
    """A source file, as it was when it was applied (at a version) or rejected."""

    source_id: int
    file: str
    size: int
    mtime_ns: int
    status: str
    version: int | None
    report: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """Who may write, and until when. The token grows with every acquisition."""

    holder: str
    host: str
    pid: int
    process_start: str
    token: int
    expires_at: float

"""What a poll found, for people, programs and notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from slackwater.execution.reports import Report
from slackwater.storage.records import SourceFileRecord


@dataclass(frozen=True, slots=True)
class LandedFile:
    """A file whose rows are in the table, since a version."""

    file: str
    size: int
    mtime_ns: int
    version: int

    @classmethod
    def of(cls, record: SourceFileRecord) -> LandedFile:
        """Read the catalog's record."""
        return cls(record.file, record.size, record.mtime_ns, record.version or 0)


@dataclass(frozen=True, slots=True)
class RejectedFile:
    """A file that was set aside, and why.

    Attributes:
        file: its name.
        size: its bytes when it was read.
        mtime_ns: its time of change when it was read; with another size or time it is tried again.
        code: SOURCE_FILE_MALFORMED, SOURCE_FORMAT, KEY_EXISTS, KEY_DUPLICATE or KEY_NULL.
        message: what was wrong.
        advice: what to do about it.
        details: the facts, with the underlying `reason`.
    """

    file: str
    size: int
    mtime_ns: int
    code: str
    message: str
    advice: str
    details: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, record: SourceFileRecord) -> RejectedFile:
        """Read the catalog's record."""
        report: Any = record.report
        return cls(record.file, record.size, record.mtime_ns, report["code"], report["message"], report["advice"],
                   report["details"])  # fmt: skip

    def __str__(self) -> str:
        return f"[{self.code}] {self.message}\n  → {self.advice}"


@dataclass(frozen=True, slots=True)
class Poll:
    """The report of one poll.

    Attributes:
        table: the table's name.
        version: the version that the new files became; None when no file was applied.
        rows: how many rows they brought.
        applied: the files applied, in the order of their arrival.
        rejected: the files set aside in this poll.
        postponed: files left for the next poll, with the reason: they changed, or could not be opened.
    """

    table: str
    version: int | None = None
    rows: int = 0
    applied: tuple[str, ...] = ()
    rejected: tuple[RejectedFile, ...] = ()
    postponed: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "applied": list(self.applied), "rejected": [asdict(r) for r in self.rejected]}

    def __str__(self) -> str:
        files = f"{len(self.applied)} file{'' if len(self.applied) == 1 else 's'}"
        lines = [
            f"{self.table}: nothing new"
            if self.version is None
            else f"{self.table}: version {self.version}, {self.rows:,} rows from {files}"
        ]
        lines += [f"  set aside  {rejected.file!r}: [{rejected.code}] {rejected.message}" for rejected in self.rejected]
        lines += [f"  postponed  {file!r}: {reason}" for file, reason in self.postponed.items()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return Report(self)._repr_html_()

"""The files of a landing directory: which are new, and a frozen copy of each.

Spark never sees the directory. A file is copied under a name of ours, through a descriptor that cannot be led astray by
a link, and the copy counts only if the file did not change meanwhile. So whatever a file is called and whatever happens
to it later, all that is read of it are the bytes that its recorded name, size and time of change stand for.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote_from_bytes

from slackwater.errors import SourceError
from slackwater.storage.records import NewSourceFile

Identity = tuple[str, int, int]
"""Name, size and time of change: another one under the same name is another file."""

SUFFIXES: Final = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
UNFINISHED: Final = (".tmp", ".crc", ".inprogress")
_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file as it was when the directory was listed."""

    name: str
    size: int
    mtime_ns: int
    mode: int

    @classmethod
    def of(cls, name: str, found: os.stat_result) -> Candidate:
        """Describe a directory's entry."""
        return cls(name, found.st_size, found.st_mtime_ns, found.st_mode)

    @property
    def file(self) -> str:
        """The name as it is recorded: as it is, or, if that is no text, in a form that no file can have."""
        try:
            self.name.encode()
        except UnicodeEncodeError:
            return "./" + quote_from_bytes(os.fsencode(self.name))
        return self.name

    @property
    def identity(self) -> Identity:
        """What tells this file from all others."""
        return self.file, self.size, self.mtime_ns

    @property
    def compressed(self) -> bool:
        """Whether the name says gzip."""
        return self.name.lower().endswith(".gz")

    @property
    def format(self) -> str | None:
        """The format that the name says."""
        base, suffix = os.path.splitext(self.name.lower())
        if suffix != ".gz":
            return SUFFIXES.get(suffix)
        found = SUFFIXES.get(os.path.splitext(base)[1])
        return None if found == "parquet" else found

    def record(self, error: SourceError | None = None) -> NewSourceFile:
        """What the catalog keeps of it."""
        return NewSourceFile(*self.identity, report=error.to_dict() if error else {})


@dataclass(frozen=True, slots=True)
class FrozenFile:
    """A copy of a file, about to be read; files of one shape can be read together."""

    candidate: Candidate
    path: Path
    format: str
    shape: str


@contextmanager
def opened(path: str) -> Iterator[int]:
    """Hold a directory open, so that all that follows is about the same one."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise missing(path, error.strerror or "it cannot be opened") from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def missing(path: str, reason: str) -> SourceError:
    """Build the error for a directory that is not there."""
    return SourceError("SOURCE_MISSING", f"the landing directory {path!r} cannot be read: {reason}",
                       "create it, or give the path of another local directory", {"path": path})  # fmt: skip


def finished(directory: int) -> list[Candidate]:
    """List the files that are whole, as their names say, in the order of their arrival."""
    found = []
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith((".", "_")) or entry.name.lower().endswith(UNFINISHED):
                continue
            try:
                candidate = Candidate.of(entry.name, entry.stat(follow_symlinks=False))
            except FileNotFoundError:  # renamed or removed since it was listed
                continue
            if not stat.S_ISDIR(candidate.mode):
                found.append(candidate)
    return sorted(found, key=lambda candidate: (candidate.mtime_ns, candidate.name))


def objection(candidate: Candidate) -> str | None:
    """Say why a file is refused unread."""
    if stat.S_ISLNK(candidate.mode):
        return "it is a symbolic link; only files that lie in the directory itself are read"
    if not stat.S_ISREG(candidate.mode):
        return "it is not a regular file"
    if candidate.size == 0:
        return "it is empty: 0 bytes"
    return None


def freeze(directory: int, candidate: Candidate, target: Path) -> str | None:
    """Copy a file; if it has to wait for the next poll, say why."""
    try:
        # Without blocking, should a pipe have taken the file's place.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(candidate.name, flags, dir_fd=directory)
    except OSError as error:
        return f"it cannot be opened: {error.strerror}"
    with os.fdopen(descriptor, "rb") as source, target.open("xb") as copy:
        before = Candidate.of(candidate.name, os.fstat(descriptor))
        if before == candidate:
            shutil.copyfileobj(source, copy, _CHUNK)
        if before != candidate or Candidate.of(candidate.name, os.fstat(descriptor)) != candidate:
            return "it changed while it was read"
    return None

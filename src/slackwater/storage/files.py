"""Parquet files on disk: where they go, how they are written, counted and swept.

Files are written under new names and become visible only by a commit; what no commit names is garbage.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from slackwater.errors import SlackwaterError
from slackwater.storage.faults import crash_point
from slackwater.storage.records import NewSegment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

DATA, STAGING = "data", "staging"
KEPT_FRAMES = 64
"""How many listings of files are remembered."""
KEPT_SPANS = 10_000
"""Of how many files it is remembered which values they hold."""


class WarehouseFiles:
    """The files of one warehouse directory."""

    def __init__(self, root: Path) -> None:
        """`root` is the warehouse directory."""
        self.root = root
        self._frames: dict[tuple[int, tuple[str, ...], str], DataFrame] = {}
        self._lock = Lock()
        self._spans: dict[tuple[str, str], tuple[Any, Any] | None] = {}
        self._lasting: set[Path] = set()
        """Directories of owners that the disk is known to have."""

    def new_path(self, owner: str, area: str = DATA) -> str:
        """A relative path that nothing uses yet."""
        return f"{area}/{owner}/{uuid.uuid4().hex}"

    def absolute(self, path: str) -> str:
        """Where a relative path lies."""
        return str(self.root / path)

    def readable(self, path: str) -> str:
        """A relative path as Spark must be given it to read."""
        return literal_path(self.absolute(path))

    def read(self, spark: SparkSession, paths: tuple[str, ...], schema: StructType) -> DataFrame:
        """Read segments; files never change, so the listing of them is done once and kept."""
        slot = (id(spark), paths, schema.json())
        found = self._frames.get(slot)
        if found is None:
            # To a dictionary -0.0 is another number than 0.0, so that a filter would leave out rows that have it.
            reader = spark.read.schema(schema).option("parquet.filter.dictionary.enabled", "false")
            found = reader.parquet(*(self.readable(p) for p in paths))
            with self._lock:
                while len(self._frames) >= KEPT_FRAMES:
                    self._frames.pop(next(iter(self._frames)))
                self._frames[slot] = found
        return found

    def write(self, frame: DataFrame, owner: str, area: str = DATA) -> str:
        """Write a DataFrame through Spark; give the relative path."""
        path = self.new_path(owner, area)
        with self.writing(path):
            frame.write.option("compression", "zstd").parquet(self.absolute(path))
        return path

    def write_arrow(self, table: pa.Table, owner: str, area: str = DATA) -> str:
        """Write a small Arrow table without a Spark job; give the relative path."""
        path = self.new_path(owner, area)
        with self.writing(path):
            directory = self.root / path
            directory.mkdir(parents=True)
            # Arrow's least and greatest know nothing of NaN, and a filter of Spark, to which NaN is the greatest, goes
            # by them. Spark itself writes none where there is a NaN.
            bounded = [field.name for field in table.schema if not pa.types.is_floating(field.type)]
            pq.write_table(table, directory / f"part-{uuid.uuid4().hex}.parquet", coerce_timestamps="us",
                           write_statistics=bounded)  # fmt: skip
        return path

    @contextmanager
    def writing(self, path: str) -> Iterator[None]:
        """Make what the body writes durable; on failure remove it and say why in our words."""
        try:
            crash_point("segment.before_write")
            yield
            if not path.startswith(f"{STAGING}/"):  # no commit relies on these
                self._sync(path)
            crash_point("segment.after_write")
        except BaseException as error:
            self.remove(path)
            if is_disk_full(error):
                raise SlackwaterError("STORAGE_FULL", f"the disk of {self.root} is full",
                                      "free some space and try again; nothing was applied") from error  # fmt: skip
            raise

    def _sync(self, path: str) -> None:
        """Bring files to the disk, and the directories that have their names: a commit is about to rely on them."""
        segment = self.root / path
        for file in segment.iterdir():
            sync(file)
        sync(segment)
        owner = segment.parent
        sync(owner)
        if owner not in self._lasting:
            sync(owner.parent)
            sync(self.root)
            self._lasting.add(owner)

    def parquet_files(self, path: str) -> list[Path]:
        """The data files of a segment."""
        return sorted(f for f in (self.root / path).glob("*.parquet") if not f.name.startswith(("_", ".")))

    def segment(self, sign: int, path: str, rows: int | None = None) -> NewSegment:
        """Describe written files; where the rows are not known they are counted from the files' footers."""
        files = self.parquet_files(path)
        if rows is None:
            rows = sum(pq.read_metadata(f).num_rows for f in files)
        return NewSegment(sign, path, rows, sum(f.stat().st_size for f in files))

    def span(self, path: str, column: str) -> tuple[Any, Any] | None:
        """The least and the greatest value of a column, as the footers of the files state them; None where they do not.

        Files never change, so that they are asked once.
        """
        slot = (path, column)
        if slot not in self._spans:
            while len(self._spans) >= KEPT_SPANS:
                self._spans.pop(next(iter(self._spans)))
            self._spans[slot] = _span_of(self.parquet_files(path), column)
        return self._spans[slot]

    def remove(self, path: str) -> None:
        """Remove files that no commit names; never fails."""
        shutil.rmtree(self.root / path, ignore_errors=True)

    def sweep(self, named: frozenset[str]) -> int:
        """Remove what a crash left behind: every segment directory that the catalog does not name."""
        removed = 0
        shutil.rmtree(self.root / STAGING, ignore_errors=True)
        for area in (DATA, "states"):
            for owner in (self.root / area).glob("*"):
                for directory in owner.iterdir() if owner.is_dir() else ():
                    if f"{area}/{owner.name}/{directory.name}" not in named:
                        shutil.rmtree(directory, ignore_errors=True)
                        removed += 1
        return removed


def _span_of(files: list[Path], column: str) -> tuple[Any, Any] | None:
    ends: list[Any] = []
    for file in files:
        try:
            footer = pq.read_metadata(file)
        except (OSError, pa.ArrowException):
            return None  # whoever reads the file says what is wrong with it
        paths = [footer.schema.column(i).path for i in range(footer.num_columns)]
        at = paths.index(column) if column in paths else None
        for group in range(footer.num_row_groups):
            told = footer.row_group(group).column(at).statistics if at is not None else None
            if told is None or not told.has_min_max or told.null_count:
                return None
            try:
                ends += [told.min, told.max]
            except OverflowError:
                return None  # Spark has dates that Python has not
    return (min(ends), max(ends)) if ends else None


def sync(path: Path) -> None:
    """Bring a file, or the names in a directory, to the disk; not every file system does that for directories."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP) or not path.is_dir():
            raise
    finally:
        os.close(descriptor)


def literal_path(path: str) -> str:
    """Spark takes what it reads for a pattern: escape what would not stand for itself."""
    return re.sub(r"([][{}*?\\])", r"\\\1", path)


def is_disk_full(error: BaseException) -> bool:
    """Whether an error, ours or one that came through Spark, says that the disk is full."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    return "No space left on device" in str(error)

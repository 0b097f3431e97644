"""One poll of a landing directory: freeze, read, check and commit, all in one version."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from slackwater.errors import SlackwaterError, SourceError, TableError
from slackwater.sources.blame import footer_reason, keys_refused, malformed, spark_reason, wrong_content
from slackwater.sources.candidates import Candidate, FrozenFile, freeze, objection
from slackwater.sources.polls import Poll, RejectedFile
from slackwater.sources.reading import TEXT, BatchReader, shape
from slackwater.storage.faults import crash_point
from slackwater.storage.files import STAGING, is_disk_full
from slackwater.storage.uncommitted import remove_uncommitted

if TYPE_CHECKING:
    from slackwater.table import Table


class PollRun:
    """What one poll has found out so far. The writer's lock is held around it."""

    def __init__(self, table: Table, source_id: int, format_: str | None, options: Mapping[str, str]) -> None:
        self._table, self._engine, self._source_id = table, table._engine, source_id
        self._format, self._reader = format_, BatchReader(table, options)
        self._written: list[str] = []
        self._accepted: list[Candidate] = []
        self._rejected: dict[Candidate, SourceError] = {}
        self._postponed: dict[str, str] = {}

    def run(self, directory: int, found: Sequence[Candidate]) -> Poll:
        """Apply what can be applied of the files found in an open directory."""
        files, staging = self._engine.files, self._engine.files.new_path(f"t{self._table.id}", STAGING)
        try:
            frozen = self._freeze(directory, found, Path(files.absolute(staging)))
            self._reject(self._reader.odd_columns(frozen))
            self._reject(self._reader.odd_lines(self._left(frozen)))
            self._divide([file for file in self._left(frozen) if file.format == "json"], self._screen_json)
            self._divide([file for file in self._left(frozen) if file.format in TEXT], self._screen_values)
            self._divide(self._left(frozen), self._take)
            crash_point("source.after_read")
            return self._commit(found)
        except BaseException as error:
            remove_uncommitted(files, self._engine.catalog, self._written, error)
            if (told := _in_our_words(error, self._engine.path)) is not None:
                raise told from error
            raise
        finally:
            files.remove(staging)

    def _freeze(self, directory: int, found: Sequence[Candidate], staging: Path) -> list[FrozenFile]:
        staging.mkdir(parents=True)
        frozen = []
        for number, candidate in enumerate(found):
            format_ = self._format or candidate.format
            if reason := objection(candidate):
                self._rejected[candidate] = malformed(candidate, reason)
            elif format_ is None:
                self._rejected[candidate] = SourceError(
                    "SOURCE_FORMAT", f"the name {candidate.file!r} does not say the format",
                    "end it in .parquet, .csv, .json, .jsonl or .ndjson (and .gz), or say format=… for the directory",
                    {"file": candidate.file},
                )  # fmt: skip
            else:
                # Spark tells compression by the name.
                path = staging / f"{number}.{format_}{'.gz' if candidate.compressed and format_ != 'parquet' else ''}"
                if wait := freeze(directory, candidate, path):
                    self._postponed[candidate.file] = wait
                    continue
                try:
                    frozen.append(FrozenFile(candidate, path, format_, shape(path, format_)))
                except Exception as error:
                    if (reason := footer_reason(error)) is None:
                        raise
                    self._rejected[candidate] = malformed(candidate, reason)
        return frozen

    def _divide(self, files: list[FrozenFile], attempt: Callable[[list[FrozenFile]], None]) -> None:
        """Try all files together; if that fails because of one of them, try the others in two halves.

        The first half comes first, so the outcome is that of applying one file after the other.
        """
        if not files:
            return
        try:
            attempt(files)
            return
        except Exception as error:
            if isinstance(error, TableError) and error.code.startswith("KEY_"):
                if len(files) == 1:
                    self._reject({files[0]: keys_refused(files[0].candidate, error)})
            elif blamed := wrong_content(error, files):
                self._reject(dict([blamed]))
            else:
                raise
        rest = self._left(files)
        self._divide(rest[: len(rest) // 2], attempt)
        self._divide(rest[len(rest) // 2 :], attempt)

    def _reject(self, files: Mapping[FrozenFile, SourceError]) -> None:
        self._rejected.update({file.candidate: error for file, error in files.items()})

    def _left(self, files: Sequence[FrozenFile]) -> list[FrozenFile]:
        return [file for file in files if file.candidate not in self._rejected]

    def _screen_json(self, files: list[FrozenFile]) -> None:
        self._reject(self._reader.odd_json(files))

    def _screen_values(self, files: list[FrozenFile]) -> None:
        self._reject(self._reader.odd_values(files))

    def _take(self, files: list[FrozenFile]) -> None:
        """Read files completely into a segment, and check its keys."""
        path = self._table._write_plus(self._reader.rows(files))
        try:
            self._table.check_keys(path, beside=self._written)
        except BaseException:
            self._engine.files.remove(path)
            raise
        self._written.append(path)
        self._accepted += [file.candidate for file in files]

    def _commit(self, found: Sequence[Candidate]) -> Poll:
        version, rows = None, 0
        if self._accepted:
            segments = [self._engine.files.segment(1, path) for path in self._written]
            applied = [candidate.record() for candidate in self._accepted]
            rows = sum(segment.row_count for segment in segments)
            version = self._table.commit_segments(
                segments, "landing", lambda tx: tx.add_source_files(self._source_id, applied)
            )
        # Only now: that a key was taken by a file of this poll is true only once that file is committed.
        rejected = [self._rejected[candidate] for candidate in found if candidate in self._rejected]
        records = [candidate.record(self._rejected[candidate]) for candidate in found if candidate in self._rejected]
        if records:
            self._engine.catalog.record_rejected_files(self._source_id, records, self._engine.lease)
        reports = [
            RejectedFile(r.file, r.size, r.mtime_ns, e.code, e.message, e.advice, e.details)
            for r, e in zip(records, rejected, strict=True)
        ]
        names = tuple(candidate.file for candidate in self._accepted)
        return Poll(self._table.name, version, rows, names, tuple(reports), self._postponed)


def _in_our_words(error: BaseException, place: Path) -> SlackwaterError | None:
    if isinstance(error, OSError) and is_disk_full(error):
        return SlackwaterError("STORAGE_FULL", f"the disk of {place} is full",
                               "free some space and poll again; nothing was applied")  # fmt: skip
    if isinstance(error, Py4JJavaError | PySparkException):
        return SlackwaterError("SPARK_FAILED", f"the files could not be read: {spark_reason(error)[1]}",
                               "nothing was applied; poll again when Spark works")  # fmt: skip
    return None

"""Landing directories: each new file in a folder becomes, once, a change of a table."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from slackwater.errors import SourceError
from slackwater.execution.compaction import compact_table
from slackwater.sources.candidates import finished, missing, opened
from slackwater.sources.options import check_options, normal_format, normal_options
from slackwater.sources.polling import PollRun
from slackwater.sources.polls import LandedFile, Poll, RejectedFile
from slackwater.storage.files import DATA, STAGING
from slackwater.storage.records import SourceFileRecord, SourceRecord

if TYPE_CHECKING:
    from slackwater.table import Table

KIND: Final = "landing"


class LandingDirectory:
    """A local folder whose new files become changes of a table. Get one from `Table.landing_directory`.

    Writers should write a file under another name (starting with `_` or `.`, or ending in `.tmp` or `.inprogress`) or
    in another folder, and rename it when it is whole. A file is known by its name, size and time of change: with
    another size or time it counts as a new file, and its rows are added to those it brought before. Folders inside the
    directory are not looked into, and links are not followed.
    """

    def __init__(self, table: Table, record: SourceRecord) -> None:
        config: Mapping[str, Any] = record.config
        self.table, self.id, self.path = table, record.id, str(config["path"])
        self.format: str | None = config["format"]
        self.options: dict[str, str] = dict(config["options"])

    def __repr__(self) -> str:
        return f"LandingDirectory({self.path!r}, table={self.table.name!r}, format={self.format!r})"

    @classmethod
    def attach(cls, table: Table, path: str, format: str | None, options: Mapping[str, object]) -> LandingDirectory:
        """Record a directory as a source of a table, or find it if it is one already.

        Args:
            table: where the rows go.
            path: an existing local directory.
            format: parquet, csv or json (lines); by each file's suffix if None.
            options: for Spark's reader, such as `sep` or `timestampFormat`.
        """
        engine, real, kind = table._engine, _real(path), normal_format(format)
        normal = normal_options(options, kind)
        config = {"path": real, "format": kind, "options": normal}
        _refuse_warehouse(real, os.path.realpath(engine.path))
        with opened(real):
            found = _attached(table, config)
        if found is None:
            with engine.writing() as lease:
                check_options(table, kind, normal)
                found = _attached(table, config)  # another thread may have been first
                if found is None:
                    with engine.catalog.commit("attach", table.name, {"source": KIND, "path": real}, lease) as tx:
                        found = tx.add_source(table.id, _source_name(real), KIND, config)
        return cls(table, found)

    def poll(self) -> Poll:
        """Apply the files not seen before, in one version; a bad file is set aside and does not stop the others.

        What it applied is durable when it returns. If it fails or is killed before the commit, nothing was applied; in
        any case the next poll goes on from what is committed.
        """
        with self.table._changing(), opened(self.path) as directory:
            there = finished(directory)
            seen = self.table._engine.catalog.seen_files(self.id, [candidate.file for candidate in there])
            found = [candidate for candidate in there if candidate.identity not in seen]
            if not found:
                return Poll(self.table.name)
            poll = PollRun(self.table, self.id, self.format, self.options).run(directory, found)
            if poll.version is not None:
                compact_table(self.table)
            return poll

    def files(self) -> list[LandedFile]:
        """The files that were applied, by name."""
        return [LandedFile.of(record) for record in self._records("applied")]

    def rejected(self) -> list[RejectedFile]:
        """The files that were set aside, by name; also those that were replaced since."""
        return [RejectedFile.of(record) for record in self._records("rejected")]

    def _records(self, status: str) -> list[SourceFileRecord]:
        return [r for r in self.table._engine.catalog.source_files(self.id) if r.status == status]


def _real(path: str) -> str:
    try:
        if not path:
            raise missing(str(path), "it is no path")
        return os.path.realpath(os.fsdecode(path))
    except (TypeError, ValueError) as error:
        raise missing(str(path), str(error)) from error


def _refuse_warehouse(path: str, warehouse: str) -> None:
    ours = [os.path.join(warehouse, area) for area in (DATA, STAGING, "states")]
    if path == warehouse or any(os.path.commonpath([path, area]) == area for area in ours):
        raise SourceError("NAME_INVALID", f"{path!r} is where the warehouse keeps its own files",
                          "choose a directory outside the warehouse")  # fmt: skip


def _attached(table: Table, config: Mapping[str, object]) -> SourceRecord | None:
    for record in table._engine.catalog.sources(table.id):
        if record.kind == KIND and record.config["path"] == config["path"]:
            if record.config != config:
                was = f"format={record.config['format']!r} and options {record.config['options']!r}"
                raise SourceError("SOURCE_FORMAT", f"the directory is attached to {table.name!r} already, with {was}",
                                  "attach it with the same format and options, or use another directory")  # fmt: skip
            return record
    return None


def _source_name(path: str) -> str:
    """The path, or, where it is too odd to be a name, a digest of it."""
    if len(path) <= 255 and path.isprintable():
        return path
    return f"landing-{hashlib.sha256(os.fsencode(path)).hexdigest()}"

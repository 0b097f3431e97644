"""The formats and reader options of a landing directory: what may be said, and whether Spark understands it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from slackwater.errors import SourceError
from slackwater.sources.blame import spark_reason
from slackwater.sources.reading import STRICT
from slackwater.storage.files import STAGING, literal_path

if TYPE_CHECKING:
    from slackwater.table import Table

FORMATS: Final = {"parquet": "parquet", "csv": "csv", "json": "json", "jsonl": "json", "ndjson": "json"}
RESERVED: Final = frozenset(name.lower() for name in STRICT) | {
    "basepath", "inferschema", "modifiedafter", "modifiedbefore", "path", "pathglobfilter", "paths",
    "recursivefilelookup", "singlevariantcolumn", "wholetext",
}  # fmt: skip
"""Options that would let Spark skip, guess or look elsewhere."""
CSV_ONLY: Final = frozenset({"charset", "encoding", "multiline"})
"""Options that JSON *lines*, which are UTF-8, cannot have."""


def normal_format(given: str | None) -> str | None:
    """The format's one name; None for "by each file's suffix"."""
    if given is None:
        return None
    found = FORMATS.get(str(given).lower())
    if found is None:
        raise SourceError("SOURCE_FORMAT", f"{given!r} is not a format that can be read",
                          f"use one of {', '.join(sorted(set(FORMATS.values())))}")  # fmt: skip
    return found


def normal_options(given: Mapping[str, object], format_: str | None) -> dict[str, str]:
    """Options as Spark takes them: text, with names that do not depend on case."""
    options = {}
    for name, value in given.items():
        key = name.lower()
        if key in RESERVED:
            raise _invalid(name, "it would change which files are read, or let bad ones pass", "leave it out")
        if key in CSV_ONLY and format_ != "csv":
            raise _invalid(name, "it is for CSV alone", 'say format="csv"')
        if not isinstance(value, str | int | float):
            raise _invalid(name, f"a {type(value).__name__} is no value for it", "give text, a number, True or False")
        options[key] = str(value).lower() if isinstance(value, bool) else str(value)
    if options.get("header", "true").lower() not in ("true", "false"):
        raise _invalid("header", f"it cannot be {options['header']!r}", "give True or False")
    return options


def check_options(table: Table, format_: str | None, options: Mapping[str, str]) -> None:
    """Let Spark read a blank line with the options, so that a wrong one is not taken for an error of every file."""
    if format_ == "parquet" or (format_ is None and not options):
        return
    files = table._engine.files
    place = files.new_path(f"t{table.id}", STAGING)
    blank = Path(files.absolute(place)) / "blank"
    try:
        blank.parent.mkdir(parents=True)
        blank.write_bytes(b"\n")
        for name in [format_] if format_ else ["csv", "json"]:
            _try(table, name, options, literal_path(str(blank)), required=format_ is not None)
    finally:
        files.remove(place)


def _try(table: Table, name: str, options: Mapping[str, str], path: str, *, required: bool) -> None:
    lenient = {**options, **STRICT, "header": "false", "mode": "PERMISSIVE"}
    try:
        table._engine.spark.read.schema(table.schema).options(**lenient).format(name).load(path).collect()
    except (PySparkException, Py4JJavaError) as error:
        code, reason = spark_reason(error)
        if code is None or not code.startswith("UNSUPPORTED_DATA_TYPE"):
            raise SourceError("SETTING_INVALID", f"Spark does not accept the options: {reason}",
                              "correct them; see Spark's documentation of the format") from error  # fmt: skip
        if required:
            raise SourceError("SOURCE_FORMAT", f"{name} files cannot hold the table's columns: {reason}",
                              "use another format") from error  # fmt: skip


def _invalid(name: str, reason: str, advice: str) -> SourceError:
    return SourceError("SETTING_INVALID", f"a landing directory cannot have the option {name!r}: {reason}", advice)

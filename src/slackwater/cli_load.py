"""Files given on the command line to rows for `Table.insert`: Parquet, CSV with a header, JSON lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from slackwater.errors import SourceError
from slackwater.intake import check_columns
from slackwater.sources.quotes import open_quotes
from slackwater.sources.screening import Screen, odd_fields

if TYPE_CHECKING:
    from slackwater.table import Table

FORMATS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
_MALFORMED = "malformed_record"
"""Where Spark puts lines that it cannot read while it looks for columns."""


def load_files(table: Table, files: Sequence[Path], spark: SparkSession) -> int:
    """Insert the rows of all files in one version; gives it. Either all of them are applied or none."""
    for file in files:
        _check(file)
    try:
        frames = [_read(file, table, spark) for file in files]
        return table.insert(reduce(DataFrame.unionByName, frames))
    except (PySparkException, Py4JJavaError) as error:
        names = ", ".join(str(file) for file in files)
        advice = f"the rows of {table.name!r} are {table.schema.simpleString()}; nothing was applied"
        raise SourceError("SOURCE_FILE_MALFORMED", f"cannot read {names}: {_reason(error)}", advice) from error


def _check(file: Path) -> None:
    if file.suffix.lower() not in FORMATS:
        advice = f"name it with one of {', '.join(FORMATS)}"
        raise SourceError("SOURCE_FORMAT", f"cannot tell the format of {file} from its name", advice)
    if file.name.startswith(("_", ".")):
        message = f"Spark passes over {file}, because its name begins with {file.name[0]!r}"
        raise SourceError("SOURCE_FORMAT", message, "rename it")


def _read(file: Path, table: Table, spark: SparkSession) -> DataFrame:
    path, kind = _literal(file), FORMATS[file.suffix.lower()]
    if kind == "parquet":
        frame = spark.read.parquet(path)
        check_columns(frame.columns, table.schema, table.name)
        return frame
    if kind == "csv":
        # The header says which column is which; the table says of what type it is.
        header = spark.read.option("header", True).csv(path).columns
        check_columns(header, table.schema, table.name)
        ordered = StructType([table.schema[name] for name in header])
        _refuse_changed(file, kind, ordered, spark)
        return spark.read.schema(ordered).options(header=True, mode="FAILFAST", enforceSchema=False).csv(path)
    found = spark.read.option("columnNameOfCorruptRecord", _MALFORMED).json(path).columns
    if _MALFORMED in found:
        raise SourceError("SOURCE_FILE_MALFORMED", f"a line of {file} is no JSON object", "write one object per line")
    # A column that no line has is NULL in all of them, as JSON is commonly written.
    check_columns([*found, *(f.name for f in table.schema if f.name not in found)], table.schema, table.name)
    _refuse_changed(file, kind, table.schema, spark)
    return spark.read.schema(table.schema).option("mode", "FAILFAST").json(path)


def _refuse_changed(file: Path, kind: str, schema: StructType, spark: SparkSession) -> None:
    """Refuse a CSV or JSON file with values that Spark would take and change, as a landing directory does."""
    path, told = _literal(file), []
    if kind == "csv" and (number := open_quotes(file, {})) is not None:
        told.append(f"line {number} ends inside of quotes")
    screen = Screen(schema, kind, {})
    if (texts := screen.as_text()) is not None and not told:
        options = {"header": "true", "mode": "FAILFAST", "enforceSchema": "false", "columnPruning": "false"}
        rows = spark.read.schema(texts).options(**options).format(kind).load(path)
        told += _first(rows.select(screen.complaint()))
    inside = odd_fields(F.from_json("value", "MAP<STRING, STRING>"), schema, {}) if kind == "json" else None
    if inside is not None and not told:
        found = _first(spark.read.text(path).select(inside))
        told += [f"{field}: a field that it lacks, or one twice" for field in found]
    if told:
        raise SourceError("SOURCE_FILE_MALFORMED", f"{file} was not read: {told[0]}",
                          "correct the file; nothing was applied", {"file": str(file), "reason": told[0]})  # fmt: skip


def _first(told: DataFrame) -> list[str]:
    found = told.toDF("told").where("told IS NOT NULL").limit(1).collect()
    return [row["told"] for row in found]


def _literal(file: Path) -> str:
    """The path as Spark reads it: signs that would match other files are escaped."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", str(file.absolute()))


def _reason(error: Exception) -> str:
    """The innermost cause: the outer ones only say that a task failed."""
    text = str(error)
    causes = re.findall(r"^Caused by: [\w.$]+: (.*)$", text, flags=re.MULTILINE)
    return str(causes[-1] if causes else text.splitlines()[0])[:300]

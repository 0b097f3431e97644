"""Frozen files as rows of a table: read together, strictly, and to the last line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StringType, StructType

from slackwater import intake
from slackwater.errors import SourceError, TableError
from slackwater.sources.blame import malformed, wrong_shape
from slackwater.sources.candidates import FrozenFile
from slackwater.sources.quotes import open_quotes
from slackwater.sources.screening import Screen, odd_fields
from slackwater.storage.files import literal_path

if TYPE_CHECKING:
    from slackwater.table import Table

STRICT: Final = {
    "mode": "FAILFAST",
    "enforceSchema": "false",  # so that Spark compares a CSV file's header with the schema
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    "mergeSchema": "false",
    # A column of the table with the default's name would be taken for the place to put bad lines.
    "columnNameOfCorruptRecord": "\u0000corrupt",
}
"""Options that make Spark fail on a bad file rather than guess; a user cannot change them."""

TEXT: Final = frozenset({"csv", "json"})
"""The formats whose values are text."""

_SPARK_SCHEMA: Final = b"org.apache.spark.sql.parquet.row.metadata"
_OBJECTS: Final = ArrayType(MapType(StringType(), StringType()))


def shape(path: Path, format_: str) -> str:
    """What files must have in common to be read together: the format and, for Parquet, the columns in the footer."""
    if format_ != "parquet":
        return format_
    footer = pq.read_metadata(path)
    columns = str(footer.schema).partition("\n")[2]  # the first line is an address in memory
    return f"{format_}\n{columns}\n{(footer.metadata or {}).get(_SPARK_SCHEMA, b'')!r}"


class BatchReader:
    """Reads the files of one poll for a table."""

    def __init__(self, table: Table, options: Mapping[str, str]) -> None:
        self._table, self._spark = table, table._engine.spark
        self._options = {"header": "true", **options, **STRICT}
        self._schemas: dict[str, StructType] = {}

    def rows(self, files: Sequence[FrozenFile]) -> DataFrame:
        """The rows of files that `odd_columns` had nothing against; what is wrong further in shows when it runs."""
        return reduce(DataFrame.unionAll, (self._read(group) for group in _groups(files)))

    def odd_columns(self, files: Sequence[FrozenFile]) -> dict[FrozenFile, SourceError]:
        """The Parquet files with other columns than the table's, and files of a format that cannot hold its columns."""
        odd: dict[FrozenFile, SourceError] = {}
        for group in _groups(files):
            while group:
                try:
                    self._infer(group[0])
                    self._read(group)
                    break
                except Exception as error:
                    # Mostly all of them: they have the same columns.
                    reasons = {file: reason for file in group if (reason := wrong_shape(error, file))}
                    if not reasons:
                        raise
                    odd |= reasons
                    group = [file for file in group if file not in reasons]
        return odd

    def odd_json(self, files: Sequence[FrozenFile]) -> dict[FrozenFile, SourceError]:
        """The JSON files with other columns than the table's, or with lines that are not one object each.

        Spark itself would ignore a field that the schema lacks, and whatever follows the first object on a line.
        """
        by_name = {file.path.name: file for file in files}
        line, lenient = F.col("value"), {**self._options, "mode": "PERMISSIVE"}
        # Inside brackets, nothing may follow the object but another one.
        objects = F.from_json(F.concat(F.lit("["), line, F.lit("]")), _OBJECTS, lenient)
        text = self._spark.read.options(**self._options).text([literal_path(str(file.path)) for file in files])
        name = F.col("_metadata.file_name").alias("file")
        named = text.where(line.rlike(r"\S")).select(name, objects.alias("objects"))
        fields = F.when(F.size("objects") == 1, F.map_keys(F.col("objects")[0])).alias("fields")
        inside = odd_fields(F.get("objects", 0), self._table.schema, lenient)
        doubled = F.size(F.array_distinct("fields")) < F.size("fields")
        told = (F.lit(None).cast("string") if inside is None else inside).alias("inside")
        found = named.select("file", fields, told).groupBy("file").agg(
            F.array_distinct(F.flatten(F.collect_set("fields"))).alias("fields"),
            F.count_if(F.col("fields").isNull() | doubled).alias("bad"),
            F.min("inside").alias("inside"),
        )  # fmt: skip
        reports = ((by_name[row["file"]], row) for row in found.collect())
        return {file: error for file, row in reports if (error := self._odd_fields(file, row)) is not None}

    def _odd_fields(self, file: FrozenFile, row: Any) -> SourceError | None:
        if row["bad"]:
            return malformed(file.candidate, f"{row['bad']} lines are not one JSON object without doubled fields")
        try:
            intake.check_columns(row["fields"], self._table.schema, self._table.name)
        except TableError as error:
            return malformed(file.candidate, error.message, error.code)
        if row["inside"]:
            return malformed(file.candidate, f"{row['inside']}: a field that it lacks, or one twice", "COLUMN_TYPE")
        return None

    def odd_values(self, files: Sequence[FrozenFile]) -> dict[FrozenFile, SourceError]:
        """The CSV and JSON files with values that Spark would take and change."""
        odd: dict[FrozenFile, SourceError] = {}
        for group in _groups([file for file in files if file.format in TEXT]):
            screen = Screen(self._table.schema, group[0].format, self._options)
            texts = screen.as_text()
            if texts is None:
                continue
            by_name = {file.path.name: file for file in group}
            # A line with too few values is to be told by all of them, not by those that are looked at.
            reader = self._spark.read.schema(texts).options(**self._options, columnPruning="false")
            rows = reader.format(group[0].format).load([literal_path(str(file.path)) for file in group])
            name = F.substring_index(F.input_file_name(), "/", -1).alias("file")
            told = rows.select(name, screen.complaint().alias("told"))
            for row in told.where(F.col("told").isNotNull()).groupBy("file").agg(F.min("told").alias("told")).collect():
                file = by_name[row["file"]]
                odd[file] = malformed(file.candidate, row["told"], "COLUMN_TYPE")
        return odd

    def odd_lines(self, files: Sequence[FrozenFile]) -> dict[FrozenFile, SourceError]:
        """The CSV files with a value that goes on in the next line, where lines are rows."""
        odd: dict[FrozenFile, SourceError] = {}
        for file in files:
            if file.format == "csv" and (number := open_quotes(file.path, self._options)) is not None:
                reason = f"line {number} ends inside of quotes; where values have line breaks, say multiLine=True"
                odd[file] = malformed(file.candidate, reason)
        return odd

    def _infer(self, file: FrozenFile) -> None:
        """Note the schema under which files of this shape are read: a Parquet file's own, or the table's."""
        parquet = file.format == "parquet"
        reader = self._spark.read.options(**self._options)
        self._schemas[file.shape] = (
            reader.parquet(literal_path(str(file.path))).schema if parquet else self._table.schema
        )

    def _read(self, group: Sequence[FrozenFile]) -> DataFrame:
        reader = self._spark.read.schema(self._schemas[group[0].shape]).options(**self._options)
        frame = reader.format(group[0].format).load([literal_path(str(file.path)) for file in group])
        return intake.to_frame(frame, self._table.schema, self._spark, self._table.name)


def _groups(files: Sequence[FrozenFile]) -> list[list[FrozenFile]]:
    groups: dict[str, list[FrozenFile]] = {}
    for file in files:
        groups.setdefault(file.shape, []).append(file)
    return list(groups.values())

"""Tables and results as DataFrames: snapshots, deltas and the position of every row.

A plus segment holds inserted rows. A minus segment of a table holds deleted rows and *where* they were: the file, the
row's position in it, and the version it was born at. A snapshot is then the plus rows whose position no minus row
names: a plain bag, with nothing to cancel. A delta nets out by position as well, so a row that came and went in between
is never seen, not even by an expression that would fail on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from slackwater.storage.files import WarehouseFiles
from slackwater.storage.records import SegmentRecord

FILE, POSITION, BORN = "_file", "_pos", "_born"
POSITION_FIELDS = (
    StructField(FILE, StringType(), False), StructField(POSITION, LongType(), False),
    StructField(BORN, LongType(), False),
)  # fmt: skip


def physical_schema(schema: StructType) -> StructType:
    """The schema inside files: columns by position, so that a user's name never reaches a file."""
    return StructType([StructField(f"c{i}", f.dataType, True) for i, f in enumerate(schema)])


@dataclass(frozen=True, slots=True)
class RelationReader:
    """Reads the segments of one owner in one session."""

    spark: SparkSession
    files: WarehouseFiles
    schema: StructType

    def _read(self, segments: Sequence[SegmentRecord], schema: StructType) -> DataFrame:
        paths = tuple(s.path for s in segments)
        if not paths:
            return self.spark.createDataFrame([], schema)
        return self.files.read(self.spark, paths, schema)

    def plus(self, segments: Sequence[SegmentRecord]) -> DataFrame:
        """The rows of plus segments."""
        return self._read([s for s in segments if s.sign > 0], physical_schema(self.schema))

    def minus(self, segments: Sequence[SegmentRecord]) -> DataFrame:
        """The rows of minus segments, with their positions."""
        schema = StructType([*physical_schema(self.schema), *POSITION_FIELDS])
        return self._read([s for s in segments if s.sign < 0], schema)

    def positioned(self, segments: Sequence[SegmentRecord]) -> DataFrame:
        """The rows of plus segments with file, position and the version they were born at."""
        frames = [
            self._read([s], physical_schema(self.schema)).select(
                "*", *_position_columns(), F.lit(s.last_version).cast("bigint").alias(BORN)
            )
            for s in segments
            if s.sign > 0
        ]
        if not frames:
            return self.spark.createDataFrame([], StructType([*physical_schema(self.schema), *POSITION_FIELDS]))
        found = frames[0]
        for frame in frames[1:]:
            found = found.unionAll(frame)
        return self._without(found, segments)

    def _without(self, positioned: DataFrame, segments: Sequence[SegmentRecord]) -> DataFrame:
        if not any(s.sign < 0 for s in segments):
            return positioned
        dead = F.broadcast(self.minus(segments).select(FILE, POSITION))
        return positioned.join(dead, [FILE, POSITION], "left_anti").select(*positioned.columns)

    def located(self, segments: Sequence[SegmentRecord]) -> DataFrame:
        """The bag of live rows, with file and position; there must be plus segments."""
        return self._without(self.plus(segments).select("*", *_position_columns()), segments)

    def snapshot(self, segments: Sequence[SegmentRecord]) -> DataFrame:
        """The bag of live rows."""
        if not (any(s.sign < 0 for s in segments) and any(s.sign > 0 for s in segments)):
            return self.plus(segments)
        return self.located(segments).select(*(f"c{i}" for i in range(len(self.schema))))

    def inserted(self, segments: Sequence[SegmentRecord]) -> DataFrame:
        """The rows that the segments of a delta bring and do not take away again."""
        return self.snapshot(segments)

    def deleted(self, segments: Sequence[SegmentRecord], before: int) -> DataFrame:
        """The rows of an earlier version that the segments of a delta take away."""
        rows = self.minus(segments).where(F.col(BORN) <= before)
        return rows.select(*(f"c{i}" for i in range(len(self.schema))))


def _position_columns() -> list[Column]:
    return [F.col("_metadata.file_name").alias(FILE), F.col("_metadata.row_index").alias(POSITION)]

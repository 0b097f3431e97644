"""Whether the keys of rows that are about to become visible are good: none NULL, none given twice, none taken already.

One query answers it, in a session for small work where the rows are few. Segments whose keys lie wholly below or above
the new ones are not read: where keys only grow, nothing of the table is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ByteType, DateType, IntegerType, LongType, ShortType

from slackwater.errors import TableError
from slackwater.execution.sessions import active_session_kept
from slackwater.storage.records import SegmentRecord
from slackwater.storage.relations import FILE, POSITION

if TYPE_CHECKING:
    from slackwater.table import Table

FEW = 200_000
"""So many keys are sent to every task, which looks for them in what it reads of the table."""

_SPANNED = (ByteType, ShortType, IntegerType, LongType, DateType)
"""Types whose least and greatest value a Parquet file states exactly."""


def check_written(table: Table, plus: str, minus: str | None = None, beside: Sequence[str] = ()) -> None:
    """Refuse written rows whose keys are NULL, doubled, or taken by the table or by files written `beside`.

    Args:
        table: a table with a key.
        plus: the path of the rows.
        minus: the path of rows that go at the same time, with their positions.
        beside: paths of other rows that come at the same time.
    """
    count = table.files.segment(1, plus).row_count
    if not count:
        return
    few = count <= FEW
    spark = table.session(few=few)
    positions = table.key_positions()
    columns = [f"c{p}" for p in positions]
    with active_session_kept():
        new = table.files_frame(plus, spark).select(*columns)
        taken = _taken(table, plus, minus, beside, spark)
        found = _bad(new, columns)
        if taken is not None:
            live = taken.select(*columns)
            met = live.join(F.broadcast(new), columns, "left_semi") if few else new.join(live, columns, "left_semi")
            found = found.unionAll(met.select(*columns, F.lit(True)))
        _refuse(found.limit(1).collect(), table.name)


def check_given(table: Table, keys: DataFrame) -> None:
    """Refuse keys that are NULL or given twice."""
    with active_session_kept():
        _refuse(_bad(keys, keys.columns).limit(1).collect(), table.name)


def _bad(keys: DataFrame, columns: list[str]) -> DataFrame:
    """Keys that are NULL or there twice, marked as not taken."""
    missing: Column = F.lit(False)
    for name in columns:
        missing = missing | F.col(name).isNull()
    counted = keys.groupBy(*columns).agg(F.count(F.lit(1)).alias("_n"))
    return counted.where(missing | (F.col("_n") > 1)).select(*columns, F.lit(False).alias("_taken"))


def _taken(
    table: Table, plus: str, minus: str | None, beside: Sequence[str], spark: SparkSession
) -> DataFrame | None:  # fmt: skip
    """The rows that stay in the table, as far as they may have one of the keys, and those that come beside."""
    segments = _overlapping(table, plus, table.segments())
    live = None
    if any(s.sign > 0 for s in segments):
        live = table.reader(spark).located(segments)
        if minus is not None:
            gone = spark.read.parquet(table.files.readable(minus)).select(FILE, POSITION)
            live = live.join(F.broadcast(gone), [FILE, POSITION], "left_anti")
        live = live.select(*(f"c{i}" for i in range(len(table.schema))))
    for path in beside:
        more = table.files_frame(path, spark)
        live = more if live is None else live.unionAll(more)
    return live


def _overlapping(table: Table, plus: str, segments: Sequence[SegmentRecord]) -> list[SegmentRecord]:
    """The segments without those of inserted rows whose keys cannot be among the new ones."""
    position = next((p for p in table.key_positions() if isinstance(table.schema[p].dataType, _SPANNED)), None)
    if position is None:
        return list(segments)
    new = table.files.span(plus, f"c{position}")
    if new is None:
        return list(segments)

    def meets(segment: SegmentRecord) -> bool:
        there = table.files.span(segment.path, f"c{position}") if segment.sign > 0 else None
        return there is None or (there[0] <= new[1] and new[0] <= there[1])

    return [s for s in segments if meets(s)]


def _refuse(found: Sequence[Sequence[object]], name: str) -> None:
    if not found:
        return
    *key, taken = found[0]
    if taken:
        raise TableError("KEY_EXISTS", f"the key {tuple(key)} is in {name!r} already",
                         "use upsert to replace rows; nothing was applied")  # fmt: skip
    if None in key:
        raise TableError("KEY_NULL", f"a key of {name!r} is NULL: {tuple(key)}",
                         "every key column needs a value; nothing was applied")  # fmt: skip
    raise TableError("KEY_DUPLICATE", f"the key {tuple(key)} of {name!r} is given more than once",
                     "give each key once; nothing was applied")  # fmt: skip

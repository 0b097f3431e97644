"""Names for DataFrames inside our own sessions. To name what already has the name costs milliseconds for nothing."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession

from slackwater.execution.render import table_view

_named: WeakKeyDictionary[SparkSession, dict[str, DataFrame]] = WeakKeyDictionary()


def bind_table(spark: SparkSession, table: str, at: str, frame: DataFrame) -> None:
    """Let a program find a table at a version; the frames of files are kept, so the same one often comes again."""
    name = table_view(table, at)
    named = _named.setdefault(spark, {})
    if named.get(name) is not frame:
        frame.createOrReplaceTempView(f"`{name.replace('`', '``')}`")
        named[name] = frame

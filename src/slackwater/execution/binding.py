"""Names for DataFrames inside our own sessions. To name what already has the name costs milliseconds for nothing."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession

_named: WeakKeyDictionary[SparkSession, dict[str, DataFrame]] = WeakKeyDictionary()


def name_frame(spark: SparkSession, name: str, frame: DataFrame, *, lasts: bool) -> None:
    """Let a query find a frame; one that `lasts` may have the name already."""
    named = _named.setdefault(spark, {})
    if lasts and named.get(name) is frame:
        return
    frame.createOrReplaceTempView(f"`{name.replace('`', '``')}`")
    if lasts:
        named[name] = frame
    else:
        named.pop(name, None)

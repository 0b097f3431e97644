"""Names for DataFrames inside our own sessions. To name what already has the name costs milliseconds for nothing."""

from __future__ import annotations

from weakref import ReferenceType, WeakKeyDictionary, ref

from pyspark.sql import DataFrame, SparkSession

_named: WeakKeyDictionary[SparkSession, dict[str, ReferenceType[DataFrame]]] = WeakKeyDictionary()
"""What has a name in a session. Weakly: a frame leads to its session, which would never go."""


def name_frame(spark: SparkSession, name: str, frame: DataFrame, *, lasts: bool) -> None:
    """Let a query find a frame; one that `lasts` may have the name already."""
    named = _named.setdefault(spark, {})
    known = named.get(name) if lasts else None
    if known is not None and known() is frame:
        return
    frame.createOrReplaceTempView(f"`{name.replace('`', '``')}`")
    if lasts:
        named[name] = ref(frame)
    else:
        named.pop(name, None)

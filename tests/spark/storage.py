"""What Spark's storage holds, for tests of states."""

from __future__ import annotations

from pyspark.sql import SparkSession

import slackwater as sw


def stored(spark: SparkSession) -> dict[int, int]:
    """The bytes of all rows in Spark's storage, in memory and on disk, by Spark's number for them."""
    infos = spark._sc._jsc.sc().getRDDStorageInfo()
    return {int(info.id()): int(info.memSize()) + int(info.diskSize()) for info in infos}


def rows_of_states(engine: sw.Engine) -> set[int]:
    """Spark's numbers for the rows of the states of all views."""
    return {i for view in engine.loaded_views() for state in view.states.values() for i in state.rdd_ids()}


def leaked(engine: sw.Engine, before: dict[int, int]) -> set[int]:
    """The rows in Spark's storage that are of no state and were not there before."""
    return set(stored(engine.spark)) - set(before) - rows_of_states(engine)


def occupied(engine: sw.Engine) -> int:
    """The bytes that Spark's storage holds for the states of all views; rows that several share count once."""
    held = rows_of_states(engine)
    return sum(size for i, size in stored(engine.spark).items() if i in held)

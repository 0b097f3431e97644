"""A writer that is killed somewhere: it changes, makes and drops tables and views, refreshes, merges, polls a folder.

Started as a program, it kills itself at a place of one of its steps: `poll/commit.inside`, or `poll/commit.inside:2`
for the second time that it gets there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.execution import compaction

LIMITS = {"STATE_SEGMENTS": 2, "RESULT_SEGMENTS": 2, "TABLE_SEGMENTS": 2, "KEEP_VERSIONS": 0}
"""So few segments are enough to be merged, and what they were merged from is forgotten by the next merge."""
Sale = tuple[int, str, int]
ADDED: dict[str, list[Sale]] = {
    "insert": [(1001, "a", 5), (1002, "b", 6)],
    "delete": [(1002, "b", 6)],
    "refresh": [(1002, "b", 6)],
    "upsert": [(1002, "b", 8), (1003, "c", 9)],
    "apply": [(1002, "b", 8), (1004, "a", 1)],
    "delete keys": [(1002, "b", 8)],
    "attach": [(1002, "b", 8)],
    "poll": [(1002, "b", 8), (2001, "c", 7), (2002, "c", 8)],
    "refresh again": [(1002, "b", 8), (2001, "c", 7), (2002, "c", 8)],
    "create table": [(1002, "b", 8), (2001, "c", 7), (2002, "c", 8)],
    "create view": [(1002, "b", 8), (2001, "c", 7), (2002, "c", 8)],
    "mark complete": [(1002, "b", 8), (2001, "c", 7), (2002, "c", 8)],
    "drop view": [(1002, "b", 8), (2001, "c", 7), (2002, "c", 8)],
    "drop table": [(1002, "b", 8), (2001, "c", 7), (2002, "c", 8)],
    "close": [(1002, "b", 8), (2001, "c", 7), (2002, "c", 8)],
}
"""The steps in their order, and the rows that are in the table after each, beside those of the start."""
STEPS = tuple(ADDED)
MADE: dict[str, tuple[str, ...]] = {
    "create table": ("more",), "create view": ("more", "counts"), "mark complete": ("more, complete", "counts"),
    "drop view": ("more, complete",),
}  # fmt: skip
"""What the steps leave behind that was not there at the start."""


def act(engine: sw.Engine, landing: str, step: Callable[[str], AbstractContextManager[None]]) -> None:
    """Take all the steps, each within `step`; the engine is closed at the end."""
    sales, view = engine.table("sales"), engine.view("totals")
    with step("insert"):
        sales.insert([(1001, "a", 5), (1002, "b", 6)])
    with step("delete"):
        sales.delete([(1001, "a", 5)])
    with step("refresh"):
        view.refresh()
    with step("upsert"):
        sales.upsert([(1002, "b", 8), (1003, "c", 9)])
    with step("apply"):
        names = ("id", "name", "amount", "_weight")
        sales.apply([dict(zip(names, row, strict=True)) for row in ((1003, "c", 9, -1), (1004, "a", 1, 1))])
    with step("delete keys"):
        sales.delete_keys([(1004,)])
    with step("attach"):
        source = sales.landing_directory(landing)
    with step("poll"):
        source.poll()
    with step("refresh again"):
        view.refresh()
    with step("create table"):
        more = engine.create_table("more", engine.spark.range(5).selectExpr("id", "id % 2 AS part"), key=["id"])
    with step("create view"):
        counts = engine.create_view("counts", "SELECT part, count(*) AS n FROM more GROUP BY part")
    with step("mark complete"):
        more.mark_complete()
    with step("drop view"):
        counts.drop()
    with step("drop table"):
        engine.drop_table("more")
    with step("close"):
        engine.close()


def main(warehouse: str, landing: str, place: str) -> None:
    for limit, value in LIMITS.items():
        setattr(compaction, limit, value)
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.driver.memory", "1g")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    deadly, point = place.split("/")

    @contextmanager
    def step(name: str) -> Iterator[None]:
        if name == deadly:
            os.environ["SLACKWATER_CRASH_AT"] = point
        yield
        os.environ.pop("SLACKWATER_CRASH_AT", None)

    act(sw.Engine(warehouse, spark=spark), landing, step)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Measures what work costs on the Spark at hand: a few seconds of generated rows, once for each cluster.

Every number is a difference of medians after a warm-up, so that what is common to all queries falls out. A measurement
that comes out absurd (noise larger than the work) leaves the built-in number in place.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.planning.rates import Rates
from slackwater.storage.files import literal_path

ROWS = 1_000_000
SMALL = 200_000
ROUNDS = 3
SMALLEST = 0.038
"""What the smallest query took, in seconds, where the built-in numbers were fitted."""

WIDE = 8
"""How many aggregates are measured at once."""


KINDS_OF_WORK = 2
"""Goes up when a rate comes to mean other work than before: numbers measured earlier no longer count then."""


def cluster_of(spark: SparkSession) -> str:
    """What the numbers belong to; another one asks for new numbers."""
    context = spark._sc
    memory = spark.conf.get("spark.executor.memory", "") or ""
    return f"{context.version} {context.master} {context.defaultParallelism} {memory} ({KINDS_OF_WORK})"


def calibrate(spark: SparkSession, scratch: Path | None = None) -> Rates:
    """Measure every rate. `spark` is a session for deltas; `scratch` is where a temporary file may be written."""
    folder = Path(tempfile.mkdtemp(prefix="slackwater-rates-", dir=scratch))
    try:
        return _measured(spark, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _measured(spark: SparkSession, folder: Path) -> Rates:
    known = Rates()
    rows = spark.range(0, ROWS, 1, spark._sc.defaultParallelism)
    made = rows.selectExpr("id AS k", "id % 1000 AS g", "id * 3 AS a", "id * 7 AS b")
    path = str(folder / "rows")
    made.write.parquet(path)
    files = spark.read.parquet(literal_path(path))
    tiny = made.limit(1).localCheckpoint()
    states: list[DataFrame] = []

    def write() -> None:
        for old in states:
            old._jdf.queryExecution().analyzed().rdd().unpersist(False)
        states[:] = [made.localCheckpoint()]

    step = _median(lambda: _run(tiny))
    plain = _median(lambda: _run(made.selectExpr("sum(k + g + a + b)")))
    written = _median(write)
    state = states[0]
    few = state.where("k < 1000")
    narrow = _median(lambda: _run(files.selectExpr("sum(k)")))
    wide = _median(lambda: _run(files.selectExpr("sum(k + g + a + b)")))
    scanned = _median(lambda: _run(state.selectExpr("sum(k + g + a + b)")))
    looked_up = few.selectExpr("k AS x").hint("broadcast")
    probed = _median(lambda: _run(state.join(looked_up, _on("k = x")).selectExpr("sum(a)")))
    some = state.where(f"k < {SMALL}").selectExpr("k AS x", "b AS y")
    built = _median(lambda: _run(tiny.join(some.hint("broadcast"), _on("k = x")).selectExpr("sum(y)")))
    same = state.selectExpr("k AS x")
    shuffled = _median(lambda: _run(state.hint("shuffle_hash").join(same, _on("k = x")).selectExpr("sum(a)")))
    grouped = _median(lambda: _run(state.groupBy("g").sum("a").selectExpr("count(1)")))
    more = [F.sum(F.col("a") + F.lit(i)) for i in range(WIDE)]
    widely = _median(lambda: _run(state.groupBy("g").agg(*more).selectExpr("count(1)")))
    merged = _median(lambda: _run(state.groupBy("k").sum("a").selectExpr("count(1)")))
    ordered = _median(lambda: _run(state.orderBy("b", "k").limit(10)))
    for old in states:
        old._jdf.queryExecution().analyzed().rdd().unpersist(False)
    value = (wide - narrow) / (3 * ROWS)
    latency = step / SMALLEST  # a query of a program is planned, sent and awaited as the smallest one is
    found = {
        "refresh": known.refresh * latency,
        "step": known.step * latency,
        "append": known.append * latency,
        "scan_value": value,
        "scan_row": (narrow - step) / ROWS - max(value, 0.0),
        "state_row": (scanned - step) / ROWS,
        "probe": (probed - scanned) / ROWS,
        "build": (built - scanned) / SMALL,
        "shuffle": (shuffled - 2 * scanned) / (2 * ROWS),
        "aggregate": (grouped - scanned) / ROWS - max((widely - grouped) / ((WIDE - 1) * ROWS), 0.0),
        "aggregate_value": (widely - grouped) / ((WIDE - 1) * ROWS),
        "merge": (merged - scanned) / ROWS,
        "sort": (ordered - scanned) / ROWS,
        "write": (written - plain) / ROWS,
    }
    sound = {name: seconds for name, seconds in found.items() if _sound(seconds, getattr(known, name))}
    rates = replace(known, **sound, cluster=cluster_of(spark))
    scale = rates.merge / known.merge
    return replace(rates, compare=known.compare * scale)


def _sound(seconds: float, usual: float) -> bool:
    """A number within a factor of ten of the usual one; what lies beyond is noise, not a machine."""
    return usual / 10 < seconds < usual * 10


def _median(work: Callable[[], object]) -> float:
    work()
    seconds = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def _run(frame: DataFrame) -> object:
    return frame.collect()


def _on(text: str) -> Column:
    return F.expr(text)

"""Spark sessions: one for each set of pinned settings and each kind of work; the user's own is never changed."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

from slackwater.capture.query import CAPTURE_SETTINGS, MERGES
from slackwater.errors import SlackwaterError
from slackwater.execution.functions import Function, Functions

_RULES = "org.apache.spark.sql.catalyst.optimizer"
_MERGES = f"{_RULES}.MergeSubplans,{MERGES}"
"""Makes one subquery of aggregates without groups. Over an old and a new input there is nothing to share, a plan with
subqueries cannot be kept, and over two calls of a user-defined aggregate the rule fails. Spark 4.3 has it elsewhere."""

_MOVES = f"{_RULES}.PushProjectionThroughUnion"
"""Where EXISTS stands in the list of a SELECT over a union, this rule of Spark ends in `key not found`."""

_EXCLUDED = "spark.sql.optimizer.excludedRules"

_CONSTRAINTS = "spark.sql.constraintPropagation.enabled"
"""What Spark knows of an output's values. A captured plan has the filters that follow from it already; and where rows
are cut off from their history, which asks for it, a union of groups by an expression ends in `key not found`."""

DELTA_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.files.maxPartitionBytes": "512MB",
    "spark.sql.files.minPartitionNum": str(os.cpu_count() or 1),
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    "parquet.filter.columnindex.enabled": "false",
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    _CONSTRAINTS: "false",
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.execution.usePartitionEvaluator": "true",
    _EXCLUDED: _MERGES,
}
"""Small work over kept states: adaptive execution costs more than it saves there. The UI's mode
and the evaluators spare the driver a formatted account of each plan for Spark's history, and a look through the code of
each operator's closure."""

LARGE_DELTA_SETTINGS = {**DELTA_SETTINGS, "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1))}

BATCH_SETTINGS = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
"""A query as it was asked, and work of our own over many rows."""

FULL_SETTINGS = {**BATCH_SETTINGS, _CONSTRAINTS: "false"}
"""Programs over many rows."""

HEAVY_DELTA_SETTINGS = {**FULL_SETTINGS, _EXCLUDED: _MERGES}

PROOF_SETTINGS = {**FULL_SETTINGS, _EXCLUDED: _MOVES}
"""A query as it was asked, in a union with what it is compared with: Spark can fail over that alone."""

START_SETTINGS = {
    "spark.sql.codegen.cache.maxEntries": "5000",
    "spark.buffer.pageSize": "4m",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "20",
}
"""Only a starting Spark takes these; many small queries need them, and their history would fill the heap
(docs/design/06)."""

EAGER = "spark.sql.repl.eagerEval.enabled"
"""Whether a DataFrame shows its first rows, and not only its columns, where it is the value of a line."""

_MEANING = {
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.legacy.followThreeValuedLogicInArrayExists": "true",
    "spark.sql.legacy.allowNullComparisonResultInArraySort": "false",
}
"""What the SQL that we write depends on, whatever the user's session says by the time of a refresh."""

WITH_FLAGS = " with flags"

_WORK = {
    "delta": DELTA_SETTINGS,
    "large delta": LARGE_DELTA_SETTINGS,
    "heavy delta": HEAVY_DELTA_SETTINGS,
    "full": FULL_SETTINGS,
    "batch": BATCH_SETTINGS,
    "proof": PROOF_SETTINGS,
}
_KINDS: dict[str, Mapping[str, str]] = {
    **_WORK,
    **{
        f"{kind}{WITH_FLAGS}": {**settings, _EXCLUDED: f"{settings.get(_EXCLUDED, '')},{_MOVES}".lstrip(",")}
        for kind, settings in _WORK.items()
    },
    "capture": CAPTURE_SETTINGS,
}


def start_spark(memory: str | None = None) -> SparkSession:
    """Start a local Spark, or take the one that runs already."""
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        raise SlackwaterError("JAVA_MISSING", "Spark needs Java 17 or newer, and there is no java on the PATH",
                              "install it, for example: apt-get install openjdk-17-jre-headless")  # fmt: skip
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers need the packages that are at hand here
    builder = (
        SparkSession.builder.appName("slackwater")
        .master("local[*]")
        .config("spark.driver.memory", memory or _default_memory())
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", str(2 * (os.cpu_count() or 1)))
        .config("spark.driver.extraJavaOptions", "-XX:MetaspaceSize=256m")
        .config("spark.log.level", "ERROR")
    )
    for name, value in START_SETTINGS.items():
        builder = builder.config(name, value)
    spark: SparkSession = builder.getOrCreate()
    # The user's DataFrames show their rows in a notebook. Of this session alone: those for our own work do not have it.
    spark.conf.set(EAGER, "true")
    return spark


def is_stopped(spark: SparkSession) -> bool:
    """Whether a session was stopped, by whoever."""
    context = getattr(spark, "_sc", None)
    return context is not None and context._jsc is None


def refuse_stopped(spark: SparkSession) -> None:
    """Say so in our own words before Spark says it in the middle of something."""
    if is_stopped(spark):
        raise SlackwaterError("SPARK_STOPPED", "the Spark session of this engine was stopped",
                              "close the engine and open it again; what was committed is there")  # fmt: skip


def _default_memory() -> str:
    """A third of the machine's memory, between 1 and 8 GiB."""
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return f"{max(1, min(8, pages * size // 2**30 // 3))}g"


class Sessions:
    """Hands out sessions that share one Spark."""

    def __init__(self, spark: SparkSession, functions: Functions | None = None) -> None:
        """`spark` is the user's session; ours are made beside it, and all of them know the declared functions."""
        self.user = spark
        self._functions = functions if functions is not None else Functions()
        self._made: dict[tuple[str, tuple[tuple[str, str], ...]], SparkSession] = {}

    def get(self, kind: str, pinned: Mapping[str, str]) -> SparkSession:
        """The session for a kind of work ("delta", "full", "full with flags") under a view's pinned settings."""
        slot = (kind, tuple(sorted(pinned.items())))
        if slot not in self._made:
            session = self.user.newSession()
            for name, value in {**pinned, **_KINDS[kind]}.items():
                session.conf.set(name, value)
            session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
            # ${…} in a query or a name would be replaced by what the session or the environment holds at that moment.
            session.conf.set("spark.sql.variable.substitute", "false")
            for name, value in _MEANING.items():
                session.conf.set(name, value)
            self._functions.install(session)
            self._made[slot] = session
        return self._made[slot]

    def declare(self, function: Function) -> None:
        """Let all sessions, those made so far as well, call a function."""
        self._functions.declare(function)
        for session in self._made.values():
            function.install(session)


@contextmanager
def active_session_kept() -> Iterator[None]:
    """Leave the user's session the active one: PySpark makes a session active when it creates a DataFrame."""
    before = SparkSession.getActiveSession()
    try:
        yield
    finally:
        if before is not None and before is not SparkSession._activeSession:  # to ask Java takes a millisecond
            SparkSession._activeSession = before
            SparkSession._get_j_spark_session_class(before._jvm).setActiveSession(before._jsparkSession)

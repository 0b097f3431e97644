"""`slackwater bench tpch`: refresh against recompute for the 11 flat queries of TPC-H, or all 22, in one run.

For each query: the initial run, the plain query, and after each delta the refresh and a plain Spark recompute of the
same query over the same tables (adaptive execution on, Parquet files, as a user would run it). The plain query and the
refresh are warmed up first; figures are medians. A refresh counts whatever it did, so its mode is told where it was not
incremental. Every result is verified after each kind of delta and at the end, outside of what is timed.
"""

from __future__ import annotations

import json
import math
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

from slackwater.bench.tpch_data import HELD_BACK, KEYS, Slices, generate, insert_slice, load
from slackwater.bench.tpch_more_queries import ALL_QUERIES
from slackwater.bench.tpch_queries import QUERIES
from slackwater.bench.tpch_report import print_table, save_chart
from slackwater.cli_output import Output, Steps
from slackwater.cli_session import start_muted
from slackwater.engine import Engine
from slackwater.execution.reports import Refresh
from slackwater.table import Table
from slackwater.view import View

WARM_UPS = {"1%": 5, "0.1%": 30}
"""So many deltas of a kind go by before those that are measured: Java compiles what runs often, and a small refresh is
little but code of Spark's driver, which takes some twenty rounds to be compiled. Before the small ones the planner also
has to learn that only two tables go on changing. What the first of them took is told as well."""
FIRST = 10
"""So many of the deltas that warm up are the first ones."""
PLAIN_WARM_UPS = 3
"""Of these, the plain query runs beside so many; it has run for the initial results already."""
SPARK_PARTITIONS = "200"
"""What Spark shuffles into by default, before adaptive execution joins small partitions."""
LARGE, SMALL = 0.01, 0.001
SMALL_TABLES = ("orders", "lineitem")


@dataclass(slots=True)
class Measured:
    """The figures of one query, in seconds and bytes; the modes of the refreshes that count; when it was verified."""

    query: int
    plain: list[float] = field(default_factory=list)
    initial: list[float] = field(default_factory=list)
    refresh: dict[str, list[float]] = field(default_factory=dict)
    recompute: dict[str, list[float]] = field(default_factory=dict)
    warming: dict[str, list[float]] = field(default_factory=dict)
    state_bytes: int = 0
    untouched_jobs: int = -1
    verified: bool = False
    modes: dict[str, list[str]] = field(default_factory=dict)
    checks: dict[str, bool] = field(default_factory=dict)

    def counted(self, label: str, report: Refresh, recompute: float) -> None:
        """Note a refresh that counts, and the recompute beside it."""
        self.refresh.setdefault(label, []).append(report.total_seconds)
        self.recompute.setdefault(label, []).append(recompute)
        self.modes.setdefault(label, []).append(report.mode)

    def checked(self, after: str, equal: bool) -> None:
        """Note whether the result was right; once wrong is wrong."""
        self.checks[after] = equal
        self.verified = all(self.checks.values())

    def otherwise(self, label: str) -> list[str]:
        """The modes of those refreshes of a kind of delta that count and were not incremental."""
        return [mode for mode in self.modes.get(label, ()) if mode != "incremental"]

    def median(self, label: str) -> tuple[float, float]:
        """Median refresh and recompute seconds of one kind of delta."""
        return statistics.median(self.refresh[label]), statistics.median(self.recompute[label])

    def first(self, label: str) -> float:
        """Median refresh seconds of the first deltas of a kind."""
        return statistics.median(self.warming[label][:FIRST])

    def to_dict(self) -> dict[str, Any]:
        """All figures, raw and as medians."""
        medians = {
            label: dict(zip(("refresh", "recompute"), self.median(label), strict=True)) for label in self.refresh
        }
        return asdict(self) | {"medians": medians}


class TpchBench:
    """One run of the benchmark."""

    def __init__(self, engine: Engine, data: Path, queries: Sequence[int], repeats: int, steps: Steps) -> None:
        self.engine, self.queries, self.repeats, self.steps = engine, queries, repeats, steps
        self.slices = Slices(engine.spark, data)
        self.results = {q: Measured(q) for q in queries}
        self.views: dict[int, View] = {}
        large, small = (warm + repeats for warm in WARM_UPS.values())
        self.held_back = round(large * LARGE + small * SMALL + SMALL, 6)
        self._next = 1.0 - self.held_back
        self._plain = as_spark_comes(engine)
        self._seen: dict[str, tuple[int, ...]] = {}
        """The segments of each table as the plain query sees it."""

    def run(self) -> dict[int, Measured]:
        """Everything, in order."""
        self.steps.say("loading the tables")
        load(self.engine, self.slices, self.held_back)
        self._initial()
        self._deltas("1%", HELD_BACK, LARGE)
        self._deltas("0.1%", SMALL_TABLES, SMALL)
        self._untouched()
        self._verify("all deltas")
        for query, view in self.views.items():
            self.results[query].state_bytes = view.state_bytes()
        return self.results

    def _verify(self, after: str) -> None:
        self.steps.say(f"verifying every result after {after}")
        for query, view in self.steps.over(list(self.views.items())):
            self.results[query].checked(after, bool(view.verify()))

    def recompute(self, query: int) -> float:
        """Seconds of the plain query over the tables as they are now, read as Parquet in a session with defaults."""
        for name in KEYS:
            table = self.engine.table(name)
            segments = tuple(segment.id for segment in table.segments())
            if self._seen.get(name) != segments:
                read_plainly(self._plain, table).createOrReplaceTempView(name)
                self._seen[name] = segments
        started = time.perf_counter()
        self._plain.sql(ALL_QUERIES[query]).collect()
        return time.perf_counter() - started

    def _initial(self) -> None:
        for turn in range(1 + self.repeats):
            self.steps.say(f"initial runs, {turn} of {self.repeats}" if turn else "initial runs, warming up")
            for query in self.steps.over(self.queries):
                plain = self.recompute(query)
                if query in self.views:
                    self.views[query].drop()
                self.views[query] = self.engine.create_view(f"q{query}", ALL_QUERIES[query])
                initial = self.views[query].history()[0]["seconds"]["total"]
                if turn:
                    self.results[query].plain.append(plain)
                    self.results[query].initial.append(initial)

    def _deltas(self, label: str, tables: tuple[str, ...], share: float) -> None:
        turns = WARM_UPS[label] + self.repeats
        for turn in range(turns):
            warm = turn < WARM_UPS[label]
            self.steps.say(f"delta of {label}, {turn + 1} of {turns}" + (", warming up" if warm else ""))
            insert_slice(self.engine, self.slices, tables, self._next, self._next + share)
            self._next += share
            for query, view in self.steps.over(list(self.views.items())):
                report = view.refresh()
                if warm:
                    self.results[query].warming.setdefault(label, []).append(report.total_seconds)
                if turn < WARM_UPS[label] - PLAIN_WARM_UPS:
                    continue
                recompute = self.recompute(query)
                if not warm:
                    self.results[query].counted(label, report, recompute)
        self._verify(f"the deltas of {label}")

    def _untouched(self) -> None:
        """A delta on a table that a query does not read must run no Spark job for it."""
        self.steps.say("a delta of a table that most queries do not read")
        insert_slice(self.engine, self.slices, ("supplier",), self._next, self._next + SMALL)
        for query, view in self.steps.over(list(self.views.items())):
            if "supplier" in view.tables:
                view.refresh()
                continue
            before = self._jobs()
            view.refresh()
            self.results[query].untouched_jobs = self._jobs() - before

    def _jobs(self) -> int:
        return int(self.engine.spark._sc._jsc.sc().dagScheduler().nextJobId())


def as_spark_comes(engine: Engine) -> SparkSession:
    """A session in which a user would run the plain query: adaptive, and with Spark's own defaults for SQL."""
    session = engine.spark.newSession()
    session.conf.set("spark.sql.adaptive.enabled", "true")
    session.conf.set("spark.sql.shuffle.partitions", SPARK_PARTITIONS)
    return session


def read_plainly(spark: SparkSession, table: Table) -> DataFrame:
    """A table as a user would read its files, with Spark's defaults; only where rows were deleted Slackwater has to."""
    segments, files = table.segments(), table._engine.files
    if segments and all(segment.sign > 0 for segment in segments):
        rows = spark.read.parquet(*(files.readable(segment.path) for segment in segments))
    else:
        rows = table.reader(spark).snapshot(segments)
    return rows.toDF(*table.schema.names)


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def summary(results: dict[int, Measured]) -> dict[str, float]:
    """The figures that the project promises."""
    found: dict[str, float] = {}
    for label in ("1%", "0.1%"):
        ratios = [m.median(label)[1] / m.median(label)[0] for m in results.values()]
        found[f"{label} geometric mean"] = geometric_mean(ratios)
        found[f"{label} worst"] = min(ratios)
        found[f"{label} best"] = max(ratios)
        first = [m.median(label)[1] / m.first(label) for m in results.values()]
        found[f"{label} geometric mean, the first {min(FIRST, WARM_UPS[label])} deltas"] = geometric_mean(first)
    initial = [statistics.median(m.initial) / statistics.median(m.plain) for m in results.values()]
    found["initial over plain, geometric mean"] = geometric_mean(initial)
    found["jobs for an untouched query"] = max((m.untouched_jobs for m in results.values()), default=-1)
    found["counted refreshes that were not incremental"] = sum(
        len(m.otherwise(label)) for m in results.values() for label in m.modes
    )
    found["all verified"] = float(all(m.verified for m in results.values()))
    return found


def command(
    sf: float = 1.0, queries: Sequence[int] | None = None, repeats: int = 3, output: str | Path | None = None,
    json_only: bool = False, all_queries: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Run the benchmark, print the table, save JSON and a picture beside it; gives the figures."""
    chosen = list(queries or (ALL_QUERIES if all_queries else QUERIES))
    target = Path(output or "bench-results")
    target.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="slackwater-bench-"))
    try:
        with Output(json_only) as shown, shown.steps() as steps:
            steps.say(f"making TPC-H data at scale factor {sf:g}")
            generate(work / "data", sf)
            with Engine(work / "warehouse", memory_budget="4GB", save_states=False) as engine:
                steps.say("starting Spark")
                start_muted(engine)
                results = TpchBench(engine, work / "data", chosen, repeats, steps).run()
                version = str(engine.spark.version)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    document = {"benchmark": "tpch", "scale_factor": sf, "spark": version, "summary": summary(results),
                "queries": [m.to_dict() for m in results.values()]}  # fmt: skip
    (target / "tpch.json").write_text(json.dumps(document, indent=2))
    save_chart(results, target / "tpch.png", sf)
    if not json_only:
        printed = Console()
        print_table(results, summary(results), printed if printed.is_terminal else Console(width=160))
        Console(stderr=True).print(f"saved {target / 'tpch.json'} and {target / 'tpch.png'}", soft_wrap=True)
    return document

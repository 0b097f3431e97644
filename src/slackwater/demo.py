"""The demo: three standing queries over TPC-H, data that arrives late, and plain Spark for comparison.

What is measured: the seconds of one `view.refresh()`, against those of running the same SQL once over the same tables
with plain Spark (adaptive execution on, result collected). Loading counts for neither. Each is run twice before,
uncounted, because the first runs of a plan are slow while Java compiles it.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from slackwater.bench.tpch_data import KEYS, Slices, generate, insert_slice
from slackwater.bench.tpch_queries import QUERIES
from slackwater.capture.noise import quiet
from slackwater.cli_output import Output
from slackwater.cli_session import start_muted
from slackwater.demo_chart import draw
from slackwater.demo_reasons import Foreseen, KeptState, foreseen, kept_states, show_forecasts, show_states
from slackwater.engine import Engine
from slackwater.settings import show_bytes
from slackwater.view import View

VIEWS = {"pricing_summary": 1, "shipping_priority": 3, "local_suppliers": 5}
"""The views, by the number of their query in TPC-H."""

LATE_TABLES = ("customer", "orders", "lineitem", "supplier")
WHOLE_TABLES = ("nation", "region")
WARM_UPS = tuple((0.898 + at * 0.0005, 0.8985 + at * 0.0005) for at in range(4))
ROUNDS = ((0.9, 0.99), (0.99, 0.999), (0.999, 1.0))
"""Which share of the rows arrives when: all before the warm-ups at once, the rest in these slices."""

AT_ONCE = WARM_UPS[0][0]

SMALL_SCALE = 0.2
"""Below this, a recompute is over before a refresh has started its jobs."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One view in one round."""

    view: str
    mode: str
    rows_in: int
    refresh_seconds: float
    recompute_seconds: float
    verified: bool

    @property
    def ratio(self) -> float:
        """How many times faster the refresh was."""
        return self.recompute_seconds / max(self.refresh_seconds, 1e-9)


@dataclass(frozen=True, slots=True)
class Round:
    """One late delta."""

    share: float
    rows: int
    state_bytes: dict[str, int]
    measures: tuple[Measure, ...]
    forecasts: tuple[Foreseen, ...]
    states: tuple[KeptState, ...]

    @property
    def label(self) -> str:
        """The share as people write it."""
        return f"{self.share:.3g}%"


@dataclass(frozen=True, slots=True)
class DemoReport:
    """All that the demo found; `forecasts` and `states` are those after the first results."""

    scale: float
    budget_bytes: int
    forecasts: tuple[Foreseen, ...]
    states: tuple[KeptState, ...]
    rounds: tuple[Round, ...]
    seconds: float
    chart: str
    warehouse: str | None

    @property
    def verified(self) -> bool:
        """Whether every result was what a recompute gives."""
        return all(m.verified for r in self.rounds for m in r.measures)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "verified": self.verified}


def run_demo(output: Output, *, scale: float, budget: str, place: Path, keep: bool) -> DemoReport:
    """Tell the story; gives what was measured. The data lives in a temporary directory."""
    started = time.perf_counter()
    with _directory(keep) as directory:
        with output.working(f"making TPC-H data at scale factor {scale:g}"):
            generate(directory / "tpch", scale)
        with quiet(), Engine(directory / "warehouse", budget, save_states=keep) as engine:
            with output.working("starting Spark"):
                start_muted(engine)
            story = _Story(output, engine, directory)
            rounds = story.tell()
        kept = str(directory / "warehouse") if keep else None
    chart = draw(rounds, engine.budget, place)
    report = DemoReport(
        scale, engine.budget, story.forecasts, story.states, rounds, time.perf_counter() - started, str(chart), kept
    )
    _conclude(output, report)
    return report


@contextmanager
def _directory(keep: bool) -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="slackwater-demo-"))
    try:
        yield directory
    finally:
        # After an interrupt, a job of Spark may still be writing and make the directory anew.
        for _ in range(0 if keep else 10):
            shutil.rmtree(directory, ignore_errors=True)
            time.sleep(0.2)
            if not directory.exists():
                break


class _Story:
    """The stages, one after the other."""

    def __init__(self, output: Output, engine: Engine, directory: Path) -> None:
        self.output, self.engine = output, engine
        self.made = Slices(engine.spark, directory / "tpch")
        self.late = Slices(engine.spark, directory / "late")
        self.plain = engine.spark.newSession()
        self.plain.conf.set("spark.sql.adaptive.enabled", "true")
        self.forecasts: tuple[Foreseen, ...] = ()
        self.states: tuple[KeptState, ...] = ()

    def tell(self) -> tuple[Round, ...]:
        self._load()
        self._create_views()
        self._warm_up()
        return tuple(self._round(number, *ends) for number, ends in enumerate(ROUNDS, start=1))

    def _load(self) -> None:
        self.output.line("1. Data. A shop's customers, orders, order lines and suppliers: 90% of the rows are here.")
        self.output.line("   The rest will arrive late, in three rounds of 9%, 0.9% and 0.1%.")
        for name in self.output.each((*LATE_TABLES, *WHOLE_TABLES), "loading"):
            rows = self.made.whole(name)
            # Order lines have no key of their own here: nobody refers to one.
            table = self.engine.create_table(name, rows.schema, key=KEYS[name] if name != "lineitem" else ())
            if name in WHOLE_TABLES:
                table.insert(rows)
                table.mark_complete()
                continue
            table.insert(self.made.part(name, 0.0, AT_ONCE))
            late = self.made.part(name, AT_ONCE, 1.0).coalesce(1)
            late.write.parquet(str(self.late.directory / f"{name}.parquet"))
        total, lines = sum(t.count() for t in self.engine.tables()), self.engine.table("lineitem").count()
        self.output.line(f"   {total:,} rows are loaded, {lines:,} of them order lines.\n")

    def _create_views(self) -> None:
        self.output.line("2. Views. Three queries of TPC-H become views. Each is computed once, its result kept.")
        self.output.line("   So are the intermediate results that will pay off when more rows come: the states.")
        rows = []
        for name in self.output.each(list(VIEWS), "computing the first result of"):
            view = self.engine.create_view(name, QUERIES[VIEWS[name]])
            seconds = view.history(limit=1)[0]["seconds"]["total"]
            rows.append((name, f"TPC-H {VIEWS[name]}", f"{seconds:.2f}", show_bytes(view.state_bytes())))
        self.output.table(("view", "query", "#first result, s", "#states"), rows)
        views = self.engine.views()
        self.forecasts, self.states = foreseen(views, came=False), kept_states(views)
        self.output.line("   What is forecast for the next delta:")
        show_forecasts(self.output, self.forecasts)
        self.output.line("   Which states: those that will be read again if that arrives, within the budget:")
        self._show_states(self.states)

    def _warm_up(self) -> None:
        self.output.line("3. Warm-up. The first runs of any plan are slow, because Java compiles it while it runs.")
        self.output.line("   So four times, 0.05% of the rows go through each view, and plain Spark runs each query.")
        self.output.line("   None of this is counted.\n")
        with self.output.working("warming up"):
            for ends in WARM_UPS:
                insert_slice(self.engine, self.late, LATE_TABLES, *ends)
                self._bind_tables()
                for view in self.engine.views():
                    view.refresh()
                    _recompute_seconds(self.plain, view)

    def _round(self, number: int, first: float, last: float) -> Round:
        share = round(100 * (last - first), 6)
        with self.output.working(f"round {number}: {share:.3g}% arrives"):
            rows = insert_slice(self.engine, self.late, LATE_TABLES, first, last)
        self._bind_tables()
        measures = tuple(self._measure(view) for view in self.output.each(self.engine.views(), f"round {number}:"))
        views = self.engine.views()
        occupied = {view.name: view.state_bytes() for view in views}
        forecasts, states = foreseen(views, came=True), kept_states(views)
        self.output.line(
            f"4.{number} Round {number}. {share:.3g}% of the rows arrive: {rows:,}. The forecast, and what came:"
        )
        show_forecasts(self.output, forecasts)
        self.output.line("    Each view is refreshed, then computed anew by plain Spark.")
        self.output.table(_COLUMNS, (_cells(measure) for measure in measures))
        self.output.line("    What is kept for the next round:")
        self._show_states(states)
        return Round(share, rows, occupied, measures, forecasts, states)

    def _measure(self, view: View) -> Measure:
        started = time.perf_counter()
        report = view.refresh()
        refresh = time.perf_counter() - started
        recompute = _recompute_seconds(self.plain, view)
        return Measure(view.name, report.mode, sum(report.rows_in.values()), refresh, recompute, view.verify().equal)

    def _bind_tables(self) -> None:
        """Give plain Spark the same files that the views read."""
        for table in self.engine.tables():
            rows = table.reader(self.plain).snapshot(self.engine.catalog.segments(f"t{table.id}"))
            rows.toDF(*(f.name for f in table.schema)).createOrReplaceTempView(table.name)

    def _show_states(self, states: tuple[KeptState, ...]) -> None:
        show_states(self.output, states, self.engine.state_bytes(), self.engine.budget)


def _recompute_seconds(spark: SparkSession, view: View) -> float:
    started = time.perf_counter()
    spark.sql(str(view.sql)).collect()
    return time.perf_counter() - started


_COLUMNS = ("view", "how", "#rows in", "#refresh, s", "#recompute, s", "#recompute ÷ refresh", "verified")


def _cells(measure: Measure) -> list[str]:
    refresh, recompute = f"{measure.refresh_seconds:.2f}", f"{measure.recompute_seconds:.2f}"
    proof = "✓" if measure.verified else "✗ DIFFERS"
    return [measure.view, measure.mode, f"{measure.rows_in:,}", refresh, recompute, f"{measure.ratio:.1f}", proof]


def _conclude(output: Output, report: DemoReport) -> None:
    output.line("5. All rounds.")
    rows = ([r.label, *_cells(m)] for r in report.rounds for m in r.measures)
    output.table(("#arrived", *_COLUMNS), rows)
    refresh = sum(m.refresh_seconds for r in report.rounds for m in r.measures)
    recompute = sum(m.recompute_seconds for r in report.rounds for m in r.measures)
    count = sum(len(r.measures) for r in report.rounds)
    proof = f"all {count} results equal a recompute" if report.verified else "NOT ALL results equal a recompute"
    largest = max(sum(r.state_bytes.values()) for r in report.rounds)
    output.line(
        f"{count} refreshes took {refresh:.1f} s, plain Spark {recompute:.1f} s: {_compared(refresh, recompute)};"
        f" {proof}; states were {show_bytes(largest)} of {show_bytes(report.budget_bytes)} at most."
    )
    if refresh > recompute and report.scale < SMALL_SCALE:
        output.line("With so little data, the fixed cost of Spark's jobs is all that is measured. Try a larger --sf.")
    output.line(f"The picture is in {report.chart}. The demo took {report.seconds:.0f} s.")
    if report.warehouse is not None:
        output.line(f"The warehouse is kept: slackwater status {report.warehouse}")


def _compared(refresh: float, recompute: float) -> str:
    if refresh <= recompute:
        return f"{recompute / max(refresh, 1e-9):.1f} times faster"
    return f"{refresh / max(recompute, 1e-9):.1f} times SLOWER"

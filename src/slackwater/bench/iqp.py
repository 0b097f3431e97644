"""`slackwater bench iqp`: the experiments of intermittent query processing, rerun on Spark over TPC-H.

    figure 3   late data: 90% of the rows, then 9%, 0.9% and 0.1%; initial run, refreshes, total, memory
    figure 5   forecasts of the wrong size: thirty times too large, thirty times too small
    figure 6   forecasts of the wrong tables: too many, too few (Q8)
    figure 7   the budget, from nothing to all that is wanted (Q3, Q7, Q8, Q9)
    figure 9   deletes, from none to the whole delta

Every way of keeping states is a view of its own over the same tables and meets the same deltas, so the ratios come from
one run. Every result is verified.
"""

from __future__ import annotations

import json
import math
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from slackwater.arrivals.fixed import fixed
from slackwater.bench.tpch_data import HELD_BACK, Slices, generate, insert_slice, load
from slackwater.bench.tpch_queries import QUERIES
from slackwater.cli_session import start_muted
from slackwater.engine import Engine
from slackwater.settings import show_bytes
from slackwater.view import View

JOINS = (3, 7, 8, 9)
WARM_UPS = 3
DELETES = (0.0, 0.25, 0.5, 0.75, 1.0)
BUDGETS = (0.0, 0.05, 0.15, 0.4, 1.0)


@dataclass(frozen=True, slots=True)
class Way:
    """One way of keeping states for a query.

    Attributes:
        query: the TPC-H query.
        label: what it is called in the table.
        strategy: how states are chosen.
        forecast: rows expected of each table at each refresh; None where they are to be learned.
        budget: bytes for this view alone; None for the engine's.
    """

    query: int
    label: str
    strategy: str = "planned"
    forecast: Mapping[str, float] | None = None
    budget: int | None = None


@dataclass(slots=True)
class Run:
    """What was measured of one way."""

    query: int
    label: str
    initial: float = 0.0
    refreshes: dict[str, list[float]] = field(default_factory=dict)
    state_bytes: dict[str, int] = field(default_factory=dict)
    modes: dict[str, str] = field(default_factory=dict)
    verified: bool = False

    def seconds(self, delta: str) -> float:
        """The median refresh of one kind of delta."""
        return statistics.median(self.refreshes[delta])


class Experiment:
    """Tables, the ways that are compared, and the deltas that all of them meet."""

    def __init__(self, engine: Engine, slices: Slices, held_back: float, console: Console) -> None:
        self.engine, self.slices, self.console = engine, slices, console
        self.views: list[tuple[Way, View, Run]] = []
        self._next, self._gone = 1.0 - held_back, 0.0
        self.say("loading the tables")
        load(engine, slices, held_back)

    def say(self, text: str) -> None:
        """Show progress."""
        self.console.print(f"[dim]{time.strftime('%H:%M:%S')}[/dim] {text}")

    def add(self, ways: Sequence[Way]) -> None:
        """Make a view for each way; a first one, dropped again, has warmed Spark up for the query."""
        warmed: set[int] = set()
        for way in ways:
            if way.query not in warmed:
                self.engine.create_view("warm", QUERIES[way.query]).drop()
                warmed.add(way.query)
            self.say(f"Q{way.query} {way.label}: initial run")
            view = self.engine.create_view(
                f"q{way.query} {way.label}", QUERIES[way.query], strategy=way.strategy, populate=False,
                forecast=fixed(dict(way.forecast)) if way.forecast is not None else None, memory_budget=way.budget,
            )  # fmt: skip
            run = Run(way.query, way.label, view.refresh().total_seconds)
            run.state_bytes["initial"] = view.state_bytes()
            self.views.append((way, view, run))

    def delta(self, label: str, share: float, tables: Sequence[str] = HELD_BACK, deletes: float = 0.0, *,
              counted: bool = True) -> None:  # fmt: skip
        """Insert a slice of some tables, delete as much as is asked for, and refresh every view."""
        inserted = share * (1.0 - deletes)
        rows = insert_slice(self.engine, self.slices, tuple(tables), self._next, self._next + inserted)
        for table in tables if deletes else ():
            gone = self.slices.part(table, self._gone, self._gone + share * deletes)
            self.engine.table(table).delete(gone)
        self._next += inserted
        self._gone += share * deletes
        self.say(f"{label}: {rows:,} rows inserted" + ("" if counted else ", warming up"))
        for _, view, run in self.views:
            report = view.refresh()
            if counted:
                run.refreshes.setdefault(label, []).append(report.total_seconds)
                run.state_bytes[label] = report.state_bytes
                run.modes[label] = report.mode

    def verified(self) -> list[Run]:
        """Everything that was measured, once every result has been proved."""
        self.say("verifying every result")
        for _, view, run in self.views:
            run.verified = bool(view.verify())
        return [run for _, _, run in self.views]


def expected(engine: Engine, share: float, tables: Sequence[str] = HELD_BACK) -> dict[str, float]:
    """The rows that a share of some tables comes to."""
    return {t: max(1.0, share * engine.table(t).count()) for t in tables}


# --- the figures -----------------------------------------------------------------------------------------------------


def late_data(experiment: Experiment, queries: Sequence[int]) -> list[Run]:
    """Figure 3: 90%, then 9%, 0.9% and 0.1%, under the strategies."""
    ways = [Way(q, s, s) for q in queries for s in ("rebatch", "auto", "planned", "incremental")]
    experiment.add(ways)
    for label, share in (("9%", 0.09), ("0.9%", 0.009), ("0.1%", 0.001)):
        experiment.delta(label, share)
    return experiment.verified()


def wrong_sizes(experiment: Experiment, queries: Sequence[int]) -> list[Run]:
    """Figure 5: a delta of 1% that was forecast right, thirty times too large, and thirty times too small."""
    ways = [Way(q, "rebatch", "rebatch") for q in queries]
    for label, factor in (("right", 1.0), ("30x too large", 30.0), ("30x too small", 1 / 30)):
        ways += [Way(q, label, forecast=expected(experiment.engine, 0.01 * factor)) for q in queries]
    experiment.add(ways)
    return _repeated(experiment, "1%", 0.01)


def wrong_tables(experiment: Experiment, queries: Sequence[int]) -> list[Run]:
    """Figure 6: forecasts that name more or fewer tables than then bring rows."""
    order = ("lineitem", "orders", "part", "customer", "supplier")
    ways = [Way(q, "rebatch", "rebatch") for q in queries]
    for count in (1, 3, 5):
        told = expected(experiment.engine, 0.01, order[:count])
        ways += [Way(q, f"{count} foreseen", forecast=told) for q in queries]
    experiment.add(ways)
    for _ in range(WARM_UPS):
        experiment.delta("warm-up", 0.002, order, counted=False)
    for count in (1, 3, 5):
        experiment.delta(f"{count} of 5 arrive", 0.01, order[:count])
    return experiment.verified()


def budgets(experiment: Experiment, queries: Sequence[int]) -> list[Run]:
    """Figure 7: a delta of 1% under budgets from nothing to all that is wanted, against a cache's heuristic."""
    ways = [Way(q, "rebatch", "rebatch") for q in queries]
    told = expected(experiment.engine, 0.01)
    for query in queries:
        full = experiment.engine.create_view("full", QUERIES[query], forecast=fixed(told), strategy="incremental")
        wanted = full.state_bytes()
        full.drop()
        for share in BUDGETS:
            size = int(share * wanted)
            ways.append(Way(query, f"planned {share:.0%}", "planned", told, size))
            ways.append(Way(query, f"recycler {share:.0%}", "recycler", told, size))
    experiment.add(ways)
    return _repeated(experiment, "1%", 0.01)


def deletes(experiment: Experiment, queries: Sequence[int]) -> list[Run]:
    """Figure 9: a delta of 1% of which a growing share are deletes."""
    experiment.add([Way(q, s, s) for q in queries for s in ("rebatch", "auto", "planned")])
    for _ in range(WARM_UPS):
        experiment.delta("warm-up", 0.01, deletes=0.5, counted=False)
    for share in DELETES:
        experiment.delta(f"{share:.0%} deletes", 0.01, deletes=share)
    return experiment.verified()


def _repeated(experiment: Experiment, label: str, share: float) -> list[Run]:
    for turn in range(WARM_UPS + 3):
        experiment.delta(label, share, counted=turn >= WARM_UPS)
    return experiment.verified()


Figure = Callable[[Experiment, Sequence[int]], list[Run]]
FIGURES: dict[int, tuple[str, Figure, Sequence[int], float]] = {
    3: ("late data", late_data, tuple(QUERIES), 0.1),
    5: ("forecasts of the wrong size", wrong_sizes, (8,), 0.08),
    6: ("forecasts of the wrong tables", wrong_tables, (8,), 0.06),
    7: ("the budget", budgets, JOINS, 0.08),
    9: ("deletes", deletes, tuple(QUERIES), 0.1),
}
"""For each figure: its title, how it is made, the queries, and the share of rows that are held back."""


# --- the command -----------------------------------------------------------------------------------------------------


def command(
    figure: int, sf: float = 1.0, queries: Sequence[int] | None = None, output: str | Path | None = None,
    json_only: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Rerun one experiment: prints a table, saves JSON and a picture beside it; gives the figures."""
    console = Console(stderr=True, quiet=json_only)
    title, make, usual, held_back = FIGURES[figure]
    target = Path(output or "bench-results")
    target.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="slackwater-iqp-"))
    try:
        generate(work / "data", sf)
        with Engine(work / "warehouse", memory_budget="6GB", save_states=False) as engine:
            engine.share_states = False  # each way bears what it keeps
            start_muted(engine)
            slices = Slices(engine.spark, work / "data")
            runs = make(Experiment(engine, slices, held_back, console), list(queries or usual))
            version = str(engine.spark.version)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    found = summary(figure, runs)
    document = {"benchmark": f"iqp figure {figure}", "title": title, "scale_factor": sf, "spark": version,
                "summary": found, "runs": [asdict(run) for run in runs]}  # fmt: skip
    (target / f"iqp-{figure}.json").write_text(json.dumps(document, indent=2))
    _draw(runs, f"{title}, TPC-H SF{sf:g}", target / f"iqp-{figure}.png")
    if not json_only:
        printed = Console()
        _print(runs, title, found, printed if printed.is_terminal else Console(width=140))
        console.print(f"saved iqp-{figure}.json and iqp-{figure}.png in {target}")
    return document


def summary(figure: int, runs: Sequence[Run]) -> dict[str, float]:
    """Ratios against the recompute of the same query, for each way and delta: geometric mean, worst and best."""
    base = {run.query: run for run in runs if run.label == "rebatch"}
    found: dict[str, float] = {}
    for label in dict.fromkeys(run.label for run in runs if run.label != "rebatch"):
        mine = [run for run in runs if run.label == label and run.query in base]
        for delta in mine[0].refreshes if mine else ():
            ratios = [base[run.query].seconds(delta) / run.seconds(delta) for run in mine]
            found[f"{label}, {delta}: faster, geometric mean"] = math.exp(statistics.fmean(map(math.log, ratios)))
            found[f"{label}, {delta}: faster, worst"], found[f"{label}, {delta}: faster, best"] = (
                min(ratios),
                max(ratios),
            )
        if figure == 3:
            totals = [_total(run) / _total(base[run.query]) for run in mine]
            found[f"{label}: total time over rebatch, worst"] = max(totals)
            found[f"{label}: queries whose total is at most rebatch's"] = sum(t <= 1.0 for t in totals)
            found[f"{label}: initial over rebatch, geometric mean"] = math.exp(
                statistics.fmean(math.log(run.initial / base[run.query].initial) for run in mine)
            )
    found["all verified"] = float(all(run.verified for run in runs))
    return found


def _total(run: Run) -> float:
    return run.initial + sum(sum(seconds) for seconds in run.refreshes.values())


def _print(runs: Sequence[Run], title: str, found: Mapping[str, float], console: Console) -> None:
    table = Table(title=f"{title} (seconds)")
    deltas = list(runs[0].refreshes)
    for name in ("query", "way", "initial", *deltas, "states", "verified"):
        table.add_column(name, justify="left" if name in ("way", "verified") else "right")
    for run in runs:
        cells = [f"{run.seconds(d):.3f}{'' if run.modes[d] == 'incremental' else ' r'}" for d in deltas]
        table.add_row(f"Q{run.query}", run.label, f"{run.initial:.2f}", *cells,
                      show_bytes(max(run.state_bytes.values())), "yes" if run.verified else "NO")  # fmt: skip
    console.print(table)
    console.print("  r: a recompute")
    for name, value in found.items():
        console.print(f"  {name}: {value:.2f}")


def _draw(runs: Sequence[Run], title: str, path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    deltas, queries = list(runs[0].refreshes), list(dict.fromkeys(run.query for run in runs))
    labels = list(dict.fromkeys(run.label for run in runs))
    figure = Canvas(figsize=(5 * len(deltas), 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    grid: Any = figure.subplots(1, len(deltas), squeeze=False, sharey=True)
    width = 0.8 / len(labels)
    for axes, delta in zip(grid[0], deltas, strict=True):
        for at, label in enumerate(labels):
            found = {run.query: run.seconds(delta) for run in runs if run.label == label}
            places = [i + at * width - 0.4 for i, q in enumerate(queries) if q in found]
            axes.bar(places, [found[q] for q in queries if q in found], width, label=label)
        axes.set_xticks(range(len(queries)), [f"Q{q}" for q in queries])
        axes.set_title(delta)
        axes.set_yscale("log")
    grid[0][0].set_ylabel("seconds")
    grid[0][0].legend(fontsize=7)
    figure.suptitle(title)
    figure.savefig(path, dpi=120)

"""`slackwater bench iqp`: the experiments of intermittent query processing, rerun on Spark.

figure 3   late data: 90% of the rows, then 9%, 0.9% and 0.1%; initial run, refreshes, total, memory
figure 4   data cleaning: five tables are cleaned one after the other (Q8)
figure 5   forecasts of the wrong size: thirty times too large, thirty times too small
figure 6   forecasts of the wrong tables: too many, too few (Q8)
figure 7   the budget, from nothing to all that is wanted (Q3, Q7, Q8, Q9)
figure 8   what is kept beyond what a pipelined run has in memory (Q3, Q7, Q8, Q9)
figure 9   deletes, from none to the whole delta
table 2    33 queries with 3 to 16 joins over a movie database (`iqp_movies`)
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from slackwater.arrivals.clock import Clock, ManualClock
from slackwater.bench import iqp_figures as figures
from slackwater.bench.iqp_cleaning import DIRTY, START, cleaning, draw_timeline
from slackwater.bench.iqp_experiment import Experiment, Run
from slackwater.bench.iqp_report import draw, draw_costs, print_table, summary
from slackwater.bench.iqp_targets import print_targets, targets
from slackwater.bench.tpch_data import Slices, generate
from slackwater.bench.tpch_queries import QUERIES
from slackwater.cli_output import Output, Steps
from slackwater.cli_session import start_muted
from slackwater.engine import Engine

JOINS = (3, 7, 8, 9)
MEMORY = "6GB"

Draw = Callable[[Sequence[Run], str, Path], None]


@dataclass(frozen=True, slots=True)
class Figure:
    """One experiment over TPC-H.

    Attributes:
        title: what it is about.
        make: runs it; where there are several, each over tables of its own.
        queries: over which queries, unless told otherwise.
        held_back: the share of rows that are not there at first.
        draw: makes the picture.
        by_hand: whether the experiment sets the clock.
        alone: the same for `auto` and `rebatch` alone, where there is such a one.
        rehearsed: the share of rows that a rehearsal holds back; zero where there is none.
    """

    title: str
    make: tuple[Callable[[Experiment, Sequence[int]], list[Run]], ...]
    queries: Sequence[int]
    held_back: float
    draw: Draw = draw
    by_hand: bool = False
    alone: tuple[Callable[[Experiment, Sequence[int]], list[Run]], ...] = ()
    rehearsed: float = 0.0


FIGURES = {
    3: Figure(
        "late data",
        (figures.late_data, figures.late_data_higher_order, figures.late_data_kept),
        tuple(QUERIES),
        figures.LATE_HELD_BACK,
        alone=(figures.late_data_alone,),
        rehearsed=figures.REHEARSED_HELD_BACK,
    ),
    4: Figure("data cleaning", (cleaning,), (8,), DIRTY, draw_timeline, by_hand=True),
    5: Figure("forecasts of the wrong size", (figures.wrong_sizes,), (8,), 0.38),
    6: Figure("forecasts of the wrong tables", (figures.wrong_tables,), (8,), 0.16),
    7: Figure("the budget", (figures.budgets,), JOINS, 0.08),
    8: Figure("what is kept beyond a pipelined run", (figures.injected,), JOINS, 0.08, draw_costs),
    9: Figure("deletes", (figures.deletes,), tuple(QUERIES), 0.1),
}


def command(
    figure: int, sf: float = 1.0, queries: Sequence[int] | None = None, output: str | Path | None = None,
    json_only: bool = False, only_auto: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Rerun one experiment: prints a table, saves JSON and a picture beside it; gives the figures."""
    chosen = FIGURES[figure]
    runs: list[Run] = []
    version = ""
    for make in chosen.alone if only_auto and chosen.alone else chosen.make:
        with workplace(json_only, ManualClock(START) if chosen.by_hand else None) as (engine, data, steps):
            steps.say(f"making TPC-H data at scale factor {sf:g}")
            generate(data, sf)
            asked_for, slices = list(queries or chosen.queries), Slices(engine.spark, data)
            if chosen.rehearsed:
                steps.say("a rehearsal, so that Java has compiled what will be timed")
                with _beside(engine) as other:
                    make(Experiment(other, slices, chosen.rehearsed, steps, rehearsal=True), asked_for)
                steps.say("and now it counts")
            runs += make(Experiment(engine, slices, chosen.held_back, steps), asked_for)
            version = str(engine.spark.version)
    runs.sort(key=lambda run: run.query)
    asked = targets(figure, runs, sf)
    document = {"benchmark": f"iqp figure {figure}", "title": chosen.title, "scale_factor": sf, "spark": version,
                "targets": [one.to_dict() for one in asked], "summary": summary(figure, runs),
                "runs": [asdict(run) for run in runs]}  # fmt: skip
    target = save(document, f"iqp-{figure}", output)
    chosen.draw(runs, f"{chosen.title}, TPC-H SF{sf:g}", target / f"iqp-{figure}.png")
    if not json_only:
        print_table(runs, chosen.title, summary(figure, runs), wide_console())
        print_targets(asked, wide_console())
        Console(stderr=True).print(f"saved iqp-{figure}.json and iqp-{figure}.png in {target}", soft_wrap=True)
    return document


@contextmanager
def workplace(json_only: bool, clock: Clock | None = None) -> Iterator[tuple[Engine, Path, Steps]]:
    """An engine over an empty warehouse and a place for data, both gone afterwards; and what tells how far it is."""
    work = Path(tempfile.mkdtemp(prefix="slackwater-iqp-"))
    try:
        with (
            Output(json_only) as shown,
            shown.steps() as steps,
            Engine(work / "warehouse", memory_budget=MEMORY, save_states=False, clock=clock) as engine,
        ):
            engine.share_states = False  # each way bears what it keeps
            steps.say("starting Spark")
            start_muted(engine)
            yield engine, work / "data", steps
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextmanager
def _beside(engine: Engine) -> Iterator[Engine]:
    """Another engine with the same Spark; what it kept is gone from the memory afterwards."""
    with Engine(engine.path.with_name("rehearsal"), spark=engine.spark, memory_budget=MEMORY,
                save_states=False) as other:  # fmt: skip
        other.share_states = False
        yield other
    shutil.rmtree(other.path, ignore_errors=True)
    jvm: Any = engine.spark._sc._jvm
    jvm.java.lang.System.gc()


def save(document: dict[str, Any], name: str, output: str | Path | None) -> Path:
    """Write the figures as JSON; gives the directory, for the picture."""
    target = Path(output or "bench-results")
    target.mkdir(parents=True, exist_ok=True)
    (target / f"{name}.json").write_text(json.dumps(document, indent=2))
    return target


def wide_console() -> Console:
    """A console wide enough for the table, whatever the output goes to."""
    printed = Console()
    return printed if printed.is_terminal else Console(width=140)

"""Figure 4: data cleaning. Five dirty tables are cleaned one after the other; Q8 is refreshed every five seconds.

A fifth of each table's rows is dirty and held back. While the cleaner learns from the clean rows nothing arrives, and a
refresh has nothing to do. Then it delivers the table's rows at a steady pace, says so beforehand, and goes on to the
next table. The first refresh after that is the dear one: other states are needed now. The clock is set by hand, five
seconds a refresh, so that forecasts see the pace that was told however fast the machine is.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from slackwater.arrivals.clock import ManualClock
from slackwater.arrivals.paced import paced
from slackwater.bench.iqp_experiment import Experiment, Run, Way
from slackwater.bench.tpch_data import insert_slice

DIRTY = 0.2
ORDER = ("supplier", "customer", "part", "orders", "lineitem")
"""In this order the tables are cleaned."""

REFRESHES = 6
"""Refreshes for each table while it is delivered; one more finds nothing."""

SECONDS = 5.0
START = 1_700_000_000.0


def cleaning(experiment: Experiment, queries: Sequence[int]) -> list[Run]:
    """Clean the tables one by one under three strategies."""
    ways = ("rebatch", "auto", "plain", "higher_order")
    experiment.add([Way(q, s, s, paced()) for q in queries for s in ways])
    for table in ORDER:
        _learn(experiment, table)
        _deliver(experiment, table)
    return experiment.verified()


def _learn(experiment: Experiment, table: str) -> None:
    """The cleaner trains its model: a refresh comes round and finds nothing."""
    experiment.say(f"{table}: nothing arrives while the cleaner learns")
    _tick(experiment)
    for view, run in experiment.in_turn():
        run.timeline.append(view.refresh().total_seconds)


def _deliver(experiment: Experiment, table: str) -> None:
    engine, each = experiment.engine, DIRTY / REFRESHES
    rows = engine.table(table).count() * DIRTY / (1.0 - DIRTY)
    engine.table(table).report_pace(rows / REFRESHES / SECONDS, remaining=round(rows))
    for turn in range(REFRESHES):
        first = 1.0 - DIRTY + turn * each
        arrived = insert_slice(engine, experiment.slices, (table,), first, first + each)
        experiment.say(f"{table}: {arrived:,} clean rows, {turn + 1} of {REFRESHES}")
        _tick(experiment)
        for view, run in experiment.steps.over(experiment.in_turn()):
            report = view.refresh()
            run.timeline.append(report.total_seconds)
            run.took(f"{table}, first" if turn == 0 else table, report)
    engine.table(table).report_pace(0.0, remaining=0)
    engine.table(table).mark_complete()


def _tick(experiment: Experiment) -> None:
    clock = experiment.engine.clock
    if isinstance(clock, ManualClock):
        clock.advance(SECONDS)


def draw_timeline(runs: Sequence[Run], title: str, path: Path) -> None:
    """Every refresh in turn, and the memory while each table is cleaned."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    figure = Canvas(figsize=(12, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.subplots(1, 2, width_ratios=(2, 1))
    for at, run in enumerate(runs):
        axes[0].plot(range(1, len(run.timeline) + 1), run.timeline, ".-", label=_name(run, runs))
        places = [i + at * 0.8 / len(runs) - 0.4 for i in range(len(ORDER))]
        axes[1].bar(places, [max(run.state_bytes.get(t, 0), 1) / 1e6 for t in ORDER], 0.8 / len(runs))
    for i, table in enumerate(ORDER):
        axes[0].axvline(i * (REFRESHES + 1) + 1, linestyle=":", color="tab:gray")
        axes[0].annotate(table, (i * (REFRESHES + 1) + 1.2, 1.0), xycoords=("data", "axes fraction"), va="top")
    axes[0].set(xlabel="refresh", ylabel="seconds", yscale="log", title="time of each refresh")
    axes[1].set_xticks(range(len(ORDER)), ORDER, rotation=30)
    axes[1].set(ylabel="states, MB", yscale="log", title="memory while a table is cleaned")
    axes[0].legend(fontsize=7)
    figure.suptitle(title)
    figure.savefig(path, dpi=120)


def _name(run: Run, runs: Sequence[Run]) -> str:
    several = len({r.query for r in runs}) > 1
    return f"Q{run.query} {run.label}" if several else run.label

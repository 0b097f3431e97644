"""What an experiment comes to: ratios, a table and a picture."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from slackwater.bench.iqp_experiment import Run
from slackwater.settings import show_bytes

MANY_JOINS = (5, 7, 8, 9)
"""The queries of TPC-H with five joins or more."""


def summary(figure: int, runs: Sequence[Run]) -> dict[str, float]:
    """Ratios against the recompute of the same query, for each way and delta: geometric mean, worst and best."""
    given_up = sum(bool(run.failure) for run in runs)
    runs = [run for run in runs if not run.failure]
    base = {run.query: run for run in runs if run.label == "rebatch"}
    found: dict[str, float] = {"runs given up": float(given_up)} if given_up else {}
    for label in dict.fromkeys(run.label for run in runs if run.label != "rebatch"):
        mine = [run for run in runs if run.label == label and run.query in base]
        for delta in mine[0].refreshes if mine else ():
            ratios = [base[run.query].seconds(delta) / run.seconds(delta) for run in mine]
            found[f"{label}, {delta}: faster, geometric mean"] = geometric_mean(ratios)
            found[f"{label}, {delta}: faster, worst"], found[f"{label}, {delta}: faster, best"] = (
                min(ratios),
                max(ratios),
            )
        if figure == 8:
            found[f"{label}: initial over rebatch, geometric mean"] = geometric_mean(
                [run.initial / base[run.query].initial for run in mine]
            )
        if figure == 3:
            totals = [run.total / base[run.query].total for run in mine]
            found[f"{label}: total time over rebatch, worst"] = max(totals)
            found[f"{label}: queries whose total is at most rebatch's"] = sum(t <= 1.0 for t in totals)
            found[f"{label}: initial over rebatch, geometric mean"] = geometric_mean(
                [run.initial / base[run.query].initial for run in mine]
            )
    if figure == 3:
        found |= against_higher_order(runs)
    found["all verified"] = float(all(run.verified for run in runs))
    return found


def against_higher_order(runs: Sequence[Run]) -> dict[str, float]:
    """Delta time and memory relative to higher-order views, over the queries where these did their work."""
    theirs = {run.query: run for run in runs if run.label == "higher_order" and at_work(run)}
    found: dict[str, float] = {}
    for label in dict.fromkeys(run.label for run in runs if run.label not in ("rebatch", "higher_order")):
        mine = [run for run in runs if run.label == label and run.query in theirs]
        pairs = [(run, theirs[run.query]) for run in mine]
        if not pairs:
            continue
        found[f"{label}: queries compared with higher_order"] = float(len(pairs))
        deltas = [delta_seconds(a) / delta_seconds(b) for a, b in pairs]
        memory = [max(a.state_bytes.values()) / max(b.state_bytes.values()) for a, b in pairs]
        found[f"{label}: delta time over higher_order's, geometric mean"] = geometric_mean(deltas)
        found[f"{label}: delta time over higher_order's, worst"] = max(deltas)
        many = [delta_seconds(a) / delta_seconds(b) for a, b in pairs if a.query in MANY_JOINS]
        if many:
            found[f"{label}: delta time over higher_order's, five or more joins, geometric mean"] = geometric_mean(many)
        found[f"{label}: memory over higher_order's, geometric mean"] = geometric_mean([max(m, 1e-6) for m in memory])
        found[f"{label}: memory over higher_order's, best"] = min(memory)
    return found


def at_work(run: Run) -> bool:
    """Whether a way kept states and followed every counted delta by them.

    Counter-example to asking for states alone: views that are given up after the initial run have taken memory once,
    and recompute from then on.
    """
    followed = bool(run.modes) and all(mode == "incremental" for mode in run.modes.values())
    return followed and max(run.state_bytes.values(), default=0) > 0


def delta_seconds(run: Run) -> float:
    """One delta of each kind."""
    return sum(run.seconds(delta) for delta in run.refreshes)


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(statistics.fmean(map(math.log, values)))


def print_table(runs: Sequence[Run], title: str, found: Mapping[str, float], console: Console) -> None:
    """A row for each way, and the summary below."""
    table = Table(title=f"{title} (seconds)")
    deltas = list(runs[0].refreshes)
    for name in ("query", "way", "initial", *deltas, "states", "verified"):
        table.add_column(name, justify="left" if name in ("way", "verified") else "right")
    for run in runs:
        if run.failure:
            table.add_row(f"Q{run.query}", run.label, run.failure)
            continue
        cells = [f"{run.seconds(d):.3f}{'' if run.modes[d] == 'incremental' else ' r'}" for d in deltas]
        table.add_row(f"Q{run.query}", run.label, f"{run.initial:.2f}", *cells,
                      show_bytes(max(run.state_bytes.values())), "yes" if run.verified else "NO")  # fmt: skip
    console.print(table)
    console.print("  r: a recompute, at least once")
    for name, value in found.items():
        console.print(f"  {name}: {value:.2f}")


def draw(runs: Sequence[Run], title: str, path: Path) -> None:
    """Draw the seconds of each kind of delta, by query and way."""
    _bars(runs, title, path, [(delta, "seconds", _of(delta)) for delta in runs[0].refreshes])


def draw_costs(runs: Sequence[Run], title: str, path: Path) -> None:
    """Draw what keeping states costs beside what it saves: the initial run, the delta, the memory."""
    panels: list[Panel] = [("initial run", "seconds", lambda run: run.initial)]
    panels += [(delta, "seconds", _of(delta)) for delta in runs[0].refreshes]
    _bars(runs, title, path, [*panels, ("states", "MB", lambda run: max(*run.state_bytes.values(), 1) / 1e6)])


Panel = tuple[str, str, Callable[[Run], float]]
"""What a panel shows: its title, the unit, and the number of each run."""


def _of(delta: str) -> Callable[[Run], float]:
    return lambda run: run.seconds(delta)


def _bars(runs: Sequence[Run], title: str, path: Path, panels: Sequence[Panel]) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    runs = [run for run in runs if not run.failure]
    queries, labels = (list(dict.fromkeys(getattr(run, name) for run in runs)) for name in ("query", "label"))
    figure = Canvas(figsize=(5 * len(panels), 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    grid: Any = figure.subplots(1, len(panels), squeeze=False)
    width = 0.8 / len(labels)
    for axes, (name, unit, number) in zip(grid[0], panels, strict=True):
        for at, label in enumerate(labels):
            found = {run.query: number(run) for run in runs if run.label == label}
            places = [i + at * width - 0.4 for i, q in enumerate(queries) if q in found]
            axes.bar(places, [found[q] for q in queries if q in found], width, label=label)
        axes.set_xticks(range(len(queries)), [f"Q{q}" for q in queries])
        axes.set(title=name, ylabel=unit, yscale="log")
    seconds = [axes for axes, (_, unit, _) in zip(grid[0], panels, strict=True) if unit == "seconds"]
    for axes in seconds[1:]:
        axes.sharey(seconds[0])
    least = min((number(run) for _, unit, number in panels if unit == "seconds" for run in runs), default=0.0)
    if seconds and least > 0:
        seconds[0].set_ylim(bottom=0.7 * least)  # else the shortest bars would lie below the axis
    grid[0][0].legend(fontsize=7)
    figure.suptitle(title)
    figure.savefig(path, dpi=120)

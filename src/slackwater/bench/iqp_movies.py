"""Table 2: 33 queries with 3 to 16 joins over the movie database, each with an initial run and a delta of 1%.

Queries come in rounds, each over a little more data than the last: a round's views are made, meet a delta of 1% of each
table that grows, are verified and dropped. So an initial run is over 91% to 99% of the rows. Within a round
higher-order views come last and take what the others leave of the budget. A way that takes longer than the limit has
not finished, nor one that would keep more views than is sensible, nor higher-order views that do not fit the budget.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from slackwater.bench.iqp import save, wide_console, workplace
from slackwater.bench.iqp_experiment import LIMIT, Experiment, Run, Way
from slackwater.bench.iqp_targets import print_targets, table_targets
from slackwater.bench.movie_data import HELD_BACK, KEYS, generate
from slackwater.bench.movie_queries import MOVIES, TEXTS
from slackwater.bench.tpch_data import Slices
from slackwater.errors import SlackwaterError
from slackwater.settings import show_bytes

WAYS = ("rebatch", "auto", "plain", "higher_order")
ROUND = 4
"""So many queries share a delta."""

DELTA = 0.01
TITLE = "a join order benchmark"


def command(
    sf: float = 1.0, queries: Sequence[int] | None = None, output: str | Path | None = None,
    json_only: bool = False, limit: float = LIMIT,
) -> dict[str, Any]:  # fmt: skip
    """Run the queries: prints the table, saves JSON and a picture beside it; gives the figures."""
    chosen = list(queries or MOVIES)
    unknown = sorted(set(chosen) - set(MOVIES))
    if unknown:
        raise SlackwaterError("SETTING_INVALID", f"there is no query {unknown[0]}",
                              f"use numbers from 1 to {len(MOVIES)}")  # fmt: skip
    rounds = [chosen[i : i + ROUND] for i in range(0, len(chosen), ROUND)]
    with workplace(json_only) as (engine, data, steps):
        steps.say(f"making a movie database of size {sf:g}")
        generate(data, sf)
        slices = Slices(engine.spark, data, KEYS)
        experiment = Experiment(engine, slices, DELTA * len(rounds), steps, queries=TEXTS, growing=HELD_BACK)
        runs = [run for some in rounds for run in _round(experiment, some, limit)]
        version = str(engine.spark.version)
    found, asked = aggregated(runs), table_targets(runs)
    document = {"benchmark": "iqp table 2", "title": TITLE, "scale_factor": sf, "spark": version,
                "targets": [one.to_dict() for one in asked], "summary": found,
                "runs": [asdict(run) | {"joins": MOVIES[run.query].joins} for run in runs]}  # fmt: skip
    target = save(document, "iqp-table-2", output)
    draw(runs, f"33 queries over a movie database of size {sf:g}", target / "iqp-table-2.png")
    if not json_only:
        print_tables(runs, found, wide_console())
        print_targets(asked, wide_console())
        Console(stderr=True).print(f"saved iqp-table-2.json and iqp-table-2.png in {target}", soft_wrap=True)
    return document


def _round(experiment: Experiment, queries: Sequence[int], limit: float) -> list[Run]:
    experiment.views = []
    experiment.say("warming up for the next queries")
    for query in experiment.steps.over(queries):
        experiment.engine.create_view("warm", TEXTS[query]).drop()
    for query, strategy in [(q, s) for s in WAYS for q in queries]:
        _start(experiment, Way(query, strategy, strategy), limit)
    experiment.change("1%", DELTA)
    for _, view, run in experiment.steps.over(experiment.views):
        if not run.failure:
            with experiment.limited(run, limit):
                run.took("1%", view.refresh())
    runs = _verified(experiment)
    for _, view, _ in experiment.views:
        view.drop()
    return runs


def _start(experiment: Experiment, way: Way, limit: float) -> None:
    """The initial run of a way; one that cannot be made has not finished."""
    run = Run(way.query, way.label)
    try:
        with experiment.limited(run, limit):
            experiment.start(way, run)
    except SlackwaterError as error:
        if error.code != "HIGHER_ORDER_TOO_LARGE":
            raise
        run.failure = error.code
    if way.strategy == "higher_order" and not run.failure and not run.state_bytes["initial"]:
        run.failure = "the views do not fit the budget"
    if run.failure:
        experiment.say(f"Q{way.query} {way.label}: {run.failure}")


def _verified(experiment: Experiment) -> list[Run]:
    """One way of each query is compared with a recompute, and the others with that one: results are small."""
    experiment.say("verifying every result")
    proved: dict[int, list[tuple[Any, ...]]] = {}
    for _, view, run in experiment.steps.over(experiment.views):
        if run.failure:
            continue
        found = sorted(map(tuple, view.result().collect()), key=repr)
        if run.query not in proved and view.verify():
            proved[run.query] = found
        run.verified = proved.get(run.query) == found
    return [run for _, _, run in experiment.views]


# --- what it comes to ------------------------------------------------------------------------------------------------


def aggregated(runs: Sequence[Run]) -> dict[str, float]:
    """How many queries finished, and the average, most and least of time and memory of those that did."""
    found: dict[str, float] = {}
    for label in dict.fromkeys(run.label for run in runs):
        done = [run for run in runs if run.label == label and not run.failure]
        found[f"{label}: queries finished"] = len(done)
        for name, values in (
            ("total seconds", [run.total for run in done]),
            ("MB after the initial run", [run.state_bytes["initial"] / 1e6 for run in done]),
        ):
            if values:
                found[f"{label}: {name}, average"] = statistics.fmean(values)
                found[f"{label}: {name}, most"], found[f"{label}: {name}, least"] = max(values), min(values)
    found["all verified"] = float(all(run.verified for run in runs if not run.failure))
    return found


def print_tables(runs: Sequence[Run], found: Mapping[str, float], console: Console) -> None:
    """A row for each query, and the aggregates over all."""
    labels = list(dict.fromkeys(run.label for run in runs))
    table = Table(title=f"{TITLE}: initial run + delta of 1% (seconds), and the states after the initial run")
    for name in ("query", "joins", *labels, "verified"):
        table.add_column(name, justify="right")
    for query in dict.fromkeys(run.query for run in runs):
        mine = [run for run in runs if run.query == query]
        table.add_row(f"{query}", f"{MOVIES[query].joins}", *map(_cell, mine),
                      "yes" if all(run.verified for run in mine if not run.failure) else "NO")  # fmt: skip
    console.print(table)
    for run in runs:
        if run.failure:
            console.print(f"  query {run.query}, {run.label} did not finish: {run.failure}")
    for name, value in found.items():
        console.print(f"  {name}: {value:.2f}")


def _cell(run: Run) -> str:
    if run.failure:
        return "-"
    return f"{run.initial:.2f} + {run.seconds('1%'):.2f}  {show_bytes(run.state_bytes['initial'])}"


def draw(runs: Sequence[Run], title: str, path: Path) -> None:
    """The total time of each query by its joins, and the memory."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    figure = Canvas(figsize=(12, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.subplots(1, 2)
    for label in dict.fromkeys(run.label for run in runs):
        done = [run for run in runs if run.label == label and not run.failure]
        joins = [MOVIES[run.query].joins for run in done]
        axes[0].plot(joins, [run.total for run in done], "o", label=f"{label}: {len(done)} finished", alpha=0.7)
        axes[1].plot(joins, [max(run.state_bytes["initial"], 1) / 1e6 for run in done], "o", label=label, alpha=0.7)
    axes[0].set(xlabel="joins", ylabel="seconds", yscale="log", title="initial run and delta")
    axes[1].set(xlabel="joins", ylabel="states, MB", yscale="log", title="memory after the initial run")
    axes[0].legend(fontsize=7)
    figure.suptitle(title)
    figure.savefig(path, dpi=120)

"""`slackwater bench planning`: what the choice of states takes, for growing plans and for queries, without Spark."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from slackwater.algebra.nodes import Scan
from slackwater.bench.planning_plans import Planned, join_chain, movie, q9
from slackwater.planning.costing import AtHand, Pricing
from slackwater.planning.rates import Rates
from slackwater.planning.strategies import plan_states

SIZES = (2, 4, 6, 8, 12, 17, 24, 32)
ROUNDS = 7

QUERIES: dict[str, tuple[Callable[[], Planned], float]] = {
    "TPC-H Q9": (q9, 50.0),
    "movie query 33": (lambda: movie(33), 500.0),
}
"""Queries with many joins, and the milliseconds in which they should be planned."""


def command(output: str | Path | None = None, json_only: bool = False) -> dict[str, Any]:
    """Plan joins of two to 32 tables, and some queries; print milliseconds for the memo, the search and all of it."""
    target = Path(output or "bench-results")
    target.mkdir(parents=True, exist_ok=True)
    console = Console(stderr=True, quiet=json_only)
    measured = [_measure(_chain(n)) for n in track(SIZES, description="planning", console=console)]
    queries = [_of_query(name) for name in QUERIES]
    document = {"benchmark": "planning", "sizes": measured, "queries": queries}
    (target / "planning.json").write_text(json.dumps(document, indent=2))
    _draw(measured, target / "planning.png")
    if not json_only:
        _print([*measured, *queries])
        Console().print(f"saved {target / 'planning.json'} and {target / 'planning.png'}")
    return document


def _chain(tables: int) -> Callable[[], Planned]:
    return lambda: join_chain(tables)


def _of_query(name: str) -> dict[str, Any]:
    make, limit = QUERIES[name]
    found = _measure(make, serves=50.0)  # as states of views are expected to
    return {"name": name, **found, "limit_ms": limit, "met": found["everything_ms"] <= limit}


def _measure(make: Callable[[], Planned], serves: float = 1.0) -> dict[str, float]:
    memo, search, everything = [], [], []
    points = operators = tables = 0
    for turn in range(ROUNDS + 1):
        plan, cards = make()
        started = time.perf_counter()
        root = Pricing(cards, Rates(write=2e-8), AtHand(serves=serves)).root(plan, by_delta=True)
        built = time.perf_counter()
        points = len(root.stairs(4e9))
        found = time.perf_counter()
        plan_states(root, "auto", 4e9)
        ended = time.perf_counter()
        operators, tables = len(root.group.walk()), sum(isinstance(node, Scan) for node in plan.walk())
        if turn:
            memo.append(built - started)
            search.append(found - built)
            everything.append(ended - found + built - started)
    median = statistics.median
    return {"tables": tables, "operators": operators, "points": points, "memo_ms": 1e3 * median(memo),
            "search_ms": 1e3 * median(search), "everything_ms": 1e3 * median(everything)}  # fmt: skip


def _print(measured: Sequence[dict[str, Any]]) -> None:
    table = Table(title="The choice of states (milliseconds, medians)")
    for name in (
        "",
        "tables joined",
        "operators",
        "steps of the staircase",
        "memo",
        "search",
        "everything, with reasons",
    ):
        table.add_column(name, justify="right")
    for row in measured:
        times = (f"{row[name]:.1f}" for name in ("memo_ms", "search_ms", "everything_ms"))
        table.add_row(row.get("name", "a chain"), *(str(row[n]) for n in ("tables", "operators", "points")), *times)
    Console().print(table)
    for row in measured:
        if "met" in row:
            word = "as asked, at most" if row["met"] else "MISSED: at most"
            Console().print(f"  {row['name']}: {row['everything_ms']:.1f} ms, {word} {row['limit_ms']:.0f} ms")


def _draw(measured: list[dict[str, float]], path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.subplots()
    operators = [row["operators"] for row in measured]
    for name, label in (("search_ms", "search"), ("everything_ms", "everything, with reasons")):
        axes.plot(operators, [row[name] for row in measured], "o-", label=label)
    axes.set_xlabel("operators in the plan")
    axes.set_ylabel("milliseconds")
    axes.set_ylim(bottom=0)
    axes.legend()
    figure.savefig(path, dpi=120)

"""`slackwater bench planning`: how long the choice of states takes as plans grow. No Spark is started."""

from __future__ import annotations

import json
import random
import statistics
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import call, col, lit
from slackwater.algebra.nodes import Aggregate, Field, Filter, Item, Join, Rel, Scan
from slackwater.planning.cardinality import Cardinalities, Expected
from slackwater.planning.costing import AtHand, Pricing
from slackwater.planning.lookups import with_lookups
from slackwater.planning.rates import Rates
from slackwater.planning.strategies import plan_states

SIZES = (2, 4, 6, 8, 12, 17, 24, 32)
ROUNDS = 7


def join_chain(tables: int, seed: int = 7) -> tuple[Rel, Cardinalities]:
    """An aggregate over a join of so many filtered tables of random sizes, all of which will change.

    Each table is looked up by its key; from every second one rows will be deleted.
    """
    chance = random.Random(seed)  # noqa: S311 - test data, not secrets
    plan: Rel | None = None
    for i in range(tables):
        fields = (Field(f"a{i}", "bigint"), Field(f"b{i}", "bigint"))
        over = call(">", col(f"b{i}", "bigint"), lit(i), dtype="boolean")
        leaf = Filter(Scan(f"t{i}", fields, (0, 1)), over)
        equal = call("=", col(f"a{i - 1}", "bigint"), col(f"a{i}", "bigint"), dtype="boolean")
        plan = leaf if plan is None else Join(plan, leaf, equal)
    assert plan is not None  # noqa: S101 - there is at least one table
    total = AggCall("total", "sum", (col("b0", "bigint"),), "bigint")
    grouped = Aggregate(plan, (Item("g", col(f"b{tables - 1}", "bigint")),), (total,))
    rows = {f"t{i}": float(chance.randint(10_000, 6_000_000)) for i in range(tables)}
    coming = {t: Expected(n * chance.uniform(0.0001, 0.05), 0.1 * (i % 2)) for i, (t, n) in enumerate(rows.items())}
    marked = with_lookups(grouped, lambda _: (0,), lambda _: 1.0)
    return marked, Cardinalities(rows, coming, unique=lambda _: (0,))


def command(output: str | Path | None = None, json_only: bool = False) -> dict[str, Any]:
    """Plan joins of two to 32 tables; print milliseconds for the memo, the search and everything with its reasons."""
    target = Path(output or "bench-results")
    target.mkdir(parents=True, exist_ok=True)
    measured = [
        _measure(n) for n in track(SIZES, description="planning", console=Console(stderr=True, quiet=json_only))
    ]
    document = {"benchmark": "planning", "sizes": measured}
    (target / "planning.json").write_text(json.dumps(document, indent=2))
    _draw(measured, target / "planning.png")
    if not json_only:
        _print(measured)
        Console().print(f"saved {target / 'planning.json'} and {target / 'planning.png'}")
    return document


def _measure(tables: int) -> dict[str, float]:
    memo, search, everything = [], [], []
    points = operators = 0
    for turn in range(ROUNDS + 1):
        plan, cards = join_chain(tables)
        started = time.perf_counter()
        root = Pricing(cards, Rates(write=2e-8), AtHand()).root(plan, by_delta=True)
        built = time.perf_counter()
        points = len(root.stairs(4e9))
        found = time.perf_counter()
        plan_states(root, "auto", 4e9)
        ended = time.perf_counter()
        operators = len(root.group.walk())
        if turn:
            memo.append(built - started)
            search.append(found - built)
            everything.append(ended - found + built - started)
    median = statistics.median
    return {"tables": tables, "operators": operators, "points": points, "memo_ms": 1e3 * median(memo),
            "search_ms": 1e3 * median(search), "everything_ms": 1e3 * median(everything)}  # fmt: skip


def _print(measured: list[dict[str, float]]) -> None:
    table = Table(title="The choice of states (milliseconds, medians)")
    for name in ("tables joined", "operators", "steps of the staircase", "memo", "search", "everything, with reasons"):
        table.add_column(name, justify="right")
    for row in measured:
        table.add_row(str(row["tables"]), str(row["operators"]), str(row["points"]), f"{row['memo_ms']:.1f}",
                      f"{row['search_ms']:.1f}", f"{row['everything_ms']:.1f}")  # fmt: skip
    Console().print(table)


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

"""`slackwater bench division`: ten views under one budget, divided by what states save, against an equal split.

Two warehouses hold the same tables and the same ten views and meet the same deltas in turns. In one the budget is the
engine's, and goes where it saves most; in the other each view has a tenth of it for its own. The budget is a share of
what all views would keep if they could.
"""

from __future__ import annotations

import json
import shutil
import statistics
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from slackwater.bench.tpch_data import HELD_BACK, Slices, generate, insert_slice, load
from slackwater.bench.tpch_queries import QUERIES
from slackwater.cli_output import Output, Steps
from slackwater.cli_session import start_muted
from slackwater.engine import Engine
from slackwater.settings import show_bytes

TEN = tuple(q for q in QUERIES if q != 6)
"""Q6 keeps one row whatever the budget is."""
DELTA = 0.005
WARM_UPS = 3
ROOM = "8GB"
STRATEGY = "auto"
"""The strategy that lets memory move between views."""


@dataclass(slots=True)
class Side:
    """One way to divide the budget.

    Attributes:
        label: what it is called in the table.
        refreshes: seconds of each counted refresh, by query.
        state_bytes: bytes of each view's states after the last refresh.
        most: the most bytes that all states had after any refresh.
        verified: whether every result was right at the end.
    """

    label: str
    refreshes: dict[int, list[float]] = field(default_factory=dict)
    state_bytes: dict[int, int] = field(default_factory=dict)
    most: int = 0
    verified: bool = False

    @property
    def seconds(self) -> float:
        """What one refresh of all views takes."""
        return sum(statistics.median(seconds) for seconds in self.refreshes.values())


class Contest:
    """Two warehouses with the same views, and the deltas that both meet."""

    def __init__(self, sides: Sequence[tuple[Side, Engine]], data: Path, queries: Sequence[int], steps: Steps) -> None:
        self.sides, self.queries, self.steps = sides, list(queries), steps
        self.slices = {side.label: Slices(engine.spark, data) for side, engine in sides}
        self._next = 0.90

    def prepare(self, share: float) -> int:
        """Load the tables, see what all views would keep, and make the views under a share of it; gives the budget."""
        budget = 0
        for side, engine in self.sides:
            self.steps.say(f"{side.label}: loading the tables")
            engine.share_states = False
            load(engine, self.slices[side.label], 1.0 - self._next)
            if not budget:
                self.steps.say("what all views would keep")
                wanting = self.steps.over(self.queries)
                views = [engine.create_view(f"q{q}", QUERIES[q], strategy=STRATEGY) for q in wanting]
                budget = int(share * engine.state_bytes())
                for view in views:
                    view.drop()
            engine.budget = budget
            own = budget // len(self.queries) if side.label == "equal split" else None
            self.steps.say(f"{side.label}: making the views")
            for query in self.steps.over(self.queries):
                engine.create_view(f"q{query}", QUERIES[query], strategy=STRATEGY, memory_budget=own)
        return budget

    def run(self, repeats: int) -> None:
        """Send the deltas through, each warehouse first in turn."""
        for turn in range(WARM_UPS + repeats):
            counted = turn >= WARM_UPS
            for side, engine in self.sides if turn % 2 else reversed(self.sides):
                which = f"delta {turn + 1} of {WARM_UPS + repeats}"
                self.steps.say(f"{side.label}: {which}" + ("" if counted else ", warming up"))
                insert_slice(engine, self.slices[side.label], HELD_BACK, self._next, self._next + DELTA)
                for query in self.steps.over(self.queries):
                    report = engine.view(f"q{query}").refresh()
                    if counted:
                        side.refreshes.setdefault(query, []).append(report.total_seconds)
                    side.most = max(side.most, engine.state_bytes())
            self._next += DELTA
        for side, engine in self.sides:
            self.steps.say(f"{side.label}: verifying")
            views = {query: engine.view(f"q{query}") for query in self.queries}
            side.state_bytes = {query: view.state_bytes() for query, view in views.items()}
            side.verified = all(bool(view.verify()) for view in self.steps.over(list(views.values())))


def command(
    sf: float = 1.0, share: float = 0.25, repeats: int = 3, output: str | Path | None = None, json_only: bool = False
) -> dict[str, Any]:
    """Run the contest: prints a table, saves JSON; gives the figures."""
    target = Path(output or "bench-results")
    target.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="slackwater-division-"))
    divided, equal = Side("divided"), Side("equal split")
    try:
        with ExitStack() as stack:
            steps = stack.enter_context(stack.enter_context(Output(json_only)).steps())
            steps.say(f"making TPC-H data at scale factor {sf:g}")
            generate(work / "data", sf)
            first = stack.enter_context(Engine(work / "divided", memory_budget=ROOM, save_states=False))
            steps.say("starting Spark")
            start_muted(first)
            second = Engine(work / "equal", memory_budget=ROOM, spark=first.spark, save_states=False)
            stack.enter_context(second)
            contest = Contest(((divided, first), (equal, second)), work / "data", TEN, steps)
            budget = contest.prepare(share)
            contest.run(repeats)
            version = str(first.spark.version)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    found = {
        "budget, MB": budget / 1e6,
        "divided, seconds for all views": divided.seconds,
        "equal split, seconds for all views": equal.seconds,
        "equal split over divided": equal.seconds / divided.seconds,
        "all verified": float(divided.verified and equal.verified),
        "never above the budget": float(max(divided.most, equal.most) <= budget),
    }
    document = {"benchmark": "division", "scale_factor": sf, "spark": version, "summary": found,
                "sides": [asdict(side) for side in (divided, equal)]}  # fmt: skip
    (target / "division.json").write_text(json.dumps(document, indent=2))
    if not json_only:
        _print((divided, equal), found)
        Console(stderr=True).print(f"saved division.json in {target}", soft_wrap=True)
    return document


def _print(sides: Sequence[Side], found: dict[str, float]) -> None:
    table = Table(title="Ten views, one budget")
    for name in ("query", *(f"{side.label}, {what}" for side in sides for what in ("s", "states"))):
        table.add_column(name, justify="right")
    for query in sides[0].refreshes:
        cells = [
            text
            for side in sides
            for text in (f"{statistics.median(side.refreshes[query]):.3f}", show_bytes(side.state_bytes[query]))
        ]
        table.add_row(f"Q{query}", *cells)
    printed = Console()
    (printed if printed.is_terminal else Console(width=100)).print(table)
    for name, value in found.items():
        printed.print(f"  {name}: {value:.2f}")

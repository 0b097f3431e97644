"""What the next refresh would keep and take under another budget or forecast, without running anything."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slackwater.arrivals.forecast import Forecast
from slackwater.errors import ViewError
from slackwater.execution.refresh import Refresher
from slackwater.execution.state_planning import plan_next
from slackwater.planning.cardinality import Expected
from slackwater.planning.choices import Choice
from slackwater.planning.costing import AtHand
from slackwater.planning.strategies import seconds_text
from slackwater.settings import parse_bytes, show_bytes

if TYPE_CHECKING:
    from slackwater.view import View


@dataclass(frozen=True, slots=True)
class WhatIf:
    """An answer to what if.

    Attributes:
        view: the view's name.
        budget: the bytes that states may take.
        expected: changed rows of each table at the next refresh.
        choices: every node that could have a state, and what would be done about it.
        size: bytes of the states that would be kept.
        seconds: what the next refresh would take, once they are there.
        build: what building those that are not there now would take.
        recompute: what the next refresh would take with no state.
        curve: bytes and seconds of the best choice for every budget, building included.
        now: bytes of the states that are kept now, and what the next refresh would take with them.
    """

    view: str
    budget: int
    expected: Mapping[str, float]
    choices: tuple[Choice, ...]
    size: int
    seconds: float
    build: float
    recompute: float
    curve: tuple[tuple[int, float], ...]
    now: tuple[int, float]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "view": self.view,
            "budget_bytes": self.budget,
            "expected_rows": dict(self.expected),
            "kept": [c.label for c in self.choices if c.keep],
            "state_bytes": self.size,
            "seconds": self.seconds,
            "build_seconds": self.build,
            "recompute_seconds": self.recompute,
            "curve": [list(point) for point in self.curve],
            "now": list(self.now),
        }

    def __str__(self) -> str:
        rows = ", ".join(f"{t} {n:,.0f}" for t, n in self.expected.items()) or "nothing"
        lines = [
            f"{self.view}: what if the budget were {show_bytes(self.budget)} and the next delta {rows}",
            f"  the next refresh: {seconds_text(self.seconds)} with {show_bytes(self.size)} of state"
            f" ({seconds_text(self.build)} to build what is not there), {seconds_text(self.recompute)} with none",
            f"  now: {show_bytes(self.now[0])} of state, {seconds_text(self.now[1])}",
        ]
        for c in self.choices:
            mark = "■ keep" if c.keep else "□ drop"
            lines.append(f"  {mark} {show_bytes(c.size):>9}  {c.label[:90]}")
            lines.append(f"         {c.reason}")
        lines.append("  cost for every budget, building included:")
        lines += [f"    {show_bytes(size):>9}  {seconds_text(cost)}" for size, cost in self.curve]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def save_picture(self, path: str | Path) -> Path:
        """Draw the cost of the next refresh against the budget, with the present point marked."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7, 4), layout="constrained")
        FigureCanvasAgg(figure)  # draws without a screen, whatever backend the user has set
        axes: Any = figure.subplots()
        sizes = [size / 1e6 for size, _ in self.curve]
        costs = [cost for _, cost in self.curve]
        end = max([*sizes, self.budget / 1e6 if self.budget < 1e15 else 0.0, self.now[0] / 1e6, 1.0]) * 1.05
        axes.step([*sizes, end], [*costs, costs[-1]], where="post", label="best choice, building included")
        axes.plot([self.now[0] / 1e6], [self.now[1]], "o", color="tab:red", label="now")
        if self.budget / 1e6 <= end:
            axes.axvline(self.budget / 1e6, linestyle="--", color="tab:gray", label="budget")
        axes.set_xlabel("states, MB")
        axes.set_ylabel("next refresh, seconds")
        axes.set_ylim(bottom=0)
        axes.set_title(self.view)
        axes.legend()
        target = Path(path)
        figure.savefig(target, dpi=120)
        return target


def what_if(view: View, budget: str | int | None, forecast: Mapping[str, float] | Forecast | None) -> WhatIf:
    """Plan for another budget or forecast; nothing is run and nothing changes."""
    from slackwater.algebra.nodes import Opaque

    if isinstance(view.plan, Opaque):
        raise ViewError("VIEW_NOT_INCREMENTAL", f"view {view.name!r} is recomputed at each refresh: no state helps it",
                        f"[{view.plan.code}] {view.plan.reason}")  # fmt: skip
    refresher = Refresher(view)
    limit = view.engine.budget if budget is None else parse_bytes(budget)
    expected = refresher.expected() if forecast is None else _checked(view, forecast)
    facts = refresher.facts()
    at_hand = AtHand(view.kept, everything=False, sizes=view.known_bytes())
    planned = plan_next(facts, view.strategy, limit, expected, at_hand)
    root = facts.root(expected, at_hand)
    curve = tuple((p.bytes, p.seconds) for p in root.stairs().points())
    return WhatIf(view.name, limit, {t: e.rows for t, e in expected.items()}, planned.choices, planned.size,
                  planned.seconds, planned.build, planned.nothing, curve,
                  (view.state_bytes(), root.price(view.kept, building=False)))  # fmt: skip


def _checked(view: View, forecast: Mapping[str, float] | Forecast) -> dict[str, Expected]:
    if isinstance(forecast, Forecast):
        return {t.table: Expected(t.rows, t.deletes) for t in forecast.tables if t.rows > 0}
    known = {name.casefold(): name for name in view.tables}
    found: dict[str, Expected] = {}
    for name, rows in forecast.items():
        if str(name).casefold() not in known:
            raise ViewError("FORECAST_INVALID", f"view {view.name!r} reads no table {name!r}",
                            f"it reads {', '.join(view.tables)}")  # fmt: skip
        if isinstance(rows, bool) or not isinstance(rows, int | float) or not 0 <= rows < float("inf"):
            raise ViewError("FORECAST_INVALID", f"{rows!r} is no number of rows", "give a number from 0 upwards")
        found[known[str(name).casefold()]] = Expected(float(rows))
    return found

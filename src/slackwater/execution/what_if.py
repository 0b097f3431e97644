"""What the next refresh would keep and take under another budget or forecast, without running anything."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slackwater.algebra.nodes import Opaque
from slackwater.arrivals.forecast import Forecast, TableForecast, check_number
from slackwater.errors import ForecastError, ViewError
from slackwater.execution.leaves import views_read
from slackwater.execution.program import INCREMENTAL, INITIAL, RECOMPUTE
from slackwater.execution.refresh import Refresher
from slackwater.execution.sharing import given_back
from slackwater.execution.state_planning import VIEW_SHARE, Facts, next_stairs, plan_next, serves
from slackwater.planning.cardinality import Expected
from slackwater.planning.choices import Choice
from slackwater.planning.costing import AtHand
from slackwater.planning.state_choice import Root
from slackwater.planning.strategies import seconds_text, with_paid_builds
from slackwater.settings import parse_bytes, show_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from slackwater.view import View


@dataclass(frozen=True, slots=True)
class WhatIf:
    """An answer to what if. All seconds are corrected by what earlier refreshes taught, as predictions are.

    Attributes:
        view: the view's name.
        budget: the bytes that the states of all views may take together.
        expected: changed rows of each table at the next refresh.
        choices: every node that could have a state, and what would be done about it.
        size: bytes of the states that would be kept.
        seconds: what the next refresh would take, once they are there.
        build: what building those that are not there now would take.
        recompute: what the next refresh would take with no state.
        curve: bytes and seconds of the best choice for every budget, building included.
        now: bytes of the states that are kept now, and what the next refresh would take with them; never less than the
            curve has for so many bytes.
        usable: what this view's states may take of it: beside those of other views, and no more than the view's own
            budget and Spark's memory.
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
    usable: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "view": self.view,
            "budget_bytes": self.budget,
            "usable_bytes": self.usable,
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
        own = "" if self.usable == self.budget else f" ({show_bytes(self.usable)} of it for this view)"
        lines = [
            f"{self.view}: what if the budget were {show_bytes(self.budget)}{own} and the next delta {rows}",
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
        target = Path(path)
        self.draw().savefig(target, dpi=120)
        return target

    def draw(self) -> Figure:
        """The picture that `save_picture` saves."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7, 4), layout="constrained")
        FigureCanvasAgg(figure)  # draws without a screen, whatever backend the user has set
        axes: Any = figure.subplots()
        sizes = [size / 1e6 for size, _ in self.curve]
        costs = [cost for _, cost in self.curve]
        end = max([*sizes, self.usable / 1e6 if self.usable < 1e15 else 0.0, self.now[0] / 1e6, 1.0]) * 1.05
        axes.step([*sizes, end], [*costs, costs[-1]], where="post", label="best choice, building included")
        axes.plot([self.now[0] / 1e6], [self.now[1]], "o", color="tab:red", label="now")
        if self.usable / 1e6 <= end:
            axes.axvline(self.usable / 1e6, linestyle="--", color="tab:gray", label="budget for this view")
        axes.set_xlabel("states, MB")
        axes.set_ylabel("next refresh, seconds")
        axes.set_ylim(bottom=0)
        axes.set_title(self.view)
        axes.legend()
        return figure


def what_if(view: View, budget: str | int | None, forecast: Mapping[str, float] | Forecast | None) -> WhatIf:
    """Plan for another budget or forecast; nothing is run and nothing changes."""
    if isinstance(view.plan, Opaque):
        raise ViewError("VIEW_NOT_INCREMENTAL", f"view {view.name!r} is recomputed at each refresh: no state helps it",
                        f"[{view.plan.code}] {view.plan.reason}")  # fmt: skip
    refresher = Refresher(view, None if budget is None else parse_bytes(budget))
    told = None if forecast is None else checked_forecast(view, forecast)
    expected = refresher.expected() if told is None else _expected(refresher, told)
    at_hand = refresher.next_at_hand(INCREMENTAL if view.version else INITIAL, view.kept, refresher.changes)
    if told is not None:
        at_hand = replace(at_hand, serves=serves(told))
    facts = refresher.facts()
    usable = _usable(refresher, expected, at_hand)
    planned = plan_next(facts, view.strategy, usable, expected, at_hand)
    root = facts.root(expected, at_hand)
    now = view.state_bytes(), _corrected(facts, bool(view.kept), root.price(view.kept))
    return WhatIf(view.name, refresher.budget, {t: e.rows for t, e in expected.items()},
                  with_paid_builds(planned.choices, view.choices), planned.size,
                  _corrected(facts, bool(planned.kept), planned.seconds), _corrected(facts, True, planned.build),
                  _corrected(facts, False, planned.nothing), _curve(facts, root, now), now, usable)  # fmt: skip


def _corrected(facts: Facts, with_states: bool, seconds: float) -> float:
    """A price after what earlier refreshes taught; without a state a refresh comes to a recompute."""
    return facts.corrected(INCREMENTAL if with_states else RECOMPUTE, seconds)


def _curve(facts: Facts, root: Root, now: tuple[int, float]) -> tuple[tuple[int, float], ...]:
    """The least seconds for every number of bytes, with what is kept now among the choices.

    Counter-example to leaving it out: of equal parts of a query, which share one state, the search counts each.
    """
    found = [(p.bytes, _corrected(facts, bool(p.decisions), p.seconds)) for p in root.stairs().points()]
    steps: list[tuple[int, float]] = []
    for size, seconds in sorted([*found, now]):
        if not steps or seconds < steps[-1][1]:
            steps.append((size, seconds))
    return tuple(steps)


def _usable(refresher: Refresher, expected: Mapping[str, Expected], at_hand: AtHand) -> int:
    """What the view's states may take, as a refresh has it: other views give back what saves less."""
    view, free = refresher.view, refresher.free()
    if view.strategy != "auto" or not refresher.engine.state_bytes(without=view.id):
        return free
    own = next_stairs(refresher.facts(), expected, at_hand, refresher.budget)
    given = given_back(refresher, own) if own is not None else {}
    freed = sum(other.known_bytes().get(key, 0) for other, keys in given.items() for key in keys)
    return min(view.declared.capped(refresher.usable), free + freed)


def checked_forecast(view: View, forecast: Mapping[str, float] | Forecast) -> tuple[TableForecast, ...]:
    """What somebody says that the next delta will bring, by the tables' own names.

    As with every forecast, a table that the warehouse does not have is refused, and one that the view does not read is
    of no account. A table that is not named brings nothing.
    """
    if isinstance(forecast, Forecast):
        told = list(forecast.tables)
    elif isinstance(forecast, Mapping):
        told = [_table_forecast(name, rows) for name, rows in forecast.items()]
    else:
        raise ForecastError("FORECAST_INVALID", f"{forecast!r} is no forecast",
                            "give rows by table, such as {'orders': 1000}, or a Forecast")  # fmt: skip
    names = {table.name.casefold(): table.name for table in view.engine.catalog.tables()}
    for one in told:
        if one.table.casefold() not in names:
            raise ForecastError("FORECAST_TABLE_UNKNOWN", f"the forecast names {one.table!r}, which is no table",
                                f"the view reads: {', '.join(view.tables)}", {"table": one.table})  # fmt: skip
    found = [replace(one, table=names[one.table.casefold()]) for one in told]
    # What is given is a forecast as any other: the same table twice, under two spellings, contradicts itself.
    return Forecast(tuple(found), "told", 0.0, 0.0).tables


def _table_forecast(name: str, rows: float) -> TableForecast:
    number = check_number(rows, f"the number of rows of {name!r}")
    return TableForecast(name, number, number, number)


def _expected(refresher: Refresher, told: tuple[TableForecast, ...]) -> dict[str, Expected]:
    """The next delta of what the view reads: its tables as told, other views as far as their tables bring anything."""
    coming = {one.table: Expected(one.rows, one.deletes) for one in told if one.rows > 0}
    views = {view.name: view for view in views_read(refresher.engine, refresher.view.inputs)}
    followed = {name: Expected(max(VIEW_SHARE * state.rows, 1.0), 0.5) for name, state in refresher.tables.items()
                if name in views and not coming.keys().isdisjoint(views[name].tables)}  # fmt: skip
    return {name: expected for name, expected in coming.items() if name in refresher.tables} | followed

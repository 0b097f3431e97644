"""What the demo tells of its reasons: what was forecast beside what came, and which states are kept and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from slackwater.cli_output import Output
from slackwater.settings import show_bytes
from slackwater.view import View


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What was expected of a table, by the first view that reads it; `came` is None where that is not known yet."""

    view: str
    table: str
    kind: str
    rows: float
    low: float
    high: float
    came: int | None


@dataclass(frozen=True, slots=True)
class KeptState:
    """One state: its measured bytes, what it should save at the next refresh, and what it cost to build."""

    view: str
    label: str
    bytes: int
    saves_seconds: float
    build_seconds: float


def foreseen(views: Iterable[View], *, came: bool) -> tuple[Foreseen, ...]:
    """The forecasts that the last refreshes went by, or were to be judged by: those of the delta that came.

    They are the ones that the refreshes recorded, so that nothing is forecast for the show. Of a table that nothing was
    expected of and nothing came to there is nothing to tell.
    """
    found: dict[str, Foreseen] = {}
    for view in views:
        for row in view.forecasts(limit=2 * len(view.tables)):
            now = row["settled_version"] == view.version if came else row["settled_version"] is None
            if now and (row["high"] or row["actual"]):
                one = Foreseen(
                    view.name, row["table"], row["kind"], row["rows"], row["low"], row["high"], row["actual"]
                )
                found.setdefault(row["table"], one)
    return tuple(found.values())


def kept_states(views: Iterable[View]) -> tuple[KeptState, ...]:
    """The states that views keep now."""
    return tuple(
        KeptState(view.name, choice.label, view.known_bytes().get(choice.key, 0), choice.saves, choice.build)
        for view in views
        for choice in view.choices
        if choice.key in view.kept
    )


def show_forecasts(output: Output, found: Iterable[Foreseen]) -> None:
    """A table for people."""
    columns = ("table", "#rows forecast", "#at least", "#at most", "#rows that came", "forecast")
    output.table(columns, ([f.table, f"{f.rows:,.0f}", f"{f.low:,.0f}", f"{f.high:,.0f}",
                            "" if f.came is None else f"{f.came:,}", f.kind] for f in found))  # fmt: skip


def show_states(output: Output, found: Iterable[KeptState], occupied: int, budget: int) -> None:
    """A table for people; `occupied` counts what several views share once."""
    columns = ("view", "kept", "#bytes", "#should save, ms", "#cost to build, ms")
    output.table(columns, ([s.view, s.label[:60], show_bytes(s.bytes), f"{1000 * s.saves_seconds:,.0f}",
                            f"{1000 * s.build_seconds:,.0f}"] for s in found))  # fmt: skip
    output.line(f"   States: {show_bytes(occupied)} of the budget of {show_bytes(budget)}.\n")

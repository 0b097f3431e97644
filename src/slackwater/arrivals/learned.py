"""Learned: from the catalog's own record of what arrived when, by the model that would have done best so far."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from slackwater.arrivals.contest import Past, Winner, contest, next_rows
from slackwater.arrivals.distribution import Numbers
from slackwater.arrivals.forecast import TableForecast
from slackwater.arrivals.history import TableArrivals, Trigger, usual_gap
from slackwater.arrivals.models import BY_NAME, SEASONS
from slackwater.arrivals.naive import naive

LEAST_DELTAS = 8
"""With fewer, no model can be told from another."""

MOST_DELTAS = 200
MOST_BINS = 840
AGAIN_GROWN = 2.0
AGAIN_SECONDS = 86_400.0
"""The contest is held again when the changes have become so many times more, or after a day."""


@dataclass(frozen=True, slots=True)
class Learned:
    """The next delta follows from the last ones and from the time of day and week. Made by `learned`."""

    kind: ClassVar[str] = "learned"

    def expect(self, arrivals: TableArrivals, trigger: Trigger) -> TableForecast:
        past = past_of(arrivals, trigger)
        if past is None:
            said = naive(arrivals, trigger)
            count = len(arrivals.deltas(trigger.now)) or len(arrivals.after_load)
            return replace(said, kind=self.kind, reason=f"too little history ({count} so far): {said.reason}")
        winner = self._remembered(arrivals, past, trigger.now)
        if winner is None and trigger.compares:
            winner = contest(past, trigger.now, len(arrivals.changes))
        if winner is None and (winner := self._outdated(arrivals, past)) is None:
            said = naive(arrivals, trigger)
            return replace(said, kind=self.kind, reason=f"models are compared next time: {said.reason}")
        rows = next_rows(BY_NAME[winner.model], past, winner.parameters)
        if not math.isfinite(rows):
            return replace(naive(arrivals, trigger), kind=self.kind, reason=f"{winner.model} gives no number")
        low, high = max(rows + winner.low, 0.0), max(rows + winner.high, rows)
        by = "refreshes" if past.by == "refresh" else "spans of this length"
        reason = f"{winner.model}, best over {winner.origins} of the last {by}: off by about {winner.error:,.0f} rows"
        return TableForecast(arrivals.table, rows, min(low, rows), high, arrivals.deletes, False, self.kind, reason,
                             winner.to_dict())  # fmt: skip

    def _remembered(self, arrivals: TableArrivals, past: Past, now: float) -> Winner | None:
        winner = self._outdated(arrivals, past)
        if winner is None:
            return None
        grown = len(arrivals.changes) >= AGAIN_GROWN * winner.changes
        return None if grown or not 0 <= now - winner.at < AGAIN_SECONDS else winner

    def _outdated(self, arrivals: TableArrivals, past: Past) -> Winner | None:
        """The last winner, however long ago that was."""
        winner = Winner.from_dict(arrivals.remembered)
        usable = winner is not None and winner.by == past.by and past.allows(BY_NAME[winner.model])
        return winner if usable else None

    def measured(self, table: str) -> None:
        return None

    def tables(self) -> tuple[str, ...]:
        return ()

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Learned:
        """Read what `to_dict` gave."""
        return cls(**values)


def learned() -> Learned:
    """A forecast learned from what arrived before, with seasons by hour and day where there is history enough."""
    return Learned()


def past_of(arrivals: TableArrivals, trigger: Trigger) -> Past | None:
    """The past as a series: by refresh where the view has a rhythm like the horizon's, else cut by the clock.

    None where there is too little of it.
    """
    now, horizon = trigger.now, trigger.horizon
    deltas = arrivals.deltas(now)[-MOST_DELTAS:]
    gap = usual_gap([delta.end for delta in deltas]) or 0.0
    same_rhythm = not trigger.given or 0.8 <= horizon / max(gap, 1e-9) <= 1.25
    if len(deltas) >= LEAST_DELTAS and same_rhythm:
        rows = np.array([delta.rows for delta in deltas], dtype=float)
        ends = np.array([delta.end for delta in deltas])
        return Past("refresh", rows, ends, horizon, _bins(arrivals, now))
    if not arrivals.changes:
        return None
    count = int(min((now - arrivals.changes[0].at) / horizon, MOST_DELTAS))
    if count < LEAST_DELTAS or len(arrivals.after_load) < LEAST_DELTAS // 2:
        return None
    edges = now - horizon * np.arange(count, -1, -1.0)
    rows = _binned(arrivals, edges, now)
    return Past("clock", rows, edges[1:], horizon, _bins(arrivals, now))


def _bins(arrivals: TableArrivals, now: float) -> dict[float, tuple[float, Numbers]]:
    """For each width that seasons need: where the last whole bin ends, and the rows of all whole bins before."""
    found = {}
    for width in sorted({season.width for season in SEASONS}):
        start = math.ceil(arrivals.changes[0].at / width) * width if arrivals.changes else now
        end = math.floor(now / width) * width
        start = max(start, end - MOST_BINS * width)
        if end > start:
            edges = np.arange(start, end + width / 2, width)
            found[width] = (end, _binned(arrivals, edges, now))
    return found


def _binned(arrivals: TableArrivals, edges: Any, now: float) -> Numbers:
    # A bin holds what came after its start, up to and including its end.
    later = arrivals.after_load
    at = np.array([min(change.at, now) for change in later], dtype=float)
    rows = np.array([change.rows for change in later], dtype=float)
    where = np.searchsorted(edges, at, side="left") - 1
    inside = (where >= 0) & (where < len(edges) - 1)
    return np.bincount(where[inside], weights=rows[inside], minlength=len(edges) - 1).astype(float)

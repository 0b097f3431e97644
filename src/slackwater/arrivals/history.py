"""How a table's rows have arrived so far, as a forecast sees it. Plain values; reading them is `outlook.py`'s work."""

from __future__ import annotations

import statistics
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any

from slackwater.storage.forecasts import ArrivalRecord, PaceRecord

USUAL_OF = 10
"""The usual time between two refreshes is the median of so many."""

DEFAULT_HORIZON = 60.0
"""How far to look ahead where neither refreshes nor changes have a rhythm yet."""

SHARE_OF = 20
"""The share of deletes is taken from so many changes."""


@dataclass(frozen=True, slots=True)
class Delta:
    """What one refresh found: changed rows, and the time span they came in."""

    rows: int
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Delays:
    """How late rows were: seconds after they were due, when they came, and how many.

    A row that came before it was due has negative seconds.
    """

    seconds: Sequence[float]
    arrived: Sequence[float]
    rows: Sequence[int]


@dataclass(frozen=True, slots=True)
class TableArrivals:
    """One table, as seen from one view that is about to be refreshed.

    Attributes:
        table: the table's name.
        present: rows in it now.
        complete: whether it was marked complete.
        changes: its changes, the oldest first; the last ones, if there are very many.
        whole: whether the first of `changes` is the table's first change, which is taken for its first load.
        marks: version and time of the view's last refreshes, the oldest first.
        pace: what an upstream system said.
        delays: how late rows were; None where that is not measured.
        remembered: the `detail` of the last forecast of the same kind.
    """

    table: str
    present: int = 0
    complete: bool = False
    changes: tuple[ArrivalRecord, ...] = ()
    whole: bool = True
    marks: tuple[tuple[int, float], ...] = ()
    pace: PaceRecord | None = None
    delays: Delays | None = None
    remembered: Mapping[str, Any] = field(default_factory=dict)

    @property
    def after_load(self) -> tuple[ArrivalRecord, ...]:
        """The changes that say something about those to come: all but the first load."""
        return self.changes[1:] if self.whole else self.changes

    @property
    def deletes(self) -> float:
        """The share of deletes in the last changes."""
        last = self.after_load[-SHARE_OF:]
        rows = sum(change.rows for change in last)
        return sum(change.deleted for change in last) / rows if rows else 0.0

    def deltas(self, now: float) -> list[Delta]:
        """What each refresh since the view's first one found; what waits now is the last delta, if anything does."""
        waiting = bool(self.marks and self.changes and self.changes[-1].version > self.marks[-1][0])
        ends = [*self.marks, (self.changes[-1].version, now)] if waiting else [*self.marks]
        versions = [change.version for change in self.changes]
        upto = [0, *accumulate(change.rows for change in self.changes)]
        came = [upto[bisect_right(versions, version)] for version, _ in ends]
        times = [min(at, now) for _, at in ends]
        pairs = zip(came, came[1:], times, times[1:], strict=False)
        return [Delta(after - before, start, end) for before, after, start, end in pairs]

    @property
    def loaded(self) -> int:
        """Rows that came before the view's first refresh: all that are there, if it has had none."""
        first = self.marks[0][0] if self.marks else None
        return sum(c.rows for c in self.changes if first is None or c.version <= first)


@dataclass(frozen=True, slots=True)
class Trigger:
    """When a forecast is made and how far it looks; `given` where the caller said how far.

    `compares` is false where there is no time now to compare models: what is known serves until there is.
    """

    now: float
    horizon: float
    given: bool = False
    compares: bool = True


def usual_gap(times: Sequence[float]) -> float | None:
    """The usual time between events; None for fewer than two. A clock that went back makes a gap of nothing."""
    gaps = [max(after - before, 0.0) for before, after in pairwise(times)][-USUAL_OF:]
    return statistics.median(gaps) if gaps else None


def usual_horizon(tables: Sequence[TableArrivals], now: float) -> float:
    """How long until the next delta: the view's own rhythm, else that of its tables' changes, else a minute."""
    marks = max((arrivals.marks for arrivals in tables), key=len, default=())
    gap = usual_gap([at for _, at in marks] + ([now] if marks else []))
    if gap is None:
        gap = usual_gap(sorted(change.at for arrivals in tables for change in arrivals.after_load))
    return gap if gap else DEFAULT_HORIZON

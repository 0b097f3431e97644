"""Late arrivals: most rows of a batch come in time, the rest dribbles in.

Two models. With a column of event times, the distribution of delays from history: of a batch of which `n` rows have
arrived `a` seconds after it was due, `n / F(a)` are expected in all, and `n * (F(a + h) - F(a)) / F(a)` of them in the
next `h` seconds. Without one, or before there is history, the geometric model: in each interval every missing row
arrives with the same probability, so that each delta is a fixed fraction of the one before: 90%, 9%, 0.9%, …
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from slackwater.arrivals.distribution import LEAST, DelayDistribution, Numbers
from slackwater.arrivals.durations import parse_span, show_span
from slackwater.arrivals.forecast import TableForecast, check_number
from slackwater.arrivals.history import Delays, TableArrivals, Trigger
from slackwater.errors import ForecastError

ENOUGH_ROWS = 20
ENOUGH_VERSIONS = 3
"""So many rows, from so many changes, must have had time to arrive before their delays say anything."""

AROUND = 1.5
"""The distribution may be wrong by this factor, besides chance."""

FEW = 0.5
"""A table is complete when fewer rows than this are expected."""


@dataclass(frozen=True, slots=True)
class LateArrivals:
    """The rest of what was due; made by `late_arrivals`, which explains the parameters."""

    kind: ClassVar[str] = "late_arrivals"
    event_time: str | tuple[tuple[str, str], ...] | None = None
    batch: float | None = None
    longest: float = 30 * 86_400.0
    probability: float = 0.9
    interval: float | None = None
    ongoing: bool = False

    def expect(self, arrivals: TableArrivals, trigger: Trigger) -> TableForecast:
        if arrivals.delays is None:
            return self._geometric(arrivals, trigger, "no event times")
        delays, ages, rows = _due(arrivals.delays, trigger.now, self.longest)
        why = _too_little(arrivals.delays, delays, ages, rows)
        if why:
            return self._geometric(arrivals, trigger, why)
        return self._by_delays(arrivals, trigger, delays, ages, rows)

    def _by_delays(
        self, arrivals: TableArrivals, trigger: Trigger, delays: Numbers, ages: Numbers, rows: Numbers
    ) -> TableForecast:
        known = DelayDistribution.estimate(delays, ages, rows)
        missing = known.still_due(ages, rows, 0.0)
        left = known.still_due(ages, rows, trigger.horizon)
        expected = max(missing - left, 0.0)
        detail: dict[str, Any] = {"missing": missing}
        if self.ongoing:
            expected += _pace_of_events(known, ages, rows, trigger.horizon) * known.timely(trigger.horizon)
        else:
            detail["complete_at"] = trigger.now + known.complete_in(ages, rows)
        low, high = _around(expected, AROUND)
        reason = f"{missing:,.0f} rows are late; half come within {show_span(_median(known))}"
        return TableForecast(arrivals.table, expected, low, high, arrivals.deletes,
                             not self.ongoing and left < FEW, self.kind, reason, detail)  # fmt: skip

    def _geometric(self, arrivals: TableArrivals, trigger: Trigger, why: str) -> TableForecast:
        missing = self._missing(arrivals, trigger)
        q = 1.0 - self.probability
        steps = trigger.horizon / self.interval if self.interval else 1.0
        expected = missing * (1.0 - q**steps)
        low, high = _around(expected, 1.0)
        reason = f"geometric ({why}): {self.probability:g} of what is missing each time"
        complete = missing - expected < FEW
        return TableForecast(arrivals.table, expected, low, high, arrivals.deletes, complete, self.kind, reason)

    def _missing(self, arrivals: TableArrivals, trigger: Trigger) -> float:
        """What the last delta that brought anything says about the rest, less what should have come since."""
        q = 1.0 - self.probability
        deltas = [(arrivals.loaded, 1.0)]
        for delta in arrivals.deltas(trigger.now):
            steps = max((delta.end - delta.start) / self.interval, 1e-6) if self.interval else 1.0
            deltas.append((delta.rows, steps))
        since = 0.0
        for rows, steps in reversed(deltas):
            if rows:
                rest: float = rows * q**steps / (1.0 - q**steps)
                return rest * float(q**since)
            since += steps
        return 0.0

    def measured(self, table: str) -> tuple[str, float | None] | None:
        if isinstance(self.event_time, tuple):
            column = dict(self.event_time).get(table)
            return None if column is None else (column, self.batch)
        return None if self.event_time is None else (self.event_time, self.batch)

    def tables(self) -> tuple[str, ...]:
        return tuple(table for table, _ in self.event_time) if isinstance(self.event_time, tuple) else ()

    def to_dict(self) -> dict[str, Any]:
        columns = dict(self.event_time) if isinstance(self.event_time, tuple) else self.event_time
        return {"kind": self.kind, **asdict(self), "event_time": columns}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> LateArrivals:
        """Read what `to_dict` gave."""
        return late_arrivals(**values)


def late_arrivals(
    event_time: str | Mapping[str, str] | None = None,
    *,
    batch: str | float | None = None,
    longest: str | float = "30d",
    probability: float = 0.9,
    interval: str | float | None = None,
    ongoing: bool = False,
) -> LateArrivals:
    """A forecast of the rows that are late.

    Args:
        event_time: the column that says when a row happened (TIMESTAMP or DATE), for all tables that have it, or by
            table. Its distance to the time of the commit that brought the row is the row's delay.
        batch: rows are due at the end of their batch of this length, such as "1d", not when they happen.
        longest: a longer delay is a backfill and not counted.
        probability: of the geometric model: the share of what is missing that arrives in each interval.
        interval: of the geometric model: its length; each delta is one interval if not given.
        ongoing: new events keep coming at the recent pace, and are expected as well.
    """
    if isinstance(event_time, Mapping):
        columns: Any = tuple(sorted((str(table), column) for table, column in event_time.items()))
    else:
        columns = event_time
    names = [name for _, name in columns] if isinstance(columns, tuple) else [columns]
    if any(name is not None and (not isinstance(name, str) or not name) for name in names):
        raise ForecastError("FORECAST_COLUMN", f"{event_time!r} names no column", "give a column, or one by table")
    share = check_number(probability, "the probability", most=1.0)
    if not 0 < share < 1:
        raise ForecastError("FORECAST_INVALID", f"the probability is {probability!r}", "give one between 0 and 1")
    return LateArrivals(
        columns,
        None if batch is None else parse_span(batch, "the batch"),
        parse_span(longest, "the longest delay"),
        share,
        None if interval is None else parse_span(interval, "the interval"),
        bool(ongoing),
    )


def _due(found: Delays, now: float, longest: float) -> tuple[Numbers, Numbers, Numbers]:
    """Delay, time since due, and number of the rows that were due by now; early ones are on time."""
    raw, rows = np.asarray(found.seconds, dtype=float), np.asarray(found.rows, dtype=float)
    arrived = np.minimum(np.asarray(found.arrived, dtype=float), now)
    ages = now - (arrived - raw)
    kept = (ages >= 0) & (raw <= longest)
    return np.maximum(raw[kept], 0.0), ages[kept], rows[kept]


def _too_little(found: Delays, delays: Numbers, ages: Numbers, rows: Numbers) -> str:
    if len(set(found.arrived)) < ENOUGH_VERSIONS or not len(delays):
        return f"fewer than {ENOUGH_VERSIONS} changes with event times"
    by_delay = np.argsort(delays)
    most = delays[by_delay][np.searchsorted(np.cumsum(rows[by_delay]), 0.95 * rows.sum())]
    settled = float(rows[(ages >= most) & (ages > delays)].sum())
    return "" if settled >= ENOUGH_ROWS else f"only {settled:,.0f} rows had time enough to be late"


def _pace_of_events(known: DelayDistribution, ages: Numbers, rows: Numbers, horizon: float) -> float:
    """Rows that became due each second lately, late ones included."""
    span = min(max(5 * horizon, 2 * _median(known), 60.0), float(ages.max()) or 1.0)
    recent = ages <= span
    return float(np.sum(rows[recent] / np.maximum(known.share(ages[recent]), LEAST))) / span


def _median(known: DelayDistribution) -> float:
    return known.delays[int(np.searchsorted(np.asarray(known.shares), 0.5))]


def _around(rows: float, factor: float) -> tuple[float, float]:
    """Chance (three standard deviations of a count) and the model's own error."""
    chance = 3.0 * math.sqrt(rows)
    return max(rows / factor - chance, 0.0), rows * factor + chance + 1.0

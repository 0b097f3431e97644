"""Paced: an upstream system says which table it is delivering, how fast, and how much is left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from slackwater.arrivals.durations import parse_span, show_span
from slackwater.arrivals.forecast import SILENT, TableForecast
from slackwater.arrivals.history import TableArrivals, Trigger

AROUND = 2.0
"""The pace may be half or double what was said."""


@dataclass(frozen=True, slots=True)
class Paced:
    """Tables arrive at the pace last reported with `Table.report_pace`; one without a report brings nothing."""

    kind: ClassVar[str] = "paced"
    stale_after: float = 3600.0

    def expect(self, arrivals: TableArrivals, trigger: Trigger) -> TableForecast:
        pace, name = arrivals.pace, arrivals.table
        if pace is None:
            return replace(self._nothing(name, "no pace was reported, so nothing is expected"), detail={SILENT: True})
        age = max(trigger.now - pace.at, 0.0)
        left = None
        if pace.remaining is not None:
            came = sum(change.rows for change in arrivals.changes if change.at > pace.at)
            left = max(float(pace.remaining - came), 0.0)
            if left == 0:
                return replace(self._nothing(name, "all that was announced has arrived"), complete_after=True)
        if age > self.stale_after:
            why = f"the last report is {show_span(age)} old and no longer counts"
            return replace(self._nothing(name, why), detail={SILENT: True})
        reach = pace.rows_per_second * trigger.horizon
        rows, low, high = reach, reach / AROUND, reach * AROUND
        if left is not None:
            rows, low, high = (min(one, left) for one in (rows, low, high))
        reason = f"{pace.rows_per_second:g} rows/s" + ("" if left is None else f", {left:,.0f} left")
        complete = left is not None and reach >= left
        return TableForecast(name, rows, low, high, arrivals.deletes, complete, self.kind, reason)

    def _nothing(self, table: str, reason: str) -> TableForecast:
        return replace(TableForecast.nothing(table, reason), kind=self.kind)

    def measured(self, table: str) -> None:
        return None

    def tables(self) -> tuple[str, ...]:
        return ()

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "stale_after": self.stale_after}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Paced:
        """Read what `to_dict` gave."""
        return cls(parse_span(values["stale_after"], "stale_after"))


def paced(stale_after: str | float = "1h") -> Paced:
    """A forecast that follows what an upstream system reports with `Table.report_pace`.

    Args:
        stale_after: a report that is older no longer counts.
    """
    return Paced(parse_span(stale_after, "stale_after"))

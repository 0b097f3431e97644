"""Forecast against actual: what counts as a miss, when a kind of forecast is demoted, and the report that shows it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slackwater.arrivals.forecast import SILENT
from slackwater.storage.forecasts import ForecastRecord

FAR = 10.0
"""A forecast misses where what came lies outside its bounds by more than this factor."""

JUDGED, TOO_MANY = 5, 3
"""So many misses in so many deltas, and a kind of forecast is demoted for that table until it does better."""

OWN_KIND, OWN_BOUNDS, REMEMBERED = "own_kind", "own_bounds", "remembered"
"""In a record's detail: the view's own kind, what it said where it was demoted, and what it wants to remember."""


def missed(low: float, high: float, actual: float) -> bool:
    """Whether what came is far from what was expected; one row more or less never matters.

    >>> missed(80, 120, 1000), missed(80, 120, 1300), missed(80, 120, 5), missed(0, 0, 5)
    (False, True, True, False)
    """
    return actual + 1 > FAR * (high + 1) or low + 1 > FAR * (actual + 1)


@dataclass(frozen=True, slots=True)
class Standing:
    """How a kind of forecast has done on one table lately."""

    misses: int
    judged: int

    @property
    def demoted(self) -> bool:
        """Whether it is not to be trusted."""
        return self.misses >= TOO_MANY


def standing(records: Iterable[ForecastRecord], kind: str) -> Standing:
    """Judge a kind by the last settled forecasts of one table (the newest first), also while it was demoted."""
    settled = [r for r in records if r.actual_rows is not None and r.detail.get(OWN_KIND) == kind]
    said = [r for r in settled if SILENT not in r.detail.get(REMEMBERED, {})][:JUDGED]
    return Standing(sum(missed(*own_bounds(r), r.actual_rows or 0) for r in said), len(said))


def own_bounds(record: ForecastRecord) -> tuple[float, float]:
    """The bounds that the view's own kind gave, whether they were used or not."""
    low, high = record.detail.get(OWN_BOUNDS) or (record.low, record.high)
    return float(low), float(high)


class ForecastReport(list[dict[str, Any]]):
    """What was expected and what came, the latest first; a table in a notebook."""

    def __init__(self, view: str, kind: str, records: Sequence[ForecastRecord]) -> None:
        super().__init__(_row(record) for record in records)
        self.view, self.kind = view, kind
        last = {record.table_name: record for record in reversed(records)}
        self.notes = [note for _, record in sorted(last.items()) if (note := _demotion(record, kind))]

    def errors(self) -> dict[str, float | None]:
        """By table, the rows that forecasts were off by, as a share of the rows that came; None where none came."""
        found: dict[str, float | None] = {}
        for name in sorted({row["table"] for row in self}):
            settled = [row for row in self if row["table"] == name and row["actual"] is not None]
            came = sum(row["actual"] for row in settled)
            found[name] = sum(abs(row["error"]) for row in settled) / came if came else None
        return found

    def closing_lines(self) -> list[str]:
        """The errors by table, and which kinds are demoted, for people."""
        errors = [f"{table}: " + ("nothing came" if share is None else f"off by {share:.0%} of what came")
                  for table, share in self.errors().items()]  # fmt: skip
        return errors + self.notes

    def __str__(self) -> str:
        lines = [f"forecasts of {self.view} ({self.kind})"]
        head = ("made", "table", "kind", "rows", "low", "high", "actual", "error", "")
        lines.append("  {:<19}  {:<20} {:<14} {:>12} {:>12} {:>12} {:>12} {:>9}  {}".format(*head).rstrip())
        for row in self:
            made = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row["made_at"]))
            actual = "-" if row["actual"] is None else f"{row['actual']:,}"
            lines.append(
                f"  {made}  {row['table']:<20} {row['kind']:<14} {row['rows']:>12,.0f} {row['low']:>12,.0f}"
                f" {row['high']:>12,.0f} {actual:>12} {percent_off(row):>9}  {remark(row)}".rstrip()
            )
        return "\n".join([*lines, *(f"  {line}" for line in self.closing_lines())])

    def _repr_html_(self) -> str:
        from slackwater.execution.reports import table_html

        names = ("table", "kind", "rows", "low", "high", "deletes", "complete_after", "actual", "error", "missed",
                 "reason")  # fmt: skip
        return table_html({name: [row[name] for row in self] for name in names})


def _row(record: ForecastRecord) -> dict[str, Any]:
    actual = record.actual_rows
    return {
        "made_version": record.made_version,
        "made_at": record.made_at,
        "horizon_seconds": record.horizon_seconds,
        "table": record.table_name,
        "kind": record.kind,
        "rows": record.rows,
        "low": record.low,
        "high": record.high,
        "deletes": record.deletes,
        "complete_after": record.complete_after,
        "reason": record.reason,
        "actual": actual,
        "actual_deleted": record.actual_deleted,
        "settled_version": record.settled_version,
        "settled_at": record.settled_at,
        "error": None if actual is None else record.rows - actual,
        "missed": actual is not None and missed(record.low, record.high, actual),
    }


def percent_off(row: Mapping[str, Any]) -> str:
    """The error of one forecast for people: as a share of what came, or in rows where nothing did."""
    if row["actual"] is None:
        return "-"
    return f"{row['error'] / row['actual']:+.0%}" if row["actual"] else f"{row['error']:+,.0f}"


def remark(row: Mapping[str, Any]) -> str:
    """What else is to be said of one forecast."""
    return "missed" if row["missed"] else ("then complete" if row["complete_after"] else "")


def _demotion(last: ForecastRecord, kind: str) -> str:
    if OWN_BOUNDS not in last.detail or last.detail.get(OWN_KIND) != kind:
        return ""
    return f"{last.table_name}: the {kind} forecast is demoted to {last.kind}; {last.reason}"

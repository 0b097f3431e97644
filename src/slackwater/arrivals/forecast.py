"""What is expected of the next delta: rows by table, with a low and a high, and whether a table is then complete."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from slackwater.errors import ForecastError

SILENT = "silent"
"""In a detail: nobody has said anything yet, so that expecting nothing is no claim to be judged by."""


def check_number(value: object, what: str, *, most: float = math.inf) -> float:
    """Give a number as float; refuse what is negative, too large, NaN, infinite or no number at all."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ForecastError(
            "FORECAST_INVALID", f"{what} is {value!r}, which is no number", "give a number of 0 or more"
        )
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or not 0 <= number <= most:
        upto = "" if math.isinf(most) else f" and at most {most:g}"
        raise ForecastError(
            "FORECAST_INVALID",
            f"{what} is {value!r}",
            f"give a finite number of 0 or more{upto}",
            {"value": str(value)},
        )
    return number


@dataclass(frozen=True, slots=True)
class TableForecast:
    """What is expected of one table.

    Attributes:
        table: the table's name.
        rows: changed rows (inserted and deleted ones) expected until the next trigger.
        low: hardly fewer.
        high: hardly more.
        deletes: the share of `rows` that are deletes, from 0 to 1.
        complete_after: whether no more is expected to come after that.
        kind: the kind of forecast that says so; another than the view's own where that one was demoted.
        reason: how the numbers came about.
        detail: what the same kind wants to remember for the next time, as plain JSON.
    """

    table: str
    rows: float
    low: float
    high: float
    deletes: float = 0.0
    complete_after: bool = False
    kind: str = ""
    reason: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what cannot be an expectation."""
        if not isinstance(self.table, str) or not self.table:
            raise ForecastError("FORECAST_INVALID", f"{self.table!r} is no table's name", "name a table")
        for name in ("rows", "low", "high"):
            object.__setattr__(self, name, check_number(getattr(self, name), f"{name} of {self.table!r}"))
        what = f"the share of deletes of {self.table!r}"
        object.__setattr__(self, "deletes", check_number(self.deletes, what, most=1.0))
        if not self.low <= self.rows <= self.high:
            raise ForecastError(
                "FORECAST_INVALID",
                f"{self.rows:g} rows of {self.table!r} do not lie between {self.low:g} and {self.high:g}",
                "give low <= rows <= high",
            )
        if not isinstance(self.complete_after, bool):
            raise ForecastError(
                "FORECAST_INVALID", f"complete_after of {self.table!r} is {self.complete_after!r}", "give True or False"
            )

    @classmethod
    def nothing(cls, table: str, reason: str = "nothing is expected", *, complete: bool = False) -> TableForecast:
        """No arrivals."""
        return cls(table, 0.0, 0.0, 0.0, complete_after=complete, reason=reason)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "detail": dict(self.detail)}


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is expected of the next delta of a view. A table that is not named is expected to bring nothing.

    Attributes:
        tables: one expectation for each table.
        kind: the kind of forecast.
        made_at: when it was made, in seconds since 1970.
        horizon_seconds: from then on, how long it looks ahead.
        reason: what it rests on.
    """

    tables: tuple[TableForecast, ...]
    kind: str
    made_at: float
    horizon_seconds: float
    reason: str = ""

    def __post_init__(self) -> None:
        """Refuse two expectations for one table, and an absurd time."""
        object.__setattr__(self, "tables", tuple(self.tables))
        names = [one.table for one in self.tables]
        if len(set(names)) != len(names):
            raise ForecastError("FORECAST_INVALID", "a table is forecast twice", "name each table once")
        check_number(self.horizon_seconds, "the horizon")
        if not math.isfinite(self.made_at):
            raise ForecastError("FORECAST_INVALID", f"a forecast made at {self.made_at!r}", "give the time in seconds")

    def of(self, table: str) -> TableForecast:
        """The expectation for one table."""
        return next((one for one in self.tables if one.table == table), TableForecast.nothing(table))

    def to_dict(self) -> dict[str, Any]:
        """Plain values that JSON can hold."""
        return {
            "tables": [one.to_dict() for one in self.tables],
            "kind": self.kind,
            "made_at": self.made_at,
            "horizon_seconds": self.horizon_seconds,
            "reason": self.reason,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Forecast:
        """Read what `to_dict` gave; anything else is refused."""
        try:
            tables = tuple(TableForecast(**one) for one in values["tables"])
            return cls(tables, values["kind"], values["made_at"], values["horizon_seconds"], values.get("reason", ""))
        except (KeyError, TypeError) as error:
            raise ForecastError("FORECAST_INVALID", f"not a forecast: {error}", "use Forecast.to_dict()") from error

    def __str__(self) -> str:
        lines = [f"forecast ({self.kind}) for the next {self.horizon_seconds:g} s: {self.reason}"]
        for one in self.tables:
            end = ", then complete" if one.complete_after else ""
            deletes = f", {one.deletes:.0%} deletes" if one.deletes else ""
            lines.append(
                f"  {one.table:<20} {one.rows:>12,.0f} rows ({one.low:,.0f} to {one.high:,.0f}{deletes}){end}  "
                f"[{one.kind or self.kind}] {one.reason}"
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from slackwater.execution.reports import table_html

        names = ("table", "rows", "low", "high", "deletes", "complete_after", "kind", "reason")
        return table_html({name: [getattr(one, name) for one in self.tables] for name in names})

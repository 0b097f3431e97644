"""Fixed: the user says how many rows each delta brings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from slackwater.arrivals.forecast import TableForecast, check_number
from slackwater.arrivals.history import TableArrivals, Trigger
from slackwater.errors import ForecastError


@dataclass(frozen=True, slots=True)
class Fixed:
    """Every delta brings these rows; a table that is not named brings none. Made by `fixed`."""

    kind: ClassVar[str] = "fixed"
    expected: tuple[TableForecast, ...] = ()

    def __post_init__(self) -> None:
        names = [one.table for one in self.expected]
        if len(set(names)) != len(names):
            raise ForecastError("FORECAST_INVALID", "a table is forecast twice", "name each table once")

    def expect(self, arrivals: TableArrivals, trigger: Trigger) -> TableForecast:
        said = next((one for one in self.expected if one.table == arrivals.table), None)
        if said is None:
            return replace(TableForecast.nothing(arrivals.table, "not named, so nothing is expected"), kind=self.kind)
        return replace(said, deletes=said.deletes or arrivals.deletes, kind=self.kind, reason="as given")

    def measured(self, table: str) -> None:
        return None

    def tables(self) -> tuple[str, ...]:
        return tuple(one.table for one in self.expected)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "expected": [one.to_dict() for one in self.expected]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Fixed:
        """Read what `to_dict` gave."""
        return cls(tuple(TableForecast(**one) for one in values["expected"]))


def fixed(rows: Mapping[str, float | TableForecast] | None = None, /, **more: float | TableForecast) -> Fixed:
    """A forecast that is given: changed rows by table, for every delta.

    Args:
        rows: by table, a number of rows, or a `TableForecast` to say bounds, deletes and completeness as well.
        more: the same by keyword: `fixed(orders=1000, lineitem=4000)`.
    """
    if rows is not None and not isinstance(rows, Mapping):
        raise ForecastError("FORECAST_INVALID", f"{rows!r} names no tables", "give rows by table")
    return Fixed(tuple(_one(table, said) for table, said in {**(rows or {}), **more}.items()))


def _one(table: str, said: float | TableForecast) -> TableForecast:
    if isinstance(said, TableForecast):
        if said.table != table:
            raise ForecastError("FORECAST_INVALID", f"{said.table!r} is filed under {table!r}", "use one name")
        return said
    count = check_number(said, f"rows of {table!r}")
    return TableForecast(table, count, count, count)

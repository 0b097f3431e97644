"""The one interface of all forecasts, and how they are written into a view's options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from slackwater.arrivals.forecast import TableForecast
from slackwater.arrivals.history import TableArrivals, Trigger


class Forecaster(Protocol):
    """One kind of forecast, with its parameters: a value without state of its own."""

    kind: ClassVar[str]

    def expect(self, arrivals: TableArrivals, trigger: Trigger) -> TableForecast:
        """Say what one table that is not complete will bring until the next trigger."""
        ...

    def measured(self, table: str) -> tuple[str, float | None] | None:
        """The column of event times to measure delays by, and the span of a batch; None where none are needed."""
        ...

    def tables(self) -> tuple[str, ...]:
        """The tables that the parameters name."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """The parameters as plain JSON."""
        ...


def forecaster_from(values: Mapping[str, Any] | None) -> Forecaster:
    """Read a forecaster from a view's options; views without one learn."""
    from slackwater.arrivals.fixed import Fixed
    from slackwater.arrivals.late import LateArrivals
    from slackwater.arrivals.learned import Learned
    from slackwater.arrivals.paced import Paced
    from slackwater.errors import ForecastError

    if values is None:
        return Learned()
    kinds: dict[str, Any] = {one.kind: one for one in (Fixed, LateArrivals, Paced, Learned)}
    kind = values.get("kind")
    if kind not in kinds:
        raise ForecastError("FORECAST_INVALID", f"there is no forecast {kind!r}", f"use one of {', '.join(kinds)}")
    try:
        found: Forecaster = kinds[kind].from_dict({k: v for k, v in values.items() if k != "kind"})
    except (TypeError, KeyError, AttributeError) as error:
        raise ForecastError("FORECAST_INVALID", f"not a {kind} forecast: {error}", "use to_dict()") from error
    return found

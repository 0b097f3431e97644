"""Spans of time as people write them."""

from __future__ import annotations

import math
import re
from datetime import timedelta

from slackwater.errors import ForecastError

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}


def parse_span(span: str | float | timedelta, what: str) -> float:
    """Read a span such as "60s", "1.5 h", a number of seconds or a timedelta; it must be longer than nothing.

    >>> parse_span("2 min", "the interval")
    120.0
    """
    seconds = math.nan
    if isinstance(span, timedelta):
        seconds = span.total_seconds()
    elif isinstance(span, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", span, re.ASCII)
        if match is not None and match[2] in _UNITS:
            seconds = float(match[1]) * _UNITS[match[2]]
    elif isinstance(span, int | float) and not isinstance(span, bool):
        seconds = float(span)
    if not 0 < seconds < math.inf:
        raise ForecastError(
            "FORECAST_INVALID", f"{what} is {span!r}, which is no span of time", 'write "60s", "2h" or "1d"'
        )
    return seconds


def show_span(seconds: float) -> str:
    """A span for people to read.

    >>> show_span(5400)
    '1.5 h'
    """
    for unit in ("d", "h", "min"):
        if seconds >= _UNITS[unit]:
            return f"{seconds / _UNITS[unit]:.3g} {unit}"
    return f"{seconds:.3g} s"

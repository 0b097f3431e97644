"""Durations as people write them: "60s", "5 min", "1h30m", a timedelta, or a number of seconds."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from decimal import Decimal
from typing import Final

from slackwater.errors import ForecastError, SlackwaterError

_UNITS: Final = {"ms": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.ASCII)
_SHOWN: Final = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
LONGEST: Final = 100 * 366 * 86400.0
"""A hundred years; more is a slip of the pen."""


def parse_duration(given: str | float | timedelta) -> float:
    """Seconds, more than zero.

    >>> parse_duration("1h 30min"), parse_duration("250ms"), parse_duration(timedelta(days=1)), parse_duration(5)
    (5400.0, 0.25, 86400.0, 5.0)
    """
    seconds = seconds_in(given)
    if seconds is None or not math.isfinite(seconds):
        raise _invalid(given, "is no duration")
    if seconds <= 0:
        raise _invalid(given, "is not longer than nothing")
    if seconds > LONGEST:
        raise _invalid(given, "is longer than a hundred years")
    return seconds


def parse_span(span: str | float | timedelta, what: str) -> float:
    """Seconds of a span that a forecast looks at; it must be longer than nothing.

    >>> parse_span("2 min", "the interval")
    120.0
    """
    seconds = seconds_in(span)
    if seconds is None or not 0 < seconds < math.inf:
        raise ForecastError(
            "FORECAST_INVALID", f"{what} is {span!r}, which is no span of time", 'write "60s", "2h" or "1d"'
        )
    return seconds


def seconds_in(given: object) -> float | None:
    """Seconds, as they are given; None for what is no duration."""
    if isinstance(given, timedelta):
        return given.total_seconds()
    if isinstance(given, int | float) and not isinstance(given, bool):
        try:
            return float(given)
        except OverflowError:
            return math.inf
    if not isinstance(given, str):
        return None
    text, total, at = given.strip().lower(), 0.0, 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None or part[2] not in _UNITS:
            return None
        total, at = total + float(part[1]) * _UNITS[part[2]], part.end()
    return total if text else None


def show_duration(seconds: float) -> str:
    """The shortest exact text that `parse_duration` reads back.

    >>> show_duration(300), show_duration(90), show_duration(5400), show_duration(0.25)
    ('5m', '90s', '90m', '0.25s')
    """
    for unit, size in _SHOWN:
        if seconds and seconds % size == 0:
            return f"{int(seconds // size)}{unit}"
    return f"{Decimal(repr(float(seconds))):f}s"


def about(seconds: float) -> str:
    """A duration for people to read, rounded.

    >>> about(0.042), about(75.3), about(4000), about(200_000)
    ('0.042 s', '75 s', '67 min', '56 h')
    """
    if seconds < 10:
        return f"{seconds:.2g} s"
    if seconds < 600:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 36_000 else f"{seconds / 3600:.0f} h"


def show_span(seconds: float) -> str:
    """A span to three digits, in its largest unit.

    >>> show_span(5400)
    '1.5 h'
    """
    for unit in ("d", "h", "min"):
        if seconds >= _UNITS[unit]:
            return f"{seconds / _UNITS[unit]:.3g} {unit}"
    return f"{seconds:.3g} s"


def _invalid(given: object, why: str) -> SlackwaterError:
    return SlackwaterError(
        "POLICY_INVALID", f"{given!r} {why}", 'write "60s", "5m", "1h30m", a timedelta, or a number of seconds'
    )

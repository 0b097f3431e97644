"""Clocks: where policies read the time, so that a test can set it.

Times are seconds since 1970 in UTC, as a wall clock tells them, because they are kept in the catalog and compared with
those of earlier processes. A wall clock can go back. Policies never wait for such a time to come again: a recorded time
that lies in the future says nothing about how long ago it was, so waiting is over (see `policies`).
"""

from __future__ import annotations

import math
import threading
import time
from typing import Protocol

from slackwater.errors import SlackwaterError


class Clock(Protocol):
    """Whatever tells the time."""

    def now(self) -> float:
        """Seconds since 1970, UTC."""


class SystemClock:
    """The machine's clock."""

    __slots__ = ()

    def now(self) -> float:
        return time.time()


class ManualClock:
    """A clock that stands still until it is told otherwise.

    >>> clock = ManualClock(100.0)
    >>> clock.advance(20)
    120.0
    """

    __slots__ = ("_lock", "_now")

    def __init__(self, now: float = 0.0) -> None:
        self._lock = threading.Lock()
        self._now = _checked(now)

    def now(self) -> float:
        return self._now

    def advance(self, seconds: float) -> float:
        """Move on, or back where the seconds are negative; gives the new time."""
        with self._lock:
            self._now = _checked(self._now + seconds)
            return self._now

    def set(self, now: float) -> None:
        """Show another time, earlier ones included."""
        with self._lock:
            self._now = _checked(now)


def read(clock: Clock) -> float:
    """The time that a clock shows; refuses what is no clock, and what is no time."""
    if not callable(getattr(clock, "now", None)):
        raise SlackwaterError("CLOCK_INVALID", f"a {type(clock).__name__} is no clock", "give an object with now()")
    return _checked(clock.now())


LATEST = 253_402_300_800.0
"""The year 10000, where calendars end."""


def _checked(now: object) -> float:
    if isinstance(now, bool) or not isinstance(now, int | float) or not math.isfinite(now) or not 0 <= now < LATEST:
        raise SlackwaterError(
            "CLOCK_INVALID", f"the clock shows {now!r}", "a clock gives seconds since 1970, UTC, up to the year 9999"
        )
    return float(now)

"""Crash points: named places where a test can kill the process or fail the disk.

`SLACKWATER_CRASH_AT=commit.inside` kills the process when it gets there; `commit.inside:3` on the third time.
`SLACKWATER_FAIL_AT` takes the same names and raises "no space left on device" instead: every time, or on the n-th.
A test in the same process can look on: see `watchers`.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from typing import Final

CRASH_POINTS: Final = (
    "segment.before_write",
    "segment.after_write",
    "commit.before",
    "commit.inside",
    "commit.after",
    "state.before_build",
    "state.after_build",
    "compact.before_commit",
    "compact.after_commit",
    "forget.before_commit",
    "forget.after_commit",
    "source.after_read",
    "states.saving",
)
"""Every place that can be named; a fault test walks through all of them."""

CRASH_STATUS: Final = 137  # what a shell reports for a process killed by SIGKILL

watchers: list[Callable[[str], None]] = []
"""Told of each place as it is passed: what is on disk then is what a process that is killed there leaves behind."""

_lock = threading.Lock()
_hits: dict[str, tuple[str, int]] = {}


def crash_point(name: str) -> None:
    """Do nothing, unless the environment asks for a fault at this place."""
    if name not in CRASH_POINTS:
        raise AssertionError(f"{name!r} is not listed in CRASH_POINTS")
    for watcher in watchers:
        watcher(name)
    if _is_due("SLACKWATER_CRASH_AT", name):
        os._exit(CRASH_STATUS)
    if _is_due("SLACKWATER_FAIL_AT", name):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)


def _is_due(variable: str, name: str) -> bool:
    wanted = os.environ.get(variable)
    if not wanted:
        return False
    point, _, count = wanted.partition(":")
    if point not in CRASH_POINTS:
        # A misspelt name would make a fault test that cannot fail.
        raise AssertionError(f"{variable}={wanted!r} names no crash point")
    if point != name:
        return False
    with _lock:
        # Hits are counted per value of the variable, so that one test's hits are not the next one's.
        before, hits = _hits.get(variable, ("", 0))
        hits = hits + 1 if before == wanted else 1
        _hits[variable] = (wanted, hits)
    return not count or hits == int(count)

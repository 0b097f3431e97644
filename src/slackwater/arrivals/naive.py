"""The forecast of last resort: the next delta is like the last ones, and may well be quite different."""

from __future__ import annotations

import statistics

from slackwater.arrivals.durations import show_span
from slackwater.arrivals.forecast import TableForecast
from slackwater.arrivals.history import TableArrivals, Trigger

LIKE_LAST = 3
WIDE = 10.0
GUESS = 0.01
"""The share of a table that is expected where nothing has arrived yet since its first load."""


def naive(arrivals: TableArrivals, trigger: Trigger) -> TableForecast:
    """The median of the last deltas; without any, the pace since the first load; without that, a guess."""
    deltas = [delta.rows for delta in arrivals.deltas(trigger.now)]
    later = arrivals.after_load
    guess = GUESS * arrivals.present
    if deltas:
        last = deltas[-LIKE_LAST:]
        rows, most = float(statistics.median(last)), float(max(deltas[-2 * LIKE_LAST :]))
        reason = f"like the last {len(last)} deltas" if len(last) > 1 else "like the last delta"
        high = max(WIDE * most, guess)
    elif later:
        span = max(trigger.now - arrivals.changes[0].at, trigger.horizon)
        rows = sum(change.rows for change in later) * trigger.horizon / span
        high = WIDE * max(rows, *(float(change.rows) for change in later))
        reason = f"the pace of the last {show_span(span)}"
    else:
        rows, high = guess, WIDE * guess
        reason = f"nothing has arrived since the first load: {GUESS:.0%} of the table is a guess"
    return TableForecast(arrivals.table, rows, 0.0, high, arrivals.deletes, kind="naive", reason=reason)

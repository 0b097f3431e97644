"""The distribution of delays, estimated from rows of which the latest have not arrived yet.

Only rows that have arrived are seen: of a batch that was due an hour ago, no row with a delay of two hours can be among
them. Counting such rows as they are would make data look more punctual than it is. The estimate therefore goes down
from the longest delay t: among the rows that could have been seen with a delay of t (those due at least t ago) and
whose delay is at most t, the share with exactly t. With n such rows of N, `F(just below t) = F(t) * (1 - n / N)`. Where
every row had time enough to arrive, this is the plain empirical distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.float64]

LEAST = 0.01
"""Rows of which so small a share has arrived are not scaled up any further."""


@dataclass(frozen=True, slots=True)
class DelayDistribution:
    """A step function: the share of rows that have arrived so many seconds after they were due."""

    delays: tuple[float, ...]
    shares: tuple[float, ...]

    @classmethod
    def estimate(cls, delays: Numbers, ages: Numbers, rows: Numbers) -> DelayDistribution:
        """From the delay of rows that have arrived, the time since each was due (at least its delay), and how many."""
        steps, where = np.unique(delays, return_inverse=True)
        exactly = np.bincount(where, weights=rows, minlength=len(steps))
        oldest_first = np.argsort(ages)
        up_to = np.concatenate([[0.0], np.cumsum(rows[oldest_first])])
        too_young = up_to[np.searchsorted(ages[oldest_first], steps, side="left")]
        at_risk = np.maximum(np.cumsum(exactly) - too_young, exactly)
        below = 1.0 - exactly / at_risk
        shares = np.concatenate([np.cumprod(below[::-1])[::-1][1:], [1.0]])
        return cls(tuple(steps.tolist()), tuple(shares.tolist()))

    def share(self, seconds: Any) -> Numbers:
        """The share that has arrived after so many seconds; of one time or of many."""
        padded = np.concatenate([[0.0], np.asarray(self.shares)])
        found: Numbers = padded[np.searchsorted(np.asarray(self.delays), np.asarray(seconds), side="right")]
        return found

    def still_due(self, ages: Numbers, rows: Numbers, after: float) -> float:
        """How many rows are missing after some more seconds, if `rows` have arrived of what was due `ages` ago."""
        return float(np.sum(rows * (1.0 - self.share(ages + after)) / np.maximum(self.share(ages), LEAST)))

    def complete_in(self, ages: Numbers, rows: Numbers, fewer_than: float = 0.5) -> float:
        """Seconds until fewer rows than this are missing."""
        low, high = 0.0, self.delays[-1]
        if self.still_due(ages, rows, low) < fewer_than:
            return 0.0
        for _ in range(50):
            middle = (low + high) / 2
            if self.still_due(ages, rows, middle) < fewer_than:
                high = middle
            else:
                low = middle
        return high

    def timely(self, horizon: float) -> float:
        """Of rows that become due evenly over the horizon, one a second: how many arrive within it."""
        steps = np.clip(np.asarray(self.delays), 0.0, horizon)
        gained = np.diff(np.concatenate([[0.0], np.asarray(self.shares)]))
        return float(np.sum(gained * (horizon - steps)))

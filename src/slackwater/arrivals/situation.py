"""What a policy looks at, and what it says."""

from __future__ import annotations

from dataclasses import dataclass

MARGIN = 1.25
"""A refresh may take this much longer than the slowest of the recent ones."""


@dataclass(frozen=True, slots=True)
class Situation:
    """Where a view stands at one moment. Times are seconds since 1970, UTC.

    Attributes:
        now: what the clock shows.
        last_refresh: when the last refresh was committed; None where there is no result yet.
        pending_rows: changed rows that the result does not show yet.
        oldest_pending: when the oldest change that the result does not show was committed; None where nothing is new.
        complete: whether all tables of the view are complete, so that nothing more will arrive.
        durations: how many seconds recent refreshes took.
        next_look: seconds until somebody looks again; what would be too late then is due now.
    """

    now: float
    last_refresh: float | None = None
    pending_rows: int = 0
    oldest_pending: float | None = None
    complete: bool = False
    durations: tuple[float, ...] = ()
    next_look: float = 0.0

    @property
    def refresh_seconds(self) -> float:
        """How long the next refresh should be expected to take."""
        return max(self.durations, default=0.0) * MARGIN


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a view is due, since or from when, and why.

    Attributes:
        now: the moment of the judgement.
        at: when it is due if nothing more arrives (now or before where it is due already); None where only an
            arrival, or somebody's call, can make it due.
        reason: for people.
    """

    now: float
    at: float | None
    reason: str

    @property
    def due(self) -> bool:
        """Whether it is due now."""
        return self.at is not None and self.at <= self.now

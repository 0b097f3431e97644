"""Policies: when a view is to be refreshed.

A policy says since or from when a view is due, given where it stands. Two rules hold for all of them. Where nothing new
has arrived, nothing is due. And a recorded time that lies in the future means that the clock was set back: how long ago
it was is unknown, so waiting for it is over and the view is due. The refresh that follows records a time by the new
clock, so this happens once, and no view waits for a time that will not come.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from slackwater.arrivals.cron_times import check_cron, next_time
from slackwater.arrivals.durations import about, parse_duration, show_duration
from slackwater.arrivals.situation import Situation, Verdict
from slackwater.errors import SlackwaterError

MOMENT = 0.001
"""So much later than a scheduled time is after it."""


@dataclass(frozen=True, slots=True)
class Policy(ABC):
    """When a view is to be refreshed. Combine policies with `|` (either) and `&` (both)."""

    def judge(self, situation: Situation) -> Verdict:
        """Whether a view that stands so is due, since or from when, and why."""
        if situation.oldest_pending is None:
            return Verdict(situation.now, None, "nothing new has arrived")
        at, reason = self._due_at(situation, situation.oldest_pending)
        return Verdict(situation.now, at, reason)

    @abstractmethod
    def _due_at(self, situation: Situation, oldest: float) -> tuple[float | None, str]:
        """When a view with something pending is due, and why; None where time alone never makes it so."""

    @property
    def can_fire(self) -> bool:
        """Whether a view with this policy is ever refreshed without being asked to."""
        return True

    def due_after(self, refreshed: float) -> float | None:
        """When a view that was refreshed at a time is due again, while rows keep coming; None where that depends."""
        return None

    @property
    def most_rows(self) -> int | None:
        """About so many rows a refresh finds at most; None where any number may have come."""
        return None

    @property
    def at_any_arrival(self) -> bool:
        """Whether the first row that arrives makes a view due."""
        return False

    def __or__(self, other: object) -> Policy:
        return _combined(AnyOf, self, other) if isinstance(other, Policy) else NotImplemented

    def __and__(self, other: object) -> Policy:
        return _combined(AllOf, self, other) if isinstance(other, Policy) else NotImplemented

    def __bool__(self) -> bool:
        """Refuse `a and b`, which Python would take for b alone."""
        raise _invalid("a policy is neither true nor false", "combine policies with | and &, not with or and and")


@dataclass(frozen=True, slots=True)
class Every(Policy):
    """Due when so many seconds have passed since the last refresh."""

    seconds: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "seconds", parse_duration(self.seconds))

    def _due_at(self, situation: Situation, oldest: float) -> tuple[float | None, str]:
        last, period = situation.last_refresh, show_duration(self.seconds)
        if last is None:
            return situation.now, "there is no result yet"
        if last > situation.now:
            return situation.now, "the clock was set back behind the last refresh"
        return last + self.seconds, f"the last refresh was {about(situation.now - last)} ago, of {period}"

    def due_after(self, refreshed: float) -> float | None:
        return refreshed + self.seconds

    def __str__(self) -> str:
        return f"every {show_duration(self.seconds)}"


@dataclass(frozen=True, slots=True)
class Rows(Policy):
    """Due when so many changed rows are waiting, or any where no more can come."""

    count: int

    def __post_init__(self) -> None:
        if isinstance(self.count, bool) or not isinstance(self.count, int) or self.count < 1:
            raise _invalid(f"rows({self.count!r}) counts nothing", "give a whole number of rows, 1 or more")

    def _due_at(self, situation: Situation, oldest: float) -> tuple[float | None, str]:
        waiting = f"{situation.pending_rows:,} of {self.count:,} rows are waiting"
        if situation.pending_rows >= self.count:
            return situation.now, waiting
        if situation.complete:
            return situation.now, f"{waiting} and no more will come"
        return None, waiting

    @property
    def most_rows(self) -> int | None:
        return self.count

    def __str__(self) -> str:
        return f"rows {self.count}"


@dataclass(frozen=True, slots=True)
class OnArrival(Policy):
    """Due as soon as anything has arrived."""

    def _due_at(self, situation: Situation, oldest: float) -> tuple[float | None, str]:
        count = situation.pending_rows
        return min(oldest, situation.now), "a row has arrived" if count == 1 else f"{count:,} rows have arrived"

    @property
    def at_any_arrival(self) -> bool:
        return True

    def __str__(self) -> str:
        return "on_arrival"


@dataclass(frozen=True, slots=True)
class Cron(Policy):
    """Due when a scheduled time has come since the oldest waiting change arrived."""

    expression: str
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        object.__setattr__(self, "expression", check_cron(self.expression, self.timezone))

    def _due_at(self, situation: Situation, oldest: float) -> tuple[float | None, str]:
        if oldest > situation.now:
            return situation.now, "the clock was set back behind an arrival"
        at = next_time(self.expression, self.timezone, oldest)
        if at is None:
            return None, f"no time of {self} is left"
        came = "has come" if at <= situation.now else "has not come"
        return at, f"the time of {self} {came} since the oldest change"

    def due_after(self, refreshed: float) -> float | None:
        return next_time(self.expression, self.timezone, refreshed + MOMENT)

    def __str__(self) -> str:
        return f"cron '{self.expression}'" + (f" in {self.timezone}" if self.timezone != "UTC" else "")


@dataclass(frozen=True, slots=True)
class TargetLag(Policy):
    """Due early enough for the refresh to end before the oldest waiting change is so many seconds old."""

    seconds: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "seconds", parse_duration(self.seconds))

    def _due_at(self, situation: Situation, oldest: float) -> tuple[float | None, str]:
        if oldest > situation.now:
            return situation.now, "the clock was set back behind an arrival"
        takes = situation.refresh_seconds
        # Never before the change itself, however long a refresh takes.
        at = max(oldest, oldest + self.seconds - takes - situation.next_look)
        lag = f"the oldest change is {about(situation.now - oldest)} old, of {show_duration(self.seconds)}"
        return at, f"{lag}, and a refresh may take {about(takes)}"

    def due_after(self, refreshed: float) -> float | None:
        return refreshed + self.seconds

    def __str__(self) -> str:
        return f"target_lag {show_duration(self.seconds)}"


@dataclass(frozen=True, slots=True)
class Manual(Policy):
    """Never due by itself."""

    def _due_at(self, situation: Situation, oldest: float) -> tuple[float | None, str]:
        return None, "it is refreshed on request only"

    @property
    def can_fire(self) -> bool:
        return False

    def __str__(self) -> str:
        return "manual"


@dataclass(frozen=True, slots=True)
class Combination(Policy):
    """Several policies as one."""

    policies: tuple[Policy, ...]

    def __post_init__(self) -> None:
        if len(self.policies) < 2 or not all(isinstance(p, Policy) for p in self.policies):
            raise _invalid("a combination needs two policies", "combine policies with | and &")


@dataclass(frozen=True, slots=True)
class AnyOf(Combination):
    """Due when one of its policies is."""

    def _due_at(self, situation: Situation, oldest: float) -> tuple[float | None, str]:
        verdicts = [p.judge(situation) for p in self.policies]
        at = min((v.at for v in verdicts if v.at is not None), default=None)
        return at, _reasons([v for v in verdicts if v.due] or verdicts)

    @property
    def can_fire(self) -> bool:
        return any(p.can_fire for p in self.policies)

    def due_after(self, refreshed: float) -> float | None:
        if self.at_any_arrival:
            return None
        return min((at for p in self.policies if (at := p.due_after(refreshed)) is not None), default=None)

    @property
    def most_rows(self) -> int | None:
        return min((count for p in self.policies if (count := p.most_rows) is not None), default=None)

    @property
    def at_any_arrival(self) -> bool:
        return any(p.at_any_arrival for p in self.policies)

    def __str__(self) -> str:
        return " | ".join(str(p) for p in self.policies)


@dataclass(frozen=True, slots=True)
class AllOf(Combination):
    """Due when all of its policies are."""

    def __post_init__(self) -> None:
        # Not super(): the class that a slotted dataclass is defined as is not the one that it becomes.
        Combination.__post_init__(self)
        never = next((p for p in self.policies if not p.can_fire), None)
        if never is not None:
            raise SlackwaterError(
                "POLICY_NEVER", f"{self} can never be due, because {never} never is", "leave one of them out"
            )

    def _due_at(self, situation: Situation, oldest: float) -> tuple[float | None, str]:
        verdicts = [p.judge(situation) for p in self.policies]
        times = [v.at for v in verdicts]
        at = None if None in times else max(t for t in times if t is not None)
        return at, _reasons([v for v in verdicts if not v.due] or verdicts)

    def due_after(self, refreshed: float) -> float | None:
        return max((at for p in self.policies if (at := p.due_after(refreshed)) is not None), default=None)

    @property
    def most_rows(self) -> int | None:
        counts = [p.most_rows for p in self.policies]
        return None if None in counts else max(count for count in counts if count is not None)

    @property
    def at_any_arrival(self) -> bool:
        return all(p.at_any_arrival for p in self.policies)

    def __str__(self) -> str:
        return " & ".join(f"({p})" if isinstance(p, AnyOf) else str(p) for p in self.policies)


def _reasons(verdicts: Iterable[Verdict]) -> str:
    return "; ".join(dict.fromkeys(v.reason for v in verdicts))


def _combined(kind: type[AnyOf | AllOf], *given: Policy) -> Policy:
    """One flat combination in which each policy stands once."""
    parts = [inner for p in given for inner in (p.policies if isinstance(p, kind) else (p,))]
    distinct = tuple(dict.fromkeys(parts))
    return kind(distinct) if len(distinct) > 1 else distinct[0]


def _invalid(message: str, advice: str) -> SlackwaterError:
    return SlackwaterError("POLICY_INVALID", message, advice)


# --- what users call ---------------------------------------------------------------------------------


def every(period: str | float | timedelta) -> Policy:
    """Refresh when so much time has passed since the last refresh and something new has arrived."""
    return Every(parse_duration(period))


def rows(count: int) -> Policy:
    """Refresh when so many changed rows are waiting; the last few too, once all tables are complete."""
    return Rows(count)


def on_arrival() -> Policy:
    """Refresh as soon as anything arrives."""
    return OnArrival()


def cron(expression: str, timezone: str = "UTC") -> Policy:
    """Refresh at the times of a cron expression, in a time zone, if something new has arrived before.

    Args:
        expression: minute, hour, day, month and weekday (0 and 7 are Sunday); or Quartz's second, minute, hour,
            day-of-month, month, day-of-week (1 is Sunday) and perhaps year.
        timezone: where its times are.
    """
    return Cron(expression, timezone)


def target_lag(lag: str | float | timedelta) -> Policy:
    """Refresh in time for the result never to be further behind the oldest waiting change than the lag."""
    return TargetLag(parse_duration(lag))


def manual() -> Policy:
    """Refresh only when `refresh` is called."""
    return Manual()

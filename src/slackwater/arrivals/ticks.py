"""What one tick did: refreshes, polls, and what failed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slackwater.arrivals.durations import about
from slackwater.errors import SlackwaterError

if TYPE_CHECKING:
    from slackwater.execution.reports import Refresh
    from slackwater.sources.polls import Poll


@dataclass(frozen=True, slots=True)
class Failure:
    """A view or a source that failed in a tick, without keeping the others from their turn.

    Attributes:
        kind: view or source.
        name: the view's name, or the table's and the directory.
        error: what happened.
        attempts: how often it has failed in a row.
        wait: seconds before it is tried again.
    """

    kind: str
    name: str
    error: SlackwaterError
    attempts: int
    wait: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            self.kind: self.name, **self.error.to_dict(), "attempts": self.attempts, "retry_in_seconds": self.wait
        }  # fmt: skip

    def __str__(self) -> str:
        again = f"tried again in {about(self.wait)} or later"
        return f"{self.kind} {self.name}: [{self.error.code}] {self.error.message} ({again})"


class Tick(list["Refresh"]):
    """The refreshes of one tick, in the order they were made.

    Attributes:
        reasons: why each refreshed view was due, by its name.
        polls: the sources that brought something, or set a file aside.
        failures: the views and sources that failed.
        notes: what else was done.
    """

    def __init__(
        self,
        refreshes: Iterable[Refresh] = (),
        reasons: Mapping[str, str] | None = None,
        polls: Iterable[Poll] = (),
        failures: Iterable[Failure] = (),
    ) -> None:
        super().__init__(refreshes)
        self.reasons = dict(reasons or {})
        self.polls, self.failures = list(polls), list(failures)
        self.notes: list[str] = []

    @property
    def idle(self) -> bool:
        """Whether nothing happened."""
        return not (self or self.polls or self.failures or self.notes)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "refreshes": [r.to_dict() | {"due_because": self.reasons[r.view]} for r in self],
            "polls": [p.to_dict() for p in self.polls],
            "failures": [f.to_dict() for f in self.failures],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        lines = [str(p) for p in self.polls]
        lines += [f"{r}; due because {self.reasons[r.view]}" for r in self]
        lines += [str(f) for f in self.failures]
        lines += self.notes
        return "\n".join(lines) or "nothing was due"

    def _repr_html_(self) -> str:
        from slackwater.execution.reports import Report

        return Report(self)._repr_html_()

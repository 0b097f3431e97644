"""What a user declares about a view beside its query: columns, comment, strictness, budget and schedule."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from slackwater.arrivals.kinds import Forecaster
from slackwater.arrivals.policies import Policy
from slackwater.arrivals.policy_text import policy_to_json
from slackwater.capture import Captured
from slackwater.errors import ViewError
from slackwater.schedules import schedule_of
from slackwater.settings import parse_bytes


@dataclass(frozen=True, slots=True)
class Declared:
    """The declarations of one view, as the catalog keeps them among its options.

    Attributes:
        comment: a remark for people.
        strict: the view was made on the condition that no operator is recomputed.
        budget_bytes: what the view's own states may occupy; None where only the engine's budget counts.
        schedule: when it is to be refreshed, in the words of `SCHEDULE`; empty for by hand.
    """

    comment: str = ""
    strict: bool = False
    budget_bytes: int | None = None
    schedule: str = ""

    @classmethod
    def of(cls, comment: str, strict: bool, memory_budget: str | int | None, schedule: str) -> Declared:
        """Check and take over what a user gave."""
        budget = None if memory_budget is None else parse_bytes(memory_budget)
        timing = schedule_of(schedule)
        return cls(comment, bool(strict), budget, "" if timing is None else timing.text)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Declared:
        """Read back what `to_json` wrote."""
        return cls(**values)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def capped(self, budget: int) -> int:
        """The part of a budget that this view's states may use."""
        return budget if self.budget_bytes is None else min(budget, self.budget_bytes)


def options_of(
    strategy: str, declared: Declared, policy: Policy, forecaster: Forecaster, functions: Mapping[str, Any]
) -> dict[str, Any]:
    """All that is declared of a view beside its query, as the catalog keeps it."""
    return {"strategy": strategy, "declared": declared.to_json(), "refresh": policy_to_json(policy),
            "forecast": forecaster.to_dict(), "functions": dict(functions)}  # fmt: skip


def renamed(captured: Captured, columns: Sequence[str]) -> Captured:
    """The query with the output columns that a column list gives it; an empty list changes nothing."""
    if not columns:
        return captured
    if isinstance(columns, str) or len(columns) != len(captured.columns):
        raise ViewError(
            "COLUMNS_MISMATCH",
            f"the column list names {len(columns)} columns, the query has {len(captured.columns)}",
            f"name one for each of {', '.join(captured.columns)}",
        )
    lowered = [column.casefold() for column in columns]
    for column, lower in zip(columns, lowered, strict=True):
        if not column.strip() or any(char < " " for char in column):
            raise ViewError("NAME_INVALID", f"{column!r} cannot name a column", "use printable characters")
        if lowered.count(lower) > 1:
            raise ViewError(
                "COLUMNS_MISMATCH", f"the column list names {column!r} twice", "columns differ in more than case"
            )
    new = dict(zip(captured.columns, columns, strict=True))
    order = ([new[column], *rest] for column, *rest in map(json.loads, captured.order))
    return replace(captured, columns=tuple(columns), order=tuple(map(json.dumps, order)))

"""Eligibility: how a query would be refreshed as a view, operator by operator, told before the view exists."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from slackwater.algebra.first_rows import First
from slackwater.algebra.nodes import Rel
from slackwater.algebra.printer import describe
from slackwater.delta.reasons import REASONS, Way
from slackwater.delta.rules import keeps_state
from slackwater.delta.ways import Operator, ways
from slackwater.errors import QueryRefused
from slackwater.execution.reports import table_html

INCREMENTAL, PARTLY, RECOMPUTED, REFUSED = "incremental", "partly incremental", "recomputed", "refused"

WIDTH = 160
"""Longer lines are cut."""


@dataclass(frozen=True, slots=True)
class Eligibility:
    """What would become of a query.

    Attributes:
        verdict: incremental (nothing is recomputed), partly incremental, recomputed, or refused.
        root: the operators with their ways; None where the query is refused.
        refusal: why the query cannot be a view at all; None where it can.
    """

    verdict: str
    root: Operator | None = None
    refusal: QueryRefused | None = None

    @property
    def incremental(self) -> bool:
        """Whether no operator is recomputed; a strict view needs this."""
        return self.verdict == INCREMENTAL

    def __bool__(self) -> bool:
        return self.incremental

    @property
    def operators(self) -> tuple[Operator, ...]:
        """All operators, parents first."""
        return () if self.root is None else self.root.walk()

    @property
    def recomputed(self) -> tuple[Operator, ...]:
        """The operators that would be computed again at each refresh."""
        return tuple(o for o in self.operators if o.way is Way.RECOMPUTE)

    @property
    def codes(self) -> tuple[str, ...]:
        """The reasons that occur, each once, in the order of the operators."""
        if self.refusal is not None:
            return (self.refusal.code,)
        return tuple(dict.fromkeys(o.code for o in self.operators))

    def to_json(self) -> dict[str, Any]:
        """Plain values for programs."""
        refusal = None if self.refusal is None else self.refusal.to_dict()
        operators = None if self.root is None else _to_json(self.root)
        return {"verdict": self.verdict, "incremental": self.incremental, "codes": list(self.codes),
                "operators": operators, "refusal": refusal}  # fmt: skip

    def __str__(self) -> str:
        if self.refusal is not None:
            return f"{self.verdict}: {self.refusal}"
        lines = [self.verdict, *(_line(o, depth) for o, depth in self._by_depth()), ""]
        lines += [f"{code}: {REASONS[code].text}" for code in self.codes]
        return "\n".join(lines)

    def _by_depth(self) -> Iterator[tuple[Operator, int]]:
        def below(operator: Operator, depth: int) -> Iterator[tuple[Operator, int]]:
            yield operator, depth
            for child in operator.inputs:
                yield from below(child, depth + 1)

        return iter(()) if self.root is None else below(self.root, 1)

    def _repr_html_(self) -> str:
        if self.refusal is not None:
            return table_html({"verdict": [self.verdict], "code": [self.refusal.code], "why": [self.refusal.message]})
        shown = list(self._by_depth())
        return table_html({
            self.verdict: ["\N{NO-BREAK SPACE}" * 2 * (depth - 1) + o.label for o, depth in shown],
            "refreshed by": [o.way.value for o, _ in shown],
            "code": [o.code for o, _ in shown],
            "why": [_why(o) for o, _ in shown],
        })  # fmt: skip


def eligibility(plan: Rel) -> Eligibility:
    """How the view of a plan is refreshed."""
    root = ways(plan)
    if all(o.way is not Way.RECOMPUTE for o in root.walk()):
        return Eligibility(INCREMENTAL, root)
    return Eligibility(PARTLY if any(map(_gains, root.walk())) else RECOMPUTED, root)


def _gains(operator: Operator) -> bool:
    """Whether an operator gains from the changes of some table: reading them alone is not yet incremental.

    Counter-example to asking only how the operator itself is refreshed: a cross join of two medians over everything
    pairs changed rows, but each of them was computed from all rows of its table.
    """
    return operator.way is not Way.RECOMPUTE and any(o.code == "TABLE_CHANGES" for o in operator.walk()[1:])


def refused(error: QueryRefused) -> Eligibility:
    """The report for a query that cannot be a view."""
    return Eligibility(REFUSED, refusal=error)


def require_incremental(found: Eligibility, name: str) -> None:
    """Strict mode: refuse what would be recomputed, with the report."""
    if found.incremental:
        return
    why = "; ".join(dict.fromkeys(f"[{o.code}] {_why(o)}" for o in found.recomputed))
    raise QueryRefused(
        "QUERY_NOT_INCREMENTAL",
        f"{name!r} is to be strict, but refreshes would recompute {len(found.recomputed)} of its"
        f" {len(found.operators)} operators: {why}",
        "change the query, or create the view without strict; the details have the whole report",
        {"eligibility": found.to_json()},
    )


def refuse_contradiction(name: str, plan: Rel, strategy: str, budget: int | None) -> None:
    """Strict mode: refuse what would have an incremental query recomputed nevertheless."""
    if strategy == "rebatch":
        raise QueryRefused(
            "QUERY_NOT_INCREMENTAL",
            f"{name!r} is to be strict, but the strategy rebatch recomputes at each refresh",
            "use another strategy, or create the view without strict",
        )
    kept = [node for node in plan.walk() if keeps_state(node) or isinstance(node, First)]
    if budget == 0 and kept:
        raise QueryRefused(
            "QUERY_NOT_INCREMENTAL",
            f"{name!r} is to be strict, but with a memory budget of 0 nothing is kept, and its query is recomputed"
            f" without the state of {describe(kept[0])[:100]}",
            "give it a memory budget, or create the view without strict",
        )


def _line(operator: Operator, depth: int) -> str:
    text = "  " * depth + operator.label
    return f"{text if len(text) <= WIDTH else text[: WIDTH - 1] + '…'}  · {operator.text}"


def _why(operator: Operator) -> str:
    return REASONS[operator.code].text + (f": {operator.detail}" if operator.detail else "")


def _to_json(operator: Operator) -> dict[str, Any]:
    return {
        "operator": operator.label,
        "way": operator.way.value,
        "code": operator.code,
        "reason": REASONS[operator.code].text,
        "detail": operator.detail,
        "inputs": [_to_json(o) for o in operator.inputs],
    }

"""The plain default: keep the inputs of joins, and the partial rows of aggregates, as long as they fit the budget.

* The input of a join is kept if the *other* side can still change: only then is it read again.
* So is the input of what redoes keys (windows, aggregates that do not merge) if it has joins in it.
* An input that is a bare scan of a table, or a filter that keeps most rows, needs no copy: the table's files are there.
* A state that would break the budget is dropped, the largest first; partial aggregates go last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from slackwater.algebra.nodes import Aggregate, Filter, Join, Project, Rel, Scan, TopK
from slackwater.algebra.printer import describe, node_key
from slackwater.algebra.scalars import ScalarFilter
from slackwater.algebra.windows import Window
from slackwater.delta.aggregate import keeps_partials
from slackwater.delta.rules import repeatable

WORTH_A_COPY = 0.35
"""A filtered scan is copied if it keeps at most this share of the table's rows."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What to do about one node's state, and why."""

    key: str
    label: str
    keep: bool
    reason: str


def choose_states(
    plan: Rel,
    can_change: Callable[[str], bool],
    kept_share: Callable[[Rel], float],
    budget: int,
    known_bytes: Mapping[str, int],
) -> tuple[Choice, ...]:
    """Decide for every node that could keep a state."""
    choices: dict[str, Choice] = {}
    for node in plan.walk():
        if isinstance(node, Aggregate):
            _add(choices, _unless_drifting(node, node.child, _aggregate(node)))
            if not keeps_partials(node):
                _add_redone_input(choices, node.child)
        elif isinstance(node, Window):
            _add_redone_input(choices, node.child)
        elif isinstance(node, ScalarFilter) and not _from_partials(node.child):
            choice = _join_input(node.child, node.scalar, can_change, kept_share)
            _add(choices, _unless_drifting(node.child, node.child, choice))
        elif isinstance(node, Join):
            for side, other in ((node.left, node.right), (node.right, node.left)):
                _add(choices, _unless_drifting(side, side, _join_input(side, other, can_change, kept_share)))
    if budget <= 0:
        return tuple(Choice(c.key, c.label, False, "the budget is zero") for c in choices.values())
    return _within(
        tuple(choices.values()), budget, known_bytes, {node_key(x) for x in plan.walk() if isinstance(x, Aggregate)}
    )


def _add(choices: dict[str, Choice], choice: Choice) -> None:
    found = choices.get(choice.key)
    if found is None or (choice.keep and not found.keep):
        choices[choice.key] = choice


def _add_redone_input(choices: dict[str, Choice], child: Rel) -> None:
    """The input of keys that are redone is read whole, at both versions: keep it if that would redo a join."""
    if _joins(child):
        reason = "read whole where keys are redone: computing it again would redo the joins below"
        _add(choices, _unless_drifting(child, child, Choice(node_key(child), describe(child), True, reason)))


def _from_partials(node: Rel) -> bool:
    """Whether the rows are made from the kept partial rows of an aggregate."""
    while isinstance(node, Project | Filter):
        node = node.child
    return isinstance(node, Aggregate) and keeps_partials(node)


def _joins(node: Rel) -> bool:
    """Whether a join would run again; below partial rows none does."""
    if isinstance(node, Aggregate) and keeps_partials(node):
        return False
    return isinstance(node, Join) or any(_joins(child) for child in node.children)


def _unless_drifting(node: Rel, below: Rel, choice: Choice) -> Choice:
    """A state over floating-point aggregates cannot follow them: their old rows cannot be computed again bit by bit."""
    if all(repeatable(x) for x in below.walk()):
        return choice
    return Choice(
        choice.key, choice.label, False, f"{describe(node).split()[0]} over floating-point aggregates is redone"
    )


def _aggregate(node: Aggregate) -> Choice:
    key, label = node_key(node), describe(node)
    if keeps_partials(node):
        return Choice(key, label, True, "partial rows merge with each delta")
    functions = ", ".join(a.func for a in node.aggs if a.combine == node.combine)
    return Choice(key, label, False, f"{functions}: the touched groups are redone, no partial result helps")


def _join_input(node: Rel, other: Rel, can_change: Callable[[str], bool], kept_share: Callable[[Rel], float]) -> Choice:
    key, label = node_key(node), describe(node)
    if not any(can_change(leaf.table) for leaf in other.walk() if isinstance(leaf, Scan)):
        return Choice(key, label, False, "the other side of the join is complete: this side is not read again")
    if any(isinstance(x, Join | Aggregate | Window | TopK) for x in node.walk()):
        return Choice(key, label, True, "an intermediate result: computing it again would redo the joins below")
    if not _filters(node):
        return Choice(key, label, False, "the table's own files serve")
    share = kept_share(node)
    if share <= WORTH_A_COPY:
        return Choice(key, label, True, f"the filter keeps about {share:.0%} of the rows")
    return Choice(key, label, False, f"the filter keeps about {share:.0%} of the rows: the table's own files serve")


def _filters(node: Rel) -> bool:
    """Whether a filter does more than refuse NULLs."""
    while isinstance(node, Project | Filter):
        if isinstance(node, Filter) and any(c.op != "is_not_null" for c in node.predicate.conjuncts()):
            return True
        node = node.child
    return False


def _within(
    choices: tuple[Choice, ...], budget: int, known_bytes: Mapping[str, int], aggregates: set[str]
) -> tuple[Choice, ...]:
    """Drop the largest states until the known sizes fit."""
    total = sum(known_bytes.get(c.key, 0) for c in choices if c.keep)
    by_size = sorted(choices, key=lambda c: (c.key in aggregates, -known_bytes.get(c.key, 0), c.key))
    dropped: set[str] = set()
    for choice in by_size:
        if total <= budget:
            break
        if choice.keep and known_bytes.get(choice.key, 0) > 0:
            dropped.add(choice.key)
            total -= known_bytes[choice.key]
    return tuple(
        Choice(c.key, c.label, False, f"{known_bytes[c.key]:,} bytes do not fit the budget of {budget:,}")
        if c.key in dropped
        else c
        for c in choices
    )

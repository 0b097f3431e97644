"""Few tasks for little work.

A refresh reads a few large inputs and many small ones. Spark starts a task for each part of each input, and a task
costs milliseconds before its first row: what reads few rows is put in one task, and the output of every step in one
partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from slackwater.algebra.first_rows import First, FirstChange
from slackwater.algebra.gather import Gather
from slackwater.algebra.joins import MatchJoin, OuterJoin
from slackwater.algebra.nodes import Aggregate, Difference, Input, Join, Opaque, Rel, Scan, TopK
from slackwater.algebra.partials import AggChange, Finish, MergePartials, Partial
from slackwater.algebra.windows import Window
from slackwater.delta.environment import Change, Step

LIGHT = 200_000
"""Up to so many rows are read by one task faster than by several."""

HEAVY = 1_000_000
"""A join that moves more rows is left to Spark's adaptive execution, on all cores."""

MODERATE = 20_000_000
"""A program that reads more rows in all is left to adaptive execution as well."""

_GROUPING = (Partial, MergePartials, Finish, Aggregate, Window)


@dataclass(frozen=True, slots=True)
class InputRows:
    """How many rows a program's inputs have.

    Attributes:
        tables: rows of each table.
        changes: what each table's delta brings.
        states: rows of each state, by its key.
    """

    tables: Mapping[str, int]
    changes: Mapping[str, Change]
    states: Mapping[str, int]

    def read(self, rel: Rel) -> int:
        """The rows that a relation reads; the steps of a program are small, and a result has its size in no catalog."""
        return sum(self._of(leaf) for leaf in rel.walk())

    def _of(self, leaf: Rel) -> int:
        if isinstance(leaf, Opaque):
            return LIGHT + 1
        if isinstance(leaf, Scan):
            change = self.changes.get(leaf.table)
            if leaf.at == "delta":
                return change.inserted + change.deleted if change is not None else 0
            return self.tables.get(leaf.table, LIGHT + 1)
        if isinstance(leaf, Input) and leaf.name.startswith("state_"):
            return self.states.get(leaf.name.removeprefix("state_"), LIGHT + 1)
        return 0

    def light(self, rel: Rel) -> bool:
        """Whether one task reads it all in no time."""
        return self.read(rel) <= LIGHT


def shuffles_much(rels: Iterable[Rel], rows: InputRows) -> bool:
    """Whether a join has to move many rows: neither side is sent to every task."""
    joins = (x for rel in rels for x in rel.walk() if isinstance(x, Join | MatchJoin | OuterJoin))
    return any(not getattr(x, "broadcast", "") and rows.read(x) > HEAVY for x in joins)


def gather_steps(steps: tuple[Step, ...], rows: InputRows) -> tuple[Step, ...]:
    """Every step's output in one partition."""
    return tuple(replace(step, rel=_gathered(step.rel, rows)) for step in steps)


def gather_root(root: Rel, rows: InputRows) -> Rel:
    """The result's change; what is light is made by one task."""
    inside = _inside(root, rows)
    return inside if _single(inside) or not rows.light(root) else Gather(inside)


def _gathered(rel: Rel, rows: InputRows) -> Rel:
    inside = _inside(rel, rows)
    if _single(inside):
        return inside
    return Gather(inside, parallel=not rows.light(rel))


def _inside(rel: Rel, rows: InputRows) -> Rel:
    """Put the inputs of groupings in one task where they are light: then nothing is shuffled either."""

    def rule(node: Rel) -> Rel | None:
        if isinstance(node, AggChange | Difference) and rows.light(node):
            return replace(node, gather=True)
        if isinstance(node, _GROUPING) and not _single(node.child) and rows.light(node.child):
            return node.with_children((Gather(node.child),))
        return None

    return rel.transform_up(rule)


def _single(rel: Rel) -> bool:
    """Whether the rows are in one partition anyway; groupings shuffle into one."""
    if isinstance(rel, (Gather, TopK, First, FirstChange, Difference, AggChange, *_GROUPING)):
        return True
    if isinstance(rel, Input):
        return not rel.name.startswith("state_") and "@" not in rel.name
    if isinstance(rel, Scan):
        return False
    return len(rel.children) == 1 and _single(rel.children[0])

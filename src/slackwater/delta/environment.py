"""What the rules know while a refresh is compiled: which tables changed, which states exist, which are wanted next."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from slackwater.algebra.nodes import Input, Rel, Scan, Schema
from slackwater.algebra.printer import node_key
from slackwater.algebra.windows import Window

PARTITION_ROWS = 100
"""A guess at the rows of a window's partition; a wrong one costs time, never correctness."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a table's delta brings."""

    inserted: int
    deleted: int
    before: int = 0

    @property
    def share(self) -> float:
        """The delta's size relative to the table it changes."""
        return (self.inserted + self.deleted) / max(self.before, 1)


class Purpose(Enum):
    """Why a step is there."""

    SHARE = "shared delta"
    APPEND = "state segment"
    REPLACE = "state replaced"
    BUILD = "state build"
    RESULT = "result delta"
    FULL = "full result"


@dataclass(frozen=True, slots=True)
class Step:
    """A named relation of a program."""

    name: str
    rel: Rel
    purpose: Purpose
    key: str = ""


@dataclass(frozen=True, slots=True)
class Asks:
    """What the rules of one family ask of other nodes: a change, and a full output at a version."""

    change: Callable[[Rel], Rel | None]
    full: Callable[[Rel, str], Rel]


@dataclass(slots=True)
class Environment:
    """The inputs and the growing program of one compilation.

    Attributes:
        changes: the tables that changed; empty with `initial`.
        states: key of each state at hand, and whether it holds weights.
        wanted: keys of the nodes whose state is to exist afterwards.
        initial: there is no earlier version: only full outputs are asked for.
        small: the most changed rows that are worth sending to every task.
        tiny: full outputs of so many rows are sent rather than a larger change.
        scan_all: the most partial rows of a state that are merged whole instead of looked up by key.
        rows: full output rows of nodes, by key, where observed.
        to_send: the rows of a node's full output if they are few enough to be sent to every task, or infinitely many.
        tables: rows of each table, where they are known.
        settle: keys of what waits in lookups and is to be cut down to what waits indeed, and of indexes to make anew.
        since: keys of the indexes that rows have been added to since they were made.
        carried: keys of states that stay as they are, although something below them changed.
        signed_result: the last result comes as rows added and taken away, not yet netted out.
    """

    changes: Mapping[str, Change]
    states: Mapping[str, bool] = field(default_factory=dict)
    wanted: frozenset[str] = frozenset()
    initial: bool = False
    small: int = 400_000
    tiny: int = 25_000
    scan_all: int = 200_000
    rows: Mapping[str, int] = field(default_factory=dict)
    to_send: Callable[[Rel], float] = lambda _: math.inf
    tables: Mapping[str, int] = field(default_factory=dict)
    settle: frozenset[str] = frozenset()
    signed_result: bool = False
    since: frozenset[str] = frozenset()
    carried: set[str] = field(default_factory=set)
    steps: list[Step] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)
    memo: dict[tuple[str, str], Rel | None] = field(default_factory=dict)

    def touches(self, node: Rel) -> bool:
        """Whether anything below the node changed."""
        return any(isinstance(leaf, Scan) and leaf.table in self.changes for leaf in node.walk())

    def add_step(self, name: str, rel: Rel, purpose: Purpose, key: str = "") -> Input:
        """Give a relation a name; it is computed once, however often it is used."""
        self.steps.append(Step(name, rel, purpose, key))
        return Input(name, rel.schema, rel.weighted)

    def state(self, key: str, schema: Schema) -> Input:
        """The state kept under a key, as of the old version."""
        return Input(f"state_{key}", schema, self.states[key])

    def side_to_send(self, left: Rel, right: Rel) -> str:
        """Which full output of the two a join should send to every task: "left", "right", or neither."""
        one, two = self.to_send(left), self.to_send(right)
        return "" if math.isinf(min(one, two)) else ("left" if one < two else "right")

    def side_of_change(self, changed: Rel, met: Rel, sides: tuple[str, str]) -> str:
        """Which of `sides` to send: the one that changed, or the full output that its change meets.

        What is at hand and tiny is sent before a change that must first be computed: the join then waits for nothing.
        """
        coming = self.estimate(changed)
        if self.to_send(met) < min(coming, self.tiny):
            return sides[1]
        return sides[0] if coming <= self.small else ""

    def estimate(self, node: Rel) -> float:
        """How many rows the node's delta may have."""
        leaves = [leaf for leaf in node.walk() if isinstance(leaf, Scan) and leaf.table in self.changes]
        arriving = [self.changes[leaf.table] for leaf in leaves]
        rows = self.rows.get(node_key(node))
        # A row that arrives in a window redoes its whole partition.
        spread = PARTITION_ROWS if any(isinstance(x, Window) for x in node.walk()) else 1
        if rows is not None:
            return max(min(sum(c.share for c in arriving) * spread, 1.0) * rows, 1.0)
        return 2.0 * spread * sum(c.inserted + c.deleted for c in arriving)

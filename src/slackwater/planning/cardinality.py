"""How many rows each node of a plan has, and how many of them the next delta will change.

Rows that a job has counted in passing are taken as they are; the rest is estimated from what is below. The delta that
is forecast for the tables is propagated upwards. A wrong estimate costs time, never correctness.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from slackwater.algebra.expressions import Expr
from slackwater.algebra.first_rows import First
from slackwater.algebra.joins import SEMI, MatchJoin
from slackwater.algebra.multi_join import MultiJoin
from slackwater.algebra.nodes import Aggregate, Expand, Filter, Join, Linearity, Opaque, Project, Rel, Scan, TopK, Union
from slackwater.algebra.partials import partial_schema
from slackwater.algebra.printer import node_key
from slackwater.planning.join_groups import UniqueKeys
from slackwater.planning.join_order import Part, join_parts, leaf_part

GUESSED_SHARE = 0.33
"""What a filter keeps where nothing is known of it."""


MOST = 1e18
"""No count that can be meant is larger."""


def plausible(counts: Mapping[str, float], most: float = MOST) -> dict[str, float]:
    """The numbers among the statistics that can be meant; what is left out is estimated, as if it had never been known.

    >>> plausible({"a": 5, "b": -1, "c": float("nan"), "d": 1e300, "e": "many"})
    {'a': 5}
    """
    return {key: n for key, n in counts.items() if isinstance(n, int | float) and 0 <= n <= most}


@dataclass(frozen=True, slots=True)
class Expected:
    """What a table's next delta is expected to bring: changed rows, and the share of them that are deletes."""

    rows: float
    deletes: float = 0.0


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a node: all of them, those that the next delta changes, and the share of deletes among these."""

    full: float
    delta: float = 0.0
    deletes: float = 0.0

    @property
    def touched(self) -> bool:
        """Whether the next delta reaches the node at all."""
        return self.delta > 0


@dataclass(slots=True)
class Cardinalities:
    """The rows of every node of one plan.

    Attributes:
        table_rows: rows of each table.
        expected: the next delta of each table that has one.
        observed: rows of nodes, by key, as jobs have counted them.
        shares: what filtered scans keep of their table, by key, from samples.
        unique: the key of each table.
        dead: the tables that have lost rows: their files hold these still.
    """

    table_rows: Mapping[str, float]
    expected: Mapping[str, Expected]
    observed: Mapping[str, float] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    unique: UniqueKeys = field(default=lambda _: ())
    dead: frozenset[str] = frozenset()
    keys: dict[int, str] = field(default_factory=dict)
    _found: dict[int, tuple[Rows, Part]] = field(default_factory=dict)
    _alive: list[Rel] = field(default_factory=list)

    def key(self, node: Rel) -> str:
        """The node's key, computed once: it is a digest of the whole subtree."""
        if id(node) not in self.keys:
            self.keys[id(node)] = node_key(node)
            self._alive.append(node)
        return self.keys[id(node)]

    def of(self, node: Rel) -> Rows:
        """The rows of a node."""
        return self._both(node)[0]

    def part(self, node: Rel) -> Part:
        """What joins need to know of a node."""
        return self._both(node)[1]

    def _both(self, node: Rel) -> tuple[Rows, Part]:
        if id(node) not in self._found:
            rows, part = self._estimate(node)
            key = self.key(node)
            known = self.observed.get(key)
            if known is None and key in self.shares and _scan(node) is not None:
                known = self.shares[key] * self._table(_scan(node))
            if known is not None:
                known = max(float(known), 1.0)
                scale = known / max(rows.full, 1.0)
                rows = Rows(known, _fewer(rows.delta * scale, known) if rows.delta else 0.0, rows.deletes)
                part = Part(part.rel, known, part.base_rows, part.keys)
            self._found[id(node)] = (rows, part)
        return self._found[id(node)]

    def _table(self, scan: Scan | None) -> float:
        return float(self.table_rows.get(scan.table, 0)) if scan is not None else 0.0

    def _leaf(self, node: Rel, rows: Rows) -> tuple[Rows, Part]:
        base = self._table(_scan(node)) or max(
            (self._table(s) for s in node.walk() if isinstance(s, Scan)), default=1.0
        )
        return rows, leaf_part(node, rows.full, base, self.unique)

    def _estimate(self, node: Rel) -> tuple[Rows, Part]:
        if isinstance(node, Scan):
            coming = self.expected.get(node.table, Expected(0.0))
            return self._leaf(node, Rows(self._table(node), max(coming.rows, 0.0), coming.deletes))
        if isinstance(node, Opaque):
            total = sum(self.table_rows.get(t, 0) for t in node.tables)
            return self._leaf(node, Rows(max(float(total), 1.0), 1.0 if self.expected else 0.0))
        if not node.children:  # constant rows
            return self._leaf(node, Rows(1.0))
        if isinstance(node, Join):
            return self._join(node)
        if isinstance(node, MatchJoin):
            return self._match_join(node)
        if isinstance(node, MultiJoin):  # all inputs but one, and that one; the part before is estimated once
            rows, part = self._both(node.full(lambda x: x))
            return rows, Part(node, part.rows, part.base_rows, part.keys)
        below = [self._both(child) for child in node.children]
        return self._above(node, [rows for rows, _ in below], below[0][1])

    def _join(self, node: Join) -> tuple[Rows, Part]:
        (left, a), (right, b) = self._both(node.left), self._both(node.right)
        part = join_parts(a, b, node.condition, node)
        share_left, share_right = left.delta / max(left.full, 1.0), right.delta / max(right.full, 1.0)
        delta = part.rows * (share_left * (1 + share_right) + share_right)
        return Rows(part.rows, delta, _mixed(left, right)), part

    def _match_join(self, node: MatchJoin) -> tuple[Rows, Part]:
        """No more rows than the left side has; those that have a match are no more than there are pairs."""
        (left, a), (right, b) = self._both(node.left), self._both(node.right)
        pairs = join_parts(a, b, node.condition, node).rows if node.kind == SEMI else left.full
        full = min(left.full, pairs)
        share_left, share_right = left.delta / max(left.full, 1.0), right.delta / max(right.full, 1.0)
        rows = Rows(full, full * (share_left + min(share_right, 2.0)), _mixed(left, right))
        return rows, Part(node, max(full, 1.0), a.base_rows, a.keys)

    def _above(self, node: Rel, inputs: list[Rows], first: Part) -> tuple[Rows, Part]:
        if isinstance(node, Union):
            total = Rows(sum(r.full for r in inputs), sum(r.delta for r in inputs), _mixed(*inputs))
            return self._leaf(node, total)
        (rows, *_) = inputs
        if isinstance(node, Filter):
            share = _share_of(node.predicate)
            kept = Rows(rows.full * share, rows.delta * share, rows.deletes)
            return kept, Part(node, max(kept.full, 1.0), first.base_rows, first.keys)
        if isinstance(node, Project):
            keys = tuple(k for k in first.keys if k <= set(node.names))
            return rows, Part(node, max(rows.full, 1.0), first.base_rows, keys)
        if isinstance(node, Expand):
            times = len(node.projections)
            return self._leaf(node, Rows(rows.full * times, rows.delta * times, rows.deletes))
        if isinstance(node, Aggregate):
            groups = max(rows.full, 1.0) ** 0.75 if node.groups else 1.0
            return self._leaf(node, Rows(groups, 2 * touched_groups(groups, rows.delta), 0.5 if rows.delta else 0.0))
        if isinstance(node, TopK | First):
            full = min(float(node.limit if isinstance(node, TopK) else node.most), rows.full)
            return self._leaf(node, Rows(full, min(2 * full, rows.delta), 0.5 if rows.delta else 0.0))
        largest = max(inputs, key=lambda r: r.full)
        share = sum(r.delta / max(r.full, 1.0) for r in inputs)
        full = largest.full if node.linearity is not Linearity.LINEAR else rows.full
        return self._leaf(node, Rows(full, full * min(share, 2.0), _mixed(*inputs)))


def touched_groups(groups: float, changed: float) -> float:
    """How many of so many groups so many changed rows fall into, if they fall evenly."""
    if changed <= 0 or groups <= 0:
        return 0.0
    return min(groups * -math.expm1(-changed / groups) + 1e-9, changed, groups)


def row_bytes(node: Rel) -> int:
    """The bytes that Spark's row format takes for a row of the node's state, roughly."""
    schema = partial_schema(node) if isinstance(node, Aggregate) else node.schema
    wide = sum(16 for f in schema if f.dtype.startswith(("string", "decimal(2", "decimal(3", "struct", "array")))
    return 40 + 8 * len(schema) + wide


def _fewer(delta: float, full: float) -> float:
    """A delta below one row is still a delta; one above twice the rows is none."""
    return min(max(delta, 1e-6), 2 * full)


def _mixed(*inputs: Rows) -> float:
    total = sum(r.delta for r in inputs)
    return sum(r.delta * r.deletes for r in inputs) / total if total else 0.0


def _share_of(predicate: Expr) -> float:
    return math.prod(1.0 if c.op == "is_not_null" else GUESSED_SHARE for c in predicate.conjuncts())


def _scan(node: Rel) -> Scan | None:
    while isinstance(node, Project | Filter):
        node = node.child
    return node if isinstance(node, Scan) else None

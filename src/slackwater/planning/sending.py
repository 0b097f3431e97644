"""Which inputs of a join are few enough to be sent whole to every task.

Spark decides this from the size of files, and knows neither what a filter keeps nor how few rows a join gives: it would
shuffle and sort both sides of a join whose one side is a handful of rows. The planner has sampled and counted them.

An estimate that is too low must not fill the driver's memory. So the rows that there can be at most count as well,
unless a job has counted the rows that there are.
"""

from __future__ import annotations

import math

from slackwater.algebra.first_rows import First
from slackwater.algebra.joins import MatchJoin
from slackwater.algebra.lookups import LookupJoin
from slackwater.algebra.nodes import Aggregate, Filter, Join, Project, Rel, Scan, TopK, Union
from slackwater.planning.cardinality import Cardinalities, row_bytes
from slackwater.planning.join_order import keys_joined

SENT_ROWS = 400_000
"""The most rows that are worth sending to every task."""

SENT_BYTES = 40_000_000
"""The most bytes, in Spark's row format."""

BEARABLE_BYTES = 500_000_000
"""What a wrong estimate may come to; a side that could be larger is sent only once its rows have been counted."""


def rows_to_send(cards: Cardinalities, node: Rel) -> float:
    """The rows of a node that may be sent to every task; infinite where it may not."""
    rows, width = cards.of(node).full, row_bytes(node)
    if rows > SENT_ROWS or rows * width > SENT_BYTES:
        return math.inf
    return rows if _at_most(cards, node) * width <= BEARABLE_BYTES else math.inf


def _at_most(cards: Cardinalities, node: Rel) -> float:
    """No more rows than this, whatever the filters keep."""
    counted = cards.observed.get(cards.key(node))
    if counted is not None:
        return float(counted)
    if isinstance(node, Scan):
        return float(cards.table_rows.get(node.table, math.inf))
    if isinstance(node, TopK | First):
        return float(node.limit if isinstance(node, TopK) else node.most)
    if isinstance(node, LookupJoin):
        return _at_most(cards, node.rows)
    if isinstance(node, MatchJoin):
        return _at_most(cards, node.left)
    if isinstance(node, Filter | Project | Aggregate):
        return _at_most(cards, node.child)
    if isinstance(node, Union):
        return sum(_at_most(cards, child) for child in node.inputs)
    if isinstance(node, Join):
        left, right = _at_most(cards, node.left), _at_most(cards, node.right)
        of_left, of_right = keys_joined(cards.part(node.left), cards.part(node.right), node.condition)
        return min(right if of_left else math.inf, left if of_right else math.inf, left * right)
    return math.inf

"""The plain rules: which states `plain` keeps, and `auto` where so little is read that prices say nothing.

* The partial rows of aggregates that merge, and the rows of windows that could not be computed again bit by bit.
* What waits in joins that look up a key, where many rows do the asking and no deletes are expected where they ask.
* The indexes of such joins, instead of the rows that are looked up, where these are many and not too many.
* Intermediate results (inputs with joins or aggregates in them) that will be read again: because another input of their
  join changes, or because what is above redoes groups or partitions.
* Filtered scans that keep at most 35% of their rows, where another input of their join changes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from slackwater.algebra.aggregates import Combine
from slackwater.algebra.first_rows import First
from slackwater.algebra.lookups import LookupJoin
from slackwater.algebra.nodes import Aggregate, Filter, Linearity, Project, Rel, Scan, TopK
from slackwater.algebra.printer import node_key
from slackwater.algebra.windows import Window
from slackwater.delta.aggregate import keeps_partials
from slackwater.planning import lookup_costing
from slackwater.planning.cardinality import Expected

WORTH_A_COPY = 0.35
"""A filtered scan is copied if it keeps at most this share of the table's rows."""


MANY = 150_000
"""Up to so many rows, all of a side is kept: it costs less to fill than what waits of it, and outlives deletes."""


def plain_choice(
    plan: Rel, coming: Mapping[str, Expected], shares: Mapping[str, float], rows: Callable[[Rel], float]
) -> frozenset[str]:
    """The keys of the nodes to keep, if these tables change; `rows` says how many rows a node has."""
    found: set[str] = set()
    for node in plan.walk():
        if (isinstance(node, Aggregate) and keeps_partials(node)) or _unrepeatable(node):
            found.add(node_key(node))
        if not node.rereads and _redoes(node):
            found |= {node_key(child) for child in node.children if _intermediate(child) and not _made_above(node)}
        for side, causes in node.rereads:
            if not any(_reads(cause, coming) for cause in causes):
                continue
            if isinstance(node, LookupJoin) and side is node.rows and lasts(node, coming) and rows(side) > MANY:
                found.add(node_key(node.waiting))
            elif isinstance(node, LookupJoin) and side is node.looked_up and _indexed(node, rows(side)):
                found.add(node_key(node.index or side))
            elif _intermediate(side) or _narrow(side, shares):
                found.add(node_key(side))
    return frozenset(found)


def _redoes(node: Rel) -> bool:
    """Whether keys that a change touches are computed again from the input, whatever the change is."""
    if isinstance(node, Aggregate):
        return node.combine >= Combine.KEPT
    return node.linearity is Linearity.KEYED and not isinstance(node, First)


def _unrepeatable(node: Rel) -> bool:
    return isinstance(node, Window) and not node.whole and not node.repeatable


def _indexed(node: LookupJoin, rows: float) -> bool:
    """Whether the side that is looked up is of a size for an index."""
    return node.index is not None and max(MANY, lookup_costing.SENT_ANYWAY) < rows <= lookup_costing.INDEXED


def lasts(node: LookupJoin, coming: Mapping[str, Expected]) -> bool:
    """Whether what waits will be of use: no deletes are expected on the side that is looked up."""
    return not any(coming[table].deletes for table in node.waiting.tables if table in coming)


def _made_above(node: Rel) -> bool:
    """Whether an ordering reads what is made from an aggregate's partial rows at once: these are kept."""
    if not isinstance(node, TopK):
        return False
    below = node.children[0]
    while isinstance(below, Project | Filter):
        below = below.child
    return isinstance(below, Aggregate) and keeps_partials(below)


def _intermediate(node: Rel) -> bool:
    return any(isinstance(x, Aggregate) or x.rereads or x.linearity is Linearity.KEYED for x in node.walk())


def _narrow(node: Rel, shares: Mapping[str, float]) -> bool:
    return _filters(node) and shares.get(node_key(node), 1.0) <= WORTH_A_COPY


def _reads(node: Rel, tables: Collection[str]) -> bool:
    return any(isinstance(leaf, Scan) and leaf.table in tables for leaf in node.walk())


def _filters(node: Rel) -> bool:
    """Whether a filter does more than refuse NULLs."""
    while isinstance(node, Project | Filter):
        if isinstance(node, Filter) and any(c.op != "is_not_null" for c in node.predicate.conjuncts()):
            return True
        node = node.child
    return False

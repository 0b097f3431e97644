"""The plain rules: which states `auto` keeps until prices predict well enough to decide alone.

* The partial rows of aggregates that merge.
* Intermediate results (inputs with joins or aggregates in them) that will be read again: because another input of their
  join changes, or because what is above redoes groups or partitions.
* Filtered scans that keep at most 35% of their rows, where another input of their join changes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from slackwater.algebra.nodes import Aggregate, Filter, Linearity, Project, Rel, Scan
from slackwater.algebra.printer import node_key
from slackwater.delta.aggregate import keeps_partials

WORTH_A_COPY = 0.35
"""A filtered scan is copied if it keeps at most this share of the table's rows."""


def plain_choice(plan: Rel, changing: Collection[str], shares: Mapping[str, float]) -> frozenset[str]:
    """The keys of the nodes to keep, if these tables change."""
    found: set[str] = set()
    for node in plan.walk():
        if isinstance(node, Aggregate) and keeps_partials(node):
            found.add(node_key(node))
        elif not node.rereads and (isinstance(node, Aggregate) or node.linearity is Linearity.KEYED):
            found |= {node_key(child) for child in node.children if _intermediate(child)}
        for side, causes in node.rereads:
            read_again = any(_reads(cause, changing) for cause in causes)
            if read_again and (_intermediate(side) or _narrow(side, shares)):
                found.add(node_key(side))
    return frozenset(found)


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

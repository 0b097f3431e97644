"""Rewrite: an ordering over rows that are not kept reads the first of them, which can be kept.

before:  τ[k, limit, offset](R)
after:   τ[k, limit, offset](First[k, limit + offset, most](R))

Precondition: R is made of filters, projections and joins of tables, and so few rows are asked for that it pays to keep
them. Over groups the ordering chooses among kept partial rows at once, which costs next to nothing.
"""

from __future__ import annotations

from slackwater.algebra import nodes as n
from slackwater.algebra.first_rows import First
from slackwater.algebra.generate import Generate, Values
from slackwater.algebra.joins import MatchJoin, OuterJoin

MOST_ASKED = 10_000
"""The largest LIMIT and OFFSET together for which the first rows are kept."""

SPARE = 100
"""Rows kept beyond twice those asked for: so many may go before all rows are read again."""

_FOLLOWED = (n.Scan, n.Filter, n.Project, n.Union, n.Expand, n.Join, OuterJoin, MatchJoin, Generate, Values)


def keep_first_rows(node: n.Rel) -> n.Rel | None:
    """Put the first rows below an ordering; None where it does not apply."""
    if not isinstance(node, n.TopK) or not node.limit or not node.schema:
        return None
    need = node.limit + node.offset
    if need > MOST_ASKED or not all(isinstance(x, _FOLLOWED) for x in node.child.walk()):
        return None
    return n.TopK(First(node.child, node.keys, need, 2 * need + SPARE), node.keys, node.limit, node.offset)

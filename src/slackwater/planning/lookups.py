"""Rewrite: mark the joins that look up a key.

before:  A ⋈ B on a.x = b.k, where k is the key of B's table
after:   the same join, knowing that each row of A matches one row of B at most

Why: the rows of A that have found their match need not be kept or read again when more rows of B arrive. Precondition:
the columns that are compared lead to all the columns of a table's key, by filters, renamings and further lookups only,
and two values that the table tells apart are never equal in the join. Counter-example: a key of doubles, of which -0.0
and 0.0 are equal where they are compared and may be told apart where they are stored.
"""

from __future__ import annotations

from slackwater.algebra.lookups import LEFT, RIGHT, KeyPair, LookupJoin, key_path
from slackwater.algebra.nodes import Join, Rel
from slackwater.planning.join_groups import UniqueKeys
from slackwater.planning.join_order import LeafRows

_EXACT = ("bigint", "int", "smallint", "tinyint", "string", "date", "timestamp", "timestamp_ntz", "boolean", "binary")


def is_exact(dtype: str) -> bool:
    """Whether two values of a type are equal in a join only if a table takes them for one."""
    return dtype in _EXACT or dtype.startswith("decimal")


def comes_back(dtype: str) -> bool:
    """Whether GROUP BY gives every value of a type back as it was."""
    return is_exact(dtype) or dtype.startswith("interval ")


def with_lookups(plan: Rel, unique: UniqueKeys, base_rows: LeafRows) -> Rel:
    """Mark every join that can be one; where both sides have a key, the larger side is the one that waits."""

    def rule(node: Rel) -> Rel | None:
        if type(node) is not Join or node.condition is None:
            return None
        found = [x for x in (lookup_of(node, keyed, unique) for keyed in (RIGHT, LEFT)) if x is not None]
        return max(found, key=lambda x: base_rows(x.rows), default=None)

    return plan.transform_up(rule)


def lookup_of(node: Join, keyed: str, unique: UniqueKeys) -> LookupJoin | None:
    """The join as one that looks up the key of this side; None where it is not that of a table."""
    if node.condition is None:
        return None
    rows, looked_up = (node.left, node.right) if keyed == RIGHT else (node.right, node.left)
    by_position: dict[int, KeyPair] = {}
    table = ""
    for term in node.condition.conjuncts():
        if term.op not in ("=", "<=>") or len(term.args) != 2:
            continue
        for asks, key in (term.args, term.args[::-1]):
            if key.column is None or not is_exact(key.dtype) or not asks.inputs or not asks.inputs <= set(rows.names):
                continue
            path = key_path(looked_up, (key.column,)) if key.column in looked_up.names else None
            if path is not None:
                by_position.setdefault(path.positions[0], KeyPair(asks, key.column))
                table = path.scan.table
    wanted = unique(table) if table else ()
    if not wanted or not set(wanted) <= set(by_position):
        return None
    pairs = tuple(by_position[at] for at in wanted)
    return LookupJoin(node.left, node.right, node.condition, node.broadcast, keyed, pairs)

"""First rows, and how a change is sorted into them, as Spark SQL."""

from __future__ import annotations

from slackwater.algebra.expressions import quote
from slackwater.algebra.first_rows import REFILL, First, FirstChange
from slackwater.algebra.ordering import completed
from slackwater.execution.told_apart import told_apart

WEIGHT = "_w"


def _order(node: First) -> str:
    return ", ".join(k.text for k in completed(node.keys, node.schema))


def first(node: First, source: str) -> str:
    """The first rows of an input."""
    return f"SELECT * FROM {source} ORDER BY {_order(node)} LIMIT {node.most}"


def change(node: FirstChange, old: str, delta: str) -> str:
    """The new prefix.

    `_was` counts a row in the old prefix and `_n` in the new one. `_reach` says that a row of the old prefix is the
    same or follows; a row that went counts for that too. Of a change without deletes the first rows are enough: its
    others can only stand behind them.
    """
    first, names = node.first, ", ".join(quote(f.name) for f in node.schema)
    weight = WEIGHT if node.change.weighted else f"1 AS {WEIGHT}"
    came = f"SELECT {names}, {weight} FROM {delta}"
    if not node.change.weighted:
        came = f"SELECT * FROM ({came}) ORDER BY {_order(first)} LIMIT {first.most}"
    both = f"SELECT {names}, 1 AS {WEIGHT}, 1 AS _s FROM {old} UNION ALL SELECT *, 0 AS _s FROM ({came})"
    columns, keys = told_apart(node.schema)
    grouped = (f"SELECT {', '.join(columns)}, SUM(CAST({WEIGHT} AS BIGINT)) AS _n, SUM(_s) AS _was FROM ({both})"
               f" GROUP BY {', '.join(keys)}")  # fmt: skip
    placed = (f"SELECT *, SUM(_was) OVER () AS _all, MAX(_was) OVER (ORDER BY {_order(first)} ROWS BETWEEN CURRENT ROW"
              f" AND UNBOUNDED FOLLOWING) > 0 AS _reach FROM ({grouped})")  # fmt: skip
    counted = (f"SELECT *, SUM(IF(_reach AND _n > 0, _n, 0L)) OVER () AS _left, _all >= {first.need} AS _cut"
               f" FROM ({placed})")  # fmt: skip
    # In one expression with the count: were it a condition of its own, rows that went could be sorted out before it.
    count = f"IF(_cut AND _left < {first.need}, CAST(raise_error('{REFILL}') AS BIGINT), _n)"
    kept = f"SELECT {names}, _n FROM ({counted}) WHERE {count} > 0 AND (_reach OR NOT _cut)"
    rows = f"SELECT {names} FROM ({kept}) LATERAL VIEW EXPLODE(SEQUENCE(1L, _n)) x AS _i"
    return f"SELECT * FROM ({rows}) ORDER BY {_order(first)} LIMIT {first.most}"

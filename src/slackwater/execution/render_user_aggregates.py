"""User-defined aggregates as Spark SQL.

Spark computes no function of its own beside a user-defined one, so rows are counted by a user-defined function as well,
and rows that are taken away are counted by themselves. A result is kept inside a struct: a struct that is NULL says
that there is no result, which is something else than a result that is NULL.
"""

from __future__ import annotations

from slackwater.algebra.aggregates import Combine
from slackwater.algebra.expressions import quote
from slackwater.algebra.partials import DELETES, ROWS, Partial, PartialColumn, partial_columns, user_rows

WEIGHT = "_w"


def user_partial(node: Partial, source: str, keys: list[str]) -> str:
    """Partial rows from input rows. With `_d`, rows without a result name the groups that are redone."""
    if not node.count_deletes:
        return _results(node, source, keys)
    if node.agg.combine is not Combine.MERGEABLE:
        return _touched(node, source, keys)
    came = _results(node, f"{source} WHERE {WEIGHT} > 0", keys)
    return f"{came}\nUNION ALL\n{_touched(node, f'{source} WHERE {WEIGHT} < 0', keys)}"


def user_merged(column: PartialColumn, value: str) -> str:
    """One result from those of several partial rows, of which those without a result do not count."""
    if column.merge == "first":
        return f"FIRST({value}, TRUE)"  # there is one at most
    return f"{quote(column.merge)}(COLLECT_LIST({value}))"


def _results(node: Partial, source: str, keys: list[str]) -> str:
    listed = _keys(node)
    for call in node.agg.aggs:
        listed.append(f"NAMED_STRUCT('v', {call.text}) AS {quote(partial_columns(call)[0].name)}")
    listed.append(f"{quote(user_rows(node.agg.aggs[0].func))}(1) AS {ROWS}")
    if node.count_deletes:
        listed.append(f"0L AS {DELETES}")
    return f"SELECT {', '.join(listed)}\nFROM {source}\nGROUP BY {', '.join(keys)}"


def _touched(node: Partial, source: str, keys: list[str]) -> str:
    listed = _keys(node)
    for call in node.agg.aggs:
        column = partial_columns(call)[0]
        listed.append(f"CAST(NULL AS {column.dtype}) AS {quote(column.name)}")
    count = f"COALESCE(SUM(CAST({WEIGHT} AS BIGINT)), 0L)" if node.child.weighted else "COUNT(1)"
    listed += [f"{count} AS {ROWS}", f"COUNT(1) AS {DELETES}"]
    return f"SELECT {', '.join(listed)}\nFROM {source}\nGROUP BY {', '.join(keys)}"


def _keys(node: Partial) -> list[str]:
    return [f"{g.expr.text} AS {quote(g.name)}" for g in node.agg.groups]

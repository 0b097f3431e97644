"""Orders that name one answer: an ORDER BY that leaves ties is completed by all the columns it can see.

Two rows that are equal in every column are interchangeable, so the completed order gives one defined bag. Columns of
floating-point numbers, or with some inside, need their text as well: -0.0 and 0.0 compare as equal but are not the same
value. So do strings
under a collation that takes different texts for equal.
"""

from __future__ import annotations

import re

from slackwater.algebra.aggregates import has_floats, is_collated
from slackwater.algebra.expressions import Expr, col
from slackwater.algebra.nodes import Rel, Schema, SortKey

_UNORDERED = re.compile(r"\b(map<|variant|interval$|void|geometry|geography)")


def orderable(dtype: str) -> bool:
    """Whether Spark can sort values of the type; it cannot sort maps and variants."""
    return not _UNORDERED.search(dtype) or dtype.startswith("interval ")


def completed(keys: tuple[SortKey, ...], schema: Schema, same: tuple[Expr, ...] = ()) -> tuple[SortKey, ...]:
    """The keys, then every column that could still tell two rows apart; those in `same` are equal in all rows."""
    used = {k.expr.column for k in keys} | {e.column for e in same}
    ties: list[SortKey] = []
    for f in schema:
        column = col(f.name, f.dtype)
        if f.name not in used:
            ties.append(SortKey(column, False, True))
        if has_floats(f.dtype) and orderable(f.dtype):
            ties.append(SortKey(Expr("cast", (column,), f"CAST({column.text} AS STRING)", "string"), False, True))
        elif is_collated(f.dtype):
            ties.append(SortKey(Expr("cast", (column,), f"CAST({column.text} AS BINARY)", "binary"), False, True))
    return keys + tuple(ties)


def breaks_ties(node: Rel) -> bool:
    """Whether the node chooses among answers that its query leaves open; such a query is proved from its plan."""
    return bool(getattr(node, "breaks_ties", False))

"""Plans as JSON and back. Only the classes named here can be read: a catalog cannot make us build anything else."""

from __future__ import annotations

import dataclasses
from typing import Any

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import Expr
from slackwater.algebra.first_rows import First
from slackwater.algebra.generate import Generate, Values
from slackwater.algebra.joins import MatchJoin, OuterJoin
from slackwater.algebra.lookups import KeyPair, LookupJoin
from slackwater.algebra.multi_join import MultiJoin
from slackwater.algebra.remembering import ByNode
from slackwater.algebra.scalars import ScalarFilter
from slackwater.algebra.windows import Frame, Window, WindowCall

_CLASSES: dict[str, type] = {
    c.__name__: c
    for c in (
        n.Scan, n.Filter, n.Project, n.Union, n.Expand, n.Join, n.Aggregate, n.TopK, First, n.Opaque,
        MatchJoin, OuterJoin, MultiJoin, LookupJoin, KeyPair, Generate, Values,
        n.Field, n.Item, n.SortKey, AggCall, Expr, Window, WindowCall, Frame, ScalarFilter,
    )
}  # fmt: skip


def to_json(value: object) -> Any:
    """Turn a plan, or a part of one, into JSON values."""
    if isinstance(value, tuple):
        return [to_json(v) for v in value]
    if value is None or isinstance(value, str | int | bool):
        return value
    if isinstance(value, Expr):
        # A literal's Python value serves the interpreter only; a column's name is needed.
        kept = value.value if value.op == "col" else None
        return {"@": "Expr", "op": value.op, "args": to_json(value.args), "text": value.text, "dtype": value.dtype,
                "value": kept}  # fmt: skip
    name = type(value).__name__
    if name not in _CLASSES or not dataclasses.is_dataclass(value):
        raise TypeError(f"{name} is not part of a stored plan")
    return {"@": name} | {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}


def from_json(value: Any) -> Any:
    """Read back what `to_json` wrote."""
    if isinstance(value, list):
        return tuple(from_json(v) for v in value)
    if isinstance(value, dict):
        cls = _CLASSES.get(str(value.get("@")))
        if cls is None:
            raise TypeError(f"{value.get('@')!r} is not part of a stored plan")
        return cls(**{k: from_json(v) for k, v in value.items() if k != "@"})
    return value


stored_plan: ByNode[n.Rel, Any] = ByNode(to_json)
"""A whole plan as JSON values, which are not to be changed; every refresh writes it down again."""

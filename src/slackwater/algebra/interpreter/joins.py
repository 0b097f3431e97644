"""Match joins, outer joins and generators, as plainly as they can be said."""

from __future__ import annotations

from typing import Any

from slackwater.algebra.expressions import Expr
from slackwater.algebra.generate import Generate, Values
from slackwater.algebra.interpreter.values import Row, evaluate_expr
from slackwater.algebra.joins import EXISTS, SEMI, KeyedJoin, MatchJoin

Weighted = list[tuple[Row, int]]
"""Rows with their weights."""


def _eval(expr: Expr, names: tuple[str, ...], row: Row) -> Any:
    return evaluate_expr(expr, dict(zip(names, row, strict=True)))


def _require_plain(rows: Weighted) -> None:
    if any(w < 0 for _, w in rows):
        raise ValueError("matches were looked for among negative weights")


def keyed_join(node: KeyedJoin, left: Weighted, right: Weighted) -> Weighted:
    """A match join or an outer join."""
    names = node.left.names + node.right.names

    def matches(a: Row, b: Row) -> bool:
        return _eval(node.condition, names, a + b) is True

    for at in node.plain_inputs:
        _require_plain((left, right)[at])
    if isinstance(node, MatchJoin):
        found = [(row, w, any(matches(row, other) for other, _ in right)) for row, w in left]
        if node.kind == EXISTS:
            return [((*row, has), w) for row, w, has in found]
        return [(row, w) for row, w, has in found if has is (node.kind == SEMI)]
    pairs = [(a + b, v * w) for a, v in left for b, w in right if matches(a, b)]
    if node.keeps_left:
        nulls = (None,) * len(node.right.names)
        pairs += [(a + nulls, v) for a, v in left if not any(matches(a, b) for b, _ in right)]
    if node.keeps_right:
        nulls = (None,) * len(node.left.names)
        pairs += [(nulls + b, w) for b, w in right if not any(matches(a, b) for a, _ in left)]
    return pairs


def generate(node: Generate, rows: Weighted) -> Weighted:
    """Each row with each row that its generator makes."""
    names = node.child.names
    places = [names.index(name) for name in node.kept]
    out = []
    for row, weight in rows:
        made = _generated(node.generator, names, row)
        if not made and node.outer:
            made = [(None,) * len(node.fields)]
        out += [(tuple(row[p] for p in places) + cells, weight) for cells in made]
    return out


def _generated(generator: Expr, names: tuple[str, ...], row: Row) -> list[Row]:
    values = _eval(generator.args[0], names, row) or []
    if generator.op == "explode":
        return [(v,) for v in values]
    if generator.op == "posexplode":
        return list(enumerate(values))
    raise TypeError(f"the interpreter does not know the generator {generator.op}")


def constants(node: Values) -> list[Row]:
    """The rows of constants."""
    return [tuple(cell.value for cell in row) for row in node.rows]

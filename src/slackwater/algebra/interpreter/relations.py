"""Operators over bags of weighted rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall, Combine, is_variance
from slackwater.algebra.expressions import Expr
from slackwater.algebra.first_rows import First, FirstChange, FirstRowsGone
from slackwater.algebra.gather import Gather
from slackwater.algebra.generate import Generate, Values
from slackwater.algebra.interpreter import functions, joins
from slackwater.algebra.interpreter.values import Row, evaluate_expr, grouped, grouping_key, identity
from slackwater.algebra.interpreter.windows import sort_cell, windowed
from slackwater.algebra.joins import KeyedJoin, Support
from slackwater.algebra.lookups import Indexed, Probe, Waiting, unsettled
from slackwater.algebra.multi_join import MultiJoin
from slackwater.algebra.ordering import completed
from slackwater.algebra.partials import (
    DELETES,
    ROWS,
    AggChange,
    Finish,
    MergePartials,
    Partial,
    PartialColumn,
    partial_columns,
)  # fmt: skip
from slackwater.algebra.scalars import Flip, ScalarFilter
from slackwater.algebra.windows import Window


class Bag:
    """Rows with integer weights; equal rows are one entry and none has weight zero."""

    def __init__(self, rows: Iterable[tuple[Row, int]] = ()) -> None:
        """Add up the weights of equal rows."""
        self._rows: dict[tuple[Any, ...], tuple[Row, int]] = {}
        for row, weight in rows:
            key = identity(row)
            total = self._rows.get(key, (row, 0))[1] + weight
            if total:
                self._rows[key] = (row, total)
            else:
                self._rows.pop(key, None)

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Bag:
        """A plain bag."""
        return cls((row, 1) for row in rows)

    def items(self) -> list[tuple[Row, int]]:
        """Rows and weights."""
        return list(self._rows.values())

    def rows(self) -> list[Row]:
        """Each row as often as its weight says; there must be no negative one."""
        if any(w < 0 for _, w in self.items()):
            raise ValueError("a bag with negative weights has no rows")
        return [row for row, weight in self.items() for _ in range(weight)]

    def __add__(self, other: Bag) -> Bag:
        """Add weights."""
        return Bag(self.items() + other.items())

    def __neg__(self) -> Bag:
        """Negate weights."""
        return Bag((row, -weight) for row, weight in self.items())

    def __eq__(self, other: object) -> bool:
        """The same rows with the same weights."""
        return isinstance(other, Bag) and {k: w for k, (_, w) in self._rows.items()} == {
            k: w for k, (_, w) in other._rows.items()
        }

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Rows with weights."""
        return "Bag{" + ", ".join(f"{row}:{weight:+d}" for row, weight in self.items()) + "}"


@dataclass(slots=True)
class Catalogue:
    """What leaves stand for: tables by (name, time), inputs by name."""

    tables: dict[tuple[str, str], Bag] = field(default_factory=dict)
    inputs: dict[str, Bag] = field(default_factory=dict)


def evaluate(node: n.Rel, cat: Catalogue) -> Bag:
    """The weighted rows that a node denotes."""
    match node:
        case n.Scan():
            rows = cat.tables[node.table, node.at].items()
            return Bag((tuple(row[p] for p in node.positions), w) for row, w in rows)
        case n.Input():
            return cat.inputs[node.name]
        case n.Filter():
            names = node.child.names
            return Bag((r, w) for r, w in evaluate(node.child, cat).items() if _eval(node.predicate, names, r) is True)
        case n.Project():
            return _project(node.child, (tuple(i.expr for i in node.items),), cat)
        case n.Expand():
            return _project(node.child, node.projections, cat)
        case n.Union():
            return Bag(item for child in node.inputs for item in evaluate(child, cat).items())
        case n.Consolidate():
            return Bag.of(evaluate(node.child, cat).rows())
        case Gather():
            return evaluate(node.child, cat)
        case n.Negate():
            return -evaluate(node.child, cat)
        case n.Difference():
            return evaluate(node.new, cat) + -evaluate(node.old, cat)
        case n.Join():
            return _join(node, cat)
        case Waiting():
            inside = [lookup.waiting for lookup, _ in node.path.lookups]
            return evaluate(unsettled(node, node.rows, node.path.scan, inside), cat)
        case Indexed():
            return evaluate(node.rows, cat)
        case Probe():
            return evaluate(node.plain(), cat)
        case MultiJoin():
            return evaluate(node.tree(), cat)
        case n.SemiJoin():
            return _semi_join(node, cat)
        case KeyedJoin():
            return Bag(joins.keyed_join(node, evaluate(node.left, cat).items(), evaluate(node.right, cat).items()))
        case Support():
            return Bag.of(row for row, _ in evaluate(node.child, cat).items())
        case Generate():
            return Bag(joins.generate(node, evaluate(node.child, cat).items()))
        case Values():
            return Bag.of(joins.constants(node))
        case n.Aggregate():
            return _aggregate(node, evaluate(node.child, cat))
        case n.TopK():
            return _top_k(node, evaluate(node.child, cat))
        case First():
            return _top_k(n.TopK(node.child, node.keys, node.most), evaluate(node.child, cat))
        case FirstChange():
            return _first_change(node, evaluate(node.old, cat), evaluate(node.change, cat))
        case ScalarFilter():
            return _scalar_filter(node.child, node.scalar, node.predicate, cat)
        case Flip():
            passed = (_scalar_filter(node.child, side, node.predicate, cat) for side in (node.new, node.old))
            return next(passed) + -next(passed)
        case Window():
            return Bag.of(windowed(node, evaluate(node.child, cat).rows()))
        case Partial():
            return _partial(node, evaluate(node.child, cat))
        case MergePartials():
            return _merged_bag(node.agg, evaluate(node.child, cat))
        case Finish():
            merged = _merged_bag(node.agg, evaluate(node.child, cat)).rows()
            return Bag.of(_finish(node.agg, row) + (row if node.carry else ()) for row in merged)
        case AggChange():
            return _agg_change(node, cat)
        case _:
            raise TypeError(f"the interpreter does not know {type(node).__name__}")


def _eval(expr: Expr, names: tuple[str, ...], row: Row) -> Any:
    return evaluate_expr(expr, dict(zip(names, row, strict=True)))


def _project(child: n.Rel, projections: tuple[tuple[Expr, ...], ...], cat: Catalogue) -> Bag:
    names, items = child.names, evaluate(child, cat).items()
    return Bag((tuple(_eval(e, names, row) for e in exprs), w) for row, w in items for exprs in projections)


def _join(node: n.Join, cat: Catalogue) -> Bag:
    names = node.names
    left, right = evaluate(node.left, cat).items(), evaluate(node.right, cat).items()
    return Bag(
        (a + b, v * w)
        for a, v in left
        for b, w in right
        if node.condition is None or _eval(node.condition, names, a + b) is True
    )


def _scalar_filter(child: n.Rel, scalar: n.Rel, predicate: Expr, cat: Catalogue) -> Bag:
    (one,) = evaluate(scalar, cat).rows()
    names = child.names + scalar.names
    return Bag((row, w) for row, w in evaluate(child, cat).items() if _eval(predicate, names, row + one) is True)


def _semi_join(node: n.SemiJoin, cat: Catalogue) -> Bag:
    def key(exprs: Iterable[Expr], names: tuple[str, ...], row: Row) -> Row:
        return tuple(grouping_key(_eval(e, names, row)) for e in exprs)

    mine, theirs = [a for a, _ in node.pairs], [b for _, b in node.pairs]
    keys = {key(theirs, node.keys.names, row) for row, _ in evaluate(node.keys, cat).items()}
    items = evaluate(node.child, cat).items()
    return Bag((row, w) for row, w in items if (key(mine, node.child.names, row) in keys) is not node.anti)


def _grouped_rows(agg: n.Aggregate, bag: Bag) -> dict[Row, tuple[Row, list[tuple[Row, int]]]]:
    found: dict[Row, tuple[Row, list[tuple[Row, int]]]] = {}
    names = agg.child.names
    for row, weight in bag.items():
        values = tuple(grouped(_eval(g.expr, names, row)) for g in agg.groups)
        found.setdefault(tuple(map(grouping_key, values)), (values, []))[1].append((row, weight))
    if not agg.groups and not found:
        found[()] = ((), [])
    return found


def _values(call: AggCall, names: tuple[str, ...], rows: list[tuple[Row, int]]) -> list[tuple[Any, int]]:
    kept = [(r, w) for r, w in rows if call.where is None or _eval(call.where, names, r) is True]
    return [(_eval(call.args[0], names, r) if call.args else True, w) for r, w in kept]


def _aggregate(agg: n.Aggregate, bag: Bag) -> Bag:
    names = agg.child.names
    out = []
    for values, rows in _grouped_rows(agg, bag).values():
        if any(w < 0 for _, w in rows):
            raise ValueError("a plain aggregate met a negative weight")
        cells = []
        for call in agg.aggs:
            present = [v for v, w in _values(call, names, rows) for _ in range(w)]
            cells.append(functions.aggregate(call, present, len(present)))
        out.append(values + tuple(cells))
    return Bag.of(out)


def _place(node: n.TopK | First) -> Callable[[Row], tuple[Any, ...]]:
    """Where a row stands in the completed order."""
    names, keys = node.names, completed(node.keys, node.schema)
    return lambda row: tuple(sort_cell(_eval(k.expr, names, row), k) for k in keys)


def _top_k(node: n.TopK, bag: Bag) -> Bag:
    return Bag.of(sorted(bag.rows(), key=_place(node))[node.offset : node.offset + node.limit])


def _first_change(node: FirstChange, old: Bag, change: Bag) -> Bag:
    place, first = _place(node.first), node.first
    kept = sorted(old.rows(), key=place)
    cut = len(kept) >= first.need
    both = (old + change).items()
    rows = [row for row, w in both for _ in range(max(w, 0)) if not (cut and place(kept[-1]) < place(row))]
    if cut and len(rows) < first.need:
        raise FirstRowsGone
    return Bag.of(sorted(rows, key=place)[: first.most])


def _partial(node: Partial, bag: Bag) -> Bag:
    agg, names, out = node.agg, node.agg.child.names, []
    for values, rows in _grouped_rows(agg, bag).values():
        cells: list[Any] = []
        for call in agg.aggs:
            if call.user or call.combine is Combine.REDO:
                cells.append(_result_cell(call, _values(call, names, rows), skip=node.count_deletes))
                continue
            present = [(v, w) for v, w in _values(call, names, rows) if v is not None]
            cells += [_partial_cell(c, present) for c in partial_columns(call)]
        cells.append(sum(w for _, w in rows))
        if node.count_deletes:
            kept = agg.combine is Combine.KEPT
            cells.append(sum(abs(w) for _, w in rows if kept or w < 0))
        out.append(values + tuple(cells))
    return Bag.of(out)


def _result_cell(call: AggCall, values: list[tuple[Any, int]], *, skip: bool) -> tuple[Any] | None:
    """The result over the rows that came, in a tuple; None where there are none, or where the group is redone."""
    came = [v for v, w in values for _ in range(w)]
    if (skip and call.user != "merge") or (call.user and not came):
        return None
    return (functions.aggregate(call, came, len(came)),)


def _partial_cell(column: PartialColumn, present: list[tuple[Any, int]]) -> Any:
    if column.role == "seen":
        return sum(w for _, w in present)
    if column.role == "total":
        return sum(v * w for v, w in present) if present else None
    if column.role == "square":
        return sum(v * v * w for v, w in present) if present else None
    return functions.merge(column.merge, (v for v, w in present for _ in range(w)))


def _columns(agg: n.Aggregate) -> list[PartialColumn]:
    return [c for call in agg.aggs for c in partial_columns(call)] + [PartialColumn(ROWS, "sum", "seen", "bigint")]


def _merge_rows(agg: n.Aggregate, rows: list[Row]) -> Row:
    width, columns = len(agg.groups), _columns(agg)
    cells = tuple(functions.merge(c.merge, (r[width + i] for r in rows)) for i, c in enumerate(columns))
    return (rows[0][:width] if rows else ()) + cells


def _by_group(agg: n.Aggregate, bag: Bag) -> dict[Row, list[Row]]:
    found: dict[Row, list[Row]] = {}
    for row in bag.rows():
        found.setdefault(tuple(map(grouping_key, row[: len(agg.groups)])), []).append(row)
    return found


def _merged_bag(agg: n.Aggregate, bag: Bag) -> Bag:
    groups = _by_group(agg, bag)
    if not agg.groups:
        return Bag.of([_merge_rows(agg, groups.get((), []))])
    merged = (_merge_rows(agg, rows) for rows in groups.values())
    return Bag.of(row for row in merged if row[-1] > 0)


def _finish(agg: n.Aggregate, row: Row) -> Row:
    width = len(agg.groups)
    cells, at = list(row[:width]), width
    for call in agg.aggs:
        columns = partial_columns(call)
        roles = {c.role: row[at + i] for i, c in enumerate(columns)}
        at += len(columns)
        cells.append(_finish_call(call, roles))
    return tuple(cells)


def _finish_call(call: AggCall, roles: Mapping[str, Any]) -> Any:
    if "value" in roles:
        return roles["value"]
    if "result" in roles:
        return roles["result"][0] if roles["result"] is not None else None
    seen = roles["seen"] or 0
    if call.func == "count":
        return seen
    if seen <= 0:
        return None
    if is_variance(call.func):
        return functions.finish_variance(call.func, float(seen * roles["square"] - roles["total"] ** 2) / seen, seen)
    return roles["total"] / seen if call.func == "avg" else roles["total"]


def _agg_change(node: AggChange, cat: Catalogue) -> Bag:
    if node.carry:
        raise TypeError("rows of weight 0 are for a program on Spark: a bag has none")
    agg, width = node.agg, len(node.agg.groups)
    old, change = _by_group(agg, evaluate(node.old, cat)), _by_group(agg, evaluate(node.change, cat))
    redo = _by_group(agg, evaluate(node.redo, cat)) if node.redo is not None else {}
    deletes = DELETES in node.change.names
    out: list[tuple[Row, int]] = []
    for key, rows in change.items():
        before = _merge_rows(agg, old.get(key, []))
        lost = node.redo is not None and deletes and any(r[-1] > 0 for r in rows)
        plain = [r[: width + len(_columns(agg))] for r in rows]
        after = _merge_rows(agg, redo.get(key, []) if lost else old.get(key, []) + plain)
        shown = rows[0][:width]
        cells = len(_columns(agg))
        for weight, state in ((-1, before), (1, after)):
            if not width or (state[-1] or 0) > 0:
                out.append((_finish(agg, shown + state[-cells:]), weight))
    return Bag(out)

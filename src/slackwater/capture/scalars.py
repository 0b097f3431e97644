"""Scalar subqueries that Spark leaves as expressions: each becomes a relation of one row and one column.

    exactly one row   γ[; …](R)                 as it is
    HAVING above it   σ[p](one row)             IF(p, value, NULL)
    EXISTS            LIMIT 1 of a constant     IF(count(*) > 0, constant, NULL)
    at most one row   LIMIT 1                   max(value): NULL where there is none
    any number        R                         max(value), with an error where there are several, as in Spark

Precondition: the subquery is not correlated; Spark turns correlated ones into joins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import Expr, call, col, lit
from slackwater.algebra.scalars import has_one_row
from slackwater.capture.expressions import NameBook, Unsupported
from slackwater.capture.trees import Tree, attribute_id, parse

TOO_MANY_ROWS = "more than one row returned by a subquery used as an expression"


class ScalarReader:
    """Reads the scalar subqueries in an operator's expressions."""

    def __init__(
        self, read: Callable[[Tree], tuple[n.Rel, list[int]]], typed: Callable[[Sequence[n.Rel]], list[n.Rel]],
        names: NameBook,
    ) -> None:  # fmt: skip
        """Take what reads plans, what types them, and the plan's names."""
        self._read, self._typed, self._names = read, typed, names
        self._columns: dict[int, Expr] = {}
        self._rows: dict[int, n.Rel] = {}

    def column(self, tree: Tree) -> Expr:
        """The column that stands for a subquery, once its row has been put beside the input."""
        ident = attribute_id(tree.props)
        if ident not in self._columns:
            raise Unsupported("OPERATOR_UNSUPPORTED", "ScalarSubquery", "a scalar subquery in this place")
        return self._columns[ident]

    def beside(self, child: n.Rel, trees: list[Tree]) -> n.Rel | None:
        """One row with the value of every subquery in the expressions over an input; None where there is none."""
        found = {attribute_id(t.props): t for t in subqueries(trees)}
        self._read_rows({ident: tree for ident, tree in found.items() if ident not in self._rows})
        row: n.Rel | None = None
        for ident in found:
            if self._rows[ident].names[0] in child.names:
                # The same subquery was put beside this input before, and its column came through.
                self._rows[ident] = self._named(ident, n.Project(self._rows[ident], (
                    n.Item(self._names.fresh("scalar"), self._columns[ident]),
                )))  # fmt: skip
            row = self._rows[ident] if row is None else n.Join(row, self._rows[ident], None)
        return row

    def _read_rows(self, wanted: dict[int, Tree]) -> None:
        """Read subqueries, all together: to learn a type is to ask Spark."""
        if not wanted:
            return
        values = []
        for tree in wanted.values():
            if tree.props.get("outerAttrs"):
                raise Unsupported("OPERATOR_UNSUPPORTED", "ScalarSubquery", "a correlated subquery that is no join")
            rel, ids = self._read(parse(tree.props["plan"]))
            if len(ids) != 1 or len(rel.schema) != 1:
                raise Unsupported("OPERATOR_UNSUPPORTED", "ScalarSubquery", "a subquery with several columns")
            values.append((rel, ids[0]))
        rows = []
        for rel, (_, value_id) in zip(self._typed([rel for rel, _ in values]), values, strict=True):
            self._names.types[value_id] = rel.schema[0].dtype
            rows.append(one_row(rel, self._names.fresh("scalar"), self._names))
        for ident, row in zip(wanted, self._typed(rows), strict=True):
            self._rows[ident] = self._named(ident, row)

    def _named(self, ident: int, row: n.Rel) -> n.Rel:
        """Note the column that stands for the subquery. It has no id of Spark's; a negative one cannot meet another."""
        (made,) = row.schema
        key = min(0, *self._names.by_id) - 1
        self._names.by_id[key], self._names.types[key] = made.name, made.dtype
        self._columns[ident] = col(made.name, made.dtype)
        return row


def subqueries(trees: list[Tree]) -> Iterator[Tree]:
    """The scalar subqueries in expressions, those inside other subqueries excepted."""
    for tree in trees:
        for part in tree.walk():
            if part.name == "ScalarSubquery":
                yield part


def one_row(rel: n.Rel, name: str, names: NameBook) -> n.Rel:
    """Exactly one row with the subquery's value; see the table above."""
    value = col(rel.names[0], rel.schema[0].dtype)
    items, below = (rel.items, rel.child) if isinstance(rel, n.Project) else (n.pass_through(rel.schema), rel)
    if has_one_row(rel):
        return n.Project(below, (n.Item(name, items[0].expr),))
    if isinstance(below, n.Filter) and has_one_row(below.child):
        held = call("if", below.predicate, items[0].expr, lit(None))
        return n.Project(below.child, (n.Item(name, held),))
    count = AggCall(names.fresh("rows"), "count", (), "bigint")
    rows = col(count.name, "bigint")
    if isinstance(rel, n.TopK) and rel.limit >= 1 and not rel.keys and (constant := _constant(rel.child)) is not None:
        there = call(">", rows, lit(rel.offset, f"{rel.offset}L", "bigint"), dtype="boolean")
        return n.Project(n.Aggregate(rel.child, (), (count,)), (n.Item(name, call("if", there, constant, lit(None))),))
    largest = AggCall(names.fresh("only"), "max", (value,), "")
    if isinstance(below, n.TopK) and below.limit <= 1:
        return n.Project(n.Aggregate(rel, (), (largest,)), (n.Item(name, col(largest.name)),))
    several = call(">", rows, lit(1, "1L", "bigint"), dtype="boolean")
    guarded = call("if", several, call("raise_error", lit(TOO_MANY_ROWS)), col(largest.name))
    return n.Project(n.Aggregate(rel, (), (largest, count)), (n.Item(name, guarded),))


def _constant(rel: n.Rel) -> Expr | None:
    """The constant that is a relation's only column, as in what EXISTS becomes."""
    if isinstance(rel, n.Project) and len(rel.items) == 1 and rel.items[0].expr.op == "lit":
        return rel.items[0].expr
    return None

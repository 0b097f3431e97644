"""Spark's Aggregate to ours: function calls below, expressions over them in a projection above."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import Expr, call, col, field_text, lit
from slackwater.capture.expressions import ExpressionReader, NameBook, Unsupported
from slackwater.capture.functions import Function, read_function
from slackwater.capture.pivots import pivoted
from slackwater.capture.trees import Tree
from slackwater.errors import QueryRefused

if TYPE_CHECKING:
    from slackwater.capture.plans import PlanReader


class AggregateReader:
    """Reads one Aggregate over an input that has been read."""

    def __init__(
        self, plan: PlanReader, exprs: ExpressionReader, names: NameBook,
        with_scalars: Callable[[n.Rel, list[Tree]], n.Rel],
    ) -> None:  # fmt: skip
        """Share the plan's readers; `with_scalars` puts the values of scalar subqueries beside an input."""
        self._plan, self._exprs, self._names, self._with_scalars = plan, exprs, names, with_scalars
        self._calls: dict[str, AggCall] = {}

    def read(self, tree: Tree, child: n.Rel) -> tuple[n.Rel, list[int]]:
        """The aggregate, under a projection where its output is more than keys and calls."""
        outputs = tree.nested_list("aggregateExpressions")
        functions = [part for out in outputs for part in out.walk() if part.name == "AggregateExpression"]
        outside = [part for out in outputs for part in _outside_functions(out)]
        self._with_scalars(child, outside)  # read now, so that outputs can name them; joined above the aggregate
        child = self._with_scalars(child, functions + tree.nested_list("groupingExpressions"))
        groups = self._groups(tree)
        by_text = {g.expr.text: col(g.name, g.expr.dtype) for g in groups}
        single_rows = _one_row_a_group(child)

        def answer(part: Tree) -> Expr | None:
            if part.name == "AggregateExpression" and part.children[0].name == "PivotFirst":
                picked = pivoted(part.children[0], self._exprs)
                made = [self._named(AggCall("", "max", (value,), "", where=rows)) for value, rows in picked]
                return call("array", *(col(m.name, m.dtype) for m in made))
            if part.name == "AggregateExpression" and _counts_a_constant(part):
                # One value, however many different rows there are, where there is a row.
                rows = self._call(part, single_rows)[0]
                return call("if", call(">", col(rows.name, "bigint"), lit(0, "0L", "bigint"), dtype="boolean"),
                            lit(1, "1L", "bigint"), lit(0, "0L", "bigint"), dtype="bigint")  # fmt: skip
            if part.name == "AggregateExpression":
                found, field = self._call(part, single_rows)
                column = col(found.name, found.dtype)
                return Expr("GetStructField", (column,), field_text(column, field)) if field else column
            if part.name in ("Literal", "Alias"):
                return None
            try:
                return by_text.get(self._exprs.read(part).text)
            except Unsupported:
                return None

        items, ids = self._plan.items(outputs, answer)
        _refuse_mixture(tuple(self._calls.values()))
        aggregate: n.Rel = n.Aggregate(child, groups, tuple(self._calls.values()))
        return n.Project(self._with_scalars(aggregate, outside), tuple(items)), ids

    def _groups(self, tree: Tree) -> tuple[n.Item, ...]:
        groups: list[n.Item] = []
        seen: set[str] = set()
        for part in tree.nested_list("groupingExpressions"):
            expr = self._exprs.read(part)
            if expr.text in seen:
                continue
            seen.add(expr.text)
            groups.append(n.Item(expr.column or self._names.fresh("key"), expr))
        return tuple(groups)

    def _call(self, tree: Tree, single_rows: bool) -> tuple[AggCall, str]:
        """The call, and the field of its result that is asked for, if any."""
        function, where = tree.children[0], tree.children[1] if len(tree.children) > 1 else None
        condition = self._exprs.read(where) if where is not None else None
        distinct = bool(tree.props.get("isDistinct"))
        if function.name == "First" and single_rows and condition is not None:
            # Spark wrote `first` for "the only row of this kind"; any function of one value will do.
            found = Function("max", (self._exprs.read(function.children[0]),))
        else:
            found = read_function(function, self._exprs, distinct=distinct)
        distinct = distinct and not _counts_a_constant(tree)
        made = AggCall("", found.func, found.args, "", distinct, condition, found.form, found.completed, found.user)
        return self._named(made), found.field

    def _named(self, made: AggCall) -> AggCall:
        """The call under a name of its own; the same call twice is one."""
        if made.text not in self._calls:
            first = made.args[0] if made.args else None
            wish = made.func if first is None or first.column is None else f"{made.func}_{first.column}"
            self._calls[made.text] = replace(made, name=self._names.fresh(wish))
        return self._calls[made.text]


def _counts_a_constant(tree: Tree) -> bool:
    """Whether it is count(DISTINCT …) of constants that are not NULL."""
    function = tree.children[0]
    values = function.children
    return (
        function.name == "Count" and bool(tree.props.get("isDistinct"))
        and all(v.name == "Literal" and v.props.get("value") is not None for v in values)
    )  # fmt: skip


def _refuse_mixture(calls: tuple[AggCall, ...]) -> None:
    """Spark computes user-defined aggregates and its own only apart from each other."""
    if len({bool(call.user) for call in calls}) > 1:
        named = ", ".join(sorted({call.func for call in calls if call.user}))
        raise QueryRefused(
            "QUERY_UNSUPPORTED",
            f"Spark cannot compute {named} beside aggregate functions of its own in one SELECT",
            "compute them in two subqueries and join these by the group's key",
        )


def _outside_functions(tree: Tree) -> list[Tree]:
    """The scalar subqueries of an output expression that no aggregate function reads."""
    if tree.name == "AggregateExpression":
        return []
    below = [found for child in tree.children for found in _outside_functions(child)]
    return [tree, *below] if tree.name == "ScalarSubquery" else below


def _one_row_a_group(child: n.Rel) -> bool:
    """Whether the input is the inner half of Spark's rewriting of several DISTINCT aggregates."""
    while isinstance(child, n.Project | n.Filter):
        child = child.child
    return isinstance(child, n.Aggregate) and any(isinstance(x, n.Expand) for x in child.walk())

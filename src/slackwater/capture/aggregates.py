"""Spark's Aggregate to ours: function calls below, expressions over them in a projection above."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall, decimal_of, is_variance
from slackwater.algebra.expressions import Expr, call, col, conjunction, lit
from slackwater.capture.expressions import ExpressionReader, NameBook, Unsupported
from slackwater.capture.trees import Tree

if TYPE_CHECKING:
    from slackwater.capture.plans import PlanReader

FUNCTIONS = {
    "Sum": "sum", "Count": "count", "Average": "avg", "Min": "min", "Max": "max", "StddevSamp": "stddev_samp",
    "StddevPop": "stddev_pop", "VarianceSamp": "var_samp", "VariancePop": "var_pop", "BitAndAgg": "bit_and",
    "BitOrAgg": "bit_or", "BitXorAgg": "bit_xor", "Skewness": "skewness", "Kurtosis": "kurtosis", "Corr": "corr",
    "CovPopulation": "covar_pop", "CovSample": "covar_samp", "Percentile": "percentile", "Median": "median",
}  # fmt: skip
_PLAIN = {"class", "num-children", "child", "children", "left", "right", "x", "y", "evalContext", "evalMode",
          "nullOnDivideByZero", "mutableAggBufferOffset", "inputAggBufferOffset"}  # fmt: skip


class AggregateReader:
    """Reads one Aggregate over an input that has been read."""

    def __init__(self, plan: PlanReader, exprs: ExpressionReader, names: NameBook) -> None:
        """Share the plan's readers."""
        self._plan, self._exprs, self._names = plan, exprs, names
        self._calls: dict[str, AggCall] = {}

    def read(self, tree: Tree, child: n.Rel) -> tuple[n.Rel, list[int]]:
        """The aggregate, under a projection where its output is more than keys and calls."""
        groups = self._groups(tree)
        by_text = {g.expr.text: col(g.name, g.expr.dtype) for g in groups}
        single_rows = _one_row_a_group(child)

        def replace(part: Tree) -> Expr | None:
            if part.name == "AggregateExpression":
                found = self._call(part, single_rows)
                return col(found.name, found.dtype)
            if part.name in ("Literal", "Alias"):
                return None
            try:
                return by_text.get(self._exprs.read(part).text)
            except Unsupported:
                return None

        items, ids = self._plan.items(tree.nested_list("aggregateExpressions"), replace)
        aggregate = n.Aggregate(child, groups, tuple(self._calls.values()))
        return n.Project(aggregate, tuple(items)), ids

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

    def _call(self, tree: Tree, single_rows: bool) -> AggCall:
        args: tuple[Expr, ...]
        function, where = tree.children[0], tree.children[1] if len(tree.children) > 1 else None
        name = function.name
        condition = self._exprs.read(where) if where is not None else None
        if name == "First" and single_rows and condition is not None:
            # Spark wrote `first` for "the only row of this kind"; any function of one value will do.
            args, func = (self._exprs.read(function.children[0]),), "max"
        elif name in FUNCTIONS:
            extra = set(function.props) - _PLAIN
            if name in ("Percentile", "Median") or any(function.props[k] not in (None, [], {}) for k in extra):
                raise Unsupported("EXPRESSION_UNSUPPORTED", name, "this form of the function is not incremental yet")
            args, func = self._args(name, function), FUNCTIONS[name]
        else:
            raise Unsupported("EXPRESSION_UNSUPPORTED", name, "the aggregate function is not incremental yet")
        made = AggCall("", func, args, "", bool(tree.props.get("isDistinct")), condition)
        if made.text not in self._calls:
            wish = func if not args or args[0].column is None else f"{func}_{args[0].column}"
            self._calls[made.text] = AggCall(self._names.fresh(wish), func, args, "", made.distinct, condition)
        return self._calls[made.text]

    def _args(self, name: str, function: Tree) -> tuple[Expr, ...]:
        args = tuple(self._exprs.read(child) for child in function.children)
        if is_variance(FUNCTIONS[name]):
            return tuple(_uncast(a) for a in args)
        if name != "Count":
            return args
        columns = tuple(a for a in args if a.op != "lit" or a.text.startswith("CAST(NULL"))
        if not columns:
            return ()
        if len(columns) == 1:
            return columns
        present = conjunction(tuple(call("is_not_null", c, dtype="boolean") for c in columns))
        row = call("struct", *columns)
        return (call("if", present, row, lit(None)),)


def _uncast(arg: Expr) -> Expr:
    """Spark casts what it takes the variance of to DOUBLE; the exact value below merges, so let Spark cast again."""
    below = arg.args[0] if arg.op == "cast" and arg.dtype == "double" else arg
    return below if below.dtype in ("tinyint", "smallint", "int") or decimal_of(below.dtype) else arg


def _one_row_a_group(child: n.Rel) -> bool:
    """Whether the input is the inner half of Spark's rewriting of several DISTINCT aggregates."""
    while isinstance(child, n.Project | n.Filter):
        child = child.child
    return isinstance(child, n.Aggregate) and any(isinstance(x, n.Expand) for x in child.walk())

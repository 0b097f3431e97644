"""Spark's Window to ours: the functions, their orders and frames."""

from __future__ import annotations

import re
from dataclasses import dataclass

from slackwater.algebra import nodes as n
from slackwater.algebra.expressions import Expr
from slackwater.algebra.windows import (
    CURRENT_ROW,
    POSITIONS,
    RANKS,
    UNBOUNDED_FOLLOWING,
    UNBOUNDED_PRECEDING,
    Frame,
    Window,
    WindowCall,
)  # fmt: skip
from slackwater.capture.expressions import ExpressionReader, NameBook, Unsupported
from slackwater.capture.functions import by_order, read_function
from slackwater.capture.literals import interval_text
from slackwater.capture.trees import Tree, attribute_id, type_name

_FUNCTIONS = {
    "RowNumber": "row_number", "Rank": "rank", "DenseRank": "dense_rank", "PercentRank": "percent_rank",
    "CumeDist": "cume_dist", "NTile": "ntile", "Lag": "lag", "Lead": "lead", "NthValue": "nth_value",
    "First": "first_value", "Last": "last_value",
}  # fmt: skip
_DAY = 86_400 * 10**6
_BOUNDS = {
    "UnboundedPreceding$": UNBOUNDED_PRECEDING,
    "CurrentRow$": CURRENT_ROW,
    "UnboundedFollowing$": UNBOUNDED_FOLLOWING,
}


@dataclass(frozen=True, slots=True)
class WindowReader:
    """Reads one Window over an input that has been read."""

    exprs: ExpressionReader
    names: NameBook

    def read(self, tree: Tree, child: n.Rel, ids: list[int]) -> tuple[n.Rel, list[int]]:
        """The window, and the ids of its output columns."""
        partition = tuple(self.exprs.read(part) for part in tree.nested_list("partitionSpec"))
        calls, added = [], []
        for alias in tree.nested_list("windowExpressions"):
            over = alias.children[0]
            if over.name != "WindowExpression":
                raise Unsupported("OPERATOR_UNSUPPORTED", "Window", f"{over.name} stands in the place of a function")
            ident = attribute_id(alias.props)
            added.append(ident)
            calls.append(self._call(self.names.name(ident, alias.props["name"]), *over.children))
        return Window(child, partition, tuple(calls)), ids + added

    def _call(self, name: str, function: Tree, spec: Tree) -> WindowCall:
        order = tuple(sort_key(spec.children[at], self.exprs) for at in spec.props["orderSpec"])
        frame = _frame(spec.children[spec.props["frameSpecification"]])
        if function.name == "AggregateExpression":
            if function.props.get("isDistinct") or len(function.children) > 1:
                raise Unsupported("EXPRESSION_UNSUPPORTED", "Window", "DISTINCT and FILTER over a window")
            function = function.children[0]
        func = _FUNCTIONS.get(function.name)
        if func is None:
            return self._aggregate(name, function, order, frame)
        args = () if func in RANKS or func == "row_number" else self._args(function)
        nulls = bool(function.props.get("ignoreNulls", False))
        return WindowCall(name, func, args, "", order, None if func in RANKS | POSITIONS else frame, nulls)

    def _args(self, function: Tree) -> tuple[Expr, ...]:
        """The arguments; a default of lag or lead that is NULL goes without saying."""
        parts = function.children
        if function.name in ("Lag", "Lead") and parts[2].name == "Literal" and parts[2].props.get("value") is None:
            parts = parts[:2]
        return tuple(self.exprs.read(part) for part in parts)

    def _aggregate(self, name: str, function: Tree, order: tuple[n.SortKey, ...], frame: Frame) -> WindowCall:
        if function.name in ("MaxBy", "MinBy"):
            value, key = (self.exprs.read(part) for part in function.children)
            func = "max_by" if function.name == "MaxBy" else "min_by"
            return WindowCall(name, func, (value, by_order(key, value)), "", order, frame, completed=True)
        found = read_function(function, self.exprs)
        if found.form or found.field:
            raise Unsupported("EXPRESSION_UNSUPPORTED", function.name, "the function over a window is recomputed")
        return WindowCall(name, found.func, found.args, "", order, frame)


def sort_key(order: Tree, exprs: ExpressionReader) -> n.SortKey:
    """One ORDER BY key."""
    return n.SortKey(
        exprs.read(order.children[0]),
        order.object_name("direction") == "Descending",
        order.object_name("nullOrdering") == "NullsFirst",
    )


def _frame(tree: Tree) -> Frame:
    if tree.name != "SpecifiedWindowFrame":
        raise Unsupported("OPERATOR_UNSUPPORTED", "Window", f"a frame of the kind {tree.name}")
    unit = {"RowFrame": "ROWS", "RangeFrame": "RANGE"}[tree.object_name("frameType")]
    return Frame(unit, _bound(tree.children[int(tree.props["lower"])]), _bound(tree.children[int(tree.props["upper"])]))


def _bound(tree: Tree) -> str:
    """A bound as SQL text: numbers and day-time or year-month intervals, negative ones before the current row."""
    if tree.name in _BOUNDS:
        return _BOUNDS[tree.name]
    if tree.name != "Literal" or tree.props.get("value") is None:
        raise Unsupported("OPERATOR_UNSUPPORTED", "Window", f"a frame bound of the kind {tree.name}")
    dtype, value = type_name(tree.props["dataType"]), str(tree.props["value"])
    amount, before = value.lstrip("-"), value.startswith("-")
    if not re.fullmatch(r"\d+(\.\d+)?", amount) or dtype == "interval":
        raise Unsupported("EXPRESSION_UNSUPPORTED", "Window", f"a frame bound of type {dtype} has no safe spelling")
    return f"{_amount(amount, dtype)} {'PRECEDING' if before else 'FOLLOWING'}"


def _amount(amount: str, dtype: str) -> str:
    """How far a bound is away. Spark counts intervals in months or in microseconds."""
    if dtype == "int":
        return amount
    if dtype == "interval day":  # a frame over dates takes no other kind, which a longer form would be
        return f"INTERVAL '{int(amount) // _DAY}' DAY"
    if dtype.startswith("interval"):
        return interval_text("", amount, dtype)
    return f"CAST('{amount}' AS {dtype.upper()})"

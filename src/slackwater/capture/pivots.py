"""PIVOT: Spark aggregates by key and pivot column first, then lays each key's rows out in an array.

before:  pivotfirst(pivot, value, [a, b])
after:   array(max(value) FILTER (WHERE pivot <=> a), max(value) FILTER (WHERE pivot <=> b))

Precondition: the input has one row at most for each key and pivot value, as the first aggregate makes sure, so that
`max` only picks it. Counter-example without it: of two rows the larger would win, where Spark takes the last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slackwater.algebra.expressions import Expr
from slackwater.capture.expressions import Unsupported
from slackwater.capture.hidden import java_nodes, java_seq
from slackwater.capture.trees import Tree, class_names

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

VALUES = "values of the pivot column"
"""Where the values are noted beside the function: Spark's JSON loses those that are not numbers."""

_SPELLED = ("string", "boolean", "byte", "short", "integer", "long")
"""Types of pivot columns whose values are told by their text."""


def note_pivot_values(optimized: list[dict[str, Any]], plan: JavaObject) -> None:
    """Write the values of each pivot beside its function."""
    if not any(name == "PivotFirst" for name, _ in class_names(optimized)):
        return
    for item, node in zip(optimized, java_nodes(plan), strict=True):
        if str(item["class"]).endswith(".Aggregate"):
            for parts, expr in zip(item["aggregateExpressions"], java_seq(node.aggregateExpressions()), strict=True):
                for part, below in zip(parts, java_nodes(expr), strict=True):
                    if str(part["class"]).endswith(".PivotFirst"):
                        part[VALUES] = [None if v is None else _text(v) for v in java_seq(below.pivotColumnValues())]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | str) else str(value.toString())


def pivot_values(tree: Tree) -> list[Tree]:
    """The values of a pivot as constants of its column's type."""
    column = tree.children[0]
    dtype = column.props.get("dataType")
    if VALUES not in tree.props or dtype not in _SPELLED:
        raise Unsupported("EXPRESSION_UNSUPPORTED", "PivotFirst", "a pivot over values that have no safe spelling")
    return [Tree("Literal", {"dataType": dtype, "value": text}, ()) for text in tree.props[VALUES]]


def pivot_form(values: list[Expr]) -> str:
    """The spelling; the value is argument 0, the pivot column 1, and the values follow."""
    picked = (f"max({{0}}) FILTER (WHERE {{1}} <=> {{{at}}})" for at in range(2, 2 + len(values)))
    return f"array({', '.join(picked)})"

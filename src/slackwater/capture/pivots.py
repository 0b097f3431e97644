"""PIVOT: Spark groups by the keys and the pivot column, and then picks, for each value, the one row that has it.

before:  Aggregate [k] of [pivotfirst(p, v, 'a', 'b')] over Aggregate [k, p] of [sum(x) AS v]
after:   Aggregate [k] of [array(max(v) FILTER (p <=> 'a'), max(v) FILTER (p <=> 'b'))] over the same

Precondition: the input has at most one row for each key and pivot value, as the aggregate below sees to; the largest of
one value is that value. Counter-example without it: of two rows `pivotfirst` would take the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import _parse_datatype_json_string

from slackwater.algebra.expressions import Expr, call
from slackwater.capture.expressions import ExpressionReader, Unsupported
from slackwater.capture.hidden import java_nodes, java_seq
from slackwater.capture.trees import Tree, class_names
from slackwater.capture.unsaid import has_spelling

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import SparkSession

_VALUES = "pivotColumnValues"
_UNREADABLE = ""
"""Stands for a value that has no spelling."""

_SPELLED = ("string", "boolean", "tinyint", "smallint", "int", "bigint")
"""Types whose values Spark holds as it prints them; a date, for one, is a number of days to it."""


def add_pivot_values(optimized: list[dict[str, Any]], plan: JavaObject, spark: SparkSession) -> None:
    """The values of PIVOT are no expressions, so that Spark's JSON leaves them out: fetch them from the plan."""
    if not any(name == "PivotFirst" for name, _ in class_names(optimized)):
        return
    for item, node in zip(optimized, java_nodes(plan), strict=True):
        if str(item["class"]).endswith(".Aggregate"):
            held = [part for parts in item["aggregateExpressions"] for part in parts if _is_pivot(part)]
            found = [expr for out in java_seq(node.aggregateExpressions()) for expr in _prefix(out)
                     if expr.getClass().getSimpleName() == "PivotFirst"]  # fmt: skip
            if len(held) == len(found):  # else they stay without values, and are not read
                for part, expr in zip(held, found, strict=True):
                    part[_VALUES] = [_written(v, expr.pivotColumn().dataType(), spark)
                                     for v in java_seq(expr.pivotColumnValues())]  # fmt: skip


def _is_pivot(part: dict[str, Any]) -> bool:
    return str(part["class"]).endswith(".PivotFirst")


def _prefix(expr: JavaObject) -> Iterator[JavaObject]:
    yield expr
    for child in java_seq(expr.children()):
        yield from _prefix(child)


def _written(value: Any, dtype: JavaObject, spark: SparkSession) -> str | None:
    """A value as a literal prints it; as SQL where only Spark knows what it means."""
    if value is None:
        return None
    name = str(dtype.simpleString())
    if name in _SPELLED:
        return str(value).lower() if isinstance(value, bool) else str(value)
    if name in ("float", "double") or not has_spelling(_parse_datatype_json_string(dtype.json())):
        return _UNREADABLE  # to PIVOT no NaN is like another, which no comparison in SQL says
    jvm: Any = spark._sc._jvm
    return str(jvm.org.apache.spark.sql.catalyst.expressions.Literal(value, dtype).sql())


def pivoted(tree: Tree, exprs: ExpressionReader) -> list[tuple[Expr, Expr]]:
    """For each value of PIVOT: what is picked, and the rows that it is picked from."""
    pivot, value = (exprs.read(child) for child in tree.children)
    values: list[str | None] = tree.props.get(_VALUES) or []
    # PIVOT looks NULL up among dates and decimals, and never finds it among values that it must compare in order.
    has_null = pivot.dtype in (*_SPELLED, "date") or pivot.dtype.startswith("decimal")
    unreadable = _UNREADABLE in values and pivot.dtype != "string"
    if not values or unreadable or (None in values and not has_null):
        raise Unsupported("EXPRESSION_UNSUPPORTED", "PivotFirst", f"values of PIVOT of type {pivot.dtype}")
    if pivot.dtype in _SPELLED:
        texts = [exprs.read(Tree("Literal", {"dataType": _json_type(pivot.dtype), "value": v}, ())) for v in values]
    else:
        texts = [Expr("lit", (), f"CAST({v or 'NULL'} AS {pivot.dtype})", pivot.dtype) for v in values]
    return [(value, call("<=>", pivot, text, dtype="boolean")) for text in texts]


def _json_type(dtype: str) -> str:
    return {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}.get(dtype, dtype)

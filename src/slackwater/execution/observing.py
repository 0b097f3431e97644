"""Counts rows in the jobs that run anyway: Spark's own metrics of the plan that was executed, read once it has run.

Nothing is added to the queries. The full outputs that a program makes (states, and the joins inside a recompute) are
matched with the nodes of the view's plan; what cannot be matched stays an estimate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame

from slackwater.algebra.nodes import Join, Rel

_PASSING = ("Project", "WholeStageCodegen", "InputAdapter", "Coalesce", "Exchange", "AdaptiveSparkPlan", "QueryStage",
            "ColumnarToRow", "AQEShuffleRead", "Sort", "ReusedExchange", "ResultQueryStage")  # fmt: skip
"""Operators that hand on as many rows as they get."""


def output_rows(frame: DataFrame) -> int | None:
    """How many rows a DataFrame's executed plan gave out; None where its operators do not tell."""
    try:
        return _rows(frame._jdf.queryExecution().executedPlan())
    except Py4JError:
        return None


def join_rows(frame: DataFrame, rel: Rel, origins: Mapping[int, str]) -> dict[str, int]:
    """Rows of the joins inside an executed plan, by the key of the node whose full output they are.

    Joins are matched by their order from the top: Spark keeps the tree that the program's text has. Where the numbers
    of joins differ nothing is said.
    """
    if not any(isinstance(x, Join) for x in rel.walk()):
        return {}
    try:
        counted = [_metric(x) for x in _walk(frame._jdf.queryExecution().executedPlan()) if _name(x).endswith("Join")]
    except Py4JError:
        return {}
    joins = [x for x in rel.walk() if isinstance(x, Join)]
    if len(joins) != len(counted):
        return {}
    found = {origins.get(id(x)): rows for x, rows in zip(joins, counted, strict=True) if rows is not None}
    return {key: rows for key, rows in found.items() if key is not None}


def _name(plan: Any) -> str:
    return str(plan.nodeName()).split(" ")[0].split("(")[0]


def _metric(plan: Any) -> int | None:
    found = plan.metrics().get("numOutputRows")
    return int(found.get().value()) if found.isDefined() else None


def _inputs(plan: Any) -> list[Any]:
    name = _name(plan)
    if name == "AdaptiveSparkPlan":
        return [plan.executedPlan()]
    if "QueryStage" in name:
        return [plan.plan()]
    if name == "ReusedExchange":
        return [plan.child()]
    children = plan.children()
    return [children.apply(i) for i in range(children.size())]


def _walk(plan: Any) -> Iterator[Any]:
    yield plan
    for child in _inputs(plan):
        yield from _walk(child)


def _rows(plan: Any) -> int | None:
    rows = _metric(plan)
    if rows is not None:
        return rows
    name, inputs = _name(plan), _inputs(plan)
    if name == "Union":
        parts = [_rows(child) for child in inputs]
        return None if any(p is None for p in parts) else sum(p for p in parts if p is not None)
    if len(inputs) == 1 and name.startswith(_PASSING):
        return _rows(inputs[0])
    return None

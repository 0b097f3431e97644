"""`try_sum` and `try_avg` look like `sum` and `avg` in Spark's JSON: their names are fetched from the plan itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from slackwater.capture.trees import class_names
from slackwater.capture.unsaid import note_plan

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

_AGGREGATES = re.compile(r"\btry_(sum|avg)\(", re.IGNORECASE)
_LISTS = {"Aggregate": "aggregateExpressions", "Window": "windowExpressions"}


def note_lenient_aggregates(optimized: list[dict[str, Any]], plan: JavaObject, analyzed: str) -> None:
    """Write each function's own name beside it, as `prettyName`, in a plan that has lenient aggregates."""
    if not _AGGREGATES.search(analyzed):
        return
    if any(name == "ScalarSubquery" for name, _ in class_names(optimized)):
        note_plan(optimized, plan, _note)
        return
    nodes = list(_prefix(plan))
    for item, node in zip(optimized, nodes, strict=True):
        listed = _LISTS.get(str(item["class"]).rsplit(".", 1)[-1])
        if listed is not None:
            exprs = getattr(node, listed)()
            for at, parts in enumerate(item[listed]):
                for part, expr in zip(parts, _prefix(exprs.apply(at)), strict=True):
                    _note(part, expr)


def _note(part: dict[str, Any], expr: JavaObject) -> None:
    if str(part["class"]).endswith((".Sum", ".Average")):
        part["prettyName"] = str(expr.prettyName())


def _prefix(node: JavaObject) -> Iterator[JavaObject]:
    yield node
    children = node.children()
    for i in range(children.size()):
        yield from _prefix(children.apply(i))

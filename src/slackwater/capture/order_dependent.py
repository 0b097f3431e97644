"""Functions whose answer depends on how the rows happen to lie: refused, where it cannot be given one answer.

Looked for in Spark's analyzed plan, where the query still shows what its author wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from slackwater.capture.trees import Tree, parse
from slackwater.errors import QueryRefused

_ANY_ROW = {"First": "first", "Last": "last", "AnyValue": "any_value"}
LISTS = {"CollectList": "collect_list", "CollectSet": "collect_set", "CollectUnion": "collect_union",
         "ListAgg": "listagg"}  # fmt: skip
_SUMMARIES = {"ApproximatePercentile", "HistogramNumeric", "ApproxTopK", "ApproxTopKAccumulate", "ApproxTopKCombine"}
_SKETCHES = ("Hll", "Kll", "Theta", "Tuple")
_NEUTRAL = ("Project", "Filter", "SubqueryAlias", "View")


def refuse_order_dependent(analyzed: list[dict[str, Any]]) -> None:
    """Refuse a query that has such a function in a place where its answer stays open."""
    for plan in trees(analyzed):
        for tree, in_window in _walk(plan, False):
            _check(tree, in_window)


def trees(value: Any) -> Iterator[Tree]:
    """Every tree in a plan's JSON: the plan, the expressions of its operators, the plans of its subqueries."""
    if isinstance(value, list) and value and all(isinstance(v, dict) and "class" in v for v in value):
        yield parse(value)
        for item in value:
            for part in item.values():
                yield from trees(part)
    elif isinstance(value, list):
        for item in value:
            yield from trees(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from trees(item)


def _walk(tree: Tree, in_window: bool) -> Iterator[tuple[Tree, bool]]:
    yield tree, in_window
    for child in tree.children:
        yield from _walk(child, in_window or tree.name == "WindowExpression")


def _check(tree: Tree, in_window: bool) -> None:
    name = tree.name
    if name in _ANY_ROW and not in_window:
        _refuse(_ANY_ROW[name], "answers with whichever row comes first",
                "use min, max or max_by(value, order), or the function over a window with an ORDER BY")  # fmt: skip
    if name == "Mode" and tree.props.get("reverseOpt") is None:
        _refuse("mode", "may choose any of the most frequent values", "write mode(x, true): the smallest of them")
    if name in LISTS and in_window:
        _refuse(LISTS[name], "over a window lists rows in an order that ties leave open",
                "collect in a subquery with GROUP BY, where lists are sorted")  # fmt: skip
    if name in _SUMMARIES or (name.startswith(_SKETCHES) and "Agg" in name):
        _refuse(name, "builds a summary that depends on the order of the rows",
                "use the exact function, or approx_count_distinct")  # fmt: skip
    if name == "Aggregate" and (listing := _unordered_list(tree)) and _sorted_below(tree.children[0]):
        advice = f"sort_array({listing}(struct(order, value))) says the order; lists are otherwise sorted by value"
        _refuse(listing, "relies on the ORDER BY of a subquery, which a bag of rows does not keep", advice)


def _unordered_list(aggregate: Tree) -> str:
    for expr in aggregate.nested_list("aggregateExpressions"):
        for part in expr.walk():
            if part.name in LISTS and part.name != "CollectSet" and not part.props.get("orderExpressions"):
                return LISTS[part.name]
    return ""


def _sorted_below(tree: Tree) -> bool:
    while tree.name in _NEUTRAL:
        tree = tree.children[0]
    return tree.name == "Sort"


def _refuse(function: str, why: str, advice: str) -> None:
    raise QueryRefused("QUERY_NONDETERMINISTIC", f"{function} {why}", advice)

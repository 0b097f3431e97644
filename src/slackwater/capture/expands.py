"""Settles the order in which Spark writes out several DISTINCT aggregates.

Spark gives each DISTINCT argument a number (`gid`) in the order of a hash set, so the same query captured twice could
give two plans. Here columns, rows and numbers are put in the order of the columns that they read.

before:  Expand [t_b, t_a, gid] of [b, NULL, 1; NULL, a, 2]     … FILTER (WHERE gid = 2)
after:   Expand [t_a, t_b, gid] of [a, NULL, 1; NULL, b, 2]     … FILTER (WHERE gid = 1)

Precondition: the number is used only to group by and in `gid = constant`. Anything else leaves the plan as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_LAST = "~"


def settle_expands(plan: list[dict[str, Any]]) -> None:
    """Change a plan's JSON in place."""
    for node in plan:
        if _class(node) == "Expand" and node.get("projections"):
            at = _number_column(node)
            if at is not None:
                _settle(plan, node, at)
        for inner in nested_plans(node):
            settle_expands(inner)


def nested_plans(value: Any) -> Iterator[list[dict[str, Any]]]:
    """The plans of the scalar subqueries in a node's expressions, those inside other subqueries excepted."""
    if isinstance(value, list):
        for item in value:
            yield from nested_plans(item)
    elif isinstance(value, dict):
        if _class(value) == "ScalarSubquery":
            yield value["plan"]
        else:
            for item in value.values():
                yield from nested_plans(item)


def _class(node: dict[str, Any]) -> str:
    return str(node.get("class", "")).rsplit(".", 1)[-1]


def _number_column(expand: dict[str, Any]) -> int | None:
    """Where each row has a number of its own; None in an Expand of another origin, such as UNPIVOT … FOR gid."""
    for at, (attribute,) in enumerate(expand["output"]):
        cells = [row[at] for row in expand["projections"]]
        if attribute["name"] != "gid" or any(len(c) != 1 or _class(c[0]) != "Literal" for c in cells):
            continue
        if any(c[0]["dataType"] != "integer" for c in cells):
            continue
        if len({c[0]["value"] for c in cells}) == len(cells):
            return at
    return None


def _settle(plan: list[dict[str, Any]], expand: dict[str, Any], number: int) -> None:
    ident = expand["output"][number][0]["exprId"]["id"]
    compared = list(_comparisons(plan, ident))
    aggregates = [x for x in plan if _class(x) == "Aggregate" and _bare(x["groupingExpressions"], ident)]
    listed = sum(_bare(x[p], ident) for x in aggregates for p in ("groupingExpressions", "aggregateExpressions"))
    projected = sum(_bare(x["projectList"], ident) for x in plan if _class(x) == "Project")
    if not aggregates or _uses(plan, ident) != len(compared) + listed + projected + 1:
        return
    columns = sorted(range(len(expand["output"])), key=lambda i: (i == number, _column_key(expand, i)))
    rows = sorted(expand["projections"], key=lambda row: _row_key(row, columns, number))
    smallest = min(int(row[number][0]["value"]) for row in rows)
    renumbered = {row[number][0]["value"]: str(smallest + i) for i, row in enumerate(rows)}
    expand["output"] = [expand["output"][i] for i in columns]
    expand["projections"] = [[row[i] for i in columns] for row in rows]
    for literal in [row[-1][0] for row in expand["projections"]] + compared:
        literal["value"] = renumbered.get(literal["value"], literal["value"])
    places = {attribute["exprId"]["id"]: i for i, (attribute,) in enumerate(expand["output"])}
    for node in aggregates:
        for prop in ("groupingExpressions", "aggregateExpressions"):
            node[prop].sort(key=lambda e: places.get(e[0].get("exprId", {}).get("id"), len(places)))


def _lists(value: Any) -> Iterator[list[Any]]:
    """Every list anywhere in the plan's JSON; an expression is a list in prefix order."""
    if isinstance(value, list):
        yield value
        for item in value:
            yield from _lists(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _lists(item)


def _is(node: Any, ident: int) -> bool:
    return isinstance(node, dict) and _class(node) == "AttributeReference" and node["exprId"]["id"] == ident


def _uses(plan: list[dict[str, Any]], ident: int) -> int:
    return sum(_is(item, ident) for items in _lists(plan) for item in items)


def _comparisons(plan: list[dict[str, Any]], ident: int) -> Iterator[dict[str, Any]]:
    """The constants that the number is compared with."""
    for items in _lists(plan):
        for at in range(len(items) - 2):
            node, left, right = items[at : at + 3]
            if _is(left, ident) and _class(node) == "EqualTo" and _class(right) == "Literal":
                yield right


def _bare(exprs: list[list[dict[str, Any]]], ident: int) -> int:
    return sum(len(e) == 1 and _is(e[0], ident) for e in exprs)


def _column_key(expand: dict[str, Any], at: int) -> tuple[bool, str]:
    cells = {_signature(row[at]) for row in expand["projections"]}
    return (len(cells) > 1, min(cells))


def _row_key(row: list[list[dict[str, Any]]], columns: list[int], number: int) -> tuple[bool, list[str]]:
    plain = row[number][0]["value"] == "0"
    return (not plain, [_signature(row[i]) for i in columns if i != number])


def _signature(expr: list[dict[str, Any]]) -> str:
    """What an expression reads, in an order that does not depend on the session's past: a NULL sorts last."""
    if len(expr) == 1 and _class(expr[0]) == "Literal":
        return _LAST
    parts = []
    for node in expr:
        ident = node.get("exprId", {}).get("id", 0)
        parts.append(f"{_class(node)}:{node.get('name', '')}:{node.get('value', '')}:{ident:012d}")
    return " ".join(parts)

"""The order that Spark's hash sets give to several DISTINCT arguments does not reach a plan."""

from __future__ import annotations

import copy
from typing import Any

from slackwater.capture.expands import settle_expands

Json = dict[str, Any]


def attribute(name: str, ident: int) -> list[Json]:
    return [{"class": "x.AttributeReference", "num-children": 0, "name": name, "exprId": {"id": ident}}]


def literal(value: str | None) -> list[Json]:
    return [{"class": "x.Literal", "num-children": 0, "value": value, "dataType": "integer"}]


def plan(first: str, second: str) -> list[Json]:
    """count(DISTINCT a), count(DISTINCT b), with the arguments in either order."""
    ids = {"a": 11, "b": 12}
    source = {"a": attribute("sw_1_0", 1), "b": attribute("sw_1_1", 2)}
    order = [first, second]
    number = {name: str(i + 1) for i, name in enumerate(order)}
    rows = [[*(source[n] if n == mine else literal(None) for n in order), literal(number[mine])] for mine in order]
    output = [*(attribute(f"t.{n}", ids[n]) for n in order), attribute("gid", 20)]
    inner = [*(attribute(f"t.{n}", ids[n]) for n in order), attribute("gid", 20)]
    counts = [
        [{"class": "x.Alias"}, {"class": "x.Count"}, *attribute(f"t.{n}", ids[n]),
         {"class": "x.EqualTo"}, *attribute("gid", 20), *literal(number[n])]
        for n in ("a", "b")
    ]  # fmt: skip
    return [
        {"class": "x.Aggregate", "groupingExpressions": [], "aggregateExpressions": counts},
        {"class": "x.Aggregate", "groupingExpressions": inner, "aggregateExpressions": copy.deepcopy(inner)},
        {"class": "x.Expand", "projections": rows, "output": output},
    ]


def test_both_orders_become_one() -> None:
    forward, backward = plan("a", "b"), plan("b", "a")
    assert forward != backward
    settle_expands(forward)
    settle_expands(backward)
    assert forward == backward
    assert forward == plan("a", "b")


def test_a_number_that_is_used_otherwise_is_left_alone() -> None:
    strange = plan("b", "a")
    strange.insert(0, {"class": "x.Filter", "condition": [{"class": "x.GreaterThan"}, *attribute("gid", 20)]})
    before = copy.deepcopy(strange)
    settle_expands(strange)
    assert strange == before

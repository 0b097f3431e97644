"""What jobs have counted, as tables grow."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from slackwater.algebra.printer import node_key
from slackwater.execution.counted import Counted, numbers, whole
from slackwater.planning.choices import Choice, choices_from
from tests.unit.test_plain_rules import BELOW, CUSTOMERS, LINES, TOP


def test_counts_grow_with_the_tables_below_and_end_where_one_was_empty() -> None:
    counted = Counted()
    tables = {"lines": 1_000, "orders": 100, "customers": 10}
    counted.add({node_key(TOP): 500.0, node_key(BELOW): 80.0}, tables)
    assert counted.now(TOP, tables) == {node_key(TOP): 500.0, node_key(BELOW): 80.0}
    grown = counted.now(TOP, tables | {"orders": 200, "lines": 900})
    assert grown == {node_key(TOP): 1_000.0, node_key(BELOW): 160.0}, "more rows in one table, fewer in another"
    counted.add({node_key(BELOW): 0.0}, {"lines": 1_000, "orders": 0, "customers": 10})
    assert node_key(BELOW) not in counted.now(TOP, tables), "nothing is known of a table that was empty"
    assert node_key(BELOW) in counted.now(TOP, tables | {"orders": 0})


def test_counts_outlive_the_process_and_older_ones_say_nothing() -> None:
    counted = Counted()
    counted.add({node_key(LINES): 7.0}, {"lines": 10})
    again = Counted.from_json(counted.to_json())
    assert again.now(LINES, {"lines": 10}) == {node_key(LINES): 7.0}
    assert Counted.from_json({"observed": {node_key(LINES): 7.0}}).now(LINES, {"lines": 10}) == {}
    assert again.now(CUSTOMERS, {"lines": 10}) == {}


SPOILT = (None, "many", float("nan"), float("inf"), -1, -0.5, 1e300, 10**400, [1], {"a": 1})


@pytest.mark.parametrize("bad", SPOILT, ids=lambda bad: repr(bad)[:9])
def test_numbers_that_cannot_be_meant_are_not_known(bad: object) -> None:
    key = node_key(LINES)
    for options in (
        {"observed": {key: bad, "other": 3.0}, "observed_at": {key: {"lines": 10}}},
        {"observed": {key: 7.0}, "observed_at": {key: bad}},
        {"observed": {key: 7.0}, "observed_at": {key: {"lines": bad}}},
        {"observed": bad, "observed_at": bad},
    ):
        assert key not in Counted.from_json(options).now(LINES, {"lines": 10})
    assert whole({"a": bad, "b": 2.5}) == {"b": 2}
    assert numbers({"a": bad, "b": 2.5}, 0.02, 50.0) == {"b": 2.5}
    assert numbers({"a": 0.0, "b": 51.0}, 0.02, 50.0) == {}


@pytest.mark.parametrize("bad", SPOILT, ids=lambda bad: repr(bad)[:9])
def test_choices_that_are_spoilt_lose_their_numbers_and_no_more(bad: object) -> None:
    good = Choice("k", "a scan", True, "it helps", 10, -2.0, 0.5)
    assert choices_from([asdict(good)]) == (good,)
    assert choices_from([asdict(good), bad]) == (good,)
    assert choices_from(bad) == ()
    assert choices_from([asdict(good) | {"key": bad if not isinstance(bad, str) else None}]) == ()
    assert choices_from([asdict(good) | {"keep": bad}]) == ()
    for name in ("size", "saves", "build"):
        found = choices_from([asdict(good) | {name: bad, "unheard_of": 1}])
        meant = bad in (-1, -0.5) and name == "saves"
        assert found == (replace(good, **{name: bad if meant else 0}),)

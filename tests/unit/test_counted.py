"""What jobs have counted, as tables grow."""

from __future__ import annotations

from slackwater.algebra.printer import node_key
from slackwater.execution.counted import Counted
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

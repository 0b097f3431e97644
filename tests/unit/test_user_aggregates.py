"""The programs of user-defined aggregates, as text."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import col
from slackwater.algebra.printer import node_key
from slackwater.delta.environment import Change
from slackwater.delta.ways import ways
from slackwater.execution.program import INCREMENTAL, INITIAL, compile_program

SCAN = n.Scan("t", (n.Field("k", "string"), n.Field("v", "double")), (0, 1))


def plan(user: str) -> n.Aggregate:
    call = AggCall("m", "own", (col("v", "double"),), "double", user=user)
    return n.Aggregate(SCAN, (n.Item("k", col("k", "string")),), (call,))


@pytest.mark.parametrize("user", ["kept", "merge"])
def test_programs(golden: Callable[[str, str], None], user: str) -> None:
    node = plan(user)
    key = node_key(node)
    first = compile_program(node, INITIAL, {}, {}, frozenset({key}), {})
    next_one = compile_program(node, INCREMENTAL, {"t": Change(3, 1, 1000)}, {key: False}, frozenset({key}), {})
    golden(f"programs/user_aggregate_{user}.sql", f"{first.as_sql()}\n\n{next_one.as_sql()}")


def test_inserts_alone_touch_no_old_row_where_results_merge() -> None:
    key = node_key(plan("merge"))
    inserts = {"t": Change(3, 0, 1000)}
    program = compile_program(plan("merge"), INCREMENTAL, inserts, {key: False}, frozenset({key}), {})
    assert ("t", "new") not in program.scans
    redone = compile_program(plan("kept"), INCREMENTAL, inserts, {key: False}, frozenset({key}), {})
    assert ("t", "new") in redone.scans


def test_the_ways_of_user_defined_aggregates() -> None:
    assert (ways(plan("kept")).code, ways(plan("kept")).detail) == ("GROUPS_REDONE", "own")
    assert ways(plan("merge")).code == "PARTIALS_MERGE"

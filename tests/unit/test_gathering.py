"""Where the rows of a program are made: one task for little work, many for a large scan."""

from __future__ import annotations

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import call, col
from slackwater.algebra.gather import Gather
from slackwater.algebra.printer import node_key
from slackwater.delta.environment import Change
from slackwater.execution.program import INCREMENTAL, Program, compile_program

LEFT = n.Scan("small", (n.Field("a", "int"),), (0,))
RIGHT = n.Scan("large", (n.Field("b", "int"), n.Field("v", "bigint")), (0, 1))
JOIN = n.Join(LEFT, RIGHT, call("=", col("a", "int"), col("b", "int"), dtype="boolean"))
SUMS = n.Aggregate(JOIN, (n.Item("a", col("a", "int")),), (AggCall("s", "sum", (col("v", "bigint"),), "bigint"),))
TABLES = {"small": 1000, "large": 5_000_000}


def program(plan: n.Rel, changed: str, states: dict[str, bool], wanted: frozenset[str]) -> Program:
    rows = dict.fromkeys(states, 10)
    return compile_program(plan, INCREMENTAL, {changed: Change(5, 0, 1000)}, states, wanted, rows, TABLES)


def gathers(rel: n.Rel) -> list[Gather]:
    return [x for x in rel.walk() if isinstance(x, Gather)]


def test_a_large_scan_stays_spread_over_tasks() -> None:
    key = node_key(SUMS)
    made = program(SUMS, "small", {key: False}, frozenset({key}))
    (step,) = made.steps
    assert not gathers(step.rel), "the partial aggregate reads the large table and shuffles by itself"
    assert "COALESCE(1)" in made.as_sql(), "merging ten groups is one task"


def test_a_small_delta_is_one_task() -> None:
    key = node_key(SUMS)
    made = program(SUMS, "large", {key: False}, frozenset({key}))
    (step,) = made.steps
    assert [g.parallel for g in gathers(step.rel)] == [False]


def test_a_step_over_a_large_scan_is_moved_into_one_partition() -> None:
    above = n.Join(JOIN, n.Scan("third", (n.Field("c", "int"),), (0,)), None)
    key = node_key(JOIN)
    made = compile_program(
        above, INCREMENTAL, {"small": Change(5, 0, 1000), "third": Change(1, 0, 10)}, {key: False}, frozenset({key}),
        {key: 10}, {**TABLES, "third": 10},
    )  # fmt: skip
    (step,) = made.steps
    assert isinstance(step.rel, Gather)
    assert step.rel.parallel
    assert "REPARTITION(1)" in made.as_sql()


def test_without_sizes_nothing_is_gathered() -> None:
    key = node_key(SUMS)
    made = compile_program(SUMS, INCREMENTAL, {"large": Change(5, 0, 1000)}, {key: False}, frozenset({key}), {key: 10})
    assert "COALESCE(1)" not in made.as_sql()

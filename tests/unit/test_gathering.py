"""Where the rows of a program are made: one task for little work, many for a large scan."""

from __future__ import annotations

import pytest

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import call, col
from slackwater.algebra.gather import Gather, LocalJoin
from slackwater.algebra.joins import ANTI, SEMI, MatchJoin
from slackwater.algebra.lookups import KeyPair, LookupJoin, Probe
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
    assert {g.parallel for g in gathers(step.rel)} == {False}


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


def test_two_small_sides_meet_in_one_task() -> None:
    tables = {"small": 1000, "large": 50_000}
    made = compile_program(JOIN, INCREMENTAL, {"small": Change(5, 0, 1000)}, {}, frozenset(), {}, tables)
    assert made.root is not None
    (join,) = (x for x in made.root.walk() if isinstance(x, LocalJoin))
    assert all(isinstance(side, Gather) and not side.parallel for side in join.children)
    assert "SHUFFLE_HASH(l)" in made.as_sql()
    assert "BROADCAST" not in made.as_sql()


@pytest.mark.parametrize("kind", [SEMI, ANTI])
def test_matches_among_few_rows_are_looked_for_in_one_task(kind: str) -> None:
    tables = {"small": 1000, "large": 50_000}
    match = MatchJoin(LEFT, RIGHT, call("=", col("a", "int"), col("b", "int"), dtype="boolean"), kind)
    made = compile_program(match, INCREMENTAL, {"large": Change(5, 0, 1000)}, {}, frozenset(), {}, tables)
    assert "SHUFFLE_HASH(r)" in made.as_sql()
    assert "BROADCAST" not in made.as_sql()
    spread = compile_program(match, INCREMENTAL, {"large": Change(5, 0, 1000)}, {}, frozenset(), {}, TABLES)
    assert "BROADCAST(k)" in spread.as_sql(), "the changed keys are sent to the tasks that read the large table"


def test_a_small_side_is_sent_to_a_large_one() -> None:
    made = compile_program(JOIN, INCREMENTAL, {"small": Change(5, 0, 1000)}, {}, frozenset(), {}, TABLES)
    assert "BROADCAST(l)" in made.as_sql()
    assert "SHUFFLE_HASH" not in made.as_sql()


def test_what_is_not_looked_up_by_key_is_sent() -> None:
    less = n.Join(LEFT, RIGHT, call("<", col("a", "int"), col("b", "int"), dtype="boolean"))
    tables = {"small": 1000, "large": 50_000}
    made = compile_program(less, INCREMENTAL, {"small": Change(5, 0, 1000)}, {}, frozenset(), {}, tables)
    assert "BROADCAST(l)" in made.as_sql()


LOOKUP = LookupJoin(RIGHT, LEFT, call("=", col("b", "int"), col("a", "int"), dtype="boolean"),
                    pairs=(KeyPair(col("b", "int"), "a"),))  # fmt: skip


@pytest.mark.parametrize(("since", "hint"), [(1000, "SHUFFLE_HASH(r)"), (300_000, "BROADCAST(r)")])
def test_few_rows_that_came_since_an_index_was_made_are_hashed_beside_those_that_ask(since: int, hint: str) -> None:
    assert LOOKUP.index is not None
    key = node_key(LOOKUP.index)
    made = compile_program(LOOKUP, INCREMENTAL, {"large": Change(5, 0, 1000)}, {key: False}, frozenset({key}),
                           {key: 1_000_000}, TABLES, since={key: since})  # fmt: skip
    assert f"BROADCAST(i), {hint}" in made.as_sql()
    (probe,) = (x for x in (made.root.walk() if made.root is not None else ()) if isinstance(x, Probe))
    assert isinstance(probe.asking, Gather) == isinstance(probe.since, Gather) == probe.local

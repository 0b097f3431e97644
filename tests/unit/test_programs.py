"""What a compiled program says of itself."""

from __future__ import annotations

import pytest

from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import call, col, lit
from slackwater.algebra.joins import EXISTS, SEMI, MatchJoin
from slackwater.algebra.nodes import Aggregate, Field, Filter, Item, Opaque, Project, Rel, Scan
from slackwater.algebra.partials import carried_fields
from slackwater.algebra.printer import node_key
from slackwater.delta.environment import Change, Purpose
from slackwater.execution.program import INCREMENTAL, INITIAL, RECOMPUTE, compile_program
from slackwater.execution.render import render, shown
from tests.unit.test_plain_rules import CUSTOMERS, LINES


def test_a_recomputed_query_runs_as_it_would_in_spark_and_its_text_stays_as_it_is() -> None:
    text = "SELECT 'two\nlines' AS x FROM t"
    plan = Opaque(text, ("t",), (Field("q0", "string"),), "EXPRESSION_UNSUPPORTED", "no")
    for mode in (INITIAL, RECOMPUTE):
        program = compile_program(plan, mode, {}, {}, frozenset(), {}, {"t": 3})
        assert program.heavy
        assert program.root is not None
        assert text in render(program.root)
        with shown():
            assert (text in render(program.root)) is (mode == INITIAL), "for people, nesting shows"


def test_programs_with_flags_are_told_apart() -> None:
    same = call("=", col(LINES.names[0]), col(CUSTOMERS.names[0]), dtype="boolean")
    flagged = MatchJoin(LINES, CUSTOMERS, same, EXISTS, flag="there")
    plain = MatchJoin(LINES, CUSTOMERS, same, SEMI)
    found = [compile_program(x, INITIAL, {}, {}, frozenset(), {}).flags for x in (flagged, plain)]
    assert found == [True, False]


def collected(plan: Rel, *, few_groups: bool = True, deleted: int = 0, result_at_hand: bool = False) -> bool:
    """Whether the driver takes the partial rows of the plan's aggregate when lines come and go."""
    agg = next(x for x in plan.walk() if isinstance(x, Aggregate))
    key = node_key(agg)
    changes = {"lines": Change(5, deleted, 1000)}
    few = frozenset({key}) if few_groups else frozenset[str]()
    program = compile_program(plan, INCREMENTAL, changes, {key: False}, frozenset({key}), {key: 10}, {"lines": 1000},
                              few_groups=few, result_at_hand=result_at_hand)  # fmt: skip
    assert program.whole is (program.collected is not None and result_at_hand)
    if program.collected is None:
        assert [step.key for step in program.steps if step.purpose is not Purpose.SHARE] == [key]
        return False
    assert program.root is not None
    assert program.collected is agg
    assert program.root.names == (*plan.names, *(f.name for f in carried_fields(agg)))
    assert not program.steps, "there is one query"
    return True


def grouped(func: str = "sum", key: str = "bigint") -> Aggregate:
    rows = Scan("lines", (Field("k", key), Field("x", "bigint")), (0, 1))
    return Aggregate(rows, (Item("k", col("k", key)),), (AggCall("s", func, (col("x", "bigint"),), "bigint"),))


def test_the_driver_takes_the_partial_rows_of_a_small_aggregate() -> None:
    doubled = call("+", col("s", "bigint"), col("s", "bigint"), dtype="bigint")
    assert collected(grouped())
    assert collected(grouped(key="decimal(38,6)"), deleted=3)
    assert collected(Project(Project(grouped(), (Item("s", col("s", "bigint")),)), (Item("d", doubled),)))
    assert collected(grouped("max"))


def test_with_the_last_result_at_hand_it_asks_for_the_new_one_only() -> None:
    assert collected(grouped(), result_at_hand=True)
    assert collected(Project(grouped(), (Item("s", col("s", "bigint")),)), deleted=2, result_at_hand=True)
    assert not collected(grouped("max"), deleted=1, result_at_hand=True)


@pytest.mark.parametrize(
    ("plan", "known"),
    [
        pytest.param(grouped(), {"few_groups": False}, id="many groups"),
        pytest.param(grouped("max"), {"deleted": 1}, id="groups are redone"),
        pytest.param(grouped(key="timestamp"), {}, id="a type that does not come back as it went"),
        pytest.param(
            Filter(grouped(), call(">", col("s", "bigint"), lit(0), dtype="boolean")), {}, id="a filter loses groups"
        ),
    ],
)
def test_where_spark_keeps_them(plan: Rel, known: dict[str, int | bool]) -> None:
    assert not collected(plan, **known)

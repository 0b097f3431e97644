"""What a compiled program says of itself."""

from __future__ import annotations

from slackwater.algebra.expressions import call, col
from slackwater.algebra.joins import EXISTS, SEMI, MatchJoin
from slackwater.algebra.nodes import Field, Opaque
from slackwater.execution.program import INITIAL, RECOMPUTE, compile_program
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

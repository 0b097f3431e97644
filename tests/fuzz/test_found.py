"""What the fuzzer found, as small as it could be made."""

from __future__ import annotations

import pytest

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import col, lit
from slackwater.algebra.interpreter import Bag
from tests.fuzz.plan_cases import PlanCase
from tests.fuzz.plan_oracles import check

pytestmark = pytest.mark.fuzz

R = n.Scan("r", (n.Field("a", "int"), n.Field("b", "int"), n.Field("c", "string")), (0, 1, 2))


def case(plan: n.Rel, *history: dict[str, Bag], kept: int = 0, relation: str = "states") -> PlanCase:
    steps = len(history)
    return PlanCase(plan, history, (kept,) * steps, (0,) * steps, ("delta",) * steps, relation,
                    lit(True, dtype="boolean"), 0)  # fmt: skip


def test_a_row_that_comes_twice_counts_twice_in_bit_xor() -> None:
    """Equal rows of a delta are one entry of weight two: the interpreter's partial rows must see both."""
    plan = n.Aggregate(R, (), (AggCall("x", "bit_xor", (col("a", "int"),), "int"),))
    check(case(plan, {"r": Bag([((1, 0, "a"), 2)])}, {"r": Bag([((1, 0, "a"), 1)])}, kept=-1))

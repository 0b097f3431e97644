"""What a constant relation without rows makes empty is left out of a plan, and nothing else."""

from __future__ import annotations

import pytest

from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import call, col, lit
from slackwater.algebra.generate import Values
from slackwater.algebra.joins import ANTI, EXISTS, FULL, LEFT, RIGHT, SEMI, MatchJoin, OuterJoin
from slackwater.algebra.nodes import (
    Aggregate,
    Field,
    Filter,
    Item,
    Join,
    Project,
    Rel,
    Scan,
    SortKey,
    TopK,
    Union,
    pass_through,
)  # fmt: skip
from slackwater.algebra.windows import Window, WindowCall
from slackwater.capture.prune_empty import prune_empty


def scan(name: str) -> Scan:
    return Scan(name, (Field(f"{name}_a", "int"), Field(f"{name}_b", "int")), (0, 1))


def nothing(name: str) -> Values:
    return Values(scan(name).fields, ())


T, U, NONE = scan("t"), scan("u"), nothing("n")
A = col("n_a", "int")
SAME = call("=", col("t_a", "int"), A, dtype="boolean")


def counted(child: Rel, *groups: Item) -> Aggregate:
    return Aggregate(child, groups, (AggCall("rows", "count", (), "bigint"),))


@pytest.mark.parametrize(
    "plan",
    [
        Filter(NONE, call("=", A, lit(1), dtype="boolean")),
        Project(NONE, (Item("x", A),)),
        Join(T, NONE, None),
        Join(NONE, T, None),
        MatchJoin(T, NONE, SAME, SEMI),
        MatchJoin(NONE, T, SAME, ANTI),
        OuterJoin(NONE, T, SAME, LEFT),
        OuterJoin(T, NONE, SAME, RIGHT),
        counted(NONE, Item("n_a", A)),
        TopK(NONE, (SortKey(A, False, True),), 3),
        Window(NONE, (A,), (WindowCall("r", "rank", (), "int", (SortKey(A, False, True),)),)),
        Union((NONE, nothing("m")), NONE.fields),
    ],
)
def test_empty(plan: Rel) -> None:
    assert prune_empty(plan) == Values(plan.schema, ())


@pytest.mark.parametrize(
    "plan",
    [
        counted(NONE),
        OuterJoin(T, NONE, SAME, LEFT),
        OuterJoin(T, NONE, SAME, FULL),
        Join(T, U, None),
        Union((T, U), T.fields),
        Values(NONE.fields, ((lit(1, dtype="int"), lit(2, dtype="int")),)),
    ],
)
def test_what_may_have_rows_stays(plan: Rel) -> None:
    assert prune_empty(plan) == plan


def test_unions_keep_the_inputs_that_may_have_rows() -> None:
    fields = (Field("x", "int"), Field("y", "int"))
    assert prune_empty(Union((T, NONE, U), fields)) == Union((T, U), fields)
    kept = prune_empty(Union((NONE, T), fields))
    assert kept == Project(T, (Item("x", col("t_a", "int")), Item("y", col("t_b", "int"))))
    assert prune_empty(Union((Join(T, NONE, None), Join(U, T, None)), (*fields, *scan("z").fields))).names == (
        "x", "y", "z_a", "z_b",
    )  # fmt: skip


def test_nothing_matches_nothing() -> None:
    assert prune_empty(MatchJoin(T, NONE, SAME, ANTI)) == T
    flagged = prune_empty(MatchJoin(T, NONE, SAME, EXISTS, "there"))
    assert flagged == Project(T, (*pass_through(T.schema), Item("there", lit(False, dtype="boolean"))))

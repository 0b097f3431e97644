"""Aggregates that are there twice, under other names."""

from __future__ import annotations

import pytest

from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import Expr, call, col, lit
from slackwater.algebra.joins import SEMI, MatchJoin
from slackwater.algebra.nodes import Aggregate, Field, Filter, Item, Join, Project, Rel, Scan
from slackwater.algebra.printer import node_key
from slackwater.capture.equal_parts import with_equal_parts_once


def totals(mark: str, *, table: str = "lines", least: int = 0, func: str = "sum", order: str = "ov") -> Aggregate:
    fields = {"o": Field(f"o{mark}", "bigint"), "v": Field(f"v{mark}", "bigint")}
    rows = Scan(table, tuple(fields[c] for c in order), tuple("ov".index(c) for c in order))
    some = Filter(rows, call(">", col(f"v{mark}", "bigint"), lit(least, dtype="bigint"), dtype="boolean"))
    of = (col(f"v{mark}", "bigint"),)
    return Aggregate(some, (Item(f"o{mark}", col(f"o{mark}", "bigint")),), (AggCall(f"s{mark}", func, of, "bigint"),))


def joined(left: Rel, right: Rel) -> Join:
    same = call("=", col(left.names[0], "bigint"), col(right.names[0], "bigint"), dtype="boolean")
    return Join(left, right, same)


def aggregates(plan: Rel) -> list[str]:
    return [node_key(x) for x in plan.walk() if isinstance(x, Aggregate)]


def test_the_second_is_a_renaming_of_the_first() -> None:
    plan = joined(totals("1"), totals("2"))
    shared = with_equal_parts_once(plan)
    assert shared.schema == plan.schema
    assert len(set(aggregates(plan))) == 2
    assert len(set(aggregates(shared))) == 1
    second = shared.children[1]
    assert isinstance(second, Project)
    assert [(i.name, i.expr.column) for i in second.items] == [("o2", "o1"), ("s2", "s1")]


def test_the_largest_equal_parts_are_found_and_what_is_in_them() -> None:
    def twice(mark: str) -> Aggregate:
        pair = joined(totals(f"{mark}a"), totals(f"{mark}b"))
        return Aggregate(pair, (Item(f"g{mark}", col(f"s{mark}b", "bigint")),), ())

    shared = with_equal_parts_once(joined(twice("x"), twice("y")))
    assert len(set(aggregates(shared))) == 2
    assert len(aggregates(shared)) == 6, "the large one twice, with the small one twice in each"


@pytest.mark.parametrize(
    "other",
    [totals("2", table="others"), totals("2", least=1), totals("2", func="max"), totals("2", order="vo")],
    ids=["table", "filter", "function", "columns"],
)
def test_what_differs_stays_apart(other: Aggregate) -> None:
    plan = joined(totals("1"), other)
    assert with_equal_parts_once(plan) == plan


def test_the_same_columns_in_other_roles_are_not_the_same() -> None:
    rows = Scan("lines", (Field("a", "bigint"), Field("b", "bigint")), (0, 1))
    more = Scan("lines", (Field("c", "bigint"), Field("d", "bigint")), (0, 1))
    one = Aggregate(rows, (Item("x", col("a", "bigint")),), (AggCall("s", "sum", (col("b", "bigint"),), "bigint"),))
    two = Aggregate(more, (Item("y", col("d", "bigint")),), (AggCall("t", "sum", (col("c", "bigint"),), "bigint"),))
    plan = joined(one, two)
    assert with_equal_parts_once(plan) == plan


def test_what_stands_above_becomes_equal_too() -> None:
    """As where Spark pushes a semi join to both sides: what is kept of the aggregate is kept once as well."""

    def large(mark: str, name: str) -> Rel:
        named = Project(totals(mark), (Item("k", col(f"o{mark}", "bigint")), Item("t", col(f"s{mark}", "bigint"))))
        return Project(
            Filter(named, call(">", col("t", "bigint"), lit(9, dtype="bigint"), dtype="boolean")),
            (Item(name, col("k", "bigint")),),
        )

    left, right = (
        Scan("orders", (Field("p", "bigint"),), (0,)),
        Scan("lines", (Field("q", "bigint"),), (0,)),
    )

    def matched(rows: Rel, mark: str) -> MatchJoin:
        found = large(mark, "k2")
        same = call("=", col(rows.names[0], "bigint"), col("k2", "bigint"), dtype="boolean")
        return MatchJoin(rows, found, same, SEMI)

    shared = with_equal_parts_once(joined(matched(left, "1"), matched(right, "2")))
    rights = [x.right for x in shared.walk() if isinstance(x, MatchJoin)]
    assert len({node_key(x) for x in rights}) == 1


def test_an_expression_that_cannot_be_taken_apart_is_left_alone() -> None:
    def odd(mark: str) -> Aggregate:
        rows = Scan("lines", (Field(f"o{mark}", "bigint"),), (0,))
        strange = Expr("odd", (col(f"o{mark}", "bigint"),), "odd(something else)", "bigint")
        return Aggregate(rows, (Item(f"k{mark}", strange),), ())

    plan = joined(odd("1"), odd("2"))
    assert with_equal_parts_once(plan) == plan

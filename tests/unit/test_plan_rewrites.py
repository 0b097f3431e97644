"""Rewrites of plans where they would be wrong: each case is one that a rule took for its own once."""

from __future__ import annotations

import pytest

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import Expr, call, col, lit
from slackwater.algebra.interpreter import Bag, Catalogue, evaluate
from slackwater.algebra.joins import MatchJoin, OuterJoin
from slackwater.capture.equal_parts import with_equal_parts_once
from slackwater.planning.blind_aggregates import outer_joins_unseen
from slackwater.planning.grouped_first import group_first
from slackwater.planning.join_groups import keys_of
from slackwater.planning.join_order import order_joins
from slackwater.planning.match_lookups import matches_by_key
from slackwater.planning.narrowed_groups import narrow_groups

KEYS = {"city": (0,), "staff": (0,), "sale": ()}
ROWS = {
    "sale": [(1, 5, 1.5), (1, 7, 2.5), (2, 9, 0.5), (None, 4, 0.0)],
    "city": [(1, -0.0, "a"), (2, 1.0, "b")],
    "staff": [(1, 2, 9), (3, 1, 0), (4, 2, 0), (2, None, 0)],
}
COLUMNS = {"sale": ("int", "int", "double"), "city": ("int", "double", "string"), "staff": ("int", "int", "int")}


def unique(table: str) -> tuple[int, ...]:
    return KEYS[table]


def scan(table: str, prefix: str) -> n.Scan:
    fields = tuple(n.Field(f"{prefix}{i}", dtype) for i, dtype in enumerate(COLUMNS[table]))
    return n.Scan(table, fields, tuple(range(len(fields))))


def same(one: str, two: str) -> Expr:
    return call("=", col(one, "int"), col(two, "int"), dtype="boolean")


def number(value: int) -> Expr:
    return lit(value, dtype="int")


def groups(**types: str) -> tuple[n.Item, ...]:
    return tuple(n.Item(name, col(name, dtype)) for name, dtype in types.items())


def result(plan: n.Rel) -> list[tuple[object, ...]]:
    tables = {(table, ""): Bag([(row, 1) for row in rows]) for table, rows in ROWS.items()}
    return sorted(evaluate(plan, Catalogue(tables)).rows(), key=repr)


SALES, CITIES, STAFF = scan("sale", "s"), scan("city", "c"), scan("staff", "p")
TOTAL = (AggCall("v", "sum", (col("s1", "int"),), "bigint"),)
MORE = n.Item("y", call("+", col("s1", "int"), number(1), dtype="int"))
IN_CITY = n.Join(SALES, CITIES, same("s0", "c0"))


@pytest.mark.parametrize(
    "plan",
    [
        n.Aggregate(n.Project(IN_CITY, (*groups(c0="int", s1="int"), MORE)), groups(c0="int", y="int"), TOTAL),
        n.Aggregate(
            n.Project(IN_CITY, (*groups(c0="int"), MORE)),
            groups(c0="int"),
            (AggCall("v", "sum", (col("y", "int"),), "bigint"),),
        ),
        n.Aggregate(
            n.Aggregate(IN_CITY, (*groups(c0="int", c2="string"), n.Item("x", col("s1", "int"))), TOTAL),
            groups(c0="int", c2="string"),
            (AggCall("n", "count", (col("x", "int"),), "bigint"),),
        ),
        n.Aggregate(
            n.Join(SALES, CITIES, call("and", same("s0", "c0"),
                                       call(">", col("s1", "int"), number(6), dtype="boolean"), dtype="boolean")),
            groups(c0="int"), TOTAL,
        ),
    ],
    ids=["a computed group", "a computed argument", "groups of groups", "a condition of one side"],
)  # fmt: skip
def test_groups_are_made_first_of_the_same_rows(plan: n.Rel) -> None:
    assert result(group_first(plan, unique)) == result(plan)


def test_a_zero_that_is_grouped_by_loses_its_sign() -> None:
    plan = n.Aggregate(IN_CITY, groups(c0="int", c1="double"), TOTAL)
    city, zero, _ = result(group_first(plan, unique))[0]
    assert (city, str(zero)) == (1, "0.0")


def test_what_a_lookup_holds_together_is_not_multiplied() -> None:
    both = n.Join(n.Join(SALES, CITIES, same("s0", "c0")), STAFF, same("p1", "c0"))
    plan = n.Aggregate(both, groups(s0="int", p1="int", c2="string"), TOTAL)
    assert group_first(plan, unique) == plan


def test_only_one_of_two_equal_inputs_is_narrowed() -> None:
    def counted(prefix: str) -> n.Rel:
        made = (AggCall(f"{prefix}n", "count", (), "bigint"),)
        return n.Aggregate(scan("staff", prefix), groups(**{f"{prefix}1": "int"}), made)

    some = n.Filter(STAFF, call("=", col("p2", "int"), number(9), dtype="boolean"))
    plan = n.Join(n.Join(some, counted("a"), same("p0", "a1")), counted("b"), same("p1", "b1"))
    once = with_equal_parts_once(plan)
    found = narrow_groups(once, lambda _: 1.0, lambda _: 10.0, unique)
    assert found != once
    assert result(found) == result(plan)


def test_an_empty_table_is_not_few_rows_of_one() -> None:
    counted = n.Aggregate(SALES, groups(s0="int"), TOTAL)
    plan = n.Join(STAFF, counted, same("p0", "s0"))
    assert narrow_groups(plan, lambda _: 0.0, lambda _: 0.0, unique) == plan
    assert narrow_groups(plan, lambda _: 1.0, lambda _: 10.0, unique) != plan


def test_a_name_that_two_joins_hide_stays_two_columns() -> None:
    key = n.Project(CITIES, groups(c0="int"))
    once = MatchJoin(STAFF, key, same("p0", "c0"), "semi")
    plan = MatchJoin(once, key, same("p1", "c0"), "semi")
    joins = matches_by_key(plan, unique)
    assert not any(isinstance(x, MatchJoin) for x in joins.walk())
    assert result(order_joins(joins, lambda _: 1.0, lambda _: 1.0, unique)) == result(plan)


def test_a_key_goes_by_what_its_name_stands_for() -> None:
    assert keys_of(n.Project(CITIES, (n.Item("c0", number(1)), *groups(c2="string"))), unique) == ()
    renamed = n.Project(CITIES, (n.Item("id", col("c0", "int")), *groups(c2="string")))
    assert keys_of(renamed, unique) == (frozenset({"id"}),)


def test_sums_that_are_never_exact_are_not_computed_twice() -> None:
    def plan(column: str, dtype: str) -> n.Rel:
        sums = n.Aggregate(SALES, groups(s0="int"), (AggCall("t", "sum", (col(column, dtype),), dtype),))
        outer = OuterJoin(sums, STAFF, same("s0", "p0"), "left")
        return n.Aggregate(outer, groups(s0="int", t=dtype), (AggCall("k", "count", (col("p1", "int"),), "bigint"),))

    assert outer_joins_unseen(plan("s2", "double")) == plan("s2", "double")
    exact = plan("s1", "int")
    assert outer_joins_unseen(exact) != exact
    assert result(outer_joins_unseen(exact)) == result(exact)

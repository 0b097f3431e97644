"""The plain rules of `auto`: what will be read again is kept, and nothing else."""

from __future__ import annotations

import pytest

from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import call, col, lit
from slackwater.algebra.joins import MatchJoin
from slackwater.algebra.nodes import Aggregate, Field, Filter, Item, Join, Rel, Scan
from slackwater.algebra.printer import node_key
from slackwater.delta.environment import Change
from slackwater.execution.state_planning import Facts, plan_next, price_now
from slackwater.planning.cardinality import Expected
from slackwater.planning.costing import AtHand
from slackwater.planning.plain_rules import WORTH_A_COPY, plain_choice
from slackwater.planning.rates import Rates


def scan(table: str, *columns: str, filtered: bool = True) -> Rel:
    base = Scan(table, tuple(Field(c, "bigint") for c in columns), tuple(range(len(columns))))
    return Filter(base, call(">", col(columns[-1], "bigint"), lit(0), dtype="boolean")) if filtered else base


def joined(left: Rel, right: Rel, a: str, b: str) -> Join:
    return Join(left, right, call("=", col(a, "bigint"), col(b, "bigint"), dtype="boolean"))


LINES = scan("lines", "l_order", "l_price", filtered=False)
ORDERS = scan("orders", "o_key", "o_cust", "o_date")
CUSTOMERS = scan("customers", "c_key", "c_segment")
BELOW = joined(ORDERS, CUSTOMERS, "o_cust", "c_key")
TOP = joined(LINES, BELOW, "l_order", "o_key")
NARROW = {node_key(ORDERS): 0.1, node_key(CUSTOMERS): 0.2}


def total(func: str, child: Rel = TOP, dtype: str = "bigint") -> Aggregate:
    of = (col("l_price", dtype),)
    return Aggregate(child, (Item("o_cust", col("o_cust", "bigint")),), (AggCall("x", func, of, dtype),))


@pytest.mark.parametrize(
    ("changing", "kept"),
    [
        ({"lines"}, {node_key(BELOW)}),
        ({"customers"}, {node_key(ORDERS)}),
        ({"orders"}, {node_key(CUSTOMERS)}),
        ({"lines", "orders", "customers"}, {node_key(BELOW), node_key(ORDERS), node_key(CUSTOMERS)}),
        (set(), set()),
    ],
)
def test_an_input_is_kept_where_the_other_one_changes(changing: set[str], kept: set[str]) -> None:
    assert plain_choice(TOP, changing, NARROW) == kept


def test_the_tables_own_files_serve_for_what_a_filter_hardly_thins_out() -> None:
    wide = {node_key(ORDERS): WORTH_A_COPY + 0.01, node_key(CUSTOMERS): 1.0}
    assert plain_choice(BELOW, {"orders", "customers"}, wide) == frozenset()
    assert plain_choice(BELOW, {"orders", "customers"}, {}) == frozenset(), "nothing is known of the filter"


def test_aggregates_keep_partial_rows_or_else_what_they_redo() -> None:
    merging, redone = total("sum"), total("corr", dtype="double")
    assert node_key(merging) in plain_choice(merging, {"lines"}, NARROW)
    chosen = plain_choice(redone, {"lines"}, NARROW)
    assert node_key(redone) not in chosen
    assert node_key(TOP) in chosen


def test_a_side_in_which_matches_are_looked_for_is_kept_when_it_changes_itself() -> None:
    anti = MatchJoin(CUSTOMERS, ORDERS, call("=", col("o_cust", "bigint"), col("c_key", "bigint")), "anti")
    assert plain_choice(anti, {"orders"}, NARROW) == {node_key(ORDERS), node_key(CUSTOMERS)}
    assert plain_choice(anti, {"customers"}, NARROW) == {node_key(ORDERS)}


def test_auto_goes_by_these_rules_within_the_budget() -> None:
    rows = {"lines": 6_000_000, "orders": 1_500_000, "customers": 150_000}
    facts = Facts(total("sum"), rows, {}, NARROW, lambda t: () if t == "lines" else (0,), {}, Rates())
    coming = {t: Expected(0.01 * n) for t, n in rows.items()}
    plan = plan_next(facts, "auto", 10**12, coming, AtHand())
    assert plan.kept == plain_choice(facts.plan, coming, NARROW)
    tight = plan_next(facts, "auto", plan.size - 1, coming, AtHand())
    assert tight.size <= plan.size - 1
    assert tight.kept < plan.kept
    assert not plan_next(facts, "auto", 0, coming, AtHand()).kept
    # What it costs is known all the same, for the report.
    assert price_now(facts, {"lines": Change(60_000, 0, 6_000_000)}, plan.kept).incremental > 0

"""The plain rules of `plain`: what will be read again is kept, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import call, col, lit
from slackwater.algebra.joins import MatchJoin
from slackwater.algebra.lookups import LookupJoin
from slackwater.algebra.nodes import Aggregate, Field, Filter, Item, Join, Project, Rel, Scan, SortKey, TopK
from slackwater.algebra.printer import node_key
from slackwater.delta.environment import Change
from slackwater.execution.state_planning import Facts, plan_next, price_now
from slackwater.planning.cardinality import Expected
from slackwater.planning.costing import AtHand
from slackwater.planning.lookups import with_lookups
from slackwater.planning.plain_rules import MANY, WORTH_A_COPY, plain_choice
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


def kept_by_rule(plan: Rel, changing: Iterable[str], shares: Mapping[str, float], rows: float = 0.0,
                 deletes: float = 0.0) -> frozenset[str]:  # fmt: skip
    return plain_choice(plan, {t: Expected(1.0, deletes) for t in changing}, shares, lambda _: rows)


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
    assert kept_by_rule(TOP, changing, NARROW) == kept


def test_the_tables_own_files_serve_for_what_a_filter_hardly_thins_out() -> None:
    wide = {node_key(ORDERS): WORTH_A_COPY + 0.01, node_key(CUSTOMERS): 1.0}
    assert kept_by_rule(BELOW, {"orders", "customers"}, wide) == frozenset()
    assert kept_by_rule(BELOW, {"orders", "customers"}, {}) == frozenset(), "nothing is known of the filter"


def test_aggregates_keep_partial_rows_or_else_what_they_redo() -> None:
    merging, redone, kept = total("sum"), total("listagg", dtype="string"), total("corr", dtype="double")
    assert node_key(merging) in kept_by_rule(merging, {"lines"}, NARROW)
    assert node_key(TOP) not in kept_by_rule(merging, {"lines"}, NARROW)
    chosen = kept_by_rule(redone, {"lines"}, NARROW)
    assert node_key(redone) not in chosen
    assert node_key(TOP) in chosen
    assert {node_key(kept), node_key(TOP)} <= kept_by_rule(kept, {"lines"}, NARROW), "its last results, and its input"


def test_a_side_in_which_matches_are_looked_for_is_kept_when_it_changes_itself() -> None:
    anti = MatchJoin(CUSTOMERS, ORDERS, call("=", col("o_cust", "bigint"), col("c_key", "bigint")), "anti")
    assert kept_by_rule(anti, {"orders"}, NARROW) == {node_key(ORDERS), node_key(CUSTOMERS)}
    assert kept_by_rule(anti, {"customers"}, NARROW) == {node_key(ORDERS)}


def test_what_waits_is_kept_of_a_side_with_many_rows() -> None:
    looked_up = with_lookups(TOP, lambda t: () if t == "lines" else (0,), lambda _: 1.0)
    assert isinstance(looked_up, LookupJoin)
    everything = {"lines", "orders", "customers"}
    few = kept_by_rule(looked_up, everything, NARROW)
    many = kept_by_rule(looked_up, everything, NARROW, rows=MANY + 1)
    assert few == {node_key(BELOW), node_key(ORDERS), node_key(CUSTOMERS)}
    inside = looked_up.looked_up
    assert isinstance(inside, LookupJoin)
    assert looked_up.index is not None
    assert inside.index is not None
    indexes = {node_key(looked_up.index), node_key(inside.index)}
    assert many == {node_key(looked_up.waiting), node_key(inside.waiting)} | indexes
    lines = kept_by_rule(looked_up, {"lines"}, NARROW, rows=MANY + 1)
    assert lines == {node_key(looked_up.index)}, "no match will come"
    deleted = kept_by_rule(looked_up, everything, NARROW, rows=MANY + 1, deletes=0.1)
    assert deleted == {node_key(ORDERS)} | indexes, "what waits would not last"
    huge = kept_by_rule(looked_up, {"lines"}, NARROW, rows=10**9)
    assert huge == {node_key(BELOW)}, "too much for an index"


def test_an_ordering_reads_what_its_aggregate_keeps() -> None:
    top = TopK(Project(total("sum"), (Item("x", col("x", "bigint")),)), (SortKey(col("x", "bigint"), True, False),), 3)
    assert node_key(top.child) not in kept_by_rule(top, {"lines"}, NARROW)
    redone = TopK(total("corr", dtype="double"), (SortKey(col("x", "double"), True, False),), 3)
    assert node_key(redone.child) in kept_by_rule(redone, {"lines"}, NARROW)


def test_plain_goes_by_these_rules_within_the_budget() -> None:
    rows = {"lines": 6_000_000, "orders": 1_500_000, "customers": 150_000}
    facts = Facts(total("sum"), rows, {}, NARROW, lambda t: () if t == "lines" else (0,), {}, Rates())
    coming = {t: Expected(0.01 * n) for t, n in rows.items()}
    plan = plan_next(facts, "plain", 10**12, coming, AtHand())
    assert plan.kept == plain_choice(facts.plan, coming, NARROW, lambda _: 0.0)
    tight = plan_next(facts, "plain", plan.size - 1, coming, AtHand())
    assert tight.size <= plan.size - 1
    assert tight.kept < plan.kept
    assert not plan_next(facts, "plain", 0, coming, AtHand()).kept
    # What it costs is known all the same, for the report.
    assert price_now(facts, {"lines": Change(60_000, 0, 6_000_000)}, plan.kept).incremental > 0

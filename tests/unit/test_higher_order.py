"""Higher-order maintenance: which joins it keeps, what it refuses, and how it fits the other strategies."""

from __future__ import annotations

import pytest

from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import call, col, lit
from slackwater.algebra.multi_join import MultiJoin
from slackwater.algebra.nodes import Aggregate, Field, Filter, Item, Join, Project, Rel, Scan
from slackwater.algebra.printer import node_key
from slackwater.delta.environment import Change
from slackwater.errors import ViewError
from slackwater.execution.plan_shape import with_views
from slackwater.execution.program import INCREMENTAL, INITIAL, compile_program
from slackwater.execution.state_planning import Facts, plan_next, price_now
from slackwater.planning.cardinality import Expected
from slackwater.planning.costing import AtHand
from slackwater.planning.higher_order import MOST_VIEWS, higher_order
from slackwater.planning.rates import Rates

ROWS = {"lineitem": 6_000_000, "orders": 1_500_000, "customer": 150_000}


def scan(table: str, *columns: str) -> Rel:
    return Scan(table, tuple(Field(c, "bigint") for c in columns), tuple(range(len(columns))))


def equal(a: str, b: str) -> object:
    return call("=", col(a, "bigint"), col(b, "bigint"), dtype="boolean")


def q3() -> Rel:
    customer = Filter(scan("customer", "c_key", "c_segment"), call("=", col("c_segment", "bigint"), lit(1)))
    joined = Join(customer, scan("orders", "o_key", "o_cust", "o_date"), equal("c_key", "o_cust"))
    joined = Join(joined, scan("lineitem", "l_order", "l_price"), equal("o_key", "l_order"))
    joined = Project(joined, tuple(Item(c, col(c, "bigint")) for c in ("o_date", "l_price")))
    total = AggCall("revenue", "sum", (col("l_price", "bigint"),), "bigint")
    return Aggregate(joined, (Item("o_date", col("o_date", "bigint")),), (total,))


def star(rays: int) -> Rel:
    joined = scan("hub", *(f"h{i}" for i in range(rays)))
    for i in range(rays):
        joined = Join(joined, scan(f"ray{i}", f"r{i}"), equal(f"h{i}", f"r{i}"))
    return joined


def the_join(plan: Rel) -> MultiJoin:
    (found,) = [x for x in plan.walk() if isinstance(x, MultiJoin) and x.kept]
    return found


def tables(plan: Rel) -> set[str]:
    joined = the_join(plan)
    return {"+".join(sorted(s.table for s in v.walk() if isinstance(s, Scan))) for v in joined.views}


def test_q3_keeps_what_dbtoaster_keeps() -> None:
    kept = tables(higher_order(q3(), ROWS))
    assert kept == {"lineitem", "orders", "customer", "lineitem+orders", "customer+orders"}


def test_what_cannot_change_needs_no_views() -> None:
    assert tables(higher_order(q3(), {"lineitem"})) == {"customer+orders"}
    assert tables(higher_order(q3(), {"customer"})) == {"lineitem+orders"}
    assert tables(higher_order(q3(), {"orders"})) == {"lineitem", "customer"}, "and never their cross product"
    assert not any(isinstance(x, MultiJoin) and x.kept for x in higher_order(q3(), ()).walk())


def test_a_part_has_the_columns_that_the_rest_asks_of_it() -> None:
    joined = the_join(higher_order(q3(), ROWS))
    columns = {frozenset(s.table for s in v.walk() if isinstance(s, Scan)): set(v.names) for v in joined.views}
    assert columns[frozenset(("orders", "customer"))] == {"o_key", "o_date"}
    assert columns[frozenset(("orders", "lineitem"))] == {"o_cust", "o_date", "l_price"}


def test_a_star_has_a_view_for_each_subset_and_is_refused_when_they_are_too_many() -> None:
    plan = star(5)
    everything = [x.table for x in plan.walk() if isinstance(x, Scan)]
    assert len(the_join(higher_order(plan, everything)).kept) == 2**5 - 1 + 5
    with pytest.raises(ViewError, match=f"more than {MOST_VIEWS} views") as error:
        with_views(star(12), [x.table for x in star(12).walk() if isinstance(x, Scan)])
    assert error.value.code == "HIGHER_ORDER_TOO_LARGE"
    assert the_join(higher_order(star(12), ["hub", "ray1"])).kept, "twelve tables of which two change are no trouble"


def test_all_views_or_none() -> None:
    plan = higher_order(q3(), ROWS)
    facts = Facts(plan, ROWS, {}, {}, lambda t: () if t == "lineitem" else (0,), {}, Rates())
    coming = {t: Expected(0.01 * n) for t, n in ROWS.items()}
    planned = plan_next(facts, "higher_order", 10**12, coming, AtHand())
    joined = the_join(plan)
    assert planned.kept == {node_key(x) for x in (plan, *joined.views)}
    assert planned.size == sum(c.size for c in planned.choices)
    assert all(c.size > 0 for c in planned.choices)
    assert 0 < planned.seconds < planned.nothing
    assert not plan_next(facts, "higher_order", planned.size - 1, coming, AtHand()).kept
    assert price_now(facts, {"orders": Change(100, 5, 1_500_000)}, planned.kept).incremental > 0


def test_a_change_of_one_table_meets_one_kept_join() -> None:
    plan = higher_order(q3(), ROWS)
    wanted = frozenset(node_key(x) for x in (plan, *the_join(plan).views))
    first = compile_program(plan, INITIAL, {}, {}, wanted, {})
    assert {s.key for s in first.steps if s.key} == wanted, "the first run builds them all"
    change = {"lineitem": Change(10, 0, 1000)}
    program = compile_program(plan, INCREMENTAL, change, dict.fromkeys(wanted, False), wanted, {})
    assert program.scans == {("lineitem", "delta")}, "no table is read"
    orders_customer = next(node_key(v) for v in the_join(plan).views if v.names == ("o_key", "o_date"))
    assert f"state_{orders_customer}" in program.inputs
    appended = {s.key for s in program.steps if s.key}
    touched = {node_key(x) for x in (plan, *the_join(plan).views)
               if any(isinstance(s, Scan) and s.table == "lineitem" for s in x.walk())}  # fmt: skip
    assert appended == touched, "every view with line items grows, and no other"

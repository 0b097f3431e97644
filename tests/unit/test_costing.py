"""Prices: which states a forecast makes worth keeping, on plans small enough to reason about."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import Expr, call, col, lit
from slackwater.algebra.generate import Values
from slackwater.algebra.joins import ANTI, SEMI, MatchJoin
from slackwater.algebra.nodes import Aggregate, Field, Filter, Item, Join, Project, Rel, Scan, TopK
from slackwater.algebra.printer import node_key
from slackwater.delta.environment import Change
from slackwater.execution.state_planning import Facts, learned, passing_by, plan_next, price_now
from slackwater.planning.cardinality import Cardinalities, Expected, touched_groups
from slackwater.planning.costing import AtHand, Pricing, price_of
from slackwater.planning.memo import Demand
from slackwater.planning.rates import Rates
from slackwater.planning.strategies import STRATEGIES, plan_states

ROWS = {"lineitem": 6_000_000.0, "orders": 1_500_000.0, "customer": 150_000.0}
RATES = Rates()
CHEAP_WRITES = replace(RATES, write=1e-9, step=0.001, append=0.001, state_row=1e-8)


def scan(table: str, *columns: str) -> Rel:
    """A scan below a filter, as a join's input usually is."""
    base = Scan(table, tuple(Field(c, "bigint") for c in columns), tuple(range(len(columns))))
    return Filter(base, call(">", col(columns[-1], "bigint"), lit(0), dtype="boolean"))


def joined(left: Rel, right: Rel, a: str, b: str) -> Join:
    return Join(left, right, call("=", col(a, "bigint"), col(b, "bigint"), dtype="boolean"))


ORDERS = scan("orders", "o_key", "o_cust", "o_date")
CUSTOMERS = scan("customer", "c_key", "c_segment")
LINES = scan("lineitem", "l_order", "l_price")
BELOW = joined(ORDERS, CUSTOMERS, "o_cust", "c_key")
TOP = joined(LINES, BELOW, "l_order", "o_key")
SHARES = {node_key(ORDERS): 0.5, node_key(CUSTOMERS): 0.2, node_key(LINES): 0.5}


def unique(table: str) -> tuple[int, ...]:
    return () if table == "lineitem" else (0,)


def cardinalities(**expected: float) -> Cardinalities:
    return Cardinalities(ROWS, {t: Expected(n) for t, n in expected.items()}, {}, SHARES, unique)


def kept(plan: Rel, rates: Rates, budget: float = 1e12, **expected: float) -> set[str]:
    root = Pricing(cardinalities(**expected), rates, AtHand()).root(plan, by_delta=True)
    return set(plan_states(root, "auto", budget).kept)


def test_a_delta_on_one_side_keeps_what_the_other_side_offers() -> None:
    assert kept(TOP, CHEAP_WRITES, lineitem=60_000) == {node_key(BELOW)}


def test_a_delta_deep_below_keeps_what_it_will_meet_on_its_way_up() -> None:
    assert kept(TOP, CHEAP_WRITES, customer=1_500) == {node_key(ORDERS), node_key(LINES)}


def test_what_costs_more_to_copy_than_to_read_again_is_not_kept() -> None:
    assert node_key(LINES) not in kept(TOP, RATES, customer=1_500)


def test_no_delta_and_no_budget_keep_nothing() -> None:
    assert kept(TOP, CHEAP_WRITES) == set()
    assert kept(TOP, CHEAP_WRITES, budget=0, lineitem=60_000) == set()


def test_more_memory_never_costs_more() -> None:
    root = Pricing(cardinalities(lineitem=60_000, orders=15_000, customer=1_500), CHEAP_WRITES, AtHand()).root(
        TOP, by_delta=True
    )
    costs = [plan_states(root, "auto", budget) for budget in (0, 10**6, 10**7, 10**8, 10**9, 10**10)]
    totals = [p.seconds + p.build for p in costs]
    assert totals == sorted(totals, reverse=True)
    assert totals[-1] < totals[0]
    assert all(p.size <= b for p, b in zip(costs, (0, 10**6, 10**7, 10**8, 10**9, 10**10), strict=True))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("budget", [0, 10_000_000, 200_000_000, 10**12])
def test_every_strategy_stays_within_the_budget_and_says_why(strategy: str, budget: int) -> None:
    root = Pricing(cardinalities(lineitem=60_000, customer=1_500), RATES, AtHand()).root(TOP, by_delta=True)
    plan = plan_states(root, strategy, budget)
    assert plan.size <= budget
    assert all(c.reason for c in plan.choices)
    best = plan_states(root, "auto", budget)
    assert best.seconds + best.build <= plan.seconds + plan.build + 1e-12
    if strategy == "rebatch":
        assert not plan.kept
    if strategy == "incremental" and budget == 10**12:
        assert plan.kept == {c.key for c in plan.choices}


def test_a_state_that_is_there_costs_nothing_to_build() -> None:
    cards = cardinalities(lineitem=60_000)
    absent = plan_states(Pricing(cards, RATES, AtHand()).root(TOP, by_delta=True), "incremental", 1e12)
    there = AtHand(absent.kept, everything=False)
    present = plan_states(Pricing(cards, RATES, there).root(TOP, by_delta=True), "incremental", 1e12)
    assert absent.build > 0
    assert present.build == 0


def test_building_while_only_a_delta_passes_by_costs_the_whole_computation() -> None:
    cards = cardinalities(lineitem=60_000)
    passing = Pricing(cards, RATES, AtHand(everything=True)).root(TOP, by_delta=True)
    alone = Pricing(cards, RATES, AtHand(everything=False)).root(TOP, by_delta=True)
    states = frozenset((node_key(BELOW),))
    assert alone.price(states) - alone.price(states, building=False) > passing.price(states) - passing.price(
        states, building=False
    )


def test_what_the_run_computes_anyway_costs_only_the_writing() -> None:
    cards = cardinalities(lineitem=60_000)
    state = node_key(BELOW)

    def build(at_hand: AtHand) -> float:
        plan = plan_states(Pricing(cards, RATES, at_hand).root(TOP, by_delta=True), "incremental", 1e12)
        return next(c.build for c in plan.choices if c.key == state)

    in_passing = build(AtHand(everything=False, passing=frozenset((state,))))
    assert in_passing == build(AtHand(everything=True)) < build(AtHand(everything=False))


def test_a_state_that_serves_long_may_cost_more_to_build() -> None:
    cards = cardinalities(customer=1_500)
    once, often = (
        plan_states(Pricing(cards, RATES, AtHand(serves=n)).root(TOP, by_delta=True), "auto", 1e12) for n in (1, 50)
    )
    assert once.kept < often.kept
    assert often.seconds < once.seconds
    assert often.build > once.build, "what it costs now is told in full"


def totals(child: Rel, func: str) -> Aggregate:
    return Aggregate(child, (Item("o_cust", col("o_cust", "bigint")),),
                     (AggCall(f"{func}_x", func, (col("l_price", "bigint"),), "bigint"),))  # fmt: skip


def test_deletes_make_a_maximum_dearer_than_a_sum() -> None:
    def cost(func: str, deletes: float) -> float:
        plan = totals(TOP, func)
        cards = Cardinalities(ROWS, {"lineitem": Expected(6_000, deletes)}, {}, SHARES, unique)
        return (
            Pricing(cards, RATES, AtHand())
            .root(plan, by_delta=True)
            .price(frozenset((node_key(plan), node_key(BELOW))), building=False)
        )

    assert cost("max", 0.0) == cost("sum", 0.0)
    assert cost("max", 0.5) > cost("max", 0.0)
    assert cost("sum", 0.5) == cost("sum", 0.0)


def test_tables_that_lost_rows_are_dearer_to_read() -> None:
    """Their files hold these rows still; what is kept of them, and their changes, cost what they did."""

    def cost(dead: frozenset[str], keep: frozenset[str]) -> float:
        cards = Cardinalities(ROWS, {"lineitem": Expected(6_000)}, {}, SHARES, unique, dead)
        return Pricing(cards, RATES, AtHand()).root(TOP, by_delta=True).price(keep, building=False)

    orders, lines, nothing = frozenset({"orders"}), frozenset({"lineitem"}), frozenset[str]()
    assert cost(orders, nothing) > cost(nothing, nothing) + RATES.probe * ROWS["orders"] * 0.9
    assert cost(orders, frozenset({node_key(BELOW)})) == cost(nothing, frozenset({node_key(BELOW)}))
    assert cost(lines, nothing) == cost(nothing, nothing)


def test_an_ordered_result_is_compared_and_its_input_can_be_kept() -> None:
    plan = TopK(totals(TOP, "sum"), (), 10)
    root = Pricing(cardinalities(lineitem=6_000), RATES, AtHand()).root(plan, by_delta=False)
    chosen = plan_states(root, "auto", 1e12)
    assert node_key(plan.child) in chosen.kept


def test_rows_that_are_taken_back_make_a_copy_of_what_is_ordered_dearer() -> None:
    wide = Project(LINES, tuple(Item(f"c{i}", col("l_price", "bigint")) for i in range(12)))

    def read(rel: Rel, deletes: float) -> float:
        """The next refresh of the first rows in order, with all of them kept."""
        cards = Cardinalities(ROWS, {"lineitem": Expected(100, deletes)}, {}, SHARES, unique)
        root = Pricing(cards, RATES, AtHand()).root(TopK(rel, (), 10), by_delta=False)
        return root.price(frozenset({node_key(rel)}), building=False)

    assert read(LINES, 0.5) > read(LINES, 0.0)
    assert read(wide, 0.5) - read(wide, 0.0) > 2 * (read(LINES, 0.5) - read(LINES, 0.0))


def test_observed_rows_replace_estimates() -> None:
    guess = cardinalities(lineitem=60_000)
    told = Cardinalities(ROWS, {"lineitem": Expected(60_000)}, {node_key(TOP): 1_000.0}, SHARES, unique)
    assert told.of(TOP).full == 1_000
    assert told.of(TOP).delta < guess.of(TOP).delta
    assert told.of(TOP).touched


def test_a_semi_join_has_no_more_rows_than_it_has_pairs() -> None:
    """Orders of which a handful qualify: what stands above them is small, and worth keeping."""
    few = scan("orders", "q_key", "q_total")
    same = call("=", col("l_order", "bigint"), col("q_key", "bigint"), dtype="boolean")
    semi, anti = MatchJoin(LINES, few, same, SEMI), MatchJoin(LINES, few, same, ANTI)
    told = Cardinalities(ROWS, {"lineitem": Expected(60_000)}, {node_key(few): 57.0}, SHARES, unique)
    assert told.of(semi).full < 1_000
    assert told.of(semi).touched
    assert told.of(anti).full == told.of(LINES).full, "all the others"
    reversed_ = MatchJoin(few, LINES, same, SEMI)
    assert told.of(reversed_).full <= 57


def test_a_side_that_is_asked_for_its_matches_cannot_be_sent() -> None:
    same = call("=", col("c_key", "bigint"), col("l_order", "bigint"), dtype="boolean")
    small_asks, large_asks = MatchJoin(CUSTOMERS, LINES, same, SEMI), MatchJoin(LINES, CUSTOMERS, same, SEMI)
    pricing = Pricing(cardinalities(), RATES, AtHand())
    assert price_of(pricing, small_asks, Demand.NEW) > 2 * price_of(pricing, large_asks, Demand.NEW)


def test_the_newest_files_of_a_table_that_changes_have_to_be_opened() -> None:
    table = ORDERS.children[0]
    changing = Pricing(cardinalities(orders=1.0), RATES, AtHand())
    steady = Pricing(cardinalities(), RATES, AtHand())
    opened = price_of(changing, table, Demand.NEW) - price_of(changing, table, Demand.OLD)
    assert opened > RATES.step / 4
    assert price_of(steady, table, Demand.NEW) == price_of(steady, table, Demand.OLD)


def test_texts_that_are_compared_with_patterns_are_kept() -> None:
    """To read them again means to compare them again, which costs more than all else."""
    notes = Scan("orders", (Field("o_key", "bigint"), Field("o_note", "string")), (0, 1))
    plain = Filter(notes, call("=", col("o_note", "string"), lit("x", dtype="string"), dtype="boolean"))
    texts = (col("o_note", "string"), lit("%x%y%", dtype="string"))
    pattern = Filter(notes, Expr("like", texts, "(`o_note` LIKE '%x%y%')", "boolean"))
    pricing = Pricing(cardinalities(), RATES, AtHand())
    more = price_of(pricing, pattern, Demand.NEW) - price_of(pricing, plain, Demand.NEW)
    assert more == pytest.approx(RATES.pattern * ROWS["orders"])
    chosen = [kept(joined(LINES, side, "l_order", "o_key"), RATES, lineitem=6_000) for side in (plain, pattern)]
    assert [node_key(side) in found for side, found in zip((plain, pattern), chosen, strict=True)] == [False, True]


@pytest.mark.parametrize(("groups", "changed"), [(1, 100), (100, 1), (1_000_000, 60_000), (10, 10), (0, 5), (5, 0)])
def test_touched_groups_are_no_more_than_there_are(groups: float, changed: float) -> None:
    assert 0 <= touched_groups(groups, changed) <= min(groups, changed)


# --- what a refresh asks -----------------------------------------------------------------------------------------


def facts(rows: dict[str, int], plan: Rel = TOP) -> Facts:
    return Facts(plan, rows, {}, SHARES, unique, {}, RATES)


def test_a_small_delta_is_cheaper_than_a_recompute_and_a_large_one_is_not() -> None:
    rows = {t: int(n) for t, n in ROWS.items()}
    states = frozenset((node_key(BELOW),))
    small = price_now(facts(rows), {"lineitem": Change(6_000, 0, 6_000_000)}, states)
    most = {t: Change(int(n * 0.9), 0, int(n * 0.1)) for t, n in ROWS.items()}
    large = price_now(facts(rows), most, frozenset())
    assert small.incremental < small.recompute
    assert large.incremental >= large.recompute
    assert not small.quick


def test_new_lines_read_what_they_meet_and_nothing_else() -> None:
    rows = {t: int(n) for t, n in ROWS.items()}
    read = passing_by(facts(rows), {"lineitem": Change(6_000, 0, 6_000_000)}, frozenset())
    assert node_key(BELOW) in read
    assert node_key(ORDERS) in read
    assert node_key(LINES) not in read
    assert not passing_by(facts(rows), {"lineitem": Change(6_000, 0, 6_000_000)}, frozenset((node_key(BELOW),)))


def test_prices_say_nothing_about_tiny_tables() -> None:
    tiny = {"lineitem": 60, "orders": 20, "customer": 5}
    assert price_now(facts(tiny), {"lineitem": Change(3, 0, 60)}, frozenset()).quick
    plan = plan_next(facts(tiny), "auto", 10**9, {"lineitem": Expected(3)}, AtHand())
    assert plan.kept == plan_next(facts(tiny), "plain", 10**9, {"lineitem": Expected(3)}, AtHand()).kept


def test_arithmetic_on_decimals_of_many_digits_has_a_price() -> None:
    def product(dtype: str) -> Rel:
        both = col("l_order", "bigint"), col("l_price", "bigint")
        return Project(LINES, (Item("x", call("*", *both, dtype=dtype)),))

    def grouped(dtype: str) -> Rel:
        both = col("l_order", "bigint"), col("l_price", "bigint")
        return Aggregate(LINES, (), (AggCall("x", "sum", (call("*", *both, dtype=dtype),), "decimal(38,4)"),))

    pricing = Pricing(cardinalities(), RATES, AtHand())
    for plan in (product, grouped):
        narrow, wide = (price_of(pricing, plan(d), Demand.NEW) for d in ("decimal(18,2)", "decimal(19,2)"))
        assert wide - narrow == pytest.approx(RATES.wide * ROWS["lineitem"] * SHARES[node_key(LINES)])


def test_statistics_that_are_missing_or_absurd_still_give_a_plan() -> None:
    for rows in ({}, {"lineitem": 0, "orders": 0, "customer": 0}, {"lineitem": 10**15, "orders": 1, "customer": 0}):
        for coming in ({}, {"lineitem": Expected(0.0)}, {"lineitem": Expected(1e18, 1.0)}, {"nowhere": Expected(5.0)}):
            plan = plan_next(facts(rows), "auto", 10**9, coming, AtHand())
            assert plan.seconds >= 0
            assert plan.size <= 10**9


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1.0, 1e300, "many", None])
def test_recorded_statistics_that_cannot_be_meant_are_ignored(bad: object) -> None:
    sound = replace(facts(ROWS), observed={}, shares={})
    keys = {node_key(x) for x in sound.plan.walk()}
    odd = dict.fromkeys(keys, bad)
    spoilt = replace(sound, observed=odd, shares=odd, corrections={"incremental": bad, "recompute": bad})
    coming = {"lineitem": Expected(60_000.0)}
    for strategy in STRATEGIES:
        expected = plan_next(sound, strategy, 10**9, coming, AtHand())
        assert plan_next(spoilt, strategy, 10**9, coming, AtHand(sizes=odd)) == expected
    change = {"lineitem": Change(60_000, 0, 6_000_000)}
    assert price_now(spoilt, change, frozenset()) == price_now(sound, change, frozenset())
    assert learned({"incremental": bad}, "incremental", 1.0, 1.0) == {"incremental": 1.0}
    assert learned({}, "incremental", float("nan"), 1.0) == learned({}, "incremental", 1.0, float("inf")) == {}


def test_rates_that_cannot_be_meant_are_replaced() -> None:
    assert Rates.from_dict({"step": -1, "probe": float("nan"), "build": "fast", "cluster": 7}) == replace(
        Rates(), cluster="7"
    )
    assert Rates.from_dict(replace(RATES, step=0.5).to_dict()).step == 0.5


def test_predictions_learn_from_errors_but_not_wildly() -> None:
    once = learned({}, "incremental", 1.0, 2.0)
    assert 1.0 < once["incremental"] < 2.0
    twice = learned(once, "incremental", once["incremental"], 2.0)
    assert once["incremental"] < twice["incremental"] < 2.0
    assert learned({}, "incremental", 1.0, 1e9)["incremental"] <= 10
    assert learned({}, "incremental", 0.0, 1.0) == {}


def test_a_mode_that_was_never_seen_is_as_slow_as_the_others() -> None:
    slow = learned({}, "incremental", 1.0, 4.0)
    price = replace(facts(ROWS), corrections=slow)
    assert price.corrected("recompute", 1.0) == pytest.approx(price.corrected("incremental", 1.0))
    assert price.corrected("recompute", 1.0) > 1.0
    seen = learned(slow, "recompute", price.corrected("recompute", 1.0), price.corrected("recompute", 1.0))
    assert seen["recompute"] == pytest.approx(slow["incremental"]), "the prediction was right: it stays"
    assert facts(ROWS).corrected("recompute", 1.0) == 1.0


def test_constant_rows_never_change() -> None:
    constants = Values((Field("v", "bigint"),), ((lit(1, dtype="bigint"),),))
    plan = joined(LINES, constants, "l_order", "v")
    cards = cardinalities(lineitem=60_000)
    assert not cards.of(constants).touched
    assert Pricing(cards, RATES, AtHand()).root(plan, by_delta=True).price(frozenset()) > 0


def test_the_one_row_of_an_aggregate_is_not_copied_beside_its_partial_row() -> None:
    """Else every scalar subquery would triple the rows of a cross join: a state and its change are three rows."""
    counts = [Aggregate(scan("orders", f"o{i}"), (), (AggCall(f"n{i}", "count", (), "bigint"),)) for i in range(4)]
    renamed = [Project(c, (Item(f"s{i}", col(f"n{i}", "bigint")),)) for i, c in enumerate(counts)]
    beside = Join(Join(renamed[0], renamed[1], None), Join(renamed[2], renamed[3], None), None)
    plan = Join(CUSTOMERS, beside, None)
    root = Pricing(cardinalities(orders=15_000, customer=1_500), CHEAP_WRITES, AtHand()).root(plan, by_delta=True)
    chosen = plan_states(root, "incremental", 1e12).kept
    assert chosen == {node_key(CUSTOMERS), *map(node_key, counts)}

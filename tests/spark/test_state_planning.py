"""States chosen by cost on Spark: the forecast decides, the budget holds, the result depends on neither."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.algebra.lookups import Waiting
from slackwater.algebra.printer import node_key
from slackwater.errors import SlackwaterError
from slackwater.execution import modes, refresh
from slackwater.execution.sampling import kept_shares
from slackwater.execution.state_planning import Prices
from slackwater.execution.states import release, storage_memory
from slackwater.planning import costing, lookup_costing
from slackwater.planning.rates import Rates
from slackwater.planning.strategies import STRATEGIES
from tests.spark.storage import leaked, occupied, stored

pytestmark = pytest.mark.spark

# Reading costs so much here that prices mean something for a few hundred rows; writing costs nothing to speak of.
SLOW = Rates(scan_row=1e-3, scan_value=1e-3, state_row=1e-5, probe=1e-5, build=1e-5, write=1e-6, merge=1e-5, step=1e-3,
             append=1e-3, aggregate=1e-5, aggregate_value=1e-6, compare=1e-5, refresh=1e-3)  # fmt: skip

QUERY = """SELECT c.region, count(*) AS n, sum(l.price) AS total FROM lines l
    JOIN orders o ON l.oid = o.oid JOIN customers c ON o.cid = c.cid
    WHERE c.region <> 'north' AND o.state = 'open' AND l.price > 10 GROUP BY c.region"""


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession) -> Iterator[sw.Engine]:
    with sw.Engine(tmp_path / "wh", spark=spark, save_states=False) as engine:
        engine._rates = SLOW
        lines = engine.create_table("lines", "oid INT, price INT")
        orders = engine.create_table("orders", "oid INT, cid INT, state STRING", key=["oid"])
        customers = engine.create_table("customers", "cid INT, region STRING", key=["cid"])
        lines.insert([(n % 200, n % 37) for n in range(1000)])
        orders.insert([(n, n % 40, "open" if n % 3 else "closed") for n in range(200)])
        customers.insert([(n, ("north", "south", "east")[n % 3]) for n in range(40)])
        yield engine


def add_lines(engine: sw.Engine, first: int) -> None:
    engine.table("lines").insert([(n % 200, 20 + n % 7) for n in range(first, first + 5)])


def add_customers(engine: sw.Engine, first: int) -> None:
    engine.table("customers").upsert([(first % 40, "west"), (1000 + first, "south")])
    engine.table("orders").upsert([(first % 200, 1000 + first, "open")])


def labels(view: sw.View) -> str:
    return " | ".join(sorted(view.states_by_label()))


def test_the_forecast_decides_what_is_kept(shop: sw.Engine) -> None:
    view = shop.create_view("totals", QUERY, strategy="auto", forecast=sw.fixed({"lines": 5}))
    assert "lines" not in labels(view)
    assert "Aggregate" in labels(view)
    met = {label for label in view.states_by_label() if "Aggregate" not in label}
    assert met, "what new lines will meet is kept"
    add_lines(shop, 0)
    assert view.refresh().mode == "incremental"
    assert view.verify()
    view.set_forecast(sw.fixed({"customers": 2, "orders": 1}))
    add_lines(shop, 10)
    view.refresh()
    kept = {label for label in view.states_by_label() if "Aggregate" not in label}
    assert kept != met, "the forecast moved to other tables, and the states with it"
    add_customers(shop, 7)
    view.refresh()  # what it must read once more anyway, it keeps
    assert len(view.states) >= 3
    add_customers(shop, 9)
    assert view.refresh().mode == "incremental"
    assert view.verify()


def test_what_was_not_foreseen_is_right_all_the_same(shop: sw.Engine) -> None:
    view = shop.create_view("totals", QUERY, strategy="auto", forecast=sw.fixed({"lines": 5}))
    add_customers(shop, 3)
    shop.table("lines").delete([(1, 1)])
    view.refresh()
    assert view.verify()
    view.set_forecast(sw.fixed({"customers": 10**9}))
    add_lines(shop, 30)
    view.refresh()
    assert view.verify()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_gives_the_same_result(shop: sw.Engine, strategy: str) -> None:
    view = shop.create_view("totals", QUERY, strategy=strategy)
    for turn in range(2):
        add_lines(shop, 40 + 10 * turn)
        add_customers(shop, 11 + turn)
        report = view.refresh()
        assert view.verify()
        assert report.state_bytes <= report.budget_bytes
    if strategy == "rebatch":
        assert report.mode == "recompute"
        assert not report.states
    if strategy == "incremental":
        assert report.mode == "incremental"


def test_a_recompute_is_charged_for_the_states_that_it_drops(shop: sw.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    view = shop.create_view("totals", QUERY, forecast=sw.fixed({"lines": 5}))
    assert view.states
    # To write a state costs so much now that none that is there should be dropped for a little less work today.
    shop._rates = replace(SLOW, write=1e-2)
    prices = Prices(incremental=0.60, recompute=0.59, compare=True, quick=False)
    monkeypatch.setattr(modes, "price_now", lambda *_: prices)
    add_lines(shop, 60)
    report = view.refresh()
    assert report.mode == "incremental"
    assert "for the states that it drops" in report.reason
    monkeypatch.setattr(modes, "price_now", lambda *_: replace(prices, incremental=10**6))
    add_lines(shop, 70)
    assert view.refresh().mode == "recompute"
    assert view.verify()


def test_filters_are_sampled_again_when_tables_have_grown(shop: sw.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    sampled = []
    monkeypatch.setattr(refresh, "kept_shares", lambda *args: sampled.append(args) or kept_shares(*args))
    view = shop.create_view("totals", QUERY, strategy="rebatch")
    assert len(sampled) == 1
    add_lines(shop, 80)
    view.refresh()
    assert len(sampled) == 1, "five lines more of a thousand change nothing"
    shop.table("lines").insert([(n % 200, n % 37) for n in range(400)])
    view.refresh()
    assert len(sampled) == 2
    assert view.verify()


def test_estimates_that_are_too_low_do_not_exceed_the_budget(shop: sw.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    before = stored(shop.spark)
    view = shop.create_view("totals", QUERY, strategy="incremental")
    whole = view.state_bytes()
    view.drop()
    assert not leaked(shop, before), "a view takes its states with it"
    for module in (costing, lookup_costing):
        monkeypatch.setattr(module, "row_bytes", lambda _: 1)
    shop.budget = budget = whole * 2 // 3
    view = shop.create_view("totals", QUERY, strategy="incremental")
    dropped = [c for c in view.choices if "do not fit the budget" in c.reason]
    assert dropped, "by the estimate everything fitted"
    assert not any(c.keep for c in dropped)
    assert all(c.size > 0 for c in dropped), "the choice says what was measured"
    for turn in range(2):
        assert occupied(shop) <= budget
        assert view.state_bytes() <= budget
        assert not leaked(shop, before), "what was dropped is gone"
        assert view.verify()
        add_lines(shop, 500 + 10 * turn)
        add_customers(shop, 25 + turn)
        view.refresh()
    assert occupied(shop) <= budget
    assert view.verify()


def test_states_never_exceed_the_budget(shop: sw.Engine) -> None:
    before = stored(shop.spark)
    view = shop.create_view("totals", QUERY, strategy="incremental")
    assert not leaked(shop, before)
    whole = view.state_bytes()
    assert whole > 0
    for at, budget in enumerate((whole, whole // 2, 1, 0, whole // 3)):
        shop.budget = budget
        add_lines(shop, 100 + 10 * at)
        add_customers(shop, 20 + at)
        report = view.refresh()
        assert occupied(shop) <= budget
        assert not leaked(shop, before), "nothing but states stays"
        assert report.state_bytes <= budget
        assert view.verify()


def test_memory_moves_to_the_view_that_it_saves_most(shop: sw.Engine) -> None:
    first = shop.create_view("first", QUERY, strategy="auto", forecast=sw.fixed({"lines": 5}))
    full = first.state_bytes()
    assert full > 0
    shop.budget = full
    assert first.state_bytes() == full, "what fits stays"
    first.set_forecast(sw.fixed({}))
    second = shop.create_view(
        "second", QUERY.replace("l.price > 10", "l.price > 11"), strategy="auto", forecast=sw.fixed({"lines": 5})
    )
    assert first.state_bytes() + second.state_bytes() <= full
    assert second.states, "what saves more took the place of what saves less"
    assert first.state_bytes() < full
    for view in (first, second):
        add_lines(shop, 200)
        view.refresh()
        assert view.verify()
        assert shop.state_bytes() <= full
        assert occupied(shop) <= full


def test_a_view_that_may_keep_nothing_takes_nothing_from_others(shop: sw.Engine) -> None:
    first = shop.create_view("first", QUERY, strategy="auto", forecast=sw.fixed({"lines": 5}))
    kept = set(first.states)
    assert kept
    shop.budget = first.state_bytes()
    first.set_forecast(sw.fixed({"lines": 1}))
    second = shop.create_view("second", QUERY.replace("l.price > 10", "l.price > 11"), strategy="auto",
                              forecast=sw.fixed({"lines": 500}), memory_budget=1)  # fmt: skip
    assert not second.states
    assert set(first.states) == kept
    assert second.verify()


def test_a_new_view_borrows_where_there_is_no_room(shop: sw.Engine) -> None:
    first = shop.create_view("first", QUERY, strategy="incremental")
    full = shop.state_bytes()
    assert full > 0
    shop.budget = full
    second = shop.create_view("second", QUERY, strategy="incremental")
    assert shop.state_bytes() <= full
    assert occupied(shop) <= full
    common = first.states.keys() & second.states.keys()
    assert all(first.states[key].rdd_ids() == second.states[key].rdd_ids() for key in common)
    assert common, "rows that are there anyway take no room"
    for at, view in enumerate((first, second, second, first)):
        add_lines(shop, 600 + 10 * at)
        add_customers(shop, 30 + at)
        view.refresh()
        assert view.verify()
        assert occupied(shop) <= full


def test_states_that_spark_has_lost_are_made_again(shop: sw.Engine) -> None:
    view = shop.create_view("totals", QUERY, strategy="incremental")
    release(s for state in view.states.values() for s in state.segments)
    add_lines(shop, 300)
    report = view.refresh()
    assert report.mode == "recompute"
    assert view.verify()
    add_lines(shop, 310)
    assert view.refresh().mode == "incremental"
    assert view.verify()


def test_what_if_answers_without_running(shop: sw.Engine, tmp_path: Path) -> None:
    view = shop.create_view("totals", QUERY, strategy="auto", forecast=sw.fixed({"lines": 5}))
    before = shop.catalog.version()
    nothing, plenty = view.what_if(budget=0), view.what_if(budget="1GB")
    assert not any(c.keep for c in nothing.choices)
    assert plenty.seconds <= nothing.seconds
    costs = [cost for _, cost in plenty.curve]
    assert costs == sorted(costs, reverse=True)
    other = view.what_if(forecast={"CUSTOMERS": 5})
    assert {c.label for c in other.choices if c.keep} != {c.label for c in plenty.choices if c.keep}
    assert shop.catalog.version() == before
    assert plenty.save_picture(tmp_path / "budget.png").stat().st_size > 5_000
    assert "what if" in str(plenty)
    assert plenty.to_dict()["view"] == "totals"
    bad = {"nowhere": 1}, {"lines": -1}, {"lines": float("nan")}, {"lines": True}
    for forecast, code in zip(bad, ["FORECAST_TABLE_UNKNOWN", *["FORECAST_INVALID"] * 3], strict=True):
        with pytest.raises(SlackwaterError) as error:
            view.what_if(forecast=forecast)
        assert error.value.code == code
    with pytest.raises(SlackwaterError) as error:
        view.what_if(budget="-1GB")
    assert error.value.code == "BUDGET_INVALID"


def test_what_if_answers_for_what_a_refresh_could_use(shop: sw.Engine) -> None:
    view = shop.create_view("totals", QUERY, strategy="auto", forecast=sw.fixed({"lines": 5}))
    assert view.what_if(budget="1000GB").usable == storage_memory(shop.spark)
    full, query = view.state_bytes(), QUERY.replace("l.price > 10", "l.price > 11")
    shop.share_states, shop.budget = False, 2 * full
    other = shop.create_view("other", query, strategy="plain", memory_budget=full // 2)
    assert other.what_if().usable <= full // 2
    told, kept = view.what_if(), {v.name: set(v.states) for v in (view, other)}
    assert told.usable == 2 * full - other.state_bytes(), "a view by plain rules gives nothing back"
    assert {v.name: set(v.states) for v in (view, other)} == kept, "nothing was given back by asking"


def test_reasons_and_predictions_are_on_record(shop: sw.Engine) -> None:
    view = shop.create_view("totals", QUERY, strategy="auto", forecast=sw.fixed({"lines": 5}))
    add_lines(shop, 400)
    report = view.refresh()
    assert report.predicted_seconds > 0
    assert "recompute" in report.reason, "the way not taken, with its price"
    assert report.next_best
    text = str(view.explain(sql=False))
    assert "saves" in text
    assert "next best" in text
    assert "predicted" in str(view.history())
    assert {way.way: way.chosen for way in report.ways} == {"incremental": True, "recompute": False}
    assert all(way.seconds > 0 for way in report.ways)
    last, first = view.history()
    assert last["ways"] == report.to_dict()["ways"]
    assert "not taken: recompute" in str(view.history())
    assert {one["what"] for one in first["estimates"]} == {"bytes", "rows"}
    assert all(one["actual"] > 0 for one in first["estimates"] if one["what"] == "bytes")
    assert {"initial", "incremental", "bytes", "rows"} <= view.history().errors().keys()


def test_what_a_state_cost_to_build_is_told_after_more_refreshes(shop: sw.Engine) -> None:
    view = shop.create_view("totals", QUERY, strategy="auto", forecast=sw.fixed({"lines": 5}))
    costs = {c.key: c.build for c in view.choices if c.keep}
    assert costs
    assert all(cost > 0 for cost in costs.values())
    for turn in range(2):
        add_lines(shop, 500 + 10 * turn)
        assert view.refresh().mode == "incremental"
    assert {c.key: c.build for c in view.choices if c.keep and c.key in costs}.items() <= costs.items()
    text = str(view.explain(sql=False))
    assert "it is there and cost" in text
    assert "otherwise: not kept, and the next refresh takes" in text


def test_a_small_refresh_names_its_ways_too(engine: sw.Engine) -> None:
    engine.create_table("t", "k INT, n INT").insert([(n % 5, n) for n in range(50)])
    view = engine.create_view("sums", "SELECT k, sum(n) AS n FROM t GROUP BY k")
    engine.table("t").insert([(1, 1)])
    report = view.refresh()
    assert (report.mode, "small" in report.reason) == ("incremental", True)
    assert {way.way: way.chosen for way in report.ways} == {"incremental": True, "recompute": False}


def test_states_are_chosen_anew_when_the_rates_change(shop: sw.Engine) -> None:
    shop._rates = replace(SLOW, write=1e3)
    view = shop.create_view("totals", QUERY, strategy="auto", forecast=sw.fixed({"lines": 5}))
    for turn in range(2):
        add_lines(shop, 500 + 10 * turn)
        assert view.refresh().mode == "recompute"
    assert not view.states, "to write a row takes a quarter of an hour"
    shop._rates = SLOW  # as `calibrate` leaves it
    add_lines(shop, 520)
    view.refresh()
    assert view.states
    assert view.verify()


def test_a_recycler_keeps_what_waits_and_follows_changes_of_all_tables(shop: sw.Engine) -> None:
    view = shop.create_view("totals", QUERY, strategy="recycler")
    kinds = {type(node) for node in view.plan.keepable() if node_key(node) in view.states}
    assert Waiting in kinds
    for turn in range(3):
        add_lines(shop, 500 + 10 * turn)
        shop.table("orders").upsert([(turn, turn + 1, "open"), (300 + turn, turn, "open")])
        shop.table("customers").upsert([(turn, "east"), (100 + turn, "west")])
        shop.table("orders").delete_keys([(10 + turn,)])
        view.refresh()
        assert view.verify()


def test_states_are_loaded_as_far_as_a_smaller_budget_has_room_for_them(tmp_path: Path, spark: SparkSession) -> None:
    query = "SELECT b.v, count(*) AS n FROM a JOIN b ON a.k = b.k WHERE a.v > 9 AND b.v > 9 GROUP BY b.v"
    with sw.Engine(tmp_path / "wh", spark=spark) as engine:
        for name in ("a", "b"):
            engine.create_table(name, "k INT, v INT").insert([(n % 50, n) for n in range(500)])
        view = engine.create_view("v", query, strategy="incremental")
        full = view.state_bytes()
        assert len(view.states) > 1
    with sw.Engine(tmp_path / "wh", full - 1, spark=spark) as engine:
        view = engine.view("v")
        view.load_states()
        assert 0 < engine.state_bytes() <= engine.budget
        assert view.states
        engine.table("a").insert([(1, 1)])
        report = view.refresh()
        assert report.state_bytes <= report.budget_bytes == full - 1
        assert view.verify()


@pytest.mark.slow
def test_calibration_is_remembered_for_the_cluster(shop: sw.Engine) -> None:
    rates = shop.calibrate()
    assert rates.cluster
    assert all(value > 0 for name, value in rates.to_dict().items() if name != "cluster")
    shop._rates = None
    assert shop.rates == rates
    with shop.writing() as lease:
        shop.catalog.set_fact("rates", json.dumps({**rates.to_dict(), "cluster": "another one"}), lease)
    shop._rates = None
    assert shop.rates == Rates(), "numbers of another cluster are not used"
    with shop.writing() as lease:
        shop.catalog.set_fact("rates", "no numbers at all", lease)
    shop._rates = None
    assert shop.rates == Rates()


def test_a_view_of_a_strategy_that_has_another_name_now_goes_on(tmp_path: Path, spark: SparkSession) -> None:
    with sw.Engine(tmp_path / "wh", spark=spark) as engine:
        engine.create_table("t", "k INT").insert([(1,), (2,)])
        view = engine.create_view("v", "SELECT count(*) AS n FROM t")
        with engine.catalog.commit("refresh", "v", {}, engine.lease) as tx:
            tx.update_view(view.id, options_json=json.dumps(view.options_with((), {}) | {"strategy": "planned"}))
    with sw.Engine(tmp_path / "wh", spark=spark) as engine:
        view = engine.view("v")
        assert view.strategy == "auto"
        engine.table("t").insert([(3,)])
        view.refresh()
        assert view.verify()
        assert [r.n for r in view.result().collect()] == [3]


def _spoil(view: sw.View, bad: object) -> None:
    """Put something else in the place of every number that the catalog keeps of a view."""
    options = json.loads(view.engine.catalog.view_by_id(view.id).options_json)
    for name in ("shares", "bytes", "observed", "corrections"):
        options[name] = dict.fromkeys(options[name] or {"somewhere": 0}, bad)
    options["observed_at"] = {key: dict.fromkeys(then, bad) for key, then in options["observed_at"].items()}
    options["choices"] = [c | {"size": bad, "saves": bad, "build": bad} for c in options["choices"]]
    with view.engine.catalog.commit("refresh", view.name, {}, view.engine.lease) as tx:
        tx.update_view(view.id, options_json=json.dumps(options))


@pytest.mark.slow
def test_spoilt_statistics_count_as_unknown(tmp_path: Path, spark: SparkSession) -> None:
    path = tmp_path / "wh"
    with sw.Engine(path, spark=spark) as engine:
        engine._rates = SLOW
        engine.create_table("t", "k INT, v INT", key=["k"]).insert([(n, n % 7) for n in range(300)])
        engine.create_table("u", "v INT, name STRING", key=["v"]).insert([(n, f"name {n}") for n in range(7)])
        query = "SELECT u.name, count(*) AS n, max(t.k) AS m FROM t JOIN u ON t.v = u.v WHERE t.k > 5 GROUP BY u.name"
        for strategy in ("auto", "incremental"):
            engine.create_view(strategy, query, strategy=strategy)
        for view in engine.views():
            _spoil(view, None)
    for at, bad in enumerate(("many", float("nan"), -5, 1e300, [1], None)):
        with sw.Engine(path, spark=spark) as engine:
            engine._rates = SLOW
            engine.table("t").upsert([(at, 1), (1000 + at, 2)])
            engine.table("u").upsert([(at, f"other {at}")])
            for view in engine.views():
                view.what_if(budget="1MB")
                report = view.refresh()
                assert report.mode in ("incremental", "recompute")
                assert report.state_bytes <= report.budget_bytes
                assert view.verify()
                assert str(view.explain())
                _spoil(view, bad)

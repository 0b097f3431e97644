"""Budgets, reopening and compaction change what a refresh costs, never its result."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.execution import compaction, refresh, states
from slackwater.execution.states import StateSegment, storage_memory
from tests.spark.settling import rows, settle
from tests.spark.storage import leaked, occupied, stored

JOINED = """SELECT c.region, count(*) AS n, sum(o.amount) AS total, max(o.amount) AS hi FROM orders o
    JOIN customers c ON o.cust = c.id WHERE o.status = 'open' GROUP BY c.region"""


def _shop(engine: sw.Engine) -> tuple[sw.Table, sw.Table]:
    orders = engine.create_table("orders", "id INT, cust INT, amount DECIMAL(10,2), status STRING", key=["id"])
    customers = engine.create_table("customers", "id INT, region STRING", key=["id"])
    orders.insert([(n, n % 6, Decimal(n), "open" if n % 4 == 0 else "closed") for n in range(48)])
    customers.insert([(n, f"region {n % 2}") for n in range(5)])
    return orders, customers


def test_any_budget_gives_the_same_result(tmp_path: Path, spark: SparkSession) -> None:
    with sw.Engine(tmp_path / "wh", spark=spark, memory_budget=0) as engine:
        orders, customers = _shop(engine)
        view = engine.create_view("totals", JOINED)
        assert view.refresh().mode == "none"
        kept = {}
        for budget, change in ((0, 100), (700, 101), (10**9, 102), (0, 103), (0, 104), (10**9, 105)):
            engine.budget = budget
            orders.upsert([(change, change % 6, Decimal(change), "open"), (change - 97, 1, Decimal(1), "closed")])
            customers.upsert([(change % 5, f"region {change % 3}")])
            report = settle(view, None)
            assert report.state_bytes <= budget, str(report)
            kept[change] = report.mode, bool(report.states)
        assert kept[100] == kept[104] == ("recompute", False)
        assert kept[103] == ("recompute", False), "what does not fit was released when the budget was lowered"
        assert kept[102][1], "a large budget keeps states"
        assert ("■ kept" in str(view.explain(sql=False))) == kept[105][1]
        engine.budget = 0
        customers.upsert([(1, "region 9")])
        assert not settle(view, None).states
        explained = str(view.explain(sql=False))
        assert "\nstates 0 B of a budget of 0 B\n" in explained
        assert "bytes more do not fit the budget" in explained
        assert "■ kept" not in explained


def test_a_lower_budget_holds_at_once_for_all_views(tmp_path: Path, spark: SparkSession) -> None:
    with sw.Engine(tmp_path / "wh", spark=spark, save_states=False) as engine:
        orders, _ = _shop(engine)
        before = stored(spark)
        views = [engine.create_view("totals", JOINED, strategy="incremental"),
                 engine.create_view("sums", "SELECT cust, sum(amount) AS total FROM orders GROUP BY cust",
                                    strategy="incremental")]  # fmt: skip
        assert all(view.states for view in views)
        whole = engine.state_bytes()
        results = [sorted(rows(view)) for view in views]
        engine.budget = whole // 2
        assert engine.state_bytes() <= whole // 2
        assert occupied(engine) <= whole // 2, "no view was refreshed"
        assert not leaked(engine, before)
        for view, result in zip(views, results, strict=True):
            assert sorted(rows(view)) == result
            assert view.verify()
        orders.upsert([(4, 1, Decimal(999), "open")])
        for view in views:
            settle(view, None)
            assert engine.state_bytes() <= whole // 2
        engine.budget = 0
        assert not occupied(engine)
        assert not leaked(engine, before), "nothing stays behind without a state"
        orders.upsert([(8, 1, Decimal(999), "open")])
        for view in views:
            settle(view, None)
        engine.budget = 10 * whole
        orders.upsert([(12, 1, Decimal(999), "open")])
        for view in views:
            settle(view, None)
        assert all(view.states for view in views), "with room again, states are built again"


def test_states_go_with_the_last_rows(tmp_path: Path, spark: SparkSession) -> None:
    with sw.Engine(tmp_path / "wh", spark=spark, save_states=False) as engine:
        orders, customers = _shop(engine)
        before = stored(spark)
        late = sw.late_arrivals()
        totals = engine.create_view("totals", JOINED, strategy="incremental", forecast=late)
        above = engine.create_view("above", "SELECT sum(n) AS n, sum(total) AS s FROM totals", strategy="incremental")
        only = engine.create_view("only", "SELECT cust, sum(amount) AS s FROM orders GROUP BY cust",
                                  strategy="incremental", refresh=sw.on_arrival())  # fmt: skip
        assert all(view.states for view in (totals, above, only))
        orders.upsert([(4, 1, Decimal(999), "open")])
        orders.mark_complete()
        settle(only)
        assert not only.states, "it has read all there is"
        settle(above, None)
        assert totals.states, "customers may still come"
        customers.upsert([(1, "region 7")])
        customers.mark_complete()
        report = settle(totals, None)
        assert not report.states
        assert not totals.states
        assert "nothing can come" in str(totals.explain(sql=False))
        assert above.states, "it has not read what came of that"
        settle(above, None)
        assert not above.states
        assert engine.state_bytes() == 0
        assert not leaked(engine, before)
        assert {view.refresh().mode for view in (totals, above, only)} == {"none"}
        for view in (totals, above, only):
            assert view.refresh(full=True).mode == "recompute"
            assert not view.states
            assert view.verify()


def test_a_run_over_complete_tables_leaves_no_states(tmp_path: Path, spark: SparkSession) -> None:
    with sw.Engine(tmp_path / "wh", spark=spark, save_states=False) as engine:
        orders, customers = _shop(engine)
        before = stored(spark)
        eager = engine.create_view("eager", JOINED, strategy="incremental", refresh=sw.on_arrival())
        by_hand = engine.create_view("by_hand", JOINED.replace("max", "min"), strategy="incremental")
        orders.upsert([(4, 1, Decimal(999), "open")])
        by_hand.refresh()

        def mark(tick: sw.Tick) -> None:
            if not customers.complete:
                orders.mark_complete()
                customers.mark_complete()

        engine.run(poll=0.01, on_tick=mark)
        assert not eager.states
        assert not by_hand.states
        assert not leaked(engine, before)
        assert not occupied(engine)
        assert eager.verify()
        assert by_hand.verify()


def test_reopening_keeps_on_where_it_stood(tmp_path: Path, spark: SparkSession) -> None:
    path = tmp_path / "wh"
    with sw.Engine(path, spark=spark) as engine:
        orders, _ = _shop(engine)
        view = engine.create_view("totals", JOINED)
        orders.upsert([(4, 1, Decimal(999), "open")])
        settle(view)
        orders.delete_keys([{"id": 8}])
    with sw.Engine(path, spark=spark, save_states=False) as engine:
        again = engine.view("totals")
        report = settle(again)
        assert report.rows_in == {"orders": 1}, "saved states serve after reopening"
        engine.table("orders").upsert([(4, 2, Decimal(1), "open")])
    with sw.Engine(path, spark=spark) as engine:
        again = engine.view("totals")
        with pytest.raises(sw.SlackwaterError, match="VIEW_EXISTS"):
            engine.create_view("totals", JOINED)
        assert settle(again, None).mode == "recompute", "states of an older version are not used"
        engine.table("orders").delete_keys([{"id": 4}])
        settle(again)
        assert [r["mode"] for r in again.history()][-1] == "initial"
        again.drop()
        with pytest.raises(sw.SlackwaterError, match="VIEW_DROPPED"):
            again.refresh()
        engine.drop_table("orders")


@pytest.mark.slow
@pytest.mark.usefixtures("eager_compaction")
def test_merging_segments_changes_nothing(tmp_path: Path, spark: SparkSession) -> None:
    with sw.Engine(tmp_path / "wh", spark=spark) as engine:
        orders, _ = _shop(engine)
        view = engine.create_view("totals", JOINED)
        lagging = engine.create_view("lagging", "SELECT status, count(*) AS n FROM orders GROUP BY status")
        snapshots = {}
        for n in range(7):
            orders.upsert([(n, n % 6, Decimal(1000 + n), "open"), (100 + n, 2, Decimal(n), "open")])
            if n:
                orders.delete_keys([{"id": 99 + n}])
            settle(view)
            snapshots[view.version] = sorted(map(tuple, orders.snapshot().collect())), sorted(rows(view))
            if n % 3 == 2:
                settle(lagging, None)
            assert orders.snapshot().count() == orders.count()
        merges = [s for s in engine.catalog.segments(f"t{orders.id}") if s.first_version < s.last_version]
        assert merges, "the tables' segments were never merged"
        for version, (table_rows, result_rows) in snapshots.items():
            assert sorted(map(tuple, orders.snapshot(version).collect())) == table_rows
            assert sorted(map(tuple, view.result(version).collect())) == result_rows


def test_a_pending_delete_survives_the_merging_of_files(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sw.Engine(tmp_path / "wh", spark=spark) as engine:
        table = engine.create_table("t", "a INT, g INT")
        table.insert([(n, n % 3) for n in range(30)])
        for n in range(4):
            table.insert([(100 + n, 0)])
        ahead = engine.create_view("ahead", "SELECT g, count(*) AS n FROM t GROUP BY g")
        behind = engine.create_view("behind", "SELECT g, sum(a) AS s FROM t GROUP BY g")
        table.delete([(100, 0)])
        monkeypatch.setattr(compaction, "TABLE_SEGMENTS", 3)
        ahead.refresh()
        assert table.snapshot().count() == table.count() == 33
        settle(behind)
        assert ahead.verify()


def test_bytes_are_those_that_spark_stores(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sw.Engine(tmp_path / "wh", spark=spark, save_states=False) as engine:
        orders, _ = _shop(engine)
        view = engine.create_view("totals", JOINED, strategy="incremental")
        for turn in range(3):
            orders.upsert([(4 + turn, 1, Decimal(999), "open")])
            report = view.refresh()
            held = {i for state in view.states.values() for i in state.rdd_ids()}
            infos = spark._sc._jsc.sc().getRDDStorageInfo()
            told = {int(x.id()): int(x.memSize()) + int(x.diskSize()) for x in infos}
            assert report.state_bytes == view.state_bytes() == sum(told[i] for i in held) > 0
            assert set(engine.segment_bytes) <= held, "nothing is remembered of what was released"
            monkeypatch.setattr(states, "ASKED_SINGLY", 0 if turn else 100)


def test_a_budget_above_the_memory_counts_as_the_memory(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sw.Engine(tmp_path / "wh", spark=spark, memory_budget="100TB", save_states=False) as engine:
        orders, _ = _shop(engine)
        view = engine.create_view("totals", JOINED, strategy="incremental")
        orders.upsert([(4, 1, Decimal(999), "open")])
        report = settle(view)
        assert report.states
        assert 0 < report.state_bytes < report.budget_bytes == storage_memory(spark) < 100 * 10**12
        little = report.state_bytes - 1
        monkeypatch.setattr(refresh, "storage_memory", lambda _: little)
        orders.upsert([(8, 1, Decimal(7), "open")])
        report = settle(view, None)
        assert report.state_bytes <= report.budget_bytes == little
        for bad in (-1, "-1GB", "much"):
            with pytest.raises(sw.SlackwaterError, match="BUDGET_INVALID"):
                engine.budget = bad
        assert engine.budget == 100 * 10**12


def _evict(spark: SparkSession, segment: StateSegment) -> None:
    """Take the first block of a segment away; where Spark lets nobody at its storage, all of them."""
    try:
        block = spark._jvm.org.apache.spark.storage.RDDBlockId(segment.rdd_id, 0)
        spark._jvm.org.apache.spark.SparkEnv.get().blockManager().removeBlock(block, True)
    except Py4JError:  # from Spark 4.3 on
        segment.rdd.unpersist(True)


def test_a_state_that_spark_evicts_by_itself_is_made_again(tmp_path: Path, spark: SparkSession) -> None:
    """A single block goes, as when an executor is lost; the rest of the state is still there."""
    with sw.Engine(tmp_path / "wh", spark=spark, save_states=False) as engine:
        orders, customers = _shop(engine)
        view = engine.create_view("totals", JOINED, strategy="incremental")
        assert len(view.states) == 2
        for turn in range(2):
            state = view.states[sorted(view.states)[turn]]
            _evict(spark, state.segments[0])
            orders.upsert([(100 + turn, 1, Decimal(turn), "open")])
            customers.upsert([(1, f"region {turn}")])
            report = settle(view, None)
            assert report.mode == "recompute", "a state with a hole is not read"
            assert "failed" in report.reason
            orders.upsert([(100 + turn, 2, Decimal(turn), "open")])
            assert settle(view).mode == "incremental", "and the next refresh has states again"

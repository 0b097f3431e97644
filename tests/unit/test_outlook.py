"""From the catalog to a forecast and back: settled, judged, demoted, trusted again. Without Spark."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slackwater as sw
from slackwater.arrivals.outlook import MOST_CHANGES, ArrivalLog, look_ahead
from slackwater.arrivals.scoring import OWN_BOUNDS, ForecastReport, missed
from slackwater.storage import Catalog, NewSegment, TableRecord, sqlite_url
from slackwater.storage.files import WarehouseFiles
from slackwater.storage.forecasts import ArrivalRecord, PaceRecord
from tests.unit.catalog_suite import refused


class Warehouse:
    """A catalog with two tables and a view, and the little of an engine that a forecast looks at."""

    def __init__(self, path: Path, forecaster: Any) -> None:
        self.catalog, self.now = Catalog.open(sqlite_url(path / "catalog.db")), 1_000.0
        fields = [{"name": "id", "type": "integer"}, {"name": "at", "type": "timestamp"}]
        with self.catalog.commit("create_table", "orders") as tx:
            tx.add_table("orders", json.dumps({"fields": fields}))
        with self.catalog.commit("create_table", "other") as tx:
            tx.add_table("other", json.dumps({"fields": fields[:1]}))
        with self.catalog.commit("create_view", "v") as tx:
            self.id = tx.add_view("v", "{}", "{}", "{}", "{}").id
        self.engine = SimpleNamespace(
            catalog=self.catalog,
            arrivals=ArrivalLog(self.catalog),
            files=WarehouseFiles(path),
            table=lambda name: SimpleNamespace(count=lambda: 1000),
        )
        self.view: Any = SimpleNamespace(
            id=self.id, version=0, tables=("orders", "other"), forecaster=forecaster, engine=self.engine,
            policy=sw.manual(),
        )  # fmt: skip

    def change(self, table: str, rows: int, path: str | None = None) -> None:
        with self.catalog.commit("change", table, {"inserted": rows, "deleted": 0}) as tx:
            if path is not None:
                tx.add_segments("t1", [NewSegment(1, path, rows, 1)])

    def refresh(self, rows: int = 0) -> tuple[str, ...]:
        """One change of `orders` and one refresh; gives what the user is told."""
        if rows:
            self.change("orders", rows)
        self.now += 60.0
        found = look_ahead(self.view, self.now, taking=bool(rows) or not self.view.version)
        with self.catalog.commit("refresh", "v") as tx:
            found.record(tx)
            tx.add_refresh(self.id, 0, tx.version, 0.1, {}, at=self.now)
            self.view.version = tx.version
        return found.notes

    def report(self) -> ForecastReport:
        return ForecastReport("v", self.view.forecaster.kind, self.catalog.forecasts(self.id))


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Any]:
    made: list[Warehouse] = []

    def make(forecaster: Any) -> Warehouse:
        made.append(Warehouse(tmp_path, forecaster))
        return made[-1]

    yield make
    for one in made:
        one.catalog.close()


def test_forecast_and_actual_stand_side_by_side(make: Any) -> None:
    warehouse = make(sw.fixed(orders=100))
    warehouse.refresh()
    warehouse.refresh(80)
    report = warehouse.report()
    newest, oldest = ([row for row in report if row["table"] == "orders"][i] for i in (0, 1))
    assert (oldest["rows"], oldest["actual"], oldest["error"], oldest["missed"]) == (100, 80, 20, False)
    assert (newest["rows"], newest["actual"]) == (100, None)
    assert [(row["rows"], row["actual"]) for row in report if row["table"] == "other"] == [(0, None), (0, 0)]
    assert report.errors() == {"orders": pytest.approx(0.25), "other": None}
    text = str(report)
    assert "+25%" in text
    assert "other: nothing came" in text
    assert "<table>" in report._repr_html_()
    assert report.notes == []


def test_a_forecast_that_keeps_failing_is_demoted_and_trusted_again_when_it_does_better(make: Any) -> None:
    warehouse = make(sw.fixed(orders=100_000))
    assert warehouse.refresh() == ()
    assert warehouse.refresh(100) == ()
    assert warehouse.refresh(110) == ()
    (told,) = warehouse.refresh(120)
    assert "'orders' was far off 3 of the last 3 times and is demoted to naive" in told
    forecast = look_ahead(warehouse.view, warehouse.now).forecast
    assert (forecast.kind, forecast.of("orders").kind, forecast.of("orders").rows) == ("fixed", "naive", 110)
    assert "far off 3 of the last 3" in forecast.of("orders").reason
    assert forecast.of("other").kind == "fixed", "only the table that failed"
    report = warehouse.report()
    assert (report[0]["kind"], report[1]["kind"]) in (("naive", "fixed"), ("fixed", "naive"))
    assert "demoted to naive" in report.notes[0]
    assert "demoted to naive" in str(report)
    # Its own words are judged while it is demoted, not those of the naive forecast, which would do by now.
    assert [warehouse.refresh(rows) for rows in (130, 140, 150, 160)] == [(), (), (), ()], "told once"
    # Two good ones of the last five are not enough, three are.
    assert warehouse.refresh(100_000) == ()
    assert warehouse.refresh(100_000) == ()
    (told,) = warehouse.refresh(100_000)
    assert "good enough again" in told
    assert look_ahead(warehouse.view, warehouse.now).forecast.of("orders").kind == "fixed"
    assert warehouse.report().notes == []


def test_another_kind_starts_with_a_clean_record(make: Any) -> None:
    warehouse = make(sw.fixed(orders=100_000))
    for rows in (0, 5, 5, 5, 5):
        warehouse.refresh(rows)
    warehouse.view.forecaster = sw.late_arrivals()
    assert look_ahead(warehouse.view, warehouse.now).forecast.of("orders").kind == "late_arrivals"


def test_a_refresh_that_nothing_came_for_settles_nothing(make: Any) -> None:
    warehouse = make(sw.fixed(orders=100))
    warehouse.refresh()
    before = warehouse.catalog.forecasts(warehouse.id)
    warehouse.refresh()
    assert warehouse.catalog.forecasts(warehouse.id) == before


def test_a_complete_table_brings_nothing_whatever_was_forecast(make: Any) -> None:
    warehouse = make(sw.fixed(orders=100))
    with warehouse.catalog.commit("mark_complete", "orders") as tx:
        tx.mark_complete(1)
    said = look_ahead(warehouse.view, 5.0).forecast.of("orders")
    assert (said.rows, said.complete_after) == (0, True)


def test_the_winner_of_the_contest_is_remembered_across_restarts(make: Any) -> None:
    warehouse = make(sw.learned())
    for rows in (0, *[50] * 9):
        warehouse.refresh(rows)
    kept = {r.table_name: r.detail["remembered"] for r in warehouse.catalog.forecasts(warehouse.id, 2)}
    assert (kept["orders"]["model"], kept["other"]["model"]) == ("last", "zero")
    at = kept["orders"]["at"]
    warehouse.engine.arrivals = ArrivalLog(warehouse.catalog)  # as a new process would
    warehouse.refresh(50)
    newest = next(r for r in warehouse.catalog.forecasts(warehouse.id) if r.table_name == "orders")
    assert newest.detail["remembered"]["at"] == at, "no new contest"
    assert (newest.rows, newest.horizon_seconds) == (50, 60)


def test_a_kind_that_was_told_nothing_is_not_judged_by_it(make: Any) -> None:
    warehouse = make(sw.paced())
    assert [warehouse.refresh(rows) for rows in (0, 50, 50, 50, 50)] == [()] * 5
    warehouse.catalog.report_pace(PaceRecord(1, 5.0, None, at=warehouse.now))
    said = look_ahead(warehouse.view, warehouse.now, "60s").forecast.of("orders")
    assert (said.kind, said.rows) == ("paced", 300)


def test_a_pace_is_read_from_the_catalog(make: Any) -> None:
    warehouse = make(sw.paced())
    warehouse.catalog.report_pace(PaceRecord(1, 5.0, 1000, at=0.0))
    forecast = look_ahead(warehouse.view, 10.0, "20s").forecast
    assert (forecast.of("orders").rows, forecast.of("other").rows, forecast.horizon_seconds) == (100, 0, 20)


def test_the_policy_says_how_far_to_look(make: Any) -> None:
    warehouse = make(sw.paced())
    for rows in (0, 50, 50):
        warehouse.refresh(rows)
    warehouse.catalog.report_pace(PaceRecord(1, 5.0, None, at=warehouse.now))
    assert look_ahead(warehouse.view, warehouse.now).forecast.horizon_seconds == 60, "the usual time"
    warehouse.view.policy = sw.every("1h")
    forecast = look_ahead(warehouse.view, warehouse.now).forecast
    assert (forecast.horizon_seconds, forecast.of("orders").rows) == (3600, 18_000)
    assert forecast.reason == "the horizon is the next time of the policy: every 1h"
    assert look_ahead(warehouse.view, warehouse.now, "20s").forecast.horizon_seconds == 20, "somebody's own"
    taken = look_ahead(warehouse.view, warehouse.now, taking=True)
    assert {record.horizon_seconds for record in taken.records} == {3600}
    warehouse.view.policy = sw.cron("0 9 * * 1-5")
    friday = datetime(2026, 3, 6, 9, tzinfo=timezone.utc).timestamp()
    assert look_ahead(warehouse.view, friday).forecast.horizon_seconds == 3 * 86_400


def test_a_policy_that_counts_rows_bounds_what_is_expected(make: Any) -> None:
    warehouse = make(sw.paced())
    warehouse.view.policy = sw.rows(900) | sw.every("1h")
    warehouse.catalog.report_pace(PaceRecord(1, 2.0, 7_200, at=0.0))
    warehouse.catalog.report_pace(PaceRecord(2, 1.0, None, at=0.0))
    outlook = look_ahead(warehouse.view, 0.0, taking=True)
    orders, other = outlook.forecast.of("orders"), outlook.forecast.of("other")
    assert (orders.rows, other.rows) == (pytest.approx(600), pytest.approx(300))
    assert all(one.low <= one.rows <= one.high for one in (orders, other))
    assert not orders.complete_after, "there is more to come than a refresh waits for"
    assert "a refresh comes with 900 rows" in orders.reason
    assert [record.rows for record in outlook.records] == [orders.rows, other.rows]
    warehouse.view.policy = sw.rows(20_000) | sw.every("1h")
    whole = look_ahead(warehouse.view, 0.0).forecast.of("orders")
    assert (whole.rows, whole.complete_after) == (7_200, True)
    warehouse.view.forecaster, warehouse.view.policy = sw.fixed(orders=5_000), sw.rows(900)
    assert look_ahead(warehouse.view, 0.0).forecast.of("orders").rows == 5_000, "the user's word"


def test_a_kind_is_judged_by_the_rows_that_a_refresh_waits_for(make: Any) -> None:
    """Three hundred thousand rows a minute are told, and a refresh comes with a hundred: ninety are no miss."""
    warehouse = make(sw.paced())
    warehouse.view.policy = sw.rows(100)
    warehouse.catalog.report_pace(PaceRecord(1, 5_000.0, None, at=warehouse.now))
    assert [warehouse.refresh(rows) for rows in (0, 90, 90, 90, 90)] == [()] * 5
    assert warehouse.report()[0]["kind"] == "paced"
    # Nor do the words of one that is demoted reach further than that.
    warehouse.view.policy = sw.manual()
    assert any("demoted" in told for _ in range(5) for told in warehouse.refresh(90))
    warehouse.view.policy = sw.rows(100)
    warehouse.refresh(90)
    newest = next(r for r in warehouse.catalog.forecasts(warehouse.id) if r.table_name == "orders")
    assert (newest.kind, newest.detail[OWN_BOUNDS]) == ("naive", [50, 200])


def test_delays_are_read_from_files_once(make: Any, tmp_path: Path) -> None:
    warehouse = make(sw.late_arrivals("at"))
    files = []
    for number in range(3):
        path = f"data/t1/{number}"
        (tmp_path / path).mkdir(parents=True)
        rows = [None, 10**6 * 10, 10**6 * 20]
        times = pa.array(rows, pa.timestamp("us", tz="UTC"))
        pq.write_table(pa.table({"c0": pa.array([1, 2, 3]), "c1": times}), tmp_path / path / "part-0.parquet")
        warehouse.change("orders", 3, path)
        files.append(path)
    warehouse.refresh()
    records = warehouse.catalog.delays(1, "at", 0, 10)
    arrived = {a.version: a.at for a in warehouse.catalog.arrivals(warehouse.catalog.table("orders"), 0, 10)}
    assert len(records) == 3
    for record in records:
        at = arrived[record.version]
        assert record.points == [[pytest.approx(at - 20, abs=0.01), 1], [pytest.approx(at - 10, abs=0.01), 1]]
    for path in files:  # what was measured is not read again
        (tmp_path / path / "part-0.parquet").unlink()
    warehouse.refresh(7)
    assert warehouse.catalog.delays(1, "at", 0, 10) == records


def test_a_horizon_that_is_none_is_refused(make: Any) -> None:
    warehouse = make(sw.learned())
    for bad in ("soon", -1, 0, float("nan"), float("inf")):
        with refused("FORECAST_INVALID"):
            look_ahead(warehouse.view, 5.0, bad)


def test_the_log_of_arrivals_grows_and_forgets(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = make(sw.learned())
    log, table = ArrivalLog(warehouse.catalog), warehouse.catalog.table("orders")
    for rows in (1, 2, 3):
        warehouse.change("orders", rows)
        changes, whole = log.of(table)
        assert (changes[-1].rows, len(changes), whole) == (rows, rows, True)
    assert all(isinstance(change, ArrivalRecord) for change in changes)
    assert MOST_CHANGES > 3
    monkeypatch.setattr("slackwater.arrivals.outlook.MOST_CHANGES", 2)
    changes, whole = log.of(table)
    assert ([change.rows for change in changes], whole) == ([2, 3], False)
    changes, whole = ArrivalLog(warehouse.catalog).of(table)
    assert ([change.rows for change in changes], whole) == ([2, 3], False)


def test_the_log_asks_again_only_for_what_changed(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = make(sw.learned())
    catalog, log = warehouse.catalog, ArrivalLog(warehouse.catalog)
    tables = [catalog.table(name) for name in ("orders", "other")]
    asked: list[str] = []
    real = Catalog.arrivals

    def arrivals(self: Catalog, table: TableRecord, after: int, limit: int) -> Any:
        asked.append(table.name)
        return real(self, table, after, limit)

    monkeypatch.setattr(Catalog, "arrivals", arrivals)

    def rows() -> list[list[int]]:
        seen = log.look()
        return [[change.rows for change in log.of(table, seen)[0]] for table in tables]

    warehouse.change("orders", 1)
    assert rows() == [[1], []]
    warehouse.change("other", 2)
    asked.clear()
    assert rows() == [[1], [2]]
    assert asked == ["other"]
    with catalog.commit("rename_table", "sales", {"from": "orders"}) as tx:
        tables[0] = tx.rename_table(tables[0].id, "sales")
    warehouse.change("sales", 3)
    assert rows() == [[1, 3], [2]]
    with catalog.commit("rename_table", "orders", {"from": "other"}) as tx:
        tables[1] = tx.rename_table(tables[1].id, "orders")
    warehouse.change("orders", 4)
    assert rows() == [[1, 3], [2, 4]]


def test_a_reader_of_an_older_state_does_not_hide_a_change(make: Any) -> None:
    """Its transaction began before a change that another thread has looked beyond."""
    warehouse = make(sw.learned())
    catalog, log = warehouse.catalog, ArrivalLog(warehouse.catalog)
    table = catalog.table("orders")
    with ThreadPoolExecutor(1) as other:
        with catalog.reading():
            seen = log.look()
            other.submit(warehouse.change, "orders", 5).result()
            other.submit(log.look).result()
            assert log.of(table, seen)[0] == ()
        assert [change.rows for change in log.of(table, log.look())[0]] == [5]


def test_what_one_thread_read_before_a_change_does_not_hide_what_another_read_since(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = make(sw.learned())
    catalog, log = warehouse.catalog, ArrivalLog(warehouse.catalog)
    table, arrivals = catalog.table("orders"), catalog.arrivals
    has_read, goes_on = threading.Event(), threading.Event()
    warehouse.change("orders", 4)
    log.look()

    def held(*given: Any) -> Any:
        found = arrivals(*given)
        if not has_read.is_set():
            has_read.set()
            goes_on.wait(1.0)
        return found

    def refresh() -> tuple[ArrivalRecord, ...]:
        changes = log.of(table, log.look())[0]
        goes_on.set()
        return changes

    monkeypatch.setattr(catalog, "arrivals", held)
    with ThreadPoolExecutor(2) as threads:
        explaining = threads.submit(log.of, table)
        assert has_read.wait(10.0)
        warehouse.change("orders", 5)
        assert [change.rows for change in threads.submit(refresh).result()] == [4, 5]
        explaining.result()
    assert [change.rows for change in log.of(table, log.look())[0]] == [4, 5]


def test_what_was_merged_for_good_is_not_measured(make: Any, tmp_path: Path) -> None:
    """A view that has read nothing yet asks for all of a table's history, which may have no beginning any more."""
    warehouse = make(sw.late_arrivals("at"))
    catalog, paths = warehouse.catalog, []
    for number in range(3):
        paths.append(f"data/t1/{number}")
        (tmp_path / paths[-1]).mkdir(parents=True)
        at = pa.array([number * 10**6], pa.timestamp("us", tz="UTC"))
        pq.write_table(pa.table({"c1": at}), tmp_path / paths[-1] / "part-0.parquet")
        warehouse.change("orders", 1, paths[-1])
    merged, last = [s for s in catalog.segments("t1") if s.path != paths[2]], catalog.version()
    with catalog.commit("compact", "orders") as tx:
        tx.merge_segments("t1", [s.id for s in merged], [NewSegment(1, paths[0], 2, 1)])
    look_ahead(warehouse.view, warehouse.now)
    catalog.forget_segments([s.id for s in merged])
    found = look_ahead(warehouse.view, warehouse.now)
    with catalog.commit("refresh", "v") as tx:
        found.record(tx)
    assert [record.version for record in catalog.delays(1, "at", 0, 10)] == [last]


def test_refreshes_are_known_once(make: Any) -> None:
    warehouse = make(sw.learned())
    log, catalog = warehouse.engine.arrivals, warehouse.catalog
    for at in range(3):
        with catalog.commit("refresh", "v") as tx:
            tx.add_refresh(warehouse.id, tx.version - 1, tx.version, 0.1, {}, at=float(at))
        assert log.marks(warehouse.id) == catalog.refresh_points(warehouse.id, 10)
    assert [at for _, at in log.marks(warehouse.id)] == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("low", "high", "actual", "far"),
    [(80, 120, 100, False), (80, 120, 1_200, False), (80, 120, 1_300, True), (80, 120, 8, False), (80, 120, 6, True)],
)
def test_a_miss_is_ten_times_outside_the_bounds(low: float, high: float, actual: float, far: bool) -> None:
    assert missed(low, high, actual) is far


def test_statsmodels_is_imported_only_when_it_is_needed() -> None:
    code = "import sys, slackwater; sys.exit('statsmodels' in sys.modules or 'scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

"""Forecasts through whole refreshes: recorded, settled, demoted, measured and reported, across a restart."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from tests.unit.catalog_suite import refused

pytestmark = pytest.mark.spark

QUERY = "SELECT o.k % 2 AS odd, count(*) AS n FROM o JOIN c ON o.k = c.k GROUP BY o.k % 2"


def test_a_refresh_settles_the_last_forecast_and_records_the_next(tmp_path: Path, spark: SparkSession) -> None:
    with sw.Engine(tmp_path / "w", spark=spark) as engine:
        orders = engine.create_table("o", "k INT")
        engine.create_table("c", "k INT").insert([(k,) for k in range(100)])
        orders.insert([(k,) for k in range(100)])
        for bad in (sw.fixed(nowhere=1), sw.late_arrivals({"nowhere": "t"})):
            with refused("FORECAST_TABLE_UNKNOWN"):
                engine.create_view("v", QUERY, forecast=bad)
        with refused("FORECAST_COLUMN"):
            engine.create_view("v", QUERY, forecast=sw.late_arrivals("k"))
        with refused("FORECAST_INVALID"):
            engine.create_view("v", QUERY, forecast="learned")  # type: ignore[arg-type]
        assert engine.views() == [], "nothing half-made"

        view = engine.create_view("v", QUERY, forecast=sw.fixed(o=1000))
        assert [(f["table"], f["rows"], f["actual"]) for f in sorted(view.forecasts(), key=lambda f: f["table"])] == [
            ("c", 0, None),
            ("o", 1000, None),
        ]
        orders.insert([(1,), (2,), (3,)])
        orders.delete([(3,)])
        version = view.refresh().to_version
        settled = {f["table"]: f for f in view.forecasts() if f["settled_version"] is not None}
        assert settled["o"]["settled_version"] == version
        assert (settled["o"]["actual"], settled["o"]["actual_deleted"], settled["c"]["actual"]) == (4, 1, 0)
        assert view.forecast("2min").of("o").deletes == pytest.approx(0.25)

        assert view.refresh().mode == "none"
        view.refresh(full=True)
        assert len(view.forecasts()) == 4, "a refresh without changes settles nothing"

        for k in (4, 5):
            orders.insert([(k,)])
            report = view.refresh()
        assert "demoted to naive" in report.reason
        assert "demoted to naive" in str(view.history()), "the record says so too"
    with sw.Engine(tmp_path / "w", spark=spark) as engine:
        view = engine.view("v")
        assert view.forecaster == sw.fixed(o=1000)
        assert view.forecast().of("o").kind == "naive"
        assert "demoted to naive" in str(view.forecasts())
        view.set_forecast(sw.learned())
        assert engine.catalog.view("v").options_json.count('"learned"') == 1
        engine.table("o").insert([(6,)])
        view.refresh()
        assert view.forecaster == sw.learned(), "a refresh keeps it"
        assert {f["kind"] for f in view.forecasts(2)} == {"learned"}
        assert view.verify()


def test_late_rows_and_a_reported_pace(tmp_path: Path, spark: SparkSession) -> None:
    start = datetime.now(timezone.utc) - timedelta(hours=1)
    with sw.Engine(tmp_path / "w", spark=spark) as engine:
        table = engine.create_table("e", "id INT, at TIMESTAMP, d DATE")
        late = engine.create_view("late", "SELECT count(*) AS n FROM e", forecast=sw.late_arrivals("at"))
        days = engine.create_view("days", "SELECT count(*) AS n FROM e", forecast=sw.late_arrivals("d", batch="1d"))
        paced = engine.create_view("paced", "SELECT count(*) AS n FROM e", forecast=sw.paced())
        for number in range(3):
            table.insert(
                [(i, start + timedelta(seconds=i), start.date()) for i in range(20 * number, 20 * number + 20)]
            )
            for view in (late, days, paced):
                view.refresh()
        measured = engine.catalog.delays(table.id, "at", 0, 10)
        assert [sum(rows for _, rows in record.points) for record in measured] == [20, 20, 20]
        assert all(3500 < step < 3700 for record in measured for step, _ in record.points)
        # All came at once, an hour after they happened: that says nothing yet about who is late.
        assert "had time enough to be late" in late.forecast("1min").of("e").reason
        (dated, *_) = engine.catalog.delays(table.id, f"d by {86400}", 0, 10)
        midnight = datetime(start.year, start.month, start.day, tzinfo=timezone.utc) + timedelta(days=1)
        arrived = next(c.at for c in engine.catalog.commits() if c.version == dated.version)
        assert dated.points == [[pytest.approx(arrived - midnight.timestamp(), abs=0.01), 20]]

        for rate, remaining in ((-1, None), (float("nan"), None), (1, -5), (1, float("inf")), ("fast", None)):
            with refused("FORECAST_INVALID"):
                table.report_pace(rate, remaining)  # type: ignore[arg-type]
        version = engine.catalog.version()
        table.report_pace(10, remaining=1000)
        assert engine.catalog.version() == version
    with sw.Engine(tmp_path / "w", spark=spark) as engine:
        said = engine.view("paced").forecast("60s").of("e")
        assert (said.rows, said.complete_after) == (600, False)
        engine.table("e").insert([(i, start, start.date()) for i in range(500)])
        said = engine.view("paced").forecast("60s").of("e")
        assert (said.rows, said.complete_after) == (500, True)
    with sw.Engine(tmp_path / "w", spark=spark, read_only=True) as engine:
        assert engine.view("paced").forecast("60s").of("e").rows == 500
        with refused("WAREHOUSE_LOCKED"):
            engine.table("e").report_pace(1)

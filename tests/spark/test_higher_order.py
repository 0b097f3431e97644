"""Higher-order views on Spark: every join that a change has to meet is kept, and the result is the query's."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.algebra.multi_join import MultiJoin

pytestmark = pytest.mark.spark

QUERY = """SELECT c.region, count(*) AS n, sum(l.price) AS total, min(p.name) AS first FROM lines l
    JOIN orders o ON l.oid = o.oid JOIN customers c ON o.cid = c.cid JOIN parts p ON l.pid = p.pid
    WHERE c.region <> 'north' AND l.price > 3 GROUP BY c.region"""


def fill(engine: sw.Engine) -> None:
    lines = engine.create_table("lines", "oid INT, pid INT, price INT")
    orders = engine.create_table("orders", "oid INT, cid INT", key=["oid"])
    customers = engine.create_table("customers", "cid INT, region STRING", key=["cid"])
    parts = engine.create_table("parts", "pid INT, name STRING", key=["pid"])
    lines.insert([(n % 60, n % 7, n % 11) for n in range(300)])
    orders.insert([(n, n % 20) for n in range(60)])
    customers.insert([(n, ("north", "south", "east")[n % 3]) for n in range(20)])
    parts.insert([(n, f"part {n}") for n in range(7)])


def change_everything(engine: sw.Engine, turn: int) -> None:
    engine.table("lines").insert([(turn, 1, 9), (61 + turn, 8, 10)])
    engine.table("lines").delete([(turn + 5, (turn + 5) % 7, (turn + 5) % 11)])
    engine.table("orders").upsert([(61 + turn, 21 + turn), (turn, 4)])
    engine.table("customers").upsert([(21 + turn, "west"), (4, "north" if turn % 2 else "south")])
    engine.table("parts").upsert([(8, f"a part {turn}"), (1, f"part one {turn}")])


@pytest.mark.slow
def test_all_views_are_kept_and_followed(tmp_path: Path, spark: SparkSession) -> None:
    with sw.Engine(tmp_path / "wh", spark=spark) as engine:
        fill(engine)
        view = engine.create_view("totals", QUERY, strategy="higher_order")
        # four tables in a row make 9 connected parts, and the partial rows of the aggregate come on top
        assert len(view.states) == 10
        change_everything(engine, 0)
        report = view.refresh()
        assert report.mode == "incremental", report.reason
        assert len(view.states) == 10
        assert view.verify()
        engine.table("lines").insert([(3, 3, 10)])
        report = view.refresh()
        assert report.mode == "incremental"
        assert view.verify()
        assert "JoinOfMany" in str(view.explain())
        assert view.what_if(budget="1GB").size > 0
    with sw.Engine(tmp_path / "wh", spark=spark) as engine:  # saved states are found again
        view = engine.view("totals")
        engine.table("lines").insert([(2, 2, 10)])
        assert view.refresh().mode == "incremental"
        assert view.verify()
        engine.budget = view.state_bytes() // 2
        for turn in (3, 4):
            engine.table("parts").upsert([(1, f"part one {turn}")])
            report = view.refresh()
        assert report.mode == "recompute"
        assert "budget" in report.reason
        assert not report.states
        assert view.verify()
        engine.budget = 10**9
        changed = engine.create_view("totals", QUERY, strategy="auto", replace=True)
        engine.table("lines").insert([(4, 4, 10)])
        report = changed.refresh()
        assert "another strategy" in report.reason
        assert not any(isinstance(x, MultiJoin) for x in changed.plan.walk())
        assert changed.verify()

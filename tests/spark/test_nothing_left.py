"""What a closed engine leaves behind in a process that lives on: nothing."""

from __future__ import annotations

import gc
from pathlib import Path
from weakref import ReferenceType, ref

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.planning import lookup_costing, plain_rules

pytestmark = pytest.mark.spark

QUERY = "SELECT c.region, count(*) AS n FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.region"


def used(folder: Path, spark: SparkSession) -> list[ReferenceType[SparkSession]]:
    """Open an engine, work with it and close it; gives its sessions."""
    with sw.Engine(folder, spark=spark) as engine:
        customers = engine.create_table("customers", "id INT, region STRING", key=["id"])
        orders = engine.create_table("orders", "id INT, customer INT", key=["id"])
        customers.insert([(i, f"region {i % 3}") for i in range(20)])
        orders.insert([(i, i % 20) for i in range(100)])
        view = engine.create_view("by_region", QUERY)
        for turn in range(2):
            orders.insert([(1_000 + turn, turn)])
            assert view.refresh().mode == "incremental"
        assert view.verify()
        return [ref(session) for session in engine.sessions._made.values()]


def test_a_closed_engine_leaves_no_sessions(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each holds plans, and these hash tables: a process that opens many engines would run out of memory."""
    monkeypatch.setattr(plain_rules, "MANY", 0)
    monkeypatch.setattr(lookup_costing, "SENT_ANYWAY", 0)
    sessions = used(tmp_path / "wh", spark)
    assert len(sessions) >= 2
    gc.collect()
    assert [session for session in sessions if session() is not None] == []

"""What a refresh costs depends on its delta alone: nothing for one that is not the query's, the same after many."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from sqlalchemy import event

import slackwater as sw
from slackwater.execution import compaction
from tests.spark.settling import settle

pytestmark = pytest.mark.spark

JOINED = """SELECT c.region, count(*) AS n, sum(o.amount) AS total, max(o.amount) AS most
    FROM orders o JOIN customers c ON o.customer = c.id WHERE o.amount > 3 GROUP BY c.region"""
QUERIES = (
    JOINED,
    "SELECT id, amount FROM orders WHERE amount > 90 ORDER BY amount DESC LIMIT 5",
    "SELECT o.id FROM orders o LEFT ANTI JOIN customers c ON o.customer = c.id",
    "SELECT id, rank() OVER (PARTITION BY customer ORDER BY amount) AS place FROM orders",
    "SELECT DISTINCT customer FROM orders",
    "SELECT arrays_zip(array(id)) AS recomputed FROM orders",
)


def _shop(engine: sw.Engine) -> tuple[sw.Table, sw.Table]:
    orders = engine.create_table("orders", "id INT, customer INT, amount INT", key=["id"])
    customers = engine.create_table("customers", "id INT, region STRING", key=["id"])
    orders.insert([(n, n % 30, n % 100) for n in range(400)])
    customers.insert([(n, f"region {n % 4}") for n in range(25)])
    return orders, customers


def _jobs(spark: SparkSession) -> int:
    """How many jobs Spark has started."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().nextJobId())


def test_a_delta_of_other_tables_starts_no_job(engine: sw.Engine, spark: SparkSession) -> None:
    orders, _ = _shop(engine)
    other = engine.create_table("other", "a INT")
    views = [engine.create_view(f"v{at}", query) for at, query in enumerate(QUERIES)]
    above = engine.create_view("above", "SELECT region, n FROM v0 WHERE n > 1")
    other.insert([(1,), (2,)])
    other.delete([(1,)])
    orders.insert([])
    before = _jobs(spark)
    for view in (*views, above):
        assert view.refresh().mode == "none"
    assert _jobs(spark) == before
    orders.insert([(1_000, 3, 99)])
    before = _jobs(spark)
    views[0].refresh()
    assert _jobs(spark) > before, "jobs are counted"


@dataclass(frozen=True, slots=True)
class Piled:
    """What there is after a refresh, and what it asked of the catalog."""

    result_segments: int
    table_segments: int
    state_segments: int
    files: int
    statements: int
    program: int


@contextmanager
def _statements(engine: sw.Engine) -> Iterator[list[str]]:
    """What the catalog is asked meanwhile."""
    found: list[str] = []

    def note(connection: object, cursor: object, statement: str, *rest: object) -> None:
        found.append(statement)

    database = engine.catalog.database.engine
    event.listen(database, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(database, "before_cursor_execute", note)


def _tide(engine: sw.Engine, turn: int) -> None:
    """Some inserts at each turn, deletes and updates at some."""
    orders, first = engine.table("orders"), 1_000 + 20 * turn
    orders.insert([(first + n, (first + n) % 30, (turn + 7 * n) % 100) for n in range(20)])
    if turn % 3 == 0:
        orders.delete_keys([(first + n,) for n in range(5)])
    if turn % 5 == 0:
        engine.table("customers").upsert([(turn % 25, f"region {turn % 3}")])


def _refreshed(engine: sw.Engine, view: sw.View) -> Piled:
    with _statements(engine) as found:
        assert view.refresh().mode == "incremental"
    segments = engine.catalog.segments
    assert view.last_program is not None
    return Piled(
        result_segments=len(segments(f"v{view.id}")),
        table_segments=max(len(segments(f"t{engine.table(name).id}")) for name in view.tables),
        state_segments=max((len(state.segments) for state in view.states.values()), default=0),
        files=sum(1 for path in (engine.path / "data").rglob("*") if path.is_file()),
        statements=len(found),
        program=len(view.last_program.as_sql()),
    )


@pytest.mark.slow
def test_sixty_refreshes_pile_up_nothing(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "KEEP_VERSIONS", 10)  # or files would grow for the first hundred versions
    with sw.Engine(tmp_path / "wh", spark=spark, save_states=False) as engine:
        _shop(engine)
        view = engine.create_view("v", JOINED, strategy="incremental")
        seen = []
        for turn in range(60):
            _tide(engine, turn)
            seen.append(_refreshed(engine, view))
        settle(view, "none")
        early, late = seen[20:40], seen[40:]
        assert max(piled.result_segments for piled in seen) <= compaction.RESULT_SEGMENTS + 1
        assert max(piled.table_segments for piled in seen) <= compaction.TABLE_SEGMENTS + 1
        assert 1 <= max(piled.state_segments for piled in seen) <= compaction.STATE_SEGMENTS + 1
        for name, more in (("files", 10), ("statements", 5), ("program", 100)):
            before, after = (max(getattr(piled, name) for piled in part) for part in (early, late))
            assert after <= 1.2 * before + more, f"{name}: {[getattr(piled, name) for piled in seen]}"
        assert sum(piled.state_segments for piled in seen) > 60, "segments of states pile up and are merged"

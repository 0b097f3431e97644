"""Queries that come again: the plan is kept, the rows are not."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.execution import prepared
from slackwater.execution.prepared import Source, files_source, query
from tests.spark.settling import fresh, settle, sorted_rows

pytestmark = pytest.mark.spark


@dataclass
class Counted:
    """How many queries were planned, and how many came from kept plans."""

    planned: int = 0
    kept: int = 0
    seen: list[tuple[int, int]] = field(default_factory=list)

    def since(self) -> tuple[int, int]:
        """Planned and kept since the last look."""
        now = (self.planned, self.kept)
        before = self.seen[-1] if self.seen else (0, 0)
        self.seen.append(now)
        return now[0] - before[0], now[1] - before[1]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    found = Counted()
    plan, exchange = prepared._plan_of, prepared._exchanged

    def planning(*args: Any) -> Any:
        found.planned += 1
        return plan(*args)

    def exchanging(*args: Any) -> Any:
        found.kept += 1
        return exchange(*args)

    monkeypatch.setattr(prepared, "_plan_of", planning)
    monkeypatch.setattr(prepared, "_exchanged", exchanging)
    return found


JOINED = (
    "SELECT o.cust, sum(l.price) AS total, count(*) AS n FROM {lines} l JOIN {orders} o ON l.o = o.id GROUP BY o.cust"
)


def joined_view(engine: sw.Engine, keys: tuple[str, ...] = ()) -> tuple[sw.Table, sw.Table, sw.View]:
    orders = engine.create_table(fresh("t"), "id INT, cust STRING", key=list(keys))
    lines = engine.create_table(fresh("t"), "o INT, price DECIMAL(12,2)")
    orders.insert([(n, f"c{n % 7}") for n in range(50)])
    lines.insert([(n % 60, Decimal(n)) for n in range(400)])
    text = JOINED.format(orders=orders.name, lines=lines.name)
    return orders, lines, engine.create_view(fresh(), text, strategy="incremental")


@pytest.mark.parametrize("keys", [(), ("id",)])
def test_the_same_change_again_is_not_planned_again(
    warehouse: sw.Engine, counted: Counted, keys: tuple[str, ...]
) -> None:
    orders, lines, view = joined_view(warehouse, keys)
    for turn in range(5):
        orders.insert([(50 + turn, f"c{turn}")])
        lines.insert([(50 + turn, Decimal(turn)), (turn, Decimal(1)), (55, Decimal(2))])
        settle(view)
        planned, kept = counted.since()
        assert planned + kept >= 1
        assert turn < 2 or (planned == 0 and kept >= 1), "the second time at the latest, states have their last shape"


@pytest.mark.slow
def test_a_delete_between_is_seen(warehouse: sw.Engine, counted: Counted) -> None:
    """Rows with weights have another text, and a table with deleted rows is read in another way from then on."""
    orders, lines, view = joined_view(warehouse)
    for turn in range(6):
        lines.insert([(turn, Decimal(turn))])
        if turn % 2:
            orders.delete([(turn, f"c{turn % 7}")])
            lines.delete([(turn, Decimal(turn))])
        settle(view)
    assert counted.planned > 2, "each time it was read otherwise"


def test_two_readings_of_one_table(warehouse: sw.Engine, counted: Counted) -> None:
    table = warehouse.create_table(fresh("t"), "a INT, b INT")
    table.insert([(n, (n * 7) % 20) for n in range(20)])
    text = f"SELECT x.a, y.b, x.b AS c FROM {table.name} x JOIN {table.name} y ON x.b = y.a"
    view = warehouse.create_view(fresh(), text, strategy="incremental")
    for turn in range(4):
        table.insert([(turn, 20 + turn), (20 + turn, turn)])
        settle(view)
    assert counted.kept > 0


def test_scalar_subqueries_are_planned_each_time(warehouse: sw.Engine, counted: Counted) -> None:
    """Their leaves are hidden inside of expressions: a kept plan would go on reading the rows of the first time."""
    table = warehouse.create_table(fresh("t"), "a INT")
    table.insert([(n,) for n in range(10)])
    view = warehouse.create_view(
        fresh(), f"SELECT a FROM {table.name} WHERE a > (SELECT avg(a) FROM {table.name})", strategy="incremental"
    )
    for turn in range(4):
        table.insert([(turn * 10,)])
        settle(view)


def test_views_in_turn_do_not_mix_their_rows(warehouse: sw.Engine, counted: Counted) -> None:
    """Two views with the same text of a query over the same table, refreshed at different times."""
    table = warehouse.create_table(fresh("t"), "g INT, v INT")
    table.insert([(1, 1), (2, 2)])
    text = f"SELECT g, sum(v) AS s FROM {table.name} GROUP BY g"
    one, two = (warehouse.create_view(fresh(), text, strategy="incremental") for _ in range(2))
    for turn in range(4):
        table.insert([(turn, turn)])
        settle(one)
        table.insert([(turn, 100)])
        settle(two)
    settle(one)
    assert sorted_rows(one) == sorted_rows(two)
    assert counted.kept > 0


# --- the mechanism alone -------------------------------------------------------------------------------------------


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    made = spark.newSession()
    made.conf.set("spark.sql.adaptive.enabled", "false")
    return made


def files(session: SparkSession, path: str, rows: str) -> Source:
    session.sql(rows).coalesce(1).write.mode("overwrite").parquet(path)
    return files_source(session.read.schema("a BIGINT, b STRING").parquet(path))


def test_leaves_are_exchanged(session: SparkSession, tmp_path: Any, counted: Counted) -> None:
    text = "SELECT b, sum(a) AS s FROM x WHERE a > 1 GROUP BY b ORDER BY b"
    found = []
    for turn in range(3):
        source = files(session, str(tmp_path / str(turn)), f"SELECT id + {turn} AS a, 'k' AS b FROM range(4)")
        found.append([tuple(r) for r in query(session, text, {"x": source}, again=True).collect()])
    assert found == [[("k", 5)], [("k", 9)], [("k", 14)]]
    assert counted.since() == (1, 2)


def test_other_columns_or_partitions_are_planned_again(session: SparkSession, counted: Counted) -> None:
    text = "SELECT k, count(*) AS n FROM x GROUP BY k"

    def cut(rows: str, parts: int) -> Source:
        frame = session.sql(rows).repartition(parts, "k").localCheckpoint()
        rdd = frame._jdf.queryExecution().analyzed().rdd()
        return Source(lambda: frame, (rdd,), prepared.shape_of(frame))

    def counts(source: Source) -> set[tuple[Any, ...]]:
        return {tuple(r) for r in query(session, text, {"x": source}, again=True).collect()}

    assert counts(cut("SELECT id % 2 AS k FROM range(10)", 1)) == {(0, 5), (1, 5)}
    assert counts(cut("SELECT id % 2 AS k FROM range(20)", 1)) == {(0, 10), (1, 10)}
    assert counted.since() == (1, 1)
    assert counts(cut("SELECT id % 2 AS k FROM range(10)", 3)) == {(0, 5), (1, 5)}
    assert counts(cut("SELECT IF(id > 5, NULL, 1L) AS k FROM range(10)", 1)) == {(None, 4), (1, 6)}
    assert counted.since() == (2, 0), "other partitions, and a column that may be NULL"


def test_much_larger_files_are_planned_again(
    session: SparkSession, tmp_path: Any, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared, "SLACK", 0)
    for turn, rows in enumerate((10, 10, 100_000)):
        source = files(session, str(tmp_path / str(turn)), f"SELECT id AS a, 'k' AS b FROM range({rows})")
        assert query(session, "SELECT count(*) AS n FROM x", {"x": source}, again=True).first() == (rows,)
    assert counted.since() == (2, 1)


def test_the_same_rows_under_two_names_are_not_told_apart(
    session: SparkSession, tmp_path: Any, counted: Counted
) -> None:
    one = files(session, str(tmp_path / "one"), "SELECT 1L AS a, 'k' AS b")
    two = files(session, str(tmp_path / "two"), "SELECT 2L AS a, 'k' AS b")
    text = "SELECT x.a, y.a AS c FROM x JOIN y ON x.b = y.b"
    both = [query(session, text, {"x": one, "y": y}, again=True).first() for y in (one, two, one)]
    assert both == [(1, 1), (1, 2), (1, 1)]
    assert counted.since()[0] >= 2


def test_no_more_plans_than_that(session: SparkSession, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "KEPT_PLANS", 2)
    source = files(session, str(tmp_path / "x"), "SELECT 1L AS a, 'k' AS b")
    for n in (1, 2, 1, 3):
        query(session, f"SELECT a + {n} AS n FROM x", {"x": source}, again=True)
    texts = list(prepared._kept[session].plans)
    assert texts == ["SELECT a + 1 AS n FROM x", "SELECT a + 3 AS n FROM x"], "the one used last stays"

"""The few partial rows of a small aggregate, which the driver holds between refreshes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.execution.states import FEW
from tests.spark.settling import fresh, session_with, settle, sorted_rows

pytestmark = pytest.mark.spark

KINDS = "b BOOLEAN, i TINYINT, d DATE, m DECIMAL(38,6), s STRING, x BINARY, f FLOAT"
FIRST = (True, 1, dt.date(2024, 2, 29), Decimal("1.000001"), "é\n'\u0000`", b"\xff\x00", 1.5)
SECOND = (None, None, None, None, None, None, None)


def follow(engine: sw.Engine, query: str) -> sw.View:
    """A view that follows even a delta as large as the table."""
    return engine.create_view(fresh(), query, strategy="incremental")


def held(view: sw.View) -> set[bool]:
    """Whether the driver has the rows of the view's states."""
    return {segment.held > 0 for state in view.states.values() for segment in state.segments}


def test_groups_come_change_stay_and_go(warehouse: sw.Engine) -> None:
    table = warehouse.create_table(fresh("t"), "g STRING, v INT")
    table.insert([("a", 1), ("b", 2), (None, 3), ("d", 4)])
    view = follow(warehouse, f"SELECT g, sum(v) AS s, count(*) AS n FROM {table.name} GROUP BY g")
    assert held(view) == {False}, "a first run leaves them to Spark"
    table.insert([("a", 5), ("e", 6)])
    report = settle(view)
    assert (report.rows_inserted, report.rows_deleted) == (2, 1)
    assert held(view) == {True}
    table.delete([("b", 2), (None, 3)])
    settle(view)
    table.insert([("b", 0), ("d", 0), ("d", None)])
    settle(view)
    assert sorted_rows(view) == [("a", 6, 2), ("b", 0, 1), ("d", 4, 3), ("e", 6, 1)]
    table.delete([("a", 1), ("a", 5), ("b", 0), ("d", 4), ("d", 0), ("d", None), ("e", 6)])
    settle(view)
    assert sorted_rows(view) == []
    table.insert([("z", 1)])
    settle(view)
    assert sorted_rows(view) == [("z", 1, 1)]


def test_a_change_that_changes_no_output_is_kept(warehouse: sw.Engine) -> None:
    """The maximum stays, and so does the sum; what is kept must know of the rows all the same."""
    table = warehouse.create_table(fresh("t"), "g INT, v INT")
    table.insert([(1, 9), (2, 9)])
    view = follow(warehouse, f"SELECT g, sum(v) AS s FROM {table.name} GROUP BY g")
    table.insert([(1, 0), (2, 3)])
    report = settle(view)
    assert (report.rows_inserted, report.rows_deleted) == (1, 1)
    table.delete([(1, 9)])
    settle(view)
    assert sorted_rows(view) == [(1, 0), (2, 12)], "the row of 0 was counted"


def test_one_group_for_everything_below_projections(warehouse: sw.Engine) -> None:
    table = warehouse.create_table(fresh("t"), "v DECIMAL(15,2), p BOOLEAN")
    share = "100.00 * sum(CASE WHEN p THEN v ELSE 0 END) / sum(v)"
    view = follow(warehouse, f"SELECT {share} AS share, max(v) AS most FROM {table.name}")
    for rows in ([(Decimal(3), True)], [(Decimal(1), False), (None, True)], [(Decimal("0.01"), None)]):
        table.insert(rows)
        settle(view)
    assert held(view) == {True}


@pytest.mark.parametrize("column", [c.split()[0] for c in KINDS.split(", ")])
def test_every_type_comes_back_as_it_went(warehouse: sw.Engine, column: str) -> None:
    table = warehouse.create_table(fresh("t"), KINDS)
    table.insert([FIRST, SECOND])
    low = "" if column == "f" else f"min({column}) AS low, "  # results with floating-point aggregates are compared
    query = f"SELECT {column} AS k, {low}count({column}) AS n FROM {table.name} GROUP BY {column}"
    view = follow(warehouse, query)
    for _ in range(2):
        table.insert([FIRST, SECOND])
        settle(view)
    assert held(view) == {True}


def test_they_outlive_the_engine(tmp_path: Path, spark: SparkSession) -> None:
    with sw.Engine(tmp_path / "wh", spark=spark) as engine:
        table = engine.create_table("t", "g INT, v INT")
        table.insert([(1, 1), (2, 2)])
        view = engine.create_view("v", "SELECT g, sum(v) AS s FROM t GROUP BY g")
        table.insert([(1, 1)])
        settle(view)
        assert held(view) == {True}
    with sw.Engine(tmp_path / "wh", spark=spark) as engine:
        engine.table("t").insert([(3, 3)])
        settle(engine.view("v"))
        assert sorted_rows(engine.view("v")) == [(1, 2), (2, 2), (3, 3)]


def test_too_many_groups_go_back_to_spark(warehouse: sw.Engine) -> None:
    table = warehouse.create_table(fresh("t"), "g INT, v INT")
    table.insert([(1, 1)])
    view = follow(warehouse, f"SELECT g, sum(v) AS s FROM {table.name} GROUP BY g")
    table.insert([(1, 1)])
    settle(view)
    table.insert([(n, n) for n in range(20 * FEW)])
    settle(view, None)
    table.insert([(5, 5)])
    settle(view)
    table.insert([(6, 6)])
    settle(view)
    assert False in held(view)


def test_settings_of_the_session_do_not_reach_them(warehouse: sw.Engine, spark: SparkSession) -> None:
    table = warehouse.create_table(fresh("t"), "g DATE, v DOUBLE")
    table.insert([(dt.date(1582, 10, 4), float("nan")), (None, -0.0)])
    view = follow(warehouse, f"SELECT v, g, count(*) AS n, max(g) AS last FROM {table.name} GROUP BY g, v")
    with session_with(spark, session__timeZone="Pacific/Apia", execution__arrow__pyspark__enabled="false"):
        for value in (0.0, float("nan"), float("inf"), None):
            table.insert([(dt.date(1582, 10, 4), value), (None, value)])
            settle(view)
    assert held(view) == {True}


def test_results_that_arrow_cannot_hold_are_compared_in_spark(warehouse: sw.Engine) -> None:
    table = warehouse.create_table(fresh("t"), "g INT, v INTERVAL YEAR TO MONTH, w INTERVAL DAY TO SECOND")
    spark = warehouse.spark
    months = "SELECT id % 3 AS g, make_ym_interval(1, CAST(id AS INT)) AS v, make_dt_interval(CAST(id AS INT)) AS w"
    table.insert(spark.sql(f"{months} FROM range(9)").selectExpr("CAST(g AS INT) AS g", "v", "w"))
    view = warehouse.create_view(fresh(), f"SELECT g, max(v) AS v, max(w) AS w FROM {table.name} GROUP BY g")
    table.insert(spark.sql(f"{months} FROM range(9, 11)").selectExpr("CAST(g AS INT) AS g", "v", "w"))
    assert view.refresh(full=True).mode == "recompute"
    assert view.verify()


def test_a_column_named_like_one_of_ours(warehouse: sw.Engine) -> None:
    table = warehouse.create_table(fresh("t"), "x0 INT, _x0 INT, v INT")
    table.insert([(n % 3, n % 2, n) for n in range(30)])
    view = warehouse.create_view(
        fresh(), f"SELECT x0, _x0, sum(v) AS x1, count(*) AS _x1 FROM {table.name} GROUP BY x0, _x0"
    )
    table.insert([(1, 1, 1)])
    settle(view)
    table.delete([(1, 1, 1)])
    settle(view)

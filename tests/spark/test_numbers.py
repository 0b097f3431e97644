"""Numbers and types that break naive maintenance: overflow, infinities, sums that are never exact."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from tests.spark.settling import fresh, rows, session_with, settle

NAN = math.nan
NOON = dt.datetime(2024, 3, 10, 12, tzinfo=dt.timezone.utc)
HUGE = Decimal("6" * 36 + ".66")
"""Fits decimal(38,2); twice as much does not."""


@pytest.mark.parametrize("ansi", [pytest.param("true", marks=pytest.mark.slow), "false"])
def test_a_decimal_sum_that_overflows_and_comes_back(warehouse: sw.Engine, spark: SparkSession, ansi: str) -> None:
    with session_with(spark, ansi__enabled=ansi):
        table = warehouse.create_table(fresh("t"), "g INT, m DECIMAL(38,2)")
        table.insert([(n % 2, Decimal(n)) for n in range(10)])
        view = warehouse.create_view(fresh(), f"SELECT g, sum(m) AS s, count(*) AS n FROM {table.name} GROUP BY g")
    before = sorted(rows(view))
    table.insert([(0, HUGE), (0, HUGE)])
    if ansi == "true":
        with pytest.raises(sw.SlackwaterError, match="SPARK_FAILED"):
            view.refresh()
        assert sorted(rows(view)) == before
    else:
        settle(view, None)
        assert (0, None, 7) in rows(view)
    table.delete([(0, HUGE)])
    settle(view, None)
    assert (0, Decimal("6" * 34 + "86.66"), 6) in rows(view)
    table.delete([(0, HUGE)])
    settle(view, None)
    assert sorted(rows(view)) == before
    table.insert([(1, Decimal("0.01"))])
    settle(view)


@pytest.mark.parametrize("scale", [6, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 20))])
def test_wide_decimals_are_taken_back(warehouse: sw.Engine, scale: int) -> None:
    """Spark negates no more than 34 digits exactly; a sum follows the deletes of shorter numbers all the same."""
    digits = 34 - scale
    some = [Decimal("9" * digits + "." + "8" * scale), Decimal("-" + "7" * digits + "." + "6" * scale), None]
    table = warehouse.create_table(fresh("t"), f"g INT, m DECIMAL(38,{scale})")
    table.insert([(g, m) for g in range(3) for m in [*some, Decimal(1)]])
    view = warehouse.create_view(fresh(), f"SELECT g, sum(m) AS s FROM {table.name} GROUP BY g")
    table.delete([(0, some[0]), (1, some[1]), (1, None), (2, Decimal(1))])
    settle(view)
    assert "redone" not in str(view.explain())
    longer = Decimal("1" + "2" * digits + "." + "3" * scale)
    table.insert([(0, longer), (1, longer)])
    settle(view)
    table.delete([(1, longer)])
    settle(view, "recompute")
    table.delete([(0, some[1])])
    settle(view)


@pytest.mark.usefixtures("eager_compaction")
@pytest.mark.slow
def test_sums_that_are_never_exact(tmp_path: Path, spark: SparkSession) -> None:
    """Each order of addition gives other last digits: an old row must be taken back as it was stored."""
    sums = "SELECT g, sum(d) AS s, avg(d) AS a, stddev_pop(d) AS sd, count(*) AS n FROM t GROUP BY g"
    with sw.Engine(tmp_path / "wh", spark=spark) as engine:
        table, names = engine.create_table("t", "g INT, d DOUBLE"), engine.create_table("u", "g INT, name STRING")
        table.insert([(n % 5, n / 10 + 1e-3 * (n % 7)) for n in range(200)])
        names.insert([(n, f"name {n % 2}") for n in range(5)])
        merged = engine.create_view("merged", "SELECT g, sum(d) AS s, avg(d) AS a, count(*) AS n FROM t GROUP BY g")
        redone = engine.create_view("redone", sums)
        above = engine.create_view(
            "above",
            f"SELECT name, max(s) AS hi, count(*) AS n FROM ({sums}) x JOIN u ON x.g = u.g WHERE s > 1 GROUP BY name",
        )
        for n in range(4):
            table.insert([(k, 0.1 * (k + n) + 0.01 * n) for k in range(4)] * 3)
            table.delete([(2 * n % 5, 2 * n / 10 + 1e-3 * (2 * n % 7))])
            if n == 2:
                names.insert([(3, "name 1")])
            settle(merged)
            settle(redone)
            settle(above, None)
            assert merged.result().count() == redone.result().count() == 5
    with sw.Engine(tmp_path / "wh", spark=spark) as engine:
        engine.table("t").insert([(0, 0.7), (1, 0.7)])
        settle(engine.view("merged"))
        assert engine.view("merged").result().count() == 5


def test_infinities_come_and_go(warehouse: sw.Engine) -> None:
    table = warehouse.create_table(fresh("t"), "g INT, d DOUBLE, f FLOAT")
    table.insert([(n % 2, n / 4, n / 2) for n in range(16)])
    view = warehouse.create_view(
        fresh(), f"SELECT g, sum(d) AS s, avg(f) AS a, max(d) AS hi FROM {table.name} GROUP BY g"
    )
    before = sorted(rows(view))
    odd = [(0, math.inf, -math.inf), (0, -math.inf, NAN), (1, 1e308, 3e38), (1, 1e308, 3e38)]
    table.insert(odd[:1] + odd[2:])
    settle(view)
    assert {r[0]: r[1] for r in rows(view)} == {0: math.inf, 1: math.inf}
    table.insert(odd[1:2])
    settle(view)
    assert all(math.isnan(r[1]) for r in rows(view) if r[0] == 0)
    table.delete(odd)
    settle(view)
    assert sorted(rows(view)) == before


TYPES = {
    "day DATE": [dt.date(1, 1, 1), dt.date(2024, 2, 29), dt.date(9999, 12, 31)],
    "at TIMESTAMP": [NOON, NOON + dt.timedelta(microseconds=1), dt.datetime(1900, 1, 1, tzinfo=dt.timezone.utc)],
    "ntz TIMESTAMP_NTZ": [dt.datetime(2024, 3, 10, 2, 30), dt.datetime(1, 1, 1), dt.datetime(2024, 11, 3, 1, 30, 0, 5)],
    "bin BINARY": [b"", b"\x00\xff", b"abc"],
    "tiny TINYINT": [-128, 127, 0],
    "small SMALLINT": [-(2**15), 2**15 - 1, 0],
    "big BIGINT": [-(2**63), 2**63 - 1, 0],
    "flt FLOAT": [0.5, -math.inf, NAN],
    "wide DECIMAL(38,18)": [Decimal("-12345678901234567890.123456789012345678"), Decimal("1e-18"), Decimal(0)],
    "span INTERVAL DAY TO SECOND": [dt.timedelta(days=-1, microseconds=1), dt.timedelta(0), dt.timedelta(hours=5)],
    "st STRUCT<x: INT, y: ARRAY<STRING>>": [(1, ["a", None]), (None, []), (2, None)],
    "arr ARRAY<DOUBLE>": [[0.5, None], [], [NAN]],
    "ok BOOLEAN": [True, False, True],
    "s STRING": ["", "\x00 zero", "🙂 'quoted' \\ \n"],
}


def test_every_type_survives(warehouse: sw.Engine, spark: SparkSession) -> None:
    """All rows, and groups by every column, through inserts and deletes, with clocks that are not at UTC."""
    names = [column.split()[0] for column in TYPES]
    values = [tuple(column[n] for column in TYPES.values()) for n in range(3)] + [(None,) * len(TYPES)]
    with session_with(spark, session__timeZone="America/New_York"):
        table = warehouse.create_table(fresh("t"), ", ".join(TYPES))
        table.insert(values * 2)
        every = warehouse.create_view(fresh(), f"SELECT * FROM {table.name}")
        grouped = warehouse.create_view(
            fresh(), f"SELECT {', '.join(names)}, count(*) AS n FROM {table.name} GROUP BY ALL"
        )
        low = ", ".join(f"min({n}) AS lo_{n}, max({n}) AS hi_{n}" for n in names if n not in ("st", "arr"))
        extremes = warehouse.create_view(fresh(), f"SELECT {low} FROM {table.name}")
    for change in (lambda: table.insert(values[:2]), lambda: table.delete([values[0], values[2], values[3]])):
        change()
        for view in (every, grouped, extremes):
            settle(view)
    assert sorted(r["n"] for r in grouped.result().collect()) == [1, 1, 2, 3]


def test_sums_of_bigint_wrap_or_fail_as_spark_does(warehouse: sw.Engine, spark: SparkSession) -> None:
    top = 2**63 - 1
    with session_with(spark, ansi__enabled="false"):
        table = warehouse.create_table(fresh("t"), "g INT, l BIGINT")
        table.insert([(n % 2, n) for n in range(12)])
        lax = warehouse.create_view(fresh(), f"SELECT g, sum(l) AS s FROM {table.name} GROUP BY g")
    strict = warehouse.create_view(fresh(), f"SELECT g, sum(l) AS s FROM {table.name} GROUP BY g")
    before = sorted(rows(strict))
    table.insert([(0, top), (0, top), (1, -top - 1)])
    settle(lax)
    with pytest.raises(sw.SlackwaterError, match="SPARK_FAILED"):
        strict.refresh()
    table.delete([(0, top), (0, top), (1, -top - 1)])
    settle(lax, None)
    settle(strict, None)
    assert sorted(rows(lax)) == sorted(rows(strict)) == before


def test_rows_that_no_join_finds_cannot_fail_a_query(warehouse: sw.Engine, spark: SparkSession) -> None:
    """The groups are made before their key is looked up, and those of an unknown key overflow."""
    with session_with(spark, ansi__enabled="true"):
        known = warehouse.create_table(fresh("t"), "k INT, name STRING", key=["k"])
        table = warehouse.create_table(fresh("t"), "k INT, m DECIMAL(38,2)")
        known.insert([(1, "a"), (2, "a")])
        table.insert([(1, Decimal(1)), (2, Decimal(2)), (2, Decimal(3))])
        query = "SELECT c.k, name, sum(m) AS s FROM {} t JOIN {} c ON t.k = c.k GROUP BY c.k, name"
        view = warehouse.create_view(fresh(), query.format(table.name, known.name))
    table.insert([(9, HUGE), (9, HUGE), (None, HUGE), (None, HUGE), (1, Decimal(4))])
    settle(view, None)
    assert sorted(rows(view)) == [(1, "a", Decimal(5)), (2, "a", Decimal(5))]
    table.insert([(2, Decimal(1))])
    settle(view, None)
    known.insert([(9, "b")])
    with pytest.raises(sw.SlackwaterError, match="SPARK_FAILED"):
        view.refresh()
    table.delete([(9, HUGE), (None, HUGE)])
    settle(view, None)
    assert (9, "b", HUGE) in rows(view)

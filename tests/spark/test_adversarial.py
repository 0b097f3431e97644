"""Views under changes that break naive maintenance: after every refresh the result is what a recompute gives."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from slackwater.algebra.nodes import Opaque
from slackwater.execution import compaction

_NUMBERS = itertools.count(1)


def fresh(prefix: str = "v") -> str:
    return f"{prefix}{next(_NUMBERS)}"


def settle(view: sw.View, mode: str | None = "incremental") -> sw.Refresh:
    """Refresh, and prove the result; `mode` is how the refresh must have been done."""
    report = view.refresh()
    check = view.verify()
    assert check, str(check)
    assert mode is None or report.mode == mode, str(report)
    return report


def problems(view: sw.View, mode: str) -> Iterator[str]:
    """What is wrong with a view after a refresh, for tests that look at many views before they fail."""
    try:
        report, check = view.refresh(), view.verify()
    except Exception as error:
        yield f"{type(error).__name__}: {str(error)[:500]}"
        return
    if not check:
        yield str(check)
    if report.mode != mode:
        yield str(report)


def rows(view: sw.View) -> list[tuple[Any, ...]]:
    return [tuple(r) for r in view.result().collect()]


@contextmanager
def session_with(spark: SparkSession, **settings: str) -> Iterator[None]:
    """The user changes settings of the session, and back."""
    names = {f"spark.sql.{name.replace('__', '.')}": value for name, value in settings.items()}
    before = {name: spark.conf.get(name) for name in names}
    try:
        for name, value in names.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


# --- the tides: three tables, many views, rounds of changes ----------------------------------------------------------

NAN = math.nan
SALES = "k INT, g STRING, i INT, l BIGINT, d DOUBLE, m DECIMAL(12,2), b BOOLEAN, at TIMESTAMP"
NOON = dt.datetime(2024, 3, 10, 12, tzinfo=dt.timezone.utc)


def sale(k: int | None, g: str | None, i: int | None, d: float | None = 0.5, m: str | None = "1.25") -> tuple[Any, ...]:
    moment = None if i is None else NOON + dt.timedelta(hours=i)
    amount = None if m is None else Decimal(m)
    return (k, g, i, None if i is None else i * 2**40, d, amount, None if i is None else i % 2 == 0, moment)


BASE_SALES = [
    *(sale(n % 5, "abc"[n % 3], n % 7, (n % 4) / 2, f"{n}.{n % 100:02}") for n in range(36)),
    *(sale(None, None, None, None, None) for _ in range(2)),
    sale(1, "lonely", 5, 7.0), sale(2, "nan", 1, NAN), sale(2, "nan", 2, NAN), sale(3, "zero", 1, -0.0),
    sale(3, "zero", 1, 0.0),
]  # fmt: skip
BASE_ITEMS = [
    *((n % 5, f"item {n % 3}", (n % 4) / 2) for n in range(18)),
    (None, None, None),
    (9, "none sold", NAN),
    (9, "zero", -0.0),
]
BASE_LABELS = [(f"item {n}", n) for n in range(3)] + [("none sold", 9), (None, 0), ("item 1", 1)]

ROUNDS: dict[str, dict[str, tuple[list[Any], list[Any]]]] = {
    "only inserts: duplicates, NULL keys, a new group": {
        "sales": (
            [sale(1, "a", 3), sale(1, "a", 3), sale(None, None, 4), sale(4, "new", None), sale(3, "zero", 2, -0.0)], [],
        ),
    },
    "a maximum and the last row of a group go, a row moves, all inputs change together": {
        "sales": (
            [sale(0, "c", 0, 0.0, "0.00"), sale(9, "b", 6, NAN), sale(5, "late", 7, -0.0)],
            [BASE_SALES[0], BASE_SALES[6], BASE_SALES[35], sale(1, "lonely", 5, 7.0), sale(2, "nan", 1, NAN),
             sale(None, None, None, None, None)],
        ),
        "items": ([(9, "item 1", 0.5), (1, "fresh", NAN)], [BASE_ITEMS[1], (9, "none sold", NAN)]),
        "labels": ([("fresh", 3)], [("item 1", 1)]),
    },
}  # fmt: skip

VIEWS = {
    "additive": """SELECT g, count(*) AS n, count(i) AS some, sum(i) AS s, sum(l) AS sl, sum(m) AS sm, avg(i) AS ai,
        avg(m) AS am, var_pop(i) AS vp, stddev_samp(i) AS ss, variance(m) AS vm,
        count(*) FILTER (WHERE d > 0.5) AS big, sum(m) FILTER (WHERE b) AS even FROM sales GROUP BY g""",
    "mergeable": """SELECT g, min(i) AS lo, max(i) AS hi, min(d) AS dl, max(d) AS dh, min(at) AS first_at, max(m) AS mh,
        bool_and(b) AS every_b, bool_or(b) AS some_b, bit_and(i) AS ba, bit_or(l) AS bo, bit_xor(i) AS bx,
        sum(d) AS sd, avg(d) AS ad, max(i) FILTER (WHERE d < 1) AS small FROM sales GROUP BY g""",
    "redone": """SELECT g, covar_samp(i, d) AS c, var_pop(d) AS vd, sum(DISTINCT i) AS di, avg(l) AS al
        FROM sales WHERE d IS NULL OR NOT isnan(d) GROUP BY g""",
    "one row": "SELECT count(*) AS n, sum(i) AS s, max(d) AS hi, min(g) AS lo, avg(m) AS am FROM sales WHERE k < 100",
    "bare counts": "SELECT 'x' AS label, 1 AS one, count(*) AS n FROM sales s CROSS JOIN labels l GROUP BY 'x'",
    "one row of nothing": "SELECT count(*) AS n, sum(i) AS s, max(d) AS hi FROM sales WHERE k > 100",
    "float keys": "SELECT d, count(*) AS n, sum(m) AS sm FROM sales GROUP BY d",
    "having": "SELECT g, sum(i) AS s FROM sales GROUP BY g HAVING count(*) > 2 AND sum(i) > 3",
    "distinct": "SELECT DISTINCT g, d, b FROM sales",
    "one distinct count": "SELECT g, count(DISTINCT i) AS di, count(*) AS n, max(i) AS hi FROM sales GROUP BY g",
    "distinct counts": """SELECT g, count(DISTINCT i) AS di, count(DISTINCT d, b) AS dd, sum(i) AS s
        FROM sales GROUP BY g""",
    "rollup": "SELECT g, b, grouping_id() AS gid, count(*) AS n, sum(m) AS sm FROM sales GROUP BY ROLLUP (g, b)",
    "joins": """SELECT l.rank, s.g, count(*) AS n, sum(s.m) AS sm FROM sales s JOIN items i ON s.k = i.k
        JOIN labels l ON i.name = l.name WHERE i.d < 2 GROUP BY l.rank, s.g""",
    "odd join keys": "SELECT s.g, i.name, s.d FROM sales s JOIN items i ON s.d = i.d AND s.k <=> i.k",
    "self-join": """SELECT a.g, b.i, count(*) AS n FROM sales a JOIN sales b ON a.k = b.k AND a.i < b.i
        GROUP BY a.g, b.i""",
    "cross join": "SELECT i.name, l.rank, i.k + l.rank AS s FROM items i CROSS JOIN labels l",
    "union": """SELECT k, name AS what FROM items UNION ALL SELECT k, g FROM sales
        UNION ALL SELECT rank, name FROM labels UNION ALL SELECT k, g FROM sales WHERE b""",
    "top, with ties": "SELECT g, i, d FROM sales ORDER BY i DESC NULLS LAST LIMIT 7 OFFSET 2",
    "top groups": "SELECT g, count(*) AS n FROM sales GROUP BY g ORDER BY n DESC, g LIMIT 3",
    "limit inside": """SELECT s.k, top.g, top.hi FROM sales s JOIN
        (SELECT g, max(i) AS hi FROM sales WHERE i < 6 GROUP BY g ORDER BY hi DESC, g LIMIT 3) top ON s.g = top.g""",
    "computed": """SELECT k, upper(g) AS u, CASE WHEN i > 3 THEN 'big' WHEN i IS NULL THEN NULL ELSE '_' END AS size,
        CAST(m AS STRING) AS ms, coalesce(i, -1) * 2 AS x, date_format(at, 'yyyy-MM-dd HH') AS hour, m / 3 AS third
        FROM sales WHERE g IN ('a', 'zero', 'new', 'lonely') OR d IS NULL OR isnan(d)""",
}  # fmt: skip


@pytest.fixture(scope="module")
def tides(warehouse: sw.Engine) -> sw.Engine:
    """The three tables of the tides."""
    warehouse.create_table("sales", SALES).insert(BASE_SALES)
    warehouse.create_table("items", "k INT, name STRING, d DOUBLE").insert(BASE_ITEMS)
    warehouse.create_table("labels", "name STRING, rank INT").insert(BASE_LABELS)
    return warehouse


def test_every_round_of_changes_leaves_every_view_right(tides: sw.Engine) -> None:
    views = {name: tides.create_view(name, sql) for name, sql in VIEWS.items()}
    rebatched = tides.create_view("rebatched", VIEWS["joins"], strategy="rebatch")
    wrong = [f"{name} is not incremental: {v.plan}" for name, v in views.items() if isinstance(v.plan, Opaque)]
    for title, changes in ROUNDS.items():
        for table, (added, gone) in changes.items():
            feed = [(*row, 1) for row in added] + [(*row, -1) for row in gone]
            names = [*(f.name for f in tides.table(table).schema), "_weight"]
            tides.table(table).apply([dict(zip(names, row, strict=True)) for row in feed])
        for view in views.values():
            touched = not set(view.tables).isdisjoint(changes)
            wrong += [
                f"{title}: {view.name}: {problem}" for problem in problems(view, "incremental" if touched else "none")
            ]
        rebatched.refresh()
        if sorted(map(repr, rows(rebatched))) != sorted(map(repr, rows(views["joins"]))):
            wrong.append(f"{title}: rebatch and auto differ")
    assert not wrong, "\n".join(wrong)
    assert rows(views["one row of nothing"]) == [(0, None, None)]
    assert [r[1] for r in rows(views["top, with ties"])] == sorted(
        (r[1] for r in rows(views["top, with ties"])), reverse=True
    )
    groups = {r[0] for r in rows(views["additive"])}
    assert {None, "new", "late"} <= groups
    assert "lonely" not in groups
    assert rebatched.history()[0]["reason"] == "the strategy is rebatch"


# --- tables that are empty, or filled later --------------------------------------------------------------------------


def test_empty_tables_filled_only_later(warehouse: sw.Engine) -> None:
    left, right = warehouse.create_table(fresh("t"), "k INT, v INT"), warehouse.create_table(fresh("t"), "k INT, w INT")
    whole = warehouse.create_view(
        fresh(), f"SELECT count(*) AS n, sum(v) AS s, max(w) AS hi FROM {left.name} l JOIN {right.name} r ON l.k = r.k"
    )
    grouped = warehouse.create_view(fresh(), f"SELECT k, min(v) AS lo FROM {left.name} GROUP BY k")
    assert (rows(whole), rows(grouped)) == ([(0, None, None)], [])
    left.insert([(n % 4, n) for n in range(12)])
    settle(whole, None)
    settle(grouped, None)
    right.insert([(1, 5), (1, 7), (None, 9)])
    settle(whole, None)
    assert rows(whole) == [(6, 30, 7)]
    left.delete([(n % 4, n) for n in range(12)])
    settle(whole, None)
    settle(grouped, None)
    assert (rows(whole), rows(grouped)) == ([(0, None, None)], [])


def test_the_last_rows_go_one_by_one(warehouse: sw.Engine) -> None:
    table = warehouse.create_table(fresh("t"), "g STRING, v INT")
    table.insert([("a", 1), ("b", 2), ("b", 3), *(("c", n) for n in range(9))])
    view = warehouse.create_view(fresh(), f"SELECT g, max(v) AS hi, count(*) AS n FROM {table.name} GROUP BY g")
    table.delete([("b", 3)])
    assert settle(view).rows_deleted == 1
    table.delete([("b", 2), ("a", 1)])
    report = settle(view)
    assert (report.rows_inserted, report.rows_deleted) == (0, 2)
    assert rows(view) == [("c", 8, 9)]
    table.insert([("a", None)])
    settle(view)
    assert sorted(rows(view)) == [("a", None, 1), ("c", 8, 9)]


# --- numbers ---------------------------------------------------------------------------------------------------------

HUGE = Decimal("6" * 36 + ".66")
"""Fits decimal(38,2); twice as much does not."""


@pytest.mark.parametrize("ansi", ["true", "false"])
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


@pytest.mark.usefixtures("eager_compaction")
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


# --- errors that are retracted ---------------------------------------------------------------------------------------


def test_a_row_the_query_fails_on_is_taken_back(warehouse: sw.Engine) -> None:
    table = warehouse.create_table(fresh("t"), "a INT, b INT")
    table.insert([(n, n % 4 + 1) for n in range(12)])
    view = warehouse.create_view(fresh(), f"SELECT b, sum(a / b) AS s FROM {table.name} GROUP BY b")
    flat = warehouse.create_view(fresh(), f"SELECT a, 100 / b AS q FROM {table.name} WHERE a > 2")
    before, version = sorted(rows(view)), view.version
    table.insert([(7, 0)])
    for broken in (view, flat):
        with pytest.raises(sw.SlackwaterError, match="DIVIDE_BY_ZERO") as caught:
            broken.refresh()
        assert caught.value.code == "SPARK_FAILED"
    assert (view.version, sorted(rows(view))) == (version, before)
    table.insert([(8, 1)])
    table.delete([(7, 0)])
    settle(view)
    settle(flat)
    assert len(rows(view)) == 4


def test_a_view_that_fails_at_once_is_not_made(warehouse: sw.Engine) -> None:
    table = warehouse.create_table(fresh("t"), "a INT")
    table.insert([(0,)])
    with pytest.raises(sw.SlackwaterError, match="SPARK_FAILED"):
        warehouse.create_view("failing", f"SELECT 1 / a AS x FROM {table.name}")
    with pytest.raises(sw.SlackwaterError, match="VIEW_UNKNOWN"):
        warehouse.view("failing")


# --- settings of the user's session ----------------------------------------------------------------------------------


def test_pinned_settings_win(warehouse: sw.Engine, spark: SparkSession) -> None:
    table = warehouse.create_table(fresh("t"), "at TIMESTAMP, s STRING")
    stamp = dt.datetime(2024, 3, 31, 23, 30, tzinfo=dt.timezone.utc)
    table.insert([(stamp + dt.timedelta(hours=n), str(n)) for n in range(10)])
    sql = f"""SELECT date(at) AS day, CAST(at AS STRING) AS text, CAST(s AS INT) AS i FROM {table.name}
        WHERE at < TIMESTAMP '2024-04-01 03:00:00'"""
    view = warehouse.create_view(fresh(), sql)
    with session_with(spark, session__timeZone="Asia/Tokyo", ansi__enabled="false", caseSensitive="true"):
        other = warehouse.create_view(fresh(), sql)
        table.insert([(stamp, "x")])
        with pytest.raises(sw.SlackwaterError, match="CAST_INVALID_INPUT"):
            view.refresh()
        settle(other)
        assert {r[1] for r in rows(other)} == set()
        table.delete([(stamp, "x")])
        table.insert([(stamp, "77")])
        settle(view)
        assert view.result().where("i = 77").first().text == "2024-03-31 23:30:00"
    settle(other)
    table.insert([(stamp - dt.timedelta(hours=20), "-1")])
    settle(other)
    assert rows(other) == [(dt.date(2024, 3, 31), "2024-03-31 12:30:00", -1)]
    assert view.settings["spark.sql.session.timeZone"] == "UTC"


def test_timestamps_when_the_clock_goes_back(warehouse: sw.Engine, spark: SparkSession) -> None:
    table = warehouse.create_table(fresh("t"), "n INT, at TIMESTAMP")
    start = dt.datetime(2024, 11, 3, 4, tzinfo=dt.timezone.utc)
    table.insert([(n, start + dt.timedelta(minutes=30 * n)) for n in range(10)])
    with session_with(spark, session__timeZone="America/New_York"):
        view = warehouse.create_view(
            fresh(), f"SELECT n FROM {table.name} WHERE at >= TIMESTAMP '2024-11-03 06:30:00Z'"
        )
    assert view.verify(), str(view.verify())
    assert sorted(rows(view)) == [(n,) for n in range(5, 10)]


def test_the_users_session_stays_the_active_one(warehouse: sw.Engine, spark: SparkSession) -> None:
    table = warehouse.create_table(fresh("t"), "a INT")
    spark.range(1).count()
    assert SparkSession.getActiveSession() is spark
    view = warehouse.create_view(fresh(), f"SELECT a FROM {table.name}")
    assert SparkSession.getActiveSession() is spark
    view.verify()
    assert SparkSession.getActiveSession() is spark


# --- names -----------------------------------------------------------------------------------------------------------


def test_hostile_names_of_tables_columns_and_views(warehouse: sw.Engine) -> None:
    columns = ["a.b", "se`lect", "x'; DROP TABLE t; --", "ünï cødé ⚓", "{n}", "${spark.app.name}", "country_id"]
    name, other = "t.`1`; --", "${spark.app.name} 'q' \"u\" {0}"
    table = warehouse.create_table(name, ", ".join(f"`{c.replace('`', '``')}` INT" for c in columns))
    table.insert([tuple(n % (at + 2) for at in range(len(columns))) for n in range(20)])
    warehouse.create_table(other, "`group` INT, `order` STRING").insert([(n, f"o{n}") for n in range(4)])
    quoted = [f"`{c.replace('`', '``')}`" for c in columns]
    view = warehouse.create_view(
        "v`; DROP VIEW v; --",
        f"""SELECT t.{quoted[0]} AS `out.1`, {quoted[1]}, count({quoted[2]}) AS `n``n`,
            sum({quoted[3]} + {quoted[4]}) AS `Σ`, max(o.`order`) AS `the 'max'`, min(country_id) AS `{{}}`
            FROM `t.``1``; --` t JOIN `{other}` o ON t.{quoted[5]} = o.`group`
            GROUP BY t.{quoted[0]}, {quoted[1]} ORDER BY `out.1`, `se``lect` DESC""",
    )
    assert view.result().columns == ["out.1", "se`lect", "n`n", "Σ", "the 'max'", "{}"]
    table.insert([(1, 1, 1, 1, 1, 1, 1)])
    table.delete([tuple(5 % (at + 2) for at in range(len(columns)))])
    settle(view)
    assert rows(view) == sorted(rows(view), key=lambda r: (r[0], -r[1]))
    assert view.changes().columns[:2] == ["out.1", "se`lect"]
    recomputed = warehouse.create_view(
        "' OR 1=1",
        f"""SELECT t.{quoted[1]}, try_cast(o.`order` AS INT) AS `{{x}}`, '${{spark.app.name}}' AS text
            FROM `t.``1``; --` t LEFT JOIN `{other}` o ON t.{quoted[0]} = o.`group`""",
    )
    table.insert([(3, 3, 3, 3, 3, 3, 3)])
    settle(recomputed, "recompute")
    assert warehouse.view("' OR 1=1").id == recomputed.id
    assert "t.`1`; --" in str(view.explain())


def test_tables_named_like_our_own_inputs(warehouse: sw.Engine) -> None:
    table = warehouse.create_table("result_old", "a INT")
    table.insert([(n,) for n in range(9)])
    warehouse.create_table("result_old@new", "a INT").insert([(n,) for n in range(4)])
    joined = "FROM result_old r LEFT JOIN `result_old@new` n ON r.a = n.a"
    followed = warehouse.create_view(fresh(), f"SELECT r.a, n.a AS b {joined}")
    recomputed = warehouse.create_view(fresh(), f"SELECT r.a, try_cast(concat('', n.a) AS INT) AS b {joined}")
    table.insert([(20,)])
    settle(followed)
    settle(recomputed, "recompute")


# --- queries as DataFrames and functions -----------------------------------------------------------------------------


def test_views_from_frames_and_functions(warehouse: sw.Engine) -> None:
    table = warehouse.create_table(fresh("t"), "k INT, v DECIMAL(10,2)")
    names = warehouse.create_table(fresh("t"), "k INT, name STRING")
    table.insert([(n % 3, Decimal(n)) for n in range(12)])
    names.insert([(n, f"name {n}") for n in range(3)])

    def query(tables: Any) -> DataFrame:
        joined = tables[table.name].join(tables[names.name], "k").where(F.col("v") > 1)
        return joined.groupBy("name").agg(F.sum("v").alias("total"), F.max("v").alias("hi"))

    left, right = table.relation(), names.relation()
    frame = (
        left.join(right, left.k == right.k)
        .where(left.v > 1)
        .groupBy(right.name)
        .agg(F.sum("v").alias("total"), F.max("v").alias("hi"))
    )
    by_function, by_frame = warehouse.create_view(fresh(), query), warehouse.create_view(fresh(), frame)
    assert by_frame.sql is None
    table.apply([{"k": 2, "v": Decimal(11), "_weight": -1}, {"k": 0, "v": Decimal(50), "_weight": 1}])
    for view in (by_function, by_frame):
        settle(view)
    assert sorted(rows(by_function)) == sorted(rows(by_frame))
    assert ("name 0", Decimal(68), Decimal(50)) in rows(by_frame)


# --- budgets, reopening, compaction ----------------------------------------------------------------------------------

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
        assert kept[103] == ("incremental", False), "what is at hand serves once more, and is then given back"
        assert kept[102][1], "a large budget keeps states"
        assert "budget" in str(view.explain())


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


@pytest.fixture
def eager_compaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merge segments as soon as there are a few."""
    monkeypatch.setattr(compaction, "STATE_SEGMENTS", 2)
    monkeypatch.setattr(compaction, "RESULT_SEGMENTS", 3)
    monkeypatch.setattr(compaction, "TABLE_SEGMENTS", 3)


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


# --- what a view tells -----------------------------------------------------------------------------------------------


def test_results_changes_and_refusals(warehouse: sw.Engine) -> None:
    table = warehouse.create_table(fresh("t"), "g STRING, v INT")
    table.insert([("a", 1), ("b", 2), ("b", 3), *(("c", n) for n in range(5))])
    view = warehouse.create_view(
        fresh(), f"SELECT g, sum(v) AS s FROM {table.name} GROUP BY g ORDER BY s DESC, g", populate=False
    )
    for early in (view.result, view.verify):
        with pytest.raises(sw.SlackwaterError, match="VIEW_EMPTY"):
            early()
    first = view.refresh()
    assert (first.mode, first.rows_inserted) == ("initial", 3)
    assert rows(view) == [("c", 10), ("b", 5), ("a", 1)]
    assert view.refresh().mode == "none"
    table.insert([("a", 100)])
    second = settle(view)
    assert rows(view)[0] == ("a", 101)
    assert sorted(map(tuple, view.changes(since=first.to_version).collect())) == [
        ("a", 1, "delete", second.to_version), ("a", 101, "insert", second.to_version),
    ]  # fmt: skip
    assert [tuple(r) for r in view.result(first.to_version).collect()] == [("c", 10), ("b", 5), ("a", 1)]
    assert view.refresh(full=True).mode == "recompute"
    assert [r["mode"] for r in view.history()] == ["recompute", "incremental", "initial"]
    assert "sum" in str(view.explain())
    for action, code in (
        (lambda: view.result(10**6), "VERSION_UNKNOWN"),
        (lambda: view.changes(since=-1), "VERSION_UNKNOWN"),
        (lambda: warehouse.drop_table(table.name), "TABLE_IN_USE"),
        (lambda: warehouse.create_view(view.name, "SELECT 1"), "QUERY_UNSUPPORTED"),
        (lambda: warehouse.create_view(table.name, f"SELECT g FROM {table.name}"), "VIEW_EXISTS"),
        (lambda: warehouse.create_view("", f"SELECT g FROM {table.name}"), "NAME_INVALID"),
        (lambda: warehouse.create_view("x", f"SELECT g FROM {table.name}", strategy="magic"), "STRATEGY_UNKNOWN"),
        (lambda: warehouse.view("nobody"), "VIEW_UNKNOWN"),
        (lambda: sw.Engine("never", memory_budget="lots"), "BUDGET_INVALID"),
    ):  # fmt: skip
        _refused(action, code)


def _refused(action: Callable[[], Any], code: str) -> None:
    with pytest.raises(sw.SlackwaterError) as caught:
        action()
    assert caught.value.code == code, str(caught.value)

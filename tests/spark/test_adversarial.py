"""Views under changes that break naive maintenance: after every refresh the result is what a recompute gives."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from slackwater.algebra.nodes import Opaque
from slackwater.execution import compaction
from tests.spark.settling import fresh, problems, rows, session_with, settle

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


def test_a_failure_after_the_commit_applies_nothing_twice(
    warehouse: sw.Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What piles up is merged when the refresh has been committed; it was tried again as a whole."""

    def fail(view: sw.View, _: object) -> None:
        view.engine.spark.sql("SELECT raise_error('no merging today')").collect()

    warehouse.create_table("once", "n INT").insert([(1,), (2,)])
    monkeypatch.setattr(compaction, "compact_result", fail)
    monkeypatch.setattr(compaction, "RESULT_SEGMENTS", 0)
    view = warehouse.create_view("twice", "SELECT n FROM once")
    warehouse.table("once").insert([(3,)])
    assert view.refresh().mode == "incremental"
    assert sorted(row.n for row in view.result().collect()) == [1, 2, 3]
    assert view.verify()
    assert "no merging today" in caplog.text
    monkeypatch.undo()
    warehouse.table("once").insert([(4,)])
    view.refresh()
    assert view.verify()


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


def test_the_older_answer_for_too_few_rows(warehouse: sw.Engine, spark: SparkSession) -> None:
    """Spark can be told to say NaN where the variance of one row is NULL otherwise."""
    table = warehouse.create_table(fresh("t"), "g STRING, v INT")
    table.insert([("one", 1), ("two", 1), ("two", 3)])
    query = f"SELECT g, var_samp(v) AS v, stddev_samp(v) AS s FROM {table.name} GROUP BY g"
    with session_with(spark, legacy__statisticalAggregate="true"):
        older = warehouse.create_view(fresh(), query)
    newer = warehouse.create_view(fresh(), query, strategy="incremental")
    table.insert([("new", 7), ("two", 5)])
    settle(older, "recompute")
    settle(newer)
    assert "statisticalAggregate" in str(older.explain())
    assert sorted(map(repr, rows(older))) == ["('new', nan, nan)", "('one', nan, nan)", "('two', 4.0, 2.0)"]
    assert sorted(rows(newer)) == [("new", None, None), ("one", None, None), ("two", 4.0, 2.0)]


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
        f"""SELECT t.{quoted[1]}, size(arrays_zip(array(o.`order`))) AS `{{x}}`, '${{spark.app.name}}' AS text
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
    recomputed = warehouse.create_view(fresh(), f"SELECT r.a, size(arrays_zip(array(n.a))) AS b {joined}")
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
    tree, program = str(view.explain()).split("program of the next refresh")
    assert re.search(r"Aggregate by .* of \[sum\(.*  · merge \[PARTIALS_ADD\]", tree), tree
    assert "@delta`" in program, program
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

"""Window functions as views: after every kind of change the result is what a recompute gives."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

import slackwater as sw
from slackwater.algebra.nodes import Opaque
from slackwater.algebra.windows import Window as WindowNode
from slackwater.settings import pinned_settings
from tests.spark.tides import BASE, SCHEMA, check_rounds, row

PARTITIONED = {
    "numbers": """SELECT id, p, row_number() OVER (PARTITION BY p ORDER BY o) AS n,
        rank() OVER (PARTITION BY p ORDER BY o) AS r, dense_rank() OVER (PARTITION BY p ORDER BY o DESC) AS dr,
        percent_rank() OVER (PARTITION BY p ORDER BY o) AS pr, cume_dist() OVER (PARTITION BY p ORDER BY o) AS cd,
        ntile(3) OVER (PARTITION BY p ORDER BY o DESC NULLS FIRST) AS nt FROM {tides}""",
    "neighbours": """SELECT id, p, lag(v) OVER (PARTITION BY p ORDER BY o) AS a,
        lag(v, 2, -1) OVER (PARTITION BY p ORDER BY o) AS b, lead(v) IGNORE NULLS OVER (PARTITION BY p ORDER BY o) AS c,
        lead(d, 1) OVER (PARTITION BY p ORDER BY d) AS e FROM {tides}""",
    "values": """SELECT id, p, first_value(v) OVER (PARTITION BY p ORDER BY o) AS f,
        last_value(v) OVER (PARTITION BY p ORDER BY o) AS l,
        last_value(v) IGNORE NULLS OVER (PARTITION BY p ORDER BY o) AS ln,
        nth_value(v, 2) OVER (PARTITION BY p ORDER BY o) AS n2,
        first_value(id) OVER (PARTITION BY p ORDER BY o RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS near,
        nth_value(v, 3) OVER (PARTITION BY p ORDER BY o ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS n3,
        first_value(v) OVER (PARTITION BY p) AS any_order FROM {tides}""",
    "sums": """SELECT id, p, sum(v) OVER (PARTITION BY p ORDER BY o) AS running,
        sum(m) OVER (PARTITION BY p ORDER BY o ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS around,
        count(*) OVER (PARTITION BY p) AS n, avg(v) OVER (PARTITION BY p) AS mean,
        max(v) OVER (PARTITION BY p ORDER BY o RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS near,
        min(v) OVER (PARTITION BY p ORDER BY m RANGE BETWEEN 0.5 PRECEDING AND UNBOUNDED FOLLOWING) AS low,
        max_by(id, v) OVER (PARTITION BY p) AS best, covar_pop(v, o) OVER (PARTITION BY p) AS c FROM {tides}""",
    "best of each": """SELECT id, p, v FROM (SELECT *, row_number() OVER (PARTITION BY p ORDER BY v DESC, o) AS n
        FROM {tides}) WHERE n <= 2""",
    "keys of two kinds": """SELECT id, row_number() OVER (PARTITION BY p, d ORDER BY o) AS x,
        sum(v) OVER (PARTITION BY o % 2) AS y FROM {tides}""",
    "over groups": """SELECT p, o, sum(v) AS s, rank() OVER (PARTITION BY o ORDER BY sum(v) DESC) AS r
        FROM {tides} GROUP BY p, o""",
    "over a join, under a group": """SELECT n, max(r) AS most, count(*) AS c FROM (SELECT l.n, rank() OVER
        (PARTITION BY t.p ORDER BY t.v) AS r FROM {tides} t JOIN {labels} l ON t.p <=> l.k) GROUP BY n""",
    "joined": """SELECT x.id, x.n, l.n AS label FROM (SELECT id, p, row_number() OVER (PARTITION BY p ORDER BY o, id)
        AS n FROM {tides}) x JOIN {labels} l ON x.p = l.k AND x.n <= l.n""",
    "floats": """SELECT id, p, sum(d) OVER (PARTITION BY p ORDER BY o) AS s, avg(d) OVER (PARTITION BY p) AS a
        FROM {tides}""",
}  # fmt: skip
WHOLE = {
    "whole": "SELECT id, row_number() OVER (ORDER BY v, id) AS n, sum(v) OVER (ORDER BY o) AS s FROM {tides}",
    "whole below": """SELECT p, max(n) AS last FROM (SELECT p, row_number() OVER (ORDER BY v, id) AS n FROM {tides})
        GROUP BY p""",
    "share of all": "SELECT p, sum(v) AS s, sum(v) * 100 / sum(sum(v)) OVER () AS share FROM {tides} GROUP BY p",
    "counted": "SELECT count(*) OVER () AS n FROM {tides}",
}


@pytest.mark.parametrize(
    "names",
    [
        ["numbers", "values", "over a join, under a group"],
        pytest.param(["neighbours", "sums", "best of each", "joined"], marks=pytest.mark.slow),
        pytest.param(["keys of two kinds", "over groups", "floats"], marks=pytest.mark.slow),
    ],
)
def test_partitions_are_redone(warehouse: sw.Engine, names: list[str]) -> None:
    check_rounds(warehouse, {name: PARTITIONED[name] for name in names})


@pytest.mark.parametrize(
    "names", [["whole"], pytest.param(["share of all", "whole below", "counted"], marks=pytest.mark.slow)]
)
def test_without_partitions_the_operator_is_redone(warehouse: sw.Engine, names: list[str]) -> None:
    check_rounds(warehouse, {name: WHOLE[name] for name in names})


def table(engine: sw.Engine, name: str, rows: list[Any], schema: str = SCHEMA) -> sw.Table:
    made = engine.create_table(name, schema)
    if rows:
        made.insert(rows)
    return made


def test_only_what_changes_is_written(engine: sw.Engine) -> None:
    tides = table(engine, "t", BASE)
    view = engine.create_view("v", "SELECT id, row_number() OVER (PARTITION BY p ORDER BY id) AS n FROM t")
    tides.insert([row(99, "a", 1, 1)])
    report = view.refresh()
    assert (report.mode, report.rows_inserted, report.rows_deleted) == ("incremental", 1, 0)
    assert view.verify()


def test_the_reason_is_said_where_all_is_redone(engine: sw.Engine) -> None:
    table(engine, "t", BASE)
    view = engine.create_view("v", "SELECT id, rank() OVER (ORDER BY v) AS r FROM t")
    assert "no PARTITION BY" in str(view.explain())
    parted = engine.create_view("w", "SELECT id, rank() OVER (PARTITION BY p ORDER BY v) AS r FROM t")
    assert "no PARTITION BY" not in str(parted.explain())


def test_empty_tables_filled_only_later(engine: sw.Engine) -> None:
    tides = table(engine, "t", [])
    views = [
        engine.create_view(f"v{i}", f"SELECT id, {f} AS x FROM t")
        for i, f in enumerate(
            [
                "row_number() OVER (PARTITION BY p ORDER BY o)",
                "sum(v) OVER (ORDER BY o)",
                "lag(v) OVER (PARTITION BY p ORDER BY o)",
            ]
        )
    ]
    for change in (lambda: tides.insert(BASE), lambda: tides.delete(BASE), lambda: tides.insert(BASE[:3])):
        change()
        for view in views:
            view.refresh()
            assert view.verify(), str(view.verify())


def test_ties_have_one_answer(engine: sw.Engine) -> None:
    """Two rows tie in the order: the remaining columns decide, whatever order the rows came in."""
    tides = engine.create_table("t", "p INT, o INT, s STRING, d DOUBLE")
    tides.insert([(1, 1, "b", 0.0), (1, 1, "a", 0.0), (1, 1, "a", -0.0)])
    view = engine.create_view("v", "SELECT s, d, row_number() OVER (PARTITION BY p ORDER BY o) AS n FROM t")
    expected = [("a", "-0.0", 1), ("a", "0.0", 2), ("b", "0.0", 3)]
    assert sorted((r.s, repr(r.d), r.n) for r in view.result().collect()) == expected
    tides.delete([(1, 1, "a", 0.0)])
    tides.insert([(1, 1, "a", 0.0)])
    view.refresh()
    assert sorted((r.s, repr(r.d), r.n) for r in view.result().collect()) == expected
    assert view.verify()


def test_last_value_is_the_same_for_all_peers(engine: sw.Engine) -> None:
    table(engine, "t", [row(1, "a", 1, 5), row(2, "a", 1, 3), row(3, "a", 2, 9)])
    view = engine.create_view("v", "SELECT id, last_value(v) OVER (PARTITION BY p ORDER BY o) AS l FROM t")
    found = {r.id: r.l for r in view.result().collect()}
    assert found[1] == found[2] != found[3] == 9
    kinds = [type(x) for x in view.plan.walk()]
    assert kinds.count(WindowNode) == 2


def test_intervals_in_frames(engine: sw.Engine) -> None:
    events = engine.create_table("events", "u INT, at TIMESTAMP, day DATE, n INT")
    rows = engine.spark.sql(
        "SELECT CAST(id % 3 AS INT) AS u, TIMESTAMP '2024-01-01 00:00:00' + make_dt_interval(0, CAST(id AS INT)) AS at,"
        " DATE '2024-01-01' + CAST(id AS INT) AS day, CAST(id AS INT) AS n FROM range(40)"
    )
    events.insert(rows)
    view = engine.create_view(
        "v",
        """SELECT u, at, sum(n) OVER (PARTITION BY u ORDER BY at RANGE BETWEEN INTERVAL '0 05:00' DAY TO MINUTE
        PRECEDING AND INTERVAL '1 02:30' DAY TO MINUTE FOLLOWING) AS s,
        count(*) OVER (PARTITION BY u ORDER BY day RANGE BETWEEN 3 PRECEDING AND CURRENT ROW) AS c,
        sum(n) OVER (PARTITION BY u ORDER BY day RANGE BETWEEN INTERVAL '1' MONTH PRECEDING AND CURRENT ROW) AS m
        FROM events""",
    )
    assert not isinstance(view.plan, Opaque), view.plan
    events.delete(rows.where("n IN (4, 5, 30)"))
    assert view.refresh().mode == "incremental"
    assert view.verify(), str(view.verify())


def test_frames_from_the_dataframe_api(engine: sw.Engine) -> None:
    tides = table(engine, "t", BASE)
    over = Window.partitionBy("p").orderBy(F.desc_nulls_first("o")).rowsBetween(-2, Window.currentRow)
    view = engine.create_view("v", tides.relation().select("id", F.sum("v").over(over).alias("s")))
    tides.insert([row(80, "b", 3, 3), row(81, "b", 3, 3)])
    assert view.refresh().mode == "incremental"
    assert view.verify()


TOTAL = """SELECT id, lag(v, 2, -1) OVER w AS a, lead(v) IGNORE NULLS OVER w AS b, ntile(4) OVER w AS c,
    first_value(v) OVER (PARTITION BY p ORDER BY o DESC, id) AS f, last_value(v) IGNORE NULLS OVER w AS g,
    nth_value(v, 3) OVER w AS h, max_by(v, id) OVER (PARTITION BY p) AS best,
    first_value(id) OVER (PARTITION BY p ORDER BY id RANGE BETWEEN 3 PRECEDING AND 1 PRECEDING) AS i,
    last_value(v) OVER (PARTITION BY p ORDER BY id RANGE BETWEEN CURRENT ROW AND 4 FOLLOWING) AS j,
    nth_value(v, 2) OVER (PARTITION BY p ORDER BY id ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS k,
    sum(m) OVER (PARTITION BY p ORDER BY o, id ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) AS l
    FROM {table} WINDOW w AS (PARTITION BY p ORDER BY o NULLS LAST, id DESC)"""


def test_total_orders_mean_what_spark_says(engine: sw.Engine) -> None:
    """Where the query leaves nothing open, its own text is the judge: no order is ours."""
    rows = list({r[0]: r for r in BASE}.values())
    tides = table(engine, "t", rows[:20])
    view = engine.create_view("v", TOTAL.format(table="t"))
    tides.insert(rows[20:])
    assert view.refresh().mode == "incremental"
    engine.spark.createDataFrame(rows, SCHEMA).createOrReplaceTempView("plain")
    expected = engine.spark.sql(TOTAL.format(table="plain")).collect()
    assert sorted(map(str, view.result().collect())) == sorted(map(str, expected))


def refused(engine: sw.Engine, sql: str) -> sw.SlackwaterError:
    with pytest.raises(sw.SlackwaterError) as caught:
        engine.capture(sql, pinned_settings(engine.spark))
    return caught.value


def test_what_no_order_can_settle_is_refused(engine: sw.Engine) -> None:
    engine.create_table("maps", "k INT, m MAP<STRING, INT>")
    table(engine, "t", [])
    for sql, word in (
        ("SELECT m, row_number() OVER (PARTITION BY k ORDER BY k) AS n FROM maps", "cannot be sorted"),
        ("SELECT nth_value(v, 2) OVER (PARTITION BY p ORDER BY o RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS n"
         " FROM t", "nth_value"),
        ("SELECT collect_list(v) OVER (PARTITION BY p ORDER BY o) AS n FROM t", "collect_list"),
    ):  # fmt: skip
        error = refused(engine, sql)
        assert (error.code, word in error.message) == ("QUERY_NONDETERMINISTIC", True), str(error)


def test_columns_that_cannot_be_sorted_are_carried_along(engine: sw.Engine) -> None:
    maps = engine.create_table("maps", "k INT, o INT, m MAP<STRING, INT>")
    maps.insert([(n % 2, n, {"a": n}) for n in range(8)])
    view = engine.create_view("v", "SELECT k, m, rank() OVER (PARTITION BY k ORDER BY o) AS n FROM maps")
    maps.insert([(1, 0, {"b": 1}), (0, 3, {"a": 2, "b": 2})])
    assert view.refresh().mode == "incremental"
    assert view.verify(), str(view.verify())

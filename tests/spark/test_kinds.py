"""One view or more for each kind of column and clause: incremental, and proven after inserts, deletes and updates."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from tests.spark.settling import fresh, rows, session_with

pytestmark = pytest.mark.spark

UTC = dt.timezone.utc
KINDS: dict[str, tuple[str, list[Any], tuple[str, ...]]] = {
    "collation": ("STRING COLLATE UTF8_LCASE", ["Ann", "ann", "BOB", "bob", "Cyd"], (
        "SELECT x, count(*) AS n, max(id) AS m FROM t GROUP BY x",
        "SELECT l.id, r.id AS other FROM t l JOIN t r ON l.x = r.x AND l.id < r.id WHERE l.x = 'ANN' OR l.x > 'b'",
        "SELECT id FROM t WHERE g COLLATE UTF8_LCASE = 'A'",
        "SELECT id FROM t WHERE g = 'A' COLLATE UTF8_LCASE OR x COLLATE UTF8_BINARY = 'ann'",
        "SELECT g, min(x) AS lo, max(x) AS hi, count(DISTINCT x) AS n FROM t GROUP BY g",
        "SELECT DISTINCT x, upper(x) AS y, x COLLATE UTF8_BINARY AS z, length(x) AS l FROM t",
        "SELECT DISTINCT x FROM t",
        "SELECT id, x, rank() OVER (PARTITION BY x ORDER BY id) AS r FROM t",
        "SELECT x, count(*) AS n FROM t GROUP BY x ORDER BY x LIMIT 3",
        "SELECT l.id, r.id AS other FROM t l LEFT JOIN t r ON l.x = r.x AND r.id = 7",
        "SELECT x FROM t WHERE id < 9 INTERSECT SELECT x FROM t WHERE id > 9",
        "SELECT id FROM t WHERE x NOT IN (SELECT x FROM t WHERE id = 6)",
        "SELECT x, count(*) AS n FROM t GROUP BY x HAVING x = 'ANN' OR count(*) > 3",
        """SELECT u.x, count(*) AS n FROM (SELECT x FROM t UNION ALL SELECT g COLLATE UTF8_LCASE FROM t) AS u
        GROUP BY u.x""",
        """SELECT id, CASE WHEN x LIKE 'b%' THEN 'B' WHEN startswith(x, 'A') THEN 'A' END AS k,
        replace(x, 'N', '-') AS y FROM t""",
        "SELECT id, x FROM t WHERE x IN ('ann', 'CYD') OR x BETWEEN 'BA' AND 'bz'",
        "SELECT l.x, r.x AS y, count(*) AS n FROM t l JOIN t r ON l.x <=> r.x GROUP BY l.x, r.x",
        "SELECT x, array(x) AS a FROM t",
    )),
    "unicode collation": ("STRING COLLATE UNICODE_CI_AI", ["Zoe", "zoë", "ZOÉ", "Ånn", "ann", ""], (
        "SELECT x, count(*) AS n, min(x) AS lo FROM t GROUP BY x",
        "SELECT l.id, r.id AS other FROM t l JOIN t r ON l.x = r.x WHERE l.id < 4 AND r.x = 'ZOE'",
        "SELECT x, max(id) AS m FROM t GROUP BY x ORDER BY x DESC, m LIMIT 2",
    )),
    "year to month": ("INTERVAL YEAR TO MONTH", ["1-2", "0-0", "-3-11", "9-0"], (
        """SELECT g, max(x) AS hi, sum(x * 2) AS s, min(x + INTERVAL '1' YEAR) AS y, min(DATE '2024-02-29' + x) AS d
        FROM t WHERE x > INTERVAL '-1-6' YEAR TO MONTH GROUP BY g""",
    )),
    "day to second": (
        "INTERVAL DAY TO SECOND", [dt.timedelta(days=1, microseconds=7), dt.timedelta(seconds=-90), dt.timedelta(0)], (
        """SELECT x, sum(x) AS s, count(*) AS n, max(x * 2) AS y, min(x + INTERVAL '26' HOUR) AS z, min(x / 3) AS w
        FROM t WHERE x < INTERVAL '0 00:00:01.5' DAY TO SECOND GROUP BY x""",
    )),
    "timestamp": (
        "TIMESTAMP", [dt.datetime(2024, 3, 10, 7, 30, tzinfo=UTC), dt.datetime(2024, 11, 3, 5, 30, tzinfo=UTC),
                      dt.datetime(2024, 11, 3, 6, 30, tzinfo=UTC)], (
        """SELECT date_trunc('DAY', x) AS d, count(*) AS n, max(hour(x)) AS h, min(x - INTERVAL '1' DAY) AS y,
        max(x - TIMESTAMP '2024-01-01 00:00:00') AS s FROM t WHERE x >= TIMESTAMP '2024-11-03 01:30:00' GROUP BY 1""",
        "SELECT window.start AS w, window.end AS e, count(*) AS n FROM t GROUP BY window(x, '1 hour', '30 minutes')",
    )),
    "timestamp without zone": (
        "TIMESTAMP_NTZ", [dt.datetime(2024, 3, 10, 2, 30), dt.datetime(2024, 11, 3, 1, 30), dt.datetime(1, 1, 1)], (
        """SELECT date_trunc('MONTH', x) AS d, count(*) AS n, max(x) AS hi,
        min(x - TIMESTAMP_NTZ '2024-01-01 00:00:00.000001') AS y, max(x + INTERVAL '1' MONTH) AS m
        FROM t WHERE x > TIMESTAMP_NTZ '0001-01-01 00:00:00' GROUP BY 1""",
    )),
    "binary": ("BINARY", [b"", b"\x00\xff", b"abc"], (
        "SELECT x, hex(x) AS h, count(*) AS n, max(length(x)) AS l FROM t WHERE length(x) > 0 GROUP BY x",
        "SELECT id FROM t WHERE x = X'00ff'",
    )),
    "struct": ("STRUCT<a: INT, b: STRUCT<c: STRING>>", [(1, ("p",)), (None, None), (2, (None,))], (
        "SELECT x, x.b.c AS c, sum(x.a) AS s, count(*) AS n FROM t GROUP BY x",
        "SELECT id, named_struct('k', id, 'v', x.b) AS y FROM t WHERE x.a IS NOT NULL",
    )),
    "array": ("ARRAY<INT>", [[1, 2], [], [None, 3], [2, 1]], (
        "SELECT x, count(*) AS n, max(array_append(x, 7)) AS y FROM t WHERE array_contains(x, 1) GROUP BY x",
        "SELECT id, transform(x, y -> y + id) AS y FROM t",
    )),
    "map": ("MAP<STRING, INT>", [{"a": 1}, {}, {"b": 2, "a": 3}], (
        "SELECT id, x, x['a'] AS a, map_keys(x) AS k FROM t WHERE x['a'] = 1 OR size(x) = 0",
    )),
    "pivot": ("INT", [1, 2, 3, None], (
        "SELECT * FROM (SELECT g, x, id FROM t) PIVOT (sum(id) AS s, count(*) AS n FOR x IN (1 AS one, 2 AS two))",
        "SELECT * FROM (SELECT g, x, id FROM t) PIVOT (max(id) FOR g IN ('a', 'b' AS b, 'nobody'))",
        "SELECT * FROM (SELECT g, x, id FROM t) UNPIVOT INCLUDE NULLS (v FOR k IN (x, id))",
    )),
    "pivot over dates": ("DATE", [dt.date(2024, 2, 29), dt.date(1, 1, 1), None], (
        "SELECT * FROM (SELECT g, x, id FROM t) PIVOT (sum(id) FOR x IN (DATE '2024-02-29' AS leap, NULL AS none))",
        """SELECT * FROM (SELECT g, x, id FROM t) PIVOT (count(*)
        FOR (g, x) IN (('a', DATE '2024-02-29') AS p, ('b', DATE '0001-01-01') AS q))""",
        "SELECT * FROM (SELECT g, id / 2.0 AS h, id FROM t) PIVOT (max(id) FOR h IN (0.5, 1.0))",
    )),
    "lateral view": ("STRING", ["p,q", "", None, "q"], (
        """SELECT w, y, count(*) AS n FROM t LATERAL VIEW OUTER explode(split(x, ',')) AS w
        LATERAL VIEW posexplode(array(g, w)) AS p, y GROUP BY w, y""",
    )),
}  # fmt: skip
QUICK = ("pivot", "pivot over dates")
RECOMPUTED = {query for query in KINDS["collation"][2] if "array(" in query}
"""Arrays of strings with a collation have no delta."""


@pytest.mark.parametrize("kind", [k if k in QUICK else pytest.param(k, marks=pytest.mark.slow) for k in KINDS])
def test_each_kind(warehouse: sw.Engine, spark: SparkSession, kind: str) -> None:
    dtype, values, queries = KINDS[kind]
    with session_with(spark, session__timeZone="America/New_York"):
        stored = "STRING" if kind == "year to month" else dtype
        raw = [(n, "abc"[n % 3], values[n % len(values)] if n % 5 else None) for n in range(24)]
        frame = spark.createDataFrame(raw, f"id INT, g STRING, x {stored}")
        if kind == "year to month":
            frame = frame.selectExpr("id", "g", f"CAST(x AS {dtype}) AS x")
        table = warehouse.create_table(fresh("t"), f"id INT, g STRING, x {dtype}", key=["id"])
        table.insert(frame.where("id < 16"))
        wrong, views = [], []
        for query in queries:
            text = query.replace("FROM t", f"FROM {table.name}").replace("JOIN t", f"JOIN {table.name}")
            found = warehouse.check(text)
            if found.incremental is (query in RECOMPUTED):
                wrong.append(f"{query}\n{found}")
            views.append((query, warehouse.create_view(fresh(), text, strategy="incremental")))
    for change in (
        lambda: table.insert(frame.where("id >= 16 AND id < 20")),
        lambda: table.delete_keys([(1,), (2,), (9,)]),
        lambda: table.upsert(frame.where("id >= 18").selectExpr("id - 12 AS id", "g", "x")),
    ):
        change()
    for query, view in views:
        try:
            report = view.refresh()
            check = view.verify()
        except sw.SlackwaterError as error:
            wrong.append(f"{query}\n{error}")
            continue
        if not check or (report.mode != "incremental" and query not in RECOMPUTED):
            wrong.append(f"{query}\n{report}\n{check}")
    assert not wrong, "\n\n".join(wrong)


def test_a_change_that_a_collation_does_not_see_is_a_change(warehouse: sw.Engine) -> None:
    table = warehouse.create_table(fresh("t"), "id INT, x STRING COLLATE UTF8_LCASE", key=["id"])
    table.insert([(1, "Ann"), (2, "bob")])
    view = warehouse.create_view(fresh(), f"SELECT id, x FROM {table.name}", strategy="incremental")
    table.upsert([(1, "ANN")])
    assert view.refresh().mode == "incremental"
    assert sorted(rows(view)) == [(1, "ANN"), (2, "bob")]


def test_a_group_is_called_by_the_smallest_of_its_strings(warehouse: sw.Engine) -> None:
    table = warehouse.create_table(fresh("t"), "id INT, x STRING COLLATE UTF8_LCASE", key=["id"])
    table.insert([(1, "ann"), (2, "Ann"), (3, "bob")])
    query = f"SELECT x, count(*) AS n FROM {table.name} GROUP BY x"
    view = warehouse.create_view(fresh(), query, strategy="incremental")
    assert sorted(rows(view)) == [("Ann", 2), ("bob", 1)]
    table.apply([{"id": 2, "x": "Ann", "_weight": -1}, {"id": 2, "x": "aNN", "_weight": 1}])
    assert view.refresh().mode == "incremental"
    assert sorted(rows(view)) == [("aNN", 2), ("bob", 1)]
    with pytest.raises(sw.SlackwaterError, match="ROW_ABSENT"):
        table.delete([(3, "BOB")])
    table.delete([(2, "aNN")])
    view.refresh()
    assert sorted(rows(view)) == [("ann", 1), ("bob", 1)]
    assert view.verify()

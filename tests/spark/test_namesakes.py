"""Columns, fields and numbers that are called, or look, like something that our own SQL or Spark's plans have.

What is wanted is written down here, and not asked of the engine: it would read the query in the same wrong way again.
"""

from __future__ import annotations

from typing import Any

import pytest

import slackwater as sw
from tests.spark.settling import fresh, settle, sorted_rows
from tests.spark.tabled import bag

pytestmark = pytest.mark.spark


@pytest.fixture
def tables(engine: sw.Engine) -> sw.Engine:
    """A table whose structs are called like the relations of our joins, with fields called like their columns."""
    holder = engine.create_table(
        "z", "id INT, r STRUCT<k: INT>, l STRUCT<k: INT>, g STRUCT<xs: ARRAY<INT>>, xs ARRAY<INT>"
    )
    holder.insert([(1, (10,), (20,), ([1, 2],), [7]), (2, (20,), (10,), ([3],), [8, 9])])
    engine.create_table("u", "k INT, v INT").insert([(10, 100), (20, 200)])
    return engine


NAMESAKES = {
    "SELECT z.id, z.r, u.v FROM z JOIN u ON z.r.k = u.k": [(1, (10,), 100), (2, (20,), 200)],
    "SELECT z.id, z.r, u.v FROM z LEFT JOIN u ON z.r.k = u.k AND u.v > 100": [(1, (10,), None), (2, (20,), 200)],
    "SELECT u.v, z.l FROM u JOIN z ON z.l.k = u.k": [(100, (10,)), (200, (20,))],
    "SELECT id, r FROM z WHERE r.k NOT IN (SELECT k FROM u WHERE k > 10)": [(1, (10,))],
    "SELECT id, l FROM z WHERE EXISTS (SELECT 1 FROM u WHERE u.k = z.l.k AND u.v = 200)": [(1, (20,))],
    "SELECT id, g, xs, y FROM z LATERAL VIEW explode(g.xs) gg AS y": [
        (1, ([1, 2],), [7], 1), (1, ([1, 2],), [7], 2), (2, ([3],), [8, 9], 3)],
}  # fmt: skip


def test_structs_called_like_relations_of_ours(tables: sw.Engine) -> None:
    views = {query: tables.create_view(fresh(), query) for query in NAMESAKES}
    assert {query: [_plain(row) for row in sorted_rows(view)] for query, view in views.items()} == NAMESAKES
    tables.table("z").insert([(3, (30,), (30,), ([],), [])])
    tables.table("u").insert([(30, 30)])
    for view in views.values():
        settle(view)


def _plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(tuple(x) if isinstance(x, tuple) else x for x in row)


WRITTEN: list[tuple[str, list[tuple[Any, ...]]]] = [
        ("SELECT g, count(DISTINCT 1) AS a, sum(v) AS s FROM t GROUP BY g", [("a", 1, 5), ("b", 1, 4)]),
        ("SELECT count(DISTINCT 'x', 1) AS a, max(v) AS m FROM t", [(1, 4)]),
        ("SELECT g, regr_sxx(DISTINCT v, w) AS a FROM t GROUP BY g", [("a", 0.5), ("b", 0.0)]),
        ("SELECT g, regr_syy(DISTINCT v, w) AS a FROM t GROUP BY g", [("a", 2.0), ("b", 0.0)]),
        ("SELECT * FROM (SELECT v, w FROM t WHERE v = 4) UNPIVOT (x FOR gid IN (v, w))", [("v", 4), ("w", 2)]),
        ("SELECT * FROM (SELECT w, v FROM t WHERE v = 4) UNPIVOT (x FOR gid IN (v AS `7`, w AS `3`))",
         [("3", 2), ("7", 4)]),
        ("SELECT v, arrays_zip(array(v), array(w)) AS z FROM t WHERE v = 4; -- that is all", [(4, [(4, 2)])]),
]  # fmt: skip


def test_what_spark_writes_in_another_way(engine: sw.Engine) -> None:
    table = engine.create_table("t", "g STRING, v INT, w INT")
    table.insert([("a", 3, 1), ("a", 3, 1), ("b", 4, 2)])
    views = [engine.create_view(fresh(), query) for query, _ in WRITTEN]
    table.delete([("a", 3, 1)])
    table.insert([("a", 1, 2), ("a", 1, 2), ("a", 1, 2)])
    table.delete([("a", 1, 2)])
    for view in views:
        settle(view, None)
    assert [(query, sorted_rows(view)) for (query, _), view in zip(WRITTEN, views, strict=True)] == WRITTEN


@pytest.mark.parametrize("day", ["date /* the day */ 'today'", "date r'today'", "DATE -- now\n 'Tomorrow'"])
def test_a_day_that_moves_is_refused_however_it_is_written(engine: sw.Engine, day: str) -> None:
    engine.create_table("e", "d DATE")
    with pytest.raises(sw.SlackwaterError) as caught:
        engine.create_view("v", f"SELECT d FROM e WHERE d < {day}")
    assert caught.value.code == "QUERY_NONDETERMINISTIC"


def test_a_struct_with_a_field_twice_is_refused(engine: sw.Engine) -> None:
    """It could be written, and never be read again."""
    with pytest.raises(sw.SlackwaterError) as caught:
        engine.create_table("s", "id INT, x ARRAY<STRUCT<a: INT, A: INT>>")
    assert caught.value.code == "SCHEMA_INVALID"
    engine.create_table("t", "id INT, arr ARRAY<INT>").insert([(1, [2])])
    found = engine.check("SELECT id, arrays_zip(arr, arr) AS z FROM t")
    assert found.codes == ("QUERY_INVALID",)


ZEROS = "id INT, x DOUBLE, xs ARRAY<DOUBLE>"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, CAST(xs AS STRING) AS said, rank() OVER (PARTITION BY x ORDER BY id) AS r FROM f",
        "SELECT id, xs FROM f ORDER BY id LIMIT 2",
        "SELECT id, xs, rank() OVER (ORDER BY id) AS r FROM f",
    ],
)
def test_minus_zero_inside_of_an_array_stays(engine: sw.Engine, query: str) -> None:
    table = engine.create_table("f", ZEROS)
    table.insert([(2, 0.0, [-0.0, 1.0]), (3, 0.0, [0.0])])
    view = engine.create_view(fresh(), query)
    table.insert([(1, 0.0, [-0.0])])
    settle(view, None)
    said = {row[0]: str(row[1]) for row in sorted_rows(view)}
    assert (said[1], said[2]) == ("[-0.0]", "[-0.0, 1.0]")


def test_rows_that_differ_by_the_sign_of_a_zero_are_two(engine: sw.Engine) -> None:
    table = engine.create_table("f", ZEROS)
    both = [(1, 0.0, [1.0]), (1, -0.0, [1.0])]
    table.insert(both)
    table.delete([both[1]])
    assert bag(table) == {(1, "0.0", ("1.0",)): 1}
    table.insert([(2, 1.0, [-0.0])])
    table.apply([{"id": 2, "x": 1.0, "xs": [-0.0], "_weight": -1}, {"id": 2, "x": 1.0, "xs": [0.0], "_weight": 1}])
    assert bag(table) == {(1, "0.0", ("1.0",)): 1, (2, "1.0", ("0.0",)): 1}
    with pytest.raises(sw.SlackwaterError) as caught:
        table.delete([(1, -0.0, [1.0])])
    assert caught.value.code == "ROW_ABSENT"
    assert "(1, -0.0, [1.0])" in str(caught.value)

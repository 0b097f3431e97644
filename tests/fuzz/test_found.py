"""What the fuzzer found, as small as it could be made."""

from __future__ import annotations

import math
from datetime import date

import pytest

import slackwater as sw
from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import col, lit
from slackwater.algebra.interpreter import Bag
from tests.fuzz.own_functions import declare
from tests.fuzz.plan_cases import PlanCase
from tests.fuzz.plan_oracles import check
from tests.fuzz.shrinking import ViewCase, check_view
from tests.fuzz.sizes import beyond
from tests.fuzz.tables import Round, Row, Schema

pytestmark = pytest.mark.fuzz

R = n.Scan("r", (n.Field("a", "int"), n.Field("b", "int"), n.Field("c", "string")), (0, 1, 2))


def case(plan: n.Rel, *history: dict[str, Bag], kept: int = 0, relation: str = "states") -> PlanCase:
    steps = len(history)
    return PlanCase(plan, history, (kept,) * steps, (0,) * steps, ("delta",) * steps, relation,
                    lit(True, dtype="boolean"), 0)  # fmt: skip


def test_a_row_that_comes_twice_counts_twice_in_bit_xor() -> None:
    """Equal rows of a delta are one entry of weight two: the interpreter's partial rows must see both."""
    plan = n.Aggregate(R, (), (AggCall("x", "bit_xor", (col("a", "int"),), "int"),))
    check(case(plan, {"r": Bag([((1, 0, "a"), 2)])}, {"r": Bag([((1, 0, "a"), 1)])}, kept=-1))


@pytest.mark.parametrize("kept", [0, -1])
def test_rows_without_columns_are_put_in_order_and_netted_out(kept: int) -> None:
    """There was nothing to write after ORDER BY, nor after GROUP BY where deletes meet inserts."""
    plan = n.TopK(n.Project(R, ()), (), 2)
    rows = (
        {"r": Bag([((1, 0, "a"), 2), ((2, 0, "a"), 1)])},
        {"r": Bag([((1, 0, "a"), -2)])},
        {"r": Bag([((3, 0, "a"), 1)])},
    )
    check(case(plan, *rows, kept=kept, relation="duckdb"))


R_AND_S: Schema = {"r": {"a": "INT"}, "s": {"b": "STRING", "c": "INT"}}
SOME_ROWS = {"r": [(1,), (2,)], "s": [("x", 1), ("y", 1), ("y", 2)]}
ROUNDS: list[Round] = [
    {"s": ([("z", 1)], [("x", 1)])},
    {"r": ([(3,)], [(1,)]), "s": ([("x", 1)], [("z", 1), ("y", 2)])},
    {"r": ([], [(2,), (3,)])},
]


@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ("SELECT a FROM r CROSS JOIN (SELECT b FROM s GROUP BY b HAVING count(*) = 1) x", 1),
        pytest.param(
            "SELECT a, (SELECT count(*) FROM (SELECT c FROM s LIMIT 2) x) AS n FROM r", 2, marks=pytest.mark.slow
        ),
    ],
)
def test_an_input_of_which_no_column_is_read(engine: sw.Engine, query: str, kinds: int) -> None:
    """Its kept rows could not be put beside their changes, and had no column to be grouped or ordered by."""
    check_view(engine, ViewCase(R_AND_S, SOME_ROWS, ROUNDS, query, query, ["exact"] * kinds, "incremental"))


def test_a_table_that_only_the_text_reads(engine: sw.Engine) -> None:
    """Spark saw that the join has no rows and dropped a table; `verify` then did not find it."""
    query = "SELECT r.a FROM r JOIN s ON r.a = s.c WHERE 1 = 2 UNION ALL SELECT a FROM r"
    check_view(engine, ViewCase(R_AND_S, SOME_ROWS, ROUNDS, query, query, ["exact"], "incremental"))
    view = engine.view("v")
    assert view.inputs == ("r",)
    engine.drop_table("s")
    assert view.verify()


@pytest.mark.slow
def test_flags_over_a_union(engine: sw.Engine) -> None:
    """Spark's optimizer failed where EXISTS stood in the list of a SELECT over a union, and the view was recomputed."""
    schema: Schema = {
        "t0": {"a0": "STRING", "b0": "STRING", "c0": "INT", "d0": "INT", "xs": "ARRAY<INT>"},
        "t1": {"a1": "INT", "b1": "STRING", "c1": "STRING", "d1": "DOUBLE"},
        "t2": {"a2": "INT", "b2": "DATE", "c2": "STRING", "d2": "BOOLEAN"},
    }
    start = {
        "t0": [
            ("a", None, None, None, None),
            ("a", "", 7, None, None),
            (None, "it's", 1, None, None),
            (None, None, 3, 1, None),
            (None, "a", None, None, None),
            (None, "ü", 3, 3, None),
            (None, None, None, None, None),
            (None, None, None, None, None),
            (None, None, None, None, None),
            (None, None, 7, None, [1]),
            (None, "ü", None, 3, None),
            ("b", None, None, 2, [1]),
        ],
        "t1": [
            (3, "a", "b", math.nan),
            (-1, "a", "b", math.nan),
            (-1, "a", "b", math.nan),
            (-1, "a", "b", math.nan),
            (-1, "a", "b", math.nan),
            (-1, "a", "b", math.nan),
            (-1, "ü", "it's", math.nan),
            (-1, "a", "b", math.nan),
            (-1, "a", "b", math.nan),
            (None, "a", "b", -0.0),
            (-1, "a", "b", math.nan),
            (2, None, "b", math.nan),
        ],
        "t2": [],
    }
    rounds: list[Round] = [
        {
            "t1": ([(-1, "a", "b", math.nan), (2, None, "b", math.nan)], []),
            "t2": ([(7, date(1969, 12, 31), "", None)], []),
        },
        {
            "t2": ([], [(7, date(1969, 12, 31), "", None)]),
            "t1": ([], [(-1, "a", "b", math.nan), (2, None, "b", math.nan)]),
        },
    ]
    query = """SELECT min(x37.c0) AS c0 FROM (SELECT x34.d0 AS c0, max(x32.d0) AS c1
        FROM t0 x32 CROSS JOIN t2 x33 LEFT JOIN t0 x34 ON x32.b0 = x34.a0
        WHERE x34.a0 NOT IN (SELECT y35.b0 FROM t0 y35 WHERE y35.b0 IS NOT NULL)
        AND NOT EXISTS (SELECT 1 FROM t1 y36 WHERE y36.b1 IS NOT DISTINCT FROM x33.c2)
        GROUP BY x34.d0) x37 WHERE (x37.c1 = (-1) OR x37.c1 IN (SELECT y38.a2 FROM t2 y38)) HAVING sum(x37.c1) >= 1"""
    check_view(engine, ViewCase(schema, start, rounds, query, query, ["exact"]))


def test_an_aggregate_of_ones_own_over_all_rows_of_two_versions(engine: sw.Engine) -> None:
    """A rule of Spark's optimizer, which merges aggregates without groups, failed over user-defined ones."""
    schema: Schema = {"t1": {"x": "INT", "y": "STRING"}}
    rounds: list[Round] = [{"t1": ([(7, "it's")], [])}, {"t1": ([(9, None)], [(7, "it's")])}]
    query = "SELECT own_total(x14.x) /*spark*/ AS c0 FROM t1 x14"
    check_view(engine, ViewCase(schema, {"t1": [(1, "a")]}, rounds, query, "", ["exact"], strategy="incremental"))


def test_an_aggregate_of_ones_own_by_strings_with_a_collation(engine: sw.Engine) -> None:
    """A group of equal strings is named by `min`, which Spark does not compute beside it: no name is the right one."""
    engine.create_table("t1", "x INT, c1 STRING COLLATE UTF8_LCASE")
    declare(engine, "own_total(")
    refusal = engine.check("SELECT c1, own_total(x) AS total FROM t1 GROUP BY c1").refusal
    assert refusal is not None
    assert refusal.code == "QUERY_NONDETERMINISTIC"
    assert "own_total" in refusal.message


def test_a_union_of_groups_by_an_expression_in_a_heavy_program(engine: sw.Engine) -> None:
    """What Spark knows of such groups it could not tell of their union, where rows were cut off from their history."""
    schema: Schema = {"t0": {"a0": "INT", "b0": "ARRAY<INT>"}, "t1": {"x": "INT"}}
    rounds: list[Round] = [{"t1": ([(3,)], [])}, {"t0": ([(3, [1, None])], []), "t1": ([], [(3,)])}]
    query = """SELECT sum(c0) AS c0 FROM (
        SELECT coalesce(g1, -5) AS c0, max(coalesce(a0, -5)) AS c1
        FROM t1 RIGHT JOIN t0 ON x = a0 LATERAL VIEW posexplode(b0) AS g0, g1 GROUP BY coalesce(g1, -5)) GROUP BY c1"""
    keys = {"t0": ("a0",), "t1": ("x",)}
    start: dict[str, list[Row]] = {"t0": [], "t1": []}
    with beyond(("heavy programs",)):
        check_view(engine, ViewCase(schema, start, rounds, query, "", ["exact"], strategy="higher_order", keys=keys))


def test_a_comparison_of_a_query_that_spark_can_run_only_alone(engine: sw.Engine) -> None:
    """Over the union of such a query and its result, by which `verify` compares, Spark ended in `key not found`."""
    schema: Schema = {"t0": {"c0": "INT", "d0": "INTERVAL DAY TO SECOND", "xs": "ARRAY<INT>"},
                      "t1": {"x": "INT", "c1": "STRING COLLATE UTF8_LCASE"}}  # fmt: skip
    query = """SELECT * FROM (SELECT x34.xs AS c0, (SELECT y36.c1 FROM t1 y36 WHERE y36.x = x35.c0) AS c1,
        (EXISTS (SELECT 1 FROM t0 y37 WHERE y37.d0 = x35.d0)) AS c2 FROM t0 x34 CROSS JOIN t0 x35) z
        WHERE (c2 NOT IN ((False), (True))) IS NULL"""
    keys = {"t0": ("c0",), "t1": ("x",)}
    start: dict[str, list[Row]] = {"t0": [], "t1": []}
    with beyond(("large deltas", "heavy recomputes", "groups looked up")):
        kinds = ["exact", "exact", "exact"]
        check_view(engine, ViewCase(schema, start, [], query, "", kinds, strategy="higher_order", keys=keys))


def test_higher_order_views_of_rows_that_are_only_counted(engine: sw.Engine) -> None:
    """No input of the join has a column left, and so none of them had a first one."""
    schema: Schema = {"t0": {"d0": "INT", "xs": "ARRAY<INT>"}}
    rounds: list[Round] = [{"t0": ([(1, None), (2, [3])], [])}, {"t0": ([(3, None)], [(1, None)])}]
    query = """WITH w30 AS (SELECT x32.xs AS c0 FROM t0 x32) SELECT count(CAST(NULL AS INT)) AS c0, count(*) AS c1
        FROM w30 x34 CROSS JOIN w30 x35 GROUP BY coalesce(CAST(NULL AS INT), -5)"""
    start: dict[str, list[Row]] = {"t0": [(7, [1])]}
    check_view(engine, ViewCase(schema, start, rounds, query, query, ["exact", "exact"], strategy="higher_order"))


MAPS = ["map('a', {x})", "map('b', {x}, 'a', 1)", "array(map('a', {x}))", "struct({x} AS x, map('a', {x}) AS m)",
        "map('a', map('b', {x}))", "map('a', array({x}))"]  # fmt: skip


@pytest.mark.parametrize("strategy", ["incremental", pytest.param("rebatch", marks=pytest.mark.slow)])
def test_null_in_a_map_is_not_the_number_before_it(engine: sw.Engine, strategy: str) -> None:
    """Where Spark puts a map in order to group by it, its code does not ask whether a number is NULL."""
    table = engine.create_table("t", "g INT, x INT")
    table.insert([(1, 2), (2, 2), (3, None), (4, 0)])
    totals = [value.format(x="CAST(sum(x) AS INT)") for value in MAPS]
    views = [engine.create_view(f"v{at}", f"SELECT {total} AS m FROM t GROUP BY g", strategy=strategy)
             for at, total in enumerate(totals)]  # fmt: skip
    for come, goes in (([(3, None), (5, None)], []), ([(3, 7), (5, 0)], []), ([], [(3, 7), (1, 2), (5, 0)])):
        table.apply([{"g": g, "x": x, "_weight": w} for rows, w in ((come, 1), (goes, -1)) for g, x in rows])
        for view in views:
            view.refresh()
            assert view.verify()
    for value, view in zip(MAPS, views, strict=True):
        left = engine.spark.sql(f"SELECT {value.format(x='x')} AS m FROM VALUES (2), (CAST(NULL AS INT)), (0), "
                                "(CAST(NULL AS INT)) AS t(x)")  # fmt: skip
        assert sorted(str(row.m) for row in view.result().collect()) == sorted(str(row.m) for row in left.collect())

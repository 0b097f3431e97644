"""From queries to plans: goldens of what is captured, codes for what is refused, and reasons for what is recomputed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

import slackwater as sw
from slackwater.algebra.nodes import Opaque
from slackwater.algebra.printer import tree_text
from slackwater.bench.tpch_queries import QUERIES
from slackwater.capture import Captured
from slackwater.settings import pinned_settings

GOLDEN_SPARK = "4.2"
"""The Spark whose optimizer the goldens show; other releases may order things differently."""

TPCH = {
    "customer": "c_custkey BIGINT, c_name STRING, c_address STRING, c_nationkey INT, c_phone STRING,"
    " c_acctbal DECIMAL(15,2), c_mktsegment STRING, c_comment STRING",
    "lineitem": "l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber INT, l_quantity DECIMAL(15,2),"
    " l_extendedprice DECIMAL(15,2), l_discount DECIMAL(15,2), l_tax DECIMAL(15,2), l_returnflag STRING,"
    " l_linestatus STRING, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, l_shipinstruct STRING,"
    " l_shipmode STRING, l_comment STRING",
    "nation": "n_nationkey INT, n_name STRING, n_regionkey INT, n_comment STRING",
    "orders": "o_orderkey BIGINT, o_custkey BIGINT, o_orderstatus STRING, o_totalprice DECIMAL(15,2), o_orderdate DATE,"
    " o_orderpriority STRING, o_clerk STRING, o_shippriority INT, o_comment STRING",
    "part": "p_partkey BIGINT, p_name STRING, p_mfgr STRING, p_brand STRING, p_type STRING, p_size INT,"
    " p_container STRING, p_retailprice DECIMAL(15,2), p_comment STRING",
    "partsupp": "ps_partkey BIGINT, ps_suppkey BIGINT, ps_availqty INT, ps_supplycost DECIMAL(15,2), ps_comment STRING",
    "region": "r_regionkey INT, r_name STRING, r_comment STRING",
    "supplier": "s_suppkey BIGINT, s_name STRING, s_address STRING, s_nationkey INT, s_phone STRING,"
    " s_acctbal DECIMAL(15,2), s_comment STRING",
}

QUERY_GOLDENS = {f"tpch_{n:02}": sql for n, sql in QUERIES.items()} | {
    "cte_used_twice": """WITH x AS (SELECT a, sum(b) AS s FROM t GROUP BY a)
SELECT p.a, q.s FROM x p JOIN x q ON p.s = q.a""",
    "count_distinct": "SELECT a, count(DISTINCT b) AS d, sum(m) AS s, count(*) AS n FROM t GROUP BY a",
    "count_distincts": "SELECT count(DISTINCT a) AS da, count(DISTINCT b) AS db FROM t",
    "cross_join": "SELECT t.a, u.v FROM t CROSS JOIN u",
    "distinct": "SELECT DISTINCT a, s FROM t WHERE b BETWEEN 1 AND 5",
    "except": "SELECT a FROM t EXCEPT SELECT k FROM u",
    "except_all": "SELECT a, s FROM t EXCEPT ALL SELECT k, v FROM u",
    "existence_join": "SELECT a, b IN (SELECT k FROM u WHERE v = 'x') AS there FROM t WHERE b IS NOT NULL",
    "explode": "SELECT a, p, x FROM t LATERAL VIEW OUTER posexplode(sequence(1, b)) AS p, x",
    "filtered_aggregates": """SELECT a, sum(m) FILTER (WHERE b > 1) AS s, avg(m) AS am, var_pop(b) AS vp
FROM t GROUP BY a""",
    "full_outer_join": "SELECT t.a, t.m, u.v FROM t FULL JOIN u ON t.a = u.k AND t.b < 5",
    "grouping_sets": "SELECT a, s, grouping_id() AS g, count(*) AS n FROM t GROUP BY GROUPING SETS ((a, s), (a), ())",
    "having": "SELECT upper(s) AS u, max(m) - min(m) AS spread FROM t GROUP BY upper(s) HAVING count(*) > 1",
    "lateral": "SELECT t.a, w.c FROM t JOIN LATERAL (SELECT count(*) AS c FROM u WHERE u.k = t.a) w",
    "not_in": "SELECT a FROM t WHERE a NOT IN (SELECT k FROM u)",
    "outer_joins": "SELECT x.a, y.b, u.v FROM t x LEFT JOIN t y ON x.a = y.b RIGHT JOIN u ON x.b = u.k",
    "self_join": "SELECT x.a, y.b FROM t x JOIN t y ON x.a = y.b AND x.m < y.m WHERE x.s LIKE '%a_b%'",
    "semi_join": "SELECT a FROM t WHERE a IN (SELECT k FROM u WHERE v = 'x')",
    "subquery": "SELECT a FROM t WHERE m > (SELECT avg(m) FROM t)",
    "top_k": "SELECT s, sum(m) AS total FROM t GROUP BY s ORDER BY total DESC NULLS LAST, s LIMIT 5 OFFSET 2",
    "top_k_of_a_hidden_column": "SELECT a FROM t ORDER BY m DESC, b LIMIT 3",
    "union_all": "SELECT a, s FROM t UNION ALL SELECT k, v FROM u UNION ALL SELECT b, NULL FROM t WHERE b IS NOT NULL",
    "values": "SELECT t.a, v.name FROM t JOIN (VALUES (1, 'one'), (2, NULL)) AS v(k, name) ON t.a = v.k",
    "aggregates_with_ties": """SELECT a, max_by(b, m) AS x, collect_list(s) AS l, listagg(s, ',') AS t,
mode(b, true) AS o, percentile_disc(0.5) WITHIN GROUP (ORDER BY m DESC) AS p FROM t GROUP BY a""",
    "exists": "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE k > 3)",
    "scalars": """SELECT a, sum(b) AS x, (SELECT max(v) FROM u) AS y FROM t GROUP BY a
HAVING sum(b) > (SELECT k FROM u WHERE v = 'x') OR sum(b) < (SELECT min(k) FROM u HAVING count(*) > 1)""",
    "top_k_in_a_subquery": "SELECT a, v FROM t JOIN (SELECT k, v FROM u ORDER BY v DESC LIMIT 3 OFFSET 1) x ON a = k",
    "window_frames": """SELECT a, last_value(b) OVER (PARTITION BY s ORDER BY m) AS l,
first_value(b) OVER (PARTITION BY s ORDER BY m) AS f, sum(b) OVER (PARTITION BY s ORDER BY m) AS r,
sum(b) OVER (PARTITION BY s ORDER BY m ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS w FROM t""",
    "windows": "SELECT a, rank() OVER (ORDER BY m) AS r, lag(b) OVER (PARTITION BY s ORDER BY m) AS p FROM t",
    "window": "SELECT a, row_number() OVER (PARTITION BY s ORDER BY m) AS n FROM t",
}  # fmt: skip


@pytest.fixture(scope="module")
def tables(warehouse: sw.Engine) -> sw.Engine:
    """TPC-H's tables without rows, two small ones, and one whose columns have every type."""
    for name, schema in TPCH.items():
        warehouse.create_table(name, schema)
    warehouse.create_table("t", "a INT, b INT, s STRING, m DECIMAL(12,2), country_id INT")
    warehouse.create_table("u", "k INT, v STRING")
    return warehouse


def captured(engine: sw.Engine, query: Any) -> Captured:
    return engine.capture(query, pinned_settings(engine.spark))


@pytest.mark.parametrize("name", sorted(QUERY_GOLDENS))
def test_plans(tables: sw.Engine, spark: SparkSession, golden: Callable[[str, str], None], name: str) -> None:
    found = captured(tables, QUERY_GOLDENS[name])
    if not spark.version.startswith(GOLDEN_SPARK):
        assert not isinstance(found.plan, Opaque), name
        return
    order = "; ".join(found.order) or "none"
    head = f"{QUERY_GOLDENS[name].strip()}\n\ncolumns {', '.join(found.columns)}\norder {order}\n\n"
    golden(f"capture/{name}.txt", head + tree_text(found.plan))


def test_the_same_query_gives_the_same_plan_again(tables: sw.Engine) -> None:
    for name in ("tpch_05", "count_distincts", "self_join"):
        first, second = (tree_text(captured(tables, QUERY_GOLDENS[name]).plan) for _ in range(2))
        assert first == second


# --- refusals --------------------------------------------------------------------------------------------------------


def refused(engine: sw.Engine, query: Any, code: str) -> sw.SlackwaterError:
    with pytest.raises(sw.SlackwaterError) as caught:
        captured(engine, query)
    assert caught.value.code == code, str(caught.value)
    assert caught.value.advice
    return caught.value


QUERY_INVALID = r"""
SELEC a FROM t
SELECT a FROM
SELECT nope FROM t
SELECT a FROM nowhere
SELECT a FROM t GROUP BY b
SELECT b FROM t, t AS x
SELECT a + s AS x, FROM t
SELECT a, a FROM t
SELECT a, b AS A FROM t
SELECT * FROM t x JOIN t y ON x.a = y.a
SELECT a FROM t; SELECT b FROM t
SELECT listagg(DISTINCT s) WITHIN GROUP (ORDER BY s) AS l, count(DISTINCT a) AS n FROM t
SELECT nosuchfunction(a) FROM t
""".strip().splitlines()
QUERY_NONDETERMINISTIC = r"""
SELECT a, now() AS n FROM t
SELECT a FROM t WHERE current_date() > DATE '2020-01-01'
SELECT a, rand() AS r FROM t
SELECT a, rand(42) AS r FROM t
SELECT a, uuid() AS r FROM t
SELECT a, current_timestamp() AS r FROM t
SELECT a, localtimestamp() AS r FROM t
SELECT a, current_user() AS r FROM t
SELECT a, current_timezone() AS r FROM t
SELECT a, unix_timestamp() AS r FROM t
SELECT a, monotonically_increasing_id() AS r FROM t
SELECT a, spark_partition_id() AS r FROM t
SELECT a, input_file_name() AS r FROM t
SELECT first(a) AS r FROM t
SELECT any_value(a) AS r FROM t
SELECT a FROM t TABLESAMPLE (10 PERCENT)
SELECT shuffle(array(a, b)) AS r FROM t
SELECT reflect('java.lang.System', 'nanoTime') AS r FROM t
SELECT a, version() AS r FROM t
SELECT a FROM t WHERE DATE 'today' > DATE '2020-01-01'
SELECT a, timestamp  'Now' AS r FROM t
SELECT a, TIMESTAMP_NTZ "tomorrow" AS r FROM t
SELECT a FROM (SELECT a, now() AS n FROM t)
SELECT a FROM t WHERE a IN (SELECT k FROM u WHERE rand() > 0.5)
SELECT TRANSFORM(a) USING 'cat' AS (x STRING) FROM t
""".strip().splitlines()
QUERY_UNSUPPORTED = r"""
SELECT 1 AS x
VALUES (1), (2)
SELECT id FROM range(5)
SELECT x FROM foreign_table
SELECT a FROM t JOIN foreign_table f ON t.a = f.x
SELECT a FROM t WHERE a IN (SELECT x FROM foreign_table)
SELECT t.a FROM t JOIN global_temp.foreign_view g ON t.a = g.x
SELECT a FROM t, foreign_view
SELECT * FROM text.`/etc/hostname`
""".strip().splitlines()


@pytest.mark.parametrize(
    ("query", "code"),
    [(q, code) for code, queries in (
        ("QUERY_INVALID", ["", "  \n", *QUERY_INVALID]),
        ("QUERY_NONDETERMINISTIC", QUERY_NONDETERMINISTIC),
        ("QUERY_UNSUPPORTED", QUERY_UNSUPPORTED),
    ) for q in queries],
)  # fmt: skip
@pytest.mark.usefixtures("foreign")
def test_refused_queries(tables: sw.Engine, query: str, code: str) -> None:
    refused(tables, query, code)


@pytest.fixture(scope="module")
def foreign(spark: SparkSession) -> Iterator[None]:
    """A table and views of the user's own Spark catalog."""
    spark.sql("CREATE TABLE foreign_table (x INT) USING parquet")
    spark.sql("CREATE VIEW foreign_view AS SELECT * FROM VALUES (1) AS v(x)")
    spark.createDataFrame([(1,)], "x INT").createOrReplaceGlobalTempView("foreign_view")
    yield
    spark.sql("DROP TABLE foreign_table")
    spark.sql("DROP VIEW foreign_view")
    spark.catalog.dropGlobalTempView("foreign_view")


def test_what_is_not_a_query_at_all(tables: sw.Engine) -> None:
    for thing in (None, 42, b"SELECT a FROM t", ["SELECT a FROM t"]):
        refused(tables, thing, "QUERY_INVALID")


COMMANDS = r"""
DROP TABLE victim
TRUNCATE TABLE victim
INSERT INTO victim VALUES (2)
INSERT OVERWRITE victim VALUES (2)
CREATE TABLE intruder AS SELECT 1 AS x
CREATE VIEW intruder AS SELECT 1 AS x
CREATE DATABASE intruder
ALTER TABLE victim ADD COLUMN y INT
SET spark.sql.ansi.enabled=false
RESET
CACHE TABLE victim
CACHE TABLE intruder AS SELECT 1 AS x
CREATE TEMPORARY VIEW t AS SELECT 1 AS a
DESCRIBE victim
SHOW TABLES
EXPLAIN SELECT a FROM t
USE default
DECLARE VARIABLE intruder INT DEFAULT 5
ADD JAR '/tmp/x.jar'
WITH x AS (SELECT 2 AS x) INSERT INTO victim SELECT * FROM x
FROM t INSERT INTO victim SELECT a INSERT INTO victim SELECT b
EXECUTE IMMEDIATE 'INSERT INTO victim VALUES (2)'
BEGIN INSERT INTO victim VALUES (2); SELECT a FROM t; END
INSERT OVERWRITE DIRECTORY '{path}' USING parquet SELECT 1 AS x
WITH x AS (SELECT 1 AS x) INSERT OVERWRITE DIRECTORY '{path}' USING parquet SELECT * FROM x
SELECT a FROM t; DROP TABLE victim
CALL system.anything()
REFRESH TABLE victim
ANALYZE TABLE victim COMPUTE STATISTICS
""".strip().splitlines()


def test_commands_are_never_run(tables: sw.Engine, spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("CREATE TABLE victim (x INT) USING parquet")
    spark.sql("INSERT INTO victim VALUES (1)")
    directory = tmp_path / "intruder"
    names = {t.name for t in spark.catalog.listTables()} | {d.name for d in spark.catalog.listDatabases()}
    try:
        for command in COMMANDS:
            refused(tables, command.format(path=directory), "QUERY_INVALID")
        spark.catalog.refreshTable("victim")
        assert [tuple(r) for r in spark.table("victim").collect()] == [(1,)]
        assert {t.name for t in spark.catalog.listTables()} | {d.name for d in spark.catalog.listDatabases()} == names
        assert not directory.exists()
        assert captured(tables, "SELECT a FROM t").columns == ("a",)
    finally:
        spark.sql("DROP TABLE victim")


def test_frames_with_foreign_code_or_data(tables: sw.Engine, spark: SparkSession) -> None:
    relation = tables.table("t").relation()
    plus_one = F.udf(lambda x: x, "int")
    refused(tables, relation.select(plus_one("a").alias("x")), "QUERY_NONDETERMINISTIC")
    refused(tables, relation.mapInPandas(lambda frames: frames, relation.schema), "QUERY_NONDETERMINISTIC")
    refused(tables, relation.select("a", F.rand().alias("r")), "QUERY_NONDETERMINISTIC")
    refused(tables, spark.range(3), "QUERY_UNSUPPORTED")
    refused(tables, relation.join(spark.createDataFrame([(1,)], "a INT"), "a"), "QUERY_UNSUPPORTED")
    refused(tables, lambda frames: frames["t"].join(frames["t"], "a", "left"), "QUERY_INVALID")
    middle = F.percentile("m", F.lit(0.5)).over(Window.partitionBy("s"))
    error = refused(tables, relation.select("a", middle.alias("n")), "EXPRESSION_UNSUPPORTED")
    assert "Percentile" in error.message
    assert "SQL text" in error.advice


def test_temporary_views_of_the_user_are_out_of_sight(tables: sw.Engine, spark: SparkSession) -> None:
    spark.range(3).createOrReplaceTempView("t")
    try:
        assert captured(tables, "SELECT country_id FROM t").columns == ("country_id",)
        assert spark.table("t").columns == ["id"]
    finally:
        spark.catalog.dropTempView("t")


# --- what is recomputed ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "code", "operator"),
    [
        ("SELECT a, median(m) OVER (PARTITION BY b) AS r FROM t -- the end", "EXPRESSION_UNSUPPORTED", "Percentile"),
        ("SELECT a, array(TIMESTAMP '2024-02-29 12:00') AS x FROM t ORDER BY a;", "EXPRESSION_UNSUPPORTED", "Literal"),
        ("SELECT a, arrays_zip(array(s)) AS n FROM t", "EXPRESSION_UNSUPPORTED", "ArraysZip"),
        ("SELECT session_window.start AS x, count(*) AS n FROM t GROUP BY session_window(timestamp_seconds(a),"
         " concat(a + 2, ' seconds'))",
         "OPERATOR_UNSUPPORTED", "session_window"),
    ],
)  # fmt: skip
def test_recomputed_with_a_reason(tables: sw.Engine, sql: str, code: str, operator: str) -> None:
    table = tables.table("t")
    table.insert([(n, n % 2, str(n), Decimal(n), n) for n in range(6)])
    view = tables.create_view(f"by {operator}", sql)
    explained = str(view.explain())
    assert f"[{code}] " in explained
    assert operator in explained
    table.insert([(50, 0, "x", None, None)])
    report = view.refresh()
    assert (report.mode, report.reason.startswith(f"[{code}] ")) == ("recompute", True)
    assert operator in report.reason
    assert view.verify(), str(view.verify())
    assert not view.status()["incremental"]


def test_a_recomputed_query_keeps_its_order(tables: sw.Engine) -> None:
    table = tables.create_table("numbers", "n INT")
    table.insert([(n,) for n in range(9)])
    view = tables.create_view("ordered", "SELECT n, arrays_zip(array(n)) AS x FROM numbers ORDER BY n DESC")
    assert isinstance(view.plan, Opaque)
    table.insert([(n,) for n in range(20, 25)])
    view.refresh()
    found = [r.n for r in view.result().collect()]
    assert found == sorted(found, reverse=True)

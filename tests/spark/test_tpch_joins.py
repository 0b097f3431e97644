"""TPC-H queries with outer, semi and anti joins, refreshed through changes of all their tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from slackwater.bench.tpch_data import HELD_BACK, Slices, generate, insert_slice, load

pytestmark = pytest.mark.slow

QUERIES = {
    "Q4": """SELECT o_orderpriority, count(*) AS order_count FROM orders
WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-10-01' AND EXISTS (
  SELECT 1 FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
GROUP BY o_orderpriority ORDER BY o_orderpriority""",
    "Q13": """SELECT c_count, count(*) AS custdist FROM (
  SELECT c_custkey, count(o_orderkey) AS c_count
  FROM customer LEFT JOIN orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%'
  GROUP BY c_custkey) GROUP BY c_count ORDER BY custdist DESC, c_count DESC""",
    "Q16": """SELECT p_brand, p_type, p_size, count(DISTINCT ps_suppkey) AS supplier_cnt FROM partsupp, part
WHERE p_partkey = ps_partkey AND p_brand <> 'Brand#45' AND p_type NOT LIKE 'MEDIUM POLISHED%'
  AND p_size IN (49, 14, 23, 45, 19, 3, 36, 9) AND ps_suppkey NOT IN (
    SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%')
GROUP BY p_brand, p_type, p_size""",
    "Q18": """SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) AS quantity
FROM customer, orders, lineitem
WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 250)
  AND c_custkey = o_custkey AND o_orderkey = l_orderkey
GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
ORDER BY o_totalprice DESC, o_orderdate LIMIT 100""",
    "Q20": """SELECT s_name, s_address FROM supplier, nation
WHERE s_suppkey IN (
  SELECT ps_suppkey FROM partsupp
  WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'forest%') AND ps_availqty > (
    SELECT 0.5 * sum(l_quantity) FROM lineitem
    WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey AND l_shipdate >= DATE '1994-01-01'
      AND l_shipdate < DATE '1995-01-01'))
  AND s_nationkey = n_nationkey ORDER BY s_name""",
    "Q21": """SELECT s_name, count(*) AS numwait FROM supplier, lineitem l1, orders, nation
WHERE s_suppkey = l1.l_suppkey AND o_orderkey = l1.l_orderkey AND o_orderstatus = 'F'
  AND l1.l_receiptdate > l1.l_commitdate
  AND EXISTS (SELECT 1 FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey)
  AND NOT EXISTS (SELECT 1 FROM lineitem l3 WHERE l3.l_orderkey = l1.l_orderkey AND l3.l_suppkey <> l1.l_suppkey
    AND l3.l_receiptdate > l3.l_commitdate)
  AND s_nationkey = n_nationkey
GROUP BY s_name ORDER BY numwait DESC, s_name LIMIT 100""",
    "customers without orders": """SELECT substring(c_phone, 1, 2) AS code, count(*) AS n, sum(c_acctbal) AS total
FROM customer WHERE c_acctbal > 0 AND NOT EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey)
GROUP BY substring(c_phone, 1, 2)""",
}


@pytest.fixture(scope="module")
def tpch(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> dict[str, list[str]]:
    """Each query through an insert, a delete and an update of every table that changes; what went wrong by query."""
    root: Path = tmp_path_factory.mktemp("tpch")
    generate(root / "data", 0.01)
    slices = Slices(spark, root / "data")
    problems: dict[str, list[str]] = {name: [] for name in QUERIES}
    with sw.Engine(root / "wh", spark=spark, save_states=False) as engine:
        load(engine, slices, 0.02)
        views = {name: engine.create_view(name, sql) for name, sql in QUERIES.items()}
        for round_ in ("insert", "delete", "update"):
            if round_ == "insert":
                insert_slice(engine, slices, HELD_BACK, 0.98, 1.0)
            for table in HELD_BACK if round_ != "insert" else ():
                gone = slices.part(table, 0.0, 0.01) if round_ == "delete" else slices.part(table, 0.2, 0.21)
                engine.table(table).delete(gone)
                if round_ == "update":
                    last = engine.table(table).schema[-1].name
                    engine.table(table).insert(gone.withColumn(last, F.lit("special requests")))
            for name, view in views.items():
                report = view.refresh()
                check = view.verify()
                if report.mode != "incremental":
                    problems[name].append(f"{round_}: {report.mode}, {report.reason}")
                if not check:
                    problems[name].append(f"{round_}: {check}")
    return problems


@pytest.mark.parametrize("name", QUERIES)
def test_refreshed_incrementally(tpch: dict[str, list[str]], name: str) -> None:
    assert not tpch[name], "\n".join(tpch[name])

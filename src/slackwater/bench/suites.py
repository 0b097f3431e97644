"""The benchmark suites that coverage is told of: their tables without rows, and their queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from slackwater.bench.tpcds_data import SMALLEST, prepare
from slackwater.bench.tpcds_queries import spark_queries
from slackwater.bench.tpch_data import KEYS
from slackwater.bench.tpch_more_queries import ALL_QUERIES
from slackwater.engine import Engine

SCHEMAS = {
    "customer": "c_custkey BIGINT, c_name STRING, c_address STRING, c_nationkey BIGINT, c_phone STRING,"
    " c_acctbal DECIMAL(15,2), c_mktsegment STRING, c_comment STRING",
    "orders": "o_orderkey BIGINT, o_custkey BIGINT, o_orderstatus STRING, o_totalprice DECIMAL(15,2), o_orderdate DATE,"
    " o_orderpriority STRING, o_clerk STRING, o_shippriority INT, o_comment STRING",
    "lineitem": "l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber INT, l_quantity DECIMAL(15,2),"
    " l_extendedprice DECIMAL(15,2), l_discount DECIMAL(15,2), l_tax DECIMAL(15,2), l_returnflag STRING,"
    " l_linestatus STRING, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, l_shipinstruct STRING,"
    " l_shipmode STRING, l_comment STRING",
    "supplier": "s_suppkey BIGINT, s_name STRING, s_address STRING, s_nationkey BIGINT, s_phone STRING,"
    " s_acctbal DECIMAL(15,2), s_comment STRING",
    "part": "p_partkey BIGINT, p_name STRING, p_mfgr STRING, p_brand STRING, p_type STRING, p_size INT,"
    " p_container STRING, p_retailprice DECIMAL(15,2), p_comment STRING",
    "partsupp": "ps_partkey BIGINT, ps_suppkey BIGINT, ps_availqty INT, ps_supplycost DECIMAL(15,2), ps_comment STRING",
    "nation": "n_nationkey BIGINT, n_name STRING, n_regionkey BIGINT, n_comment STRING",
    "region": "r_regionkey BIGINT, r_name STRING, r_comment STRING",
}  # fmt: skip
"""The columns of the eight tables, with the types that the generator of the data gives them."""


@dataclass(frozen=True, slots=True)
class Suite:
    """A benchmark.

    Attributes:
        name: what the command line calls it.
        title: what people call it.
        schemas: the columns of each table.
        queries: the queries by number.
        keys: the keys of the tables that have one.
        trees: whether the page shows the plans as trees, or the operators of each query in groups.
    """

    name: str
    title: str
    schemas: Mapping[str, str]
    queries: Mapping[int, str]
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    trees: bool = True

    def create_empty_tables(self, engine: Engine) -> None:
        """Make the tables, without rows."""
        for table, schema in self.schemas.items():
            engine.create_table(table, schema, key=self.keys.get(table, ()))


def tpch(say: Callable[[str], None]) -> Suite:
    """TPC-H; its queries are part of Slackwater."""
    keys = {table: key for table, key in KEYS.items() if table != "lineitem"}
    return Suite("tpch", "TPC-H", SCHEMAS, ALL_QUERIES, keys)


def tpcds(say: Callable[[str], None]) -> Suite:
    """TPC-DS; its tables and queries come from a generator, which is fetched the first time."""
    data = prepare(SMALLEST, say)
    return Suite("tpcds", "TPC-DS", data.schemas, spark_queries(data.texts), trees=False)


SUITES: dict[str, Callable[[Callable[[str], None]], Suite]] = {"tpch": tpch, "tpcds": tpcds}

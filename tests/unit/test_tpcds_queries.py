"""The rules that turn DuckDB's text of a query into Spark's."""

from __future__ import annotations

import pytest

from slackwater.bench.tpcds_data import TpcdsData, prepared
from slackwater.bench.tpcds_queries import spark_queries, spark_sql


@pytest.mark.parametrize(
    ("duckdb", "spark"),
    [
        ("SELECT a / b FROM t", "SELECT a / NULLIF(b, 0) FROM t"),
        ("SELECT a / (b + 1) FROM t", "SELECT a / NULLIF(b + 1, 0) FROM t"),
        ("SELECT a / 2.0, a / (3) FROM t", "SELECT a / 2.0, a / ( 3 ) FROM t"),
        ("SELECT a / 0 FROM t", "SELECT a / NULLIF(0, 0) FROM t"),
        ("SELECT a / b / c FROM t", "SELECT a / NULLIF(b, 0) / NULLIF(c, 0) FROM t"),
        ('SELECT a AS "the sum" FROM t ORDER BY a', "SELECT a AS `the sum` FROM t ORDER BY a NULLS LAST"),
        ("SELECT a FROM t ORDER BY a NULLS FIRST;", "SELECT a FROM t ORDER BY a"),
        ("SELECT a || 'x' FROM t", "SELECT a || 'x' FROM t"),
    ],
)
def test_one_query(duckdb: str, spark: str) -> None:
    assert " ".join(spark_sql(duckdb).split()) == spark


@pytest.fixture
def data() -> TpcdsData:
    found = prepared()
    if found is None:
        pytest.skip("there is no TPC-DS data; make it with `make tpcds-data`")
    return found


def test_there_are_99_queries_over_24_tables(data: TpcdsData) -> None:
    queries = spark_queries(data.texts)
    assert list(queries) == list(range(1, 100))
    assert len(data.schemas) == 24
    assert all(data.file(table).exists() for table in data.schemas)
    assert not [n for n, text in queries.items() if '"' in text]

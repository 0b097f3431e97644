"""PIVOT, and other plans in which one column is used in two roles: kept up, not recomputed."""

from __future__ import annotations

import pytest

import slackwater as sw
from tests.spark.tides import check_rounds

QUERIES = {
    "one function": "SELECT * FROM (SELECT o, p, v FROM {tides}) PIVOT (sum(v) FOR p IN ('a', 'b', 'late'))",
    "two functions": """SELECT * FROM (SELECT o, p, v, m FROM {tides})
        PIVOT (max(v) AS most, sum(m) AS paid FOR p IN ('a' AS x, 'odd' AS y))""",
    "no other key": "SELECT * FROM (SELECT o, v FROM {tides}) PIVOT (count(v) FOR o IN (0, 1, 9))",
    "a key in a cube and under DISTINCT": """SELECT p, o, sum(DISTINCT o) AS s, min(o) AS least, max(n) AS n
        FROM {tides} LEFT JOIN {labels} ON p = k GROUP BY CUBE (p, o)""",
    "a branch without rows": """SELECT o, array(v) AS vs FROM {tides}
        UNION ALL SELECT n, array(n) FROM {labels} WHERE n < 0 AND n > 0""",
}


@pytest.mark.slow
def test_pivots_are_incremental(warehouse: sw.Engine) -> None:
    check_rounds(warehouse, QUERIES)

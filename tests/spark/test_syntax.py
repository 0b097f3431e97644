"""What newer syntax, rare forms, and what the README calls recomputed come to: verdict, code, and proof."""

from __future__ import annotations

import datetime as dt

import pytest

import slackwater as sw
from tests.spark.settling import fresh

FOLLOWED = """
SELECT id, g, x FROM n QUALIFY rank() OVER (PARTITION BY g ORDER BY x) = 1
SELECT id, g, x FROM n QUALIFY row_number() OVER (PARTITION BY g ORDER BY x) = 1
FROM n |> WHERE x > 1 |> AGGREGATE sum(x) AS s GROUP BY g
TABLE n |> SELECT id, x |> WHERE x > 1
FROM n |> SELECT id, x |> ORDER BY x |> LIMIT 3
SELECT id, g FROM n ORDER BY ALL LIMIT 3
SELECT g, count(*) AS c FROM n GROUP BY ALL
SELECT id FROM n TABLESAMPLE (3 ROWS)
SELECT n.id, w.c FROM n, LATERAL (SELECT count(*) AS c FROM m WHERE m.k = n.g) w
SELECT n.id, w.y FROM n, LATERAL (SELECT m.y FROM m WHERE m.k = n.g ORDER BY m.y LIMIT 1) w
SELECT n.id, r.id AS i FROM n JOIN range(20) r ON n.x = r.id
SELECT g, collect_list(x) FILTER (WHERE id > 1) RESPECT NULLS AS l FROM n GROUP BY g
SELECT g, regr_sxx(DISTINCT x, id) AS a, regr_syy(DISTINCT x, id) AS b FROM n GROUP BY g
SELECT g, count(DISTINCT 1) AS a, count(DISTINCT NULL) AS b, count(DISTINCT 1, 'a') AS c FROM n GROUP BY g
SELECT count(DISTINCT 1) AS a, count(DISTINCT 1) FILTER (WHERE x > 5) AS b FROM n WHERE x > 1
SELECT g, try_sum(x) AS s FROM n GROUP BY g HAVING try_sum(x) > (SELECT min(y) FROM m)
""".strip().splitlines()
RECURSIVE = "WITH RECURSIVE r(id, x) AS (SELECT id, x FROM n UNION ALL SELECT id, x + 1 FROM r WHERE x < 4)"
RECOMPUTED = {
    "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 4) SELECT id, i FROM n JOIN r ON x = i":
        "OPERATOR_UNSUPPORTED",
    f"{RECURSIVE} SELECT id, x FROM r": "OPERATOR_UNSUPPORTED",
    "SELECT window.start AS w, count(*) AS c FROM n GROUP BY window(tz, '10 minutes')": "EXPRESSION_UNSUPPORTED",
    "SELECT n.id, r.id AS i FROM n JOIN range(2000) r ON n.x = r.id": "OPERATOR_UNSUPPORTED",
    "SELECT id, CAST(aes_decrypt(unhex('83F16B2AA704794132802D248E6BFD4E380078182D1544813898AC97E709B28A94'),"
    " concat('000011112222333', CAST(id % 1 + 3 AS STRING))) AS STRING) AS t FROM n": "EXPRESSION_UNSUPPORTED",
}  # fmt: skip
REFUSED = {
    "SELECT id FROM n TABLESAMPLE (50 PERCENT)": "QUERY_NONDETERMINISTIC",
    "SELECT id FROM n TABLESAMPLE (50 PERCENT) REPEATABLE (1)": "QUERY_NONDETERMINISTIC",
    f"{RECURSIVE} SELECT id, x FROM r LIMIT 5": "QUERY_NONDETERMINISTIC",
    "SELECT n.id, m.y FROM n JOIN m APPROX NEAREST 1 BY DISTANCE abs(n.x - m.y)": "QUERY_NONDETERMINISTIC",
    "SELECT n.id, m.y FROM n INNER JOIN m EXACT NEAREST 2 BY DISTANCE abs(n.x - m.y)": "QUERY_NONDETERMINISTIC",
    "SELECT n.id, m.y FROM n LEFT JOIN m EXACT NEAREST BY SIMILARITY n.x - m.y": "QUERY_NONDETERMINISTIC",
    "SELECT id FROM n WHERE x > ?": "QUERY_INVALID",
    "SELECT id FROM n WHERE x > :least": "QUERY_INVALID",
}


@pytest.fixture(scope="module")
def numbers(warehouse: sw.Engine) -> sw.Table:
    table = warehouse.create_table(
        "n", "id INT, g STRING, x INT, d DOUBLE, tz TIMESTAMP_NTZ, mp MAP<STRING, INT>", key=["id"]
    )
    other = warehouse.create_table("m", "k STRING, y INT", key=["y"])
    table.insert([row(n) for n in range(12)])
    other.insert([("a", 1), ("b", 2), ("c", 3)])
    return table


def row(n: int) -> tuple[object, ...]:
    return n, "abc"[n % 3], None if n % 4 == 0 else n % 5, n % 4 / 2, dt.datetime(2024, 1, 1, 0, n), {"a": n % 2}


@pytest.mark.parametrize(
    ("query", "verdict", "code"),
    [(q, "incremental", "") for q in FOLLOWED]
    + [(q, "recomputed", code) for q, code in RECOMPUTED.items()]
    + [(q, "refused", code) for q, code in REFUSED.items()],
)
@pytest.mark.usefixtures("numbers")
def test_the_verdict(warehouse: sw.Engine, query: str, verdict: str, code: str) -> None:
    found = warehouse.check(query)
    assert found.verdict == verdict, str(found)
    if verdict == "refused":
        assert found.codes == (code,)
    else:
        assert [o.code for o in found.recomputed] == [code] * bool(code)


def test_the_proof(warehouse: sw.Engine, numbers: sw.Table) -> None:
    views = {q: warehouse.create_view(fresh(), q, strategy="incremental") for q in (*FOLLOWED, *RECOMPUTED)}
    numbers.delete_keys([(1,), (2,), (5,)])
    numbers.upsert([row(n) for n in (20, 21)] + [(6, "b", 4, 0.5, None, None)])
    warehouse.table("m").delete_keys([(3,)])
    warehouse.table("m").insert([("a", 0), ("c", 9)])
    for query, view in views.items():
        assert view.refresh().mode == ("recompute" if query in RECOMPUTED else "incremental"), query
        assert view.verify(), f"{query}\n{view.verify()}"

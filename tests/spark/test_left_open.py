"""Queries that are recomputed as they were written: refused where their answer is open, proved where it is not."""

from __future__ import annotations

import pytest

import slackwater as sw
from slackwater.algebra.nodes import Opaque
from tests.spark.settling import fresh

ZIPPED = "arrays_zip(a, array(1)) AS z"
"""What no algebra follows yet."""

OPEN = f"""
SELECT id, {ZIPPED} FROM n ORDER BY g LIMIT 3
SELECT id, {ZIPPED} FROM n LIMIT 3
SELECT id, {ZIPPED} FROM n ORDER BY g OFFSET 3
SELECT {ZIPPED} FROM n ORDER BY d, g LIMIT 3
SELECT d, {ZIPPED} FROM n ORDER BY d, a LIMIT 3
SELECT c, {ZIPPED} FROM n ORDER BY ALL LIMIT 3
SELECT id, {ZIPPED} FROM (SELECT id, a FROM n ORDER BY g LIMIT 3)
SELECT id, {ZIPPED} FROM n WHERE id IN (SELECT id FROM n ORDER BY g LIMIT 2)
SELECT id, {ZIPPED}, row_number() OVER (ORDER BY g) AS r FROM n
SELECT id, {ZIPPED}, ntile(2) OVER (ORDER BY g) AS r FROM n
SELECT id, {ZIPPED}, lag(x) OVER (ORDER BY g) AS r FROM n
SELECT id, {ZIPPED}, lead(x) OVER (ORDER BY g) AS r FROM n
SELECT id, {ZIPPED}, first_value(x) OVER (PARTITION BY g) AS r FROM n
SELECT id, {ZIPPED}, last_value(x) OVER (ORDER BY g) AS r FROM n
SELECT id, {ZIPPED}, nth_value(x, 2) OVER (ORDER BY g) AS r FROM n
SELECT id, {ZIPPED}, sum(x) OVER (ORDER BY g ROWS 1 PRECEDING) AS r FROM n
SELECT g, arrays_zip(collect_list(x), array(1)) AS z FROM n GROUP BY g
SELECT g, arrays_zip(collect_set(x), array(1)) AS z FROM n GROUP BY g
SELECT g, arrays_zip(sort_array(collect_list(d)), array(1)) AS z FROM n GROUP BY g
SELECT g, arrays_zip(array(max_by(x, id)), array(1)) AS z FROM n GROUP BY g
SELECT g, max_by(x, c) AS z FROM n GROUP BY g
SELECT g, arrays_zip(array(listagg(s, ',') WITHIN GROUP (ORDER BY id)), array(1)) AS z FROM n GROUP BY g
SELECT c, arrays_zip(array(count(*)), array(1)) AS z FROM n GROUP BY c
SELECT g, arrays_zip(array(max(c)), array(1)) AS z FROM n GROUP BY g
SELECT DISTINCT c, arrays_zip(array(g), array(1)) AS z FROM n
""".strip().splitlines()
SETTLED = f"""
SELECT id, {ZIPPED} FROM n ORDER BY g
SELECT id, {ZIPPED} FROM n ORDER BY id, a LIMIT 3
SELECT a, {ZIPPED} FROM n ORDER BY a DESC LIMIT 3 OFFSET 1
SELECT id, size(arrays_zip(a, array(1))) AS z FROM n ORDER BY id, z LIMIT 3
SELECT id, {ZIPPED} FROM n ORDER BY ALL LIMIT 3
SELECT arrays_zip(array(max(x)), array(1)) AS z FROM n LIMIT 1
SELECT id, {ZIPPED}, rank() OVER (ORDER BY g) AS r, dense_rank() OVER (ORDER BY c) AS q FROM n
SELECT id, {ZIPPED}, sum(x) OVER (PARTITION BY g) AS r, sum(x) OVER (ORDER BY g) AS q FROM n
SELECT g, arrays_zip(sort_array(collect_list(x)), array(1)) AS z, size(collect_set(x)) AS k FROM n GROUP BY g
SELECT g, arrays_zip(array(listagg(s, ',') WITHIN GROUP (ORDER BY s DESC)), array(1)) AS z FROM n GROUP BY g
SELECT c, {ZIPPED} FROM n
SELECT id, sum(x) OVER (ORDER BY g ROWS 1 PRECEDING) AS r FROM n WHERE id <> id
""".strip().splitlines()


@pytest.fixture(scope="module")
def numbers(warehouse: sw.Engine) -> sw.Table:
    table = warehouse.create_table(
        "n", "id INT, g STRING, x INT, a ARRAY<INT>, s STRING, c STRING COLLATE UTF8_LCASE, d DOUBLE", key=["id"]
    )
    table.insert([row(n) for n in range(12)])
    return table


def row(n: int) -> tuple[object, ...]:
    return n, "abc"[n % 3], None if n % 4 == 0 else n % 5, [n % 2, n], str(n), ("Ann", "ann", "bob")[n % 3], n % 3 / 2


@pytest.mark.parametrize("query", OPEN)
@pytest.mark.usefixtures("numbers")
def test_what_is_left_open_is_refused(warehouse: sw.Engine, query: str) -> None:
    refusal = warehouse.check(query).refusal
    assert refusal is not None
    assert refusal.code == "QUERY_NONDETERMINISTIC"
    assert "it is recomputed because of" in refusal.message
    assert refusal.advice.rsplit(" ", 1)[-1] in ("ArraysZip", "collation"), refusal.advice


def test_what_has_one_answer_is_recomputed(warehouse: sw.Engine, numbers: sw.Table) -> None:
    views = {query: warehouse.create_view(fresh(), query) for query in SETTLED}
    assert all(isinstance(view.plan, Opaque) for view in views.values())
    numbers.delete_keys([(1,), (2,)])
    numbers.upsert([(*row(n)[:4], "new", "ANN", 0.5) for n in (3, 20)])
    for query, view in views.items():
        assert view.refresh().mode == "recompute", query
        assert view.verify(), f"{query}\n{view.verify()}"

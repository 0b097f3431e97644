"""Floating-point results, which Spark computes in any order: what was given out is kept, and taken back as it is."""

from __future__ import annotations

import pytest

import slackwater as sw
from slackwater.delta.reasons import Way
from slackwater.execution import verifying
from tests.spark.settling import fresh
from tests.spark.tides import check_rounds

GROUPS = {
    "covariance": "SELECT p, covar_pop(v, o) AS x, covar_samp(d, o) AS y, regr_sxy(v, d) AS z FROM {tides} GROUP BY p",
    "moments": "SELECT p, skewness(v) AS s, kurtosis(v) AS k, var_pop(d) AS x, stddev(d) AS y FROM {tides} GROUP BY p",
    "middle": "SELECT p, median(d) AS m, percentile(d, 0.25) AS q, collect_list(d) AS l FROM {tides} GROUP BY p",
    "most frequent": "SELECT o, mode() WITHIN GROUP (ORDER BY d) AS m, max_by(v, d) AS b FROM {tides} GROUP BY o",
    "beside a distinct": "SELECT p, count(DISTINCT v) AS n, sum(d) AS s, min(d) AS m FROM {tides} GROUP BY p",
    "of a join": """SELECT l.n, covar_pop(t.v, t.o) AS c, sum(t.d) AS s FROM {tides} t JOIN {labels} l ON t.p = l.k
        GROUP BY l.n""",
}
WINDOWS = {
    "running sum": "SELECT id, sum(d) OVER (PARTITION BY p ORDER BY o, id) AS s FROM {tides}",
    "mean of the partition": """SELECT id, d - avg(d) OVER (PARTITION BY p) AS x, max(d) OVER (PARTITION BY p) AS m
        FROM {tides}""",
    "two orders": """SELECT id, row_number() OVER (PARTITION BY p ORDER BY v, id, d) AS n,
        stddev(v) OVER (PARTITION BY p) AS s FROM {tides}""",
    "under a filter": """SELECT id, s FROM (SELECT id, sum(d) OVER (PARTITION BY p ORDER BY id, o, v) AS s FROM {tides})
        WHERE s > 0.5""",
}  # fmt: skip
ABOVE = {
    "only some rows": """SELECT p, count(DISTINCT v) FILTER (WHERE o > 1) AS n, avg(d) AS a FROM {tides} GROUP BY p
        HAVING count(*) > 1""",
    "largest of the largest": "SELECT max(x) AS y FROM (SELECT p, max(d) AS x FROM {tides} GROUP BY p)",
    "how many groups": "SELECT count(*) AS n FROM (SELECT p FROM {tides} GROUP BY p HAVING sum(d) > 0.6)",
    "turned": "SELECT * FROM (SELECT o, p, d FROM {tides}) PIVOT (sum(d) FOR p IN ('a', 'b', 'odd'))",
    "joined": """SELECT l.n, x.s FROM {labels} l JOIN (SELECT p, sum(d) AS s FROM {tides} GROUP BY p) x ON l.k = x.p""",
}


def test_groups_are_redone(warehouse: sw.Engine) -> None:
    check_rounds(warehouse, {name: GROUPS[name] for name in ("covariance", "beside a distinct")})


def test_partitions_are_redone(warehouse: sw.Engine) -> None:
    check_rounds(warehouse, {name: WINDOWS[name] for name in ("running sum", "under a filter")})


@pytest.mark.slow
def test_more_groups_and_partitions_are_redone(warehouse: sw.Engine) -> None:
    check_rounds(warehouse, GROUPS | WINDOWS)


@pytest.mark.slow
def test_what_reads_them_is_computed_again_from_groups_that_are_kept(warehouse: sw.Engine) -> None:
    check_rounds(warehouse, ABOVE)


def test_what_is_told_of_them(warehouse: sw.Engine) -> None:
    names = {name: fresh(f"of_{name}") for name in ("tides", "labels")}
    warehouse.create_table(names["tides"], "id INT, p STRING, o INT, v INT, d DOUBLE, m DECIMAL(9,2)")
    warehouse.create_table(names["labels"], "k STRING, n INT")
    for name, sql in (GROUPS | WINDOWS).items():
        found = warehouse.check(sql.format(**names))
        assert found.incremental, f"{name}: {found}"
    for name, sql in ABOVE.items():
        found = warehouse.check(sql.format(**names))
        assert found.verdict == "partly incremental", f"{name}: {found}"
        assert any(o.way is Way.MERGE for o in found.operators)


def test_any_number_of_sums_that_differ_by_rounding_are_equal(
    engine: sw.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that differ are looked at in part only; those that differ by rounding are no differences, however many."""
    monkeypatch.setattr(verifying, "MOST_DIFFERENCES", 5)
    monkeypatch.setattr(verifying, "recompute", lambda view: view.engine.sessions.get("proof", view.settings).sql(
        "SELECT CAST(id AS INT) AS g, id * 0.1D + 1e-13D AS s, CAST(id % 3 AS INT) AS n FROM range(100)"))  # fmt: skip
    table = engine.create_table("t", "g INT, s DOUBLE, n INT")
    table.insert([(n, n * 0.1, n % 3) for n in range(100)])
    view = engine.create_view("v", "SELECT g, s, n FROM t")
    assert view.verify()
    table.insert([(7, 0.7, 1)])
    view.refresh()
    check = view.verify()
    assert not check
    assert [(row[0], row[2]) for row in check.unexpected] == [(7, 1)]

"""Scalar subqueries that stay expressions, and orderings inside subqueries."""

from __future__ import annotations

import pytest

import slackwater as sw
from slackwater.algebra.nodes import TopK
from slackwater.algebra.scalars import ScalarFilter
from tests.spark.settling import fresh, settle
from tests.spark.tides import BASE, SCHEMA, check_rounds, row

SCALARS = {
    "above the mean": "SELECT id, v FROM {tides} WHERE v > (SELECT avg(v) FROM {tides})",
    "two of them": """SELECT id FROM {tides} WHERE o < (SELECT max(n) FROM {labels}) AND
        v >= (SELECT min(n) FROM {labels} WHERE k <> 'a')""",
    "in the output": """SELECT id, v - (SELECT max(n) FROM {labels}) AS x, (SELECT count(*) FROM {labels}) AS y
        FROM {tides}""",
    "having": """SELECT p, sum(m) AS s FROM {tides} GROUP BY p HAVING sum(m) > (SELECT sum(m) * 0.2 FROM {tides})""",
    "the largest groups": """WITH sums AS (SELECT p, sum(v) AS s FROM {tides} GROUP BY p)
        SELECT p, s FROM sums WHERE s = (SELECT max(s) FROM sums)""",
    "exists": "SELECT id FROM {tides} WHERE EXISTS (SELECT 1 FROM {labels} WHERE n > 4)",
    "one row or none": "SELECT id, (SELECT n FROM {labels} WHERE k = 'late') AS x FROM {tides}",
    "the first": "SELECT id FROM {tides} WHERE p = (SELECT k FROM {labels} ORDER BY n DESC LIMIT 1)",
    "a group with having": """SELECT id, (SELECT max(n) FROM {labels} HAVING count(*) > 5) AS x FROM {tides}""",
    "inside a function": """SELECT p, sum(v * (SELECT max(n) FROM {labels})) AS x, (SELECT min(n) FROM {labels}) AS y
        FROM {tides} GROUP BY p""",
    "in a join": """SELECT t.id, l.n FROM {tides} t JOIN {labels} l ON t.p = l.k
        AND t.v + l.n > (SELECT avg(n) FROM {labels})""",
    "twice": """WITH x AS (SELECT max(n) AS most FROM {labels}) SELECT o, most, count(*) AS c FROM (SELECT o,
        (SELECT most FROM x) AS most FROM {tides}) GROUP BY o, most HAVING count(*) > (SELECT most FROM x) - most""",
    "distincts": "SELECT id FROM {tides} WHERE id > (SELECT count(DISTINCT v) + count(DISTINCT o) FROM {tides})",
    "looked up": "SELECT id, (SELECT l.n FROM {labels} l WHERE l.k = t.p AND l.n <> 5) AS x FROM {tides} t",
    "in an outer join": """SELECT t.id, l.n FROM {tides} t LEFT JOIN {labels} l ON t.p = l.k
        AND t.v > (SELECT min(n) FROM {labels})""",
    "in exists": """SELECT id FROM {tides} t WHERE NOT EXISTS (SELECT 1 FROM {labels} l WHERE l.k = t.p
        AND l.n < t.v + (SELECT min(n) FROM {labels}))""",
    "floating": "SELECT id FROM {tides} WHERE d >= (SELECT avg(d) FROM {tides} WHERE p <> 'odd')",
}  # fmt: skip
QUICK = ("above the mean", "one row or none", "looked up", "in an outer join")
ORDERED = {
    "joined": """SELECT t.id, x.n FROM {tides} t JOIN (SELECT k, n FROM {labels} ORDER BY n DESC LIMIT 2) x
        ON t.p = x.k""",
    "aggregated": "SELECT p, count(*) AS c, sum(v) AS s FROM (SELECT * FROM {tides} ORDER BY v LIMIT 9) GROUP BY p",
    "with an offset": "SELECT o, max(v) AS x FROM (SELECT * FROM {tides} ORDER BY o LIMIT 8 OFFSET 3) GROUP BY o",
    "twice": """SELECT id FROM (SELECT id, p, v FROM (SELECT * FROM {tides} ORDER BY o, id LIMIT 12) WHERE v > 0
        ORDER BY v DESC LIMIT 4)""",
    "of groups, joined": """SELECT t.id, x.s FROM {tides} t JOIN (SELECT p, sum(v) AS s FROM {tides} GROUP BY p
        ORDER BY s DESC LIMIT 2) x ON t.p <=> x.p""",
    "under a window": """SELECT id, row_number() OVER (PARTITION BY p ORDER BY v) AS n FROM
        (SELECT * FROM {tides} ORDER BY id DESC LIMIT 10)""",
}


def test_scalar_subqueries_follow_every_change(warehouse: sw.Engine) -> None:
    check_rounds(warehouse, {name: SCALARS[name] for name in QUICK})


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3))
def test_more_scalar_subqueries_follow_every_change(warehouse: sw.Engine, part: int) -> None:
    names = [name for name in SCALARS if name not in QUICK]
    check_rounds(warehouse, {name: SCALARS[name] for name in names[part::3]})


def test_orderings_inside_subqueries_follow_every_change(warehouse: sw.Engine) -> None:
    check_rounds(warehouse, {name: ORDERED[name] for name in ("joined", "with an offset")})


@pytest.mark.slow
def test_more_orderings_inside_subqueries_follow_every_change(warehouse: sw.Engine) -> None:
    names = ("aggregated", "twice", "of groups, joined", "under a window")
    check_rounds(warehouse, {name: ORDERED[name] for name in names})


def test_only_rows_whose_verdict_changes_are_written(engine: sw.Engine) -> None:
    tides = engine.create_table("t", SCHEMA)
    tides.insert([row(n, "a", 0, n) for n in range(40)])
    view = engine.create_view("v", "SELECT id, v FROM t WHERE v > (SELECT avg(v) FROM t)")
    assert any(isinstance(x, ScalarFilter) for x in view.plan.walk())
    tides.insert([row(99, "a", 0, 60)])  # the average moves from 19.5 to 20.49: row 20 leaves, row 99 comes
    report = view.refresh()
    assert (report.mode, report.rows_inserted, report.rows_deleted) == ("incremental", 1, 1)
    assert view.verify()


def test_a_subquery_that_gets_a_second_row_fails_as_in_spark(engine: sw.Engine) -> None:
    tides, labels = engine.create_table("t", SCHEMA), engine.create_table("l", "k STRING, n INT")
    tides.insert(BASE)
    labels.insert([("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5), ("f", 6)])
    view = engine.create_view("v", "SELECT id FROM t WHERE o = (SELECT n FROM l WHERE k = 'a')")
    before = sorted(r.id for r in view.result().collect())
    labels.insert([("a", 2)])
    with pytest.raises(sw.SlackwaterError, match="more than one row") as caught:
        view.refresh()
    assert caught.value.code == "SPARK_FAILED"
    assert sorted(r.id for r in view.result().collect()) == before
    labels.delete([("a", 1)])
    view.refresh()
    assert view.verify()


def test_a_lookup_that_finds_two_rows_fails_until_one_of_them_goes(warehouse: sw.Engine) -> None:
    """Only where some row looks for them."""
    rows, names = warehouse.create_table(fresh("t"), "i INT"), warehouse.create_table(fresh("k"), "id INT, name STRING")
    rows.insert([(1,), (2,), (None,)])
    names.insert([(1, "one"), (7, "seven"), (7, "sept"), (None, "none")])
    view = warehouse.create_view(
        fresh(), f"SELECT i, (SELECT name FROM {names.name} WHERE id = i) AS name FROM {rows.name}", strict=True
    )
    before = {(1, "one"), (2, None), (None, None)}
    assert {tuple(r) for r in view.result().collect()} == before
    rows.insert([(7,)])
    with pytest.raises(sw.SlackwaterError, match="more than one row"):
        view.refresh()
    assert {tuple(r) for r in view.result().collect()} == before
    names.delete([(7, "sept")])
    view.refresh()
    assert {tuple(r) for r in view.result().collect()} == before | {(7, "seven")}
    assert view.verify()


def test_the_state_of_an_ordering_is_used(engine: sw.Engine) -> None:
    """A limit over a join, joined again: its kept rows are the old side of its delta."""
    tides, labels = engine.create_table("t", SCHEMA), engine.create_table("l", "k STRING, n INT")
    tides.insert(BASE)
    labels.insert([(p, n) for n, p in enumerate(["a", "b", "c", "odd"])])
    view = engine.create_view(
        "v",
        """SELECT l.n, count(*) AS c FROM l JOIN (SELECT t.id, t.p FROM t JOIN l ON t.p = l.k ORDER BY t.v DESC LIMIT 9)
        x ON l.k = x.p GROUP BY l.n""",
    )
    assert any(isinstance(x, TopK) for x in view.plan.walk())
    for change in ([row(90, "a", 0, 50)], [row(91, "b", 0, 51), row(92, "b", 0, 52)]):
        tides.insert(change)
        assert view.refresh().mode == "incremental"
        assert view.verify(), str(view.verify())
    tides.delete([row(91, "b", 0, 51)])
    labels.insert([("new", 7)])
    assert view.refresh().mode == "incremental"
    assert view.verify(), str(view.verify())


NESTED = {
    "(SELECT i FROM {n} ORDER BY i LIMIT 10) OFFSET 3": range(4, 11),
    "(SELECT i FROM {n} ORDER BY i LIMIT 10) LIMIT 5 OFFSET 3": range(4, 9),
    "(SELECT i FROM {n} ORDER BY i LIMIT 10 OFFSET 2) OFFSET 3": range(6, 13),
    "(SELECT i FROM {n} ORDER BY i LIMIT 10 OFFSET 2) LIMIT 20 OFFSET 8": range(11, 13),
    "(SELECT i FROM {n} ORDER BY i OFFSET 25) LIMIT 3": range(26, 29),
    "(SELECT i FROM {n} ORDER BY i LIMIT 3) OFFSET 4": range(0),
    "(SELECT i FROM {n} ORDER BY i LIMIT 10) ORDER BY i DESC LIMIT 2 OFFSET 1": range(8, 10),
}


@pytest.mark.slow
def test_limits_of_limits(warehouse: sw.Engine) -> None:
    """The rows are written out here: a LIMIT is verified by the plan that was read, which would share a misreading."""
    numbers = warehouse.create_table(fresh("n"), "i INT")
    numbers.insert([(i,) for i in range(2, 31)])
    views = {q: warehouse.create_view(fresh(), f"SELECT i FROM {q.format(n=numbers.name)}") for q in NESTED}
    numbers.insert([(1,)])
    for query, expected in NESTED.items():
        views[query].refresh()
        assert sorted(row.i for row in views[query].result().collect()) == list(expected), query
        assert views[query].verify()


def test_a_limit_that_was_misread_does_not_pass_for_right(warehouse: sw.Engine) -> None:
    """Ties are broken by the plan, but what ties leave alone is compared with the text."""
    table = warehouse.create_table(fresh("t"), "k INT, v INT")
    table.insert([(k, k // 2) for k in range(20)])
    view = warehouse.create_view(fresh(), f"SELECT k, v FROM {table.name} ORDER BY v LIMIT 5")
    assert view.verify()
    view.sql = f"SELECT k, v FROM {table.name} ORDER BY v LIMIT 6"
    assert view.verify().missing == ((2,),)
    view.sql = f"SELECT k, v FROM {table.name} ORDER BY v LIMIT 5 OFFSET 1"
    assert (view.verify().missing, view.verify().unexpected) == (((2,),), ((0,),))


def test_what_only_says_where_rows_go_is_passed_over(warehouse: sw.Engine) -> None:
    numbers = warehouse.create_table(fresh("n"), "i INT, k INT")
    numbers.insert([(i, i % 3) for i in range(9)])
    queries = (
        "SELECT /*+ REPARTITION(3) */ k, count(*) AS n FROM {n} GROUP BY k",
        "SELECT i, k FROM {n} DISTRIBUTE BY k SORT BY i",
        "SELECT /*+ REBALANCE */ i FROM {n} WHERE k > 0",
        "SELECT n.i, r.id FROM {n} n CROSS JOIN range(1, 4) r",
    )
    for query in queries:
        view = warehouse.create_view(fresh(), query.format(n=numbers.name), strict=True)
        numbers.insert([(20, 1)])
        view.refresh()
        assert view.verify(), query


@pytest.mark.slow
def test_a_cte_that_is_read_twice_is_kept_once(warehouse: sw.Engine) -> None:
    table = warehouse.create_table(fresh("t"), "g INT, k INT, v INT")
    table.insert([(n % 40, n % 7, n) for n in range(4000)])
    query = f"""
        WITH sums AS (SELECT g, k, sum(v) AS s, count(*) AS n FROM {table.name} WHERE v > 3 GROUP BY g, k)
        SELECT a.g, a.k, a.s, b.s AS other FROM sums a JOIN sums b ON a.g = b.g AND a.k = b.k + 1
        WHERE b.n > 2 AND a.n > 1"""
    view = warehouse.create_view(fresh(), query, strategy="incremental")
    assert len([state for state in view.states.values() if state.partial]) == 1
    for turn in range(3):
        table.insert([(turn, k, 1000 * turn + k) for k in range(7)])
        table.delete([(5 + turn, (45 + turn) % 7, 45 + turn)])
        settle(view)

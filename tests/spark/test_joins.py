"""Outer, semi, anti and existence joins, set operations and generators, through inserts, deletes and updates.

One history of changes is played once for all queries; each test then judges one query. After every round the view must
have been refreshed incrementally and equal DuckDB's answer (where it reads the query alike); at the end, a recompute.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from tests.fuzz.duck import difference

TABLES = {
    "l": {"k": "INT", "g": "STRING", "d": "DOUBLE", "n": "INT"},
    "r": {"k": "INT", "g": "STRING", "d": "DOUBLE", "m": "INT"},
    "z": {"w": "INT", "t": "STRING"},
}
NAN = math.nan
START: dict[str, list[tuple[Any, ...]]] = {
    "l": [(1, "a", 0.0, 1), (1, "a", 0.0, 1), (1, "b", -0.0, 2), (2, "b", NAN, 3), (2, None, 1.5, 4), (3, "c", None, 5),
          (None, "c", 1.5, 6), (None, None, None, None), (4, "d", 2.5, 7), (5, "e", 3.5, 8), (6, "e", 4.5, None)]
    + [(20 + i, "x", 20.0 + i, 20 + i) for i in range(6)],
    "r": [(1, "a", -0.0, 2), (2, "b", NAN, 1), (2, "b", NAN, 9), (3, None, 1.5, 4), (7, "q", 0.0, 5), (7, "q", 0.0, 5),
          (8, "q", None, 3), (4, "d", 2.5, None)]
    + [(30 + i, "y", 30.0 + i, 30 + i) for i in range(6)],
    "z": [(1, "one"), (2, "two"), (2, "zwei"), (5, None), (9, "nine"), (None, "none"), (30, "x"), (31, "x"), (32, "y")],
}  # fmt: skip
Change = dict[str, tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]]
HISTORY: dict[str, Change] = {
    # Key 9 comes on both sides at once; key 5 gets its first match, key 1 a second one; a NULL in r empties NOT IN.
    "both sides grow": {
        "l": ([(9, "n", 9.0, 1), (7, "q", 0.0, 3)], []),
        "r": ([(9, "n", 9.0, 5), (5, "e", 3.5, 2), (1, "a", 0.0, 7), (None, "a", None, 1)], []),
        "z": ([(4, "four")], []),
    },
    # Key 3 loses its only match, key 2 one of two, key 7 one copy of two; r's NULL goes again.
    "matches go": {
        "r": ([], [(3, None, 1.5, 4), (2, "b", NAN, 9), (7, "q", 0.0, 5), (None, "a", None, 1)]),
        "l": ([], [(1, "a", 0.0, 1)]),
    },
    # Keys move on both sides, a payload changes and nothing else, and one row is replaced by itself.
    "updates": {
        "l": ([(8, "d", 2.5, 7), (4, "e", NAN, 8)], [(4, "d", 2.5, 7), (5, "e", 3.5, 8)]),
        "r": ([(2, "b", NAN, 2), (1, "a", -0.0, 3), (8, "q", None, 3)], [(2, "b", NAN, 1), (1, "a", -0.0, 2),
              (8, "q", None, 3)]),
        "z": ([(3, "two")], [(2, "two")]),
    },
    "one side only": {"r": ([(20, "x", 20.0, 1), (6, None, 4.5, 7)], [(9, "n", 9.0, 5), (1, "a", 0.0, 7)])},
}  # fmt: skip

QUERIES = {
    "left": "SELECT l.k, l.n, r.m FROM l LEFT JOIN r ON l.k = r.k",
    "right": "SELECT l.n, r.k, r.m FROM l RIGHT JOIN r ON l.k = r.k",
    "full": "SELECT l.k, l.n, r.k AS rk, r.m FROM l FULL JOIN r ON l.k = r.k",
    "left mixed": "SELECT l.k, l.n, r.m FROM l LEFT JOIN r ON l.k = r.k AND l.n < r.m",
    "full mixed": "SELECT l.k, l.n, r.k AS rk, r.m FROM l FULL JOIN r ON l.k = r.k AND l.n < r.m AND l.g <> 'b'",
    "left non-equi": "SELECT l.k, l.n, r.m FROM l LEFT JOIN r ON l.n < r.m AND l.n > 3",
    "right non-equi": "SELECT l.n, r.k, r.m FROM l RIGHT JOIN r ON l.n >= r.m",
    "full non-equi": "SELECT l.n, r.m FROM l FULL JOIN r ON l.n > r.m * 3",
    "full of doubles": "SELECT l.d, r.d AS rd, r.k FROM l FULL JOIN r ON l.d = r.d",
    "left null-safe": "SELECT l.k, l.g, r.m FROM l LEFT JOIN r ON l.k IS NOT DISTINCT FROM r.k AND l.g = r.g",
    "left one-sided": "SELECT l.k, l.n, r.m FROM l LEFT JOIN r ON l.k = r.k AND l.n > 2",
    "left always": "SELECT l.k, b.m FROM l LEFT JOIN (SELECT m FROM r WHERE m > 8) b ON 1 = 1",
    "in": "SELECT k, n FROM l WHERE k IN (SELECT k FROM r)",
    "not exists": "SELECT k, n FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = l.k)",
    "not in": "SELECT k, n FROM l WHERE k NOT IN (SELECT k FROM r)",
    "not in pairs": "SELECT k, g FROM l WHERE (k, g) NOT IN (SELECT k, g FROM r WHERE m > 2)",
    "exists or": "SELECT k, n FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.k = l.k AND r.m > l.n) OR n = 6",
    "in as a column": "SELECT k, n, n IN (SELECT m FROM r WHERE m IS NOT NULL) AS there FROM l WHERE n IS NOT NULL",
    "semi mixed": "SELECT k, n FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.g = l.g AND r.m <> l.n)",
    "anti non-equi": "SELECT k, n FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.m > l.n AND r.k <> l.k)",
    "anti of doubles": "SELECT d, n FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.d = l.d)",
    "two conditions": "SELECT k FROM l WHERE k IN (SELECT k FROM r) AND n NOT IN (SELECT w FROM z WHERE w IS NOT NULL)",
    "self": "SELECT a.k, a.n FROM l a WHERE EXISTS (SELECT 1 FROM l b WHERE b.k = a.k AND b.n <> a.n)",
    "chain": "SELECT l.k, r.m, z.t FROM l LEFT JOIN r ON l.k = r.k LEFT JOIN z ON r.m = z.w",
    "chain of fulls": """SELECT coalesce(l.k, r.k) AS k, l.n, r.m, z.t
FROM l FULL JOIN r ON l.k = r.k FULL JOIN z ON coalesce(l.k, r.k) = z.w""",
    "inner above outer": "SELECT l.k, r.m, z.t FROM l LEFT JOIN r ON l.k = r.k JOIN z ON l.n = z.w",
    "outer of groups": """SELECT l.k, l.n, q.c, q.s FROM l
LEFT JOIN (SELECT k, count(*) AS c, sum(m) AS s FROM r GROUP BY k) q ON l.k = q.k""",
    "groups of outer": """SELECT c, count(*) AS rows FROM
(SELECT l.n, count(r.k) AS c, max(r.m) AS x FROM l LEFT JOIN r ON l.k = r.k GROUP BY l.n) GROUP BY c""",
    "intersect": "SELECT k, g FROM l INTERSECT SELECT k, g FROM r",
    "except": "SELECT k, g FROM l EXCEPT SELECT k, g FROM r",
    "intersect all": "SELECT k, g FROM l INTERSECT ALL SELECT k, g FROM r",
    "except all": "SELECT k, g FROM l EXCEPT ALL SELECT k, g FROM r",
    "except of doubles": "SELECT d FROM l EXCEPT SELECT d FROM r",
    "union": "SELECT k, g FROM l UNION SELECT k, g FROM r",
    "values": """SELECT l.n, v.name
FROM l LEFT JOIN (VALUES (1, 'one'), (2, 'it''s'), (NULL, 'x')) AS v(k, name) ON l.k = v.k""",
    "constant row": "SELECT k, g FROM l UNION ALL SELECT -1, 'total'",
}
"""Queries that Spark and DuckDB read alike."""

SPARK_ONLY = {
    "lateral": "SELECT l.k, q.c FROM l JOIN LATERAL (SELECT count(*) AS c FROM r WHERE r.k = l.k) q",
    "explode": "SELECT k, x FROM l LATERAL VIEW explode(array(n, k)) AS x",
    "posexplode outer": "SELECT k, p, x FROM l LATERAL VIEW OUTER posexplode(sequence(1, n % 3)) AS p, x",
    "inline": """SELECT n, a, b FROM l
LATERAL VIEW inline(array(named_struct('p', k, 'q', g), named_struct('p', n, 'q', 'z'))) AS a, b""",
    "explode a map": """SELECT y, count(*) AS c FROM l LATERAL VIEW explode(map(g, k, 'z', n)) AS y, v
WHERE g IS NOT NULL GROUP BY y""",
    "stack": "SELECT k, x FROM l LATERAL VIEW stack(2, k, n) AS x",
    "not in as a column": "SELECT k, n NOT IN (SELECT m FROM r) AS absent FROM l",
}

FEW = ("right", "full", "full non-equi", "full of doubles", "not in", "exists or", "chain of fulls", "groups of outer",
       "except all", "posexplode outer")  # fmt: skip
"""The queries of the default run; the others are slow together."""


@dataclass
class Outcome:
    """What one view did: how often it was incremental, and what went wrong."""

    refreshes: int = 0
    problems: list[str] = field(default_factory=list)


class Twin:
    """DuckDB with the same tables."""

    def __init__(self) -> None:
        self.database = duckdb.connect()
        for name, columns in TABLES.items():
            types = ", ".join(f"{c} {'VARCHAR' if t == 'STRING' else t}" for c, t in columns.items())
            self.database.execute(f"CREATE TABLE {name} ({types})")

    def load(self, rows: dict[str, list[tuple[Any, ...]]]) -> None:
        """Take the rows over; to DuckDB the two zeros are two groups, to Spark one."""
        for name, found in rows.items():
            self.database.execute(f"DELETE FROM {name}")
            plain = [tuple(0.0 if isinstance(v, float) and v == 0 else v for v in row) for row in found]
            self.database.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(TABLES[name]))})", plain)


def _key(row: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(map(repr, row))


def _apply(rows: list[tuple[Any, ...]], added: list[tuple[Any, ...]], gone: list[tuple[Any, ...]]) -> None:
    for row in gone:
        at = next(i for i, have in enumerate(rows) if _key(have) == _key(row))
        del rows[at]
    rows.extend(added)


def played(engine: sw.Engine, queries: dict[str, str]) -> dict[str, Outcome]:
    """Every query through the whole history."""
    now = {name: list(rows) for name, rows in START.items()}
    for name, columns in TABLES.items():
        engine.create_table(name, ", ".join(f"{c} {t}" for c, t in columns.items())).insert(now[name])
    found = {name: Outcome() for name in queries}
    views = {name: engine.create_view(name, sql) for name, sql in queries.items()}
    twin = Twin()
    for title, changes in HISTORY.items():
        for name, (added, gone) in changes.items():
            _apply(now[name], added, gone)
            feed = [(*row, weight) for rows, weight in ((added, 1), (gone, -1)) for row in rows]
            engine.table(name).apply([dict(zip([*TABLES[name], "_weight"], row, strict=True)) for row in feed])
        twin.load(now)
        for name, view in views.items():
            report = view.refresh()
            if report.mode != ("incremental" if set(view.tables) & set(changes) else "none"):
                found[name].problems.append(f"{title}: {report.mode}, {report.reason}")
            found[name].refreshes += report.mode == "incremental"
            if name not in SPARK_ONLY:
                found[name].problems += [f"{title}: {text}" for text in _against_duckdb(view, queries[name], twin)]
            if name in SPARK_ONLY or title == list(HISTORY)[-1]:
                found[name].problems += [f"{title}: {check}" for check in (view.verify(),) if not check]
    return found


def _against_duckdb(view: sw.View, sql: str, twin: Twin) -> list[str]:
    ours = [tuple(row) for row in view.result().collect()]
    kinds = ["float" if f.dataType.typeName() == "double" else "exact" for f in view.result().schema]
    wrong = difference(ours, twin.database.execute(sql).fetchall(), kinds)
    return [] if wrong == ([], []) else [f"only ours {wrong[0]}, only DuckDB's {wrong[1]}"]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> dict[str, Outcome]:
    """What the queries of the default run did."""
    with sw.Engine(tmp_path_factory.mktemp("few") / "wh", spark=spark, save_states=False) as engine:
        return played(engine, {name: sql for name, sql in (QUERIES | SPARK_ONLY).items() if name in FEW})


@pytest.fixture(scope="module")
def more_outcomes(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> dict[str, Outcome]:
    """What the other queries did."""
    with sw.Engine(tmp_path_factory.mktemp("more") / "wh", spark=spark, save_states=False) as engine:
        return played(engine, {name: sql for name, sql in (QUERIES | SPARK_ONLY).items() if name not in FEW})


def _judge(outcome: Outcome) -> None:
    assert not outcome.problems, "\n".join(outcome.problems)
    assert outcome.refreshes >= len(HISTORY) - 1


@pytest.mark.parametrize("name", FEW)
def test_a_query_through_the_history(outcomes: dict[str, Outcome], name: str) -> None:
    _judge(outcomes[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in QUERIES | SPARK_ONLY if name not in FEW])
def test_more_queries_through_the_history(more_outcomes: dict[str, Outcome], name: str) -> None:
    _judge(more_outcomes[name])


def test_generators_over_nested_columns(engine: sw.Engine) -> None:
    table = engine.create_table(
        "nested", "id INT, xs ARRAY<INT>, mp MAP<STRING, INT>, st ARRAY<STRUCT<p: INT, q: STRING>>", key=["id"]
    )
    rows = [(n, [n, n + 1, None], {"a": n}, [(n, "x")]) for n in range(20)]
    table.insert([*rows, (90, None, None, None), (91, [], {}, []), (92, [7, 7], {"a": 1, "b": None}, [(1, None)])])
    views = [
        engine.create_view("xs", "SELECT id, x FROM nested LATERAL VIEW explode(xs) AS x"),
        engine.create_view("mp", """SELECT k, count(*) AS n, sum(v) AS s
FROM nested LATERAL VIEW OUTER explode(mp) AS k, v GROUP BY k"""),
        engine.create_view("st", "SELECT id, p, q FROM nested LATERAL VIEW inline(st) AS p, q"),
    ]  # fmt: skip
    table.upsert([(1, [5], {"c": 5}, []), (90, [1], {"a": 3}, [(4, "y")])])
    table.delete_keys([(92,), (3,)])
    for view in views:
        report = view.refresh()
        assert report.mode == "incremental", report.reason
        assert view.verify(), str(view.verify())
    assert sorted(tuple(r) for r in views[0].result().where("id IN (1, 90, 92)").collect()) == [(1, 5), (90, 1)]

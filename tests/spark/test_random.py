"""Random queries over random tables and changes: the view against Spark's recompute, and both against DuckDB."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.execution import compaction

pytestmark = pytest.mark.fuzz

TABLES: dict[str, dict[str, str]] = {
    "r": {"k": "INT", "g": "STRING", "i": "INT", "m": "DECIMAL(9,2)", "d": "DOUBLE"},
    "s": {"k": "INT", "g": "STRING", "j": "INT", "d": "DOUBLE"},
    "t": {"g": "STRING", "n": "INT", "m": "DECIMAL(9,2)"},
}
VALUES: dict[str, list[Any]] = {
    "INT": [None, None, -1, 0, 1, 1, 2, 3, 7],
    "STRING": [None, "", "a", "a", "b", "it's", "ü"],
    "DECIMAL(9,2)": [None, *map(Decimal, ("-1.50", "0.00", "0.01", "2.25", "2.25", "9999999.99"))],
    "DOUBLE": [None, -0.0, 0.0, 0.5, 0.1, 1.7, math.nan],
}
INT, TEXT, MONEY, REAL = VALUES


# --- queries ---------------------------------------------------------------------------------------------------------


@dataclass
class Query:
    """A query and the kind of each output column: exact, float, or coarse (an average of decimals, to six digits)."""

    sql: str
    kinds: list[str]
    tables: set[str] = field(default_factory=set)


@dataclass
class Scope:
    """What a FROM clause offers: columns by type, as SQL text."""

    source: str
    columns: dict[str, list[str]]
    tables: set[str]

    def all(self) -> list[tuple[str, str]]:
        return [(dtype, c) for dtype, columns in self.columns.items() for c in columns]


class Generator:
    """Draws queries that mean the same in Spark and DuckDB."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def query(self) -> Query:
        kind = self.random.choice(["rows", "rows", "groups", "groups", "groups", "groups", "union", "distinct", "top"])
        if kind == "union":
            return self._union()
        found = self._groups(self._scope()) if kind == "groups" or (kind == "top" and self._chance(0.5)) else None
        if found is None:
            found = self._rows(self._scope(), distinct=kind == "distinct")
        if kind == "distinct" and self._chance(0.5):
            return self._set_operation(found)
        return self._top(found) if kind == "top" else found

    def _chance(self, share: float) -> bool:
        return self.random.random() < share

    # FROM

    def _scope(self, depth: int = 1) -> Scope:
        parts = self.random.choice([1, 1, 2, 2, 2, 3])
        scope = self._part("x0", depth)
        for at in range(1, parts):
            other = self._part(f"x{at}", depth)
            scope = self._joined(scope, other)
        return scope

    def _part(self, alias: str, depth: int) -> Scope:
        if depth and self._chance(0.2):
            return self._derived(alias)
        table = self.random.choice(list(TABLES))
        columns: dict[str, list[str]] = {dtype: [] for dtype in VALUES}
        for name, dtype in TABLES[table].items():
            columns[dtype].append(f"{alias}.{name}")
        return Scope(f"{table} {alias}", columns, {table})

    def _derived(self, alias: str) -> Scope:
        """A grouped subquery in the place of a table."""
        inner = self._scope(0)
        dtype, key = self.random.choice([c for c in inner.all() if c[0] in (INT, TEXT)])
        number = self.random.choice(inner.columns[INT])
        total = f"CAST(sum({number}) AS INT) AS total"
        sql = f"SELECT {key} AS key, {total}, count(*) AS n FROM {inner.source} GROUP BY {key}"
        columns: dict[str, list[str]] = {t: [] for t in VALUES}
        columns[dtype].append(f"{alias}.key")
        columns[INT].append(f"{alias}.total")
        return Scope(f"({sql}) {alias}", columns, inner.tables)

    def _joined(self, left: Scope, right: Scope) -> Scope:
        pairs = [(a, b) for dtype in VALUES for a in left.columns[dtype] for b in right.columns[dtype]]
        source = f"{left.source} CROSS JOIN {right.source}"
        if pairs and not self._chance(0.05):
            a, b = self.random.choice(pairs)
            operator = self.random.choice(["=", "=", "=", "IS NOT DISTINCT FROM"])
            condition = f"{a} {operator} {b}"
            if self._chance(0.3):
                c, d = self.random.choice(pairs)
                condition += f" AND {c} {self.random.choice(['=', '<', '>='])} {d}"
            kind = self.random.choice(["JOIN", "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
            source = f"{left.source} {kind} {right.source} ON {condition}"
        columns = {dtype: left.columns[dtype] + right.columns[dtype] for dtype in VALUES}
        return Scope(source, columns, left.tables | right.tables)

    # expressions

    def _literal(self, dtype: str) -> str:
        value = self.random.choice([v for v in VALUES[dtype] if v is not None and v == v])
        if dtype == TEXT:
            return "'" + value.replace("'", "''") + "'"
        return f"CAST('{value}' AS DOUBLE)" if dtype == REAL else f"({value})"

    def _predicate(self, scope: Scope, *, subqueries: bool = False) -> str:
        dtype, column = self.random.choice(scope.all())
        kind = self.random.choice(["compare", "compare", "null", "in", "or", "columns"])
        if subqueries and self._chance(0.15):
            return self._matched(scope, dtype, column)
        if kind == "null":
            return f"{column} IS {self.random.choice(['', 'NOT '])}NULL"
        if kind == "in" and dtype != REAL:
            return f"{column} {self.random.choice(['', 'NOT '])}IN ({self._literal(dtype)}, {self._literal(dtype)})"
        if kind == "columns":
            return f"{column} {self.random.choice(['<', '=', '<>'])} {self.random.choice(scope.columns[dtype])}"
        first = f"{column} {self.random.choice(['=', '<', '>=', '<>'])} {self._literal(dtype)}"
        return f"({first} OR {self._predicate(scope, subqueries=subqueries)})" if kind == "or" else first

    def _matched(self, scope: Scope, dtype: str, column: str) -> str:
        """A predicate that asks another table for matches."""
        tables = [t for t, columns in TABLES.items() if dtype in columns.values()]
        if not tables:
            return f"{column} IS NULL"
        table = self.random.choice(tables)
        theirs = self.random.choice([c for c, t in TABLES[table].items() if t == dtype])
        where = f" WHERE y.{theirs} IS NOT NULL" if self._chance(0.5) else ""
        scope.tables.add(table)
        if self._chance(0.5):
            return f"{column} {self.random.choice(['', 'NOT '])}IN (SELECT y.{theirs} FROM {table} y{where})"
        operator = self.random.choice(["=", "=", "<", "IS NOT DISTINCT FROM"])
        match = f"SELECT 1 FROM {table} y WHERE y.{theirs} {operator} {column}"
        return f"{self.random.choice(['', 'NOT '])}EXISTS ({match})"

    def _where(self, scope: Scope) -> str:
        terms = [self._predicate(scope, subqueries=True) for _ in range(self.random.choice([0, 0, 1, 1, 2]))]
        return f" WHERE {' AND '.join(terms)}" if terms else ""

    def _value(self, scope: Scope, dtype: str | None = None) -> tuple[str, str]:
        """A column or an expression of it, and its type."""
        offered = [c for c in scope.all() if dtype in (None, c[0])] or scope.all()
        dtype, column = self.random.choice(offered)
        if self._chance(0.6):
            return dtype, column
        made = {
            INT: [f"{column} + 1", f"{column} * 2", f"abs({column})", f"coalesce({column}, -5)",
                  f"CASE WHEN {column} > 0 THEN 1 WHEN {column} IS NULL THEN 7 END"],
            TEXT: [f"upper({column})", f"{column} || '-x'", f"coalesce({column}, 'none')"],
            MONEY: [f"{column} + 1.25", f"coalesce({column}, 0.00)", f"-{column}"],
            REAL: [f"{column} * 2", f"coalesce({column}, CAST('4.5' AS DOUBLE))"],
        }  # fmt: skip
        return dtype, self.random.choice(made[dtype])

    def _aggregate(self, scope: Scope) -> tuple[str, str]:
        """An aggregate call and the kind of its result."""
        func = self.random.choice(
            ["count(*)", "count", "sum", "sum", "avg", "min", "max", "distinct", "variance", "bool"]
        )
        dtype, value = self._value(scope)
        where = f" FILTER (WHERE {self._predicate(scope)})" if self._chance(0.2) else ""
        if func == "count(*)":
            return f"count(*){where}", "exact"
        if func in ("count", "min", "max"):
            return f"{func}({value}){where}", "float" if dtype == REAL and func != "count" else "exact"
        if func == "bool":
            return f"{self.random.choice(['bool_and', 'bool_or'])}({self._predicate(scope)}){where}", "exact"
        if func == "distinct":
            return f"count(DISTINCT {value}){where}", "exact"
        dtype, value = self._value(scope, self.random.choice([INT, MONEY, REAL]) if func != "variance" else INT)
        if dtype == TEXT or (func == "variance" and dtype != INT):
            return f"max({value}){where}", "float" if dtype == REAL else "exact"
        if func == "variance":
            return f"{self.random.choice(['var_pop', 'stddev_samp'])}({value}){where}", "float"
        kind = (
            {REAL: "float", MONEY: "coarse"}.get(dtype, "float")
            if func == "avg"
            else "float"
            if dtype == REAL
            else "exact"
        )
        return f"{func}({value}){where}", kind

    # SELECT

    def _rows(self, scope: Scope, *, distinct: bool = False) -> Query:
        values = [self._value(scope) for _ in range(self.random.randint(1, 4))]
        columns = ", ".join(f"{text} AS c{n}" for n, (_, text) in enumerate(values))
        sql = f"SELECT {'DISTINCT ' if distinct else ''}{columns} FROM {scope.source}{self._where(scope)}"
        return Query(sql, ["float" if dtype == REAL else "exact" for dtype, _ in values], scope.tables)

    def _groups(self, scope: Scope) -> Query:
        keys = [self._value(scope) for _ in range(self.random.choice([0, 1, 1, 2]))]
        calls = [self._aggregate(scope) for _ in range(self.random.randint(1, 4))]
        columns = [f"{text} AS k{n}" for n, (_, text) in enumerate(keys)]
        columns += [f"{text} AS c{n}" for n, (text, _) in enumerate(calls)]
        sql = f"SELECT {', '.join(columns)} FROM {scope.source}{self._where(scope)}"
        if keys:
            sql += " GROUP BY " + ", ".join(text for _, text in keys)
        if keys and self._chance(0.3):
            sql += self.random.choice(
                [" HAVING count(*) > 1", " HAVING count(*) < 3", f" HAVING {self._having(scope)}"]
            )
        kinds = ["float" if dtype == REAL else "exact" for dtype, _ in keys] + [kind for _, kind in calls]
        return Query(sql, kinds, scope.tables)

    def _having(self, scope: Scope) -> str:
        numbers = scope.columns[INT]
        return f"sum({self.random.choice(numbers)}) >= 1" if numbers else "count(*) >= 2"

    def _union(self) -> Query:
        """Two or three selects of the same types."""
        types = [self.random.choice([INT, TEXT, MONEY]) for _ in range(self.random.randint(1, 3))]
        parts, tables = [], set()
        for _ in range(self.random.choice([2, 2, 3])):
            scope = self._scope()
            columns = [
                self.random.choice(scope.columns[t]) if scope.columns[t] else f"CAST(NULL AS {_duck(t)})" for t in types
            ]
            named = ", ".join(f"{c} AS c{n}" for n, c in enumerate(columns))
            parts.append(f"SELECT {named} FROM {scope.source}{self._where(scope)}")
            tables |= scope.tables
        return Query(" UNION ALL ".join(parts), ["exact"] * len(types), tables)

    def _set_operation(self, query: Query) -> Query:
        """The rows of a query against those of the same query with another filter."""
        if "float" in query.kinds or " WHERE " not in query.sql:
            return query
        kind = self.random.choice(["INTERSECT", "EXCEPT", "UNION"]) + self.random.choice(["", " ALL"])
        plain = query.sql.replace("SELECT DISTINCT", "SELECT", 1)
        return Query(f"{plain.split(' WHERE ')[0]} {kind} {query.sql}", query.kinds, query.tables)

    def _top(self, query: Query) -> Query:
        """Ordered by every column, so that DuckDB breaks ties as we do; floats could tie in one and not in both."""
        if set(query.kinds) != {"exact"}:
            return query
        names = [str(n + 1) for n in range(len(query.kinds))]
        self.random.shuffle(names)
        order = [
            f"{n} {self.random.choice(['ASC', 'DESC'])} NULLS {self.random.choice(['FIRST', 'LAST'])}" for n in names
        ]
        offset = f" OFFSET {self.random.randint(1, 3)}" if self._chance(0.3) else ""
        return Query(
            f"{query.sql} ORDER BY {', '.join(order)} LIMIT {self.random.randint(1, 6)}{offset}",
            query.kinds,
            query.tables,
        )


def _duck(dtype: str) -> str:
    return "VARCHAR(1000)" if dtype == TEXT else dtype


# --- tables and changes ----------------------------------------------------------------------------------------------


class Bag:
    """The rows of a table as the test knows them, beside the ones that Slackwater and DuckDB hold."""

    def __init__(self, name: str, chance: random.Random) -> None:
        self.name, self.random = name, chance
        self.rows: list[tuple[Any, ...]] = [self._row() for _ in range(24)]

    def _row(self) -> tuple[Any, ...]:
        return tuple(self.random.choice(VALUES[dtype]) for dtype in TABLES[self.name].values())

    def change(self) -> tuple[list[Any], list[Any]]:
        """Rows to add and to delete: some are duplicates, some are updates of one column."""
        gone = [self.rows.pop(self.random.randrange(len(self.rows))) for _ in range(self.random.randint(0, 3))]
        added = [self._row() for _ in range(self.random.randint(0, 2))]
        if self.rows and self.random.random() < 0.4:
            added.append(self.random.choice(self.rows))
        for row in gone:
            if self.random.random() < 0.5:
                at = self.random.randrange(len(row))
                added.append((*row[:at], self._row()[at], *row[at + 1 :]))
        self.rows += added
        return added, gone


class Twin:
    """DuckDB with the same tables."""

    def __init__(self) -> None:
        self.database = duckdb.connect()
        for name, columns in TABLES.items():
            self.database.execute(f"CREATE TABLE {name} ({', '.join(f'{c} {_duck(t)}' for c, t in columns.items())})")

    def load(self, bags: dict[str, Bag]) -> None:
        """Take the rows over. To DuckDB the two zeros are two groups, to Spark one: it gets one of them only."""
        for name, bag in bags.items():
            self.database.execute(f"DELETE FROM {name}")
            rows = [tuple(0.0 if v == 0 and isinstance(v, float) else v for v in row) for row in bag.rows]
            self.database.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(TABLES[name]))})", rows)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.database.execute(sql).fetchall()


# --- comparison ------------------------------------------------------------------------------------------------------


def difference(
    ours: list[tuple[Any, ...]], theirs: list[tuple[Any, ...]], kinds: list[str]
) -> tuple[list[Any], list[Any]]:
    """The rows that only one side has; floats are compared to nine digits."""
    left, right = (Counter(_exact(row, kinds) for row in rows) for rows in (ours, theirs))
    if left == right:
        return [], []
    only_left, only_right = list((left - right).elements()), list((right - left).elements())
    for row in list(only_left):
        match = next((other for other in only_right if _close(row, other, kinds)), None)
        if match is not None:
            only_left.remove(row)
            only_right.remove(match)
    return only_left, only_right


def _exact(row: tuple[Any, ...], kinds: list[str]) -> tuple[Any, ...]:
    return tuple(_comparable(v, kind) for v, kind in zip(row, kinds, strict=True))


def _comparable(value: Any, kind: str) -> Any:
    if value is None or kind == "exact":
        return value.normalize() + 0 if isinstance(value, Decimal) else value
    return "NaN" if math.isnan(value) else float(value) + 0.0


def _close(row: tuple[Any, ...], other: tuple[Any, ...], kinds: list[str]) -> bool:
    for a, b, kind in zip(row, other, kinds, strict=True):
        if a == b:
            continue
        if kind == "exact" or not isinstance(a, float) or not isinstance(b, float):
            return False
        if not math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-6 if kind == "coarse" else 1e-9):
            return False
    return True


# --- the tests -------------------------------------------------------------------------------------------------------


def play(engine: sw.Engine, seed: int, queries: int, rounds: int) -> Counter[str]:
    """Views of random queries through rounds of random changes; gives how often each mode of refresh was used."""
    generator = Generator(seed)
    bags = {name: Bag(name, generator.random) for name in TABLES}
    for name, columns in TABLES.items():
        engine.create_table(name, ", ".join(f"{c} {t}" for c, t in columns.items())).insert(bags[name].rows)
    twin = Twin()
    views = [
        (engine.create_view(f"v{n}", query.sql), query)
        for n, query in enumerate(generator.query() for _ in range(queries))
    ]
    modes: Counter[str] = Counter()
    for round_ in range(rounds + 1):
        for name in generator.random.sample(list(TABLES), generator.random.randint(1, 3)) if round_ else ():
            added, gone = bags[name].change()
            feed = [(*row, weight) for rows, weight in ((added, 1), (gone, -1)) for row in rows]
            if feed:
                engine.table(name).apply([dict(zip([*TABLES[name], "_weight"], row, strict=True)) for row in feed])
        twin.load(bags)
        for view, query in views:
            where = f"seed {seed}, round {round_}: {query.sql}"
            try:
                report = view.refresh()
                check = view.verify()
            except Exception as error:
                raise AssertionError(f"{where}\n{error}") from error
            modes[report.mode] += 1
            assert check, f"{where}\n{report}\n{check}"
            ours = [tuple(row) for row in view.result().collect()]
            extra, lacking = difference(ours, twin.rows(query.sql), query.kinds)
            assert not extra, f"{where}\n{report}\nDuckDB lacks {extra}, has {lacking} instead"
            assert not lacking, f"{where}\n{report}\nonly DuckDB has {lacking}"
    return modes


def test_a_few_random_queries(tmp_path: Path, spark: SparkSession) -> None:
    with sw.Engine(tmp_path / "wh", spark=spark, save_states=False) as engine:
        modes = play(engine, seed=20240229, queries=6, rounds=2)
    assert modes["incremental"] >= 8, modes


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_many_random_queries(tmp_path: Path, spark: SparkSession, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 2:
        for limit in ("STATE_SEGMENTS", "RESULT_SEGMENTS", "TABLE_SEGMENTS"):
            monkeypatch.setattr(compaction, limit, 2)
    budget = "1GB" if seed % 5 else 3_000
    with sw.Engine(tmp_path / "wh", spark=spark, save_states=False, memory_budget=budget) as engine:
        play(engine, seed, queries=8, rounds=5)


def test_the_generator_draws_every_kind_of_query() -> None:
    generator = Generator(1)
    drawn = [generator.query().sql for _ in range(600)]
    parts = (" JOIN ", "CROSS JOIN", "IS NOT DISTINCT FROM", "UNION ALL", "SELECT DISTINCT", "HAVING", "FILTER",
             "LIMIT", "OFFSET", "count(DISTINCT", "var_pop", "stddev_samp", "bool_or", "CASE", "GROUP BY", "NOT IN",
             "AS key", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "IN (SELECT", "EXISTS (SELECT", "NOT EXISTS",
             "INTERSECT", "EXCEPT", "EXCEPT ALL")  # fmt: skip
    assert [part for part in parts if not any(part in sql for sql in drawn)] == []
    assert len(set(drawn)) > 580

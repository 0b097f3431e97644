"""Random queries over random tables, drawn so that they mean the same in Spark and DuckDB unless marked."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.fuzz import sql
from tests.fuzz.expressions import Expressions, Scope
from tests.fuzz.sql import ONLY_SPARK, Column, Query
from tests.fuzz.tables import INT, LIST, MONEY, TEXT, VALUES, Schema

SHAPES = (
    "rows", "rows", "groups", "groups", "groups", "sets of groups", "windows", "windows", "set operation",
    "set operation", "distinct", "top", "top inside", "with", "pivot", "scalars", "nested",
)  # fmt: skip


@dataclass(slots=True)
class Generator:
    """Draws queries over the tables of a schema."""

    schema: Schema
    random: random.Random
    count: int = 0

    def query(self) -> Query:
        """Any query."""
        shape = self.random.choice(SHAPES)
        made = {
            "rows": lambda: self._rows(self._scope()),
            "groups": lambda: self._groups(self._scope()),
            "sets of groups": lambda: self._groups(self._scope(), several=True),
            "windows": self._windows,
            "set operation": self._set_operation,
            "distinct": lambda: self._rows(self._scope(), distinct=True),
            "top": lambda: self._top(self._rows(self._scope()) if self._chance(0.5) else self._groups(self._scope())),
            "top inside": lambda: (self._groups if self._chance(0.5) else self._rows)(self._top_inside()),
            "with": self._with,
            "pivot": self._pivot,
            "scalars": self._scalars,
            "nested": lambda: self._groups(self._over(self._groups(self._scope()))),
        }[shape]  # fmt: skip
        return made()

    def _chance(self, share: float) -> bool:
        return self.random.random() < share

    def _name(self, prefix: str = "x") -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def _say(self, scope: Scope) -> Expressions:
        return Expressions(self.random, self.schema, scope, self._name)

    # FROM

    def _scope(self, parts: int | None = None) -> Scope:
        scope = self._part()
        for _ in range((parts or self.random.choice([1, 1, 2, 2, 2, 3])) - 1):
            scope = self._joined(scope, self._part())
        if scope.columns[LIST] and self._chance(0.3):
            array, alias = self.random.choice(scope.columns[LIST]), self._name("l")
            columns = {**scope.columns, INT: [*scope.columns[INT], f"{alias}.e"]}
            scope = Scope(sql.Exploded(scope.source, array, alias, self._chance(0.4)), columns)
        return scope

    def _part(self) -> Scope:
        alias, chance = self._name(), self.random.random()
        if chance < 0.12:
            return self._over(self._grouped_by_key(), alias)
        if chance < 0.18:
            return self._constants(alias)
        table = self.random.choice(list(self.schema))
        columns: dict[str, list[str]] = {dtype: [] for dtype in VALUES}
        for name, dtype in self.schema[table].items():
            columns[dtype].append(f"{alias}.{name}")
        return Scope(sql.Table(table, alias), columns)

    def _over(self, query: Query, alias: str = "") -> Scope:
        """A query in the place of a table; its exact columns are offered, by the types that the text tells."""
        alias = alias or self._name()
        columns: dict[str, list[str]] = {dtype: [] for dtype in VALUES}
        for at, (kind, dtype) in enumerate(zip(query.kinds, self._types(query), strict=True)):
            if kind == "exact" and dtype:
                columns[dtype].append(f"{alias}.c{at}")
        if not any(columns.values()):
            return self._part()
        return Scope(sql.Derived(query, alias), columns)

    def _types(self, query: Query) -> list[str]:
        """The type of each column, where the generator noted it."""
        noted = getattr(query, "columns", ())
        return [c.dtype for c in noted] if noted else ["" for _ in query.kinds]

    def _grouped_by_key(self) -> Query:
        inner = self._scope(1)
        say = self._say(inner)
        dtype, key = say.key()
        number = say.column(INT)
        columns = (Column(key, dtype=dtype), Column(f"CAST(sum({number}) AS INT)", dtype=INT),
                   Column("CAST(count(*) AS INT)", dtype=INT))  # fmt: skip
        return sql.Select(columns, inner.source, say.where(), (key,))

    def _constants(self, alias: str) -> Scope:
        numbers, texts = ["1", "2", "CAST(NULL AS INT)"], ["'a'", "'b'", "CAST(NULL AS STRING)"]
        rows = tuple((self.random.choice(numbers), self.random.choice(texts)) for _ in range(self.random.randint(1, 3)))
        columns: dict[str, list[str]] = {dtype: [] for dtype in VALUES}
        columns[INT], columns[TEXT] = [f"{alias}.c0"], [f"{alias}.c1"]
        return Scope(sql.Inline(rows, alias), columns)

    def _top_inside(self) -> Scope:
        """The first rows of a query in the place of a table, alone or joined."""
        scope = self._over(self._top(self._rows(self._scope(1), exact=True)))
        return self._joined(scope, self._part()) if self._chance(0.4) else scope

    def _joined(self, left: Scope, right: Scope) -> Scope:
        columns = {dtype: left.columns[dtype] + right.columns[dtype] for dtype in VALUES}
        pairs = [(a, b) for t in VALUES if t != LIST for a in left.columns[t] for b in right.columns[t]]
        on: tuple[str, ...] = ()
        kind = self.random.choice(["JOIN", "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        if pairs and not self._chance(0.05):
            a, b = self.random.choice(pairs)
            on = (f"{a} {self.random.choice(['=', '=', '=', 'IS NOT DISTINCT FROM', '<'])} {b}",)
            if self._chance(0.3):
                c, d = self.random.choice(pairs)
                on += (f"{c} {self.random.choice(['=', '<', '>='])} {d}",)
            if self._chance(0.15):
                on += (self._say(left if self._chance(0.5) else right).predicate(),)
        return Scope(sql.Joined(left.source, right.source, kind, on), columns)

    # SELECT

    def _rows(self, scope: Scope, *, distinct: bool = False, exact: bool = False) -> sql.Select:
        say = self._say(scope)
        columns = tuple(say.value(exact=exact) for _ in range(self.random.randint(1, 4)))
        return sql.Select(columns, scope.source, say.where(), distinct=distinct)

    def _groups(self, scope: Scope, *, several: bool = False) -> sql.Select:
        say = self._say(scope)
        if several:
            keys = [Column(key, dtype=dtype) for dtype, key in (say.key(), say.key())]
        else:
            keys = [say.value(exact=False, lists=False) for _ in range(self.random.choice([0, 1, 1, 2]))]
        if len({k.text for k in keys}) < len(keys):
            keys = keys[:1]
        calls = tuple(say.aggregate() for _ in range(self.random.randint(1, 4)))
        grouping = self.random.choice(["ROLLUP", "CUBE", "GROUPING SETS"]) if several and len(keys) == 2 else ""
        if grouping and self._chance(0.5):
            calls += (Column(f"grouping({keys[0].text})"),)
        having = (say.having(),) if keys and self._chance(0.3) else ()
        if grouping:
            having += ("count(*) > 0",)  # of no rows DuckDB makes a grand total, Spark does not
        return sql.Select((*keys, *calls), scope.source, say.where(), tuple(k.text for k in keys), grouping, having)

    def _windows(self) -> Query:
        scope = self._scope(self.random.choice([1, 1, 2]))
        say = self._say(scope)
        plain = tuple(say.value(exact=True) for _ in range(self.random.randint(1, 2)))
        made = tuple(say.window() for _ in range(self.random.randint(1, 3)))
        query = sql.Select((*plain, *made), scope.source, say.where())
        if self._chance(0.3):
            above = self._over(query)
            return self._groups(above) if self._chance(0.5) else self._rows(above)
        return query

    def _scalars(self) -> Query:
        """Scalar subqueries in the SELECT list and in WHERE, correlated or not."""
        scope = self._scope(self.random.choice([1, 2]))
        say = self._say(scope)
        columns = (say.value(exact=True), *(say.scalar() for _ in range(self.random.randint(1, 2))))
        where = say.where()
        if self._chance(0.5):
            where += (f"{say.column(INT)} {self.random.choice(['<', '>=', '='])} {say.scalar().text}",)
        return sql.Select(columns, scope.source, where)

    def _set_operation(self) -> Query:
        types = [self.random.choice([INT, TEXT, MONEY]) for _ in range(self.random.randint(1, 3))]
        query = self._alike(types)
        for _ in range(self.random.choice([1, 1, 2])):
            operator = self.random.choice(["UNION", "INTERSECT", "EXCEPT"]) + self.random.choice(["", " ALL"])
            query = sql.SetOperation(query, self._alike(types), operator)
        return query

    def _alike(self, types: list[str]) -> Query:
        scope = self._scope(self.random.choice([1, 1, 2]))
        columns = tuple(
            Column(self.random.choice(scope.columns[t]) if scope.columns[t] else f"CAST(NULL AS {t})", dtype=t)
            for t in types
        )
        return sql.Select(columns, scope.source, self._say(scope).where())

    def _top(self, query: sql.Select) -> Query:
        """Ordered by every column, so that DuckDB breaks ties as we do; else Spark only."""
        if set(query.kinds) == {"exact"} and self._chance(0.8):
            names = [f"c{n}" for n in range(len(query.kinds))]
            self.random.shuffle(names)
        else:
            query = sql.Select((*query.columns, Column(f"{ONLY_SPARK} 1")), *_rest(query))
            names = [self.random.choice([f"c{n}" for n in range(len(query.kinds))])]
        order = tuple(
            f"{n} {self.random.choice(['ASC', 'DESC'])} NULLS {self.random.choice(['FIRST', 'LAST'])}" for n in names
        )
        return sql.Top(query, order, self.random.randint(1, 6), self.random.choice([0, 0, 1, 3]), query.columns)

    def _with(self) -> Query:
        """A query that is named once and read twice."""
        name, inner = (
            self._name("w"),
            self._grouped_by_key() if self._chance(0.5) else self._rows(self._scope(), exact=True),
        )
        scopes = []
        for _ in range(2):
            alias = self._name()
            offered = self._over(inner, alias)
            scopes.append(Scope(sql.Table(name, alias), offered.columns) if alias in _aliases(offered) else offered)
        scope = self._joined(*scopes)
        return sql.With(name, inner, self._groups(scope) if self._chance(0.5) else self._rows(scope))  # fmt: skip

    def _pivot(self) -> Query:
        scope = self._scope(self.random.choice([1, 2]))
        say = self._say(scope)
        dtype, key = say.key()
        columns = (Column(key, dtype=dtype), Column(say.column(TEXT), dtype=TEXT), Column(say.column(INT), dtype=INT))
        call = self.random.choice(["sum(c2)", "count(c2)", "max(c2)"])
        values = tuple(self.random.sample(["'a'", "'b'", "''", "'ü'"], 2))
        return sql.Pivoted(sql.Select(columns, scope.source, say.where()), f"{call} {ONLY_SPARK}", values)


def _aliases(scope: Scope) -> set[str]:
    return {c.split(".")[0] for columns in scope.columns.values() for c in columns}


def _rest(query: sql.Select) -> tuple[object, ...]:
    return query.source, query.where, query.group, query.grouping, query.having, query.distinct

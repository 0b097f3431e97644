"""Random queries over random tables, drawn so that they mean the same in Spark and DuckDB unless marked."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from tests.fuzz import calls, sql
from tests.fuzz.expressions import Expressions, Scope, null
from tests.fuzz.sql import ONLY_SPARK, Column, Query
from tests.fuzz.tables import (
    BYTES,
    CLOCK,
    DAY,
    FOLDED,
    INT,
    LIST,
    LONG,
    MAP,
    MONEY,
    PAIR,
    QUARTERS,
    TEXT,
    UNSORTED,
    VALUES,
    Keys,
    Schema,
)  # fmt: skip

SHAPES = (
    "rows", "rows", "rows", "groups", "groups", "groups", "groups", "sets of groups", "windows", "windows", "windows",
    "set operation", "set operation", "distinct", "top", "top of top", "top inside", "with", "pivot", "unpivot",
    "scalars", "scalars", "nested", "own aggregates", "views", "views",
)  # fmt: skip


@dataclass(slots=True)
class Generator:
    """Draws queries over the tables of a schema."""

    schema: Schema
    random: random.Random
    keys: Keys = field(default_factory=dict)
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
            "top of top": self._top_of_top,
            "pivot": self._pivot,
            "unpivot": self._unpivot,
            "own aggregates": self._own_aggregates,
            "views": self._on_a_view,
            "scalars": self._scalars,
            "nested": lambda: self._groups(self._over(self._groups(self._scope()))),
        }[shape]  # fmt: skip
        return made()

    def condition(self, query: Query) -> str:
        """A condition over the columns of a query, as far as their types are noted and their values are exact."""
        columns = _none_offered()
        for at, (kind, dtype) in enumerate(zip(query.kinds, query.types, strict=True)):
            if kind == "exact" and dtype:
                columns[dtype].append(f"c{at}")
        if not any(columns.values()):
            at = 0 if isinstance(query, sql.Pivoted) else self.random.randrange(len(query.kinds))
            return f"c{at} = c{at}" if query.kinds[at] == "exact" else f"c{at} IS NULL"
        say = self._say(Scope(sql.Table("z", "z"), columns))
        if self._chance(0.5):
            return say.predicate()
        return f"({say.predicate()} {self.random.choice(['AND', 'OR'])} {say.predicate()})"

    def _chance(self, share: float) -> bool:
        return self.random.random() < share

    def _name(self, prefix: str = "x") -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def _say(self, scope: Scope) -> Expressions:
        return Expressions(self.random, self.schema, scope, self._name, self.keys)

    # FROM

    def _scope(self, parts: int | None = None) -> Scope:
        scope = self._part()
        for _ in range((parts or self.random.choice([1, 1, 2, 2, 2, 3])) - 1):
            scope = self._joined(scope, self._part())
        if scope.columns[LIST] and self._chance(0.3):
            array, alias = self.random.choice(scope.columns[LIST]), self._name("l")
            columns = {**scope.columns, INT: [*scope.columns[INT], f"{alias}.e"]}
            scope = Scope(sql.Exploded(scope.source, array, alias, self._chance(0.4)), columns)
        if self._chance(0.06) and not isinstance(scope.source, sql.Exploded):  # Spark takes no JOIN after LATERAL VIEW
            return self._lateral(scope)
        return self._generated(scope) if self._chance(0.06) else scope

    def _lateral(self, scope: Scope) -> Scope:
        """With a subquery for each row: one row of aggregates, or the rows that match."""
        alias = self._name("l")
        made = self._say(scope).beside()
        columns = {dtype: list(found) for dtype, found in scope.columns.items()}
        for at, column in enumerate(made.columns):
            columns[column.dtype].append(f"{alias}.c{at}")
        return Scope(sql.Lateral(scope.source, made, alias, self._chance(0.4)), columns)

    def _generated(self, scope: Scope) -> Scope:
        """With a LATERAL VIEW of any table function."""
        alias, say = self._name("l"), self._say(scope)
        number, text = say.column(INT), say.column(TEXT)
        rows = f"array(named_struct('i', {number}, 't', {text}), named_struct('i', 1, 't', 'a'))"
        offered = [
            (f"inline({rows})", (INT, TEXT)),
            (f"stack(2, {number}, {text}, 1, 'a')", (INT, TEXT)),
            (f"posexplode(array({number}, {say.column(INT)}, 2))", (INT, INT)),
            (f"json_tuple(to_json(named_struct('a', {number}, 'b', {text})), 'b', 'a')", (TEXT, TEXT)),
        ]
        offered += [(f"posexplode({array})", (INT, INT)) for array in scope.columns[LIST]]
        offered += [(f"explode({entries})", (TEXT, INT)) for entries in scope.columns[MAP]]
        call, types = self.random.choice(offered)
        columns = {dtype: list(found) for dtype, found in scope.columns.items()}
        names = tuple(f"g{n}" for n in range(len(types)))
        for name, dtype in zip(names, types, strict=True):
            columns[dtype].append(f"{alias}.{name}")
        return Scope(sql.Generated(scope.source, call, alias, names, self._chance(0.4)), columns)

    def _part(self) -> Scope:
        alias, chance = self._name(), self.random.random()
        if chance < 0.12:
            return self._over(self._grouped_by_key(), alias)
        if chance < 0.18:
            return self._constants(alias)
        table = self.random.choice(list(self.schema))
        columns = _none_offered()
        for name, dtype in self.schema[table].items():
            columns[dtype].append(f"{alias}.{name}{ONLY_SPARK if dtype in calls.MARKED else ''}")
            if dtype == PAIR:
                columns[INT].append(f"{alias}.{name}.x")
                columns[TEXT].append(f"{alias}.{name}.y")
        return Scope(sql.Table(table, alias), columns)

    def _over(self, query: Query, alias: str = "") -> Scope:
        """A query in the place of a table; its exact columns are offered, by the types that the text tells."""
        alias = alias or self._name()
        columns = _none_offered()
        for at, (kind, dtype) in enumerate(zip(query.kinds, query.types, strict=True)):
            if kind == "exact" and dtype:
                columns[dtype].append(f"{alias}.c{at}")
        if not any(columns.values()):
            return self._part()
        return Scope(sql.Derived(query, alias), columns)

    def _on_a_view(self) -> Query:
        """A query that reads a view of another one, alone or joined, or that joins the view with itself."""
        below, name = self._below(), self._name("b")
        scopes = []
        for _ in range(self.random.choice([1, 1, 2])):
            scope = self._over(below)
            if isinstance(scope.source, sql.Derived):
                scope = Scope(sql.Viewed(below, name, scope.source.alias), scope.columns)
            scopes.append(scope)
        scope = scopes[0] if len(scopes) == 1 else self._joined(*scopes)
        scope = self._joined(scope, self._part()) if self._chance(0.3) else scope
        made = self._rows(scope) if self._chance(0.4) else self._groups(scope)
        return self._top(made) if self._chance(0.15) else made

    def _below(self) -> Query:
        chance = self.random.random()
        if chance < 0.4:
            return self._groups(self._scope())
        return self._rows(self._scope(), exact=True) if chance < 0.7 else self._windows()

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
        columns = _none_offered()
        columns[INT], columns[TEXT] = [f"{alias}.c0"], [f"{alias}.c1"]
        return Scope(sql.Inline(rows, alias), columns)

    def _top_inside(self) -> Scope:
        """The first rows of a query in the place of a table, alone or joined."""
        scope = self._over(self._top(self._rows(self._scope(1), exact=True)))
        return self._joined(scope, self._part()) if self._chance(0.4) else scope

    def _joined(self, left: Scope, right: Scope) -> Scope:
        columns = {dtype: left.columns[dtype] + right.columns[dtype] for dtype in VALUES}
        pairs = [(a, b) for t in VALUES if t not in UNSORTED for a in left.columns[t] for b in right.columns[t]]
        alike = [(a, b) for a in left.columns[PAIR] for b in right.columns[PAIR]]
        on: tuple[str, ...] = ()
        kind = self.random.choice(["JOIN", "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        named = self._named(left, right) if self._chance(0.15) else ()
        if named:
            on = named
        elif pairs and not self._chance(0.05):
            a, b = self.random.choice(pairs)
            on = (f"{a} {self.random.choice(['=', '=', '=', 'IS NOT DISTINCT FROM', '<'])} {b}",)
            if self._chance(0.3):
                c, d = self.random.choice(pairs)
                on += (f"{c} {self.random.choice(['=', '<', '>='])} {d}",)
            if self._chance(0.15):
                on += (self._say(left if self._chance(0.5) else right).predicate(),)
            if self._chance(0.06):
                say = self._say(left if self._chance(0.5) else right)
                mark = "" if kind == "JOIN" else f" {ONLY_SPARK}"  # DuckDB fails with these in some outer joins
                on += (f"{say.column(INT)} {self.random.choice(['<', '>=', '<>'])} {say.number().text}{mark}",)
            if kind == "JOIN" and self._chance(0.1):
                on += (self._say(left if self._chance(0.5) else right).matched(),)
        if alike and self._chance(0.4):
            a, b = self.random.choice(alike)
            on += (f"{a} {self.random.choice(['=', 'IS NOT DISTINCT FROM'])} {b}",)
        return Scope(sql.Joined(left.source, right.source, kind, on), columns)

    def _named(self, left: Scope, right: Scope) -> tuple[str, ...]:
        """A condition that names a row of a table by its key; empty where the right side is no such table."""
        table = right.source
        if not isinstance(table, sql.Table) or table.name not in self.keys:
            return ()
        by_type = [(self.schema[table.name][key], key) for key in self.keys[table.name]]
        if not all(left.columns[dtype] for dtype, _ in by_type):
            return ()
        return tuple(f"{self.random.choice(left.columns[dtype])} = {table.alias}.{key}" for dtype, key in by_type)

    # SELECT

    def _rows(self, scope: Scope, *, distinct: bool = False, exact: bool = False) -> sql.Select:
        say = self._say(scope)
        columns = tuple(say.value(exact=exact, sorts=distinct) for _ in range(self.random.randint(1, 4)))
        return sql.Select(columns, scope.source, say.where(), distinct=distinct)

    def _groups(self, scope: Scope, *, several: bool = False) -> sql.Select:
        say = self._say(scope)
        if several:
            keys = [Column(key, dtype=dtype) for dtype, key in (say.key(), say.key())]
        else:
            keys = [say.value(sorts=True) for _ in range(self.random.choice([0, 1, 1, 2]))]
        if len({k.text for k in keys}) < len(keys):
            keys = keys[:1]
        calls = say.aggregates()
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
        """Scalar subqueries in the SELECT list and in WHERE, correlated or not; IN and EXISTS in the SELECT list."""
        scope = self._scope(self.random.choice([1, 2]))
        say = self._say(scope)
        asked = (say.told() if self._chance(0.3) else say.scalar() for _ in range(self.random.randint(1, 2)))
        columns = (say.value(exact=True), *asked)
        where = say.where()
        if self._chance(0.5):
            where += (f"{say.column(INT)} {self.random.choice(['<', '>=', '='])} {say.scalar(number=True).text}",)
        return sql.Select(columns, scope.source, where)

    def _set_operation(self) -> Query:
        offered = {t for columns in self.schema.values() for t in columns.values()}
        odd = [t for t in (DAY, QUARTERS, CLOCK, BYTES, PAIR, FOLDED) if t in offered]
        types = [self.random.choice([INT, INT, TEXT, TEXT, MONEY, *odd]) for _ in range(self.random.randint(1, 3))]
        query = self._alike(types)
        for _ in range(self.random.choice([1, 1, 2])):
            operator = self.random.choice(["UNION", "INTERSECT", "EXCEPT"]) + self.random.choice(["", " ALL"])
            query = sql.SetOperation(query, self._alike(types), operator)
        return query

    def _alike(self, types: list[str]) -> Query:
        scope = self._scope(self.random.choice([1, 1, 2]))
        columns = tuple(
            Column(self.random.choice(scope.columns[t]) if scope.columns[t] else null(t), dtype=t) for t in types
        )
        return sql.Select(columns, scope.source, self._say(scope).where())

    def _top(self, query: sql.Select) -> sql.Top:
        """Ordered by every column, so that DuckDB breaks ties as we do; else Spark only."""
        kept = tuple(c for c in query.columns if c.dtype != MAP)
        query = replace(query, columns=kept or (Column("1", dtype=INT),))
        if set(query.kinds) == {"exact"} and PAIR not in query.types and self._chance(0.8):
            names = [f"c{n}" for n in range(len(query.kinds))]
            self.random.shuffle(names)
        else:
            query = replace(query, columns=(*query.columns, Column(f"{ONLY_SPARK} 1")))
            names = [self.random.choice([f"c{n}" for n in range(len(query.kinds))])]
        order = tuple(
            f"{n} {self.random.choice(['ASC', 'DESC'])} NULLS {self.random.choice(['FIRST', 'LAST'])}" for n in names
        )
        return sql.Top(query, order, self.random.randint(1, 6), self.random.choice([0, 0, 1, 3]))

    def _top_of_top(self) -> Query:
        """Limits right over limits, with an order of their own, with the same order again, or with none."""
        made = self._top(self._rows(self._scope(), exact=True) if self._chance(0.6) else self._groups(self._scope()))
        total = len(made.order) == len(made.kinds)
        for _ in range(self.random.choice([1, 1, 2])):
            order = made.order if self._chance(0.3) else ()
            if total and self._chance(0.3):
                order = tuple(f"c{n} {self.random.choice(['ASC', 'DESC'])} NULLS LAST" for n in range(len(made.kinds)))
            made = sql.Top(made, order, self.random.randint(1, 4), self.random.choice([0, 1, 2]))
        return made

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

    def _unpivot(self) -> Query:
        scope = self._scope(self.random.choice([1, 2]))
        say = self._say(scope)
        dtype, key = say.key()
        spread = self.random.choice([t for t in (INT, TEXT, QUARTERS, LONG) if len(scope.columns[t]) > 1] or [INT])
        found = scope.columns[spread][:3]
        columns = tuple(Column(c, dtype=spread) for c in (*found, *[null(spread)] * (2 - len(found))))
        inner = sql.Select((Column(key, dtype=dtype), *columns), scope.source, say.where())
        made = sql.Unpivoted(inner, self._chance(0.4))
        return self._groups(self._over(made)) if self._chance(0.4) else made

    def _own_aggregates(self) -> Query:
        """User-defined aggregates stand alone: Spark does not compute them beside its own."""
        scope = self._scope(self.random.choice([1, 1, 2]))
        say = self._say(scope)
        keys = [Column(key, dtype=dtype) for dtype, key in [say.key() for _ in range(self.random.choice([0, 1, 1]))]]
        calls = tuple(say.own_aggregate() for _ in range(self.random.randint(1, 2)))
        having = (f"{calls[0].text} > 0",) if keys and self._chance(0.3) else ()
        return sql.Select((*keys, *calls), scope.source, say.where(), tuple(k.text for k in keys), having=having)


def _none_offered() -> dict[str, list[str]]:
    return {dtype: [] for dtype in VALUES}


def _aliases(scope: Scope) -> set[str]:
    return {c.split(".")[0] for columns in scope.columns.values() for c in columns}

"""Queries as small trees that print as SQL for Spark and for DuckDB: what can be taken apart can be made smaller."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

SPARK, DUCK = "spark", "duckdb"

ONLY_SPARK = "/*spark*/"
"""Put into the text of an expression that DuckDB does not have, or answers in another way."""

OWN = "own_"
"""How the names of user-defined functions begin."""


@dataclass(frozen=True, slots=True)
class Column:
    """An output column.

    Attributes:
        text: the expression.
        kind: how its values are compared: exact, float, or coarse (an average of decimals, to six digits).
        dtype: its type, where it is one of those that tables have.
    """

    text: str
    kind: str = "exact"
    dtype: str = ""


class Source:
    """Something to select from."""

    def sql(self, dialect: str) -> str:
        raise NotImplementedError


class Query:
    """Something that gives columns c0, c1, …"""

    @property
    def kinds(self) -> list[str]:
        raise NotImplementedError

    @property
    def types(self) -> list[str]:
        """The type of each column, where the generator noted it; else empty texts."""
        return ["" for _ in self.kinds]

    def sql(self, dialect: str) -> str:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Table(Source):
    """A table, or a query that WITH gave a name."""

    name: str
    alias: str

    def sql(self, dialect: str) -> str:
        return f"{self.name} {self.alias}"


@dataclass(frozen=True, slots=True)
class Derived(Source):
    """A query in the place of a table."""

    query: Query
    alias: str

    def sql(self, dialect: str) -> str:
        return f"({self.query.sql(dialect)}) {self.alias}"


@dataclass(frozen=True, slots=True)
class Viewed(Source):
    """A view of a query, which another view reads. To DuckDB it is the query itself."""

    query: Query
    name: str
    alias: str

    def sql(self, dialect: str) -> str:
        if dialect == SPARK:
            return f"{self.name} {self.alias}"
        return f"({self.query.sql(dialect)}) {self.alias}"


@dataclass(frozen=True, slots=True)
class Inline(Source):
    """Constant rows with columns c0, c1, …"""

    rows: tuple[tuple[str, ...], ...]
    alias: str

    def sql(self, dialect: str) -> str:
        names = ", ".join(f"c{i}" for i in range(len(self.rows[0])))
        return f"(VALUES {', '.join('(' + ', '.join(row) + ')' for row in self.rows)}) AS {self.alias}({names})"


@dataclass(frozen=True, slots=True)
class Joined(Source):
    """Two sources; without a condition it is a cross join."""

    left: Source
    right: Source
    kind: str
    on: tuple[str, ...]

    def sql(self, dialect: str) -> str:
        left, right = self.left.sql(dialect), self.right.sql(dialect)
        if not self.on:
            return f"{left} CROSS JOIN {right}"
        return f"{left} {self.kind} {right} ON {' AND '.join(self.on)}"


@dataclass(frozen=True, slots=True)
class Exploded(Source):
    """Each row with each element of an array, as alias.e."""

    source: Source
    array: str
    alias: str
    outer: bool

    def sql(self, dialect: str) -> str:
        source = self.source.sql(dialect)
        if dialect == SPARK:
            return f"{source} LATERAL VIEW {'OUTER ' if self.outer else ''}explode({self.array}) {self.alias} AS e"
        kind = "LEFT JOIN" if self.outer else "JOIN"
        return f"{source} {kind} LATERAL (SELECT unnest({self.array}) AS e) {self.alias} ON TRUE"


@dataclass(frozen=True, slots=True)
class Generated(Source):
    """Each row with each row that a table function makes of it, which only Spark is asked for."""

    source: Source
    call: str
    alias: str
    names: tuple[str, ...]
    outer: bool

    def sql(self, dialect: str) -> str:
        view = f"LATERAL VIEW {'OUTER ' if self.outer else ''}{self.call} {self.alias} AS {', '.join(self.names)}"
        return f"{self.source.sql(dialect)} {view} {ONLY_SPARK}"


@dataclass(frozen=True, slots=True)
class Lateral(Source):
    """Each row with the rows of a query that reads it, as alias.c0, alias.c1, …"""

    source: Source
    query: Query
    alias: str
    outer: bool

    def sql(self, dialect: str) -> str:
        join = "LEFT JOIN" if self.outer else "JOIN"
        return f"{self.source.sql(dialect)} {join} LATERAL ({self.query.sql(dialect)}) {self.alias} ON TRUE"


@dataclass(frozen=True, slots=True)
class Select(Query):
    """SELECT … FROM … WHERE … GROUP BY … HAVING; `grouping` is empty, ROLLUP, CUBE or GROUPING SETS."""

    columns: tuple[Column, ...]
    source: Source
    where: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    grouping: str = ""
    having: tuple[str, ...] = ()
    distinct: bool = False

    @property
    def kinds(self) -> list[str]:
        return [c.kind for c in self.columns]

    @property
    def types(self) -> list[str]:
        return [c.dtype for c in self.columns]

    def sql(self, dialect: str) -> str:
        columns = ", ".join(f"{c.text} AS c{n}" for n, c in enumerate(self.columns))
        text = f"SELECT {'DISTINCT ' if self.distinct else ''}{columns} FROM {self.source.sql(dialect)}"
        if self.where:
            text += f" WHERE {' AND '.join(self.where)}"
        if self.group:
            text += f" GROUP BY {self._groups()}"
        if self.having:
            text += f" HAVING {' AND '.join(self.having)}"
        return text

    def _groups(self) -> str:
        listed = ", ".join(self.group)
        if not self.grouping:
            return listed
        if self.grouping == "GROUPING SETS":
            return f"GROUPING SETS (({listed}), ({self.group[-1]}), ())"
        return f"{self.grouping} ({listed})"


@dataclass(frozen=True, slots=True)
class SetOperation(Query):
    """UNION, INTERSECT, EXCEPT, each with or without ALL."""

    left: Query
    right: Query
    operator: str

    @property
    def kinds(self) -> list[str]:
        return self.left.kinds

    @property
    def types(self) -> list[str]:
        return self.left.types

    def sql(self, dialect: str) -> str:
        return f"({self.left.sql(dialect)}) {self.operator} ({self.right.sql(dialect)})"


@dataclass(frozen=True, slots=True)
class Top(Query):
    """The first rows in an order."""

    query: Query
    order: tuple[str, ...]
    limit: int
    offset: int = 0

    @property
    def kinds(self) -> list[str]:
        return self.query.kinds

    @property
    def types(self) -> list[str]:
        return self.query.types

    def sql(self, dialect: str) -> str:
        order = f" ORDER BY {', '.join(self.order)}" if self.order else ""
        offset = f" OFFSET {self.offset}" if self.offset else ""
        return f"SELECT * FROM ({self.query.sql(dialect)}) o{order} LIMIT {self.limit}{offset}"


@dataclass(frozen=True, slots=True)
class With(Query):
    """WITH name AS (query) body."""

    name: str
    query: Query
    body: Query

    @property
    def kinds(self) -> list[str]:
        return self.body.kinds

    @property
    def types(self) -> list[str]:
        return self.body.types

    def sql(self, dialect: str) -> str:
        return f"WITH {self.name} AS ({self.query.sql(dialect)}) {self.body.sql(dialect)}"


@dataclass(frozen=True, slots=True)
class Pivoted(Query):
    """PIVOT of a query with three columns: a key, what is spread over columns, and what is aggregated."""

    query: Query
    call: str
    values: tuple[str, ...]
    kind: str = "exact"

    @property
    def kinds(self) -> list[str]:
        return [self.query.kinds[0], *[self.kind] * len(self.values)]

    @property
    def types(self) -> list[str]:
        return [self.query.types[0], *[""] * len(self.values)]

    def sql(self, dialect: str) -> str:
        named = ", ".join(f"{value} AS v{n}" for n, value in enumerate(self.values))
        return f"SELECT * FROM ({self.query.sql(dialect)}) p PIVOT ({self.call} FOR c1 IN ({named}))"


@dataclass(frozen=True, slots=True)
class Unpivoted(Query):
    """UNPIVOT of a query whose columns but the first are of one type: the first, the column's name and its value."""

    query: Query
    nulls: bool

    @property
    def kinds(self) -> list[str]:
        return [self.query.kinds[0], "exact", "exact"]

    @property
    def types(self) -> list[str]:
        return [self.query.types[0], "STRING", self.query.types[1]]

    def sql(self, dialect: str) -> str:
        spread = ", ".join(f"c{n}" for n in range(1, len(self.query.kinds)))
        nulls = "INCLUDE NULLS " if self.nulls else ""
        inner = f"({self.query.sql(dialect)}) u UNPIVOT {nulls}(v FOR k IN ({spread}))"
        return f"SELECT c0, k AS c1, v AS c2 FROM {inner}"


@dataclass(frozen=True, slots=True)
class Filtered(Query):
    """The rows of a query for which a predicate over its columns holds."""

    query: Query
    predicate: str

    @property
    def kinds(self) -> list[str]:
        return self.query.kinds

    @property
    def types(self) -> list[str]:
        return self.query.types

    def sql(self, dialect: str) -> str:
        return f"SELECT * FROM ({self.query.sql(dialect)}) z WHERE {self.predicate}"


def views_below(node: Any) -> list[Viewed]:
    """The views that a query reads, as often as it does, each after those that it reads itself."""
    values = [getattr(node, part.name) for part in fields(node)]
    found = [view for value in values if isinstance(value, Query | Source) for view in views_below(value)]
    return [*found, node] if isinstance(node, Viewed) else found

"""Random expressions over what a FROM clause offers."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from tests.fuzz import sql
from tests.fuzz.sql import ONLY_SPARK, Column
from tests.fuzz.tables import DAY, FLAG, INT, LIST, LONG, MONEY, REAL, TEXT, VALUES, Schema

AGGREGATES = ("count(*)", "count", "sum", "sum", "avg", "min", "max", "count distinct", "sum distinct", "variance",
              "bool", "bits", "spark")  # fmt: skip
WINDOWS = ("row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value", "rank", "dense_rank",
           "percent_rank", "cume_dist", "frame", "frame", "running", "whole")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scope:
    """What a FROM clause offers: columns by type, as SQL text."""

    source: sql.Source
    columns: dict[str, list[str]]

    def all(self) -> list[tuple[str, str]]:
        """Every column with its type."""
        return [(dtype, c) for dtype, columns in self.columns.items() for c in columns]


@dataclass(frozen=True, slots=True)
class Expressions:
    """Draws expressions over a scope; `name` gives fresh aliases."""

    random: random.Random
    schema: Schema
    scope: Scope
    name: Callable[[str], str]

    def _chance(self, share: float) -> bool:
        return self.random.random() < share

    def _any(self, *excluded: str) -> tuple[str, str]:
        offered = [c for c in self.scope.all() if c[0] not in excluded]
        return self.random.choice(offered) if offered else (INT, "CAST(NULL AS INT)")

    def column(self, dtype: str) -> str:
        """A column of a type, or NULL."""
        offered = self.scope.columns[dtype]
        return self.random.choice(offered) if offered else f"CAST(NULL AS {dtype})"

    def key(self) -> tuple[str, str]:
        """A column to group by."""
        return self._any(LIST, REAL, FLAG)

    def literal(self, dtype: str) -> str:
        """A constant."""
        value = self.random.choice([v for v in VALUES[dtype] if v is not None and v == v])
        if dtype == TEXT:
            return "'" + str(value).replace("'", "''") + "'"
        if dtype == REAL:
            return f"CAST('{value}' AS DOUBLE)"
        if isinstance(value, date):
            return f"DATE '{value}'"
        return f"({value})"

    def predicate(self, *, subqueries: bool = False) -> str:
        """A condition, with three values."""
        dtype, column = self._any(LIST)
        kind = self.random.choice(["compare", "compare", "null", "in", "or", "columns", "not", "between"])
        if subqueries and self._chance(0.2):
            return self._matched(dtype, column)
        if dtype == FLAG and kind in ("compare", "between"):
            return column
        if kind == "null":
            return f"{column} IS {self.random.choice(['', 'NOT '])}NULL"
        if kind == "in" and dtype != REAL:
            return f"{column} {self.random.choice(['', 'NOT '])}IN ({self.literal(dtype)}, {self.literal(dtype)})"
        if kind == "columns":
            return f"{column} {self.random.choice(['<', '=', '<>'])} {self.column(dtype)}"
        if kind == "not":
            return f"NOT ({self.predicate(subqueries=subqueries)})"
        if kind == "between":
            return f"{column} BETWEEN {self.literal(dtype)} AND {self.literal(dtype)}"
        first = f"{column} {self.random.choice(['=', '<', '>=', '<>'])} {self.literal(dtype)}"
        return f"({first} OR {self.predicate(subqueries=subqueries)})" if kind == "or" else first

    def _matched(self, dtype: str, column: str) -> str:
        """A predicate that asks another table for matches."""
        tables = [t for t, columns in self.schema.items() if dtype in columns.values()]
        if not tables:
            return f"{column} IS NULL"
        table, y = self.random.choice(tables), self.name("y")
        theirs = self.random.choice([c for c, t in self.schema[table].items() if t == dtype])
        where = f" WHERE {y}.{theirs} IS NOT NULL" if self._chance(0.5) else ""
        if self._chance(0.5):
            return f"{column} {self.random.choice(['', 'NOT '])}IN (SELECT {y}.{theirs} FROM {table} {y}{where})"
        if self._chance(0.2):
            return f"{self.random.choice(['', 'NOT '])}EXISTS (SELECT 1 FROM {table} {y}{where})"
        operator = self.random.choice(["=", "=", "<", "IS NOT DISTINCT FROM"])
        match = f"SELECT 1 FROM {table} {y} WHERE {y}.{theirs} {operator} {column}"
        return f"{self.random.choice(['', 'NOT '])}EXISTS ({match})"

    def where(self) -> tuple[str, ...]:
        """The terms of a WHERE clause; may be none."""
        return tuple(self.predicate(subqueries=True) for _ in range(self.random.choice([0, 0, 0, 1, 1, 2])))

    def value(self, *, exact: bool = False, lists: bool = True) -> Column:
        """A column or an expression of it."""
        excluded = ([REAL] if exact else []) + ([] if lists else [LIST])
        dtype, column = self._any(*excluded)
        kind = "float" if dtype == REAL else "exact"
        if self._chance(0.6):
            return Column(column, kind, dtype)
        made = {
            INT: [f"{column} + 1", f"{column} * 2", f"abs({column})", f"coalesce({column}, -5)",
                  f"CASE WHEN {column} > 0 THEN 1 WHEN {column} IS NULL THEN 7 END", f"nullif({column}, 1)"],
            TEXT: [f"upper({column})", f"{column} || '-x'", f"coalesce({column}, 'none')", f"substr({column}, 1, 1)"],
            MONEY: [f"{column} + 1.25", f"coalesce({column}, 0.00)", f"-{column}"],
            REAL: [f"{column} * 2", f"coalesce({column}, CAST('4.5' AS DOUBLE))"],
            DAY: [f"coalesce({column}, DATE '2000-01-01')"],
            FLAG: [f"NOT {column}", f"coalesce({column}, FALSE)"],
            LONG: [f"{column} + 1", f"{column} % 3"],
            LIST: [column],
        }  # fmt: skip
        spelled = {  # by Spark alone, or otherwise elsewhere
            INT: [f"try_add({column}, 2147483600)", f"transform(array({column}, 2), x -> x + {column})"],
            TEXT: [f"try_cast({column} AS INT)", f"array_contains(array('a', 'it''s'), {column})"],
            LIST: [f"transform({column}, (x, at) -> concat(x, at))", f"filter({column}, x -> x IS NOT NULL)",
                   f"exists({column}, x -> x > get({column}, 0))"],
        }  # fmt: skip
        if dtype in spelled and lists and self._chance(0.3):
            return Column(f"{self.random.choice(spelled[dtype])} {ONLY_SPARK}", kind)
        return Column(self.random.choice(made[dtype]), kind, "" if dtype in (MONEY, LIST) else dtype)

    # --- aggregates -----------------------------------------------------------------------------------

    def aggregate(self) -> Column:
        """A call of an aggregate function, often with FILTER or DISTINCT."""
        where = f" FILTER (WHERE {self.predicate()})" if self._chance(0.25) else ""
        func = self.random.choice(AGGREGATES)
        if func == "count(*)":
            return Column(f"count(*){where}")
        if func == "bool":
            return Column(f"{self.random.choice(['bool_and', 'bool_or'])}({self.predicate()}){where}")
        if func == "bits":
            return Column(
                f"{self.random.choice(['bit_and', 'bit_or', 'bit_xor'])}({self.column(INT)}){where}", dtype=INT
            )
        if func == "spark":
            return self._only_spark(where)
        if func == "variance":
            return Column(f"{self.random.choice(['var_pop', 'stddev_samp'])}({self.column(INT)}){where}", "float")
        if func == "sum distinct":
            return Column(f"sum(DISTINCT {self.column(INT)}){where}")
        if func in ("sum", "avg"):
            dtype = self.random.choice([INT, INT, MONEY, REAL])
            coarse = {REAL: "float", MONEY: "coarse", INT: "float"}[dtype]
            return Column(f"{func}({self.column(dtype)}){where}", coarse if func == "avg" or dtype == REAL else "exact")
        value = self.value(lists=False)
        if func in ("count", "count distinct"):
            return Column(f"count({'DISTINCT ' if func == 'count distinct' else ''}{value.text}){where}")
        return Column(f"{func}({value.text}){where}", value.kind, value.dtype)

    def _only_spark(self, where: str) -> Column:
        """Functions with answers that only Spark defines."""
        number, (_, other) = self.column(INT), self.key()
        made = self.random.choice([
            Column(f"percentile({number}, 0.5)", "float"), Column(f"median({number})", "float"),
            Column(f"max_by({other}, {number})"), Column(f"min_by({number}, {other})"),
            Column(f"percentile_disc(0.5) WITHIN GROUP (ORDER BY {number})", "float"),
            Column(f"sort_array(collect_list({number}))"), Column(f"sort_array(collect_set({number}))"),
            Column(f"mode({number}, true)"), Column(f"try_sum({number})"), Column(f"count_if({number} > 0)"),
            Column(f"kurtosis({number})", "float"), Column(f"regr_count({number}, {number})"),
        ])  # fmt: skip
        return Column(f"{made.text}{where if 'WITHIN' not in made.text else ''} {ONLY_SPARK}", made.kind)

    def having(self) -> str:
        """A condition over groups."""
        table = self.random.choice(list(self.schema))
        asked = f"count(*) >= (SELECT count(*) - 6 FROM {table})"
        return self.random.choice(["count(*) > 1", "count(*) < 3", f"sum({self.column(INT)}) >= 1", asked])

    # --- windows and scalar subqueries ----------------------------------------------------------------

    def window(self) -> Column:
        """A function over a window; where the order leaves ties that matter, only Spark is asked."""
        _, key = self.key()
        partition = f"PARTITION BY {key}" if self._chance(0.8) else ""
        total = self._chance(0.6)
        columns = [c for t, c in self.scope.all() if t != LIST] if total else [self.column(INT)]
        total = total and not self.scope.columns[LIST]
        self.random.shuffle(columns)
        nulls = self.random.choice(["NULLS FIRST", "NULLS LAST"])
        order = "ORDER BY " + ", ".join(f"{c} {self.random.choice(['', 'DESC'])} {nulls}" for c in columns)
        func = self.random.choice(WINDOWS)
        over = f"OVER ({partition} {order})"
        number = self.column(INT)
        marked = "" if total else f" {ONLY_SPARK}"
        if func == "row_number":
            return Column(f"row_number() {over}{marked}")
        if func == "ntile":
            return Column(f"ntile({self.random.randint(1, 3)}) {over}{marked}")
        if func in ("lag", "lead"):
            return Column(f"{func}({number}, {self.random.randint(0, 2)}) {over}{marked}")
        if func in ("first_value", "last_value", "nth_value"):
            more = f", {self.random.randint(1, 3)}" if func == "nth_value" else ""
            frame = f"OVER ({partition} {order} {self._rows()})"
            return Column(f"{func}({number}{more}) {frame}{marked}")
        if func in ("rank", "dense_rank", "percent_rank", "cume_dist"):
            return Column(
                f"{func}() {over}", "float" if ("_rank" in func and func != "dense_rank") or "dist" in func else "exact"
            )
        call = self.random.choice([f"sum({number})", f"count({number})", "count(*)", f"min({number})", f"max({number})",
                                   f"avg({number})"])  # fmt: skip
        kind = "float" if call.startswith("avg") else "exact"
        if func == "frame":
            return Column(f"{call} OVER ({partition} {order} {self._rows()}){marked}", kind)
        if func == "running":
            return Column(f"{call} {over}", kind)
        return Column(f"{call} OVER ({partition})", kind)

    def _rows(self) -> str:
        bounds = [
            "UNBOUNDED PRECEDING",
            "2 PRECEDING",
            "1 PRECEDING",
            "CURRENT ROW",
            "1 FOLLOWING",
            "UNBOUNDED FOLLOWING",
        ]
        lower, upper = sorted((self.random.randint(0, 4), self.random.randint(1, 5)))
        return f"ROWS BETWEEN {bounds[lower]} AND {bounds[upper]}"

    def scalar(self) -> Column:
        """A subquery with one row and one column, a number."""
        table, y = self.random.choice(list(self.schema)), self.name("y")
        mine = [c for c, t in self.schema[table].items() if t == INT]
        number = f"{y}.{self.random.choice(mine)}"
        call = self.random.choice(
            [f"max({number})", f"min({number})", f"sum({number})", "count(*)", f"count(DISTINCT {number})"]
        )
        if self._chance(0.2):
            down = self.random.choice(["ASC", "DESC"])
            return Column(f"(SELECT {number} FROM {table} {y} ORDER BY {number} {down} NULLS LAST LIMIT 1)")
        if self._chance(0.5):
            dtype, column = self._any(LIST, REAL)
            theirs = [c for c, t in self.schema[table].items() if t == dtype]
            if theirs:
                return Column(f"(SELECT {call} FROM {table} {y} WHERE {y}.{self.random.choice(theirs)} = {column})")
        return Column(f"(SELECT {call} FROM {table} {y})")  # fmt: skip

"""Random expressions over what a FROM clause offers."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyspark

from tests.fuzz import calls, sql
from tests.fuzz.own_functions import AGGREGATES as OWN_AGGREGATES
from tests.fuzz.sql import ONLY_SPARK, OWN, Column
from tests.fuzz.tables import (
    BYTES,
    CLOCK,
    DAY,
    FLAG,
    FOLDED,
    INT,
    LIST,
    LONG,
    MAP,
    MOMENT,
    MONEY,
    PAIR,
    QUARTERS,
    REAL,
    SPAN,
    TEXT,
    UNSORTED,
    VALUES,
    Keys,
    Schema,
)  # fmt: skip

AGGREGATES = ("count(*)", "count", "sum", "sum", "avg", "min", "max", "count distinct", "sum distinct", "variance",
              "bool", "bits", "spark", "spark")  # fmt: skip
WINDOWS = ("row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value", "rank", "dense_rank",
           "percent_rank", "cume_dist", "frame", "frame", "range", "range", "running", "whole")  # fmt: skip

OF_SEVERAL = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 2)
"""Whether Spark has `max_by` of several rows."""

MARK = f" {ONLY_SPARK}"

RANGES = {INT: "{}", LONG: "{}", QUARTERS: "{}.25", DAY: "INTERVAL '{}' DAY",
          CLOCK: "INTERVAL '{}' HOUR", MOMENT: "INTERVAL '{}' HOUR"}  # fmt: skip
"""Types that a RANGE frame may be ordered by, and how far its bounds are away."""


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
    """Draws expressions over a scope; `name` gives fresh aliases, `keys` are those of tables that have one."""

    random: random.Random
    schema: Schema
    scope: Scope
    name: Callable[[str], str]
    keys: Keys = field(default_factory=dict)

    def _chance(self, share: float) -> bool:
        return self.random.random() < share

    def _any(self, *excluded: str) -> tuple[str, str]:
        offered = [c for c in self.scope.all() if c[0] not in excluded]
        return self.random.choice(offered) if offered else (INT, "CAST(NULL AS INT)")

    def column(self, dtype: str) -> str:
        """A column of a type, or NULL."""
        offered = self.scope.columns[dtype]
        return self.random.choice(offered) if offered else null(dtype)

    def key(self) -> tuple[str, str]:
        """A column to group by."""
        return self._any(LIST, REAL, FLAG, MAP)

    def literal(self, dtype: str) -> str:
        """A constant."""
        return literal(dtype, self.random.choice([v for v in VALUES[dtype] if v is not None and v == v]))

    def predicate(self, *, subqueries: bool = False) -> str:
        """A condition, with three values."""
        dtype, column = self._any(LIST, MAP)
        kinds = ["compare", "compare", "null", "in", "or", "and", "columns", "not", "between", "like"]
        kind = self.random.choice(kinds)
        if dtype == PAIR and kind not in ("null", "not", "or", "and"):
            other = self.column(PAIR) if kind == "columns" else self.literal(PAIR)
            return f"{column} {self.random.choice(['=', '<>'])} {other}"
        if subqueries and dtype != PAIR and self._chance(0.2):
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
        if kind == "like" and dtype in (TEXT, FOLDED):
            return f"{column} {self.random.choice(['', 'NOT '])}LIKE '{self.random.choice(['a%', '%s', '_', '%t_s'])}'"
        operators = ["=", "<>"] if dtype == PAIR else ["=", "<", ">=", "<>"]
        first = f"{column} {self.random.choice(operators)} {self.literal(dtype)}"
        if kind not in ("or", "and"):
            return first
        return f"({first} {kind.upper()} {self.predicate(subqueries=subqueries)})"

    def _matched(self, dtype: str, column: str) -> str:
        """A predicate that asks another table for matches."""
        tables = [t for t, columns in self.schema.items() if dtype in columns.values()]
        if not tables:
            return f"{column} IS NULL"
        table, y = self.random.choice(tables), self.name("y")
        theirs = self.random.choice([c for c, t in self.schema[table].items() if t == dtype])
        where = f" WHERE {y}.{theirs} IS NOT NULL" if self._chance(0.5) else ""
        if self._chance(0.5):
            other, ours = self._beside(table)
            word = self.random.choice(["", "NOT "])
            if other and self._chance(0.2):
                return f"({column}, {ours}) {word}IN (SELECT {y}.{theirs}, {y}.{other} FROM {table} {y}{where}){MARK}"
            if other and self._chance(0.3):
                where = f" WHERE {y}.{other} {self.random.choice(['=', '<', 'IS NOT DISTINCT FROM'])} {ours}"
            return f"{column} {word}IN (SELECT {y}.{theirs} FROM {table} {y}{where})"
        if self._chance(0.2):
            return f"{self.random.choice(['', 'NOT '])}EXISTS (SELECT 1 FROM {table} {y}{where})"
        operator = self.random.choice(["=", "=", "<", "IS NOT DISTINCT FROM"])
        match = f"SELECT 1 FROM {table} {y} WHERE {y}.{theirs} {operator} {column}"
        return f"{self.random.choice(['', 'NOT '])}EXISTS ({match})"

    def _beside(self, table: str) -> tuple[str, str]:
        """A column of a table, and one of ours of its type; empty where there is none."""
        pairs = [(c, ours) for c, t in self.schema[table].items() if t not in (*UNSORTED, REAL)
                 for ours in self.scope.columns[t]]  # fmt: skip
        return self.random.choice(pairs) if pairs else ("", "")

    def matched(self) -> str:
        """A predicate that asks another table for matches."""
        return self._matched(*self._any(*UNSORTED, FLAG, REAL))

    def told(self) -> Column:
        """Such a predicate as a value. Where DuckDB says unknown, Spark says no: only EXISTS is the same."""
        predicate = self.matched()
        return Column(f"({predicate}){MARK if ' IN (' in predicate else ''}", dtype=FLAG)

    def where(self) -> tuple[str, ...]:
        """The terms of a WHERE clause; may be none."""
        return tuple(self.predicate(subqueries=True) for _ in range(self.random.choice([0, 0, 0, 1, 1, 2])))

    def value(self, *, exact: bool = False, sorts: bool = False) -> Column:
        """A column or an expression of it; `sorts` where it is to be compared or grouped by."""
        excluded = ([REAL] if exact else []) + (list(UNSORTED) if sorts else [])
        dtype, column = self._any(*excluded)
        if self._chance(0.6):
            return Column(column, "float" if dtype == REAL else "exact", dtype)
        offered = calls.only_spark(dtype, column) if self._chance(0.16) else calls.alike(dtype, column)
        offered = [c for c in offered if not sorts or (c.dtype and c.dtype not in UNSORTED)]
        return self.random.choice(offered or [Column(column, "float" if dtype == REAL else "exact", dtype)])

    # --- aggregates -----------------------------------------------------------------------------------

    def aggregate(self) -> Column:
        """A call of an aggregate function, often with FILTER or DISTINCT."""
        where = f" FILTER (WHERE {self.predicate()})" if self._chance(0.25) else ""
        func = self.random.choice(AGGREGATES)
        if func == "count(*)":
            return Column(f"count(*){where}", dtype=LONG)
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
            return Column(f"sum(DISTINCT {self.column(INT)}){where}", dtype=LONG)
        if func in ("sum", "avg"):
            return self._total(func, where)
        value = self.value(sorts=True)
        if func in ("count", "count distinct"):
            return Column(f"count({'DISTINCT ' if func == 'count distinct' else ''}{value.text}){where}", dtype=LONG)
        return Column(f"{func}({value.text}){where}", value.kind, value.dtype)

    def _total(self, func: str, where: str) -> Column:
        """A sum or an average; those of quarters are exact, whatever the order of addition."""
        dtype = self.random.choice([INT, INT, MONEY, REAL, *(t for t in (QUARTERS, SPAN) if self.scope.columns[t])])
        call = f"{func}({self.column(dtype)}){where}"
        if dtype == SPAN:
            return Column(f"{call} {ONLY_SPARK}")
        if func == "avg" or dtype == REAL:
            return Column(call, "coarse" if dtype == MONEY else "float")
        return Column(call, dtype={INT: LONG, QUARTERS: QUARTERS}.get(dtype, ""))

    def own_aggregate(self) -> Column:
        """A call of a user-defined aggregate function."""
        return Column(f"{OWN}{self.random.choice(OWN_AGGREGATES)}({self.column(INT)}) {ONLY_SPARK}")

    def _only_spark(self, where: str) -> Column:
        """Functions with answers that only Spark defines."""
        number, text, (_, other) = self.column(INT), self.column(TEXT), self._any(*UNSORTED, REAL, FLAG, FOLDED)
        two = f"{number}, {self.column(INT)}"
        months = f"make_ym_interval(0, {number} % 99)"
        # Not corr, which fails where all values are the same: a division by zero of Spark's own.
        of_two = ("covar_pop", "covar_samp", *(f"regr_{x}" for x in ("avgx", "slope", "intercept", "r2", "sxx", "sxy")))
        made = self.random.choice([
            Column(f"percentile({number}, 0.5){where}", "float"), Column(f"median({number}){where}", "float"),
            Column(f"percentile({number}, array(0.25, 0.75)){where}"), Column(f"approx_count_distinct({other}){where}"),
            Column(f"max_by({other}, {number}){where}"), Column(f"min_by({number}, {other}){where}"),
            Column(f"max_by({other}, {number}{', 2' if OF_SEVERAL else ''}){where}"),
            Column(f"percentile_disc(0.5) WITHIN GROUP (ORDER BY {number})", "float"),
            Column(f"sort_array(collect_list({number}){where})"), Column(f"sort_array(collect_set({number}){where})"),
            Column(f"listagg({text}, '|') WITHIN GROUP (ORDER BY {number} DESC)"),
            Column(f"listagg(DISTINCT {text}, '|')"),
            Column(f"mode({number}, true){where}"), Column(f"try_sum({number}){where}"),
            Column(f"count_if({number} > 0){where}"), Column(f"kurtosis({number}){where}", "float"),
            Column(f"regr_count({two}){where}"),
            *(Column(f"{func}({two}){where}", "float") for func in self.random.sample(of_two, 3)),
            Column(f"CAST({self.random.choice(['sum', 'min', 'max'])}({months}){where} AS STRING)", dtype=TEXT),
        ])  # fmt: skip
        return Column(f"{made.text} {ONLY_SPARK}", made.kind, made.dtype)

    def aggregates(self) -> tuple[Column, ...]:
        """Some calls. Spark fails over an ordered listagg beside a DISTINCT, as it takes the order for a column."""
        drawn = [self.aggregate() for _ in range(self.random.randint(1, 4))]
        if any("DISTINCT" in call.text for call in drawn):
            drawn = [call for call in drawn if "listagg(" not in call.text or "WITHIN GROUP" not in call.text]
        return tuple(drawn)

    def having(self) -> str:
        """A condition over groups."""
        table = self.random.choice(list(self.schema))
        asked = f"count(*) >= (SELECT count(*) - 6 FROM {table})"
        number, y = f"max({self.column(INT)})", self.name("y")
        found = f"{number} {self.random.choice(['', 'NOT '])}IN (SELECT {y}.{self._number_of(table)} FROM {table} {y})"
        there = f"{self.random.choice(['', 'NOT '])}EXISTS (SELECT 1 FROM {table} {y})"
        return self.random.choice(["count(*) > 1", "count(*) < 3", f"sum({self.column(INT)}) >= 1", asked, found,
                                   f"({there} OR count(*) > 1)"])  # fmt: skip

    # --- windows and scalar subqueries ----------------------------------------------------------------

    def window(self) -> Column:
        """A function over a window; where the order leaves ties that matter, only Spark is asked."""
        _, key = self.key()
        partition = f"PARTITION BY {key}" if self._chance(0.8) else ""
        total = self._chance(0.6)
        columns = [c for t, c in self.scope.all() if t not in UNSORTED] if total else [self.column(INT)]
        total = total and bool(columns) and not any(self.scope.columns[t] for t in UNSORTED)
        self.random.shuffle(columns)
        nulls = self.random.choice(["NULLS FIRST", "NULLS LAST"])
        order = "ORDER BY " + ", ".join(f"{c} {self.random.choice(['', 'DESC'])} {nulls}" for c in columns)
        func = self.random.choice(WINDOWS)
        over = f"OVER ({partition} {order})"
        number = self.column(QUARTERS if self.scope.columns[QUARTERS] and self._chance(0.4) else INT)
        marked = "" if total else f" {ONLY_SPARK}"
        if func == "row_number":
            return Column(f"row_number() {over}{marked}")
        if func == "ntile":
            return Column(f"ntile({self.random.randint(1, 3)}) {over}{marked}")
        skipping, marked_so = (" IGNORE NULLS", f" {ONLY_SPARK}") if self._chance(0.2) else ("", marked)
        if func in ("lag", "lead"):
            otherwise = f", {self.random.choice(['-9', number])}" if self._chance(0.3) else ""
            return Column(f"{func}({number}, {self.random.randint(0, 2)}{otherwise}){skipping} {over}{marked_so}")
        if func in ("first_value", "last_value", "nth_value"):
            more = f", {self.random.randint(1, 3)}" if func == "nth_value" else ""
            frame = f"OVER ({partition} {order} {self._rows()})"
            return Column(f"{func}({number}{more}){skipping} {frame}{marked_so}")
        if func in ("rank", "dense_rank", "percent_rank", "cume_dist"):
            return Column(
                f"{func}() {over}", "float" if ("_rank" in func and func != "dense_rank") or "dist" in func else "exact"
            )
        call = self.random.choice([f"sum({number})", f"count({number})", "count(*)", f"min({number})", f"max({number})",
                                   f"avg({number})"])  # fmt: skip
        kind = "float" if call.startswith("avg") else "exact"
        if func == "range":
            return self._range(call, kind, partition)
        if func == "frame":
            return Column(f"{call} OVER ({partition} {order} {self._rows()}){marked}", kind)
        if func == "running":
            return Column(f"{call} {over}", kind)
        if self._chance(0.1):
            return Column(f"{OWN}spread({self.column(INT)}) OVER ({partition}) {ONLY_SPARK}")
        return Column(f"{call} OVER ({partition})", kind)

    def _range(self, call: str, kind: str, partition: str) -> Column:
        """A frame of the rows that are not too far away in the order; peers are treated alike."""
        dtype = self.random.choice([t for t in RANGES if self.scope.columns[t]] or [INT])
        below, above = (RANGES[dtype].format(self.random.randint(0, 3)) for _ in range(2))
        lower = self.random.choice(["UNBOUNDED PRECEDING", f"{below} PRECEDING", f"{below} PRECEDING", "CURRENT ROW"])
        upper = self.random.choice(["UNBOUNDED FOLLOWING", f"{above} FOLLOWING", f"{above} FOLLOWING", "CURRENT ROW"])
        way = f"{self.random.choice(['', 'DESC'])} NULLS {self.random.choice(['FIRST', 'LAST'])}"
        frame = f"ORDER BY {self.column(dtype)} {way} RANGE BETWEEN {lower} AND {upper}"
        return Column(f"{call} OVER ({partition} {frame})", kind)

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

    def scalar(self, *, number: bool = False) -> Column:
        """A subquery with one row and one column; with `number` it can be compared with numbers."""
        table, y = self.random.choice(list(self.schema)), self.name("y")
        if table in self.keys and self._chance(0.4):
            return self._looked_up(table, y, number=number)
        dtype, column = self._any(*UNSORTED, REAL)
        theirs = [c for c, t in self.schema[table].items() if t == dtype]
        if not theirs or self._chance(0.5):
            return self.number()
        call, match = self._call(table, y), f"{y}.{self.random.choice(theirs)} = {column}"
        return Column(f"(SELECT {call} FROM {table} {y} WHERE {match})")

    def number(self) -> Column:
        """A subquery that gives one number and reads nothing of the rows around it."""
        table, y = self.random.choice(list(self.schema)), self.name("y")
        if self._chance(0.7):
            return Column(f"(SELECT {self._call(table, y)} FROM {table} {y})")
        number = f"{y}.{self._number_of(table)}"
        down = self.random.choice(["ASC", "DESC"])
        return Column(f"(SELECT {number} FROM {table} {y} ORDER BY {number} {down} NULLS LAST LIMIT 1)")

    def beside(self) -> sql.Select:
        """A subquery for LATERAL: of the rows of a table that match ours, the aggregates or themselves."""
        table, y = self.random.choice(list(self.schema)), self.name("y")
        other, ours = self._beside(table)
        where = (f"{y}.{other} = {ours}",) if other else ()
        number = f"{y}.{self._number_of(table)}"
        if self._chance(0.5):
            columns: tuple[Column, ...] = (Column(f"max({number})", dtype=INT), Column("count(*)", dtype=LONG))
        else:
            text = next((c for c, t in self.schema[table].items() if t == TEXT), None)
            columns = (Column(number, dtype=INT), *((Column(f"{y}.{text}", dtype=TEXT),) if text else ()))
        return sql.Select(columns[: self.random.randint(1, 2)], sql.Table(table, y), where)

    def _looked_up(self, table: str, y: str, *, number: bool) -> Column:
        """A cell of the row that a key names: there is one at most, so that nothing need be aggregated."""
        offered = [c for c in self.schema[table].items() if (c[1] == INT if number else c[1] != LIST)]
        column, dtype = self.random.choice(offered)
        types = self.schema[table]
        match = " AND ".join(f"{y}.{key} = {self.column(types[key])}" for key in self.keys[table])
        mark = f" {ONLY_SPARK}" if dtype in calls.MARKED else ""
        return Column(f"(SELECT {y}.{column} FROM {table} {y} WHERE {match}){mark}",
                      "float" if dtype == REAL else "exact", dtype)  # fmt: skip

    def _number_of(self, table: str) -> str:
        return self.random.choice([c for c, t in self.schema[table].items() if t == INT])

    def _call(self, table: str, y: str) -> str:
        number = f"{y}.{self._number_of(table)}"
        return self.random.choice(
            [f"max({number})", f"min({number})", f"sum({number})", "count(*)", f"count(DISTINCT {number})"]
        )


def null(dtype: str) -> str:
    """NULL of a type; only Spark knows all of their names."""
    mark = f" {ONLY_SPARK}" if dtype in (*calls.MARKED, SPAN, PAIR, LIST) else ""
    return f"CAST(NULL AS {dtype}){mark}"


def literal(dtype: str, value: Any) -> str:
    """A value as SQL text; only Spark is asked about some."""
    if dtype in (TEXT, FOLDED):
        return "'" + str(value).replace("'", "''") + "'"
    if dtype in (REAL, QUARTERS):
        return f"CAST('{value}' AS DOUBLE)"
    if dtype == DAY:
        return f"DATE '{value}'"
    if dtype == MOMENT:
        return f"TIMESTAMP '{value:%Y-%m-%d %H:%M:%S.%f}Z' {ONLY_SPARK}"
    if dtype == CLOCK:
        return f"CAST('{value}' AS TIMESTAMP_NTZ)"
    if dtype == BYTES:
        return f"unhex('{value.hex()}')"
    if dtype == SPAN:
        return f"make_dt_interval({value.days}, 0, 0, {value.seconds}.{value.microseconds:06}) {ONLY_SPARK}"
    if dtype == PAIR:
        x, y = (null(t) if v is None else literal(t, v) for t, v in zip((INT, TEXT), value, strict=True))
        return f"named_struct('x', {x}, 'y', {y}) {ONLY_SPARK}"
    return f"({value})"

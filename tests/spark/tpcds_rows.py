"""TPC-DS rows that meet the queries' conditions, at a scale at which generated rows hardly ever do.

At scale factor 0.01 a third of the queries find nothing: no item of that manufacturer, no store in that county. A test
over empty results proves little. So rows are dealt out to the queries, and made to fit: each row of a small table takes
the constants that its query compares with, and the facts of one ticket refer to rows that their query accepts. What a
query demands is read from its text; conditions that are not understood are left to chance. DuckDB does the rewriting.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot import exp, parse_one
from sqlglot.optimizer.simplify import simplify

from slackwater.bench.tpcds_data import FACTS, TpcdsData

KEPT = ("date_dim", "time_dim", "customer_demographics", "household_demographics", "income_band")
"""Calendars and cross products: they hold every combination as they are."""

FEW = ("store", "warehouse", "call_center", "web_site", "web_page", "reason", "promotion")
"""Tables that have one row or three at this scale; each gets COPIES rows."""

COPIES = 24
TICKET = {"store_sales": "ss_ticket_number", "store_returns": "sr_ticket_number", "catalog_sales": "cs_order_number",
          "catalog_returns": "cr_order_number", "web_sales": "ws_order_number", "web_returns": "wr_order_number",
          "inventory": "inv_item_sk", "customer": "c_customer_sk"}  # fmt: skip
"""By which column the rows of a table are dealt out, so that a sale and its return go to the same query."""

_COMPARED = (exp.EQ, exp.In, exp.Between, exp.GT, exp.GTE, exp.LT, exp.LTE)


@dataclass(slots=True)
class Demands:
    """What one query demands, where it can be told.

    Attributes:
        values: for each table, for each column, constants that its conditions accept.
        accepted: for each column that refers to another table, conditions on the rows that it may refer to.
    """

    values: dict[str, dict[str, list[Any]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    accepted: dict[str, list[tuple[str, str, str]]] = field(default_factory=lambda: defaultdict(list))


def demands(text: str, tables: dict[str, str]) -> Demands:
    """Read a query's conditions; `tables` says to which table a column belongs."""
    found = Demands()
    for select in parse_one(text, read="duckdb").find_all(exp.Select):
        terms = list(_terms(select))
        for term in terms:
            for column, values in _constants(term):
                if column.name in tables:
                    found.values[tables[column.name]][column.name] += values
        for term in terms:
            for near, far in _links(term):
                if near.name not in tables or far.name not in tables or tables[near.name] == tables[far.name]:
                    continue
                table = tables[far.name]
                own = [t for t in terms if _only_about(t, far, tables)]
                condition = " AND ".join(f"({_unqualified(t)})" for t in own) or "TRUE"
                if own or table == "customer":
                    found.accepted[near.name].append((table, far.name, condition))
    return found


def _terms(select: exp.Select) -> Iterator[exp.Expression]:
    conditions = [w.this for w in [select.args.get("where")] if w is not None]
    conditions += [j.args["on"] for j in select.args.get("joins") or () if j.args.get("on") is not None]
    for condition in conditions:
        tree = simplify(condition.copy())
        yield from (t.unnest() for t in (tree.flatten() if isinstance(tree, exp.And) else [tree]))


def _constants(term: exp.Expression) -> Iterator[tuple[exp.Column, list[Any]]]:
    """Columns that are compared with constants anywhere in a condition, and constants that fit."""
    for node in term.find_all(*_COMPARED):
        if node.find_ancestor(exp.Not, exp.Select) or not isinstance(node.this, exp.Column):
            continue
        if isinstance(node, exp.In):
            parts = node.expressions
        elif isinstance(node, exp.Between):
            parts = [node.args["low"], node.args["high"]]
        else:
            parts = [node.expression]
        values = [_value(part) for part in parts]
        if values and all(v is not None for v in values):
            step = {exp.GT: 1, exp.LT: -1}.get(type(node), 0)
            yield node.this, [v + step if step and not isinstance(v, str) else v for v in values]


def _value(node: exp.Expression) -> Any:
    node = node.unnest()
    if isinstance(node, exp.Cast):
        return _value(node.this)
    if isinstance(node, exp.Neg):
        return -_value(node.this)
    if not isinstance(node, exp.Literal):
        return None
    return node.this if node.is_string else Decimal(node.this)


def _links(term: exp.Expression) -> Iterator[tuple[exp.Column, exp.Column]]:
    if isinstance(term, exp.EQ) and isinstance(term.this, exp.Column) and isinstance(term.expression, exp.Column):
        yield term.this, term.expression
        yield term.expression, term.this


def _only_about(term: exp.Expression, far: exp.Column, tables: dict[str, str]) -> bool:
    """Whether a condition reads nothing but the row that a column belongs to."""
    if term.find(exp.Subquery, exp.Exists, exp.Select):
        return False
    columns = list(term.find_all(exp.Column))
    return bool(columns) and all(
        tables.get(c.name) == tables[far.name] and (not c.table or not far.table or c.table == far.table)
        for c in columns
    )


def _unqualified(term: exp.Expression) -> str:
    bare = term.copy()
    for column in bare.find_all(exp.Column):
        column.set("table", None)
    return bare.sql(dialect="duckdb")


class Dealer:
    """Rewrites the tables in a DuckDB of its own."""

    def __init__(self, data: TpcdsData) -> None:
        self._duck = duckdb.connect()
        self._columns = data.columns
        for table in self._columns:
            self._duck.execute(f"CREATE TABLE {table} AS FROM read_parquet('{data.file(table)}')")
        owners = {column: table for table, columns in self._columns.items() for column in columns}
        self._wanted = {number: demands(text, owners) for number, text in data.texts.items()}
        self._accepted: dict[tuple[str, str, str], list[int]] = {}

    def tables(self) -> dict[str, pa.Table]:
        """All tables, those that are referred to first."""
        described = [t for t in self._columns if t not in KEPT and t not in FACTS and t != "customer"]
        for table in described:
            if table in FEW:
                self._copy(table)
            self._deal(table, next(iter(self._columns[table])), by_fit=True)
        for table in ("customer", *FACTS):
            self._deal(table, TICKET[table], by_fit=False)
        self._shorten()
        return {t: self._duck.sql(f"FROM {t}").to_arrow_table() for t in self._columns}

    def _shorten(self) -> None:
        """Leave the days and times out of the calendars that no fact can refer to: two centuries of them."""
        self._duck.execute("DELETE FROM date_dim WHERE d_year NOT BETWEEN 1997 AND 2004")
        times = [(t, c) for t in FACTS for c in self._columns[t] if c.endswith("time_sk")]
        used = " UNION ALL ".join(f"SELECT {c} AS used FROM {t} WHERE {c} IS NOT NULL" for t, c in times)
        self._duck.execute(f"DELETE FROM time_dim WHERE t_time_sk NOT IN ({used})")

    def _copy(self, table: str) -> None:
        key = next(iter(self._columns[table]))
        self._duck.execute(
            f"CREATE OR REPLACE TABLE {table} AS SELECT t.* REPLACE (CAST(n AS INTEGER) AS {key}) FROM range(1, "
            f"{COPIES + 1}) r(n), (SELECT *, row_number() OVER (ORDER BY {key}) - 1 AS at_ FROM {table}) t "
            f"WHERE t.at_ = n % (SELECT count(*) FROM {table})"
        )
        self._duck.execute(f"ALTER TABLE {table} DROP COLUMN at_")

    def _deal(self, table: str, key: str, *, by_fit: bool) -> None:
        """Give each query its share of the rows of a table, and make most of them fit."""
        among = [n for n, d in self._wanted.items() if not by_fit or d.values.get(table)]
        if not among:
            return
        cells = []
        for column, kind in self._columns[table].items():
            cases = []
            for at, number in enumerate(among):
                fitting = self._fitting(table, column, kind, number)
                if column == key or not fitting:
                    continue
                listed = ", ".join(fitting[:200])
                cases.append(
                    f"WHEN {at} THEN [{listed}][1 + ({self._draw(table, key, column)} % {len(fitting[:200])})]"
                )
            if not cases:
                continue
            dealt = f"CASE {key} % {len(among)} {' '.join(cases)} END"
            hit = f"{_hash(key)} % 5 < 4"
            cells.append(f"CAST(coalesce(CASE WHEN {hit} THEN {dealt} END, {column}) AS {_duck(kind)}) AS {column}")
        if cells:
            self._duck.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT * REPLACE ({', '.join(cells)}) FROM {table}")

    def _draw(self, table: str, key: str, column: str) -> str:
        """A number to choose by. All rows of a ticket have the same date, customer and place, but not the same item."""
        item = next((c for c in self._columns[table] if c.endswith("_item_sk") and c != key), None)
        salt = sum(map(ord, column))
        alone = table not in FACTS or (column.endswith("_sk") and column != item) or item is None
        return _hash(f"{key} * 31 + {salt}" if alone else f"{key} * 31 + coalesce({item}, 0) * 1009 + {salt}")

    def _fitting(self, table: str, column: str, kind: str, number: int) -> list[str]:
        """The values that fit a query in one column, as SQL."""
        wanted = self._wanted[number]
        found = [i for link in wanted.accepted.get(column, ()) for i in self._keys(*link, number)]
        if found:
            return [str(i) for i in found]
        return [f"CAST({_text(v)} AS {_duck(kind)})" for v in wanted.values.get(table, {}).get(column, ())]

    def _keys(self, table: str, key: str, condition: str, number: int) -> list[int]:
        """The rows of a table that a query accepts; of the customers, only its own."""
        if table == "customer":
            condition = f"({condition}) AND {key} % {len(self._wanted)} = {list(self._wanted).index(number)}"
        slot = (table, key, condition)
        if slot not in self._accepted:
            sql = f"SELECT {key} FROM {table} WHERE {condition} ORDER BY hash({key}) LIMIT 50"
            try:
                self._accepted[slot] = [row[0] for row in self._duck.execute(sql).fetchall() if row[0] is not None]
            except duckdb.Error:
                self._accepted[slot] = []
        return self._accepted[slot]


def _hash(of: str) -> str:
    return f"CAST(hash({of}) >> 20 AS BIGINT)"


def _text(value: Any) -> str:
    return str(value) if isinstance(value, Decimal) else "'" + str(value).replace("'", "''") + "'"


def _duck(kind: str) -> str:
    return {"INT": "INTEGER", "STRING": "VARCHAR"}.get(kind, kind)

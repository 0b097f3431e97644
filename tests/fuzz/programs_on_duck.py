"""The toy engine with another executor: the SQL that is meant for Spark, put into DuckDB's words and run there.

Thousands of generated programs can so be run as they are rendered, without starting Spark. What differs between the two
is translated here; the data has no −0.0, which DuckDB takes for another group than 0.0.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

from slackwater.algebra import nodes as n
from slackwater.algebra.first_rows import REFILL, FirstRowsGone
from slackwater.algebra.interpreter import Bag, Catalogue
from slackwater.execution.render import render, table_view
from tests.property.plans import TABLES
from tests.property.refresher import Refresher

_TYPES = {"int": "INTEGER", "string": "VARCHAR", "": "INTEGER"}
_MACROS = (
    "raise_error(x) AS error(x)",
    "array_repeat(x, n) AS CASE WHEN n IS NULL THEN NULL WHEN n > 0 THEN"
    " list_transform(range(CAST(n AS BIGINT)), lambda i: x) ELSE [] END",
)


@cache
def _database() -> duckdb.DuckDBPyConnection:
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # it says of every hint that DuckDB has none
    database = duckdb.connect()
    database.execute("SET threads = 1")
    database.execute("SET order_by_non_integer_literal = true")  # a constant in ORDER BY means nothing to Spark
    for macro in _MACROS:
        database.execute(f"CREATE MACRO {macro}")
    return database


class DuckRefresher(Refresher):
    """Runs its programs as SQL on DuckDB."""

    def evaluate(self, node: n.Rel, cat: Catalogue) -> Bag:
        """The rows of the node's SELECT statement."""
        for leaf in node.walk():
            if isinstance(leaf, n.Scan):
                columns = [(f"c{i}", _type(t)) for i, t in enumerate(TABLES[leaf.table])]
                _load(table_view(leaf.table, leaf.at), columns, cat.tables[leaf.table, leaf.at], leaf.weighted)
            elif isinstance(leaf, n.Input):
                columns = [(f.name, _type(f.dtype)) for f in leaf.fields]
                _load(leaf.name, columns, cat.inputs[leaf.name], leaf.weighted)
        try:
            rows = _database().execute(in_duckdb(render(node))).fetchall()
        except duckdb.Error as error:
            raise (FirstRowsGone if REFILL in str(error) else error) from error
        width = len(node.schema)
        return Bag((tuple(row[:width]), row[-1] if node.weighted else 1) for row in rows)


def _type(dtype: str) -> str:
    return _TYPES.get(dtype, dtype.upper())


def _load(name: str, columns: list[tuple[str, str]], bag: Bag, weighted: bool) -> None:
    """A table with each row as often as its weight says; the weight is +1 or −1, as it is on Spark."""
    made = columns + ([("_w", "INTEGER")] if weighted else [])
    rows: list[tuple[Any, ...]] = []
    for row, weight in bag.items():
        assert weighted or weight > 0, f"{name} should have no deletes"
        rows += [(*row, 1 if weight > 0 else -1)[: len(made)] if made else (1,)] * abs(weight)
    made = made or [("_", "INTEGER")]
    listed = ", ".join(f'"{column}" {dtype}' for column, dtype in made)
    _database().execute(f'CREATE OR REPLACE TEMP TABLE "{name}" ({listed})')
    if rows:
        _database().executemany(f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(made))})', rows)


# --- translation -----------------------------------------------------------------------------------------------------


def in_duckdb(spark: str) -> str:
    """Spark's SQL in DuckDB's words."""
    tree = sqlglot.parse_one(spark, read="spark")
    for select in list(tree.find_all(exp.Select)):
        views = select.args.get("laterals") or []
        select.set("laterals", [])
        for view in views:
            select.append("joins", _lateral(view))
    for series in tree.find_all(exp.GenerateSeries):
        series.set("end", exp.cast(series.args["end"].copy(), "BIGINT"))
    return tree.sql("duckdb")


def _lateral(view: exp.Lateral) -> exp.Expression:
    """LATERAL VIEW as a join."""
    alias = view.args["alias"]
    names = [column.name for column in alias.columns]
    made = f"({_generated(view.this, names)}) {alias.this.name}({', '.join(names)})"
    join = f"LEFT JOIN LATERAL {made} ON TRUE" if view.args.get("outer") else f"CROSS JOIN LATERAL {made}"
    found: exp.Expression = sqlglot.parse_one(f"SELECT 1 FROM a {join}", read="duckdb").args["joins"][0]
    return found


def _generated(generator: exp.Expression, names: list[str]) -> str:
    if isinstance(generator, exp.Explode | exp.Posexplode):
        array = generator.this.sql("duckdb")
        place = f"generate_subscripts({array}, 1) - 1, " if isinstance(generator, exp.Posexplode) else ""
        return f"SELECT {place}unnest({array})"
    structs = (generator.expressions[0] if isinstance(generator, exp.Anonymous) else generator.this).expressions
    return " UNION ALL ".join(
        "SELECT " + ", ".join(f"{_cell(c)} AS {name}" for c, name in zip(s.expressions, names, strict=True))
        for s in structs
    )


def _cell(part: exp.Expression) -> str:
    value = part.this if isinstance(part, exp.Alias) else part.expression if isinstance(part, exp.PropertyEQ) else part
    return str(value.sql("duckdb"))

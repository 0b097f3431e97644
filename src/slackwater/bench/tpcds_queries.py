"""The 99 queries of TPC-DS in Spark's dialect, by rules over the texts that come with the data.

Each rule says what DuckDB means that Spark would read otherwise. They stand in one tuple, in the order in which they
are applied to the parsed query; sqlglot then writes it down for Spark, which takes care of quotes, of `||`, and of
where NULLs go in an order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

import sqlglot
from sqlglot import exp

Rule = Callable[[exp.Expression], exp.Expression]


def divide_by_zero_is_null(tree: exp.Expression) -> exp.Expression:
    """`a / b` → `a / NULLIF(b, 0)`: DuckDB answers NULL where Spark, by the SQL standard, stops with an error.

    Precondition: the divisor is no constant other than zero. Counter-example to leaving it out: the ratio of two
    counts, the second of which is zero before its first row arrives.
    """
    for division in list(tree.find_all(exp.Div)):
        if not _is_number(division.expression):
            guarded = exp.Nullif(this=division.expression.unnest(), expression=exp.Literal.number(0))
            division.set("expression", guarded)
    return tree


def _is_number(node: exp.Expression) -> bool:
    inner = node.unnest()
    return isinstance(inner, exp.Literal) and not inner.is_string and float(inner.this) != 0


RULES: tuple[Rule, ...] = (divide_by_zero_is_null,)


def spark_sql(text: str) -> str:
    """One query for Spark."""
    tree = cast(exp.Expression, sqlglot.parse_one(text, read="duckdb"))
    for rule in RULES:
        tree = rule(tree)
    return tree.sql(dialect="spark", pretty=True)


def spark_queries(texts: Mapping[int, str]) -> dict[int, str]:
    """All queries for Spark, by number."""
    return {number: spark_sql(text) for number, text in texts.items()}

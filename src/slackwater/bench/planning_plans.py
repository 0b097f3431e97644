"""Plans whose planning is timed, made without Spark: chains of joins, and queries as they look once they are captured.

A query's tables are listed with the columns that it reads, each filtered where the query filters it. Joins are put in
order and lookups marked as for any view, so that what is planned is what a view would have.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import Expr, call, col, lit
from slackwater.algebra.nodes import Aggregate, Field, Filter, Item, Join, Rel, Scan
from slackwater.bench.movie_queries import JOINS, MOVIES
from slackwater.planning.cardinality import Cardinalities, Expected
from slackwater.planning.join_order import order_joins
from slackwater.planning.lookups import with_lookups

Planned = tuple[Rel, Cardinalities]

DELTA = 0.01
"""The share of its rows that each table that grows is expected to bring."""

FILTERED = 0.1
"""What a filter is taken to keep."""

TPCH_ROWS = {"part": 200_000, "supplier": 10_000, "lineitem": 6_001_215, "partsupp": 800_000, "orders": 1_500_000,
             "nation": 25}  # fmt: skip

MOVIE_ROWS = {
    "aka_name": 59_500, "aka_title": 24_675, "cast_info": 992_435, "char_name": 90_000, "comp_cast_type": 4,
    "company_name": 10_000, "company_type": 4, "complete_cast": 19_256, "info_type": 113, "keyword": 5_000,
    "kind_type": 7, "link_type": 18, "movie_companies": 148_232, "movie_info": 602_253, "movie_info_idx": 100_785,
    "movie_keyword": 248_121, "movie_link": 8_048, "name": 170_000, "person_info": 136_000, "role_type": 12,
    "title": 100_000,
}  # fmt: skip
"""The rows of the movie database of size 1."""

COMPLETE = 1_000
"""Tables with fewer rows are complete."""


@dataclass(frozen=True, slots=True)
class Source:
    """A table of a query: its columns by the names that the query calls them, those of the key first."""

    table: str
    columns: tuple[str, ...]
    key: int = 1
    filtered: str = ""

    def leaf(self) -> Rel:
        """What the query reads of the table."""
        fields = tuple(Field(c, "bigint") for c in self.columns)
        scan = Scan(self.table, fields, tuple(range(len(fields))))
        return Filter(scan, call(">", column(self.filtered), lit(0), dtype="boolean")) if self.filtered else scan


def column(name: str) -> Expr:
    """All columns are numbers here."""
    return col(name, "bigint")


def q9() -> Planned:
    """TPC-H Q9 at scale factor 1: six tables, one of them joined by a key of two columns."""
    sources = [
        Source("part", ("p_partkey", "p_name"), filtered="p_name"),
        Source("supplier", ("s_suppkey", "s_nationkey")),
        Source("lineitem", ("l_orderkey", "l_partkey", "l_suppkey", "l_quantity", "l_price", "l_discount"), key=0),
        Source("partsupp", ("ps_partkey", "ps_suppkey", "ps_supplycost"), key=2),
        Source("orders", ("o_orderkey", "o_orderdate")),
        Source("nation", ("n_nationkey", "n_name")),
    ]
    equal = [("s_suppkey", "l_suppkey"), ("ps_suppkey", "l_suppkey"), ("ps_partkey", "l_partkey"),
             ("p_partkey", "l_partkey"), ("o_orderkey", "l_orderkey"), ("s_nationkey", "n_nationkey")]  # fmt: skip
    profit = AggCall("sum_profit", "sum", (column("l_price"),), "bigint")
    return flat(sources, equal, ("n_name", "o_orderdate"), (profit,), TPCH_ROWS)


def movie(number: int) -> Planned:
    """One of the queries over the movie database."""
    query = MOVIES[number]
    names = query.tables.split()
    equal = [(one, other) for name in names for one, other in re.findall(r"(\w+\.\w+) = (\w+\.\w+)", JOINS[name][1])]
    asked = dict.fromkeys([*(c for pair in equal for c in pair), *re.findall(r"[a-z]\w*\.[a-z]\w*", query.where)])
    sources = []
    for name in names:
        mine = [f"{name}.id", *(c for c in asked if c.startswith(f"{name}.") and c != f"{name}.id")]
        tested = [c for c in mine if re.search(rf"\b{re.escape(c)}\b", query.where)]
        sources.append(Source(JOINS[name][0], tuple(mine), filtered=tested[0] if tested else ""))
    count = AggCall("matches", "count", (), "bigint")
    return flat(sources, equal, (), (count,), MOVIE_ROWS)


def flat(
    sources: Sequence[Source], equal: Sequence[tuple[str, str]], groups: Sequence[str], aggs: tuple[AggCall, ...],
    rows: Mapping[str, float],
) -> Planned:  # fmt: skip
    """Groups over joined tables, in the shape that a view's plan has."""
    keys = {source.table: tuple(range(source.key)) for source in sources}
    coming = {s.table: Expected(DELTA * rows[s.table]) for s in sources if rows[s.table] >= COMPLETE}
    cards = Cardinalities(rows, coming, unique=keys.__getitem__)

    def base_rows(node: Rel) -> float:
        return max(float(rows[x.table]) for x in node.walk() if isinstance(x, Scan))

    def leaf_rows(node: Rel) -> float:
        return base_rows(node) * (FILTERED if any(isinstance(x, Filter) for x in node.walk()) else 1.0)

    grouped = Aggregate(_joined(sources, equal), tuple(Item(c, column(c)) for c in groups), aggs)
    ordered = order_joins(grouped, leaf_rows, base_rows, keys.__getitem__)
    return with_lookups(ordered, keys.__getitem__, base_rows), cards


def _joined(sources: Sequence[Source], equal: Sequence[tuple[str, str]]) -> Rel:
    """The tables one after the other, each with the conditions that it completes."""
    plan: Rel = sources[0].leaf()
    left = list(equal)
    for source in sources[1:]:
        right = source.leaf()
        there = {*plan.names, *right.names}
        now = [pair for pair in left if there.issuperset(pair)]
        left = [pair for pair in left if pair not in now]
        conditions = [call("=", column(a), column(b), dtype="boolean") for a, b in now]
        while len(conditions) > 1:
            conditions = [call("and", conditions[0], conditions[1], dtype="boolean"), *conditions[2:]]
        plan = Join(plan, right, conditions[0] if conditions else None)
    return plan


def join_chain(tables: int, seed: int = 7) -> Planned:
    """An aggregate over a join of so many filtered tables of random sizes, all of which will change.

    Each table is looked up by its key; from every second one rows will be deleted.
    """
    chance = random.Random(seed)  # noqa: S311 - test data, not secrets
    plan: Rel | None = None
    for i in range(tables):
        fields = (Field(f"a{i}", "bigint"), Field(f"b{i}", "bigint"))
        over = call(">", col(f"b{i}", "bigint"), lit(i), dtype="boolean")
        leaf = Filter(Scan(f"t{i}", fields, (0, 1)), over)
        equal = call("=", col(f"a{i - 1}", "bigint"), col(f"a{i}", "bigint"), dtype="boolean")
        plan = leaf if plan is None else Join(plan, leaf, equal)
    assert plan is not None  # noqa: S101 - there is at least one table
    total = AggCall("total", "sum", (col("b0", "bigint"),), "bigint")
    grouped = Aggregate(plan, (Item("g", col(f"b{tables - 1}", "bigint")),), (total,))
    rows = {f"t{i}": float(chance.randint(10_000, 6_000_000)) for i in range(tables)}
    coming = {t: Expected(n * chance.uniform(0.0001, 0.05), 0.1 * (i % 2)) for i, (t, n) in enumerate(rows.items())}
    marked = with_lookups(grouped, lambda _: (0,), lambda _: 1.0)
    return marked, Cardinalities(rows, coming, unique=lambda _: (0,))

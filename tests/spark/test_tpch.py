"""All 22 queries of TPC-H through inserts, deletes and updates, against a recompute and against DuckDB."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from slackwater.algebra.lookups import LookupJoin
from slackwater.bench.coverage import cover, head, markdown
from slackwater.bench.suites import tpch
from slackwater.bench.tpch_data import BUCKETS, HELD_BACK, KEYS, Slices, generate
from slackwater.bench.tpch_more_queries import ALL_QUERIES, MORE_QUERIES
from slackwater.bench.tpch_queries import QUERIES
from tests.fuzz.duck import difference
from tests.fuzz.sizes import beyond
from tests.spark.test_capture import GOLDEN_SPARK
from tests.spark.test_state_planning import SLOW
from tests.spark.tpcds_rounds import BY_PRICE

ROUNDS = 3
SLICE = (4, 13, 22)
"""Semi, outer and anti joins, an aggregate over an aggregate, and a scalar subquery."""

MOSTLY = 0.7
"""The share of refreshes that must follow the changes."""

UPDATES: tuple[dict[str, dict[str, str]], ...] = (
    {
        "part": {"p_brand": "'Brand#23'", "p_container": "'MED BOX'"},
        "supplier": {"s_nationkey": "20"},
        "partsupp": {"ps_supplycost": "ps_supplycost / 2"},
        "customer": {"c_acctbal": "c_acctbal + 3000", "c_phone": "concat('13', c_phone)"},
        "orders": {"o_comment": "'special deposits, requests'", "o_orderdate": "DATE '1993-08-01'"},
        "lineitem": {"l_quantity": "l_quantity + 60", "l_receiptdate": "l_commitdate + 3"},
    },
    {
        "part": {"p_size": "15", "p_type": "'ECONOMY ANODIZED BRASS'"},
        "supplier": {"s_comment": "'Customer regrets Complaints'", "s_nationkey": "7"},
        "partsupp": {"ps_availqty": "1"},
        "customer": {"c_mktsegment": "'BUILDING'", "c_nationkey": "6"},
        "orders": {"o_orderstatus": "'F'", "o_custkey": "o_custkey % 100 + 1"},
        "lineitem": {"l_shipdate": "DATE '1996-02-01'", "l_suppkey": "l_suppkey % 5 + 1"},
    },
    {
        "part": {"p_name": "'forest green'", "p_type": "'ECONOMY ANODIZED STEEL'", "p_size": "3"},
        "supplier": {"s_comment": "'content'", "s_nationkey": "s_suppkey % 2 + 2"},
        "partsupp": {"ps_supplycost": "0.01", "ps_availqty": "9999"},
        "customer": {"c_acctbal": "-1"},
        "orders": {"o_orderpriority": "'1-URGENT'", "o_orderdate": "DATE '1995-03-01'"},
        "lineitem": {"l_quantity": "1", "l_returnflag": "'R'"},
    },
)
"""What the updates of each round set; chosen so that rows enter and leave the queries' narrow filters."""


def share(table: str, first: float, last: float) -> Column:
    """Whether a row is in a part of its table, by a hash of the key, as `Slices` has it."""
    bucket = F.pmod(F.xxhash64(*KEYS[table]), F.lit(BUCKETS))
    return (bucket >= round(first * BUCKETS)) & (bucket < round(last * BUCKETS))


def change(table: sw.Table, slices: Slices, round_: int) -> None:
    """One round: rows that were held back arrive, others go, and others are updated, all in one version."""
    rows, gone, first = table.snapshot(), 0.1 * round_, 0.94 + 0.02 * round_
    old = rows.where(share(table.name, 0.3 + gone, 0.36 + gone))
    types = dict(old.dtypes)
    new = old.withColumns({c: F.expr(v).cast(types[c]) for c, v in UPDATES[round_][table.name].items()})
    feed = {
        "insert": slices.part(table.name, first, first + 0.02),
        "delete": rows.where(share(table.name, gone, gone + 0.03)),
        "update_preimage": old,
        "update_postimage": new,
    }
    parts = [frame.withColumn("_change_type", F.lit(kind)).coalesce(1) for kind, frame in feed.items()]
    table.apply(reduce(DataFrame.unionAll, parts).toArrow())


def create(engine: sw.Engine, slices: Slices, numbers: Collection[int], keyed: Collection[str]) -> list[str]:
    """The tables that the queries read, with 94% of the rows of those that change."""
    read = [table for table in KEYS if any(re.search(rf"\b{table}\b", ALL_QUERIES[n]) for n in numbers)]
    for table in read:
        created = engine.create_table(table, slices.whole(table).schema, key=KEYS[table] if table in keyed else ())
        created.insert(slices.part(table, 0.0, 0.94) if table in HELD_BACK else slices.whole(table))
    return read


@dataclass(slots=True)
class Outcome:
    """What became of the queries.

    Attributes:
        strategy: how the views kept states.
        problems: what went wrong, by query.
        modes: how the views were refreshed.
        lookups: the queries that look up a key.
    """

    strategy: str
    problems: dict[int, list[str]]
    modes: Counter[str] = field(default_factory=Counter)
    lookups: set[int] = field(default_factory=set)


def play(root: Path, spark: SparkSession, numbers: Collection[int], rounds: int, strategy: str) -> Outcome:
    """Views of the queries through rounds of changes, each compared with a recompute and with DuckDB.

    With the strategy `incremental` every refresh follows the changes. With `auto` all tables have their keys, and
    reading costs so much that prices decide, as they do for tables that are large.
    """
    generate(root / "data", 0.01)
    slices = Slices(spark, root / "data")
    outcome = Outcome(strategy, {n: [] for n in numbers})
    by_price = strategy == "auto"
    with (
        beyond(BY_PRICE if by_price else ()),
        sw.Engine(root / "wh", "1GB", spark=spark, save_states=False) as engine,
    ):
        if by_price:
            engine._rates = SLOW
        tables = create(engine, slices, numbers, KEYS if by_price else ("orders", "part"))
        views = {n: engine.create_view(f"q{n}", ALL_QUERIES[n], strategy=strategy) for n in numbers}
        before = {n: bag(view) for n, view in views.items()}
        for round_ in range(rounds):
            for table in (t for t in HELD_BACK if t in tables):
                change(engine.table(table), slices, round_)
            reports = {report.view: report for report in engine.refresh()}
            with twin_of(engine, tables) as twin:
                for n, view in views.items():
                    report = reports[view.name]
                    outcome.modes[report.mode] += 1
                    if "failed" in report.reason or (not by_price and report.mode != "incremental"):
                        outcome.problems[n].append(f"round {round_}: {report.mode}: {report.reason}")
                    told = [str(check) for check in (view.verify(),) if not check] + against(twin, n, view)
                    outcome.problems[n] += [f"round {round_}: {words}" for words in told]
        for n, view in views.items():
            if bag(view) == before[n]:
                outcome.problems[n].append("nothing has changed, so that nothing was tested")
            if any(isinstance(x, LookupJoin) for x in view.plan.walk()):
                outcome.lookups.add(n)
    return outcome


@contextmanager
def twin_of(engine: sw.Engine, tables: Collection[str]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB with the tables as they are now."""
    with duckdb.connect() as twin:
        for table in tables:
            rows = engine.table(table).snapshot().toArrow()
            twin.register("rows", rows)
            twin.execute(f"CREATE TABLE {table} AS FROM rows")
        yield twin


def bag(view: sw.View) -> list[str]:
    return sorted(str(tuple(row)) for row in view.result().collect())


def against(twin: duckdb.DuckDBPyConnection, number: int, view: sw.View) -> list[str]:
    """Where DuckDB's answer differs. It divides decimals as floats, so those are compared to six places."""
    found = twin.execute(completed(ALL_QUERIES[number], view.result().columns))
    kinds = ["coarse" if str(column[1]) == "DOUBLE" else "exact" for column in found.description]
    extra, lacking = difference([tuple(row) for row in view.result().collect()], found.fetchall(), kinds)
    return [f"DuckDB lacks {extra}, has {lacking} instead"] if extra or lacking else []


def completed(sql: str, columns: list[str]) -> str:
    """The query with the order before a limit completed by all columns, as views break ties."""
    return re.sub(r"(ORDER BY [^\n]*)\nLIMIT", rf"\1, {', '.join(columns)}\nLIMIT", sql)


@pytest.fixture(scope="module", params=["incremental", "auto"])
def everything(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession
) -> Outcome:
    return play(tmp_path_factory.mktemp("tpch"), spark, ALL_QUERIES, ROUNDS, request.param)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("number", ALL_QUERIES)
def test_three_rounds(everything: Outcome, number: int) -> None:
    assert not everything.problems[number], "\n".join(everything.problems[number])


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_most_refreshes_follow_the_changes(everything: Outcome) -> None:
    assert everything.modes["incremental"] >= MOSTLY * everything.modes.total(), everything.modes
    assert bool(everything.lookups) is (everything.strategy == "auto"), everything.lookups


@pytest.mark.parametrize("strategy", ["incremental", "auto"])
def test_a_round_of_a_few(tmp_path: Path, spark: SparkSession, strategy: str) -> None:
    outcome = play(tmp_path, spark, SLICE, 1, strategy)
    assert not any(outcome.problems.values()), outcome.problems


def test_there_are_22_queries() -> None:
    assert list(ALL_QUERIES) == list(range(1, 23))
    assert not set(QUERIES) & set(MORE_QUERIES)


def test_ties_are_broken_by_all_columns() -> None:
    assert "ORDER BY revenue DESC, o_orderdate, a, b\nLIMIT 10" in completed(ALL_QUERIES[3], ["a", "b"])
    assert completed(ALL_QUERIES[1], ["a"]) == ALL_QUERIES[1]


def test_coverage(engine: sw.Engine, spark: SparkSession) -> None:
    """No query is recomputed as a whole, and the page in the documentation is what the command prints."""
    suite = tpch(print)
    suite.create_empty_tables(engine)
    covered = cover(engine, suite)
    assert [c.query for c in covered if not c.kept_up] == []
    assert [c.query for c in covered if not c.found.incremental] == []
    assert all(sum(c.ways.values()) == len(c.found.operators) > 0 for c in covered)
    page = markdown(covered, suite)
    assert page.startswith(head(suite))
    if spark.version.startswith(GOLDEN_SPARK):
        path = Path(__file__).parents[2] / "docs" / "coverage.md"
        written = path.read_text(encoding="utf-8")
        assert written.rstrip("\n") == page.rstrip("\n"), "slackwater bench coverage > docs/coverage.md"

"""Views of TPC-DS queries through rounds of inserts, deletes and updates, against a recompute and against DuckDB."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from sqlglot import exp, parse_one

import slackwater as sw
from slackwater.bench.tpcds_data import FACTS, TpcdsData
from slackwater.bench.tpcds_queries import divide_by_zero_is_null, spark_sql
from tests.fuzz.duck import difference
from tests.fuzz.sizes import beyond
from tests.spark.test_state_planning import SLOW
from tests.spark.tpcds_rows import Dealer

CHANGING = (*FACTS, "item", "customer", "customer_address", "store")
HELD_BACK, DELETED, UPDATED = 0.02, 0.02, 0.03
"""Shares of a table that arrive, go and change in one round."""

BUDGET = "1GB"

BATCHES = [range(first, min(first + 9, 100)) for first in range(1, 100, 9)]
"""The queries that share their tables."""

MOVING = 0.5
"""The share of a batch's queries whose result must change: one that stays as it was proves next to nothing."""

BY_PRICE = ("large deltas", "by price", "lookups")
"""Sizes so small that prices choose the states, and that keys are looked up in tables of a few rows."""


def named(batch: range) -> str:
    """A batch in the name of a test."""
    return f"q{batch[0]}-q{batch[-1]}"


@dataclass(slots=True)
class Flow:
    """The rows of one table as they are now, and those that are still to come."""

    now: pa.Table
    coming: list[pa.Table]
    random: np.random.Generator

    @classmethod
    def of(cls, rows: pa.Table, rounds: int, seed: int) -> Flow:
        random = np.random.default_rng(seed)
        order = random.permutation(rows.num_rows)
        size = max(1, int(rows.num_rows * HELD_BACK))
        held = [rows.take(order[i * size : (i + 1) * size]) for i in range(rounds)]
        return cls(rows.take(order[rounds * size :]), held, random)

    def change(self) -> pa.Table:
        """One round as a change feed, and `now` after it."""
        order = self.random.permutation(self.now.num_rows)
        goes, moves = (max(1, int(len(order) * share)) for share in (DELETED, UPDATED))
        gone, old, kept = (self.now.take(x) for x in np.split(order, [goes, goes + moves]))
        new, arrived = self._updated(old), self.coming.pop(0)
        self.now = pa.concat_tables([kept, new, arrived])
        kinds = {"insert": arrived, "delete": gone, "update_preimage": old, "update_postimage": new}
        return pa.concat_tables([t.append_column("_change_type", pa.array([k] * len(t))) for k, t in kinds.items()])

    def _updated(self, rows: pa.Table) -> pa.Table:
        """The rows with their references exchanged among them, amounts changed, and a few cells emptied."""
        columns = []
        for at, (name, column) in enumerate(zip(rows.column_names, rows.columns, strict=True)):
            if name.endswith("_sk") and at:
                column = column.take(np.roll(np.arange(len(rows)), 1 + at % 3))
            elif pa.types.is_decimal(column.type):
                column = pc.add(column, pa.scalar(Decimal("1.25"), column.type)).cast(column.type)
            elif name.endswith(("quantity", "on_hand")):
                column = pc.add(column, 7).cast(column.type)
            empty = self.random.random(len(rows)) < (0.02 if at and not name.endswith("_number") else 0.0)
            columns.append(pc.if_else(pa.array(empty), pa.scalar(None, column.type), column))
        return pa.table(columns, names=rows.column_names)


@dataclass(slots=True)
class Outcome:
    """What became of the queries.

    Attributes:
        problems: what went wrong, by query.
        moved: the queries whose result changed in some round.
        found: the queries whose result had a row with something in it at the end.
        modes: how the views were refreshed.
    """

    problems: dict[int, list[str]]
    moved: set[int] = field(default_factory=set)
    found: set[int] = field(default_factory=set)
    modes: Counter[str] = field(default_factory=Counter)

    @property
    def told(self) -> list[str]:
        """Every problem, with its query."""
        return [f"query {n}: {problem}" for n, found in self.problems.items() for problem in found]

    @property
    def still(self) -> list[int]:
        """The queries whose result never changed: of these the rounds prove next to nothing."""
        return sorted(set(self.problems) - self.moved)


def play(root: Path, spark: SparkSession, data: TpcdsData, numbers: Collection[int], rounds: int,
         strategy: str = "incremental") -> Outcome:  # fmt: skip
    """Go through the rounds with views of some queries.

    With the strategy `incremental` every refresh follows the changes. With others the keys of the dimensions are
    declared: the plan is rewritten, and some refreshes may be recomputes. With `auto` reading costs so much that prices
    decide, as they do for tables that are large.
    """
    by_key, by_price = strategy != "incremental", strategy == "auto"
    texts = {n: data.texts[n] for n in numbers}
    flows = _flows(data, texts, rounds)
    outcome = Outcome({n: [] for n in numbers})
    with (
        beyond(BY_PRICE if by_price else ()),
        sw.Engine(root / "wh", BUDGET, spark=spark, save_states=False) as engine,
    ):
        if by_price:
            engine._rates = SLOW
        for table, flow in flows.items():
            key = [flow.now.column_names[0]] if by_key and table not in FACTS else ()
            engine.create_table(table, data.schemas[table], key=key).insert(flow.now)
        views = dict(_views(engine, texts, outcome, strategy))
        rows = {n: _rows(view) for n, view in views.items()}
        for round_ in range(rounds):
            for table in (t for t in flows if t in CHANGING):
                engine.table(table).apply(flows[table].change())
            with _twin(flows) as twin:
                for n, view in views.items():
                    problem, before = _refreshed(view, outcome.modes, strictly=not by_key), rows[n]
                    rows[n] = _rows(view)
                    told = [problem, *_against(twin, texts[n], rows[n])]
                    outcome.problems[n] += [f"round {round_}: {words}" for words in told if words]
                    outcome.moved |= {n} if sorted(map(str, rows[n])) != sorted(map(str, before)) else set()
        outcome.found = {n for n in views if any(cell for row in rows[n] for cell in row)}
    return outcome


@contextmanager
def _twin(flows: Mapping[str, Flow]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB with the tables as they are now."""
    with duckdb.connect() as twin:
        for table, flow in flows.items():
            twin.register("rows", flow.now)
            twin.execute(f"CREATE TABLE {table} AS FROM rows")
        yield twin


def _flows(data: TpcdsData, texts: Mapping[int, str], rounds: int) -> dict[str, Flow]:
    """The tables that the queries read."""
    rows = Dealer(data).tables()
    read = [t for t in rows if any(re.search(rf"\b{t}\b", text) for text in texts.values())]
    return {t: Flow.of(rows[t], rounds if t in CHANGING else 0, at) for at, t in enumerate(read)}


def _views(
    engine: sw.Engine, texts: Mapping[int, str], outcome: Outcome, strategy: str
) -> Iterator[tuple[int, sw.View]]:
    for n, text in texts.items():
        try:
            yield n, engine.create_view(f"q{n}", spark_sql(text), strategy=strategy)
        except Exception as error:
            outcome.problems[n].append(f"{type(error).__name__}: {str(error)[:500]}")


def _refreshed(view: sw.View, modes: Counter[str], *, strictly: bool) -> str:
    try:
        report, check = view.refresh(), view.verify()
        modes[report.mode] += 1
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:800]}"
    if not check:
        return str(check)
    failed = "failed" in report.reason
    return f"{report.mode}: {report.reason}" if failed or (strictly and report.mode != "incremental") else ""


def _rows(view: sw.View) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in view.result().collect()]


def _against(twin: duckdb.DuckDBPyConnection, text: str, ours: list[tuple[Any, ...]]) -> list[str]:
    """Where DuckDB's answer differs; it divides decimals as floats, so those are compared to six places."""
    plain = parse_one(text, read="duckdb").sql(dialect="duckdb", identify=True)
    try:
        found = twin.execute(completed(text, len(twin.execute(plain).description)))
    except duckdb.Error as error:
        return [f"DuckDB: {str(error)[:300]}"]
    kinds = ["coarse" if str(column[1]) in ("DOUBLE", "FLOAT") else "exact" for column in found.description]
    extra, lacking = difference(ours, found.fetchall(), kinds)
    return [f"DuckDB lacks {extra[:3]}, has {lacking[:3]} instead ({len(extra)})"] if extra or lacking else []


def completed(text: str, columns: int) -> str:
    """The query with the order before a limit completed by all columns, as views break ties."""
    # Newer releases than the one that the texts are from divide by zero in their own way.
    tree = divide_by_zero_is_null(parse_one(text, read="duckdb"))
    if not tree.args.get("limit"):
        return tree.sql(dialect="duckdb", identify=True)
    order = tree.args.get("order")
    given = [o.copy() for o in order.expressions] if order is not None else []
    ties = [exp.Ordered(this=exp.Literal.number(i + 1), nulls_first=True) for i in range(columns)]
    tree.set("order", exp.Order(expressions=given + ties))
    return tree.sql(dialect="duckdb", identify=True)

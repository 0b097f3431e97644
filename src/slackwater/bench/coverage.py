"""`slackwater bench coverage`: how each operator of TPC-H's 22 queries is refreshed, and why.

The answer depends on the queries and the types of their columns alone, so the tables stay empty. What is printed is
Markdown: `docs/coverage.md` is this command's output.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slackwater.bench.tpch_data import KEYS
from slackwater.bench.tpch_more_queries import ALL_QUERIES
from slackwater.cli_session import start_muted
from slackwater.delta.reasons import REASONS, Way
from slackwater.eligibility import RECOMPUTED, REFUSED, Eligibility
from slackwater.engine import Engine

SCHEMAS = {
    "customer": "c_custkey BIGINT, c_name STRING, c_address STRING, c_nationkey BIGINT, c_phone STRING,"
    " c_acctbal DECIMAL(15,2), c_mktsegment STRING, c_comment STRING",
    "orders": "o_orderkey BIGINT, o_custkey BIGINT, o_orderstatus STRING, o_totalprice DECIMAL(15,2), o_orderdate DATE,"
    " o_orderpriority STRING, o_clerk STRING, o_shippriority INT, o_comment STRING",
    "lineitem": "l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber INT, l_quantity DECIMAL(15,2),"
    " l_extendedprice DECIMAL(15,2), l_discount DECIMAL(15,2), l_tax DECIMAL(15,2), l_returnflag STRING,"
    " l_linestatus STRING, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, l_shipinstruct STRING,"
    " l_shipmode STRING, l_comment STRING",
    "supplier": "s_suppkey BIGINT, s_name STRING, s_address STRING, s_nationkey BIGINT, s_phone STRING,"
    " s_acctbal DECIMAL(15,2), s_comment STRING",
    "part": "p_partkey BIGINT, p_name STRING, p_mfgr STRING, p_brand STRING, p_type STRING, p_size INT,"
    " p_container STRING, p_retailprice DECIMAL(15,2), p_comment STRING",
    "partsupp": "ps_partkey BIGINT, ps_suppkey BIGINT, ps_availqty INT, ps_supplycost DECIMAL(15,2), ps_comment STRING",
    "nation": "n_nationkey BIGINT, n_name STRING, n_regionkey BIGINT, n_comment STRING",
    "region": "r_regionkey BIGINT, r_name STRING, r_comment STRING",
}  # fmt: skip
"""The columns of the eight tables, with the types that the generator of the data gives them."""

HEAD = """# How the queries of TPC-H are refreshed

Written by `slackwater bench coverage`, which needs no data. For each operator: its way, and the code of the reason;
[the codes are explained here](reasons.md). States are assumed to fit the budget."""


@dataclass(frozen=True, slots=True)
class Covered:
    """One query and what becomes of it; `seconds` is what the check took."""

    query: int
    found: Eligibility
    seconds: float

    @property
    def kept_up(self) -> bool:
        """Whether a refresh is no full recompute."""
        return self.found.verdict not in (RECOMPUTED, REFUSED)

    @property
    def ways(self) -> dict[str, int]:
        """How many operators are refreshed in each way."""
        counted = Counter(operator.way for operator in self.found.operators)
        return {way.value: counted[way] for way in Way}

    def to_json(self) -> dict[str, Any]:
        """Plain values for programs."""
        return {"query": self.query, "ways": self.ways, "seconds": round(self.seconds, 3), **self.found.to_json()}


def create_empty_tables(engine: Engine) -> None:
    """Make the eight tables without rows, with the keys that the benchmark gives them."""
    for table, schema in SCHEMAS.items():
        engine.create_table(table, schema, key=KEYS[table] if table != "lineitem" else ())


def cover(engine: Engine) -> tuple[Covered, ...]:
    """Check all 22 queries against the tables of a warehouse."""
    covered = []
    for query, sql in ALL_QUERIES.items():
        started = time.perf_counter()
        found = engine.check(sql)
        covered.append(Covered(query, found, time.perf_counter() - started))
    return tuple(covered)


def markdown(covered: Sequence[Covered]) -> str:
    """The page: a row for each query, the total, and every operator with its way."""
    return "\n".join((HEAD, "", *_table(covered), "", total(covered), *(x for c in covered for x in _section(c))))


def total(covered: Sequence[Covered]) -> str:
    """The last line of the table, in a sentence."""
    kept_up, whole = sum(c.kept_up for c in covered), sum(c.found.incremental for c in covered)
    return (
        f"{kept_up} of {len(covered)} queries are refreshed without a full recompute,"
        f" {whole} of {len(covered)} without recomputing any operator."
    )


def command() -> tuple[dict[str, Any], str]:
    """Check the queries in a warehouse that is thrown away; gives the document for programs and the page."""
    work = Path(tempfile.mkdtemp(prefix="slackwater-coverage-"))
    try:
        with Engine(work / "warehouse", save_states=False) as engine:
            start_muted(engine)
            create_empty_tables(engine)
            covered = cover(engine)
            version = str(engine.spark.version)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    document = {"benchmark": "coverage", "suite": "tpch", "spark": version, "queries": [c.to_json() for c in covered],
                "without_full_recompute": sum(c.kept_up for c in covered),
                "incremental": sum(c.found.incremental for c in covered)}  # fmt: skip
    return document, markdown(covered)


def _table(covered: Sequence[Covered]) -> Iterator[str]:
    ways = [way.value for way in Way]
    yield f"| query | verdict | {' | '.join(ways)} | why |"
    yield "|---|---|" + "--:|" * len(ways) + "---|"
    for c in covered:
        counts = " | ".join(str(c.ways[way]) for way in ways)
        telling = [f"`{code}`" for code in c.found.codes if code not in _PLAIN]
        yield f"| [Q{c.query}](#query-{c.query}) | {c.found.verdict} | {counts} | {', '.join(telling)} |"


_PLAIN = {"TABLE_CHANGES", "LINEAR", "CONSTANT"}
"""Reasons that stand in every query; the table leaves them out."""


def _section(covered: Covered) -> Iterator[str]:
    yield from ("", f"## Query {covered.query}", "")
    summary = ", ".join(f"{way} {count}" for way, count in covered.ways.items() if count)
    yield f"{covered.found.verdict}: {summary}" if summary else covered.found.verdict
    # The reasons' own sentences are on their page; refusals have only their sentence.
    text = str(covered.found).partition("\n\n")[0]
    body = text.partition("\n")[2] or text
    yield from ("", "```text", body, "```")
    for operator in covered.found.recomputed:
        yield f"\n`{operator.code}`: {REASONS[operator.code].text}"

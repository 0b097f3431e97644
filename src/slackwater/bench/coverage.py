"""`slackwater bench coverage`: how each operator of the queries of TPC-H or TPC-DS is refreshed, and why.

The answer depends on the queries and the types of their columns alone, so the tables stay empty. What is printed is
Markdown: `docs/coverage.md` and `docs/coverage-tpcds.md` are this command's output.
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

from slackwater.bench.suites import Suite
from slackwater.cli_session import start_muted
from slackwater.delta.reasons import REASONS, Way
from slackwater.eligibility import RECOMPUTED, REFUSED, Eligibility
from slackwater.engine import Engine


def head(suite: Suite) -> str:
    """How the page begins."""
    option = "" if suite.name == "tpch" else f" --suite {suite.name}"
    return f"""# How the queries of {suite.title} are refreshed

Written by `slackwater bench coverage{option}`, which needs no rows. For each operator: its way, and the code of the
reason; [the codes are explained here](reasons.md). States are assumed to fit the budget."""


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


def cover(engine: Engine, suite: Suite) -> tuple[Covered, ...]:
    """Check all queries of a suite against its tables in a warehouse."""
    covered = []
    for query, sql in suite.queries.items():
        started = time.perf_counter()
        found = engine.check(sql)
        covered.append(Covered(query, found, time.perf_counter() - started))
    return tuple(covered)


def markdown(covered: Sequence[Covered], suite: Suite) -> str:
    """The page: a row for each query, the total, and every operator with its way."""
    section = _section if suite.trees else _grouped
    sections = (line for c in covered for line in section(c))
    return "\n".join((head(suite), "", *_table(covered), "", total(covered), *sections))


def total(covered: Sequence[Covered]) -> str:
    """The last line of the table, in a sentence."""
    kept_up, whole = sum(c.kept_up for c in covered), sum(c.found.incremental for c in covered)
    return (
        f"{kept_up} of {len(covered)} queries are refreshed without a full recompute,"
        f" {whole} of {len(covered)} without recomputing any operator."
    )


def command(suite: Suite) -> tuple[dict[str, Any], str]:
    """Check the queries in a warehouse that is thrown away; gives the document for programs and the page."""
    work = Path(tempfile.mkdtemp(prefix="slackwater-coverage-"))
    try:
        with Engine(work / "warehouse", save_states=False) as engine:
            start_muted(engine)
            suite.create_empty_tables(engine)
            cover(engine, suite)  # what a check takes is told of a Spark that has run, and compiled, before
            covered = cover(engine, suite)
            version = str(engine.spark.version)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    document = {"benchmark": "coverage", "suite": suite.name, "spark": version,
                "queries": [c.to_json() for c in covered], "without_full_recompute": sum(c.kept_up for c in covered),
                "slowest_check_seconds": round(max(c.seconds for c in covered), 3),
                "incremental": sum(c.found.incremental for c in covered)}  # fmt: skip
    return document, markdown(covered, suite)


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


def _heading(covered: Covered) -> Iterator[str]:
    yield from ("", f"## Query {covered.query}", "")
    summary = ", ".join(f"{way} {count}" for way, count in covered.ways.items() if count)
    yield f"{covered.found.verdict}: {summary}" if summary else covered.found.verdict


def _grouped(covered: Covered) -> Iterator[str]:
    """The operators of one kind that are refreshed in the same way and for the same reason on one line."""
    yield from _heading(covered)
    if covered.found.refusal is not None:
        yield from ("", str(covered.found.refusal))
        return
    yield from ("", "| operators | | way | why |", "|---|--:|---|---|")
    counted = Counter((o.label.split()[0], o.way.value, o.code, o.detail) for o in covered.found.operators)
    for (kind, way, code, detail), count in counted.items():
        yield f"| {kind} | {count} | {way} | `{code}`{f' {detail}' if detail else ''} |"


def _section(covered: Covered) -> Iterator[str]:
    yield from _heading(covered)
    # The reasons' own sentences are on their page; refusals have only their sentence.
    text = str(covered.found).partition("\n\n")[0]
    body = text.partition("\n")[2] or text
    yield from ("", "```text", body, "```")
    for operator in covered.found.recomputed:
        yield f"\n`{operator.code}`: {REASONS[operator.code].text}"

"""The 99 queries of TPC-DS through inserts, deletes and updates, against a recompute and against DuckDB.

The data and the query texts come from `make tpcds-data`; without them these tests are skipped.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.bench.coverage import cover, head, markdown
from slackwater.bench.suites import tpcds
from slackwater.bench.tpcds_data import TpcdsData
from tests.spark.test_capture import GOLDEN_SPARK
from tests.spark.tpcds_rounds import BATCHES, MOVING, named, play

ROUNDS = 3
RECOMPUTED_IN_PART = [14, 24, 44, 49]
"""Averages of wide decimals over everything, and ranks over everything."""

HARDEST = (9, 70, 97)
"""Fifteen scalar subqueries, a rank over ROLLUP and `grouping()` under a semi join, and a full outer join."""


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("batch", BATCHES, ids=named)
def test_three_rounds(tmp_path: Path, spark: SparkSession, tpcds_data: TpcdsData, batch: range) -> None:
    outcome = play(tmp_path, spark, tpcds_data, batch, ROUNDS)
    assert not outcome.told, "\n".join(outcome.told)
    assert len(outcome.moved) >= MOVING * len(batch), f"in {ROUNDS} rounds these never moved: {outcome.still}"


@pytest.mark.slow
def test_a_round_of_the_hardest(tmp_path: Path, spark: SparkSession, tpcds_data: TpcdsData) -> None:
    outcome = play(tmp_path, spark, tpcds_data, HARDEST, 1)
    assert not outcome.told, "\n".join(outcome.told)
    assert outcome.moved == set(HARDEST)


@pytest.mark.slow
def test_coverage(engine: sw.Engine, spark: SparkSession, tpcds_data: TpcdsData) -> None:
    """No query is recomputed as a whole, and the documentation has what is printed."""
    suite = tpcds(print)
    suite.create_empty_tables(engine)
    covered = cover(engine, suite)
    assert [c.query for c in covered if not c.kept_up] == []
    assert [c.query for c in covered if not c.found.incremental] == RECOMPUTED_IN_PART
    page = markdown(covered, suite)
    assert page.startswith(head(suite))
    if spark.version.startswith(GOLDEN_SPARK):
        path = Path(__file__).parents[2] / "docs" / "coverage-tpcds.md"
        written = path.read_text(encoding="utf-8")
        assert written.rstrip("\n") == page.rstrip("\n"), (
            "slackwater bench coverage --suite tpcds --output docs/coverage-tpcds.md"
        )

"""The 99 queries of TPC-DS over tables with keys: what is looked up is kept, under rules and by price.

A file of its own, so that `make test-all` can play it beside `test_tpcds.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from slackwater.bench.tpcds_data import TpcdsData
from tests.spark.tpcds_rounds import BATCHES, MOVING, named, play


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("batch", BATCHES, ids=named)
def test_a_round_by_key(tmp_path: Path, spark: SparkSession, tpcds_data: TpcdsData, batch: range) -> None:
    outcome = play(tmp_path, spark, tpcds_data, batch, 1, "auto" if BATCHES.index(batch) % 2 else "plain")
    assert not outcome.told, "\n".join(outcome.told)
    assert len(outcome.moved) >= MOVING * len(batch), f"in one round these did not move: {outcome.still}"
    assert outcome.modes["incremental"] >= MOVING * len(batch), outcome.modes

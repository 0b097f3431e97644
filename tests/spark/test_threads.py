"""Steps are planned by several threads; whoever watches or cancels a job group sees all of them."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import slackwater as sw

pytestmark = pytest.mark.spark


def test_the_jobs_of_a_refresh_carry_the_callers_job_group(engine: sw.Engine, spark: SparkSession) -> None:
    engine.create_table("a", "k INT, v INT").insert([(1, 1), (2, 2)])
    engine.create_table("b", "k INT, w INT").insert([(1, 10), (2, 20)])
    view = engine.create_view("v", "SELECT sum(v * w) AS s FROM a JOIN b ON a.k = b.k WHERE v > 0 AND w > 0")
    engine.table("a").insert([(2, 3)])
    engine.table("b").insert([(2, 30)])
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()
    before = scheduler.nextJobId()
    spark.sparkContext.setJobGroup("my refresh", "seen by the user")
    try:
        assert view.refresh().mode == "incremental"
    finally:
        spark.sparkContext._jsc.sc().clearJobGroup()
    ran = set(range(before, scheduler.nextJobId()))
    assert len(ran) > 1
    assert ran == set(spark.sparkContext.statusTracker().getJobIdsForGroup("my refresh"))
    assert view.verify()


def test_a_step_that_fails_stops_the_program_and_leaves_no_memory_behind(
    engine: sw.Engine, spark: SparkSession
) -> None:
    engine.create_table("a", "k INT, v INT").insert([(1, 1), (2, 2)])
    engine.create_table("b", "k INT, w INT").insert([(1, 10), (2, 20)])
    view = engine.create_view("v", "SELECT 100 / v AS x, w FROM a JOIN b ON a.k = b.k")
    engine.table("a").insert([(1, 0)])
    with pytest.raises(sw.SlackwaterError) as caught:
        view.refresh()
    assert caught.value.code == "SPARK_FAILED"
    assert view.result().count() == 2
    engine.table("a").delete([(1, 0)])
    view.refresh()
    assert view.verify()

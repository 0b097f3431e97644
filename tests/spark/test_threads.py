"""Steps are planned by several threads; whoever watches or cancels a job group sees all of them."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

import slackwater as sw
from slackwater.execution import runner
from slackwater.execution.refresh import Refresher
from slackwater.execution.states import StateSegment, checkpoint, cut_off

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


def test_an_explanation_that_another_thread_overtakes_leaves_the_last_rows_right(engine: sw.Engine) -> None:
    """It took its segments before a refresh and reads them after it: these are not the rows of the new version."""
    table = engine.create_table("a", "k INT, v INT")
    table.insert([(1, 1), (2, 2)])
    view = engine.create_view("v", "SELECT k, sum(v) AS s FROM a GROUP BY k")
    explaining = Refresher(view)
    table.insert([(1, 10), (3, 3)])
    view.refresh(full=True)
    view.last_rows = None  # as after refreshes whose rows the driver did not see
    explaining.last_result()
    table.insert([(1, 100)])
    assert view.refresh().mode == "incremental"
    assert view.verify()


def test_rows_forget_how_they_came_about_when_no_job_is_left(
    engine: sw.Engine, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a job that reads them can start, Spark would be caught between two locks (`states.checkpoint`)."""
    made, cut = list[StateSegment](), list[int]()

    def watched(frame: DataFrame) -> tuple[DataFrame, StateSegment]:
        found, segment = checkpoint(frame)
        made.append(segment)
        return found, segment

    def alone(segment: StateSegment) -> None:
        assert list(spark.sparkContext.statusTracker().getActiveJobsIds()) == []
        assert not any(s.rdd.isCheckpointed() for s in made if s.rdd_id not in cut)
        cut_off(segment)
        cut.append(segment.rdd_id)

    monkeypatch.setattr(runner, "checkpoint", watched)
    monkeypatch.setattr(runner, "cut_off", alone)
    engine.create_table("a", "k INT, v INT").insert([(1, 1), (2, 2)])
    engine.create_table("b", "k INT, w INT").insert([(1, 10), (2, 20)])
    query = "SELECT a.k, sum(v * w) AS s FROM a JOIN b ON a.k = b.k WHERE v > 0 AND w > 0 GROUP BY a.k"
    view = engine.create_view("v", query, strategy="incremental")
    for turn in range(3):
        engine.table("a").insert([(2, 3 + turn)])
        engine.table("b").insert([(2, 30 + turn)])
        assert view.refresh().mode == "incremental"
    kept = [s for state in view.states.values() for s in state.segments if not s.held]
    assert len(made) >= len(cut) > 2
    assert {s.rdd_id for s in kept} <= set(cut)
    assert all(s.rdd.isCheckpointed() and s.rdd.dependencies().length() == 1 for s in kept)
    assert all(s.rdd.toDebugString().count("\n") < 4 for s in kept), "a state has no history"
    assert view.verify()

"""Policies at work: ticks and runs over a real engine, by a clock that the test sets."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession
from sqlalchemy import event

import slackwater as sw
from slackwater.arrivals.watching import watch
from slackwater.cli import cli
from slackwater.view import View

pytestmark = pytest.mark.spark
START = 1_780_000_000.0
TOTAL = "SELECT count(*) AS n, sum(v) AS s FROM a"


@pytest.fixture
def clock() -> sw.ManualClock:
    return sw.ManualClock(START)


@pytest.fixture
def open_engine(tmp_path: Path, spark: SparkSession, clock: sw.ManualClock) -> Callable[[], sw.Engine]:
    return lambda: sw.Engine(tmp_path / "wh", spark=spark, clock=clock, save_states=False)


@pytest.fixture
def engine(open_engine: Callable[[], sw.Engine]) -> Iterator[sw.Engine]:
    """A warehouse with a table of three rows, and a clock of its own."""
    with open_engine() as opened:
        opened.create_table("a", "k INT, v INT").insert([(1, 1), (2, 2), (3, 3)])
        yield opened


def names(tick: sw.Tick) -> list[str]:
    return sorted(report.view for report in tick)


def statements(engine: sw.Engine, action: Callable[[], object]) -> list[str]:
    """What the catalog is asked meanwhile."""
    found: list[str] = []

    def note(connection: object, cursor: object, statement: str, *rest: object) -> None:
        if statement.startswith("SELECT"):
            found.append(statement)

    database = engine.catalog.database.engine
    event.listen(database, "before_cursor_execute", note)
    action()
    event.remove(database, "before_cursor_execute", note)
    return found


def test_a_tick_refreshes_what_is_due_and_nothing_else(engine: sw.Engine, clock: sw.ManualClock) -> None:
    for name, policy in {
        "minutely": sw.every("60s"),
        "many": sw.rows(3),
        "eager": sw.on_arrival(),
        "by_hand": None,
        "both": sw.rows(2) & sw.every("30s"),
    }.items():
        engine.create_view(name, TOTAL, refresh=policy)
    clock.advance(1000)
    assert engine.tick() == [], "nothing new, nothing run"
    assert len(statements(engine, engine.tick)) == 3, "an idle look reads little, however many views there are"
    a = engine.table("a")
    a.insert([(4, 4)])
    tick = engine.tick()
    assert names(tick) == ["eager", "minutely"]
    assert tick.reasons["eager"] == "a row has arrived"
    assert all(report.mode != "none" for report in tick)
    assert engine.tick() == []
    a.insert([(5, 5)])
    assert names(engine.tick()) == ["both", "eager"]
    a.delete([(5, 5)])
    assert names(engine.tick()) == ["eager", "many"], "a deleted row is a changed row"
    a.insert([(6, 6), (7, 7)])
    assert (engine.view("both").due().at, engine.view("both").status()["due"]) == (START + 1030, False)
    clock.advance(29.5)
    assert names(engine.tick()) == ["eager"]
    clock.advance(1)
    assert names(engine.tick()) == ["both"]
    clock.advance(30)
    assert names(engine.tick()) == ["minutely"]
    assert engine.view("by_hand").status()["pending_rows"] == 5
    assert [r["at"] for r in engine.view("minutely").history()] == [START + 1060.5, START + 1000, START]
    for view in engine.views():
        if view.name != "by_hand":
            view.refresh()
        assert view.verify()


def test_a_policy_is_kept_changed_and_refused(
    engine: sw.Engine, open_engine: Callable[[], sw.Engine], clock: sw.ManualClock
) -> None:
    policy = (sw.every("60s") | sw.rows(2)) & sw.on_arrival()
    view = engine.create_view("v", TOTAL, refresh=policy)
    assert engine.create_view("plain", TOTAL).policy == sw.manual()
    engine.table("a").insert([(4, 4)])
    view.refresh()
    version = engine.catalog.version()
    bad: list[Any] = [60, "now and then", "manual & rows 3"]
    for given in bad:
        with pytest.raises(sw.SlackwaterError) as caught:
            engine.create_view("bad", TOTAL, refresh=given)
        assert caught.value.code.startswith("POLICY_")
        with pytest.raises(sw.SlackwaterError):
            view.set_policy(given)
    assert (engine.catalog.version(), view.policy) == (version, policy)
    engine.close()
    with open_engine() as again:
        assert again.view("v").policy == policy, "a refresh keeps the policy"
        again.view("v").set_policy("cron '0 3 * * *' in Europe/Berlin")
        again.table("a").insert([(5, 5)])
        assert again.view("v").refresh().rows_inserted == 1
        assert again.view("v").verify()
        assert again.catalog.commits()[2].kind == "set_policy"
    with open_engine() as once_more:
        assert once_more.view("v").policy == sw.cron("0 3 * * *", timezone="Europe/Berlin")


def test_a_view_without_a_result_is_owed_one(engine: sw.Engine, clock: sw.ManualClock) -> None:
    engine.create_table("empty", "x INT")
    engine.create_view("v", "SELECT count(*) AS n FROM empty", refresh=sw.target_lag("1m"), populate=False)
    assert engine.tick() == []
    clock.advance(61)
    assert names(engine.tick()) == ["v"]
    assert engine.view("v").result().collect()[0].n == 0
    clock.advance(3600)
    assert engine.tick() == []


def test_one_that_fails_does_not_stop_the_others(engine: sw.Engine, clock: sw.ManualClock) -> None:
    engine.create_view("inverse", "SELECT 100 / v AS x FROM a", refresh=sw.on_arrival())
    engine.create_view("total", TOTAL, refresh=sw.on_arrival())
    a = engine.table("a")
    a.insert([(4, 0)])
    tick = engine.tick()
    assert names(tick) == ["total"]
    assert [(f.kind, f.name, f.error.code, f.attempts) for f in tick.failures] == [
        ("view", "inverse", "SPARK_FAILED", 1)
    ]
    assert "[SPARK_FAILED]" in str(tick)
    assert engine.tick().idle, "it is not tried again at once"
    clock.advance(1)
    assert [f.attempts for f in engine.tick().failures] == [2]
    clock.advance(1)
    assert engine.tick().idle, "and the wait grows"
    clock.set(START - 5000)
    assert [f.attempts for f in engine.tick().failures] == [3], "a clock that goes back does not hold it up"
    a.delete([(4, 0)])
    clock.advance(4)
    assert names(engine.tick()) == ["inverse", "total"]
    assert engine.tick().idle
    assert all(view.verify() for view in engine.views())


def test_a_view_whose_policy_cannot_be_read_stops_nobody(
    engine: sw.Engine, open_engine: Callable[[], sw.Engine], clock: sw.ManualClock
) -> None:
    """As if a newer version had written it."""
    odd = engine.create_view("odd", TOTAL)
    engine.create_view("even", TOTAL, refresh=sw.on_arrival())
    with engine.catalog.commit("set_policy", "odd", {}, engine.lease) as tx:
        options = json.loads(engine.catalog.view_by_id(odd.id).options_json)
        tx.update_view(odd.id, options_json=json.dumps(options | {"refresh": {"kind": "tidal"}}))
    engine.close()
    with open_engine() as again:
        again.table("a").insert([(4, 4)])
        tick = again.tick()
        assert names(tick) == ["even"]
        assert [(f.kind, f.name, f.error.code) for f in tick.failures] == [("view", "odd", "POLICY_INVALID")]
        again.table("a").mark_complete()
        with pytest.raises(sw.SlackwaterError) as caught:
            again.run(poll=0.01, on_tick=lambda tick: clock.advance(10) and None)
        assert caught.value.code == "POLICY_INVALID"


def test_an_error_without_a_code_is_reported_too(engine: sw.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.create_view("v", TOTAL, refresh=sw.on_arrival())
    engine.create_view("w", TOTAL, refresh=sw.on_arrival())
    engine.table("a").insert([(4, 4)])
    refresh = View.refresh

    def broken(view: View, *, full: bool = False) -> sw.Refresh:
        if view.name == "v":
            raise RuntimeError("a bug")
        return refresh(view, full=full)

    monkeypatch.setattr(View, "refresh", broken)
    tick = engine.tick()
    assert (names(tick), [f.error.code for f in tick.failures]) == (["w"], ["UNEXPECTED"])


def test_sources_are_polled_first_and_a_lost_one_stops_nobody(
    engine: sw.Engine, clock: sw.ManualClock, tmp_path: Path
) -> None:
    lost, found = tmp_path / "lost", tmp_path / "found"
    for directory, table in ((lost, engine.table("a")), (found, engine.create_table("b", "k INT, v INT"))):
        directory.mkdir()
        table.landing_directory(str(directory))
    view = engine.create_view("v", "SELECT count(*) AS n FROM b", refresh=sw.on_arrival())
    assert engine.tick().idle
    shutil.rmtree(lost)
    (found / "one.csv").write_text("k,v\n1,1\n2,2\n")
    (found / "bad.csv").write_text("k,v\nx,1\n")
    tick = engine.tick()
    assert names(tick) == ["v"]
    assert [(p.table, p.rows, [r.file for r in p.rejected]) for p in tick.polls] == [("b", 2, ["bad.csv"])]
    assert [(f.kind, f.name, f.error.code) for f in tick.failures] == [("source", f"a from {lost}", "SOURCE_MISSING")]
    assert view.result().collect()[0].n == 2
    assert engine.tick().idle
    lost.mkdir()
    clock.advance(2)
    assert engine.tick().idle
    engine.table("b").mark_complete()
    assert engine.tick().idle, "a complete table is polled no more"


def test_a_clock_that_goes_back_costs_one_refresh(engine: sw.Engine, clock: sw.ManualClock) -> None:
    view, a = engine.create_view("v", TOTAL, refresh=sw.every("1h")), engine.table("a")
    clock.set(START - 500_000)
    assert engine.tick() == []
    a.insert([(4, 4)])
    assert names(engine.tick()) == ["v"]
    a.insert([(5, 5)])
    assert engine.tick() == []
    clock.advance(3600)
    assert names(engine.tick()) == ["v"]
    assert view.verify()


def test_target_lag_learns_from_the_history(engine: sw.Engine, clock: sw.ManualClock) -> None:
    view, a = engine.create_view("v", TOTAL, refresh=sw.target_lag("100s")), engine.table("a")
    assert len(watch(view).durations) == 1
    a.insert([(4, 4)])
    view.refresh()
    assert watch(view).durations == tuple(r.seconds for r in engine.catalog.refreshes(view.id, 1)), (
        "not the first result"
    )
    a.insert([(5, 5)])
    due = view.due().at
    assert due is not None
    assert due == START + 100 - 1.25 * engine.catalog.refreshes(view.id, 1)[0].seconds
    clock.set(due - 0.01)
    assert engine.tick() == []
    assert names(engine.tick(next_look=1.0)) == ["v"], "in a second it would be too late"


# --- runs ----------------------------------------------------------------------------------------------


def test_a_run_ends_when_all_is_complete_and_fresh(engine: sw.Engine) -> None:
    engine.create_view("many", TOTAL, refresh=sw.rows(1000))
    engine.create_view("by_hand", TOTAL)
    engine.table("a").insert([(4, 4)])
    seen: list[sw.Tick] = []

    def mark(tick: sw.Tick) -> None:
        seen.append(tick)
        if len(seen) == 3:
            engine.table("a").mark_complete()

    engine.run(poll=0.02, on_tick=mark)
    assert [names(tick) for tick in seen] == [[], [], [], ["many"]]
    assert seen[3].reasons == {"many": "1 of 1,000 rows are waiting and no more will come"}
    assert engine.view("many").verify()
    assert not engine.running
    engine.run(poll="1h")  # there is still nothing left to wait for


def test_a_run_gives_up_on_a_view_that_no_data_can_mend(engine: sw.Engine, clock: sw.ManualClock) -> None:
    engine.create_view("inverse", "SELECT 100 / v AS x FROM a", refresh=sw.on_arrival())
    engine.create_view("total", TOTAL, refresh=sw.on_arrival())
    engine.table("a").insert([(4, 0)])
    engine.table("a").mark_complete()
    with pytest.raises(sw.SlackwaterError) as caught:
        engine.run(poll=0.01, on_tick=lambda tick: clock.advance(10) and None)
    assert caught.value.code == "SPARK_FAILED"
    assert engine.view("total").verify()
    assert engine.view("total").status()["pending_rows"] == 0


def started(engine: sw.Engine, **arguments: Any) -> tuple[threading.Thread, list[BaseException]]:
    """A run in a thread of its own, and what it raised."""
    errors: list[BaseException] = []

    def body() -> None:
        try:
            engine.run(**arguments)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    until(lambda: engine.running)
    return thread, errors


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.005)


def test_a_slow_refresh_does_not_pile_up_and_stop_ends_the_run(
    engine: sw.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    view, a = engine.create_view("v", TOTAL, refresh=sw.on_arrival()), engine.table("a")
    refresh, under_way, most, calls = View.refresh, [0], [0], [0]

    def slow(view: View, *, full: bool = False) -> sw.Refresh:
        under_way[0] += 1
        most[0], calls[0] = max(most[0], under_way[0]), calls[0] + 1
        time.sleep(0.5)
        report = refresh(view, full=full)
        under_way[0] -= 1
        return report

    monkeypatch.setattr(View, "refresh", slow)
    ticks: list[sw.Tick] = []
    thread, errors = started(engine, poll=0.01, on_tick=ticks.append)
    with pytest.raises(sw.SlackwaterError) as caught:
        engine.run()
    assert caught.value.code == "ENGINE_RUNNING"
    for number in range(4, 24):
        a.insert([(number, number)])
    until(lambda: not view.due().due)
    engine.stop()
    thread.join(30)
    assert not thread.is_alive()
    assert not errors
    assert not engine.running
    refreshes = sum(len(tick) for tick in ticks)
    assert most == [1]
    assert calls[0] == refreshes <= 20
    assert all(report.mode != "none" for tick in ticks for report in tick)
    assert view.verify()


def test_closing_the_engine_ends_its_run(open_engine: Callable[[], sw.Engine]) -> None:
    engine = open_engine()
    engine.create_table("a", "k INT, v INT")
    engine.create_view("v", TOTAL, refresh=sw.on_arrival())
    thread, errors = started(engine, poll=0.01)
    time.sleep(0.1)
    engine.close()
    thread.join(30)
    assert not thread.is_alive()
    assert not errors
    for closed in (engine.tick, engine.run):
        with pytest.raises(sw.SlackwaterError) as caught:
            closed()
        assert caught.value.code == "ENGINE_CLOSED"


def test_an_interrupt_ends_a_run_and_an_error_of_the_callers_gets_out(engine: sw.Engine) -> None:
    engine.create_view("v", TOTAL, refresh=sw.on_arrival())

    def interrupted(tick: sw.Tick) -> None:
        raise KeyboardInterrupt

    def broken(tick: sw.Tick) -> None:
        raise ZeroDivisionError

    engine.run(on_tick=interrupted)
    with pytest.raises(ZeroDivisionError):
        engine.run(on_tick=broken)
    assert not engine.running
    engine.stop()  # with no run, nothing
    assert engine.tick().idle


def test_reading_only_is_not_enough(engine: sw.Engine, spark: SparkSession) -> None:
    view = engine.create_view("v", TOTAL, refresh=sw.every("60s"))
    with sw.Engine(engine.path, spark=spark, read_only=True) as reader:
        assert reader.view("v").policy == view.policy
        assert reader.view("v").due().reason == "nothing new has arrived"
        for refused in (reader.tick, reader.run):
            with pytest.raises(sw.SlackwaterError) as caught:
                refused()
            assert caught.value.code == "WAREHOUSE_LOCKED"


# --- the command ---------------------------------------------------------------------------------------


def test_the_command(spark: SparkSession, tmp_path: Path) -> None:
    place, landing = tmp_path / "wh", tmp_path / "in"
    landing.mkdir()

    def run(*arguments: object) -> Any:
        result = CliRunner().invoke(cli, [*(str(a) for a in arguments), "--json"], catch_exceptions=False)
        assert (result.exit_code, result.stderr) == (0, ""), result.output
        return json.loads(result.stdout)

    run("init", place)
    run("create-table", place, "a", "k INT, v INT")
    made = run("create-view", place, "v", TOTAL, "--refresh", "rows 2 | every 1h")
    assert made["policy"] == "rows 2 | every 1h"
    with sw.Engine(place, spark=spark) as engine:
        engine.table("a").landing_directory(str(landing))
    (landing / "one.csv").write_text("k,v\n1,1\n")
    ticked = run("run", place, "--once")
    assert (ticked["refreshes"], [p["rows"] for p in ticked["polls"]]) == ([], [1])
    status = run("status", place)["views"][0]
    assert (status["policy"], status["due"], status["pending_rows"]) == ("rows 2 | every 1h", False, 1)
    assert status["due_at"] == pytest.approx(time.time() + 3600, abs=300)
    shown = CliRunner().invoke(cli, ["status", str(place)]).stdout
    assert "rows 2 | every 1h" in shown.replace("\n", " ")
    assert run("set-policy", place, "v", "on_arrival")["due"]
    ticked = run("run", place, "--once")
    assert [(r["view"], r["due_because"]) for r in ticked["refreshes"]] == [("v", "a row has arrived")]
    (landing / "two.csv").write_text("k,v\n2,2\n")
    with sw.Engine(place, spark=spark) as engine:
        engine.tick()
        engine.view("v").set_policy(sw.every("1s"))
        engine.table("a").insert([(3, 3)])
        engine.table("a").mark_complete()
    ended = run("run", place, "--until-complete", "--poll", "100ms")
    assert ended["refreshes"] == {"v": 1}
    with sw.Engine(place, spark=spark, read_only=True) as engine:
        assert engine.view("v").result().collect()[0].n == 3

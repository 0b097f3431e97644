"""Each policy by itself: when it is due, why, and what it refuses."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from slackwater.arrivals import ManualClock, Policy, Situation, SystemClock, Verdict
from slackwater.arrivals.clock import read
from slackwater.arrivals.cron_times import next_time
from slackwater.arrivals.durations import parse_duration, show_duration
from slackwater.errors import SlackwaterError


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp()


def refused(code: str, action: Any, *arguments: Any) -> SlackwaterError:
    with pytest.raises(SlackwaterError) as caught:
        action(*arguments)
    assert caught.value.code == code
    assert caught.value.advice
    return caught.value


WAITING = Situation(now=1000.0, last_refresh=990.0, pending_rows=3, oldest_pending=995.0)


# --- every -------------------------------------------------------------------------------------------


def test_every_counts_from_the_last_refresh() -> None:
    policy = sw.every("60s")
    verdict = policy.judge(WAITING)
    assert (verdict.due, verdict.at) == (False, 1050.0)
    assert "10 s ago" in verdict.reason
    assert not policy.judge(replace(WAITING, now=1049.9)).due
    assert policy.judge(replace(WAITING, now=1050.0)).due


def test_every_owes_a_first_result_at_once() -> None:
    assert sw.every("60s").judge(replace(WAITING, last_refresh=None)).due


# --- rows and arrivals ---------------------------------------------------------------------------------


def test_rows_waits_for_enough_of_them() -> None:
    assert sw.rows(3).judge(WAITING).due
    verdict = sw.rows(4).judge(WAITING)
    assert (verdict.due, verdict.at, verdict.reason) == (False, None, "3 of 4 rows are waiting")
    assert not sw.rows(4).judge(replace(WAITING, now=1e9)).due, "time alone brings no rows"


def test_the_last_rows_are_not_waited_for_in_vain() -> None:
    verdict = sw.rows(4).judge(replace(WAITING, complete=True))
    assert (verdict.due, verdict.reason) == (True, "3 of 4 rows are waiting and no more will come")
    assert not (sw.rows(4) & sw.every("60s")).judge(replace(WAITING, complete=True)).due, "the other half still holds"


def test_on_arrival_and_manual() -> None:
    assert sw.on_arrival().judge(WAITING) == Verdict(1000.0, 995.0, "3 rows have arrived")
    assert sw.manual().judge(replace(WAITING, now=1e9, complete=True)).at is None


@pytest.mark.parametrize(
    "policy",
    [sw.every(1), sw.rows(1), sw.on_arrival(), sw.cron("* * * * *"), sw.target_lag(1), sw.manual(),
     sw.every(1) | sw.rows(1), sw.every(1) & sw.on_arrival()],
)  # fmt: skip
def test_nothing_new_nothing_due(policy: Policy) -> None:
    fresh = Situation(now=1e9, last_refresh=0.0, complete=True)
    assert policy.judge(fresh) == Verdict(1e9, None, "nothing new has arrived")


# --- cron ----------------------------------------------------------------------------------------------


def test_cron_is_due_once_its_time_has_come_after_the_arrival() -> None:
    policy = sw.cron("0 3 * * *")
    before = Situation(at("2026-05-01T02:59:59"), at("2026-04-30T03:00:10"), 5, at("2026-05-01T01:00:00"))
    assert (policy.judge(before).due, policy.judge(before).at) == (False, at("2026-05-01T03:00:00"))
    assert policy.judge(replace(before, now=at("2026-05-01T03:00:00"))).due
    assert policy.judge(replace(before, now=at("2026-05-03T08:00:00"))).due, "a time that was slept through counts"
    late = replace(before, oldest_pending=at("2026-05-01T03:10:00"), now=at("2026-05-01T12:00:00"))
    assert policy.judge(late).at == at("2026-05-02T03:00:00"), "what came after the time waits for the next one"


@pytest.mark.parametrize(
    ("expression", "zone", "after", "expected"),
    [
        ("*/15 * * * *", "UTC", "2026-05-01T10:01:00", "2026-05-01T10:15:00"),
        ("*/15 * * * *", "UTC", "2026-05-01T10:15:00", "2026-05-01T10:15:00"),
        ("0 3 * * *", "Europe/Berlin", "2026-01-10T12:00:00", "2026-01-11T02:00:00"),
        ("0 3 * * *", "Europe/Berlin", "2026-07-10T12:00:00", "2026-07-11T01:00:00"),
        # 2026-05-01 is a Friday; cron counts weekdays from Sunday, which is both 0 and 7.
        ("0 0 * * 0", "UTC", "2026-05-01T10:00:00", "2026-05-03T00:00:00"),
        ("0 0 * * 7", "UTC", "2026-05-01T10:00:00", "2026-05-03T00:00:00"),
        ("0 0 * * 1", "UTC", "2026-05-01T10:00:00", "2026-05-04T00:00:00"),
        ("0 0 * * mon-fri", "UTC", "2026-05-01T10:00:00", "2026-05-04T00:00:00"),
        ("0 0 * * SAT-SUN", "UTC", "2026-05-02T10:00:00", "2026-05-03T00:00:00"),
        ("0 0 * * 0-2", "UTC", "2026-05-01T10:00:00", "2026-05-03T00:00:00"),
        ("0 0 * * 0-0", "UTC", "2026-05-03T10:00:00", "2026-05-10T00:00:00"),
        ("0 0 * * 2/2", "UTC", "2026-05-01T10:00:00", "2026-05-02T00:00:00"),
        # With both kinds of day given, either will do; with a star in one of them, both must hold.
        ("0 0 13 * fri", "UTC", "2026-05-02T10:00:00", "2026-05-08T00:00:00"),
        ("0 0 3 * fri", "UTC", "2026-05-02T10:00:00", "2026-05-03T00:00:00"),
        ("0 0 */2 * sun", "UTC", "2026-05-04T10:00:00", "2026-05-17T00:00:00"),
        ("0 0 30 2 mon", "UTC", "2026-03-01T00:00:00", "2027-02-01T00:00:00"),
        ("30 12 1 JAN,jul *", "UTC", "2026-02-01T00:00:00", "2026-07-01T12:30:00"),
        ("0 0 29 2 *", "UTC", "2026-01-01T00:00:00", "2028-02-29T00:00:00"),
        # Summer time: 02:30 is skipped on 29 March and comes twice on 25 October.
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00", "2026-03-29T01:30:00"),
        ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00", "2026-10-25T00:30:00"),
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T00:31:00", "2026-10-25T01:30:00"),
    ],
)  # fmt: skip
def test_cron_reads_as_cron_does(expression: str, zone: str, after: str, expected: str) -> None:
    policy = sw.cron(expression, timezone=zone)
    verdict = policy.judge(Situation(at(after), 0.0, 1, at(after)))
    assert verdict.at is not None
    assert datetime.fromtimestamp(verdict.at, timezone.utc).isoformat() == f"{expected}+00:00"


@pytest.mark.parametrize(
    "expression",
    ["", "* * * *", "* * * * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 13 *", "* * * * 8",
     "5-2 * * * *", "*/0 * * * *", "* * * * */0", "1, * * * *", "-1 * * * *", "x * * * *", "* * last * *",
     "* * 2nd * *", "* * * * fri-mon", "* * * foo *", "@daily", "\u0661 * * * *", "1.5 * * * *", "0 0 1 1 1; rm",
     None, 5, "*/100 * * * *"],
)  # fmt: skip
def test_bad_cron_text_is_refused(expression: Any) -> None:
    refused("POLICY_INVALID", sw.cron, expression)


@pytest.mark.parametrize("zone", ["Europe/Atlantis", "", "../../etc/passwd", "Europe", "/etc/passwd", "a\0b", None, 5])
def test_an_unknown_time_zone_is_refused(zone: Any) -> None:
    refused("POLICY_INVALID", sw.cron, "0 3 * * *", zone)


@pytest.mark.parametrize("expression", ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 31 feb *"])
def test_a_day_that_no_month_has_is_refused(expression: str) -> None:
    assert expression in refused("POLICY_NEVER", sw.cron, expression).message


def test_the_end_of_the_calendar_is_no_error() -> None:
    assert next_time("0 0 1 1 *", "UTC", at("9999-12-31T23:59:00")) is None
    verdict = sw.cron("0 0 1 1 *").judge(Situation(at("9999-12-31T23:59:30"), 0.0, 1, at("9999-12-31T23:59:00")))
    assert (verdict.due, verdict.at) == (False, None)


# --- target lag ------------------------------------------------------------------------------------------


def test_target_lag_leaves_time_for_the_refresh() -> None:
    policy = sw.target_lag("5m")
    waiting = Situation(now=1000.0, last_refresh=0.0, pending_rows=1, oldest_pending=900.0, durations=(40.0, 8.0))
    assert policy.judge(waiting).at == 900 + 300 - 40 * 1.25
    assert policy.judge(replace(waiting, next_look=10.0)).at == 900 + 300 - 50 - 10
    assert policy.judge(replace(waiting, durations=())).at == 1200.0
    slow = policy.judge(replace(waiting, durations=(600.0,)))
    assert (slow.due, slow.at) == (True, 900.0), "a lag that cannot be kept is kept as well as can be"


@pytest.mark.parametrize("seconds", [0.0, 1.0, 17.0, 200.0])
def test_a_refresh_that_takes_what_the_slowest_took_ends_in_time(seconds: float) -> None:
    """Simulated: look every second, start when due, be done after the time that was expected."""
    arrived = 50.0
    now = arrived
    while not sw.target_lag(300).judge(Situation(now, 0.0, 1, arrived, durations=(seconds, 1.0), next_look=1.0)).due:
        now += 1.0
    assert now + seconds <= arrived + 300.0
    assert now >= arrived + 300.0 - seconds * 1.25 - 2.0, "and not earlier than it must"


# --- a clock that goes back ------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [sw.every("1h"), sw.cron("0 3 * * *"), sw.target_lag("1h")])
def test_a_clock_that_goes_back_brings_one_refresh_and_no_storm(policy: Policy) -> None:
    """The last refresh and an arrival lie a year ahead of the clock."""
    clock = ManualClock(at("2026-05-01T12:00:00"))
    year = 365 * 86400.0
    behind = Situation(clock.now(), clock.now() + year, 1, clock.now() + year + 5)
    verdict = policy.judge(behind)
    assert verdict.due, "nobody waits for a year"
    assert "set back" in verdict.reason
    refreshed = Situation(clock.now(), last_refresh=clock.now())
    assert not policy.judge(refreshed).due, "nothing new, nothing run"
    arrived = Situation(clock.advance(1), refreshed.last_refresh, 1, clock.now())
    assert not policy.judge(arrived).due, "from here on it counts as ever"
    assert policy.judge(replace(arrived, now=clock.advance(86400))).due


def test_a_clock_that_jitters_never_refreshes_more_than_once_for_each_jump() -> None:
    policy, refreshes, jumps, last, oldest = sw.every(60), 0, 0, 1000.0, None
    now = 1000.0
    for step in range(2000):
        back = step % 100 == 99
        jumps += back
        now = now - 200.0 if back else now + 1.0
        oldest = now if oldest is None else oldest  # something arrives all the time
        if policy.judge(Situation(now, last, 1, oldest)).due:
            refreshes, last, oldest = refreshes + 1, now, None
    assert jumps == 20
    assert refreshes <= jumps + 2000 // 60 + 1
    assert refreshes >= 2000 // 200


def test_what_is_no_clock_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    refused("CLOCK_INVALID", read, datetime.now)
    refused("CLOCK_INVALID", lambda: sw.Engine(tmp_path / "wh", clock=time.time))  # type: ignore[arg-type]
    assert not (tmp_path / "wh").exists()


@pytest.mark.parametrize("shown", [math.nan, math.inf, -1.0, 1e300, "12:00", None, True])
def test_a_clock_that_shows_no_time_is_refused(shown: Any) -> None:
    class Broken:
        def now(self) -> Any:
            return shown

    refused("CLOCK_INVALID", read, Broken())
    refused("CLOCK_INVALID", ManualClock, shown)
    clock = ManualClock(5.0)
    if isinstance(shown, float):
        refused("CLOCK_INVALID", clock.advance, shown * 10)
        refused("CLOCK_INVALID", clock.set, shown)
    assert clock.now() == 5.0


def test_clocks() -> None:
    clock = ManualClock(10.0)
    assert (clock.advance(5), clock.advance(-7.5), clock.now()) == (15.0, 7.5, 7.5)
    clock.set(99)
    assert read(clock) == 99.0
    assert abs(SystemClock().now() - datetime.now(timezone.utc).timestamp()) < 5


# --- durations and other arguments -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "seconds"),
    [("60s", 60), (" 5 min ", 300), ("1h30m", 5400), ("1h 30m 5s", 5405), ("250ms", 0.25), ("1.5d", 129600),
     ("2W", 1209600), (timedelta(minutes=2), 120), (7, 7), (0.5, 0.5)],
)  # fmt: skip
def test_durations(given: Any, seconds: float) -> None:
    assert parse_duration(given) == seconds
    assert parse_duration(show_duration(seconds)) == seconds
    assert sw.every(given) == sw.every(seconds)


@pytest.mark.parametrize(
    "given",
    ["", "0s", "-5s", "5", "5 parsecs", "s", "1h-5m", "1e3s", "nan", "inf", "\u0665s", 0, -1, math.nan, math.inf,
     -math.inf, timedelta(0), timedelta(seconds=-1), None, True, [60], "101w 2000000d", 10**400, "9" * 400 + "s"],
)  # fmt: skip
def test_bad_durations_are_refused(given: Any) -> None:
    refused("POLICY_INVALID", sw.every, given)
    refused("POLICY_INVALID", sw.target_lag, given)


@pytest.mark.parametrize("count", [0, -1, 1.5, math.nan, True, "5", None])
def test_bad_row_counts_are_refused(count: Any) -> None:
    refused("POLICY_INVALID", sw.rows, count)


# --- combinations ------------------------------------------------------------------------------------------


def test_combinations_are_flat_and_without_doubles() -> None:
    a, b, c = sw.every(1), sw.rows(2), sw.on_arrival()
    assert (a | b) | c == a | (b | c)
    assert a | a == a
    assert a & a & b == a & b
    assert str((a | b) & c | a) == "(every 1s | rows 2) & on_arrival | every 1s"
    assert str(a & b | c) == "every 1s & rows 2 | on_arrival"


def test_what_can_never_fire_is_refused() -> None:
    error = refused("POLICY_NEVER", lambda: sw.manual() & sw.every(60))
    assert error.message == "manual & every 1m can never be due, because manual never is"
    refused("POLICY_NEVER", lambda: sw.every(60) & sw.rows(5) & sw.manual())
    refused("POLICY_NEVER", lambda: (sw.manual() | sw.manual()) & sw.rows(5))
    assert (sw.manual() | sw.rows(5)).can_fire
    assert not sw.manual().can_fire
    assert ((sw.manual() | sw.rows(5)) & sw.every(60)).can_fire


def test_and_and_or_are_not_taken_for_the_operators() -> None:
    assert "| and &" in refused("POLICY_INVALID", lambda: sw.every(60) and sw.rows(5)).advice
    with pytest.raises(TypeError):
        sw.every(60) | "rows 5"  # type: ignore[operator]


def test_reasons_name_what_is_decisive() -> None:
    waiting = replace(WAITING, pending_rows=5)
    assert (sw.rows(5) | sw.every("1h")).judge(waiting).reason == "5 of 5 rows are waiting"
    assert (sw.rows(5) & sw.every("1h")).judge(waiting).reason == "the last refresh was 10 s ago, of 1h"
    both = (sw.rows(6) | sw.every("1h")).judge(waiting)
    assert both.reason == "5 of 6 rows are waiting; the last refresh was 10 s ago, of 1h"
    assert both.at == 990.0 + 3600
    assert (sw.rows(6) & sw.every("1h")).judge(waiting).at is None


# --- the next time -------------------------------------------------------------------------------------------

FRIDAY = at("2026-03-06T09:00:00")


@pytest.mark.parametrize(("policy", "after"), [
    (sw.every("1h"), 3600.0),
    (sw.target_lag("10min"), 600.0),
    (sw.cron("0 9 * * 1-5"), 3 * 86_400.0),  # not the scheduled time at which it was refreshed, and not on Saturday
    (sw.rows(10), None),
    (sw.on_arrival(), None),
    (sw.manual(), None),
    (sw.every("1h") | sw.every("10min"), 600.0),
    (sw.every("1h") & sw.every("10min"), 3600.0),
    (sw.every("1h") | sw.rows(10), 3600.0),
    (sw.every("1h") & sw.rows(10), 3600.0),
    (sw.every("1h") | sw.manual(), 3600.0),
    (sw.every("1h") | sw.on_arrival(), None),  # any row makes it due
    (sw.every("1h") & sw.on_arrival(), 3600.0),
    (sw.cron("0 9 * * *") | sw.every("2d") & sw.every("1h"), 86_400.0),
])  # fmt: skip
def test_when_a_refreshed_view_is_due_again(policy: Policy, after: float | None) -> None:
    assert policy.due_after(FRIDAY) == (None if after is None else FRIDAY + after)


@pytest.mark.parametrize(("policy", "rows"), [
    (sw.rows(10), 10),
    (sw.every("1h"), None),
    (sw.rows(10) | sw.rows(30) | sw.every("1h"), 10),
    (sw.rows(10) & sw.rows(30), 30),
    (sw.rows(10) & sw.every("1h"), None),  # by then any number may have come
])  # fmt: skip
def test_how_many_rows_a_refresh_finds_at_most(policy: Policy, rows: int | None) -> None:
    assert policy.most_rows == rows

"""The beat of a run: at once, regular, never two at a time, and never stuck."""

from __future__ import annotations

import threading
import time
from datetime import datetime, timedelta, timezone

from slackwater.arrivals.timing import Beats


def test_the_first_beat_comes_at_once_and_the_next_after_the_interval() -> None:
    with Beats(0.2) as beats:
        started = time.monotonic()
        assert beats.wait()
        assert time.monotonic() - started < 0.15
        assert beats.wait()
        assert 0.15 < time.monotonic() - started < 1.0


def test_slow_work_lets_nothing_pile_up() -> None:
    with Beats(0.02) as beats:
        for _ in range(3):
            assert beats.wait()
            time.sleep(0.3)  # fifteen intervals
            assert beats._hand_over.waiting.empty(), "beats during the work are left out, not saved up"
        started, count = time.monotonic(), 0
        while time.monotonic() - started < 0.3:
            assert beats.wait()
            count += 1
        assert 3 <= count <= 16, "then it goes on at its pace"


def test_ending_wakes_whoever_waits() -> None:
    with Beats(3600.0) as beats:
        assert beats.wait()
        threading.Timer(0.05, beats.end).start()
        started = time.monotonic()
        assert not beats.wait()
        assert time.monotonic() - started < 2.0
        assert beats.ended
        assert not beats.wait()


def test_ending_during_the_work_leaves_no_further_beat() -> None:
    with Beats(0.01) as beats:
        assert beats.wait()
        time.sleep(0.05)
        beats.end()
        assert not beats.wait()


def test_a_wall_clock_that_goes_back_stops_nothing() -> None:
    """To the scheduler library it looks as if the next beat were an hour away."""
    with Beats(0.05) as beats:
        assert beats.wait()
        beats._job.modify(next_run_time=datetime.now(timezone.utc) + timedelta(hours=1))
        started = time.monotonic()
        assert beats.wait()
        assert time.monotonic() - started < 5.0


def test_a_wall_clock_that_leaps_ahead_brings_one_beat() -> None:
    with Beats(0.5) as beats:
        assert beats.wait()
        beats._job.modify(next_run_time=datetime.now(timezone.utc) - timedelta(days=3650))
        started = time.monotonic()
        assert beats.wait()
        assert time.monotonic() - started < 1.5, "the hundreds of millions of beats in between are not even counted"
        time.sleep(0.1)
        assert beats._hand_over.waiting.empty()


def test_no_thread_is_left_behind() -> None:
    before = set(threading.enumerate())
    with Beats(0.01) as beats:
        beats.wait()
    assert set(threading.enumerate()) <= before

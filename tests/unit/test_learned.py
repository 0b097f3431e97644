"""The learned forecast: seasons are found, the back-test picks the right model, and little history is said."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest

import slackwater as sw
from slackwater.arrivals.contest import Past, Winner, contest, next_rows
from slackwater.arrivals.history import TableArrivals, Trigger
from slackwater.arrivals.learned import past_of
from slackwater.arrivals.models import BY_NAME, MODELS
from slackwater.storage.forecasts import ArrivalRecord
from tests.unit.test_forecasts import refreshed

DAY, HOUR = 86_400.0, 3600.0
START = 1_699_920_000.0  # a midnight, UTC


def by_hour(days: int, rows: list[int] | None = None, weekend: float = 1.0) -> tuple[TableArrivals, float]:
    """A change in the middle of each hour, by the hour of day; fewer or more at the end of the week."""
    rows = rows or [0] * 8 + [1000] * 8 + [100] * 8
    random = np.random.default_rng(7)
    changes = [ArrivalRecord(1, START, 10**6, 0)]
    for hour in range(days * 24):
        factor = weekend if (hour // 24) % 7 in (5, 6) else 1.0
        count = int(rows[hour % 24] * factor * random.normal(1.0, 0.02))
        if count:
            changes.append(ArrivalRecord(hour + 2, START + (hour + 0.5) * HOUR, count, 0))
    return TableArrivals("t", 10**6, changes=tuple(changes)), START + days * DAY


@pytest.mark.parametrize(("hour", "expected"), [(0, 0), (8, 1000), (16, 100)])
def test_the_hour_of_day_is_recovered(hour: int, expected: int) -> None:
    arrivals, _ = by_hour(8)
    now = START + 7 * DAY + hour * HOUR
    seen = replace(arrivals, changes=tuple(c for c in arrivals.changes if c.at <= now))
    said = sw.learned().expect(seen, Trigger(now, HOUR, given=True))
    assert said.rows == pytest.approx(expected, rel=0.1, abs=15)
    assert said.low <= expected * 1.1
    assert said.high >= expected * 0.9
    if expected == 1000 and hour == 8:
        assert "hour of day" in said.reason, "nothing else sees the jump coming"


def test_the_weekend_is_recovered_from_a_month() -> None:
    arrivals, _ = by_hour(35, weekend=0.1)
    # The first hour with rows of a Saturday, after a Friday.
    now = START + 26 * DAY + 8 * HOUR
    seen = replace(arrivals, changes=tuple(c for c in arrivals.changes if c.at <= now))
    said = sw.learned().expect(seen, Trigger(now, HOUR, given=True))
    assert (int(now - START) // 86_400) % 7 == 5
    assert said.rows == pytest.approx(100, rel=0.25)


def test_a_season_is_used_for_other_horizons() -> None:
    arrivals, now = by_hour(10)
    assert sw.learned().expect(arrivals, Trigger(now, 12 * HOUR, given=True)).rows == pytest.approx(4000, rel=0.1)
    arrivals, now = by_hour(10, [0] * 12 + [6000] * 12)
    steady = tuple(
        ArrivalRecord(10 * c.version + part, c.at + (part - 3) * 600.0, c.rows // 6, 0)
        for c in arrivals.changes[1:]
        for part in range(6)
    )
    seen = replace(arrivals, changes=(arrivals.changes[0], *(c for c in steady if c.at <= now - 12 * HOUR)))
    # At noon, when nothing has come for twelve hours: six times an hour, 1000 rows.
    said = sw.learned().expect(seen, Trigger(now - 12 * HOUR, 600.0, given=True))
    assert said.rows == pytest.approx(1000, rel=0.1)


SERIES = {
    "zero": [0] * 30,
    "last": [5_000, 100, 800, 100, 100, 100, 100, 100] + [700] * 22,
    "mean": [100, 140, 60, 100, 70, 130, 90, 110, 80, 120] * 4,
    "damped trend": [1000 + 50 * i for i in range(40)],
}


@pytest.mark.parametrize("model", SERIES)
def test_the_back_test_picks_the_right_model(model: str) -> None:
    rows = np.array(SERIES[model], dtype=float)
    past = Past("refresh", rows, 60.0 * np.arange(1, len(rows) + 1), 60.0)
    winner = contest(past, now=0.0, changes=len(rows))
    said = next_rows(BY_NAME[winner.model], past, winner.parameters)
    if model in ("zero", "last"):
        assert (winner.model, winner.error) == (model, 0.0)
    if model == "mean":
        # Smoothing with a small weight is a mean too; what must not win is the last value or nothing.
        assert winner.model in ("mean", "exponential smoothing", "theta", "damped trend")
        assert said == pytest.approx(100.0, abs=8)
    if model == "damped trend":
        assert winner.model in ("damped trend", "theta")
        assert said == pytest.approx(3000.0, rel=0.02)


def test_rows_that_come_now_and_then_are_expected_now_and_then() -> None:
    arrivals, now = refreshed([0, 0, 0, 500] * 8)
    said = sw.learned().expect(arrivals, Trigger(now, 60.0))
    assert 50 < said.rows < 250
    assert said.high >= 400


def test_the_back_test_sees_only_the_past() -> None:
    rows = np.arange(24.0)
    bins = {HOUR: (24 * HOUR, np.arange(24.0)), DAY: (DAY, np.array([276.0]))}
    past = Past("clock", rows, HOUR * np.arange(1.0, 25.0), HOUR, bins)
    seen = past.upto(10)
    assert seen.rows.tolist() == list(range(10))
    assert seen.bins[HOUR][0] == 10 * HOUR
    assert seen.bins[HOUR][1].tolist() == list(range(10))
    assert DAY not in seen.bins


def test_a_model_that_fails_is_out_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> float:
        raise ValueError("no convergence")

    broken = [replace(m, fit=fail) if m.name == "damped trend" else m for m in MODELS]
    broken = [replace(m, ahead=fail) if m.name == "theta" else m for m in broken]
    broken = [replace(m, ahead=lambda *_: np.array([math.nan])) if m.name == "last" else m for m in broken]
    monkeypatch.setattr("slackwater.arrivals.contest.MODELS", tuple(broken))
    rows = np.array(SERIES["damped trend"], dtype=float)
    winner = contest(Past("refresh", rows, np.arange(40.0), 1.0), 0.0, 40)
    assert winner.model == "exponential smoothing"


def test_hostile_series_give_numbers_and_no_warnings() -> None:
    random = np.random.default_rng(3)
    for rows in ([10**15] * 20, [0, 10**12] * 12, random.integers(0, 10, 40).tolist(), [0] * 19 + [10**9], [1] * 8):
        arrivals, now = refreshed([int(r) for r in rows])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            said = sw.learned().expect(arrivals, Trigger(now, 60.0))
        assert 0 <= said.low <= said.rows <= said.high < math.inf


def test_little_history_is_naive_with_wide_bounds_and_says_so() -> None:
    arrivals, now = refreshed([100, 120, 110])
    said = sw.learned().expect(arrivals, Trigger(now, 60.0))
    assert (said.rows, said.low, said.high, said.kind) == (110, 0, 1200, "learned")
    assert "too little history (3 so far)" in said.reason


def test_the_winner_is_remembered_until_the_past_has_doubled_or_a_day_is_over() -> None:
    arrivals, now = refreshed([100] * 20)
    first = sw.learned().expect(arrivals, Trigger(now, 60.0))
    assert first.detail["model"] == "last"
    # The memory is proved by planting another winner: it is used as long as it counts.
    planted = {**first.detail, "model": "zero"}
    trigger = Trigger(now, 60.0)
    assert sw.learned().expect(replace(arrivals, remembered=planted), trigger).rows == 0
    for stale in (
        {**planted, "changes": 10},
        {**planted, "at": now - DAY - 1},
        {**planted, "at": now + 5},
        {**planted, "by": "clock"},
        {**planted, "model": "no such model"},
        {"something": "else"},
    ):
        assert sw.learned().expect(replace(arrivals, remembered=stale), trigger).rows == 100
    assert Winner.from_dict(first.detail) is not None


def test_an_irregular_rhythm_is_cut_by_refresh_and_another_horizon_by_the_clock() -> None:
    arrivals, now = refreshed([100] * 20, every=60.0)
    by_refresh = past_of(arrivals, Trigger(now, 60.0))
    assert by_refresh is not None
    assert (by_refresh.by, by_refresh.rows.tolist()) == ("refresh", [100.0] * 20)
    by_clock = past_of(arrivals, Trigger(now, 120.0, given=True))
    assert by_clock is not None
    assert by_clock.by == "clock"
    assert by_clock.rows.tolist() == [200.0] * 10
    assert sw.learned().expect(arrivals, Trigger(now, 120.0, given=True)).rows == pytest.approx(200.0)


def test_the_first_load_says_nothing_about_what_follows() -> None:
    changes = (ArrivalRecord(1, START, 6_000_000, 0), *(
        ArrivalRecord(v, START + v * 60.0, 50, 0) for v in range(2, 40)
    ))  # fmt: skip
    said = sw.learned().expect(TableArrivals("t", 6_001_900, changes=changes), Trigger(START + 39.5 * 60, 60.0))
    assert said.rows == pytest.approx(50.0, rel=0.1)
    assert said.high < 1000


def test_a_refresh_that_cannot_wait_makes_do_with_what_is_known() -> None:
    arrivals, now = by_hour(8)
    hurried = sw.learned().expect(arrivals, Trigger(now, HOUR, given=True, compares=False))
    assert "next time" in hurried.reason
    assert not hurried.detail
    learned = sw.learned().expect(arrivals, Trigger(now, HOUR, given=True))
    later = replace(arrivals, remembered=learned.detail)
    again = sw.learned().expect(later, Trigger(now + 3 * DAY, HOUR, given=True, compares=False))
    assert again.detail == learned.detail, "the last winner serves, however long ago it won"


@pytest.mark.parametrize("name", ["exponential smoothing", "damped trend", "theta"])
def test_what_a_model_said_of_a_series_is_remembered_for_that_series_alone(name: str) -> None:
    model, rows = BY_NAME[name], np.linspace(10.0, 500.0, 30)
    fitted = model.fit(rows)
    first = model.ahead(rows, fitted, 2)
    assert model.ahead(rows.copy(), dict(fitted), 2) is first
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 0.0
    assert model.ahead(rows * 3, model.fit(rows * 3), 2)[0] == pytest.approx(3 * first[0], rel=0.05)
    assert len(model.ahead(rows, fitted, 5)) == 5

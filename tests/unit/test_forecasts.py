"""Forecasts of every kind from made-up histories, without Spark."""

from __future__ import annotations

import json
import math
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest

import slackwater as sw
from slackwater.arrivals.distribution import DelayDistribution
from slackwater.arrivals.durations import parse_span
from slackwater.arrivals.forecast import Forecast, TableForecast
from slackwater.arrivals.history import Delays, TableArrivals, Trigger, usual_gap, usual_horizon
from slackwater.arrivals.kinds import forecaster_from
from slackwater.arrivals.late import LateArrivals
from slackwater.arrivals.measuring import POINTS, delay_points
from slackwater.arrivals.naive import naive
from slackwater.arrivals.outlook import check_forecaster
from slackwater.storage.forecasts import ArrivalRecord, PaceRecord
from slackwater.storage.records import TableRecord
from tests.unit.catalog_suite import refused

DAY = 86_400.0


def refreshed(
    rows: list[int], load: int = 10_000, every: float = 60.0, deleted: int = 0
) -> tuple[TableArrivals, float]:
    """A table with a first load and then one change before each refresh; the last change waits for its refresh."""
    changes = [ArrivalRecord(1, 0.0, load, 0)]
    marks = [(2, 1.0)]
    for number, count in enumerate(rows, 1):
        if count:
            changes.append(ArrivalRecord(2 * number + 1, number * every, count - deleted, deleted))
        marks.append((2 * number + 2, number * every + 1.0))
    return TableArrivals("t", load + sum(rows), changes=tuple(changes), marks=tuple(marks[:-1])), marks[-1][1]


# --- the types -------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [-1, -0.001, math.nan, math.inf, -math.inf, True, "7", None, 10**400])
@pytest.mark.parametrize("field", ["rows", "low", "high", "deletes"])
def test_impossible_numbers_are_refused(field: str, bad: Any) -> None:
    good: dict[str, Any] = {"table": "t", "rows": 5, "low": 1, "high": 9, "deletes": 0.5}
    TableForecast(**good)
    with refused("FORECAST_INVALID"):
        TableForecast(**{**good, field: bad})


@pytest.mark.parametrize(
    ("rows", "low", "high", "deletes"), [(5, 6, 9, 0), (5, 1, 4, 0), (5, 9, 1, 0), (5, 1, 9, 1.01)]
)
def test_contradictions_are_refused(rows: float, low: float, high: float, deletes: float) -> None:
    with refused("FORECAST_INVALID"):
        TableForecast("t", rows, low, high, deletes)


def test_a_forecast_is_immutable_and_goes_through_json() -> None:
    one = TableForecast("t", 5, 1, 9, 0.25, True, "fixed", "because", {"a": [1, 2]})
    forecast = Forecast((one, TableForecast.nothing("u")), "fixed", 12.5, 60.0, "given")
    assert Forecast.from_dict(json.loads(json.dumps(forecast.to_dict()))) == forecast
    with pytest.raises(FrozenInstanceError):
        one.rows = 6  # type: ignore[misc]
    assert forecast.of("t") is one
    assert (forecast.of("absent").rows, forecast.of("absent").high) == (0.0, 0.0)
    assert "5 rows" in str(forecast)
    assert "then complete" in str(forecast)
    assert "<table>" in forecast._repr_html_()


def test_a_damaged_forecast_is_refused() -> None:
    for bad in ({}, {"tables": [{"rows": 1}], "kind": "x", "made_at": 1.0, "horizon_seconds": 1.0}):
        with refused("FORECAST_INVALID"):
            Forecast.from_dict(bad)
    with refused("FORECAST_INVALID"):
        Forecast((TableForecast.nothing("t"), TableForecast.nothing("t")), "fixed", 1.0, 1.0)
    for horizon, made in ((-1.0, 1.0), (math.nan, 1.0), (1.0, math.nan)):
        with refused("FORECAST_INVALID"):
            Forecast((), "fixed", made, horizon)


@pytest.mark.parametrize("span", ["", "60", "60 parsecs", "-5s", "0s", 0, -1, math.nan, math.inf, True, None])
def test_what_is_no_span_is_refused(span: Any) -> None:
    with refused("FORECAST_INVALID"):
        parse_span(span, "it")


@pytest.mark.parametrize(
    "forecaster",
    [
        sw.fixed(orders=5),
        sw.fixed({"a b": TableForecast("a b", 5, 1, 9, 0.5, True)}),
        sw.late_arrivals(),
        sw.late_arrivals("ts", batch="1d", longest="7d", probability=0.5, interval="60s", ongoing=True),
        sw.late_arrivals({"orders": "o_ts", "lines": "l_ts"}),
        sw.paced(stale_after="5min"),
        sw.learned(),
    ],
    ids=lambda one: one.kind,
)
def test_every_kind_is_kept_in_a_views_options(forecaster: Any) -> None:
    assert forecaster_from(json.loads(json.dumps(forecaster.to_dict()))) == forecaster


def test_options_that_are_none_are_refused_and_old_views_learn() -> None:
    assert forecaster_from(None) == sw.learned()
    for bad in ({}, {"kind": "oracle"}, {"kind": "fixed"}, {"kind": "paced", "stale_after": -1}):
        with refused("FORECAST_INVALID"):
            forecaster_from(bad)


# --- what a forecaster may name --------------------------------------------------------------------


def _table(name: str, **columns: str) -> TableRecord:
    fields = [{"name": column, "type": dtype} for column, dtype in columns.items()]
    return TableRecord(1, name, json.dumps({"fields": fields}), (), False, 1, None)


def test_a_forecast_of_an_unknown_table_is_refused() -> None:
    tables = [_table("orders", at="timestamp"), _table("lines", at="date"), _table("other", at="string")]
    for known in (sw.fixed(orders=1), sw.fixed(other=1), sw.late_arrivals("at"), sw.late_arrivals({"orders": "at"})):
        assert check_forecaster(known, tables, ["orders", "lines"]) is known
    for unknown in (sw.fixed(Orders=1), sw.late_arrivals({"order": "at"})):
        with refused("FORECAST_TABLE_UNKNOWN"):
            check_forecaster(unknown, tables, ["orders"])


def test_a_column_without_times_is_refused() -> None:
    tables = [_table("orders", at="timestamp"), _table("other", at="string", nested={"type": "array"})]  # type: ignore[arg-type]
    for bad in ("missing", {"other": "at"}, {"other": "nested"}, {"orders": "missing"}):
        with refused("FORECAST_COLUMN"):
            check_forecaster(sw.late_arrivals(bad), tables, ["orders", "other"])
    for odd in ("", 7, {"orders": ""}):
        with refused("FORECAST_COLUMN"):
            sw.late_arrivals(odd)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [5, "learned", sw.learned, {"orders": 5}, None])
def test_what_is_no_forecaster_is_refused(bad: object) -> None:
    with refused("FORECAST_INVALID"):
        check_forecaster(bad, [], [])


# --- fixed -----------------------------------------------------------------------------------------


def test_fixed_says_what_it_was_given() -> None:
    arrivals, now = refreshed([8, 8], deleted=2)
    said = sw.fixed({"t": 1000}).expect(arrivals, Trigger(now, 60.0))
    assert (said.rows, said.low, said.high, said.deletes, said.complete_after) == (1000, 1000, 1000, 0.25, False)
    bounds = TableForecast("t", 10, 5, 20, 0.75, True)
    said = sw.fixed(t=bounds).expect(arrivals, Trigger(now, 60.0))
    assert (said.rows, said.low, said.high, said.deletes, said.complete_after) == (10, 5, 20, 0.75, True)
    assert sw.fixed(other=5).expect(arrivals, Trigger(now, 60.0)).rows == 0


@pytest.mark.parametrize("bad", [-1, math.nan, math.inf, "5", None, TableForecast("u", 1, 1, 1)])
def test_fixed_refuses_what_cannot_be(bad: Any) -> None:
    with refused("FORECAST_INVALID"):
        sw.fixed(t=bad)
    with refused("FORECAST_INVALID"):
        sw.fixed([("t", 5)])  # type: ignore[arg-type]


# --- paced -----------------------------------------------------------------------------------------


def _paced(rate: float, remaining: int | None, at: float = 100.0, came: int = 0, **more: Any) -> TableArrivals:
    changes = (ArrivalRecord(1, 50.0, 999, 0), ArrivalRecord(2, 101.0, came, 0))
    return TableArrivals("t", 1000, changes=changes, pace=PaceRecord(1, rate, remaining, at), **more)


def test_paced_follows_the_report() -> None:
    said = sw.paced().expect(_paced(10.0, None), Trigger(102.0, 60.0))
    assert (said.rows, said.low, said.high, said.complete_after) == (600, 300, 1200, False)
    said = sw.paced().expect(_paced(10.0, 5000, came=200), Trigger(102.0, 60.0))
    assert (said.rows, said.low, said.high, said.complete_after) == (600, 300, 1200, False)
    assert "4,800 left" in said.reason
    said = sw.paced().expect(_paced(10.0, 700, came=200), Trigger(102.0, 60.0))
    assert (said.rows, said.low, said.high, said.complete_after) == (500, 300, 500, True)


def test_paced_expects_nothing_without_a_word_from_upstream() -> None:
    trigger = Trigger(102.0, 60.0)
    for arrivals, complete in (
        (TableArrivals("t"), False),
        (_paced(0.0, None), False),
        (_paced(10.0, 200, came=200), True),
        (_paced(10.0, 0), True),
        (_paced(10.0, None, at=102.0 - 3601), False),
    ):
        said = sw.paced().expect(arrivals, trigger)
        assert (said.rows, said.high, said.complete_after) == (0, 0, complete)
    assert "old" in sw.paced("1s").expect(_paced(10.0, None), trigger).reason


def test_a_report_from_the_future_counts_as_now() -> None:
    assert sw.paced("1s").expect(_paced(10.0, None, at=1e6), Trigger(102.0, 60.0)).rows == 600


# --- late arrivals: the geometric model ------------------------------------------------------------


def test_geometric_deltas_are_exact() -> None:
    model, total = sw.late_arrivals(probability=0.9), 1_000_000
    series = [90_000, 9_000, 900, 90, 9]
    for known in range(len(series)):
        arrivals, now = refreshed(series[:known], load=900_000)
        said = model.expect(arrivals, Trigger(now, 60.0))
        assert said.rows == pytest.approx(series[known])
        assert said.low <= series[known] <= said.high
        assert said.complete_after == (total * 0.1 ** (known + 2) < 0.5)
    arrivals, now = refreshed(series, load=900_000)
    assert model.expect(arrivals, Trigger(now, 60.0)).complete_after


def test_geometric_before_the_first_refresh_goes_by_the_load() -> None:
    arrivals = TableArrivals("t", 90, changes=(ArrivalRecord(1, 0.0, 60, 0), ArrivalRecord(2, 1.0, 30, 0)))
    assert sw.late_arrivals().expect(arrivals, Trigger(2.0, 60.0)).rows == pytest.approx(9.0)
    empty = sw.late_arrivals().expect(TableArrivals("t"), Trigger(2.0, 60.0))
    assert (empty.rows, empty.complete_after) == (0.0, True)


def test_geometric_counts_deltas_without_rows() -> None:
    arrivals, now = refreshed([9_000, 0, 0], load=90_000)
    # Two refreshes later, 9000 * 0.1 * 0.1 * 0.1 is next. The zeros close the series, so nothing waits.
    arrivals = replace(arrivals, marks=(*arrivals.marks, (99, now)))
    assert sw.late_arrivals().expect(arrivals, Trigger(now, 60.0)).rows == pytest.approx(9.0)


def test_geometric_by_time_scales_with_the_horizon() -> None:
    arrivals, now = refreshed([750], load=9_000, every=60.0)  # half an hour's worth in two intervals of 30 s
    model = sw.late_arrivals(probability=0.5, interval="30s")
    # The delta took 60 s (from 1 to 61): 750 = R * (1 - 0.5^2), so 250 are left.
    assert model.expect(arrivals, Trigger(now, 30.0)).rows == pytest.approx(125.0)
    assert model.expect(arrivals, Trigger(now, 90.0)).rows == pytest.approx(250 * (1 - 0.5**3))


@pytest.mark.parametrize("probability", [0, 1, 1.5, -0.1, math.nan, "0.9", True])
def test_a_probability_that_is_none_is_refused(probability: Any) -> None:
    with refused("FORECAST_INVALID"):
        sw.late_arrivals(probability=probability)


# --- late arrivals: the distribution of delays -----------------------------------------------------


def test_the_distribution_is_the_empirical_one_where_all_had_time_to_arrive() -> None:
    delays, rows = np.array([10.0, 0.0, 20.0, 10.0]), np.array([2.0, 5.0, 1.0, 2.0])
    known = DelayDistribution.estimate(delays, np.full(4, 100.0), rows)
    assert known.delays == (0.0, 10.0, 20.0)
    assert known.shares == pytest.approx((0.5, 0.9, 1.0))
    assert known.share([-1, 0, 9.9, 10, 25]).tolist() == pytest.approx([0, 0.5, 0.5, 0.9, 1.0])


def test_batches_that_are_still_coming_in_do_not_make_data_look_punctual() -> None:
    # A whole batch of 100: 80 at once, 15 after 10 s, 5 after 20 s. A batch of 1000 that was due 5 s ago: 800 at once.
    delays, rows = np.array([0.0, 10.0, 20.0, 0.0]), np.array([80.0, 15.0, 5.0, 800.0])
    ages = np.array([100.0, 100.0, 100.0, 5.0])
    known = DelayDistribution.estimate(delays, ages, rows)
    # By hand: F(<20) = 1 - 5/100; F(<10) = 0.95 * (1 - 15/95): the young batch could not have been seen at 10 or 20.
    assert known.shares == pytest.approx((0.8, 0.95, 1.0))
    young = np.array([5.0]), np.array([800.0])
    assert known.still_due(*young, 0.0) == pytest.approx(200.0)
    assert known.still_due(*young, 5.0) == pytest.approx(50.0)
    assert known.complete_in(*young) == pytest.approx(15.0)


def test_the_time_within_a_window_that_events_have_to_arrive() -> None:
    known = DelayDistribution((0.0, 10.0), (0.6, 1.0))
    # One event a second for 30 s: 60% arrive at once, 40% if they happen in the first 20 s.
    assert known.timely(30.0) == pytest.approx(0.6 * 30 + 0.4 * 20)
    assert known.timely(5.0) == pytest.approx(0.6 * 5)


def _batches(days: int, arrived_of_last: int) -> tuple[Delays, float]:
    """Daily batches of 1000 rows: 900 on time, 90 after an hour, 10 after a day; the last one has come only in part."""
    parts = ((0.0, 900), (3600.0, 90), (DAY, 10))
    points = [
        (delay, day * DAY + delay, rows)
        for day in range(1, days + 1)
        for delay, rows in (parts if day < days else parts[:arrived_of_last])
    ]
    now = days * DAY + 60.0
    seconds, arrived, rows = zip(*(p for p in points if p[1] <= now), strict=True)
    return Delays(seconds, arrived, rows), now


def test_a_batch_with_so_many_rows_so_long_ago_is_forecast_exactly() -> None:
    delays, now = _batches(days=10, arrived_of_last=1)
    model = sw.late_arrivals("ts", batch="1d")
    arrivals = TableArrivals("t", 9_000, changes=(ArrivalRecord(1, 0.0, 1, 0),), delays=delays)
    said = model.expect(arrivals, Trigger(now, 3600.0))
    # 900 of the newest batch have come, and all of those before: 90 come within the hour and 10 after a day.
    assert said.rows == pytest.approx(90.0, rel=0.01)
    assert said.low < 90 < said.high
    assert said.detail["missing"] == pytest.approx(100.0 + 0.0, abs=1.0)
    assert not said.complete_after
    later = model.expect(arrivals, Trigger(now, DAY))
    assert later.rows == pytest.approx(100.0, rel=0.01)
    assert later.complete_after
    assert said.detail["complete_at"] == pytest.approx(11 * DAY, abs=1.0)


def test_new_events_are_expected_where_the_stream_goes_on() -> None:
    # One row a second for an hour; each arrives 10 s late.
    events = np.arange(0.0, 3600.0)
    delays = Delays(tuple(np.full(3600, 10.0)), tuple(events + 10.0), tuple(np.ones(3600, dtype=int).tolist()))
    arrivals = TableArrivals("t", 3600, delays=delays)
    ended = sw.late_arrivals("ts").expect(arrivals, Trigger(3610.0, 60.0))
    assert (ended.rows, ended.complete_after) == (0.0, True)
    ongoing = sw.late_arrivals("ts", ongoing=True).expect(arrivals, Trigger(3610.0, 60.0))
    assert ongoing.rows == pytest.approx(50.0, rel=0.05)
    assert not ongoing.complete_after


def test_too_little_history_falls_back_to_the_geometric_model_and_says_so() -> None:
    arrivals, now = refreshed([900], load=9_000)
    for delays, why in (
        (None, "no event times"),
        (Delays((), (), ()), "fewer than 3 changes"),
        (Delays((0.0, 5.0), (now, now), (50, 50)), "fewer than 3 changes"),
        (Delays((1.0, 2.0, 3.0), (now - 2, now - 1, now), (1, 1, 1)), "time enough"),
    ):
        said = sw.late_arrivals("ts").expect(replace(arrivals, delays=delays), Trigger(now, 60.0))
        assert said.rows == pytest.approx(90.0)
        assert "geometric" in said.reason
        assert why in said.reason


def test_backfills_do_not_count() -> None:
    delays, now = _batches(days=10, arrived_of_last=1)
    old = Delays((*delays.seconds, 400 * DAY), (*delays.arrived, now - 1), (*delays.rows, 10**7))
    model, arrivals = LateArrivals("ts", DAY), TableArrivals("t", 9_000)
    trigger = Trigger(now, 3600.0)
    assert model.expect(replace(arrivals, delays=old), trigger) == model.expect(
        replace(arrivals, delays=delays), trigger
    )


def test_delays_are_measured_from_the_end_of_the_batch() -> None:
    events = [np.array([0.0, 10.0]), np.array([DAY - 1, DAY]), np.empty(0)]
    assert delay_points(events, DAY + 30.0, None) == [[30.0, 1], [31.0, 1], [DAY + 20.0, 1], [DAY + 30.0, 1]]
    assert delay_points(events, DAY + 30.0, DAY) == [[30.0 - DAY, 1], [30.0, 3]]


def test_many_delays_are_summed_up_without_losing_a_row() -> None:
    delays = np.random.default_rng(1).exponential(100.0, 20_000)
    points = delay_points([-delays[:5_000], -delays[5_000:]], 0.0, None)
    assert delay_points([], 0.0, None) == []
    assert len(points) <= POINTS + 1
    assert sum(rows for _, rows in points) == 20_000
    assert sum(step * rows for step, rows in points) == pytest.approx(delays.sum(), rel=1e-5)
    for share in (0.5, 0.9, 0.99):
        at = np.quantile(delays, share)
        assert sum(rows for step, rows in points if step <= at) / 20_000 == pytest.approx(share, abs=0.03)


# --- naive, and the history they all go by ---------------------------------------------------------


def test_naive_is_like_the_last_deltas_with_wide_bounds() -> None:
    arrivals, now = refreshed([10, 500, 20, 30])
    said = naive(arrivals, Trigger(now, 60.0))
    assert (said.rows, said.low, said.high) == (30.0, 0.0, 5_000.0)
    guess = naive(TableArrivals("t", 1_000, changes=(ArrivalRecord(1, 0.0, 1_000, 0),)), Trigger(5.0, 60.0))
    assert (guess.rows, guess.low, guess.high) == (10.0, 0.0, 100.0)
    assert "guess" in guess.reason
    pace = tuple(ArrivalRecord(v, 10.0 * v, 100 if v > 1 else 9_999, 0) for v in range(1, 12))
    said = naive(TableArrivals("t", 9_999, changes=pace), Trigger(110.0, 20.0))
    assert said.rows == pytest.approx(1000 * 20 / 100)


def test_deltas_are_what_each_refresh_found() -> None:
    arrivals, now = refreshed([5, 0, 7])
    assert [delta.rows for delta in arrivals.deltas(now)] == [5, 0, 7]
    assert arrivals.loaded == 10_000
    assert arrivals.deltas(now)[-1].end == now
    taken = replace(arrivals, marks=(*arrivals.marks, (8, now)))
    assert [delta.rows for delta in taken.deltas(now + 30)] == [5, 0, 7], "nothing waits, so there is no new delta"


def test_a_clock_that_goes_back_breaks_nothing() -> None:
    assert usual_gap([10.0, 20.0, 5.0, 15.0]) == 10.0
    assert usual_gap([5.0]) is None
    arrivals, _ = refreshed([100] * 20)
    arrivals = replace(arrivals, delays=Delays((5.0,) * 30, tuple(float(i) for i in range(30)), (10,) * 30))
    for forecaster in (sw.learned(), sw.late_arrivals("ts"), sw.paced(), sw.fixed(t=5)):
        for horizon in (usual_horizon([arrivals], 3.0), 60.0):
            said = forecaster.expect(arrivals, Trigger(3.0, horizon))
            assert 0 <= said.low <= said.rows <= said.high < math.inf


def test_the_horizon_is_the_rhythm_of_the_refreshes_else_of_the_changes() -> None:
    arrivals, now = refreshed([5] * 6, every=300.0)
    assert usual_horizon([arrivals], now) == pytest.approx(300.0)
    changes = tuple(ArrivalRecord(v, v * 20.0, 1, 0) for v in range(1, 9))
    assert usual_horizon([TableArrivals("t", changes=changes)], 999.0) == pytest.approx(20.0)
    assert usual_horizon([], 0.0) == 60.0

"""What refreshes took beside what they should have taken, the ways not taken, and the report of the error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import slackwater as sw
from slackwater.algebra.printer import node_key
from slackwater.execution.counted import Counted
from slackwater.execution.estimates import estimates
from slackwater.execution.history import History, PredictionError
from slackwater.execution.modes import priced_ways
from slackwater.execution.reports import Estimate, PricedWay
from slackwater.execution.state_planning import Facts, Prices
from slackwater.planning.choices import Choice
from slackwater.planning.rates import Rates
from tests.unit.catalogued import JOINED, TOTALS, add_refresh, add_view

WAYS = (PricedWay("incremental", 0.4, True), PricedWay("recompute", 1.5, False))


@pytest.fixture
def view(tmp_path: Path) -> Iterator[sw.View]:
    with sw.Engine(tmp_path / "wh") as engine:
        view = add_view(engine, "totals", TOTALS)
        add_refresh(engine, view, "initial", 3.0, 1.0, estimates=(
            Estimate("a state", "bytes", 1000, 4000), Estimate("another", "bytes", 100, 100),
            Estimate("a join", "rows", 1.0, 80.0), Estimate("no rows", "rows", 5.0, 0.0)))  # fmt: skip
        add_refresh(engine, view, "incremental", 0.5, 0.4, ways=WAYS, next_best="without a state: 1 s against 2 s")
        add_refresh(engine, view, "incremental", 0.4, 0.0)
        add_refresh(engine, view, "incremental", 0.1, 0.4)
        yield view


def test_errors_are_told_by_kind_of_prediction(view: sw.View) -> None:
    errors = view.history().errors()
    assert errors == {
        "incremental": PredictionError(2, pytest.approx(0.75), pytest.approx(0.25)),
        "initial": PredictionError(1, 3.0, 3.0),
        "bytes": PredictionError(2, 2.5, 4.0),
        "rows": PredictionError(1, 80.0, 80.0),
    }
    assert errors["rows"].to_dict() == {"count": 1, "median": 80.0, "worst": 80.0}
    assert view.history(limit=1).errors() == {"incremental": PredictionError(1, 0.25, 0.25)}


def test_nothing_predicted_is_no_error(view: sw.View) -> None:
    assert PredictionError.of([]) is None
    assert PredictionError.of([(0.0, 1.0), (1.0, 0.0), (float("nan"), 1.0), (1.0, float("inf"))]) is None
    assert History("none", []).errors() == {}


def test_the_history_names_the_ways_not_taken_and_the_errors(view: sw.View) -> None:
    text = str(view.history())
    assert "not taken: recompute, 1.5 s against 400 ms" in text
    assert "next best states: without a state: 1 s against 2 s" in text
    assert "seconds of incremental refreshes: 0.75x of what was predicted in the median of 2, 0.25x at worst" in text
    assert "bytes of new states: 2.50x" in text
    table = view.history()._repr_html_()
    for shown in ("predicted_seconds", "1.25x", "not taken: recompute", "next best states"):
        assert shown in table


def test_records_of_an_older_version_are_read(view: sw.View) -> None:
    rows = [{k: v for k, v in row.items() if k not in ("ways", "estimates", "next_best", "predicted_seconds")}
            for row in view.history()]  # fmt: skip
    old = History("totals", rows)
    assert old.errors() == {}
    assert "not taken" not in str(old)
    assert "<table>" in old._repr_html_()


def test_both_ways_are_priced_where_they_were_compared() -> None:
    prices = Prices(0.4, 1.5, compare=False, quick=True)
    assert priced_ways("incremental", prices, 9.0) == WAYS
    assert [(w.way, w.chosen) for w in priced_ways("recompute", prices, 9.0)] == [
        ("incremental", False),
        ("recompute", True),
    ]
    assert priced_ways("initial", None, 2.0) == (PricedWay("initial", 2.0, True),)
    assert priced_ways("recompute", None, 0.0) == ()


def test_what_is_seen_for_the_first_time_is_put_beside_its_estimate() -> None:
    rows = {"lines": 1000, "orders": 100}
    facts = Facts(TOTALS, rows, {}, {}, lambda _: (), {}, Rates())
    kept = {node_key(node): Choice(node_key(node), str(at), True, "", 500 * (at + 1))
            for at, node in enumerate((TOTALS, JOINED))}  # fmt: skip
    seen: Any = SimpleNamespace(plan=TOTALS, counted=Counted(), known_bytes=lambda: {node_key(TOTALS): 7})
    sizes, observed = dict.fromkeys(kept, 800), {node_key(JOINED): 60.0, "of another plan": 5.0}
    found = estimates(seen, lambda: facts, tuple(kept.values()), sizes, observed)
    assert [(e.what, e.estimated, e.actual) for e in found] == [
        ("bytes", 1000, 800),
        ("rows", facts.cardinalities({}).of(JOINED).full, 60.0),
    ]
    seen.counted.add(observed, rows)
    assert [e.what for e in estimates(seen, lambda: facts, (), sizes, observed)] == []

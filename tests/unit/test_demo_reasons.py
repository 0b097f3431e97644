"""What the demo tells of forecasts and states, from what refreshes put down. Without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import slackwater as sw
from slackwater.algebra.printer import node_key
from slackwater.arrivals.outlook import look_ahead
from slackwater.cli_output import Output
from slackwater.demo_reasons import Foreseen, KeptState, foreseen, kept_states, show_forecasts, show_states
from tests.unit.catalogued import LINES, ORDERS, TOTALS, add_table, add_view


@pytest.fixture
def view(tmp_path: Path) -> Iterator[sw.View]:
    with sw.Engine(tmp_path / "wh") as engine:
        add_table(engine, LINES, 6_000)
        add_table(engine, ORDERS, 1_500)
        kept, gone = ({"key": key, "label": label, "keep": keep, "reason": "", "saves": 0.5, "build": 0.25}
                      for key, label, keep in ((node_key(TOTALS), "sums", True), ("other", "join", False)))  # fmt: skip
        view = add_view(engine, "totals", TOTALS, choices=[kept, gone], bytes={kept["key"]: 2_000, "other": 9},
                        forecast=sw.fixed({"lines": 60}).to_dict())  # fmt: skip
        yield view


def refreshed(view: sw.View, lines: int) -> None:
    """A refresh that so many lines came to."""
    engine = view.engine
    with engine.catalog.commit("refresh", view.name, {}, engine.lease) as tx:
        replace(look_ahead(view, 1_000.0, taking=True), came={1: (lines, 0), 2: (0, 0)}).record(tx)
        tx.update_view(view.id, version=tx.version)
        view.version = tx.version


def test_a_forecast_is_told_before_and_after_the_rows_came(view: sw.View) -> None:
    refreshed(view, 0)
    expected = Foreseen("totals", "lines", "fixed", 60, 60, 60, None)
    assert foreseen([view, view], came=False) == (expected,)
    refreshed(view, 55)
    assert foreseen([view], came=True) == (replace(expected, came=55),)
    refreshed(view, 70)
    assert foreseen([view], came=True) == (replace(expected, came=70),)
    assert foreseen([view], came=False) == (expected,)


def test_states_are_told_with_what_they_save_and_cost(view: sw.View) -> None:
    assert kept_states([view]) == (KeptState("totals", "sums", 2_000, 0.5, 0.25),)


def test_both_are_shown_beside_the_budget(view: sw.View, capsys: pytest.CaptureFixture[str]) -> None:
    refreshed(view, 0)
    refreshed(view, 55)
    with Output(json_only=False) as output:
        show_forecasts(output, foreseen([view], came=True))
        show_states(output, kept_states([view]), 2_000, 256_000_000)
    shown = capsys.readouterr().out
    for words in ("lines", "60", "55", "sums", "500", "250", "States: 2.0 kB of the budget of 256.0 MB."):
        assert words in shown

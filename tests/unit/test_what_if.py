"""What if: under which limits the answer is found, which forecasts it takes, and what its picture marks. No Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import IntegerType, LongType, StructType

import slackwater as sw
from slackwater.algebra import nodes as n
from slackwater.algebra.expressions import call, col
from slackwater.algebra.nodes import Opaque
from slackwater.algebra.printer import node_key
from slackwater.declared import Declared
from slackwater.errors import SlackwaterError
from slackwater.execution import refresh
from slackwater.execution.what_if import WhatIf
from slackwater.planning.rates import Rates
from tests.unit.catalogued import LINES, ORDERS, TOTALS, add_table, add_view, insert, scan

MEMORY = 50_000_000
"""What Spark's memory is made to hold here."""


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sw.Engine]:
    monkeypatch.setattr(refresh, "storage_memory", lambda spark: MEMORY)
    spark: Any = object()
    with sw.Engine(tmp_path / "wh", memory_budget="20MB", spark=spark) as opened:
        opened._rates = replace(Rates(), write=1e-9)
        add_table(opened, LINES, 6_000_000)
        add_table(opened, ORDERS, 1_500_000)
        yield opened


def view_of(engine: sw.Engine, name: str = "totals", budget: int | None = None, **options: object) -> sw.View:
    forecast = sw.fixed({"lines": 6_000}).to_dict()
    return add_view(engine, name, TOTALS, declared=Declared(budget_bytes=budget), forecast=forecast, **options)


def kept_by(engine: sw.Engine, size: int) -> sw.View:
    """Another view with one state of so many bytes."""
    key = node_key(TOTALS)
    choice = {"key": key, "label": "sums", "keep": True, "reason": ""}
    return view_of(engine, "other", choices=[choice], bytes={key: size}, strategy="plain")


def test_the_answer_is_for_what_the_view_may_really_use(engine: sw.Engine) -> None:
    view = view_of(engine)
    found = view.what_if()
    assert (found.budget, found.usable) == (20_000_000, 20_000_000)
    assert (view.what_if(budget="30MB").usable, view.what_if(budget="1TB").usable) == (30_000_000, MEMORY)
    kept_by(engine, 15_000_000)
    beside = view.what_if()
    assert (beside.budget, beside.usable) == (20_000_000, 5_000_000)
    assert view.what_if(budget="10MB").usable == 0
    assert beside.size <= beside.usable
    assert "20.0 MB (5.0 MB of it for this view)" in str(beside)
    assert beside.to_dict()["usable_bytes"] == 5_000_000


def test_the_budget_of_the_view_itself_counts(engine: sw.Engine) -> None:
    view = view_of(engine, budget=1_000)
    assert view.what_if(budget="1GB").usable == 1_000
    assert view.what_if(budget="1GB").size <= 1_000
    assert view.what_if(budget=10).usable == 10


def test_with_memory_something_is_kept_and_without_it_nothing(engine: sw.Engine) -> None:
    view = view_of(engine)
    plenty, nothing = view.what_if(budget="40MB"), view.what_if(budget=0)
    assert plenty.size > 0
    assert nothing.size == 0
    assert plenty.seconds < nothing.seconds == plenty.recompute
    insert(engine, "lines", 500)  # what waits to be refreshed is no obstacle
    assert view.what_if(budget="40MB").size > 0


def test_seconds_are_corrected_as_predictions_are(engine: sw.Engine) -> None:
    told = view_of(engine).what_if(budget="40MB")
    slow = view_of(engine, "slow", corrections={"incremental": 2.0, "recompute": 3.0}).what_if(budget="40MB")
    assert slow.size == told.size > 0
    assert slow.seconds == pytest.approx(2 * told.seconds)
    assert slow.build == pytest.approx(2 * told.build)
    assert slow.recompute == pytest.approx(3 * told.recompute)
    assert slow.curve[0] == (0, pytest.approx(3 * told.curve[0][1]))
    assert slow.curve[-1] == (told.curve[-1][0], pytest.approx(2 * told.curve[-1][1]))
    assert slow.now == slow.curve[0], "nothing is kept yet"
    dear = view_of(engine, "dear", corrections={"incremental": 50.0, "recompute": 0.1}).what_if(budget="40MB")
    assert dear.curve == ((0, dear.recompute),), "what takes longer than a recompute is no better for its bytes"


@pytest.mark.parametrize("size", [1, 30_000, 3_000_000])
def test_what_is_kept_now_never_lies_below_the_best(engine: sw.Engine, size: int) -> None:
    key = view_of(engine).what_if(budget="40MB").choices[0].key
    choice = {"key": key, "label": "sums", "keep": True, "reason": ""}
    kept = {"choices": [choice], "bytes": {key: size}, "corrections": {"incremental": 0.5}}
    found = view_of(engine, "kept", **kept).what_if(budget="40MB")
    assert found.now[0] == size
    assert found.now[1] >= min(cost for at, cost in found.curve if at <= size)
    assert found.now[1] < found.curve[0][1]


def test_a_state_that_two_places_share_does_not_lie_below_the_best(engine: sw.Engine) -> None:
    """The search counts its bytes twice; what is kept now is known to do with half of them."""
    items = (n.Item("s2", col("s", "int")), n.Item("rows2", col("rows", "bigint")))
    same = call("=", col("s", "int"), col("s2", "int"), dtype="boolean")
    choice = {"key": node_key(TOTALS), "label": "sums", "keep": True, "reason": ""}
    view = add_view(engine, "twice", n.Join(TOTALS, n.Project(TOTALS, items), same), choices=[choice],
                    bytes={node_key(TOTALS): 30_000}, forecast=sw.fixed({"lines": 6_000}).to_dict())  # fmt: skip
    found = view.what_if(budget="40MB")
    assert found.now[0] == 30_000
    assert min(cost for size, cost in found.curve if size <= 30_000) == found.now[1] < found.curve[0][1]


def test_states_are_thought_to_serve_for_long_unless_the_forecast_ends(engine: sw.Engine) -> None:
    engine._rates = Rates()
    view = view_of(engine)

    def shared(complete: bool) -> float:
        coming = sw.TableForecast("lines", 6_000, 0, 10_000, complete_after=complete)
        return view.what_if(budget="40MB", forecast=sw.Forecast((coming,), "fixed", 0.0, 60.0)).curve[-1][1]

    assert shared(complete=False) < shared(complete=True), "the last refresh bears all of the building"


@pytest.mark.parametrize(
    ("forecast", "code"),
    [
        ({"lines": -1}, "FORECAST_INVALID"),
        ({"lines": float("nan")}, "FORECAST_INVALID"),
        ({"lines": float("inf")}, "FORECAST_INVALID"),
        ({"lines": True}, "FORECAST_INVALID"),
        ({"lines": None}, "FORECAST_INVALID"),
        ({"lines": "many"}, "FORECAST_INVALID"),
        ({"lines": 10**400}, "FORECAST_INVALID"),
        ({"lines": 1, "LINES": 2}, "FORECAST_INVALID"),
        ({7: 1}, "FORECAST_INVALID"),
        (5, "FORECAST_INVALID"),
        ("lines", "FORECAST_INVALID"),
        ({"nowhere": 1}, "FORECAST_TABLE_UNKNOWN"),
        (sw.Forecast((sw.TableForecast("nowhere", 1, 0, 2),), "fixed", 0.0, 60.0), "FORECAST_TABLE_UNKNOWN"),
    ],
)
def test_bad_forecasts_are_refused(engine: sw.Engine, forecast: Any, code: str) -> None:
    view = view_of(engine)
    with pytest.raises(SlackwaterError) as error:
        view.what_if(forecast=forecast)
    assert error.value.code == code


def test_forecasts_name_tables_in_any_case_and_may_leave_some_out(engine: sw.Engine) -> None:
    add_table(engine, scan("elsewhere", "x"), 10)
    view = view_of(engine)
    assert view.what_if(forecast={"LINES": 5}).expected == {"lines": 5.0}
    coming = (sw.TableForecast("Orders", 7, 0, 9, deletes=0.5), sw.TableForecast("lines", 0, 0, 9))
    assert view.what_if(forecast=sw.Forecast(coming, "fixed", 0.0, 60.0)).expected == {"orders": 7.0}
    for nothing in ({}, {"lines": 0}, {"elsewhere": 5}):
        assert view.what_if(forecast=nothing).expected == {}


def test_a_forecast_reaches_a_view_through_the_views_that_it_reads(engine: sw.Engine) -> None:
    view_of(engine)._schema = StructType().add("s", IntegerType()).add("rows", LongType())  # Spark would read the types
    above = add_view(engine, "above", scan("totals", "s", "rows"))
    assert above.what_if(forecast={"lines": 5}).expected == {"totals": 1.0}
    assert above.what_if(forecast={}).expected == {}


@pytest.mark.parametrize("budget", ["-1GB", -1, "much", float("nan"), True])
def test_bad_budgets_are_refused(engine: sw.Engine, budget: Any) -> None:
    view = view_of(engine)
    with pytest.raises(SlackwaterError) as error:
        view.what_if(budget=budget)
    assert error.value.code == "BUDGET_INVALID"


def test_a_view_that_is_always_recomputed_has_nothing_to_choose(engine: sw.Engine) -> None:
    opaque = Opaque("SELECT 1", ("lines",), LINES.schema, "OPERATOR_UNSUPPORTED", "no algebra")
    view = add_view(engine, "recomputed", opaque)
    with pytest.raises(SlackwaterError) as error:
        view.what_if()
    assert (error.value.code, "no algebra" in error.value.advice) == ("VIEW_NOT_INCREMENTAL", True)


def test_the_picture_marks_where_the_view_stands_now(tmp_path: Path) -> None:
    curve = ((0, 4.0), (2_000_000, 1.5), (6_000_000, 1.0))
    found = WhatIf(
        "totals", 8_000_000, {"lines": 5.0}, (), 6_000_000, 0.9, 0.1, 4.0, curve, (2_000_000, 1.25), 7_000_000
    )
    (axes,) = found.draw().axes
    lines = {line.get_label(): line for line in axes.get_lines()}
    assert (list(lines["now"].get_xdata()), list(lines["now"].get_ydata())) == ([2.0], [1.25])
    assert lines["now"].get_marker() == "o"
    assert set(lines["budget for this view"].get_xdata()) == {7.0}
    best = lines["best choice, building included"]
    assert list(best.get_xdata())[:3] == [0.0, 2.0, 6.0]
    assert list(best.get_ydata())[:3] == [4.0, 1.5, 1.0]
    assert {text.get_text() for text in axes.get_legend().get_texts()} == set(lines)
    low, high = axes.get_xlim()
    assert low <= 2.0 <= high, "what is marked can be seen"
    assert found.save_picture(tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")

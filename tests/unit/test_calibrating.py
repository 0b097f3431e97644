"""Rates of another cluster are measured anew, once, when there is nothing else to do. Without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from slackwater import engine as engine_module
from slackwater.planning.rates import Rates
from tests.unit.catalogued import LINES, add_table, add_view, insert

HERE, ELSEWHERE = Rates(write=2.0, cluster="here"), Rates(write=1.0, cluster="elsewhere")


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[Rates]:
    """What was measured so far; every time the same comes out."""
    found: list[Rates] = []

    def calibrate(*given: Any) -> Rates:
        found.append(HERE)
        return HERE

    monkeypatch.setattr(engine_module, "calibrate", calibrate)
    monkeypatch.setattr(engine_module, "cluster_of", lambda spark: "here")
    monkeypatch.setattr(engine_module.Engine, "sessions", _Sessions())
    return found


class _Sessions:
    def get(self, kind: str, settings: object) -> None:
        return None


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[sw.Engine]:
    spark: Any = object()
    with sw.Engine(tmp_path / "wh", spark=spark) as opened:
        yield opened


def keep(engine: sw.Engine, rates: Rates) -> None:
    with engine.writing() as lease:
        engine.catalog.set_fact("rates", json.dumps(rates.to_dict()), lease)


def test_an_idle_tick_measures_rates_of_another_cluster_anew(engine: sw.Engine, measured: list[Rates]) -> None:
    keep(engine, ELSEWHERE)
    assert engine.rates == Rates(), "those of another cluster are not used"
    tick = engine.tick()
    assert (engine.rates, len(measured)) == (HERE, 1)
    assert tick.notes == ["measured what work costs: the numbers that were kept are of another cluster"]
    assert (tick.to_dict()["notes"], str(tick)) == (tick.notes, tick.notes[0])
    assert not tick.idle
    assert json.loads(engine.catalog.fact("rates") or "")["cluster"] == "here"
    assert (engine.tick().notes, len(measured)) == ([], 1)


@pytest.mark.parametrize("kept", [None, HERE, Rates(write=1.0)], ids=["none", "of this cluster", "of no cluster"])
def test_other_rates_are_not(engine: sw.Engine, measured: list[Rates], kept: Rates | None) -> None:
    if kept is not None:
        keep(engine, kept)
    assert engine.rates == (kept or Rates())
    assert (engine.tick().notes, measured) == ([], [])


def test_nothing_is_measured_before_anybody_asked_for_a_price(engine: sw.Engine, measured: list[Rates]) -> None:
    keep(engine, ELSEWHERE)
    assert (engine.tick().notes, measured) == ([], []), "what no refresh has asked for may never be needed"


def test_nothing_is_measured_while_there_is_something_to_do(
    engine: sw.Engine, measured: list[Rates], monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(engine, ELSEWHERE)
    add_table(engine, LINES, 5)
    view = add_view(engine, "v", LINES, refresh={"kind": "on_arrival"})
    insert(engine, "lines", 3)
    assert engine.rates == Rates()

    def refresh(self: sw.View, *, full: bool = False) -> sw.Refresh:
        return sw.Refresh("v", "incremental", 1, 2)

    monkeypatch.setattr(sw.View, "refresh", refresh)
    assert view.policy.can_fire
    tick = engine.tick()
    assert ([one.view for one in tick], tick.notes, measured) == (["v"], [], [])


def test_a_measurement_that_fails_is_told_and_not_tried_again(
    engine: sw.Engine, measured: list[Rates], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*given: Any) -> Rates:
        raise OSError("no space left")

    monkeypatch.setattr(engine_module, "calibrate", fails)
    keep(engine, ELSEWHERE)
    assert engine.rates == Rates()
    (note,) = engine.tick().notes
    assert "no space left" in note
    assert (engine.tick().notes, engine.rates) == ([], Rates())

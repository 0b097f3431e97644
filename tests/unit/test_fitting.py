"""States that do not fit: which go, and that they go at once when the budget is lowered. None of this needs Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import slackwater as sw
from slackwater.arrivals.forecast import Forecast, TableForecast
from slackwater.execution import compaction
from slackwater.execution.fitting import fit, sizes_of
from slackwater.execution.leaves import TableState
from slackwater.execution.state_planning import HARDLY, coming
from slackwater.execution.states import State
from slackwater.planning.choices import Choice
from slackwater.storage.records import NewSegment, NewState, SegmentRecord
from tests.unit.held_states import Rows, add_view, hold


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sw.Engine]:
    def refuse() -> None:
        raise AssertionError("releasing asked for Spark")

    monkeypatch.setattr("slackwater.engine.start_spark", refuse)
    with sw.Engine(tmp_path / "wh", save_states=False) as engine:
        yield engine


def measured(**sizes: int) -> tuple[dict[str, State], dict[str, int]]:
    rows = {key: Rows(at) for at, key in enumerate(sizes)}
    states = {key: State(key, key, (rows[key].segment(),), False) for key in sizes}
    return states, sizes_of(states, {rows[key].number: size for key, size in sizes.items()})


def choices(**saves: float) -> tuple[Choice, ...]:
    return tuple(Choice(key, key, True, "as planned", 1, s) for key, s in saves.items())


def test_the_state_that_saves_least_for_its_bytes_is_dropped() -> None:
    states, sizes = measured(large=100, small=10, poor=50)
    chosen = choices(large=5.0, small=1.0, poor=1.0)  # 0.05, 0.1 and 0.02 for a byte
    for budget, left in ((160, "large small poor"), (159, "large small"), (109, "small"), (10, "small"), (9, "")):
        kept, marked = fit(states, sizes, chosen, budget)
        assert set(kept) == set(left.split()), budget
        assert {c.key for c in marked if c.keep} == kept.keys()
    assert [c.reason for c in marked] == [f"{sizes[c.key]} bytes do not fit the budget of 9" for c in marked]
    assert [c.size for c in marked] == [100, 10, 50], "the reason goes by what was measured, not by the estimate of 1"


def test_what_saves_the_same_goes_in_the_same_order() -> None:
    states, sizes = measured(b=10, a=10, unknown=10)
    kept, _ = fit(states, sizes, choices(a=1.0, b=1.0), 20)
    assert set(kept) == {"a", "b"}, "of a state that no choice names nobody knows what it saves"
    kept, _ = fit(states, sizes, choices(a=1.0, b=1.0), 10)
    assert set(kept) == {"b"}


def test_a_lower_budget_releases_the_least_worthy_states_of_all_views(engine: sw.Engine) -> None:
    one, two = add_view(engine, "one"), add_view(engine, "two")
    a, b, c = Rows(1), Rows(2), Rows(3)
    hold(one, {"a": (100, 9.0, a), "b": (100, 1.0, b)})
    hold(two, {"c": (100, 5.0, c)})
    engine.budget = 300
    assert engine.state_bytes() == 300
    engine.budget = 299
    assert (set(one.states), set(two.states), engine.state_bytes()) == ({"a"}, {"c"}, 200)
    assert (a.released, b.released, c.released) == (False, True, False)
    assert [x.reason for x in one.choices if not x.keep] == ["100 bytes do not fit the budget of 299"]
    engine.budget = 100
    assert (set(one.states), set(two.states)) == ({"a"}, set())
    engine.budget = 0
    assert engine.state_bytes() == 0
    assert a.released
    engine.budget = "1GB"
    assert engine.state_bytes() == 0, "what is gone is built again by a refresh"


def test_rows_that_two_views_share_go_when_both_let_go(engine: sw.Engine) -> None:
    one, two = add_view(engine, "one"), add_view(engine, "two")
    shared, own = Rows(1), Rows(2)
    hold(one, {"s": (100, 2.0, shared)})
    hold(two, {"s": (100, 2.0, shared), "x": (100, 3.0, own)})
    assert engine.state_bytes() == 200
    engine.budget = 200
    assert (set(one.states), set(two.states)) == ({"s"}, {"s", "x"}), "they occupy memory once"
    engine.budget = 150
    assert (set(one.states), set(two.states)) == ({"s"}, {"s"}), "to both together they are worth more"
    assert (shared.released, own.released) == (False, True)
    engine.budget = 99
    assert not one.states
    assert not two.states
    assert shared.released


def test_a_budget_of_the_view_s_own_counts_too(engine: sw.Engine) -> None:
    view = add_view(engine, "v", declared={"budget_bytes": 150})
    other = add_view(engine, "w")
    hold(view, {"a": (100, 9.0, Rows(1)), "b": (100, 1.0, Rows(2))})
    hold(other, {"c": (100, 0.1, Rows(3))})
    engine.budget = 250
    assert set(view.states) == {"a"}
    assert set(other.states) == {"c"}, "what the view may not keep makes room enough"


def test_a_budget_that_is_none_changes_nothing(engine: sw.Engine) -> None:
    view = add_view(engine, "v")
    hold(view, {"a": (100, 9.0, Rows(1))})
    for bad in (-1, "much", None, True):
        with pytest.raises(sw.SlackwaterError, match="BUDGET_INVALID"):
            engine.budget = bad
    assert (engine.budget, set(view.states)) == (10**9, {"a"})


def test_an_engine_that_only_reads_or_is_closed_takes_a_budget(engine: sw.Engine) -> None:
    hold(add_view(engine, "v"), {"a": (100, 9.0, Rows(1))})
    with sw.Engine(engine.path, read_only=True) as reader:
        reader.view("v").status()
        reader.budget = 7
        assert reader.budget == 7
    engine.close()
    engine.budget = 8
    assert engine.budget == 8


def _saved(engine: sw.Engine, view: sw.View) -> set[str]:
    return {record.node for record in engine.catalog.states(view.id)}


def _choice(key: str, saves: float) -> dict[str, object]:
    return {"key": key, "label": key, "keep": True, "reason": "", "size": 100, "saves": saves}


def test_saved_states_that_were_given_up_are_forgotten_on_close(tmp_path: Path) -> None:
    with sw.Engine(tmp_path / "wh") as engine:
        kept = {"choices": [_choice("a", 9.0), _choice("b", 1.0)], "bytes": {"a": 100, "b": 100}}
        views = [add_view(engine, name, **kept) for name in ("unread", "read", "other")]
        for view in views:
            engine.catalog.save_states(view.id, [NewState(key, 1, f"{view.name}/{key}", 1, 1) for key in "ab"])
    with sw.Engine(tmp_path / "wh") as engine:
        unread, read = engine.view("unread"), engine.view("read")
        hold(read, {"a": (100, 9.0, Rows(1))})
        assert engine.state_bytes() == 300, "what has not been loaded yet counts as the catalog says"
        engine.budget = 100
        assert engine.state_bytes() == 100
        unread_kept, read_kept = set(unread.kept), set(read.kept)
        assert len(unread_kept | read_kept) == 1
        read.release_states()
    with sw.Engine(tmp_path / "wh") as engine:
        assert _saved(engine, engine.view("unread")) == unread_kept
        assert _saved(engine, engine.view("read")) == set()
        assert _saved(engine, engine.view("other")) == {"a", "b"}, "nobody looked at it"


def test_saved_states_that_a_smaller_budget_has_no_room_for_are_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sw.Engine(tmp_path / "wh") as engine:
        kept = {"choices": [_choice("a", 9.0), _choice("b", 1.0)], "bytes": {"a": 100, "b": 100}}
        for name in ("one", "two"):
            add_view(engine, name, **kept)

    def load(view: sw.View) -> dict[str, State]:
        return {key: State(key, key, (Rows(hash((view.id, key))).segment(),), False) for key in view.wanted}

    monkeypatch.setattr("slackwater.view.load_states", load)
    with sw.Engine(tmp_path / "wh", memory_budget=350, save_states=False) as engine:
        one, two = engine.view("one"), engine.view("two")
        one.load_states()
        two.load_states()
        assert engine.state_bytes() == 300, "beside the other's"
        assert {"a"} == one.states.keys() & two.states.keys()
    with sw.Engine(tmp_path / "wh", memory_budget=150, save_states=False) as engine:
        one = engine.view("one")
        one.load_states()
        assert (set(one.states), one.state_bytes()) == ({"a"}, 100)
        assert [c.reason for c in one.choices if not c.keep] == ["100 bytes do not fit the budget of 150"]


@pytest.mark.parametrize(("size", "left"), [(150, {"m", "o"}), (151, {"m"})])
def test_states_that_grew_when_they_were_merged_are_fitted_again(
    engine: sw.Engine, monkeypatch: pytest.MonkeyPatch, size: int, left: set[str]
) -> None:
    view, other = add_view(engine, "v"), add_view(engine, "w")
    parts, one, two = Rows(1), Rows(2), Rows(3)
    hold(view, {"m": (100, 9.0, parts), "o": (100, 1.0, one)})
    hold(other, {"x": (50, 1.0, two)})
    merged = State("m", "m", (Rows(4).segment(),), False)
    monkeypatch.setattr(compaction, "STATE_SEGMENTS", 0)
    monkeypatch.setattr(compaction, "_merged", lambda view, state, spark, early: merged if state.key == "m" else state)
    monkeypatch.setattr(compaction, "stored_bytes", lambda spark, segments, known: {2: 100, 4: size})
    monkeypatch.setattr(sw.Engine, "sessions", SimpleNamespace(get=lambda kind, settings: None))
    engine._spark = cast(Any, object())
    engine.budget = 300
    compaction.compact_states(view)
    assert (set(view.states), set(other.states)) == (left, {"x"})
    assert view.known_bytes()["m"] == size
    assert engine.state_bytes() <= engine.budget
    assert parts.released


def test_a_tick_releases_what_can_never_serve_again(engine: sw.Engine) -> None:
    over, fed, unread = add_view(engine, "over"), add_view(engine, "fed", "u"), add_view(engine, "unread", "w")
    shared, own = Rows(1), Rows(2)
    hold(over, {"s": (100, 1.0, shared), "o": (100, 1.0, own)})
    hold(fed, {"s": (100, 1.0, shared)})
    hold(unread, {"x": (100, 1.0, Rows(3))})
    with engine.catalog.commit("change", "w") as tx:
        tx.add_segments(f"t{engine.table('w').id}", [NewSegment(1, "data/w", 5, 100)])
    engine.tick()
    assert len(over.states) == 2
    for name in ("t", "w"):
        engine.table(name).mark_complete()
    engine.tick()
    assert (set(over.states), set(fed.states), set(unread.states)) == (set(), {"s"}, {"x"})
    assert (shared.released, own.released) == (False, True), "another view has the rows still"
    assert "nothing can come" in over.choices[0].reason
    assert not over.wanted


def test_a_run_ends_without_states(engine: sw.Engine) -> None:
    below = add_view(engine, "below")
    above = add_view(engine, "above", "below")
    for at, view in enumerate((below, above)):
        hold(view, {"a": (100, 1.0, Rows(at))})

    def complete(tick: sw.Tick) -> None:
        """After the tick has looked at the views, and before the run looks whether it is over."""
        engine.table("t").mark_complete()

    engine.run(poll=0.01, on_tick=complete)
    assert engine.state_bytes() == 0


def test_a_refresh_that_finds_nothing_new_releases_them_too(engine: sw.Engine) -> None:
    view = add_view(engine, "v")
    with engine.catalog.commit("refresh", "v") as tx:
        tx.update_view(view.id, version=tx.version)
    view.version = engine.catalog.version()
    hold(view, {"a": (100, 1.0, Rows(1))})
    assert view.refresh().state_bytes == 100
    engine.table("t").mark_complete()
    report = view.refresh()
    assert (report.mode, report.state_bytes, dict(report.states)) == ("none", 0, {})


def test_of_what_is_complete_nothing_comes() -> None:
    def state(*, complete: bool, came: int = 0) -> TableState:
        delta = (SegmentRecord(1, "t1", 2, 2, 1, "p", came, 1, None, None, None),) if came else ()
        there = SegmentRecord(2, "t1", 1, 1, 1, "q", 1_000, 1, None, None, None)
        return TableState(complete, (there,), (), delta)

    said = [TableForecast("open", 0.0, 0.0, 1.0), TableForecast("closed", 5.0, 1.0, 9.0),
            TableForecast("none", 0.0, 0.0, 0.0), TableForecast("came", 2.0, 0.0, 7.0)]  # fmt: skip
    tables = {"open": state(complete=False), "closed": state(complete=True), "none": state(complete=False),
              "came": state(complete=False, came=50), "view": state(complete=False),
              "done": state(complete=True)}  # fmt: skip
    found = coming(tables, Forecast(tuple(said), "fixed", 0.0, 60.0, ""))
    assert {name: e.rows for name, e in found.items()} == {"open": HARDLY, "came": 7.0, "view": 10.0}

"""Which view gives states back for which, by staircases made up for it. None of this needs Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import slackwater as sw
from slackwater.execution import refresh, sharing
from slackwater.execution.equal_states import bytes_of_others
from slackwater.execution.fitting import fit_beside_others
from slackwater.execution.sharing import make_room
from slackwater.execution.states import State
from slackwater.planning.choices import Choice
from slackwater.planning.costing import AtHand
from slackwater.planning.staircase import Staircase, best, flat, shift
from tests.unit.held_states import Rows, add_view, hold

MORE: dict[str, dict[str, tuple[int, float]]] = {}
"""What the views would keep besides what they have: bytes and what they save, by view and key."""


def stairs(states: Mapping[str, tuple[int, float]], limit: float = 1e9) -> Staircase:
    """100 seconds, less what the states save."""
    found = flat(100.0)
    for key, (size, saves) in states.items():
        found = best([found, shift(found, size, -saves, key, limit)], limit)
    return found


def _stairs_of(view: sw.View, expected: object, at_hand: AtHand, limit: int) -> Staircase:
    held = {c.key: (at_hand.sizes[c.key], c.saves) for c in view.choices}
    return stairs(held | MORE.get(view.name, {}), limit)


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sw.Engine]:
    MORE.clear()
    planner = lambda view: SimpleNamespace(facts=lambda: view, expected=dict)  # noqa: E731
    monkeypatch.setattr(refresh, "Refresher", planner)
    monkeypatch.setattr(sharing, "next_stairs", _stairs_of)
    with sw.Engine(tmp_path / "wh", save_states=False) as engine:
        yield engine


def ask(view: sw.View, usable: int, wants: Mapping[str, tuple[int, float]]) -> None:
    """Let a view ask for room for what it wants."""
    refresher: Any = SimpleNamespace(
        view=view, engine=view.engine, usable=usable, at_hand={},
        free=lambda: view.declared.capped(max(usable - bytes_of_others(view.engine, view), 0)),
    )  # fmt: skip
    make_room(refresher, stairs(wants))


def test_what_saves_more_takes_the_place_of_what_saves_less(engine: sw.Engine) -> None:
    own, other = add_view(engine, "own"), add_view(engine, "other")
    hold(other, {"x": (100, 1.0, Rows(1))})
    ask(own, 200, {"a": (100, 9.0)})
    assert set(other.states) == {"x"}, "both fit"
    ask(own, 100, {"a": (100, 0.9)})
    assert set(other.states) == {"x"}
    ask(own, 100, {"a": (100, 9.0)})
    assert not other.states
    assert other.choices[0].reason == "its memory saves more in own"


def test_a_view_takes_nothing_for_states_that_it_may_not_keep(engine: sw.Engine) -> None:
    own = add_view(engine, "own", declared={"budget_bytes": 50})
    other = add_view(engine, "other", declared={"budget_bytes": 60})
    hold(other, {"x": (60, 3.0, Rows(1))})
    ask(own, 100, {"a": (100, 9.0)})
    assert set(other.states) == {"x"}
    MORE["other"] = {"y": (100, 50.0)}
    ask(own, 90, {"a": (100, 9.0), "b": (40, 0.5)})
    assert set(other.states) == {"x"}, "it may not have y, and b saves too little"
    ask(own, 90, {"a": (100, 9.0), "b": (40, 5.0)})
    assert not other.states
    hold(other, {"x": (60, 3.0, Rows(2)), "z": (1, 0.1, Rows(3))})
    ask(own, 100, {"b": (40, 5.0)})
    assert set(other.states) == {"x"}, "there is room for b and x"


def test_rows_that_views_share_are_borne_by_all_of_them(engine: sw.Engine) -> None:
    own, one, two = (add_view(engine, name) for name in ("own", "one", "two"))
    shared = Rows(1)
    for view in (one, two):
        hold(view, {"x": (100, 3.0, shared)})
    ask(own, 100, {"a": (100, 5.0)})
    assert one.states.keys() == two.states.keys() == {"x"}, "together they save more"
    ask(own, 100, {"a": (100, 7.0)})
    assert not one.states
    assert not two.states
    assert shared.released


def test_rows_of_views_that_give_nothing_back_count_once(engine: sw.Engine) -> None:
    own, one, two = (add_view(engine, name) for name in ("own", "one", "two"))
    for name in ("fixed", "like it"):
        hold(add_view(engine, name, strategy="plain"), {"f": (100, 1.0, Rows(9))})
    hold(one, {"x": (100, 1.0, Rows(1))})
    hold(two, {"x": (100, 4.0, Rows(2))})
    ask(own, 350, {"a": (150, 5.0)})
    assert not one.states
    assert set(two.states) == {"x"}, "what is fixed takes 100 bytes, not 200"


def test_new_states_fit_beside_those_of_others(engine: sw.Engine) -> None:
    own, other = add_view(engine, "own", declared={"budget_bytes": 150}), add_view(engine, "other")
    there, new = Rows(1), Rows(2)
    hold(other, {"x": (100, 1.0, there)})
    states = {"x": State("x", "x", (there.segment(),), False), "y": State("y", "y", (new.segment(),), False)}
    choices = tuple(Choice(key, key, True, "", 1, saves) for key, saves in (("x", 1.0), ("y", 9.0)))
    for usable, size, left in ((200, 100, "y"), (150, 50, "x y"), (149, 50, "x"), (0, 50, "")):
        kept, _ = fit_beside_others(own, usable, states, choices, {1: 100, 2: size})
        assert set(kept) == set(left.split()), (usable, size)
    hold(own, {"x": (100, 9.0, there)})
    anew = {"x": State("x", "x", (new.segment(),), False)}
    kept, _ = fit_beside_others(own, 199, anew, choices, {2: 100})
    assert not kept, "the other view has the old rows still, though they are this view's as well"
    kept, _ = fit_beside_others(own, 200, anew, choices, {2: 100})
    assert set(kept) == {"x"}


def test_rows_that_are_shared_in_part_count_once_where_spark_has_told_their_bytes(engine: sw.Engine) -> None:
    one, two = add_view(engine, "one"), add_view(engine, "two")
    rows, more = Rows(1), Rows(2)
    hold(one, {"x": (100, 1.0, rows)})
    hold(two, {"x": (130, 1.0, rows)})
    two.states["x"] = two.states["x"].append(more.segment())
    assert engine.state_bytes() == 230, "too much rather than too little"
    engine.segment_bytes |= {1: 101, 2: 29}
    assert engine.state_bytes() == 130
    assert bytes_of_others(engine, one) == 29
    assert bytes_of_others(engine, two) == 0

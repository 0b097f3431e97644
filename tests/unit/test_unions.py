"""The segments of a state are put together once: a refresh adds one to those that were together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from slackwater.execution import states
from slackwater.execution.states import UNIONS, State, StateSegment

SPARK: Any = SimpleNamespace()


@dataclass
class Rows:
    """Stands for rows in Spark: which segments they are of, and how often any were put together."""

    of: tuple[int, ...]
    made: list[tuple[int, ...]] = field(default_factory=list)

    def union(self, other: Rows) -> Rows:
        together = Rows(self.of + other.of, self.made)
        self.made.append(together.of)
        return together


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The unions that were made."""
    monkeypatch.setattr(states, "_few_parts", lambda spark, rdd, size: rdd)
    return []


def segment(number: int, made: list[tuple[int, ...]], *, weighted: bool = False) -> StateSegment:
    rows: Any = Rows((number,), made)
    return StateSegment(lambda: (rows, None), weighted, number)


def together(state: State) -> list[tuple[int, ...]]:
    return [rdd.of for rdd in state.rdds(SPARK)]


def test_a_refresh_adds_one(made: list[tuple[int, ...]]) -> None:
    state = State("k", "", (segment(0, made),), partial=False)
    for number in range(1, 6):
        state = state.append(segment(number, made))
        assert together(state) == [tuple(range(number + 1))]
    assert len(made) == 5, "one for each that was added"
    assert together(state) == [(0, 1, 2, 3, 4, 5)]
    assert len(made) == 5


def test_other_segments_are_not_taken_for_those(made: list[tuple[int, ...]]) -> None:
    """After a merge, and where a refresh failed and was tried again with other rows."""
    first = State("k", "", (segment(0, made), segment(1, made)), partial=False)
    failed, again = first.append(segment(2, made)), first.append(segment(3, made))
    assert together(failed) == [(0, 1, 2)]
    assert together(again) == [(0, 1, 3)]
    assert together(failed) == [(0, 1, 2)]
    merged = replace(again, segments=(again.segments[0], segment(4, made)))
    assert together(merged) == [(0, 4)]
    assert together(merged.since) == [(4,)]
    signed = merged.append(segment(5, made, weighted=True)).append(segment(6, made))
    assert together(signed) == [(0, 4, 6), (5,)]


def test_what_was_merged_is_forgotten(made: list[tuple[int, ...]]) -> None:
    """The part since an index was made begins with another segment after each merge."""
    numbers = count(1)
    state = State("k", "", (segment(0, made),), partial=False)
    for _ in range(50):
        state = replace(state, segments=(*state.segments[:1], segment(next(numbers), made)))
        for _ in range(3):
            state = state.append(segment(next(numbers), made))
            assert together(state.since) == [tuple(s.rdd_id for s in state.segments[1:])]
    assert len(state.unions) <= UNIONS

"""The experiments deal out no more rows than were held back for them; nothing is run."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from slackwater.bench.iqp import FIGURES
from slackwater.bench.iqp_experiment import LIMIT, Experiment, Run, Way
from slackwater.bench.tpch_data import BUCKETS, HELD_BACK


class Rehearsal(Experiment):
    """An experiment of which only the slices are real."""

    def __init__(self, held_back: float) -> None:
        view = SimpleNamespace(state_bytes=lambda: 1_000, drop=lambda: None)
        table = SimpleNamespace(count=lambda: 1_000_000)
        self.engine: Any = SimpleNamespace(table=lambda name: table, create_view=lambda *args, **more: view)
        self.growing, self.views = HELD_BACK, []
        self.counted: list[str] = []
        self._next, self._gone, self._first = 1.0 - held_back, 0.0, 1.0 - held_back

    def add(self, ways: Sequence[Way]) -> None:
        assert ways

    def start_limited(self, way: Way, limit: float = LIMIT) -> None:
        assert limit < LIMIT

    def say(self, text: str) -> None:
        pass

    def change(self, label: str, share: float, tables: Any = (), deletes: float = 0.0, *, counted: bool = True) -> None:
        self._next += share * (1.0 - deletes)
        self._gone += share * deletes
        assert round(share * BUCKETS) >= 50
        self.counted += [label] * counted

    def verified(self) -> list[Run]:
        assert round(self._next * BUCKETS) <= BUCKETS, "there are no such rows"
        assert self._gone < self._first, "rows are deleted that are not there yet"
        return []


@pytest.mark.parametrize(("figure", "counted"), [
    (3, {"9%": 1, "0.9%": 1, "0.1%": 3}),
    (5, {"1%": 3}),
    (6, {"1 of 5 arrive": 3, "3 of 5 arrive": 3, "5 of 5 arrive": 3}),
    (7, {"1%": 3}),
    (8, {"1%": 3}),
    (9, {f"{share}% deletes": 3 for share in (0, 25, 50, 75, 100)}),
])  # fmt: skip
def test_enough_is_held_back_and_medians_are_of_three(figure: int, counted: dict[str, int]) -> None:
    for make in FIGURES[figure].make:
        rehearsal = Rehearsal(FIGURES[figure].held_back)
        make(rehearsal, [3, 8])
        assert {label: rehearsal.counted.count(label) for label in rehearsal.counted} == counted

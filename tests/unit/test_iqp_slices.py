"""The experiments deal out no more rows than were held back for them; nothing is run."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from slackwater.bench.iqp import FIGURES
from slackwater.bench.iqp_experiment import LIMIT, Experiment, Run, Way
from slackwater.bench.iqp_figures import LATE_HELD_BACK, REHEARSED_HELD_BACK, SMALL_WARM_UPS, late_data_alone
from slackwater.bench.tpch_data import BUCKETS, HELD_BACK
from slackwater.cli_output import Steps
from slackwater.execution.reports import Refresh


class Dry(Experiment):
    """An experiment of which only the slices are real."""

    def __init__(self, held_back: float, rehearsal: bool = False) -> None:
        self.rehearsal = rehearsal
        view = SimpleNamespace(state_bytes=lambda: 1_000, drop=lambda: None)
        table = SimpleNamespace(count=lambda: 1_000_000)
        self.engine: Any = SimpleNamespace(table=lambda name: table, create_view=lambda *args, **more: view)
        self.growing, self.views, self.steps = HELD_BACK, [], Steps(lambda text: None, None)
        self.counted: list[str] = []
        self._next, self._gone, self._first, self._turn = 1.0 - held_back, 0.0, 1.0 - held_back, 0

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
    (5, {"1%": 3, "30%": 1}),
    (6, {f"{count} of 5 arrive": 3 for count in (1, 2, 3, 4, 5)}),
    (7, {"1%": 3}),
    (8, {"1%": 3}),
    (9, {f"{share}% deletes": 3 for share in (0, 25, 50, 75, 100)}),
])  # fmt: skip
def test_enough_is_held_back_and_medians_are_of_three(figure: int, counted: dict[str, int]) -> None:
    for make in (*FIGURES[figure].make, *FIGURES[figure].alone):
        dry = Dry(FIGURES[figure].held_back)
        make(dry, [3, 8])
        assert {label: dry.counted.count(label) for label in dry.counted} == counted


@pytest.mark.parametrize("figure", [n for n, figure in FIGURES.items() if figure.rehearsed])
def test_a_rehearsal_counts_nothing_and_has_the_rows_it_needs(figure: int) -> None:
    for make in (*FIGURES[figure].make, *FIGURES[figure].alone):
        dry = Dry(FIGURES[figure].rehearsed, rehearsal=True)
        assert make(dry, [3, 8]) == []
        assert dry.counted == []
        dry.verified()


class Seen(Dry):
    """A dry run with views, which note which of them were refreshed, delta by delta."""

    def __init__(self, held_back: float, labels: Sequence[str], rehearsal: bool = False) -> None:
        super().__init__(held_back, rehearsal)
        self.refreshed: list[list[str]] = []
        self.views = [(Way(3, label), self._view(label), Run(3, label)) for label in labels]

    def _view(self, label: str) -> Any:
        def refresh() -> Refresh:
            self.refreshed[-1].append(label)
            return Refresh(label, "incremental", 1, 2, seconds={"total": float(len(self.refreshed))})

        return SimpleNamespace(refresh=refresh, set_forecast=lambda told: None)

    def change(self, *given: Any, **more: Any) -> None:
        self.refreshed.append([])


def test_every_other_delta_goes_through_the_ways_backwards_and_warm_ups_are_noted() -> None:
    seen = Seen(0.5, ("rebatch", "auto"))
    seen.delta("warm-up", 0.01, counted=False)
    seen.delta("1%", 0.01)
    seen.delta("1%", 0.01)
    assert seen.refreshed == [["rebatch", "auto"], ["auto", "rebatch"], ["rebatch", "auto"]]
    assert [(run.warm_ups, run.refreshes) for _, _, run in seen.views] == [([1.0], {"1%": [2.0, 3.0]})] * 2


def test_a_recompute_alone_beside_auto_needs_few_warm_ups() -> None:
    seen = Seen(REHEARSED_HELD_BACK, ("rebatch", "auto"), rehearsal=True)
    late_data_alone(seen, [3])
    assert len(seen.refreshed) == 2 + SMALL_WARM_UPS
    assert all("auto" in some for some in seen.refreshed)
    assert [("rebatch" in some) for some in seen.refreshed[:3]] == [True] * 3, "the large ones and the first small one"
    assert sum("rebatch" in some for some in seen.refreshed[2:]) == 3
    assert "rebatch" in seen.refreshed[-1]
    counted = Seen(LATE_HELD_BACK, ("rebatch", "auto"))
    late_data_alone(counted, [3])
    assert [sorted(some) for some in counted.refreshed] == [["auto", "rebatch"]] * 5

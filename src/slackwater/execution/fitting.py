"""Keeping states within the budget by what Spark says that they occupy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from slackwater.execution.states import State
from slackwater.planning.choices import Choice


def sizes_of(states: Mapping[str, State], stored: Mapping[int, int]) -> dict[str, int]:
    """The bytes of each state, from those of its segments."""
    return {key: sum(stored.get(i, 0) for i in state.rdd_ids()) for key, state in states.items()}


def fit(states: dict[str, State], sizes: Mapping[str, int], choices: tuple[Choice, ...],
         budget: int) -> tuple[dict[str, State], tuple[Choice, ...]]:  # fmt: skip
    """Drop the states that save least for their bytes until what was measured fits: estimates can be too low."""
    kept, dropped = dict(states), set()
    saves = {c.key: c.saves for c in choices}
    while kept and sum(sizes[k] for k in kept) > budget:
        worst = min(kept, key=lambda k: (saves.get(k, 0.0) / max(sizes[k], 1), k))
        dropped.add(worst)
        del kept[worst]
    marked = tuple(
        replace(c, keep=False, size=sizes[c.key], reason=f"{sizes[c.key]:,} bytes do not fit the budget of {budget:,}")
        if c.key in dropped
        else c
        for c in choices
    )
    return kept, marked

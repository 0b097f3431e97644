"""Keeping states within the budget, by what Spark says that they occupy: estimates can be too low, budgets change."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from slackwater.execution.equal_states import bytes_of, rows_of
from slackwater.execution.states import State
from slackwater.planning.choices import Choice
from slackwater.planning.strategies import StatePlan

if TYPE_CHECKING:
    from slackwater.engine import Engine
    from slackwater.view import View

Key = TypeVar("Key", bound=Hashable)

OVER = "all that the query reads is complete and has been read: nothing can come that it would serve"


def sizes_of(states: Mapping[str, State], stored: Mapping[int, int]) -> dict[str, int]:
    """The bytes of each state, from those of its segments."""
    return {key: sum(stored.get(i, 0) for i in state.rdd_ids()) for key, state in states.items()}


def surplus(sizes: Mapping[Key, int], saves: Mapping[Key, float], budget: int) -> list[Key]:
    """What must go until the rest fits: first what saves least for its bytes. What takes no bytes may stay.

    >>> surplus({"a": 60, "b": 50, "c": 10}, {"a": 6.0, "b": 1.0, "c": 0.5}, 75)
    ['b']
    """
    left, gone = sum(sizes.values()), []
    for key in sorted((k for k in sizes if sizes[k]), key=lambda k: (saves.get(k, 0.0) / sizes[k], str(k))):
        if left <= budget:
            break
        gone.append(key)
        left -= sizes[key]
    return gone


def fit(states: Mapping[str, State], sizes: Mapping[str, int], choices: tuple[Choice, ...],
        budget: int) -> tuple[dict[str, State], tuple[Choice, ...]]:  # fmt: skip
    """Drop the states that save least for their bytes until what was measured fits: estimates can be too low."""
    dropped = set(surplus({k: sizes[k] for k in states}, {c.key: c.saves for c in choices}, budget))
    kept = {key: state for key, state in states.items() if key not in dropped}
    marked = tuple(
        replace(c, keep=False, size=sizes[c.key], reason=too_large(sizes[c.key], budget)) if c.key in dropped else c
        for c in choices
    )
    return kept, marked


def fit_beside_others(
    view: View, usable: int, states: Mapping[str, State], choices: tuple[Choice, ...], stored: Mapping[int, int]
) -> tuple[dict[str, State], tuple[Choice, ...]]:
    """Fit a view's new states into what those of the other views leave of the budget, and then into its own.

    Rows that another view has as well are there anyway: to drop them here would free nothing.
    """
    others = [v for v in view.engine.loaded_views() if v.id != view.id]
    there = rows_of(state for other in others for state in other.states.values())
    added = sizes_of(states, {i: size for i, size in stored.items() if i not in there})
    kept, choices = fit(states, added, choices, max(usable - bytes_of(others), 0))
    return fit(kept, sizes_of(kept, stored), choices, view.declared.capped(usable))


def fit_all(engine: Engine) -> None:
    """Release what saves least for its bytes until the states of all views fit the budget, and each view its own."""
    for view in engine.loaded_views():
        own = view.declared.budget_bytes
        if own is not None:
            _give_back(view, beyond_own(view, own), own)
    held = _held(engine)
    gone = surplus({h: h.bytes for h in held}, {h: h.saves for h in held}, engine.budget)
    for view in engine.loaded_views():
        _give_back(view, [key for h in gone for ident, key in h.places if ident == view.id], engine.budget)


def beyond_own(view: View, budget: int) -> list[str]:
    """The states that a view would give back under a budget of its own."""
    measured = view.known_bytes()
    sizes = {key: measured.get(key, 0) for key in view.kept}
    return surplus(sizes, {c.key: c.saves for c in view.choices}, budget)


def nothing_more(plan: StatePlan) -> StatePlan:
    """The plan of a view to which nothing comes any more: to keep nothing."""
    choices = tuple(replace(c, keep=False, reason=OVER) for c in plan.choices)
    return replace(plan, choices=choices, build=0.0, size=0, next_best="")


def let_go(view: View) -> None:
    """Release the states of a view that has read all there is and to which nothing comes any more."""
    if view.kept:
        with view.engine.writing():
            view.give_back(view.kept, OVER)


@dataclass(frozen=True, slots=True)
class Held:
    """The rows of a state: the views that have them and under which keys, their bytes, and what they save together."""

    places: tuple[tuple[int, str], ...]
    bytes: int
    saves: float


def _held(engine: Engine) -> list[Held]:
    """The states of all views; those of the very same rows are one, for the rows go when nobody has them any more."""
    found: dict[object, Held] = {}
    for view in engine.loaded_views():
        measured, saves = view.known_bytes(), {c.key: c.saves for c in view.choices}
        for key in sorted(view.kept):
            place = (view.id, key)
            rows: object = view.states[key].rdd_ids() if key in view.states else place
            same = found.get(rows, Held((), 0, 0.0))
            size = max(same.bytes, measured.get(key, 0))
            found[rows] = Held((*same.places, place), size, same.saves + saves.get(key, 0.0))
    return list(found.values())


def _give_back(view: View, keys: list[str], budget: int) -> None:
    measured = view.known_bytes()
    for key in keys:
        view.give_back(frozenset([key]), too_large(measured.get(key, 0), budget))


def too_large(size: int, budget: int) -> str:
    """Why a state is given back."""
    return f"{size:,} bytes do not fit the budget of {budget:,}"

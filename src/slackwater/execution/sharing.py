"""Moves memory between views: a view whose states would save more takes the place of states that save less.

States are soft, so what another view gives back costs it time at its next refresh and nothing else. Nothing moves while
everything fits, and no view takes more than it may keep itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from slackwater.algebra.nodes import Opaque
from slackwater.execution.equal_states import bytes_of, rows_of
from slackwater.execution.state_planning import next_stairs
from slackwater.planning.costing import AtHand
from slackwater.planning.division import divide
from slackwater.planning.staircase import Staircase

if TYPE_CHECKING:
    from slackwater.execution.refresh import Refresher
    from slackwater.view import View


def make_room(refresher: Refresher, own: Staircase) -> None:
    """Divide the budget anew if the view wants more than is free; other views give back what no longer pays."""
    for other, keys in given_back(refresher, own).items():
        other.give_back(keys, f"its memory saves more in {refresher.view.name}")


def given_back(refresher: Refresher, own: Staircase) -> dict[View, frozenset[str]]:
    """The states that other views would give back to this one; none where what it wants is free."""
    from slackwater.execution.refresh import Refresher

    view, engine, usable = refresher.view, refresher.engine, refresher.usable
    own = own.within(view.declared.capped(usable))
    wanted = own.at(usable)
    others = [v for v in engine.loaded_views() if v.id != view.id and v.states and v.strategy == "auto"
              and not isinstance(v.plan, Opaque)]  # fmt: skip
    if not others or wanted is None or wanted.bytes <= refresher.free():
        return {}
    asked = {view.id, *(v.id for v in others)}
    fixed = [v for v in engine.loaded_views() if v.id not in asked]
    mine = rows_of((refresher.at_hand or view.states).values())
    borne = mine | rows_of(state for v in fixed for state in v.states.values())
    stairs = {str(view.id): own}
    for other in others:
        theirs = Refresher(other)
        at_hand = AtHand(frozenset(other.states), everything=False, sizes=sizes_to_bear(other, borne, others))
        found = next_stairs(theirs.facts(), theirs.expected(), at_hand, other.declared.capped(usable))
        if found is not None:
            stairs[str(other.id)] = found
        else:
            fixed.append(other)
    shares = divide(stairs, usable - bytes_of(fixed, mine))
    given = {v: frozenset(v.states) - shares[str(v.id)].states for v in others if str(v.id) in shares}
    return {other: keys for other, keys in given.items() if keys}


def sizes_to_bear(view: View, borne: frozenset[int], sharers: Sequence[View]) -> dict[str, int]:
    """The measured bytes of a view's states, as far as it bears them: rows that others have as well are there once.

    Those that somebody bears already cost nothing more, and of others each bears its part. Where a sharer gives back
    what the rest keeps, that is too little; what is kept in the end goes by what Spark's storage holds.
    """
    sizes = view.known_bytes()
    for key, state in view.states.items():
        if key in sizes:
            rows = state.rdd_ids()
            parts = sum(v.states[key].rdd_ids() == rows for v in sharers if key in v.states)
            sizes[key] = 1 if rows <= borne else -(-sizes[key] // max(parts, 1))
    return sizes

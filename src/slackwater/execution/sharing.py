"""Moves memory between views: a view whose states would save more takes the place of states that save less.

States are soft, so what another view gives back costs it time at its next refresh and nothing else. Nothing moves while
everything fits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slackwater.algebra.nodes import Opaque
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

    view, engine = refresher.view, refresher.engine
    free = refresher.usable - engine.state_bytes(without=view.id)
    wanted = own.at(refresher.usable)
    others = [v for v in engine.loaded_views() if v.id != view.id and v.states and v.strategy == "auto"
              and not isinstance(v.plan, Opaque)]  # fmt: skip
    if not others or wanted is None or wanted.bytes <= free:
        return {}
    stairs = {str(view.id): own}
    for other in others:
        theirs = Refresher(other)
        at_hand = AtHand(frozenset(other.states), everything=False, sizes=other.known_bytes())
        found = next_stairs(theirs.facts(), theirs.expected(), at_hand, refresher.usable)
        if found is not None:
            stairs[str(other.id)] = found
    counted = {view.id} | {v.id for v in others if str(v.id) in stairs}
    fixed = sum(v.state_bytes() for v in engine.loaded_views() if v.id not in counted)
    shares = divide(stairs, refresher.usable - fixed)
    given = {v: frozenset(v.states) - shares[str(v.id)].states for v in others if str(v.id) in shares}
    return {other: keys for other, keys in given.items() if keys}

"""Which way a refresh goes: whether changes are followed, or everything is computed anew; and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from slackwater.algebra.lookups import LookupJoin
from slackwater.algebra.nodes import Join, Opaque
from slackwater.algebra.printer import describe, node_key
from slackwater.delta.environment import Change
from slackwater.delta.rules import keeps_state
from slackwater.execution.plan_shape import made_for_another_strategy
from slackwater.execution.program import INCREMENTAL, INITIAL, RECOMPUTE
from slackwater.execution.reports import PricedWay
from slackwater.execution.state_planning import Prices, plan_next, price_now
from slackwater.planning.strategies import BY_RULE, seconds_text

if TYPE_CHECKING:
    from slackwater.execution.refresh import Refresher

CLEARLY = 0.7
"""A recompute is chosen where it should take less than this share of an incremental refresh."""

LARGE_DELTA = 0.5
"""Where the changed rows are more than this share of all rows, a recompute is cheaper."""


def choose_mode(refresher: Refresher, *, full: bool) -> tuple[str, str]:
    """The mode of a refresh, and the reason for it; what it should cost either way is left with the refresher."""
    if not refresher.before:
        return INITIAL, "the first result"
    if full:
        return RECOMPUTE, "asked for"
    if refresher.moved:
        return RECOMPUTE, f"the code of {', '.join(refresher.moved)} has changed"
    plan = refresher.view.plan
    if isinstance(plan, Opaque):
        return RECOMPUTE, f"[{plan.code}] {plan.reason}"
    if refresher.view.strategy == "rebatch":
        return RECOMPUTE, "the strategy is rebatch"
    if (other := made_for_another_strategy(refresher.view)) is not None:
        return RECOMPUTE, other
    refresher.prices = price_now(refresher.facts(), refresher.changes, frozenset(refresher.view.states))
    if refresher.prices.quick or refresher.view.strategy in BY_RULE:
        return _plain_mode(refresher)
    return mode_by_price(refresher, refresher.prices, refresher.changes)


def priced_ways(mode: str, prices: Prices | None, predicted: float) -> tuple[PricedWay, ...]:
    """The way that was taken and the other, with their prices; where nothing was compared, what the one should take."""
    if prices is None:
        return (PricedWay(mode, predicted, True),) if predicted > 0 else ()
    both = {INCREMENTAL: prices.incremental, RECOMPUTE: prices.recompute}
    return tuple(PricedWay(way, seconds, way == mode) for way, seconds in both.items())


def mode_by_price(refresher: Refresher, prices: Prices, changes: Mapping[str, Change]) -> tuple[str, str]:
    """Whether changes are followed or everything is computed anew, and why."""
    incremental, recompute = seconds_text(prices.incremental), seconds_text(prices.recompute)
    if prices.recompute <= CLEARLY * prices.incremental or prices.nothing_helps:
        lost = _lost_by_recompute(refresher, prices, changes)
        if lost <= 0:
            return RECOMPUTE, f"a recompute should take {recompute}, an incremental refresh {incremental}"
        return INCREMENTAL, (f"it should take {incremental}, a recompute {recompute} and then"
                             f" {seconds_text(lost)} more than it saves, for the states that it drops")  # fmt: skip
    return INCREMENTAL, f"it should take {incremental}, a recompute {recompute}"


def _lost_by_recompute(refresher: Refresher, prices: Prices, changes: Mapping[str, Change]) -> float:
    """What a recompute costs more than an incremental refresh, with the states to build and the refresh after it.

    A recompute starts without states. Counter-example to looking at this refresh alone: it is a little cheaper to
    recompute a view and to compare results, so every refresh does, and builds all states again, which none uses.
    """
    now = {INCREMENTAL: prices.incremental, RECOMPUTE: prices.recompute}
    total = {}
    for mode, seconds in now.items():
        at_hand = refresher.next_at_hand(mode, refresher.view.kept if mode == INCREMENTAL else frozenset(), changes)
        after = plan_next(refresher.facts(), refresher.view.strategy, refresher.free(), refresher.expected(), at_hand)
        total[mode] = seconds + after.build + refresher.facts().corrected(INCREMENTAL, after.seconds)
    return total[RECOMPUTE] - total[INCREMENTAL]


def _plain_mode(refresher: Refresher) -> tuple[str, str]:
    """Where prices decide nothing: incremental, unless most rows are new or states are gone."""
    changed = sum(c.inserted + c.deleted for c in refresher.changes.values())
    present = sum(c.before for c in refresher.changes.values())
    if changed > LARGE_DELTA * present and refresher.view.strategy not in ("incremental", "higher_order"):
        return RECOMPUTE, f"{changed:,} changed rows against {present:,}: the delta is too large to pay"
    missing = _missing_states(refresher)
    if missing:
        return RECOMPUTE, missing
    return INCREMENTAL, "the delta is small and the states are at hand"


def _missing_states(refresher: Refresher) -> str:
    """Say which wanted state is not there; a refresh without it would cost more than a recompute."""
    if refresher.view.strategy == "higher_order" and not all(c.keep for c in refresher.view.choices):
        return "the higher-order views do not fit the budget, and some alone are of no use"
    for node in refresher.view.plan.walk():
        key = node_key(node)
        if keeps_state(node) and key not in refresher.view.states:
            return f"no state for {describe(node)[:80]}"
    deleted = {table for table, change in refresher.changes.items() if change.deleted}
    for node in refresher.view.plan.walk():
        if isinstance(node, LookupJoin) and node_key(node.waiting) in refresher.view.states:
            lost = deleted & node.waiting.tables and node_key(node.rows) not in refresher.view.states
            if lost and any(isinstance(x, Join) for x in node.rows.walk()):
                return f"rows were deleted from {', '.join(sorted(deleted))}, and what they matched is not kept"
    absent = refresher.view.wanted - set(refresher.view.states)
    return "states were lost and are rebuilt" if absent else ""

"""What a refresh asks the planner: is a delta or a recompute cheaper now, and which states should the next one find."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from slackwater.algebra.nodes import Rel, Scan
from slackwater.algebra.printer import node_key
from slackwater.arrivals.forecast import TableForecast
from slackwater.delta.environment import Change
from slackwater.delta.rules import has_delta
from slackwater.planning.cardinality import Cardinalities, Expected, plausible
from slackwater.planning.costing import AtHand, Pricing
from slackwater.planning.memo import Demand
from slackwater.planning.plain_rules import plain_choice
from slackwater.planning.rates import Rates
from slackwater.planning.staircase import Staircase
from slackwater.planning.state_choice import Root
from slackwater.planning.strategies import StatePlan, plan_states

if TYPE_CHECKING:
    from slackwater.arrivals.forecast import Forecast
    from slackwater.execution.leaves import TableState

QUICK = 0.12
"""Where reading everything takes less than this, the fixed price of queries hides all else: prices decide nothing."""

SERVES = 50.0
"""A state is expected to serve so many refreshes, unless the forecast says that the next one is the last."""

VIEW_SHARE = 0.01
"""Of another view that a query reads, this share of the rows is expected to change."""

HARDLY = 0.01
"""The rows that are expected of a table that may bring some, where the forecast is none."""

CORRECTIONS = (0.02, 50.0)
"""No prediction is made so much smaller or larger than that."""

LEARNING = 0.3
"""How much of an error the next prediction takes into account."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a view's plan and tables.

    Attributes:
        plan: the view's plan.
        table_rows: rows of each table now.
        observed: rows of nodes as jobs counted them.
        shares: what filtered scans keep.
        unique: the key of each table, by column positions.
        sizes: measured bytes of states.
        rates: what work costs here.
        corrections: actual over predicted seconds, by mode, learned from earlier refreshes.
        allowed: the nodes that may be kept; None for all.
        roots: memos that were made before, from the same facts.
        dead: the tables that have lost rows.
    """

    plan: Rel
    table_rows: Mapping[str, int]
    observed: Mapping[str, float]
    shares: Mapping[str, float]
    unique: Callable[[str], tuple[int, ...]]
    sizes: Mapping[str, int]
    rates: Rates
    corrections: Mapping[str, float] = field(default_factory=dict)
    allowed: frozenset[str] | None = None
    roots: dict[Any, Root] = field(default_factory=dict, compare=False, repr=False)
    dead: frozenset[str] = frozenset()

    @property
    def quick(self) -> bool:
        """Whether all the data is read in no time."""
        r, rows = self.rates, plausible(self.table_rows)
        each = r.scan_row + r.probe + r.aggregate
        scans = (x for x in self.plan.walk() if isinstance(x, Scan))
        return sum(rows.get(x.table, 0) * (each + r.scan_value * len(x.schema)) for x in scans) < QUICK

    def root(self, expected: Mapping[str, Expected], at_hand: AtHand) -> Root:
        """The plan in the memo, priced for a delta; once for each that is asked for."""
        known = (at_hand.states, at_hand.everything, at_hand.passing, at_hand.serves)
        slot = (node_key(self.plan), self.allowed, frozenset(expected.items()), known)
        if slot not in self.roots:
            cards = self.cardinalities(expected)
            sizes = {key: int(size) for key, size in plausible(at_hand.sizes).items()}
            pricing = Pricing(cards, self.rates, replace(at_hand, sizes=sizes), self.allowed)
            self.roots[slot] = pricing.root(self.plan, by_delta=has_delta(self.plan))
        return self.roots[slot]

    def cardinalities(self, expected: Mapping[str, Expected]) -> Cardinalities:
        """The rows of every node, and what a delta changes."""
        return Cardinalities({t: float(n) for t, n in plausible(self.table_rows).items()}, expected,
                             plausible(self.observed), plausible(self.shares, 1.0), self.unique,
                             self.dead)  # fmt: skip

    def corrected(self, mode: str, seconds: float) -> float:
        """A price after what earlier refreshes taught."""
        return seconds * correction(self.corrections, mode)


def coming(tables: Mapping[str, TableState], forecast: Forecast) -> dict[str, Expected]:
    """The next delta of what a query reads; of a table that may bring something, something at least.

    A table that has just brought rows is thought to bring as many again where the forecast holds that possible: a
    state for rows that stay away costs nothing at a refresh, one that is missing for rows that come costs much. Of what
    is complete nothing comes, be it a table or a view over complete ones.
    """
    said = {t.table: t for t in forecast.tables}
    found = {}
    for name, state in tables.items():
        if state.complete:
            continue
        if name not in said:  # another view: its changes follow those of the tables
            found[name] = Expected(max(VIEW_SHARE * state.rows, 1.0), 0.5)
        elif said[name].high > 0:
            came = state.change
            again = min(said[name].high, came.inserted + came.deleted) if came is not None else 0.0
            found[name] = Expected(max(said[name].rows, again, HARDLY), said[name].deletes)
    return found


ALIKE = 1.4
"""Numbers up to so many times as large as each other make no other choice of states."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What a choice of states depends on: what must be the same, and what may differ a little.

    Attributes:
        mode: the mode of the run.
        at_hand: the states that are there, and what the run computes anyway.
        free: bytes for states.
        coming: the next delta.
        plan: the key of the plan: another one has other states.
        rows: what the tables hold.
        rates: what work costs: once it has been measured anew, other states may pay.
    """

    mode: str
    at_hand: AtHand
    free: float
    coming: Mapping[str, Expected]
    plan: str = ""
    rows: Mapping[str, float] = field(default_factory=dict)
    rates: Rates | None = None

    def like(self, other: Situation) -> bool:
        """Whether a choice that was made in this situation is as good in another."""
        ours, theirs = self.at_hand, other.at_hand
        return (
            (self.mode, self.plan, ours.states, ours.passing) == (other.mode, other.plan, theirs.states, theirs.passing)
            and self.rates == other.rates
            and self.coming.keys() == other.coming.keys()
            and self.rows.keys() == other.rows.keys()
            and all(_alike(n, other.rows[t]) for t, n in self.rows.items())
            and _alike(self.free, other.free)
            and all(_alike(e.rows, other.coming[t].rows) for t, e in self.coming.items())
            and all(abs(e.deletes - other.coming[t].deletes) <= 0.2 for t, e in self.coming.items())
        )


def _alike(one: float, two: float) -> bool:
    return (1 + one) <= ALIKE * (1 + two) and (1 + two) <= ALIKE * (1 + one)


@dataclass(frozen=True, slots=True)
class Prices:
    """What a refresh would take now.

    Attributes:
        incremental: with the states at hand.
        recompute: from the tables alone.
        compare: the incremental way compares full results instead of following the delta.
        quick: so little data that the prices say nothing.
    """

    incremental: float
    recompute: float
    compare: bool
    quick: bool

    @property
    def nothing_helps(self) -> bool:
        """Whether the incremental way comes to computing everything as well."""
        return self.compare and self.recompute <= self.incremental


def price_now(facts: Facts, changes: Mapping[str, Change], states: frozenset[str]) -> Prices:
    """Price both ways for the delta that is there."""
    root = _root_now(facts, changes, states)
    incremental = root.price(states, building=False)
    compared = [(d, extra) for d, extra in root.demands if d is Demand.NEW]
    recompute = Root(root.group, tuple(compared)).price(frozenset(), building=False)
    return Prices(
        facts.corrected("incremental", incremental),
        facts.corrected("recompute", recompute),
        root.demand(states) is Demand.NEW,
        facts.quick,
    )


def _root_now(facts: Facts, changes: Mapping[str, Change], states: frozenset[str]) -> Root:
    expected = {
        t: Expected(float(c.inserted + c.deleted), c.deleted / max(c.inserted + c.deleted, 1))
        for t, c in changes.items()
    }
    return facts.root(expected, AtHand(states, everything=False, sizes=facts.sizes))


def passing_by(facts: Facts, changes: Mapping[str, Change], states: frozenset[str]) -> frozenset[str]:
    """The nodes whose output at the new version an incremental refresh computes in full: to keep it is to write it.

    What does not change is the same at the old version.
    """
    demanded = _root_now(facts, changes, states).demanded(states)
    found = set()
    for node in facts.plan.walk():
        asked = demanded.get(node_key(node), Demand.NOTHING)
        changed = any(isinstance(leaf, Scan) and leaf.table in changes for leaf in node.walk())
        if asked & Demand.NEW or (asked & Demand.OLD and not changed):
            found.add(node_key(node))
    return frozenset(found)


def plan_next(facts: Facts, strategy: str, budget: int, expected: Mapping[str, Expected], at_hand: AtHand) -> StatePlan:
    """Choose the states that the next refresh should find.

    Where all the data is read in no time a price has no meaning, and what a growing table will need is kept.
    """
    root = facts.root(expected, at_hand)
    if strategy == "auto" and facts.quick:
        strategy = "plain"
    if strategy == "plain":
        cards = facts.cardinalities(expected)
        chosen = plain_choice(facts.plan, expected, facts.shares, lambda node: cards.of(node).full)
        return plan_states(root, strategy, budget, chosen)
    return plan_states(root, strategy, budget, there=frozenset() if at_hand.everything else at_hand.states)


def serves(coming: Iterable[TableForecast]) -> float:
    """How many refreshes a state that is built now should serve: one, where the next is the last."""
    bringing = [table for table in coming if table.high > 0]
    return 1.0 if bringing and all(table.complete_after for table in bringing) else SERVES


def next_stairs(facts: Facts, expected: Mapping[str, Expected], at_hand: AtHand, limit: int) -> Staircase | None:
    """What the next refresh costs for every number of bytes; None where prices say nothing."""
    root = facts.root(expected, at_hand)
    return None if facts.quick else root.stairs(limit)


def correction(corrections: Mapping[str, float], mode: str) -> float:
    """What a predicted time of a mode is to be multiplied by.

    Of a mode that has not been seen yet, what the others taught is all that is known: a machine that is slow at the
    moment is slow at everything. Counter-example to taking the prediction at its word: incremental refreshes take twice
    as long as predicted, so the next one is a recompute, which takes twice as long as predicted as well.
    """
    known = plausible(corrections)
    others = math.prod(known.values()) ** (1 / len(known)) if known else 1.0
    return known.get(mode, others)


def learned(corrections: Mapping[str, float], mode: str, predicted: float, actual: float) -> dict[str, float]:
    """The corrections after one more refresh; a wild outlier moves them only so far."""
    if not (0 < predicted < math.inf and 0 < actual < math.inf):
        return dict(corrections)
    before = correction(corrections, mode)
    error = min(max(actual / predicted, 0.1), 10.0)
    least, most = CORRECTIONS
    return {**corrections, mode: min(max(before * error**LEARNING, least), most)}

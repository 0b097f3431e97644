"""A plan in the memo, priced: each node's ways to give a delta, an old and a new output, with and without a state.

The ways are those that the delta rules compile (`delta/`), so a price is a prediction of what a program will do:

    linear      asks its inputs for what it is asked for
    join        delta = D(left) ⋈ new(right)  ∪  old(left) ⋈ D(right); with what waits kept, it asks for no old rows
    aggregate   with partial rows kept: D(input), and new(input) too if groups that lost a row must be redone;
                without: the touched groups are redone on the old and the new input
    top-k, keyed and other operators: from the full outputs
    a state     its old output is read from memory, its delta is computed once and appended

How this answers to the actions of intermittent query processing: *materialize or not* is a state at an input of a
join; *keep the right hash table, the left, both, none* are the states of the join's right and left inputs (Spark
broadcasts the small delta and scans what is kept, so the rows are the table), and where a key is looked up, an index,
which is a hash table indeed; *keep or drop an aggregate* are its
partial rows; a sort feeds a top-k only, and keeping it is keeping the top-k's input.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from slackwater.algebra.aggregates import Combine, decimal_of
from slackwater.algebra.expressions import Expr
from slackwater.algebra.first_rows import First
from slackwater.algebra.joins import KeyedJoin, MatchJoin, OuterJoin
from slackwater.algebra.lookups import LookupJoin
from slackwater.algebra.multi_join import MultiJoin
from slackwater.algebra.nodes import Aggregate, Filter, Join, Linearity, Opaque, Project, Rel, Scan, TopK
from slackwater.algebra.printer import describe
from slackwater.algebra.scalars import has_one_row
from slackwater.algebra.windows import Window
from slackwater.delta.aggregate import keeps_partials
from slackwater.delta.rules import repeatable
from slackwater.planning.cardinality import Cardinalities, Rows, row_bytes, touched_groups
from slackwater.planning.memo import Demand, Group, Keeping, Way, Ways
from slackwater.planning.rates import Rates
from slackwater.planning.sending import rows_to_send
from slackwater.planning.state_choice import Root, price

DELTA, OLD, NEW, LOOKUP, SEEK = Demand.DELTA, Demand.OLD, Demand.NEW, Demand.LOOKUP, Demand.SEEK

BROADCAST_ROWS = 400_000
"""The most rows that are worth sending to every task."""

BROADCAST_BYTES = 10_000_000
"""What Spark sends to every task when it joins full inputs, by its own rule."""

PATTERNS = ("like", "ilike", "rlike", "regexp_like", "regexp_extract", "regexp_replace", "regexp_count")

ARITHMETIC = ("+", "-", "*", "/", "%")
WORD_DIGITS = 18
"""Decimals of so many digits are numbers to the processor; longer ones are objects."""

KEY_SHARE = 0.5
"""What each further key of a group costs, against a group with one."""

LOOKED_UP = 200_000
"""A kept aggregate of more groups is looked up by key instead of being merged whole."""


@dataclass(frozen=True, slots=True)
class AtHand:
    """What the run that is about to start has, and what it will compute anyway.

    Attributes:
        states: the keys of the states that are there.
        everything: the run computes the whole plan: a state can be filled in passing.
        sizes: measured bytes of states, by key.
        passing: the nodes whose latest output the run computes anyway, though not the whole plan.
        serves: how many refreshes a state that is built now is expected to serve.
    """

    states: frozenset[str] = frozenset()
    everything: bool = True
    sizes: Mapping[str, int] = field(default_factory=dict)
    passing: frozenset[str] = frozenset()
    serves: float = 1.0


@dataclass(slots=True)
class Pricing:
    """Puts one plan into the memo; `allowed` are the nodes that may be kept, None for all."""

    cards: Cardinalities
    rates: Rates
    at_hand: AtHand
    allowed: frozenset[str] | None = None

    def root(self, plan: Rel, *, by_delta: bool) -> Root:
        """The memo of a view's plan, and what may be asked of its root."""
        group = self.group(plan, kept_by_parent=False)
        rows, r = self.cards.of(plan), self.rates
        compared = (NEW, r.refresh + 3 * r.step + r.compare * 2 * rows.full)
        return Root(group, ((DELTA, r.refresh + r.step), compared) if by_delta else (compared,))

    def group(self, node: Rel, *, kept_by_parent: bool, in_order: bool = False) -> Group:
        """A node and what is below it; all of its rows are put in order at each refresh where they go `in_order`."""
        if isinstance(node, MultiJoin):
            from slackwater.planning.multi_join_costing import multi_join_group

            return multi_join_group(self, node)
        if isinstance(node, LookupJoin):
            from slackwater.planning.lookup_costing import lookup_group

            return lookup_group(self, node, kept_by_parent=kept_by_parent)
        redoes = isinstance(node, Aggregate) and node.combine >= Combine.KEPT
        keeps_inputs = redoes or node.linearity in (Linearity.BILINEAR, Linearity.KEYED)
        if isinstance(node, First):
            keeps_inputs = False  # with its own rows at hand, it asks for what changed
        orders = isinstance(node, TopK)
        inputs = tuple(self.group(child, kept_by_parent=keeps_inputs, in_order=orders) for child in node.children)
        ways = _WAYS.get(type(node), _by_algebra)(self, node)
        plain = Group(self.cards.key(node), describe(node), inputs, asked(ways, self, node))
        kept = self.keeping(node, plain, kept_by_parent, in_order=in_order)
        return plain if kept is None else Group(plain.key, plain.label, inputs, plain.ways, (kept,))

    # --- states ----------------------------------------------------------------------------------

    def keeping(
        self, node: Rel, plain: Group, kept_by_parent: bool, inputs: int | None = None, *, in_order: bool = False
    ) -> Keeping | None:
        """The state that a node can have; `inputs` where the memo has others than the plan."""
        redone = isinstance(node, Window) and not node.whole and not node.repeatable
        below = node.children[0] if redone or isinstance(node, Aggregate) else node
        if self.allowed is not None and plain.key not in self.allowed:
            return None
        if not all(repeatable(x) for x in below.walk()):
            return None
        if isinstance(node, Aggregate):
            if not keeps_partials(node):
                return None
            ways = _kept_aggregate(self, node)
        elif isinstance(node, First):
            ways = _kept_first(self, node)
        elif redone or (kept_by_parent and worth_a_state(node)):
            ways = kept_rows(self, node, plain, inputs, in_order=in_order)
        else:
            return None
        key, rows = plain.key, self.cards.of(node)
        size = self.at_hand.sizes.get(key) or int(row_bytes(node) * max(rows.full, 1.0))
        if inputs is None:
            ways = asked(ways, self, node)
        return Keeping(key, size, self.build(plain, rows), ways, self.at_hand.serves)

    def build(self, plain: Group, rows: Rows, passing: str = "") -> float:
        """Seconds to have the state after this run; `passing` is the node that it is made of, where it is another."""
        if plain.key in self.at_hand.states:
            return 0.0
        write = self.rates.step + self.rates.write * rows.full
        if self.at_hand.everything or (passing or plain.key) in self.at_hand.passing:
            return write
        return write + price(plain, NEW, self.at_hand.states, building=False)

    def asks(self, child: Rel, demand: Demand) -> Demand:
        """A demand on an input: what does not change has no delta, and its new output is its old one."""
        if self.cards.of(child).touched:
            return demand
        return demand & (LOOKUP | SEEK) | (OLD if demand & (OLD | NEW) else Demand.NOTHING)


def worth_a_state(node: Rel) -> bool:
    """Whether a copy could be cheaper to read than to make again: a scan that only refuses NULLs never is.

    Nor is the one row of an aggregate without groups, whose partial row is kept. Counter-example to keeping it beside
    that: a state and its change are three rows where one is meant, and a query with fifteen scalar subqueries, which
    are cross joins of one row each, would multiply them to 3^15.
    """
    if has_one_row(node):
        return False
    while isinstance(node, Project) or (isinstance(node, Filter) and _refuses_nulls(node)):
        node = node.child
    return not isinstance(node, Scan | Opaque)


def _refuses_nulls(node: Filter) -> bool:
    return all(c.op == "is_not_null" for c in node.predicate.conjuncts())


def asked(ways: Ways, pricing: Pricing, node: Rel) -> Ways:
    """The ways, with demands on inputs that do not change reduced to what they come to."""
    found: dict[Demand, tuple[Way, ...]] = {}

    def reduced(demand: Demand) -> tuple[Way, ...]:
        if demand not in found:
            found[demand] = tuple(
                Way(w.seconds, tuple(pricing.asks(c, d) for c, d in zip(node.children, w.demands, strict=True)))
                for w in ways(demand)
            )
        return found[demand]

    return reduced


def _rows_for(rows: Rows, demand: Demand) -> float:
    """All the rows that answer a demand."""
    return (
        (rows.delta if demand & DELTA else 0.0)
        + (rows.full if demand & OLD else 0.0)
        + (rows.full + rows.delta if demand & NEW else 0.0)
    )


# --- ways without a state ------------------------------------------------------------------------------------------


def _scan(pricing: Pricing, node: Rel) -> Ways:
    rows, r = pricing.cards.of(node), pricing.rates
    each = r.scan_row + r.scan_value * len(node.schema)
    dead = isinstance(node, Scan) and node.table in pricing.cards.dead

    def ways(demand: Demand) -> tuple[Way, ...]:
        seconds = r.step / 2 if rows.touched and demand & NEW else 0.0  # Spark has not seen its newest files before
        seconds += each * _rows_for(rows, demand)
        if dead:  # each row that is read is looked up among the positions of those that are gone
            versions = bool(demand & OLD) + bool(demand & NEW)
            seconds += versions * (r.step / 2 + r.probe * rows.full)
        return (Way(seconds),)

    return ways


def _linear(pricing: Pricing, node: Rel) -> Ways:
    inputs, r = [pricing.cards.of(child) for child in node.children], pricing.rates
    each = r.scan_row + r.pattern * _patterns(node) + r.wide * _wide_operations(node)

    def ways(demand: Demand) -> tuple[Way, ...]:
        work = sum(_rows_for(rows, demand) for rows in inputs) * each
        return (Way(work, (demand,) * len(inputs)),)

    return ways


def _patterns(node: Rel) -> int:
    """How many patterns a node compares a row's texts with: these cost more than all else that is done with a row."""
    return sum(x.op in PATTERNS for x in _evaluated(node))


def _wide_operations(node: Rel) -> int:
    """How many operations on decimals a node does that do not fit a machine word."""
    return sum(x.op in ARITHMETIC and _is_wide(x.dtype) for x in _evaluated(node))


def _is_wide(dtype: str) -> bool:
    decimal = decimal_of(dtype)
    return decimal is not None and decimal.precision > WORD_DIGITS


def _evaluated(node: Rel) -> Iterator[Expr]:
    """All that a node evaluates for a row."""
    exprs = [node.predicate] if isinstance(node, Filter) else []
    exprs += [item.expr for item in node.items] if isinstance(node, Project) else []
    exprs += [arg for agg in node.aggs for arg in agg.args] if isinstance(node, Aggregate) else []
    return (x for expr in exprs for x in expr.walk())


def join_ways(pricing: Pricing, node: Rel) -> Ways:
    """Inner joins; outer and match joins ask for the same two full outputs, and look up match status besides."""
    assert isinstance(node, Join | KeyedJoin)  # noqa: S101 - by the table of ways
    status = pricing.rates.step * 2 if isinstance(node, KeyedJoin) else 0.0
    left, right, out = (pricing.cards.of(x) for x in (node.left, node.right, node))
    together = _full_join(pricing, node)
    read_left, read_right = (any(pricing.cards.of(c).touched for c in causes) for _, causes in node.rereads)

    def ways(demand: Demand) -> tuple[Way, ...]:
        seconds, of_left, of_right = 0.0, Demand.NOTHING, Demand.NOTHING
        if demand & DELTA:
            if left.touched:
                seconds += meet(pricing.rates, left.delta, right.full + right.delta) + pricing.rates.step / 2
                of_left |= DELTA
            if right.touched:
                seconds += meet(pricing.rates, right.delta, left.full) + pricing.rates.step / 2
                of_right |= DELTA
            of_left |= OLD if read_left else Demand.NOTHING
            of_right |= NEW if read_right else Demand.NOTHING
            seconds += pricing.rates.emit * out.delta + status
        for version in (OLD, NEW):
            if demand & version:
                seconds += together + pricing.rates.emit * out.full + pricing.rates.step / 2
                of_left, of_right = of_left | version, of_right | version
        return (Way(seconds, (of_left, of_right)),)

    return ways


def _full_join(pricing: Pricing, node: Join | KeyedJoin) -> float:
    """Two full inputs meet. A side whose rows are asked for their matches cannot be the one that is sent."""
    left, right = (pricing.cards.of(x).full for x in (node.left, node.right))
    if isinstance(node, Join):
        sent = min(rows_to_send(pricing.cards, side) for side in (node.left, node.right))
        return meet(pricing.rates, left, right, -1.0 if math.isinf(sent) else sent)
    sides = [(right, left, node.right)] if isinstance(node, MatchJoin) or not node.keeps_right else []
    sides += [(left, right, node.left)] if isinstance(node, OuterJoin) and not node.keeps_left else []
    for small, large, side in sides:
        known = isinstance(node, MatchJoin) and not math.isinf(rows_to_send(pricing.cards, side))
        if known or small <= min(BROADCAST_ROWS, BROADCAST_BYTES // row_bytes(side)):  # Spark's own rule
            return pricing.rates.build * small + pricing.rates.probe * large
    return pricing.rates.shuffle * (left + right) + pricing.rates.probe * max(left, right)


def price_of(pricing: Pricing, node: Rel, demand: Demand) -> float:
    """What a node answers a demand for with no state at all."""
    group = pricing.group(node, kept_by_parent=False)
    return price(group, pricing.asks(node, demand), frozenset(), building=False)


def meet(r: Rates, one: float, two: float, fits: float = BROADCAST_ROWS) -> float:
    """Two inputs that are at hand meet: the small one is sent to everyone if so many rows fit, or both are shuffled."""
    small, large = min(one, two), max(one, two)
    if small <= fits:
        return r.build * small + r.probe * large
    return r.shuffle * (small + large) + r.probe * large


def _aggregate(pricing: Pricing, node: Rel) -> Ways:
    assert isinstance(node, Aggregate)  # noqa: S101 - by the table of ways
    below, own, r = pricing.cards.of(node.child), pricing.cards.of(node), pricing.rates
    wide, each = _width(node), _aggregated(r, node)

    def ways(demand: Demand) -> tuple[Way, ...]:
        seconds, asked = 0.0, Demand.NOTHING
        if demand & DELTA:
            redone = below.full * min(1.0, touched_groups(own.full, below.delta) / max(own.full, 1.0))
            seconds += 2 * r.step + r.build * below.delta + 2 * (r.probe * below.full + each * redone)
            asked |= DELTA | OLD | NEW
        for version in (OLD, NEW):
            if demand & version:
                seconds += each * below.full + wide * r.merge * own.full
                asked |= version
        return (Way(seconds, (asked,)),)

    return ways


def _aggregated(r: Rates, node: Aggregate) -> float:
    """What adding one row to its group costs."""
    return _width(node) * r.aggregate + r.aggregate_value * len(node.aggs) + r.wide * _wide_operations(node)


def _width(node: Aggregate) -> float:
    """How much more a group with several keys costs than one with a single key: each is hashed and compared."""
    return _keyed(len(node.groups))


def _keyed(columns: int) -> float:
    return 1.0 + KEY_SHARE * max(columns - 1, 0)


def _top(pricing: Pricing, node: Rel) -> Ways:
    below, r = pricing.cards.of(node.children[0]), pricing.rates

    def ways(demand: Demand) -> tuple[Way, ...]:
        asked = (OLD | NEW) if demand & DELTA else demand
        times = bool(asked & OLD) + bool(asked & NEW)
        return (Way(r.sort * below.full * times, (asked,)),)

    return ways


def _by_algebra(pricing: Pricing, node: Rel) -> Ways:
    """An operator that has no price of its own, from the algebra that it declares."""
    if node.linearity is Linearity.LINEAR:
        return _linear(pricing, node)
    inputs, own, r = [pricing.cards.of(c) for c in node.children], pricing.cards.of(node), pricing.rates

    def ways(demand: Demand) -> tuple[Way, ...]:
        full = sum(rows.full for rows in inputs) or own.full
        seconds, asked = 0.0, Demand.NOTHING
        if demand & DELTA:
            seconds += 2 * r.step + 2 * r.probe * full + sum(r.build * rows.delta for rows in inputs)
            asked |= DELTA | OLD | NEW
        for version in (OLD, NEW):
            if demand & version:
                seconds += r.shuffle * full + r.emit * own.full
                asked |= version
        return (Way(seconds, (asked,) * len(inputs)),)

    return ways


_WAYS: dict[type[Rel], Callable[[Pricing, Rel], Ways]] = {
    Scan: _scan,
    Join: join_ways,
    MatchJoin: join_ways,
    OuterJoin: join_ways,
    Aggregate: _aggregate,
    TopK: _top,
    First: _top,
}


# --- ways with a state ---------------------------------------------------------------------------------------------


def kept_rows(pricing: Pricing, node: Rel, plain: Group, inputs: int | None = None, *, in_order: bool = False) -> Ways:
    """The ways of a node whose rows are kept; `inputs` where the memo has others than the plan.

    To put rows in order, those that were taken back must first be found by value among the others.
    """
    rows, r = pricing.cards.of(node), pricing.rates
    nothing = (Demand.NOTHING,) * (len(node.children) if inputs is None else inputs)
    each = r.state_row + (_keyed(len(node.schema)) * r.merge if in_order and rows.deletes > 0 else 0.0)

    def ways(demand: Demand) -> tuple[Way, ...]:
        reads = bool(demand & OLD) + bool(demand & NEW)
        scans = each * rows.full * reads
        if not rows.touched or not demand & (DELTA | NEW):
            return (Way(scans, nothing),)
        append = r.append + r.write * rows.delta
        return tuple(Way(w.seconds + append + scans, w.demands) for w in plain.ways(DELTA))

    return ways


def _kept_first(pricing: Pricing, node: First) -> Ways:
    below, r = pricing.cards.of(node.child), pricing.rates

    def ways(demand: Demand) -> tuple[Way, ...]:
        seconds = r.state_row * node.most * (bool(demand & OLD) + bool(demand & NEW))
        if not below.touched or not demand & (DELTA | NEW):
            return (Way(seconds, (Demand.NOTHING,)),)
        return (Way(seconds + 2 * r.step + r.sort * (below.delta + node.most), (DELTA,)),)

    return ways


def _kept_aggregate(pricing: Pricing, node: Aggregate) -> Ways:
    below, own, r = pricing.cards.of(node.child), pricing.cards.of(node), pricing.rates
    redo = node.combine is Combine.KEPT or (below.deletes > 0 and node.combine is Combine.MERGEABLE)
    groups, wide = touched_groups(own.full, below.delta), _width(node)
    merge = wide * r.merge

    def ways(demand: Demand) -> tuple[Way, ...]:
        seconds, asked = 0.0, Demand.NOTHING
        if below.touched and demand & (DELTA | NEW):
            seconds += r.step + _aggregated(r, node) * below.delta
            asked |= DELTA
            if redo:
                seconds += r.step + r.probe * below.full
                asked |= NEW
        if demand & DELTA:
            looked_up = r.build * groups + r.probe * own.full + merge * groups
            whole = merge * own.full
            seconds += r.state_row * own.full + (looked_up if own.full > LOOKED_UP else whole)
        reads = bool(demand & OLD) + bool(demand & NEW)
        seconds += (r.state_row + merge) * own.full * reads
        return (Way(seconds, (asked,)),)

    return ways

"""A lookup in the memo: a join that may keep what waits, so that nobody asks for its old rows, and an index.

What waits, the index and the join's own output are three states of one node. The memo has one choice for each group, so
a lookup is three groups: the side that is looked up with its index; the join, which may keep what waits; and above it
the output, which may be kept like any other.
"""

from __future__ import annotations

from slackwater.algebra.lookups import Indexed, LookupJoin
from slackwater.algebra.printer import describe
from slackwater.delta.rules import repeatable
from slackwater.planning.cardinality import row_bytes
from slackwater.planning.costing import DELTA, LOOKUP, NEW, OLD, SEEK, Pricing, asked, join_ways, meet
from slackwater.planning.memo import Demand, Group, Keeping, Way, Ways
from slackwater.planning.state_choice import price

WAITS = 0.05
"""The share of the rows that is thought to wait, until it is counted."""

SINCE = 0.1
"""The share of an index's rows that has come since it was made, at most."""

PILED = 6
"""What has come since an index was made is so many deltas, on the average: more are merged, or the index made anew."""

INDEXED = 10_000_000
"""An index has so many rows at most: more would not fit there."""

SENT_ANYWAY = 25_000
"""An index has so many rows at least: fewer are sent to every task anyway, and the smallest table of Spark takes some
4 MB, for 25 rows as for 25,000."""

INDEX_BYTES = 1_500_000_000
"""The most bytes of an index."""

NEVER = 1e9
"""Seconds of a way that there is not."""

CACHED = 1_000_000
"""Of an index with so many rows or more, hardly any is in the processor's cache when it is looked up."""

SINCE_PROBE = 0.5
"""What it costs to find nothing among the few rows that came since, against finding a row among many."""

ENTRY = 1.4
"""The bytes of a row in an index, against those of a row in Spark's memory."""


def lookup_group(pricing: Pricing, node: LookupJoin, *, kept_by_parent: bool) -> Group:
    """The join, and its output above it where that may be kept."""
    found = [pricing.group(child, kept_by_parent=True) for child in node.children]
    at = node.children.index(node.rows)
    if node.index is not None:
        found[1 - at] = index_group(pricing, node, node.index, found[1 - at])
    inputs = tuple(found)
    waiting = node.waiting
    ways = asked(_without(pricing, node, at, seekable=bool(inputs[1 - at].keepings)), pricing, node)
    plain = Group(pricing.cards.key(waiting), describe(waiting), inputs, ways)
    kept = _keeping(pricing, node, plain)
    joined = plain if kept is None else Group(plain.key, plain.label, inputs, plain.ways, (kept,))
    output = Group(pricing.cards.key(node), describe(node), (joined,), lambda demand: (Way(0.0, (demand,)),))
    state = pricing.keeping(node, output, kept_by_parent, 1)
    return output if state is None else Group(output.key, output.label, output.inputs, output.ways, (state,))


# --- looking up ------------------------------------------------------------------------------------------------------


def index_group(pricing: Pricing, node: LookupJoin, index: Indexed, below: Group) -> Group:
    """The side that is looked up: read whole by those who ask, or found by key in an index."""
    key, label = pricing.cards.key(index), describe(index)
    plain = Group(key, label, (below,), _read_whole(pricing, node))
    kept = _kept_index(pricing, node, plain)
    return plain if kept is None else Group(key, label, (below,), plain.ways, (kept,))


def _met_whole(pricing: Pricing, node: LookupJoin) -> float:
    """What comes is sent to every task and met by all rows of the side that is looked up."""
    rows, looked_up, r = pricing.cards.of(node.rows), pricing.cards.of(node.looked_up), pricing.rates
    return meet(r, rows.delta, looked_up.full + looked_up.delta) + r.step / 2


def _read_whole(pricing: Pricing, node: LookupJoin) -> Ways:
    def ways(demand: Demand) -> tuple[Way, ...]:
        others = demand & ~(LOOKUP | SEEK)
        seconds = NEVER if demand & SEEK else 0.0  # without an index the whole join is a join like any other
        if not demand & LOOKUP:
            return (Way(seconds, (others,)),)
        return (Way(seconds + _met_whole(pricing, node), (pricing.asks(node.looked_up, others | NEW),)),)

    return ways


def _kept_index(pricing: Pricing, node: LookupJoin, plain: Group) -> Keeping | None:
    cards, r = pricing.cards, pricing.rates
    rows, looked_up = cards.of(node.rows), cards.of(node.looked_up)
    size = pricing.at_hand.sizes.get(plain.key) or int(ENTRY * row_bytes(node.looked_up) * max(looked_up.full, 1.0))
    if pricing.allowed is not None and plain.key not in pricing.allowed:
        return None
    if not all(map(repeatable, node.looked_up.walk())):
        return None
    if not rows.touched or looked_up.full > INDEXED or size > INDEX_BYTES:
        return None
    if looked_up.full < SENT_ANYWAY:
        return None

    likely = min(looked_up.delta, 1.0)  # of a side that hardly ever changes, less than a row is expected

    def ways(demand: Demand) -> tuple[Way, ...]:
        others, seconds = demand & ~(LOOKUP | SEEK), 0.0
        since = min(SINCE * looked_up.full, PILED * looked_up.delta)
        if demand & (LOOKUP | SEEK):  # what came since is sent to every task, at the same time as other small inputs
            seconds += likely * r.append + r.build * (since + looked_up.delta)
            if looked_up.deletes > 0:  # then it has a join of its own, and all rows do not ask at once
                seconds += NEVER if demand & SEEK else r.step + meet(r, rows.delta, since)
        if demand & LOOKUP:
            seconds += _looked_up(pricing, node) * rows.delta
        if looked_up.touched:
            seconds += likely * r.append + r.write * looked_up.delta
            others |= DELTA
        return (Way(seconds, (pricing.asks(node.looked_up, others),)),)

    build = pricing.build(plain, looked_up, passing=cards.key(node.looked_up))
    build += r.build * looked_up.full if build else 0.0
    return Keeping(plain.key, size, build, ways, pricing.at_hand.serves)


def _looked_up(pricing: Pricing, node: LookupJoin) -> float:
    """What one row costs that is looked up in an index and in what has come since."""
    r, missed = pricing.rates, min(pricing.cards.of(node.looked_up).full / CACHED, 1.0)
    return (1 + SINCE_PROBE) * r.probe + missed * r.seek


# --- joining ---------------------------------------------------------------------------------------------------------


def _without(pricing: Pricing, node: LookupJoin, at: int, *, seekable: bool) -> Ways:
    """The join without what waits; its delta looks up what came on the one side, and meets old rows on the other."""
    if node.index is None:
        return join_ways(pricing, node)
    rows, looked_up, out = (pricing.cards.of(x) for x in (node.rows, node.looked_up, node))
    full, r = join_ways(pricing, node), pricing.rates

    def sought(demand: Demand) -> Way:
        """All rows of the one side look up the other."""
        asks = [Demand.NOTHING, Demand.NOTHING]
        asks[at], asks[1 - at] = demand, SEEK
        versions = bool(demand & OLD) + bool(demand & NEW)
        return Way(versions * (_looked_up(pricing, node) * rows.full + r.emit * out.full), tuple(asks))

    def ways(demand: Demand) -> tuple[Way, ...]:
        whole = demand & (OLD | NEW)
        found = (*full(whole), sought(whole)) if whole and seekable else full(whole)
        return tuple(with_delta(way) for way in found) if demand & DELTA else found

    def with_delta(way: Way) -> Way:
        seconds, asks = way.seconds + r.emit * out.delta, list(way.demands)
        if rows.touched:
            asks[at] |= DELTA
            asks[1 - at] |= LOOKUP
        if looked_up.touched:
            seconds += meet(r, looked_up.delta, rows.full) + r.step / 2
            asks[at] |= OLD
            asks[1 - at] |= DELTA
        return Way(seconds, tuple(asks))

    return ways


def _keeping(pricing: Pricing, node: LookupJoin, plain: Group) -> Keeping | None:
    """What waits as a state; where deletes are expected on the side that is looked up it would not last."""
    waiting, cards, r = node.waiting, pricing.cards, pricing.rates
    if pricing.allowed is not None and plain.key not in pricing.allowed:
        return None
    if not all(map(repeatable, node.walk())):
        return None
    if any(cards.expected[t].deletes for t in waiting.tables if t in cards.expected):
        return None
    rows, looked_up, out = cards.of(node.rows), cards.of(node.looked_up), cards.of(node)
    if not looked_up.touched:
        return None
    width = row_bytes(waiting)
    size = pricing.at_hand.sizes.get(plain.key) or int(width * max(WAITS * rows.full, 1.0))
    many = size / width
    at = node.children.index(node.rows)

    def ways(demand: Demand) -> tuple[Way, ...]:
        found = plain.ways(demand & (OLD | NEW))
        return tuple(with_delta(way) for way in found) if demand & DELTA else found

    def with_delta(way: Way) -> Way:
        seconds, asks = way.seconds, list(way.demands)
        seconds += r.emit * out.delta + meet(r, looked_up.delta, many) + r.state_row * many + r.step / 2
        asks[1 - at] |= DELTA
        if rows.touched:
            seconds += r.append + r.write * rows.delta
            asks[at] |= DELTA
            if node.index is None:
                seconds += _met_whole(pricing, node)
            asks[1 - at] |= NEW if node.index is None else LOOKUP
        return Way(seconds, tuple(asks))

    build = 0.0
    if plain.key not in pricing.at_hand.states:
        again = price(plain.inputs[at], pricing.asks(node.rows, OLD), frozenset(), building=False)
        keys = cards.table_rows.get(waiting.path.scan.table, 0.0)
        build = r.step + again + r.build * keys + r.probe * rows.full + r.write * many
    return Keeping(plain.key, size, build, asked(ways, pricing, node), pricing.at_hand.serves)

"""A lookup in the memo: a join that may keep what waits, so that nobody asks for its old rows.

What waits and the join's own output are two states of one node. The memo has one choice for each group, so a lookup is
two groups: the join, which may keep what waits, and above it the output, which may be kept like any other.
"""

from __future__ import annotations

from slackwater.algebra.lookups import LookupJoin
from slackwater.algebra.printer import describe
from slackwater.delta.rules import repeatable
from slackwater.planning.cardinality import row_bytes
from slackwater.planning.costing import DELTA, NEW, OLD, Pricing, asked, join_ways, meet
from slackwater.planning.memo import Demand, Group, Keeping, Way
from slackwater.planning.state_choice import price

WAITS = 0.05
"""The share of the rows that is thought to wait, until it is counted."""


def lookup_group(pricing: Pricing, node: LookupJoin, *, kept_by_parent: bool) -> Group:
    """The join, and its output above it where that may be kept."""
    inputs = tuple(pricing.group(child, kept_by_parent=True) for child in node.children)
    waiting = node.waiting
    plain = Group(pricing.cards.key(waiting), describe(waiting), inputs, asked(join_ways(pricing, node), pricing, node))
    kept = _keeping(pricing, node, plain)
    joined = plain if kept is None else Group(plain.key, plain.label, inputs, plain.ways, (kept,))
    output = Group(pricing.cards.key(node), describe(node), (joined,), lambda demand: (Way(0.0, (demand,)),))
    state = pricing.keeping(node, output, kept_by_parent, 1)
    return output if state is None else Group(output.key, output.label, output.inputs, output.ways, (state,))


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
        (way,) = plain.ways(demand & (OLD | NEW))
        seconds, asks = way.seconds, list(way.demands)
        if demand & DELTA:
            seconds += r.emit * out.delta + meet(r, looked_up.delta, many) + r.state_row * many + r.step / 2
            asks[1 - at] |= DELTA
            if rows.touched:
                seconds += (
                    meet(r, rows.delta, looked_up.full + looked_up.delta) + r.step / 2 + r.append + r.write * rows.delta
                )
                asks[at] |= DELTA
                asks[1 - at] |= NEW
        return (Way(seconds, tuple(asks)),)

    build = 0.0
    if plain.key not in pricing.at_hand.states:
        again = price(plain.inputs[at], pricing.asks(node.rows, OLD), frozenset(), building=False)
        keys = cards.table_rows.get(waiting.path.scan.table, 0.0)
        build = r.step + again + r.build * keys + r.probe * rows.full + r.write * many
    return Keeping(plain.key, size, build, asked(ways, pricing, node), pricing.at_hand.serves)

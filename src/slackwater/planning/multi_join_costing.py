"""A join of many in the memo: its inputs as they are, and each part that is kept as a leaf with a price of its own.

Parts overlap, so that they are not below each other as the nodes of a tree are. Each is priced by itself: its change
from the changes of its inputs and from what they meet, which is kept as well; its full output from the tables. The
strategy that makes these plans keeps all parts or none, so the prices choose nothing; reports compare with them.
"""

from __future__ import annotations

from collections.abc import Mapping

from slackwater.algebra.multi_join import MultiJoin
from slackwater.algebra.nodes import Opaque, Rel
from slackwater.algebra.printer import describe
from slackwater.delta.rules import repeatable
from slackwater.planning.cardinality import row_bytes
from slackwater.planning.costing import DELTA, NEW, OLD, Pricing, kept_rows, meet, price_of
from slackwater.planning.memo import Demand, Group, Keeping, Way, Ways


def multi_join_group(pricing: Pricing, node: MultiJoin) -> Group:
    """The join, its inputs, and its parts."""
    kept = {pricing.cards.key(view) for view in node.views}
    inputs = tuple(_input(pricing, child, kept) for child in node.inputs)
    reading = {pricing.cards.key(child): price_of(pricing, child, OLD) for child in node.inputs}
    parts = tuple(_part(pricing, child, reading) for child in node.children[len(inputs) :])
    seconds = _change(pricing, node)

    def ways(demand: Demand) -> tuple[Way, ...]:
        own, asked = _full(pricing, node, demand), demand & (OLD | NEW)
        below = Demand.NOTHING
        if demand & DELTA:
            own, asked, below = own + seconds, asked | DELTA | OLD, DELTA | OLD
        of_inputs = tuple(pricing.asks(child, asked) for child in node.inputs)
        return (Way(own, of_inputs + tuple(pricing.asks(x, below) for x in node.children[len(inputs) :])),)

    return Group(pricing.cards.key(node), describe(node), inputs + parts, ways)


def _input(pricing: Pricing, node: Rel, kept: set[str]) -> Group:
    """An input is kept as it is, even where it is a table as it stands: higher-order views read no files."""
    group = pricing.group(node, kept_by_parent=True)
    if pricing.cards.key(node) not in kept:
        return Group(group.key, group.label, group.inputs, group.ways)
    return group if group.keepings or isinstance(node, Opaque) else _with_rows_kept(pricing, node, group)


def _part(pricing: Pricing, node: Rel, reading: Mapping[str, float]) -> Group:
    assert isinstance(node, MultiJoin)  # noqa: S101 - single inputs are inputs
    change = _change(pricing, node)
    read = sum(reading[pricing.cards.key(child)] for child in node.inputs)

    def ways(demand: Demand) -> tuple[Way, ...]:
        times = bool(demand & OLD) + bool(demand & NEW)
        return (Way(_full(pricing, node, demand) + times * read + (change if demand & DELTA else 0.0)),)

    return _with_rows_kept(pricing, node, Group(pricing.cards.key(node), describe(node), (), ways))


def _with_rows_kept(pricing: Pricing, node: Rel, plain: Group) -> Group:
    if not all(repeatable(x) for x in node.walk()):
        return plain
    rows = pricing.cards.of(node)
    size = pricing.at_hand.sizes.get(plain.key) or int(row_bytes(node) * max(rows.full, 1.0))
    ways: Ways = kept_rows(pricing, node, plain, len(plain.inputs))
    state = Keeping(plain.key, size, pricing.build(plain, rows), ways)
    return Group(plain.key, plain.label, plain.inputs, plain.ways, (state,))


def _change(pricing: Pricing, node: MultiJoin) -> float:
    """Every input's change meets the parts that are left without it."""
    r, total = pricing.rates, pricing.rates.emit * pricing.cards.of(node).delta
    for place, child in enumerate(node.inputs):
        rows = pricing.cards.of(child)
        if rows.touched:
            total += r.step / 2
            total += sum(meet(r, rows.delta, pricing.cards.of(node.part(g)).full) for g in node.rest(place))
    return total


def _full(pricing: Pricing, node: MultiJoin, demand: Demand) -> float:
    """Two-way joins in the order of the inputs, once for each version asked for."""
    times = bool(demand & OLD) + bool(demand & NEW)
    if not times:
        return 0.0
    total, places = 0.0, range(len(node.inputs))
    for last in places[1:]:
        before, out = node.part(range(last)), node.part(range(last + 1))
        one, two = pricing.cards.of(before).full, pricing.cards.of(node.inputs[last]).full
        total += meet(pricing.rates, one, two) + pricing.rates.emit * pricing.cards.of(out).full
    return times * total

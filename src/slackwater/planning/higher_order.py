"""Higher-order maintenance: which joins of parts of a query the change of a single input has to meet.

DBToaster's rule, over our algebra. The change of one input meets the join of all the others: that is kept, one view for
each connected group, for a cross product is never worth its rows. Each of these views changes in turn, and what *its*
change meets is kept as well; and so on down to single inputs. Only tables that can still change count: what is complete
never brings a change, so nothing is kept for it.

For `lineitem ⋈ orders ⋈ customer` this gives lineitem, orders, customer, lineitem ⋈ orders and orders ⋈ customer.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from slackwater.algebra.expressions import Expr, conjunction
from slackwater.algebra.multi_join import MultiJoin, Places
from slackwater.algebra.nodes import Filter, Join, Project, Rel, Scan, pass_through
from slackwater.planning.join_groups import flatten
from slackwater.planning.join_order import read_by

MOST_VIEWS = 256
"""A join of many inputs around one has a view for each subset of them; from here on no refresh would end in time."""


class TooManyViews(Exception):
    """More parts would have to be kept than is sensible."""

    def __init__(self, tables: str) -> None:
        super().__init__(f"higher-order views of {tables}: more than {MOST_VIEWS}")
        self.tables = tables


def higher_order(plan: Rel, changing: Collection[str]) -> Rel:
    """Put a join of many in the place of every group of inner joins, with the views that the changing tables need."""
    if isinstance(plan, Join) or (isinstance(plan, Project) and isinstance(plan.child, Join)):
        inputs, conditions = flatten(plan)
        if all(x.names for x in inputs):  # a part of inputs that are only counted would have no column
            joined = _join_of_many([higher_order(x, changing) for x in inputs], conditions, read_by(plan), changing)
            return Project(joined, plan.items if isinstance(plan, Project) else pass_through(plan.schema))
    children = tuple(higher_order(child, changing) for child in plan.children)
    return plan if children == plan.children else plan.with_children(children)


def views(joined: MultiJoin, changing: Collection[str]) -> tuple[Places, ...]:
    """The parts to keep, the smaller ones first."""
    moving = {at for at, child in enumerate(joined.inputs) if _reads(child, changing)}
    found: set[Places] = set()
    pending = [tuple(range(len(joined.inputs)))]
    while pending:
        places = pending.pop()
        for at in moving.intersection(places):
            for group in joined.components(i for i in places if i != at):
                if group not in found:
                    found.add(group)
                    pending.append(group)
        if len(found) > MOST_VIEWS:
            raise TooManyViews(joined.tables())
    return tuple(sorted(found, key=lambda places: (len(places), places)))


def _join_of_many(
    inputs: list[Rel], conditions: list[Expr], needed: Collection[str], changing: Collection[str]
) -> MultiJoin:
    """What concerns one input alone goes into it, the inputs into an order in which each is joined with some before."""
    across: list[Expr] = []
    for condition in conditions:
        spans = [at for at, x in enumerate(inputs) if condition.inputs & set(x.names)]
        if len(spans) > 1:
            across.append(condition)
        else:
            at = spans[0] if spans else 0
            inputs[at] = Filter(inputs[at], conjunction((condition,)))
    names = [name for x in inputs for name in x.names]
    columns = tuple(n for n in names if n in needed) or (names[0],)
    ordered = _connected_order(MultiJoin(tuple(inputs), tuple(across), columns))
    return replace(ordered, kept=views(ordered, changing))


def _connected_order(joined: MultiJoin) -> MultiJoin:
    order, left = [0], list(range(1, len(joined.inputs)))
    while left:
        following = next((i for i in left if len(joined.components((*order, i))) == 1), left[0])
        order.append(following)
        left.remove(following)
    inputs = tuple(joined.inputs[i] for i in order)
    wanted = set(joined.columns)
    return replace(joined, inputs=inputs, columns=tuple(n for x in inputs for n in x.names if n in wanted))


def _reads(node: Rel, tables: Collection[str]) -> bool:
    return any(isinstance(leaf, Scan) and leaf.table in tables for leaf in node.walk())

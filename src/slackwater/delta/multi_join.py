"""Joins of many inputs, as higher-order maintenance has them: the change of an input meets the join of all others.

    D(R1 ⋈ … ⋈ Rn)  =  ∪ over i of   D(Ri) ⋈ C1 ⋈ C2 …

where C1, C2 … are the joins of what is left without Ri, one for each connected group. Each of these is a part, and may
be kept; its own change comes by the same rule from parts that are smaller still, down to single inputs.

Inputs take turns: when it is Ri's turn, those before it have changed already and those after it have not. A part that
holds both is needed in between its two versions. So the change of a part says for each row whose turn it came in.
Counter-example to taking every part at its new version: with all inputs empty and each receiving a matching row, the
row of the result would be counted n times; with the old version, never.
"""

from __future__ import annotations

from slackwater.algebra.expressions import call, col, lit
from slackwater.algebra.multi_join import MultiJoin, Places
from slackwater.algebra.nodes import Filter, Item, Project, Rel, pass_through, union
from slackwater.algebra.printer import node_key
from slackwater.delta.environment import Asks, Environment, Purpose

TURN = "sw@turn"
"""The column that says which input's change a row came with."""


def multi_join_delta(node: MultiJoin, env: Environment, asks: Asks) -> Rel | None:
    """The change of a join of many, from changes that are steps and may be read again.

    The changes of the parts that are kept are made first, the smaller ones before.
    """
    for view in node.views:
        if node_key(view) in env.states and node_key(view) in env.wanted:
            asks.change(view)
    changed = _changed(node, asks)
    if node.kept or len(changed) < 2:  # nobody needs the whole, or what comes in one turn, in between
        terms = [_term(node, place, env, asks) for place in changed]
        return union(*terms) if terms else None
    return Project(_turns(node, env, asks), pass_through(node.schema))


def _changed(node: MultiJoin, asks: Asks) -> list[int]:
    return [at for at, child in enumerate(node.inputs) if asks.change(child) is not None]


def _term(node: MultiJoin, place: int, env: Environment, asks: Asks) -> Rel:
    """One input's change with everything else."""
    change = asks.change(node.inputs[place])
    assert change is not None  # noqa: S101 - only inputs that changed have a turn
    arrived = change

    def output(group: Places) -> Rel:
        return arrived if group == (place,) else _at_turn(node, group, place, env, asks)

    small = "left" if env.estimate(node.inputs[place]) <= env.small else ""
    return node.joined(((place,), *node.rest(place)), output, small)


def _at_turn(node: MultiJoin, group: Places, place: int, env: Environment, asks: Asks) -> Rel:
    """A part at one input's turn: what comes before has changed, what comes after has not."""
    part = node.part(group)
    changed = set(_changed(node, asks)) & set(group)
    if all(i > place for i in changed):
        return asks.full(part, "old")
    if all(i < place for i in changed):
        return asks.full(part, "new")
    assert isinstance(part, MultiJoin)  # noqa: S101 - a single input is on one side
    earlier = sum(i < place for i in group)
    sooner = call("<", col(TURN, "int"), lit(earlier, dtype="int"), dtype="boolean")
    arrived = Project(Filter(_turns(part, env, asks), sooner), pass_through(part.schema))
    return union(asks.full(part, "old"), arrived)


def _turns(node: MultiJoin, env: Environment, asks: Asks) -> Rel:
    """The change of a part with the turn of each row, computed once."""
    slot = (node_key(node), "D.turns")
    if slot not in env.memo:
        terms = []
        for place in _changed(node, asks):
            turn = Item(TURN, lit(place, dtype="int"))
            terms.append(Project(_term(node, place, env, asks), (*pass_through(node.schema), turn)))
        env.memo[slot] = env.add_step(f"turns_{slot[0]}", union(*terms), Purpose.SHARE)
    found = env.memo[slot]
    assert found is not None  # noqa: S101 - just made
    return found

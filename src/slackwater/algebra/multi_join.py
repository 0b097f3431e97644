"""An inner join of any number of inputs, and the joins of parts of it that higher-order maintenance keeps.

A tree of two-way joins has one subtree for each join that it makes: of `lineitem ⋈ (orders ⋈ customer)` it can keep
`orders ⋈ customer`, but never `lineitem ⋈ orders`. Here inputs and conditions stand side by side, so that the join of
any part of the inputs can be named: `part` gives it, with the columns that the rest asks of it and no others. A part is
the same however it is arrived at, and so is its key.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from slackwater.algebra.expressions import Expr, conjunction
from slackwater.algebra.nodes import Join, Linearity, Project, Rel, Scan, Schema, pass_through, require

Places = tuple[int, ...]
"""Positions of inputs, ascending."""


@dataclass(frozen=True)
class MultiJoin(Rel):
    """Inner join of all inputs under all conditions, cut down to `columns`.

    Attributes:
        inputs: what is joined; the order says in which order a full output is best made.
        conditions: the terms of the condition, each over columns of two inputs or more.
        columns: the output, in the order of the inputs.
        kept: the parts that are worth a state of their own, the smaller ones first; a single input is a part too.
    """

    inputs: tuple[Rel, ...]
    conditions: tuple[Expr, ...]
    columns: tuple[str, ...]
    kept: tuple[Places, ...] = ()
    linearity: ClassVar[Linearity] = Linearity.BILINEAR

    def __post_init__(self) -> None:
        """There are inputs without a common column; conditions and output read only them."""
        require(len(self.inputs) > 1, "I12", "a join needs two inputs")
        names = [name for child in self.inputs for name in child.names]
        require(len(names) == len(set(names)), "I1", f"the inputs of a join share columns: {names}")
        for condition in self.conditions:
            require(condition.inputs <= set(names), "I2", f"{condition.text} reads what no input has")
            require(len(self._span(condition)) > 1, "I12", f"{condition.text} does not join anything")
        require(bool(self.columns) and set(self.columns) <= set(names), "I2", "a join gives out columns of its inputs")
        for places in self.kept:
            require(bool(places) and set(places) < set(range(len(self.inputs))), "I12", f"no part of a join: {places}")
        Rel.__post_init__(self)

    @property
    def schema(self) -> Schema:
        """The columns that are given out."""
        wanted = set(self.columns)
        return tuple(f for child in self.inputs for f in child.schema if f.name in wanted)

    @property
    def children(self) -> tuple[Rel, ...]:
        """The inputs, and the parts of two inputs and more that are kept."""
        return self._children

    @cached_property
    def _children(self) -> tuple[Rel, ...]:
        return self.inputs + tuple(self.part(places) for places in self.kept if len(places) > 1)

    def with_children(self, children: tuple[Rel, ...]) -> Rel:
        """The same join over other inputs; the parts follow from these."""
        return replace(self, inputs=children[: len(self.inputs)])

    @property
    def rereads(self) -> tuple[tuple[Rel, tuple[Rel, ...]], ...]:
        """Each input is read when another one changes."""
        return tuple((x, tuple(y for y in self.inputs if y is not x)) for x in self.inputs)

    @property
    def views(self) -> tuple[Rel, ...]:
        """The parts that are kept, single inputs as they are."""
        return tuple(self.part(places) for places in self.kept)

    # --- parts -----------------------------------------------------------------------------------

    @cached_property
    def _owner(self) -> dict[str, int]:
        return {name: at for at, child in enumerate(self.inputs) for name in child.names}

    def _span(self, condition: Expr) -> frozenset[int]:
        return frozenset(self._owner[name] for name in condition.inputs)

    @cached_property
    def _spans(self) -> tuple[frozenset[int], ...]:
        return tuple(map(self._span, self.conditions))

    @cached_property
    def _links(self) -> tuple[frozenset[int], ...]:
        """The inputs that an equality ties together; other conditions thin out, but a join by them alone is huge."""
        return tuple(s for c, s in zip(self.conditions, self._spans, strict=True) if c.op in ("=", "<=>"))

    def components(self, places: Iterable[int]) -> tuple[Places, ...]:
        """The places in groups that equalities connect, with no others in between."""
        left = set(places)
        links = [link for link in self._links if link <= left]
        found = []
        while left:
            group = {min(left)}
            while grown := set().union(*(link for link in links if link & group)) - group:
                group |= grown
            left -= group
            found.append(tuple(sorted(group)))
        return tuple(found)

    @cached_property
    def _origin(self) -> tuple[MultiJoin, Places]:
        """The whole that this is a part of, and where in it the inputs are."""
        return self, tuple(range(len(self.inputs)))

    @cached_property
    def _parts(self) -> dict[Places, MultiJoin]:
        return {}

    def part(self, places: Collection[int]) -> Rel:
        """The join of some of the inputs; of one input, that input.

        It is always cut out of the whole, so that it does not matter which part asks for it.
        """
        whole, own = self._origin
        at = tuple(sorted(own[i] for i in places))
        if len(at) == 1:
            return whole.inputs[at[0]]
        if at == own:
            return self
        if at not in whole._parts:
            whole._parts[at] = whole._cut(at)
        return whole._parts[at]

    @cached_property
    def _asked(self) -> frozenset[str]:
        """The output, and a column of each group that gives nothing out: it still says how often."""
        groups = ([self.inputs[i] for i in group] for group in self.components(range(len(self.inputs))))
        given = frozenset(self.columns)
        silent = (group[0].names[0] for group in groups if not any(given & set(x.names) for x in group))
        return given.union(silent)

    def _cut(self, at: Places) -> MultiJoin:
        inside = set(at)
        conditions = tuple(c for c, s in zip(self.conditions, self._spans, strict=True) if s <= inside)
        crossing = [c for c, s in zip(self.conditions, self._spans, strict=True) if s & inside and not s <= inside]
        needed = self._asked.union(*(c.inputs for c in crossing))
        inputs = tuple(self.inputs[i] for i in at)
        made = MultiJoin(inputs, conditions, tuple(n for child in inputs for n in child.names if n in needed))
        made.__dict__["_origin"] = (self, at)
        return made

    def rest(self, place: int) -> tuple[Places, ...]:
        """What the change of one input has to meet: the other inputs, in groups that are connected."""
        return self.components(i for i in range(len(self.inputs)) if i != place)

    # --- two-way joins ---------------------------------------------------------------------------

    def joined(self, groups: Sequence[Places], of: Callable[[Places], Rel], broadcast: str = "") -> Rel:
        """Join the outputs of groups of inputs, first to last, and give out the columns.

        A condition is applied as soon as its columns are there; one within a group has been met there.
        """
        spans = zip(self.conditions, self._spans, strict=True)
        pending = [c for c, span in spans if not any(span <= set(group) for group in groups)]
        rel, *others = (of(group) for group in groups)
        for other in others:
            there = set(rel.names) | set(other.names)
            usable = tuple(c for c in pending if c.inputs <= there)
            pending = [c for c in pending if c not in usable]
            rel = Join(rel, other, conjunction(usable) if usable else None, broadcast)
        require(not pending, "I12", f"columns are missing for {[c.text for c in pending]}")
        return rel if rel.schema == self.schema else Project(rel, pass_through(self.schema))

    def full(self, of: Callable[[Rel], Rel]) -> Rel:
        """The whole output from those of its parts: all inputs but one, and that one.

        The last input goes first, as long as the others stay connected without it. So the order of the inputs is the
        order of the joins, and each part is one join away from a smaller one.
        """
        everything = range(len(self.inputs))
        groups = self.components(everything)
        if len(groups) == 1:
            # A condition over three inputs can fall apart whichever goes.
            last = next((i for i in reversed(everything) if len(self.rest(i)) == 1), everything[-1])
            groups = (*self.rest(last), (last,))
        return self.joined(groups, lambda group: of(self.part(group)))

    def tree(self) -> Rel:
        """The same join as a tree of two-way joins."""
        return self.full(lambda rel: rel.tree() if isinstance(rel, MultiJoin) else rel)

    def tables(self) -> str:
        """What is joined, for people."""
        names = (next((x.table for x in child.walk() if isinstance(x, Scan)), "…") for child in self.inputs)
        return " ⋈ ".join(names)

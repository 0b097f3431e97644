"""What all operators have in common: a schema, inputs, weights, and the checks that refuse an illegal one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from operator import is_
from typing import ClassVar

from slackwater.algebra.expressions import Expr


@dataclass(frozen=True, slots=True)
class Field:
    """A named, typed output column."""

    name: str
    dtype: str


Schema = tuple[Field, ...]


class Linearity(Enum):
    """The algebra an operator declares; planner and rules ask for this, never for a class."""

    LEAF = "leaf"
    LINEAR = "linear"
    BILINEAR = "bilinear"
    MERGEABLE = "mergeable"
    KEYED = "keyed"
    OPAQUE = "opaque"


class IllegalNode(ValueError):
    """A node that breaks an invariant; the message cites its number in invariants.md."""


def require(condition: bool, invariant: str, message: str) -> None:
    """Refuse a node that breaks an invariant."""
    if not condition:
        raise IllegalNode(f"{invariant}: {message}")


def require_known(exprs: tuple[Expr, ...], schema: Schema, what: str) -> None:
    """Refuse expressions that read columns which are not there."""
    known = {f.name for f in schema}
    for expr in exprs:
        missing = expr.inputs - known
        require(not missing, "I2", f"{what} reads {sorted(missing)}, which its input does not have")


@dataclass(frozen=True, slots=True)
class Rel:
    """Base of all operators."""

    linearity: ClassVar[Linearity] = Linearity.OPAQUE
    child_names: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        """Check what every operator must hold: output names are unique."""
        names = [f.name for f in self.schema]
        require(len(names) == len(set(names)), "I1", f"{type(self).__name__} has duplicate column names {names}")

    @property
    def schema(self) -> Schema:
        """The output columns."""
        raise TypeError(f"{type(self).__name__} has no schema")

    @property
    def weighted(self) -> bool:
        """Whether weights other than +1 can occur in the output."""
        return any(child.weighted for child in self.children)

    @property
    def plain_inputs(self) -> tuple[int, ...]:
        """The positions of the inputs that must be plain bags, because the operator is not linear in them."""
        return ()

    @property
    def rereads(self) -> tuple[tuple[Rel, tuple[Rel, ...]], ...]:
        """The inputs that a refresh may read whole, each with the inputs whose change makes it do so."""
        return ()

    @property
    def side_states(self) -> tuple[Rel, ...]:
        """What may be kept for this operator that is not the output of any operator of the plan."""
        return ()

    @property
    def names(self) -> tuple[str, ...]:
        """The output column names."""
        return tuple(f.name for f in self.schema)

    @property
    def children(self) -> tuple[Rel, ...]:
        """The input operators."""
        found: list[Rel] = []
        for name in self.child_names:
            value = getattr(self, name)
            if isinstance(value, tuple):
                found.extend(value)
            elif value is not None:
                found.append(value)
        return tuple(found)

    def with_children(self, children: tuple[Rel, ...]) -> Rel:
        """The same operator over other inputs."""
        rest = list(children)
        changes: dict[str, Rel | tuple[Rel, ...]] = {}
        for name in self.child_names:
            value = getattr(self, name)
            if isinstance(value, tuple):
                changes[name] = tuple(rest[: len(value)])
                del rest[: len(value)]
            elif value is not None:
                changes[name] = rest.pop(0)
        return replace(self, **changes) if changes else self

    def transform_up(self, rule: Callable[[Rel], Rel | None]) -> Rel:
        """Apply a rule to every node, inputs first; a rule returns None where it does not match."""
        children = tuple(child.transform_up(rule) for child in self.children)
        node = self if all(map(is_, children, self.children)) else self.with_children(children)
        changed = rule(node)
        return node if changed is None else changed

    def walk(self) -> Iterator[Rel]:
        """This node and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def keepable(self) -> Iterator[Rel]:
        """Everything in a plan that may have a state: its operators, and what they keep beside their outputs."""
        for node in self.walk():
            yield node
            yield from node.side_states

"""What was decided about one node's state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from slackwater.planning.cardinality import MOST


@dataclass(frozen=True, slots=True)
class Choice:
    """What to do about one node's state, and why.

    Attributes:
        key: the node's key.
        label: the node, for people.
        keep: whether its state is kept.
        reason: why.
        size: bytes, estimated before it is built.
        saves: seconds that it takes off the next refresh.
        build: seconds to build it; of a state that is there, what that was when it was built.
        seconds_with: what the next refresh should take with it, and with all the others as they were decided.
        seconds_without: what it should take without it, and with all the others as they were decided.
    """

    key: str
    label: str
    keep: bool
    reason: str
    size: int = 0
    saves: float = 0.0
    build: float = 0.0
    seconds_with: float = 0.0
    seconds_without: float = 0.0


def choices_from(kept: object) -> tuple[Choice, ...]:
    """The choices that a catalog kept; what is none is left out, and a number that cannot be meant is not known."""
    found = [_choice(values) for values in kept] if isinstance(kept, list | tuple) else []
    return tuple(choice for choice in found if choice is not None)


def _choice(values: object) -> Choice | None:
    if not isinstance(values, Mapping) or not isinstance(values.get("keep"), bool):
        return None
    if not all(isinstance(values.get(name), str) for name in ("key", "label", "reason")):
        return None
    known = {f.name: f.default for f in fields(Choice) if f.name in values}
    return Choice(**{
        name: values[name] for name, default in known.items()
        if not isinstance(default, int | float) or _can_be_meant(name, values[name])
    })  # fmt: skip


def _can_be_meant(name: str, value: object) -> bool:
    """Whether a number is one; only what is saved may be less than nothing."""
    return isinstance(value, int | float) and (-MOST if name == "saves" else 0) <= value <= MOST

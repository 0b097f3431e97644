"""What was decided about one node's state."""

from __future__ import annotations

from dataclasses import dataclass


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

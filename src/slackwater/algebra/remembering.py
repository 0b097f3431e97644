"""What follows from a node alone, worked out once: nodes never change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from slackwater.algebra.relation import Rel

N = TypeVar("N", bound=Rel)
T = TypeVar("T")

MOST = 20_000
"""So many nodes are remembered for one purpose."""


class ByNode(Generic[N, T]):
    """A function of nodes that remembers its answers by the identity of a node.

    A node is held with its answer, so that no other can come to have its identity. To compare nodes by what they are
    would take as long as most answers.
    """

    def __init__(self, answer: Callable[[N], T]) -> None:
        self._answer = answer
        self._known: dict[int, tuple[N, T]] = {}

    def __call__(self, node: N) -> T:
        """The answer for a node."""
        known = self._known.get(id(node))
        if known is not None:
            return known[1]
        answer = self._answer(node)
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[id(node)] = (node, answer)
        return answer

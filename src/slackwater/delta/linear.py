"""Linear operators: the delta of the output is the operator applied to the delta of the input.

    D(op(R)) = op(D(R))        F(op(R)) = op(F(R))

Counter-example to doing the same elsewhere: `SELECT max(x)` of {1, 3} minus {3} is not `max({}) - max({3})`.
"""

from __future__ import annotations

from slackwater.algebra.nodes import Rel, Union


def linear_delta(node: Rel, deltas: tuple[Rel | None, ...]) -> Rel | None:
    """Apply a linear operator to the deltas of its inputs; None stands for an empty delta.

    before: op(A, B)  with deltas dA and none  →  after: op over what changed.
    """
    if isinstance(node, Union):
        present = tuple(d for d in deltas if d is not None)
        return Union(present, node.fields) if present else None
    (delta,) = deltas
    return None if delta is None else node.with_children((delta,))

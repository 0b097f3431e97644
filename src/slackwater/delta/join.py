"""Inner and cross joins: bilinear, so two terms are enough.

    D(L ⋈ R)  =  D(L) ⋈ F_new(R)   ∪   F_old(L) ⋈ D(R)

Precondition: both sides are plain bags or Z-sets over the same versions. Counter-example to the naive rule
`D(L) ⋈ F_old(R) ∪ F_old(L) ⋈ D(R)`: with L = R = {} and both receiving a matching row, the pair would be lost; with
`F_new` on both sides it would be counted twice.
"""

from __future__ import annotations

from slackwater.algebra.nodes import Join, Rel, union


def join_delta(node: Join, left: Rel | None, right: Rel | None, old_left: Rel, new_right: Rel,
               sent_left: str = "", sent_right: str = "") -> Rel | None:  # fmt: skip
    """The two terms, without those whose delta is empty; `sent_…` is the side that each of them sends to every task."""
    terms: list[Rel] = []
    if left is not None:
        terms.append(Join(left, new_right, node.condition, sent_left))
    if right is not None:
        terms.append(Join(old_left, right, node.condition, sent_right))
    return union(*terms) if terms else None

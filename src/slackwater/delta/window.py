"""Window functions: redo the partitions that a changed row belongs to.

    K = partition keys of D(child)
    D = W(F_new(child) ⋉ K)  −  W(F_old(child) ⋉ K)

With the window's own rows S at hand, these are what is taken back:

    D = W(F_new(child) ⋉ K)  −  S ⋉ K

Precondition: PARTITION BY is not empty, and the functions give the same bits for the same rows, or S is at hand. A row
of a partition outside K has the same neighbours in both versions, so its value is the same. What did not change inside
K cancels in the difference. Rows that move between partitions are a delete and an insert, so both their partitions are
in K.

Counter-example to `W(D(child))`, the functions over the changed rows only: {a: 10, 20} numbered by value, and 15
arrives. The new row alone would be number 1; in truth it is number 2, and 20, which nobody touched, becomes number 3.

Without PARTITION BY one row may move all others: the two whole outputs are compared.
"""

from __future__ import annotations

from slackwater.algebra.nodes import Difference, Rel, SemiJoin, plain_bag
from slackwater.algebra.windows import Window

WHOLE = "no PARTITION BY: a changed row may move every other, so this operator is redone as a whole"


def window_delta(
    node: Window, keys: Rel, old_child: Rel | None, new_child: Rel, given_out: Rel | None, *, small: bool
) -> Rel:
    """D by redoing every touched partition; `keys` has rows of the input's change.

    What it was before comes from the rows that were `given_out`, or is redone from the old input.
    """
    pairs = tuple((e, e) for e in node.partition)

    def touched(rel: Rel) -> Rel:
        return SemiJoin(rel, keys, pairs, small=small)

    def over(child: Rel) -> Rel:
        return node.with_children((plain_bag(touched(child)),))

    if given_out is not None:
        return Difference(over(new_child), touched(given_out))
    assert old_child is not None  # noqa: S101 - one of the two is given
    return Difference(over(new_child), over(old_child))

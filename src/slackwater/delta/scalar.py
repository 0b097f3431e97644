"""A filter against a scalar subquery: only the rows whose verdict changes are touched.

    D(σ[p](L, S))  =  σ[p](D(L), S_new)   ∪   { +l : l ∈ F_old(L), p(l, S_new) and not p(l, S_old) }
                                          ∪   { −l : l ∈ F_old(L), p(l, S_old) and not p(l, S_new) }

Precondition: S has exactly one row in each version, and that row can be computed again bit by bit. The last two terms
are one pass over F_old(L), and fall away where nothing below S changed.

Counter-example to filtering the changed rows only, `σ[p](D(L), S_new)`: of {1, 5, 9} those above the average are {9};
when 100 arrives, the average passes 9, and a row that nobody touched must leave. The cross join's own rule would be
right, but it takes back and gives out again every row that passes both times.
"""

from __future__ import annotations

from slackwater.algebra.nodes import Rel, union
from slackwater.algebra.scalars import Flip, ScalarFilter


def scalar_filter_delta(
    node: ScalarFilter, child: Rel | None, old_child: Rel, old_scalar: Rel | None, new_scalar: Rel
) -> Rel | None:
    """D; `child` is the delta of the filtered input, `old_scalar` is None where the scalar cannot have changed."""
    terms: list[Rel] = []
    if child is not None:
        terms.append(ScalarFilter(child, new_scalar, node.predicate))
    if old_scalar is not None:
        terms.append(Flip(old_child, old_scalar, new_scalar, node.predicate))
    return union(*terms) if terms else None

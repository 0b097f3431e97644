"""ORDER BY … LIMIT over an input that is not kept: the first rows are, and some more.

With the kept prefix S, which holds `need` rows or more, or else all rows; b is its last row:

    S' = first `most` rows of (S + D(child) up to b)        where S has `need` rows or more
    S' = first `most` rows of (S + D(child))                where S is all there is

Precondition: S' has `need` rows or more, or S was all there is. Otherwise too many of the first rows went, and those
that follow them were never kept: the program stops and the refresh computes everything anew, `most` rows among it.

Counter-example to sorting in what comes behind b: of {1, 2, 3, 4, 5} the prefix {1, 2, 3} is kept. 2 goes and 9 comes.
{1, 3, 9} are three rows, but the third is 4.
"""

from __future__ import annotations

from slackwater.algebra.first_rows import First, FirstChange
from slackwater.algebra.nodes import Rel, plain_bag
from slackwater.delta.environment import Environment, Purpose


def first_rows(node: First, key: str, change: Rel | None, env: Environment, at: str) -> Rel:
    """The kept rows, at the new version with what came sorted in."""
    state = plain_bag(env.state(key, node.schema))
    if at == "old" or change is None:
        return state
    made = FirstChange(state, change, node)
    return env.add_step(f"state_{key}_new", made, Purpose.REPLACE, key) if key in env.wanted else made

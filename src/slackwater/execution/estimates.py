"""What a refresh had estimated and then found: the bytes of states, and the rows of what its jobs counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from slackwater.algebra.printer import describe, node_key
from slackwater.execution.reports import Estimate

if TYPE_CHECKING:
    from slackwater.execution.state_planning import Facts
    from slackwater.planning.choices import Choice
    from slackwater.view import View

LABEL = 80
"""So much of a label tells an operator from others."""


def estimates(view: View, facts: Callable[[], Facts], choices: Sequence[Choice], sizes: Mapping[str, int],
              observed: Mapping[str, float]) -> tuple[Estimate, ...]:  # fmt: skip
    """What is seen for the first time beside its estimate; call it before the view learns of it.

    Counter-example to telling it of all that is seen: a state is as large as it was last time, so its estimate is
    exact, and a hundred refreshes hide the one guess that was a hundred times too low.

    Args:
        view: the view.
        facts: gives what the refresh was planned by; asked only where something is new.
        choices: the states as they were chosen, with their estimated bytes.
        sizes: the bytes of states as Spark measured them.
        observed: the rows of nodes as the jobs have counted them.
    """
    known = view.known_bytes()
    found = [Estimate(c.label[:LABEL], "bytes", c.size, sizes[c.key])
             for c in choices if c.keep and c.key in sizes and c.key not in known]  # fmt: skip
    fresh = observed.keys() - view.counted.rows.keys()
    if fresh:
        cards = facts().cardinalities({})
        nodes = {node_key(node): node for node in (*view.plan.walk(), *view.plan.keepable())}
        found += [Estimate(describe(nodes[key])[:LABEL], "rows", cards.of(nodes[key]).full, observed[key])
                  for key in sorted(fresh & nodes.keys())]  # fmt: skip
    return tuple(found)

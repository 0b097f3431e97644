"""What was added to the rows that wait in a lookup, cut down when it is merged anyway.

A refresh adds all that comes to the rows that wait, also what found its match in the same moment: to ask of each row
whether it is settled would cost every refresh a query. Most rows come with their match or after it. So what a merge of
segments would copy is looked up once instead, in the keys of the table as of the view's version, and little is left.

What waited from the first is looked up as well once so many matches have come that most of it may have found one, or
once memory is short. Until then every refresh reads all of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession

from slackwater.algebra.lookups import Waiting, unsettled_among
from slackwater.algebra.nodes import Input, Rel, Scan
from slackwater.algebra.printer import node_key
from slackwater.execution.binding import name_frame
from slackwater.execution.leaves import leaves
from slackwater.execution.render import render, table_view
from slackwater.execution.states import State
from slackwater.planning.cardinality import row_bytes

if TYPE_CHECKING:
    from slackwater.view import View

RIPE = 0.5
"""What waited from the first is looked up when so much of it may have found a match."""

NAMED = 1_000_000
"""The keys of so many rows that wait are sent to every task; more are never looked up between refreshes."""


@dataclass(slots=True)
class Arrivals:
    """How large the tables were when the first segment of each state was made, and how large they are."""

    then: dict[str, tuple[int, dict[str, int]]] = field(default_factory=dict)
    now: dict[str, int] = field(default_factory=dict)

    def note(self, states: Mapping[str, State], tables: Mapping[str, int]) -> None:
        """Note the rows of the tables under a view's states, after a refresh."""
        self.now = dict(tables)
        self.then = {key: self._made(key, state.segments[0].rdd_id) for key, state in states.items()}

    def _made(self, key: str, rdd_id: int) -> tuple[int, dict[str, int]]:
        known = self.then.get(key)
        return known if known is not None and known[0] == rdd_id else (rdd_id, self.now)

    def ripe(self, node: Waiting, state: State, size: int) -> bool:
        """Whether most rows of the first segment, of `size` bytes, may have been settled since it was made.

        Each row that came to the table may have settled as many as there are to a key, and no more.
        """
        rdd_id, then = self.then.get(state.key, (None, {}))
        table, first = node.path.scan.table, size / row_bytes(node)
        if state.weighted or rdd_id != state.segments[0].rdd_id or table not in then or first > NAMED:
            return False
        rows = max((self.now.get(x.table, 0) for x in node.rows.walk() if isinstance(x, Scan)), default=0)
        came = self.now.get(table, 0) - then[table]
        return came > 0 and came * max(rows / max(self.now[table], 1), 1.0) >= RIPE * first


def still_waiting(view: View, added: State, spark: SparkSession) -> DataFrame | None:
    """The rows of some segments whose match may still come; None where that cannot be told.

    Deletes among them may be of rows in other segments. What waits behind a row that waits must be known, from a state
    or from the tables.
    """
    node = view.state_node(added.key)
    if not isinstance(node, Waiting) or added.weighted:
        return None
    numbers = itertools.count()

    def known(waiting: Waiting) -> Rel | None:
        state = view.states.get(node_key(waiting))
        if state is None:
            return None
        name = f"sw@behind{next(numbers)}"
        name_frame(spark, name, state.scan(spark), lasts=False)
        return Input(name, waiting.schema, state.weighted)

    found = unsettled_among(node, Input("sw@added", node.schema, False), known, "new")
    if found is None:
        return None
    name_frame(spark, "sw@added", added.scan(spark), lasts=False)
    for name, table in leaves(view.engine, sorted({x.table for x in found.walk() if isinstance(x, Scan)})).items():
        name_frame(spark, table_view(name, "new"), table.snapshot(spark, view.version), lasts=False)
    return spark.sql(render(found))

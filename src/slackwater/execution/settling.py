"""What was added to the rows that wait in a lookup, cut down when it is merged anyway.

A refresh adds all that comes to the rows that wait, also what found its match in the same moment: to ask of each row
whether it is settled would cost every refresh a query. Most rows come with their match or after it. So what a merge of
segments would copy is looked up once instead, in the keys of the table as of the view's version, and little is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession

from slackwater.algebra.lookups import Waiting, unsettled
from slackwater.algebra.nodes import Input, Scan
from slackwater.algebra.printer import node_key
from slackwater.execution.binding import name_frame
from slackwater.execution.leaves import leaves
from slackwater.execution.render import render, table_view
from slackwater.execution.states import State

if TYPE_CHECKING:
    from slackwater.view import View


def still_waiting(view: View, added: State, spark: SparkSession) -> DataFrame | None:
    """The rows of some segments whose match may still come; None where that cannot be told from what is at hand.

    Deletes among them may be of rows in other segments, and what waits behind a row that waits must be known.
    """
    node = view.state_node(added.key)
    if not isinstance(node, Waiting) or added.weighted:
        return None
    path = node.path
    behind = [view.states.get(node_key(lookup.waiting)) for lookup, _ in path.lookups]
    held = []
    for at, (state, (lookup, _)) in enumerate(zip(behind, path.lookups, strict=True)):
        if state is None:
            return None
        name_frame(spark, f"sw@behind{at}", state.scan(spark), lasts=False)
        held.append(Input(f"sw@behind{at}", lookup.waiting.schema, state.weighted))
    (table,) = leaves(view.engine, [path.scan.table]).values()
    name_frame(spark, table_view(path.scan.table, "new"), table.snapshot(spark, view.version), lasts=False)
    name_frame(spark, "sw@added", added.scan(spark), lasts=False)
    keys = Scan(path.scan.table, path.scan.fields, path.scan.positions, "new")
    return spark.sql(render(unsettled(node, Input("sw@added", node.schema, False), keys, held, few=True)))

"""Other names for tables and views that nobody reads.

Rows, states, refreshes, sources and schedules are filed by number, so that a rename touches one row of the catalog.
What goes by name is the plans of views, hence the refusal of what is read, and the record of commits, which says what a
table was called before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slackwater.execution.leaves import refuse_table_while_read, refuse_while_read
from slackwater.storage.records import RENAME_TABLE
from slackwater.table_schemas import check_table_name

if TYPE_CHECKING:
    from slackwater.table import Table
    from slackwater.view import View


def rename_table(table: Table, name: str) -> None:
    """Call a table otherwise, in one commit."""
    check_table_name(name)
    engine = table._engine
    with engine.writing() as lease:
        old = engine.catalog.table_by_id(table.id).name
        refuse_table_while_read(engine, old, "renamed")
        with engine.catalog.commit(RENAME_TABLE, name, {"from": old}, lease) as tx:
            tx.rename_table(table.id, name)
        engine.table_names[table.id] = name


def rename_view(view: View, name: str) -> None:
    """Call a view otherwise, in one commit."""
    engine = view.engine
    with engine.writing() as lease:
        refuse_while_read(view, "renamed")
        with engine.catalog.commit("rename_view", name, {"from": view.name}, lease) as tx:
            tx.rename_view(view.id, name)
        view.name = name

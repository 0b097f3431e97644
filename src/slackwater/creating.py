"""A new table and its first rows, or a new view and its first result, in one commit: both are there or neither."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from slackwater.intake import Rows
from slackwater.storage.records import NewSegment, TableRecord, ViewRecord
from slackwater.storage.uncommitted import remove_uncommitted
from slackwater.table import Table
from slackwater.view import View

if TYPE_CHECKING:
    from slackwater.engine import Engine

NOT_YET = 0
"""The number of what is not in the catalog yet; the files of its first rows lie under it for good."""


def create_table(
    engine: Engine, name: str, fields: StructType, key: Sequence[str], rows: Rows | None
) -> Table:  # fmt: skip
    """Record a table, and its first rows where there are any."""
    engine.catalog.check_free(name, view=False)  # before rows are written for nothing; the commit looks again
    described = json.dumps(fields.jsonValue(), sort_keys=True)
    made = list[NewSegment]()
    if rows is not None:
        made.append(Table(engine, TableRecord(NOT_YET, name, described, tuple(key), False, 0, None)).first_rows(rows))
    kept = [segment for segment in made if segment.row_count]
    try:
        detail = {"inserted": sum(segment.row_count for segment in kept)} if made else {}
        with engine.catalog.commit("create_table", name, detail, engine.lease) as tx:
            record = tx.add_table(name, described, tuple(key))
            tx.add_segments(record.owner, kept)
    except BaseException as error:
        remove_uncommitted(engine.files, engine.catalog, [segment.path for segment in made], error)
        raise
    for segment in made:
        if segment not in kept:
            engine.files.remove(segment.path)
    return Table(engine, record)


def create_view(engine: Engine, record: ViewRecord, *, populate: bool) -> View:
    """Record a view as the record says, and its first result unless told otherwise."""
    engine.catalog.check_free(record.name, view=True)
    if populate:
        view = View(engine, record)
        view.come_with_result(record)
        view.refresh()
        return view
    with engine.catalog.commit("create_view", record.name, {}, engine.lease) as tx:
        view = View(engine, tx.add_view(record.name, record.query_json, record.plan_json, record.settings_json,
                                        record.options_json))  # fmt: skip
    engine.hold_view(view)
    return view

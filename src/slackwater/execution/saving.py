"""States on disk: written when the engine closes, loaded when it opens again at the same version."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql.types import IntegerType, StructField, StructType, _parse_datatype_string

from slackwater.algebra.nodes import Aggregate
from slackwater.algebra.partials import partial_schema
from slackwater.algebra.printer import describe
from slackwater.execution.failures import first_line
from slackwater.execution.render import WEIGHT
from slackwater.execution.states import State, checkpoint
from slackwater.storage.records import NewState, StateRecord
from slackwater.storage.uncommitted import remove_uncommitted

if TYPE_CHECKING:
    from slackwater.view import View

_log = logging.getLogger(__name__)


def save_states(view: View, *, loaded: bool) -> None:
    """Write every state of a view under names that the catalog then knows; states are soft, so a failure is no harm.

    What was saved before and is not there any more is forgotten. Where the states have not been `loaded` since the
    start, that is what was given up unread.
    """
    engine = view.engine
    before = engine.catalog.states(view.id)
    after = list[NewState]()
    try:
        if loaded:
            _write(view, after)
        else:
            gone = _given_up(view)
            after += [_as_new(record) for record in before if record.node not in gone]
        if len(after) < len(before) or (loaded and after):
            engine.catalog.save_states(view.id, after, engine.lease)
    except BaseException as error:
        remove_uncommitted(engine.files, engine.catalog, [state.path for state in after], error)
        raise


def save_all(views: Iterable[View]) -> None:
    """Save the states of all views at the end; where that fails, the next start makes them again."""
    for view in views:
        try:
            view.save_states()
        except Exception as error:
            _log.warning("the states of the view %s are not saved: %s", view.name, first_line(error))


def release_all(views: Iterable[View]) -> None:
    """Give the memory of all states back at the end; where Spark is gone, so is that."""
    for view in views:
        try:
            view.release_states()
        except (Py4JError, OSError) as error:
            _log.info("the states of the view %s are not released: %s", view.name, first_line(error))


def _given_up(view: View) -> frozenset[str]:
    return frozenset(c.key for c in view.choices if not c.keep)


def _as_new(record: StateRecord) -> NewState:
    return NewState(record.node, record.version, record.path, record.row_count, record.byte_count, record.detail)


def _write(view: View, made: list[NewState]) -> None:
    if not view.states:
        return
    engine = view.engine
    spark = engine.sessions.get("batch", view.settings)
    for key, state in view.states.items():
        if state.indexed:
            continue  # the rows are gone, and to read and hash them again costs as much as to make them
        path = engine.files.write(state.scan(spark), f"v{view.id}", "states")
        described = engine.files.segment(1, path)
        detail = {"weighted": state.weighted}
        made.append(NewState(key, view.version, path, described.row_count, described.byte_count, detail))


def load_states(view: View) -> dict[str, State]:
    """The saved states that match the committed version and the plan and were not given up since."""
    engine, gone = view.engine, _given_up(view)
    found: dict[str, State] = {}
    for record in engine.catalog.states(view.id):
        node = view.state_node(record.node) if record.node not in gone else None
        if record.version != view.version or node is None or not engine.files.parquet_files(record.path):
            continue
        fields = partial_schema(node) if isinstance(node, Aggregate) else node.schema
        schema = [StructField(f.name, _parse_datatype_string(f.dtype), True) for f in fields]
        if record.detail.get("weighted"):
            schema.append(StructField(WEIGHT, IntegerType(), True))
        spark = engine.sessions.get("delta", view.settings)
        try:
            frame = spark.read.schema(StructType(schema)).parquet(engine.files.readable(record.path))
            _, segment = checkpoint(frame)
        except PySparkException:
            continue
        held = replace(segment, from_disk=True)
        found[record.node] = State(record.node, describe(node), (held,), isinstance(node, Aggregate))
    return found

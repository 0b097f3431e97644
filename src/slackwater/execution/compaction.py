"""Merging what piles up, so that refresh time, plans and memory do not grow with the number of refreshes.

States and results are merged in tiers: the many small segments first, the large first one only when the small ones have
grown to a good part of it. Table segments are merged up to the version that every view has reached, after a refresh of
a view that reads them and after changes of the table itself.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.algebra.lookups import Waiting
from slackwater.algebra.nodes import Aggregate, Field, Input
from slackwater.algebra.partials import MergePartials, partial_schema
from slackwater.capture.type_names import type_text
from slackwater.execution.equal_states import release_unused, replace_everywhere
from slackwater.execution.failures import first_line
from slackwater.execution.fitting import fit_all, sizes_of
from slackwater.execution.render import WEIGHT, consolidated, render
from slackwater.execution.results import ResultReader
from slackwater.execution.settling import NAMED, still_waiting
from slackwater.execution.small_results import merge_small
from slackwater.execution.states import State, StateSegment, checkpoint, release, stored_bytes
from slackwater.planning.cardinality import row_bytes
from slackwater.storage.faults import crash_point
from slackwater.storage.records import NewSegment, SegmentRecord
from slackwater.storage.relations import BORN, FILE, POSITION, RelationReader
from slackwater.storage.uncommitted import remove_uncommitted

if TYPE_CHECKING:
    from slackwater.engine import Engine
    from slackwater.table import Table
    from slackwater.view import View

_log = logging.getLogger(__name__)

STATE_SEGMENTS = 12
RESULT_SEGMENTS = 8
TABLE_SEGMENTS = 16
GROWN = 0.5
"""The share of the first segment that the others may reach before it is rewritten too."""
LOOSE = 64_000_000
"""What is added to the rows that wait in a lookup may be settled. Where more than so many bytes, and as many as the
first segment has, are left after it was looked up, or it could not be, the next refresh makes the state anew. What
waits is never merged whole: that may hold deletes of what was settled."""
TIGHT = 0.8
"""From this share of the budget on, the rows that wait are looked up early: memory that waits in vain would cost a
state."""
LITTLE = 0.1
"""They are looked up early once this share of the budget has been added to them."""
SINCE = 0.3
"""When so much, against the bytes of an index, has come since it was made, it is made anew."""
KEEP_VERSIONS = 100
"""Superseded segments stay readable for this many versions."""


def piles_up(result: int, tables: Iterable[int]) -> bool:
    """Whether any of these numbers of segments is one to merge: of a result, and of the tables below it."""
    return result > RESULT_SEGMENTS or any(count > TABLE_SEGMENTS for count in tables)


def compact(view: View, *, files: bool = True, room: float = math.inf) -> None:
    """Merge what has piled up under a view: state segments and, unless their files are few, result and table segments.

    `room` are the bytes that the view's states may occupy.

    The refresh has been committed. Whatever fails here, a full disk too, must not be told as if it had not, and it must
    not be tried again, for its changes would be applied a second time: it is the next one that merges.
    """
    try:
        compact_states(view, room)
        if files:
            result, tables = _piled_up(view)
            compact_result(view, result)
            compact_tables(view.engine, tables)
    except Exception as error:
        _log.warning("what has piled up under the view %s is merged another time: %s", view.name, first_line(error))


def _piled_up(view: View) -> tuple[tuple[SegmentRecord, ...], dict[str, tuple[SegmentRecord, ...]]]:
    """The segments of a view's result, and of the tables below it."""
    catalog, owner = view.engine.catalog, f"v{view.id}"
    with catalog.reading():
        names = view.tables
        catalog.look_at(names, (owner,))
        return catalog.segments(owner), {name: catalog.segments(catalog.table(name).owner) for name in names}


def compact_states(view: View, room: float = math.inf) -> None:
    """Merge the segments of each state that has too many, and what takes memory that is needed."""
    spark, made = None, []
    in_the_way = _in_the_way(view, room)
    for state in list(view.states.values()):
        early = state.key in in_the_way
        if len(state.segments) <= STATE_SEGMENTS and not early:
            continue
        if spark is None:
            spark = view.engine.sessions.get("delta", view.settings)
        merged = _merged(view, state, spark, early=early)
        replace_everywhere(view, state, merged)
        release_unused(view.engine, (s for s in state.segments if s.rdd_id not in merged.rdd_ids()))
        made.append(merged)
    if made:
        _measure_again(view.engine, made)


def _in_the_way(view: View, room: float) -> frozenset[str]:
    """The rows that wait to which much has been added, where the budget is nearly used up."""
    if view.state_bytes() <= TIGHT * room:
        return frozenset()
    added = {
        key: state.segments[1:]
        for key, state in view.states.items()
        if len(state.segments) > 2 and isinstance(view.state_node(key), Waiting)
    }
    sizes = stored_bytes(view.engine.spark, [s for some in added.values() for s in some], view.engine.segment_bytes)
    return frozenset(key for key, some in added.items() if sum(sizes.get(s.rdd_id, 0) for s in some) >= LITTLE * room)


def _measure_again(engine: Engine, merged: Sequence[State]) -> None:
    """What was merged may take more bytes than its parts did, and more than there is room for."""
    stored = stored_bytes(engine.spark, [s for state in merged for s in state.segments], engine.segment_bytes)
    for view in engine.loaded_views():
        held = {key: state for key, state in view.states.items() if any(state is one for one in merged)}
        view.remeasured(sizes_of(held, stored))
    fit_all(engine)


def _merged(view: View, state: State, spark: SparkSession, *, early: bool) -> State:
    sizes = stored_bytes(view.engine.spark, state.segments, view.engine.segment_bytes)
    first, *rest = state.segments
    base, grown = sizes.get(first.rdd_id, 0), sum(sizes.get(s.rdd_id, 0) for s in rest)
    node = view.state_node(state.key)
    if isinstance(node, Waiting):
        return _merged_waiting(view, state, node, spark, base, grown, early=early)
    if state.indexed and grown > SINCE * base:
        view.grown.add(state.key)
    whole = grown > GROWN * base and not state.indexed
    merged = replace(state, segments=state.segments if whole else tuple(rest))
    _, segment = checkpoint(
        _consolidated(view, merged, spark, whole=whole).coalesce(_tasks(grown, whole=whole)), eager=True
    )
    return replace(state, segments=(segment,) if whole else (first, segment))


def _merged_waiting(view: View, state: State, node: Waiting, spark: SparkSession, base: int, grown: int, *,
                    early: bool) -> State:  # fmt: skip
    """What waits, with what was added looked up where that can be done; where not, the next refresh makes it anew."""
    first, *rest = state.segments
    most = NAMED * row_bytes(node)
    if base + grown <= most and (early or view.arrivals.ripe(node, state, base)):
        segment = _settled(view, state, spark, spark._sc.defaultParallelism)
        if segment is not None:
            return replace(state, segments=(segment,))
    added, left = replace(state, segments=tuple(rest)), grown
    parts = _tasks(grown, whole=False)
    segment = _settled(view, added, spark, parts) if grown <= most else None
    if segment is not None:
        left = stored_bytes(view.engine.spark, [segment], view.engine.segment_bytes).get(segment.rdd_id, 0)
    if left > LOOSE + base or (early and segment is None):
        view.grown.add(state.key)
    if segment is None:
        _, segment = checkpoint(_consolidated(view, added, spark, whole=False).coalesce(parts), eager=True)
    return replace(state, segments=(first, segment))


def _tasks(grown: int, *, whole: bool) -> int:
    return 1 if grown < 64_000_000 and not whole else 2


def _settled(view: View, state: State, spark: SparkSession, parts: int) -> StateSegment | None:
    """What still waits of some segments; None where that cannot be told, or Spark fails over it."""
    try:
        frame = still_waiting(view, state, spark)
        return checkpoint(frame.coalesce(parts), eager=True)[1] if frame is not None else None
    except (PySparkException, Py4JJavaError) as error:  # the refresh has been committed: what waits in vain may wait on
        _log.warning("the rows that wait in %s are merged as they are: %s", state.label, first_line(error))
        return None


def _consolidated(view: View, state: State, spark: SparkSession, *, whole: bool) -> DataFrame:
    frame = state.scan(spark)
    node = view.state_node(state.key)
    if isinstance(node, Aggregate):
        if not whole:
            return frame
        frame.createOrReplaceTempView("compacted")
        return spark.sql(render(MergePartials(Input("compacted", partial_schema(node)), node)))
    if not state.weighted or node is None:
        return frame
    frame.createOrReplaceTempView("compacted")
    return spark.sql(consolidated("SELECT * FROM compacted", node.schema, plain=whole))


def compact_result(view: View, found: Sequence[SegmentRecord]) -> None:
    """Fold a result's segments into one when they are many, up to the version that every view has read."""
    if len(found) <= RESULT_SEGMENTS:
        return
    engine, owner = view.engine, f"v{view.id}"
    settled = view.settled()
    segments = engine.catalog.segments(owner, at=settled)
    if len(segments) <= RESULT_SEGMENTS:
        return
    small = merge_small(engine.files, segments)
    if small is not None:
        path = engine.files.write_arrow(small, owner)
        _commit_merge(engine, owner, segments, [engine.files.segment(1, path)], view.name)
        return
    spark = engine.sessions.get("batch", view.settings)
    first = min(segments, key=lambda s: s.first_version)
    rest = [s for s in segments if s.first_version > first.last_version]
    if sum(s.row_count for s in rest) > GROWN * first.row_count or len(rest) < 2:
        frame = view.result_frame(spark, settled).toDF(*(f"c{i}" for i in range(len(view.columns))))
        made = [engine.files.segment(1, engine.files.write(frame.coalesce(_files_for(segments)), owner))]
        _commit_merge(engine, owner, segments, made, view.name)
    else:
        _commit_merge(engine, owner, rest, _net_changes(view, rest, spark, owner), view.name)


def _net_changes(view: View, segments: Sequence[SegmentRecord], spark: SparkSession, owner: str) -> list[NewSegment]:
    reader = ResultReader(spark, view.engine.files, view.schema)
    signed = reader.plus(segments).withColumn(WEIGHT, F.lit(1)).unionAll(
        reader.minus(segments).withColumn(WEIGHT, F.lit(-1))
    )  # fmt: skip
    fields = tuple(Field(f"c{i}", type_text(f.dataType)) for i, f in enumerate(view.schema))
    cut, held = checkpoint(
        spark.sql(consolidated("SELECT * FROM {changes}", fields, plain=False), changes=signed), eager=True
    )
    try:
        columns = [f.name for f in fields]
        made = [
            view.engine.files.segment(
                sign, view.engine.files.write(cut.where(F.col(WEIGHT) == sign).select(*columns).coalesce(1), owner)
            )
            for sign in (1, -1)
        ]
    finally:
        release([held])
    return made


def compact_tables(engine: Engine, found: Mapping[str, Sequence[SegmentRecord]]) -> None:
    """Merge the small segments of tables that have many, up to the version that every view has reached."""
    for name, segments in found.items():
        if len(segments) <= TABLE_SEGMENTS:
            continue
        table = engine.table(name)
        owner = f"t{table.id}"
        reached = min(
            (v.version for v in engine.views() if name in v.tables and v.version), default=engine.catalog.version()
        )
        if any(s.sign < 0 and s.last_version > reached for s in segments):
            # These deletes name rows by their place in the files: merging the files would bring the rows back.
            continue
        ready = sorted((s for s in segments if s.last_version <= reached), key=lambda s: (s.first_version, -s.sign))
        if len(ready) <= TABLE_SEGMENTS // 2:
            continue
        first = ready[0]
        rest = [s for s in ready if s.first_version > first.last_version]
        whole = sum(s.row_count for s in rest) > GROWN * first.row_count or len(rest) < 2
        chosen = ready if whole else rest
        made = _merged_table(engine, table.reader(engine.spark), chosen, owner)
        _commit_merge(engine, owner, chosen, made, name)


def compact_table(table: Table) -> None:
    """Merge what has piled up under a table that was just changed, and that perhaps no view reads.

    The change has been committed. Whatever fails here, a full disk too, must not be told as if it had not.
    """
    try:
        compact_tables(table._engine, {table.name: table.segments()})
    except Exception as error:
        _log.warning("what has piled up in the table %s is merged another time: %s", table.name, first_line(error))


def _merged_table(
    engine: Engine, reader: RelationReader, segments: Sequence[SegmentRecord], owner: str
) -> list[NewSegment]:
    """One plus segment of the rows that live on, and one minus segment of deletes that reach further back."""
    made = [
        engine.files.segment(1, engine.files.write(reader.snapshot(segments).coalesce(_files_for(segments)), owner))
    ]
    if any(s.sign < 0 for s in segments):
        oldest = min(s.first_version for s in segments)
        earlier = reader.minus(segments).where(F.col(BORN) < oldest)
        columns = [*(f"c{i}" for i in range(len(reader.schema))), FILE, POSITION, BORN]
        made.append(engine.files.segment(-1, engine.files.write(earlier.select(*columns).coalesce(1), owner)))
    return made


def _commit_merge(
    engine: Engine, owner: str, old: Sequence[SegmentRecord], new: list[NewSegment], subject: str
) -> None:
    kept = [s for s in new if s.row_count]
    try:
        crash_point("compact.before_commit")
        with engine.catalog.commit("compact", subject, {"segments": len(old)}, engine.lease) as tx:
            tx.merge_segments(owner, [s.id for s in old], kept)
            version = tx.version
    except BaseException as error:
        remove_uncommitted(engine.files, engine.catalog, [s.path for s in new], error)
        raise
    crash_point("compact.after_commit")
    for segment in new:
        if not segment.row_count:
            engine.files.remove(segment.path)
    vacuum(engine, owner, version - KEEP_VERSIONS)


def vacuum(engine: Engine, owner: str, before: int) -> None:
    """Forget superseded segments that are older than a version, and remove their files."""
    old = engine.catalog.superseded(owner, before)
    if old:
        crash_point("forget.before_commit")
        engine.catalog.forget_segments([s.id for s in old], engine.lease)
        crash_point("forget.after_commit")
        named = engine.catalog.all_paths()
        for segment in old:
            if segment.path not in named:
                engine.files.remove(segment.path)


def _files_for(segments: Sequence[SegmentRecord]) -> int:
    return max(1, min(8, sum(s.byte_count for s in segments) // 64_000_000 + 1))

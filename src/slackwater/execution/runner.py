"""Runs a program on Spark: binds its inputs to temporary views, its steps to checkpoints, and takes its output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType, _parse_datatype_string

from slackwater.algebra.nodes import Aggregate, Difference, Input, Opaque, Rel, Scan, Schema, TopK
from slackwater.algebra.partials import partial_schema
from slackwater.algebra.printer import node_key
from slackwater.delta.environment import Purpose, Step
from slackwater.delta.rules import RESULT
from slackwater.execution.observing import join_rows, output_rows
from slackwater.execution.prepared import Source, files_source, query, shape_of
from slackwater.execution.program import INITIAL, Program
from slackwater.execution.render import WEIGHT, render, table_view
from slackwater.execution.small_results import compare_small
from slackwater.execution.states import State, StateSegment, as_index, checkpoint, cut_off, held, release
from slackwater.execution.threads import submitter, wait_for
from slackwater.storage.faults import crash_point
from slackwater.storage.files import WarehouseFiles
from slackwater.storage.records import NewSegment

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

_ARROW_SAFE = ("bigint", "int", "smallint", "tinyint", "double", "float", "string", "boolean", "date", "timestamp",
               "timestamp_ntz", "binary")  # fmt: skip


@dataclass(slots=True)
class Outcome:
    """What a program made, before the commit."""

    segments: list[NewSegment] = field(default_factory=list)
    states: dict[str, State] = field(default_factory=dict)
    temporary: list[StateSegment] = field(default_factory=list)
    observed: dict[str, float] = field(default_factory=dict)
    result: pa.Table | None = None
    """The whole new result, where the driver has seen it."""
    sending: list[Future[Any]] = field(default_factory=list)
    """Rows that are still on their way to Spark, for the next refresh; nothing may run on when this one returns."""

    def cut_off(self) -> None:
        """Let the rows that stay forget how they came about; what is temporary is gone before long."""
        made = {s.rdd_id for s in self.temporary if not s.held}
        for segment in {s.rdd_id: s for state in self.states.values() for s in state.segments}.values():
            if segment.rdd_id in made:
                cut_off(segment)

    def discard(self, files: WarehouseFiles) -> None:
        """Forget everything, as after a failure before the commit."""
        self.release()
        for segment in self.segments:
            files.remove(segment.path)

    def release(self) -> None:
        """Give back the memory of what was made; rows of older states stay."""
        wait(self.sending)
        release(s for s in self.temporary)


@dataclass(frozen=True, slots=True)
class Bindings:
    """How a program's names turn into DataFrames."""

    table: Callable[[str, str], DataFrame]
    old_result: Callable[[], DataFrame]
    old_rows: Callable[[], pa.Table | None]
    states: Mapping[str, State]
    sizes: Mapping[str, int]
    labels: Mapping[str, str]
    aggregates: frozenset[str]
    indexes: Mapping[str, Schema]
    again: bool = False
    """Whether the same queries are likely to come again, over other rows."""


def run(program: Program, spark: SparkSession, bindings: Bindings, files: WarehouseFiles, owner: str,
        schema: StructType) -> Outcome:  # fmt: skip
    """Run a program; files are written and states filled when it returns, but nothing is visible yet."""
    outcome = Outcome()
    try:
        whole = program.root if _compares(program.root) and _all_arrow_safe(schema) else None
        old = bindings.old_rows() if whole is not None else None
        if whole is not None and old is not None:
            program = replace(program, root=whole.children[0])  # the new result
        names = Names(spark, _sources(program, spark, bindings), again=bindings.again)
        executed: dict[str, DataFrame] = {}
        pending = _bind_steps(program, names, bindings, outcome, executed)
        if program.root is not None:
            frame = names.query(program.root)
            if program.collected is not None:
                _take_with_state(frame, program, spark, bindings, outcome, files, owner)
            elif whole is None or old is None:
                outcome.segments = _take(frame, program, files, owner, schema)
            else:
                compared = _take_compared(frame, old, files, owner)
                if compared is None:  # too many rows for the driver, after all
                    names.sources[RESULT] = files_source(bindings.old_result())
                    compared = _take(names.query(whole), program, files, owner, schema)
                outcome.segments = compared
        for cut in pending:
            cut.write.format("noop").mode("overwrite").save()
        outcome.observed = _observed(program, executed)
        outcome.cut_off()
        crash_point("state.after_build")
    except BaseException:
        outcome.discard(files)
        raise
    return outcome


def _compares(root: Rel | None) -> bool:
    """Whether the root does nothing but compare the new result with the last one."""
    return isinstance(root, Difference) and isinstance(root.old, Input) and root.old.name == RESULT


@dataclass(frozen=True, slots=True)
class Names:
    """What the names in a program stand for: tables, states, the last result, and the steps made so far."""

    spark: SparkSession
    sources: dict[str, Source]
    again: bool

    def query(self, rel: Rel) -> DataFrame:
        """A relation of the program as a DataFrame."""
        text = render(rel)
        return query(self.spark, text, {name: self.sources[name] for name in _names_read(rel)}, again=self.again)


def _sources(program: Program, spark: SparkSession, bindings: Bindings) -> dict[str, Source]:
    """What the program reads."""

    def table(name: str, at: str) -> tuple[str, Source]:
        frame = bindings.table(name, at)
        return table_view(name, at), files_source(frame) if at else Source(lambda: frame)

    def kept(name: str) -> tuple[str, Source]:
        if name == RESULT:
            return name, files_source(bindings.old_result())
        part, key = name.split("_", 1)
        state = bindings.states[key]
        hashed = state.segments[0].hashed if part == "index" else None
        state = {"state": state, "index": state.index, "since": state.since}[part]
        rdds = state.rdds(spark, bindings.sizes.get(key) if part == "state" else None)
        return name, Source(lambda: state.frame(spark, rdds), tuple(rdds), state.shape(), hashed=hashed)

    submit = submitter(spark)
    made = [submit(table, *scan) for scan in sorted(program.scans)]
    made += [submit(kept, name) for name in sorted(program.inputs)]
    wait_for(made)
    return dict(future.result() for future in made)


def _observed(program: Program, executed: Mapping[str, DataFrame]) -> dict[str, float]:
    """Rows of the full outputs that the program made, by node."""
    found: dict[str, float] = {}
    for step in program.steps:
        if step.purpose is not Purpose.BUILD:
            continue
        frame = executed[step.name]
        found |= join_rows(frame, step.rel, program.origins)
        rows = output_rows(frame)
        if rows is not None:
            found[step.key] = rows
    return found


def _bind_steps(program: Program, names: Names, bindings: Bindings, outcome: Outcome,
                executed: dict[str, DataFrame]) -> list[DataFrame]:  # fmt: skip
    """Checkpoint each step, lazily: the job that reads it fills it. Gives the steps that nothing reads.

    A step waits for those it reads, and only for them: Spark plans one while the broadcasts of another run.
    """
    if program.steps:
        crash_point("state.before_build")
    made: dict[str, Future[tuple[DataFrame, StateSegment]]] = {}

    def bind(step: Step) -> tuple[DataFrame, StateSegment]:
        for name in _names_read(step.rel):
            if name in made:
                made[name].result()
        frame = executed[step.name] = names.query(step.rel)
        cut, segment = checkpoint(frame)
        outcome.temporary.append(segment)
        names.sources[step.name] = Source(lambda: cut, (segment.rdd,), shape_of(cut, frame))
        return cut, segment

    # In the order of the program and first in, first out: whatever a waiting step reads has been started before it.
    submit = submitter(names.spark)
    for step in program.steps:
        made[step.name] = submit(bind, step)
    wait_for(list(made.values()))
    read = {name for s in program.steps for name in _names_read(s.rel)}
    read |= _names_read(program.root) if program.root is not None else set[str]()
    for step in program.steps:
        _, segment = made[step.name].result()
        if step.purpose is Purpose.APPEND:
            outcome.states[step.key] = bindings.states[step.key].append(segment)
        elif step.purpose in (Purpose.BUILD, Purpose.REPLACE):
            label = bindings.labels.get(step.key, "")
            if step.key in bindings.indexes:
                segment = as_index(names.spark, segment, bindings.indexes[step.key])
            outcome.states[step.key] = State(step.key, label, (segment,), step.key in bindings.aggregates)
    return [made[s.name].result()[0] for s in program.steps if s.name not in read]


def _names_read(rel: Rel) -> set[str]:
    """The names in a relation's SQL."""
    found = {x.name for x in rel.walk() if isinstance(x, Input)}
    found |= {table_view(x.table, x.at) for x in rel.walk() if isinstance(x, Scan)}
    return found | {table_view(t, "") for x in rel.walk() if isinstance(x, Opaque) for t in x.tables}


def _take(
    frame: DataFrame, program: Program, files: WarehouseFiles, owner: str, schema: StructType
) -> list[NewSegment]:
    """Write the result's rows (initial) or changes; small ones come through the driver and need no further job."""
    signed = WEIGHT in frame.columns
    physical = [f"c{i}" for i in range(len(schema))]
    names = [*physical, WEIGHT] if signed else physical
    if _fits_driver(program) and _all_arrow_safe(schema):
        try:
            return _take_small(frame.toArrow().rename_columns(names), signed, files, owner)
        except (PySparkException, Py4JJavaError) as error:
            if "maxResultSize" not in str(error):
                raise
    return _take_large(frame.toDF(*names), signed, physical, files, owner)


def _take_compared(frame: DataFrame, old: pa.Table, files: WarehouseFiles, owner: str) -> list[NewSegment] | None:
    """Compare the new result with the last one on the driver; None where the rows are too many or not comparable."""
    try:
        changed = compare_small(frame.toArrow(), old)
    except (PySparkException, Py4JJavaError) as error:
        if "maxResultSize" not in str(error):
            raise
        return None
    return None if changed is None else _take_small(changed, True, files, owner)


def _take_with_state(
    frame: DataFrame, program: Program, spark: SparkSession, bindings: Bindings, outcome: Outcome,
    files: WarehouseFiles, owner: str,
) -> None:  # fmt: skip
    """Write the result's changes, and hold the partial rows that come with them."""
    crash_point("state.before_build")
    agg = program.collected
    assert agg is not None  # noqa: S101 - by the caller
    fields = partial_schema(agg)
    signs = [] if program.whole else [WEIGHT]
    names = [f"p{i}" for i in range(len(fields))]
    physical = [f"c{i}" for i in range(len(frame.columns) - len(names) - len(signs))]
    rows = frame.toArrow().rename_columns([*physical, *names, *signs])
    shown = rows if program.whole else rows.filter(pc.greater_equal(rows.column(WEIGHT), 0))
    partials = shown.select(names).rename_columns([f.name for f in fields])
    schema = StructType([StructField(f.name, _type(f.dtype), True) for f in fields])
    segment, sending = held(spark, partials, schema)
    outcome.sending.append(sending)
    changed = _changed(rows.drop_columns(names), program, bindings)
    outcome.segments = _take_small(changed, True, files, owner)
    key = node_key(agg)
    outcome.temporary.append(segment)
    outcome.states[key] = State(key, bindings.labels.get(key, ""), (segment,), True)
    outcome.result = shown.select(physical) if program.whole else None


@cache
def _type(name: str) -> DataType:
    """A type by its name; Spark is asked once."""
    return _parse_datatype_string(name)


def _changed(rows: pa.Table, program: Program, bindings: Bindings) -> pa.Table:
    """The result's changes: the rows whose weight is not 0, or the whole result compared with the last one."""
    if not program.whole:
        return rows.filter(pc.not_equal(rows.column(WEIGHT), 0))
    old = bindings.old_rows()
    assert old is not None  # noqa: S101 - the program was compiled with the last result at hand
    changed = compare_small(rows, old)
    if changed is not None:
        return changed
    signed = ((rows, 1), (old.rename_columns(rows.column_names), -1))  # what cannot be compared is replaced
    return pa.concat_tables(
        [part.append_column(WEIGHT, pa.array([sign] * part.num_rows, pa.int32())) for part, sign in signed],
        promote_options="permissive",
    )


def _fits_driver(program: Program) -> bool:
    """Changes are small by nature; a full result only where the plan's top says so."""
    if program.mode != INITIAL:
        return True
    node = program.root
    while node is not None and len(node.children) == 1:
        if isinstance(node, TopK) and node.limit <= 10_000:
            return True
        agg = node if isinstance(node, Aggregate) else getattr(node, "agg", None)
        if isinstance(agg, Aggregate):
            return not agg.groups
        node = node.children[0]
    return False


def _all_arrow_safe(schema: StructType) -> bool:
    return all(_arrow_safe(f.dataType) for f in schema)


def _arrow_safe(dtype: DataType) -> bool:
    name = dtype.simpleString()
    return name in _ARROW_SAFE or name.startswith("decimal")


def _take_small(table: pa.Table, signed: bool, files: WarehouseFiles, owner: str) -> list[NewSegment]:
    if not signed:
        return [files.segment(1, files.write_arrow(table, owner), table.num_rows)] if table.num_rows else []
    weights = table.column(WEIGHT)
    made = []
    for sign in (1, -1):
        part = table.filter(pc.equal(weights, sign)).drop_columns([WEIGHT])
        if part.num_rows:
            made.append(files.segment(sign, files.write_arrow(part, owner), part.num_rows))
    return made


def _take_large(
    frame: DataFrame, signed: bool, physical: list[str], files: WarehouseFiles, owner: str
) -> list[NewSegment]:
    if not signed:
        return _with_rows([files.segment(1, files.write(frame, owner))], files)
    cut, segment = checkpoint(frame)
    try:
        made = []
        for sign in (1, -1):
            rows = cut.where(F.col(WEIGHT) == sign).select(*physical)
            made.append(files.segment(sign, files.write(rows, owner)))
        return _with_rows(made, files)
    finally:
        release([segment])


def _with_rows(made: list[NewSegment], files: WarehouseFiles) -> list[NewSegment]:
    """The segments that have rows; the files of the others go."""
    for segment in made:
        if not segment.row_count:
            files.remove(segment.path)
    return [s for s in made if s.row_count]

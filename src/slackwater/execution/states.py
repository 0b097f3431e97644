"""States: intermediate results kept between refreshes, in Spark's memory, behind one small interface.

A state is a list of immutable segments, each a checkpointed RDD of rows: a shallow leaf with no history. The few rows
of a small aggregate are held by the driver instead. A refresh makes a *new* state from an old one (append, replace);
the old one stays valid until the commit, so a failed refresh loses nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit
from pyspark.sql.types import StructType

from slackwater.algebra.expressions import quote
from slackwater.algebra.nodes import Aggregate, Rel, Scan, Schema
from slackwater.algebra.printer import node_key
from slackwater.execution.hashed import Hashed
from slackwater.execution.java_classes import java_classes
from slackwater.execution.prepared import output_of
from slackwater.execution.render import WEIGHT
from slackwater.execution.threads import submitter
from slackwater.planning.cardinality import row_bytes

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject


ASKED_SINGLY = 100
"""So many partitions are asked for their bytes one by one; for more, one answer for everything stored is faster."""

FEW = 1_000
"""So many groups of an aggregate are a matter for the driver."""

_STATUS = re.compile(r"BlockStatus\(StorageLevel\([^()]*\),(\d+),(\d+)\)")
"""What Spark says of stored rows: their bytes in memory and on disk."""

_HELD = count(-1, -1)
"""Numbers for rows that the driver holds: Spark, which stores none of them, counts from 0 upwards."""

MEMORY_STANDS = 10.0
"""For so many seconds it is not asked again how much memory Spark has."""

UNIONS = 4
"""So many unions of its segments a state can need: of all, or of those since an index was made, with weights or not."""

TASK_BYTES = 16_000_000
"""A task is worth its price for so many bytes of a state."""


@dataclass(frozen=True, slots=True)
class StateSegment:
    """Checkpointed rows."""

    leaf: Callable[[], tuple[JavaObject, JavaObject]]
    """Gives the rows and their schema; waits for them where they are still on their way to Spark."""
    weighted: bool
    rdd_id: int
    """Spark's number for it, under which its memory is accounted; below 0 for rows that the driver holds."""
    from_disk: bool = False
    """Whether the rows come from a file of the view's own, from which the first job that reads them loads them."""
    held: int = 0
    """Bytes of rows that the driver sends along with the jobs that read them; Spark's storage knows nothing of them."""
    rows: int | None = None
    """How many rows there are, where the driver has seen them."""
    shape: str = ""
    """The schema as Spark writes it."""
    hashed: Hashed | None = None
    """The rows by key, where they are those of an index; once it is there, the rows themselves are released."""

    @property
    def rdd(self) -> JavaObject:
        """The rows."""
        return self.leaf()[0]

    @property
    def schema(self) -> JavaObject:
        """Their schema."""
        return self.leaf()[1]

    @property
    def elsewhere(self) -> int:
        """Bytes that the storage of rows knows nothing of: what the driver holds, or an index."""
        return self.held or (self.hashed.bytes if self.hashed is not None else 0)


@dataclass(frozen=True, slots=True)
class State:
    """An intermediate result at one version.

    Attributes:
        key: the plan node that it is the output of.
        label: the node, for people.
        segments: where the rows are.
        partial: the rows are partial aggregates.
        unions: the rows of several segments together, by the first: a refresh adds one segment to those there were.
    """

    key: str
    label: str
    segments: tuple[StateSegment, ...]
    partial: bool
    unions: dict[int, tuple[tuple[int, ...], JavaObject]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def weighted(self) -> bool:
        """Whether some rows are deletes."""
        return any(s.weighted for s in self.segments)

    @property
    def indexed(self) -> bool:
        """Whether the first segment is an index, and the others are what came since."""
        return self.segments[0].hashed is not None

    @property
    def index(self) -> State:
        """The rows of the index alone, under the names that it has in queries."""
        return replace(self, segments=self.segments[:1])

    @property
    def since(self) -> State:
        """What came since the index was made."""
        return replace(self, segments=self.segments[1:])

    def scan(self, spark: SparkSession, size: int | None = None) -> DataFrame:
        """All rows, as a leaf without history; with a weight column if any segment has weights.

        Args:
            spark: the session to read them in.
            size: bytes, where they are known: what is small is read by few tasks.
        """
        return self.frame(spark, self.rdds(spark, size))

    def _groups(self) -> list[list[StateSegment]]:
        """The segments without weights, and those with."""
        found = ([s for s in self.segments if s.weighted is weighted] for weighted in (False, True))
        return [group for group in found if group]

    def shape(self) -> str:
        """What a plan over the rows depends on beside them."""
        return " and ".join(group[0].shape for group in self._groups())

    def rdds(self, spark: SparkSession, size: int | None = None) -> list[JavaObject]:
        """The rows without weights, and those with."""
        return [_few_parts(spark, self._together(group), size) for group in self._groups()]

    def _together(self, segments: list[StateSegment]) -> JavaObject:
        """The rows of some segments; from those that were put together before, where these are the first of them."""
        ids = tuple(s.rdd_id for s in segments)
        known, rdd = self.unions.get(ids[0], ((), None))
        if rdd is None or known != ids[: len(known)]:
            known, rdd = ids[:1], segments[0].rdd
        for segment in segments[len(known) :]:
            rdd = rdd.union(segment.rdd)
        if len(ids) > 1:
            if len(self.unions) >= UNIONS and ids[0] not in self.unions:
                self.unions.clear()  # of segments that have been merged since
            self.unions[ids[0]] = ids, rdd
        return rdd

    def frame(self, spark: SparkSession, rdds: list[JavaObject]) -> DataFrame:
        """The rows as a DataFrame."""
        frames = [_leaf(spark, group[0], rdd) for group, rdd in zip(self._groups(), rdds, strict=True)]
        if len(frames) == 2:
            # By the names of the second: rows without columns have a column for show where they have no weight.
            return frames[0].withColumn(WEIGHT, lit(1)).select(*map(quote, frames[1].columns)).unionAll(frames[1])
        return frames[0]

    def append(self, segment: StateSegment) -> State:
        """The state with more rows."""
        return replace(self, segments=(*self.segments, segment))

    def few(self, size: int, width: int) -> bool:
        """Whether these are few rows by all that is known: their bytes, and those that the driver has seen."""
        return max(sum(s.rows or 0 for s in self.segments), size // width) <= FEW

    def rdd_ids(self) -> frozenset[int]:
        """Spark's numbers for the rows."""
        return frozenset(s.rdd_id for s in self.segments)


def checkpoint(frame: DataFrame, *, eager: bool = False) -> tuple[DataFrame, StateSegment]:
    """Let the rows of a DataFrame be computed once, by the first job that passes by, and stay.

    Unless it is eager, they still know how they came about, until `cut_off`. Spark itself would forget that at the end
    of the first job, and can be caught in a deadlock if another job that reads the same rows starts in that moment: the
    scheduler holds the lock of the rows and wants that of all checkpoints, and the job that ended the other way round.
    """
    cut = frame.localCheckpoint(eager=eager)
    leaf, known = cut._jdf.queryExecution().analyzed(), output_of(frame)
    rows = leaf.rdd(), leaf.schema() if known is None or known.schema is None else known.schema
    if not eager:
        getattr(rows[0], "checkpointData_$eq")(java_classes(frame.sparkSession).none)
    shape = known.json if known is not None and known.json else rows[1].json()
    if known is not None:
        known.schema, known.json = rows[1], shape
    return cut, StateSegment(lambda: rows, _has_weights(shape), int(rows[0].id()), shape=shape)


def cut_off(segment: StateSegment) -> None:
    """Let rows that are there forget how they came about; no job that reads them may be under way."""
    rdd: Any = segment.rdd
    rdd.localCheckpoint()
    rdd.checkpointData().get().checkpoint()


def as_index(spark: SparkSession, segment: StateSegment, fields: Schema) -> StateSegment:
    """The segment as the rows of an index, under the names that it has in queries."""
    renamed = json.loads(segment.shape)
    for known, named in zip(renamed["fields"], fields, strict=True):
        known["name"] = named.name
    shape, jvm = json.dumps(renamed), spark._jvm
    types: Any = jvm.org.apache.spark.sql.types if jvm is not None else None
    rows = segment.rdd, types.DataType.fromJson(shape)
    return replace(segment, leaf=lambda: rows, shape=shape, hashed=Hashed())


def _has_weights(schema_json: str) -> bool:
    return any(field["name"] == WEIGHT for field in json.loads(schema_json)["fields"])


def held(spark: SparkSession, rows: pa.Table, schema: StructType) -> tuple[StateSegment, Future[Any]]:
    """A few rows that the driver has, as a segment; they go to Spark beside other work, which is to be waited for."""

    def send() -> tuple[JavaObject, JavaObject]:
        frame = spark.createDataFrame(rows, schema=schema)
        return frame._jdf.queryExecution().toRdd(), frame._jdf.schema()

    sent: Future[tuple[JavaObject, JavaObject]] = submitter(spark)(send)
    segment = StateSegment(sent.result, False, next(_HELD), held=max(rows.nbytes, 1), rows=rows.num_rows,
                           shape=schema.json())  # fmt: skip
    return segment, sent


def _few_parts(spark: SparkSession, rdd: JavaObject, size: int | None) -> JavaObject:
    most = 2 * _parallelism(spark._sc, int(monotonic() / MEMORY_STANDS))
    if size is not None:
        most = min(most, size // TASK_BYTES + 1)
    if rdd.getNumPartitions() > most:
        rdd = rdd.coalesce(most, False, java_classes(spark).none, None)
    return rdd


@lru_cache(maxsize=1)
def _parallelism(context: SparkContext, moment: int) -> int:
    return int(context.defaultParallelism)


def _leaf(spark: SparkSession, segment: StateSegment, rdd: JavaObject) -> DataFrame:
    return DataFrame(spark._jsparkSession.internalCreateDataFrame(rdd, segment.schema, False), spark)


def stored_bytes(spark: SparkSession, segments: Iterable[StateSegment], known: dict[int, int]) -> dict[int, int]:
    """What Spark's storage holds for the rows of segments, in memory and on disk.

    Rows never change once they are there, so each segment is asked for once and then `known`. To ask Spark for all that
    it stores takes longer with every view there is.
    """
    found = {s.rdd_id: s for s in segments}
    elsewhere = {i: s.elsewhere for i, s in found.items() if s.elsewhere}
    new = [(s, int(s.rdd.getNumPartitions())) for i, s in found.items() if i not in known and i not in elsewhere]
    if sum(parts for _, parts in new) > ASKED_SINGLY or (new and _env_is_closed(spark.version)):
        return _all_stored_bytes(spark, frozenset(found)) | elsewhere
    sizes = {i: known[i] for i in found if i in known} | elsewhere
    master = _master(spark._sc) if new else None
    name = java_classes(spark).rdd_block
    for segment, parts in new:
        blocks = [_block_bytes(master, name(segment.rdd_id, part)) for part in range(parts)]
        sizes[segment.rdd_id] = sum(size for size in blocks if size is not None)
        if None not in blocks:  # what nobody has read so far is not there yet
            known[segment.rdd_id] = sizes[segment.rdd_id]
    return sizes


@lru_cache(maxsize=1)
def _master(context: SparkContext) -> Any:
    """Who knows where rows are stored; asked for once."""
    env: Any = context._jsc.sc().env()
    return env.blockManager().master()


def _env_is_closed(version: str) -> bool:
    """From 4.3 on, Spark's environment names classes that PySpark does not bring: nothing can be called on it."""
    major, minor = version.split(".")[:2]
    return (int(major), int(minor)) >= (4, 3)


def _block_bytes(master: Any, block: Any) -> int | None:
    """The bytes of one partition wherever it is held; None where it is not."""
    held = master.getBlockStatus(block, False)
    told = _STATUS.findall(held.toString())  # one question, each of which takes a tenth of a millisecond
    if len(told) != int(held.size()):  # a Spark that tells it in other words
        found = held.valuesIterator()
        told = []
        while found.hasNext():
            status = found.next()
            told.append((status.memSize(), status.diskSize()))
    return sum(int(memory) + int(disk) for memory, disk in told) if told else None


def _all_stored_bytes(spark: SparkSession, asked: frozenset[int]) -> dict[int, int]:
    found = {}
    for info in spark._sc._jsc.sc().getRDDStorageInfo():
        ident = int(info.id())
        if ident in asked:
            found[ident] = int(info.memSize()) + int(info.diskSize())
    return found


def storage_memory(spark: SparkSession) -> int:
    """The most that Spark's memory can hold; a budget above it would be kept on disk and counts as this.

    To ask takes a millisecond, and executors come and go more slowly: the answer stands for some seconds.
    """
    return _storage_memory(spark._sc, int(monotonic() / MEMORY_STANDS))


@lru_cache(maxsize=1)
def _storage_memory(context: SparkContext, moment: int) -> int:
    found = context._jsc.sc().getExecutorMemoryStatus().valuesIterator()
    total = 0
    while found.hasNext():
        total += int(found.next()._1())
    return total


def release(segments: Iterable[StateSegment]) -> None:
    """Give the memory back."""
    for segment in segments:
        if not segment.held:
            segment.rdd.unpersist(False)
        if segment.hashed is not None:
            segment.hashed.release()


def untouched_states(plan: Rel, states: Mapping[str, State], changed: frozenset[str]) -> dict[str, State]:
    """States that stay as they are: nothing below them changed. One that changed is there only as a new one."""
    touched = {node_key(node) for node in plan.keepable()
               if any(isinstance(x, Scan) and x.table in changed for x in node.walk())}  # fmt: skip
    return {key: state for key, state in states.items() if key not in touched}


def added_to(states: Mapping[str, State]) -> frozenset[str]:
    """The indexes that rows have come to since they were made."""
    return frozenset(key for key, state in states.items() if state.indexed and len(state.segments) > 1)


def few_groups(plan: Rel, states: Mapping[str, State], sizes: Mapping[str, int]) -> frozenset[str]:
    """The aggregates of a plan whose partial rows are so few that the driver can have them."""
    widths = {node_key(node): row_bytes(node) for node in plan.keepable() if isinstance(node, Aggregate)}
    return frozenset(
        key for key, width in widths.items() if key in states and states[key].few(sizes.get(key, 0), width)
    )

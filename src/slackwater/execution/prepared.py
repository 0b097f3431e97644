"""Queries that come again: planned once, then run over new rows.

The queries of a refresh keep their text from one refresh to the next; what changes is what their names stand for: the
files of a delta, the rows of a state. For a wide query Spark spends as long on reading, analysing and optimizing the
text as on its rows. So the physical plan of a query is kept, and where it comes again its leaves are exchanged:

    text, leaves  →  Spark's plan  →  the same plan with other files and rows in its leaves

Precondition: nothing else of the plan depends on what is behind the names. What it does depend on is the *shape* of a
source: columns, types, NULLs, and how rows are partitioned and ordered. A query whose sources have another shape than
before is planned again. Counter-example to less: rows that were in one partition, so that they could be grouped where
they were, come in two.

What cannot be followed is planned each time: a table with deleted rows, which is read through a join with their
positions, subqueries inside of expressions, which hide their leaves, the same rows under two names, and leaves of any
other kind. So is a query whose files have become twice as many bytes, because Spark decides by their size what to send
where.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession

from slackwater.execution.binding import name_frame
from slackwater.execution.hashed import Hashed, Place, arguments_of, places, with_conditions
from slackwater.execution.java_classes import java_classes

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql.types import StructType

KEPT_PLANS = 300
"""So many plans are kept for a session; of the least use is the one that was used the longest ago."""

GROWN, SLACK = 2.0, 10_000_000
"""Spark plans again what reads files of so many times the bytes and so many more."""

_IDS = re.compile(r"#\d+L?|\bplan_id=\d+")
_LEAVES = {"FileSourceScanExec": ("relation", 0), "RDDScanExec": ("rdd", 1)}
"""Leaves of a physical plan: the method that tells what is read, and its place among the arguments."""

_FIXED = frozenset({"LocalTableScanExec", "OneRowRelationExec", "RangeExec"})
"""Leaves that a query writes down itself."""


@dataclass(frozen=True, slots=True)
class Source:
    """What a name in a query stands for.

    Attributes:
        frame: makes a DataFrame of it, for a query that has to be planned.
        leaves: what is read, in order: relations of files and RDDs; None where it cannot be exchanged.
        shape: what a plan over it depends on beside these.
        size: the bytes of its files.
        lasts: the frame is likely to come again under the same name.
        hashed: the rows by key, where they are those of an index: its one leaf is not read, but looked up.
    """

    frame: Callable[[], DataFrame]
    leaves: tuple[JavaObject, ...] | None = None
    shape: str = ""
    size: int = 0
    lasts: bool = False
    hashed: Hashed | None = None


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A leaf of a kept plan, its arguments, and the source that goes into it."""

    node: JavaObject
    arguments: Any
    position: int
    name: str
    ordinal: int


@dataclass(slots=True)
class Output:
    """What is known of the rows that a kept plan gives, once somebody has asked; they are of one shape each time.

    Attributes:
        columns: their schema, as PySpark has it.
        schema: as Spark has it.
        json: as Spark writes it.
        shape: what a plan over the rows depends on, once they are cut off from their history.
    """

    columns: StructType
    schema: JavaObject | None = None
    json: str = ""
    shape: str = ""


@dataclass(frozen=True, slots=True)
class _Plan:
    """A kept plan with the shapes that it was made for."""

    logical: JavaObject
    physical: JavaObject
    leaves: tuple[_Leaf, ...]
    places: tuple[Place, ...]
    shapes: Mapping[str, str]
    size: int
    output: Output

    def fits(self, sources: Mapping[str, Source]) -> bool:
        return (
            all(s.leaves is not None and s.shape == self.shapes.get(name) for name, s in sources.items())
            and sum(s.size for s in sources.values()) <= GROWN * self.size + SLACK
        )


@dataclass(slots=True)
class _Kept:
    """The plans of one session, by text."""

    plans: dict[str, _Plan | None] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def take(self, text: str) -> _Plan | None:
        with self.lock:
            if text not in self.plans:
                return None
            self.plans[text] = plan = self.plans.pop(text)  # now the last one to go
            return plan

    def put(self, text: str, plan: _Plan | None) -> None:
        with self.lock:
            self.plans[text] = plan
            while len(self.plans) > KEPT_PLANS:
                self.plans.pop(next(iter(self.plans)))


_kept: WeakKeyDictionary[SparkSession, _Kept] = WeakKeyDictionary()
_files: WeakKeyDictionary[DataFrame, tuple[JavaObject, str, int] | None] = WeakKeyDictionary()
_outputs: WeakKeyDictionary[DataFrame, Output] = WeakKeyDictionary()


def query(spark: SparkSession, text: str, sources: Mapping[str, Source], *, again: bool) -> DataFrame:
    """The query as a DataFrame, from a kept plan where there is one that fits.

    Args:
        spark: the session.
        text: the SQL text.
        sources: what the names that it reads stand for.
        again: the same text is likely to come again.
    """
    kept = _kept.setdefault(spark, _Kept())
    if any(source.hashed is not None for source in sources.values()):
        # What is asked of a plan, or made for it, by hand goes by the session that is active in this thread.
        java_classes(spark).session.setActiveSession(spark._jsparkSession)
    plan = kept.take(text) if again else None
    if plan is not None and plan.fits(sources):
        tables = _tables(spark, plan.places, sources)
        with kept.lock:  # the arguments of its leaves are there once
            made = _exchanged(spark, plan, sources, tables)
        made.__dict__["schema"] = plan.output.columns  # where PySpark looks before it asks
        _outputs[made] = plan.output
        return made
    for name, source in sorted(sources.items()):
        name_frame(spark, name, source.frame(), lasts=source.lasts)
    frame = spark.sql(text)
    physical, found = _with_places(spark, frame._jdf.queryExecution().sparkPlan(), sources)
    if again:
        kept.put(text, _plan_of(spark, frame, physical, sources, found))
    if not found:
        return frame
    optimized = frame._jdf.queryExecution().optimizedPlan()
    return _put_in(spark, optimized, physical, _tables(spark, found, sources))


def files_source(frame: DataFrame) -> Source:
    """A table or a result, read from its files. The frames of files are kept elsewhere and come again."""
    if frame not in _files:
        _files[frame] = _relation_of(frame)
    found = _files[frame]
    if found is None:
        return Source(lambda: frame, lasts=True)
    relation, shape, size = found
    return Source(lambda: frame, (relation,), shape, size, lasts=True)


def output_of(frame: DataFrame) -> Output | None:
    """What is known of the rows of a frame, where they come from a kept plan."""
    return _outputs.get(frame)


def shape_of(cut: DataFrame, of: DataFrame | None = None) -> str:
    """What a plan over rows that were cut off from their history depends on; `of` is the frame that they were of."""
    known = _outputs.get(of) if of is not None else None
    if known is not None and known.shape:
        return known.shape
    leaf = cut._jdf.queryExecution().analyzed()
    parts = (leaf.schema().json(), leaf.outputPartitioning().toString(), leaf.outputOrdering().toString())
    shape = json.dumps([_IDS.sub("", part) for part in parts])
    if known is not None:
        known.shape = shape
    return shape


def _relation_of(frame: DataFrame) -> tuple[JavaObject, str, int] | None:
    """What a frame reads if it is nothing but the rows of files: the files, the shape, and the bytes."""
    analyzed = frame._jdf.queryExecution().analyzed()
    if analyzed.getClass().getSimpleName() != "LogicalRelation":
        return None
    relation = analyzed.relation()
    return relation, analyzed.schema().json(), int(relation.sizeInBytes())


def _each(found: Any) -> list[Any]:
    return [found.apply(i) for i in range(found.size())]


def _with_places(
    spark: SparkSession, physical: JavaObject, sources: Mapping[str, Source]
) -> tuple[JavaObject, tuple[Place, ...]]:
    """A plan ready for what stands in the place of its indexes, and these places."""
    indexes = {name: source for name, source in sources.items() if source.hashed is not None}
    if not indexes:
        return physical, ()
    ids = {int(rdd.id()): name for name, source in indexes.items() for rdd in source.leaves or ()}

    def named(leaf: JavaObject) -> str | None:
        return ids.get(int(leaf.rdd().id()))

    ready = with_conditions(spark, physical, named)
    return ready, tuple(places(spark, ready, named))


def _tables(spark: SparkSession, found: tuple[Place, ...], sources: Mapping[str, Source]) -> Any:
    """What is to be put into each place, by the part of the plan that stands there."""
    known_to = java_classes(spark)
    tables = known_to.identity_map()
    for place in found:
        source = sources[place.name]
        assert source.hashed is not None  # noqa: S101 - the plan was made for an index
        assert source.leaves is not None  # noqa: S101 - an index has one
        tables.put(place.side, place.table(spark, source.hashed, source.leaves[0], known_to.reused))
    return tables


def _plan_of(
    spark: SparkSession, frame: DataFrame, physical: JavaObject, sources: Mapping[str, Source],
    found: tuple[Place, ...],
) -> _Plan | None:  # fmt: skip
    """The plan of a query with its leaves told apart; None where that cannot be done."""
    if any(s.leaves is None for s in sources.values()):
        return None
    named = java_classes(spark).identity_map()
    for name, source in sources.items():
        for ordinal, leaf in enumerate(source.leaves or ()):
            if named.put(leaf, json.dumps([name, ordinal])) is not None:
                return None  # the same rows under two names
    optimized = frame._jdf.queryExecution().optimizedPlan()
    if not optimized.subqueriesAll().isEmpty():
        return None
    leaves, tables = [], [place.name for place in found]
    for node in _each(physical.collectLeaves()):
        kind = node.getClass().getSimpleName()
        if kind in _FIXED:
            continue
        if kind not in _LEAVES:
            return None
        told, position = _LEAVES[kind]
        read = named.get(getattr(node, told)())
        if read is None:
            return None
        name = json.loads(read)[0]
        if sources[name].hashed is not None:
            if name not in tables:
                return None  # Spark found another way to join, and reads the rows
            tables.remove(name)
            continue  # the table takes its place
        leaves.append(_Leaf(node, arguments_of(spark, node), position, *json.loads(read)))
    return _Plan(optimized, physical, tuple(leaves), found,
                 {name: s.shape for name, s in sources.items()}, sum(s.size for s in sources.values()),
                 Output(frame.schema))  # fmt: skip


def _exchanged(spark: SparkSession, plan: _Plan, sources: Mapping[str, Source], replaced: Any) -> DataFrame:
    """The plan with other leaves, beside what is `replaced` in it already."""
    put_at = java_classes(spark).put_at  # Python's own way asks for the length first
    for leaf in plan.leaves:
        known = sources[leaf.name].leaves
        assert known is not None  # noqa: S101 - the plan fits
        put_at(leaf.arguments, leaf.position, known[leaf.ordinal])
        replaced.put(leaf.node, leaf.node.makeCopy(leaf.arguments))
    return _put_in(spark, plan.logical, plan.physical, replaced)


def _put_in(spark: SparkSession, logical: JavaObject, physical: JavaObject, replaced: Any) -> DataFrame:
    """A plan with other parts, as a DataFrame."""
    known_to = java_classes(spark)
    # A map is a partial function to Scala: nodes that it knows are replaced, all others stay.
    rule = known_to.as_scala(replaced)
    stage = known_to.stage(logical, physical.transformUp(rule))
    return DataFrame(known_to.rows_of(spark._jsparkSession, stage), spark)

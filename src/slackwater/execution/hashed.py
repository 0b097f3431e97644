"""Hash tables that outlive a query: the rows of an index by key, as Spark's broadcast joins build them.

Spark builds the hash table of a broadcast join for one query and forgets it. An index is such a table that is kept: it
is built once, from the checkpointed rows of its state, which are then released, and every later join finds it in the
place where its own would have been built:

    BroadcastHashJoin(asking, rows)   →   BroadcastHashJoin(asking, the table that is there)

Spark does the same within one query, where two joins need the same table (`ReusedExchangeExec`).

What Spark has put on top of the rows, projections and filters that follow from the join's own condition, is left out:
the table has all rows and all columns, and the join refuses what does not match. `LookupJoin.index` sees to it that
nothing else can be there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

SERIALIZED = 1.25
"""Spark holds a table as it is and, compressed, as it would be sent: the bytes of both, against those of the table."""

_BARE = ("ProjectExec", "FilterExec")


class Hashed:
    """The hash table over the rows of one segment; there when first asked for."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.bytes = 0
        self._lock = Lock()
        self._tables: dict[str, tuple[JavaObject, JavaObject]] = {}

    def exchange(self, spark: SparkSession, mode: JavaObject, rows: Callable[[], tuple[JavaObject, JavaObject]]) -> Any:
        """The table as the output of an exchange; `rows` gives the plan that reads the rows, and the rows."""
        key = mode.toString()
        with self._lock:
            if key not in self._tables:
                plan, rdd = rows()
                jvm: Any = spark._jvm
                execution = jvm.org.apache.spark.sql.execution
                prepared = execution.QueryExecution.prepareExecutedPlan(spark._jsparkSession, plan)
                made = execution.exchange.BroadcastExchangeExec(mode, prepared)
                sent = made.executeBroadcast()
                self._tables[key] = made, sent
                self.bytes += int(SERIALIZED * int(made.metrics().apply("dataSize").value()))
                rdd.unpersist(False)
            return self._tables[key][0]

    def release(self) -> None:
        """Give the memory back."""
        with self._lock:
            for _, sent in self._tables.values():
                sent.destroy()
            self._tables.clear()
            self.bytes = 0


@dataclass(frozen=True, slots=True)
class Place:
    """Where a plan looks something up in an index.

    Attributes:
        name: what the query calls the index.
        side: the part of the plan that would build the table.
        leaf: the leaf of it that reads the rows.
        arguments: what the leaf was made with.
        mode: how the table is to be built.
    """

    name: str
    side: JavaObject
    leaf: JavaObject
    arguments: Any = field(compare=False)
    mode: JavaObject

    def table(self, spark: SparkSession, hashed: Hashed, rdd: JavaObject, reused: Any) -> JavaObject:
        """What to put there."""

        def rows() -> tuple[JavaObject, JavaObject]:
            self.arguments[1] = rdd
            return self.leaf.makeCopy(self.arguments), rdd

        return reused(self.leaf.output(), hashed.exchange(spark, self.mode, rows))


def places(spark: SparkSession, plan: JavaObject, named: Callable[[JavaObject], str | None]) -> list[Place]:
    """The joins of a physical plan that look up an index; `named` says which index a leaf reads, if any."""
    found: list[Place] = []
    _search(spark, plan, named, found)
    return found


def _search(spark: SparkSession, plan: JavaObject, named: Callable[[JavaObject], str | None],
            found: list[Place]) -> None:  # fmt: skip
    children = plan.children()
    if plan.getClass().getSimpleName() == "BroadcastHashJoinExec":
        at = 0 if plan.buildSide().toString() == "BuildLeft" else 1
        side = children.apply(at)
        leaf = _bare_leaf(side)
        name = named(leaf) if leaf is not None else None
        if leaf is not None and name is not None:
            found.append(Place(name, side, leaf, arguments_of(spark, leaf), _mode(spark, plan, at, side, leaf)))
            _search(spark, children.apply(1 - at), named, found)
            return
    for i in range(children.size()):
        _search(spark, children.apply(i), named, found)


def _bare_leaf(plan: JavaObject) -> JavaObject | None:
    """The leaf below columns that are picked and rows that are refused; None where there is anything else."""
    while True:
        kind = plan.getClass().getSimpleName()
        if kind == "RDDScanExec":
            return plan
        if kind not in _BARE:
            return None
        if kind == "ProjectExec":
            listed = plan.projectList()
            kinds = {listed.apply(i).getClass().getSimpleName() for i in range(listed.size())}
            if kinds - {"AttributeReference"}:
                return None
        plan = plan.child()


def arguments_of(spark: SparkSession, leaf: JavaObject) -> Any:
    """What a node of a plan was made with, for a copy that differs in some of it."""
    jvm: Any = spark._jvm
    gateway: Any = spark._sc._gateway
    arguments = gateway.new_array(jvm.java.lang.Object, leaf.productArity())
    for i in range(len(arguments)):
        arguments[i] = leaf.productElement(i)
    return arguments


def _mode(spark: SparkSession, join: JavaObject, at: int, side: JavaObject, leaf: JavaObject) -> JavaObject:
    """How the join wants its table built if all columns of the leaf are in it."""
    jvm: Any = spark._jvm
    bare = jvm.java.util.IdentityHashMap()
    bare.put(side, leaf)
    over = join.transformUp(jvm.scala.jdk.javaapi.CollectionConverters.asScala(bare))
    return over.requiredChildDistribution().apply(at).mode()

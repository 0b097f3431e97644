"""Hash tables that outlive a query: the rows of an index by key, as Spark's broadcast joins build them.

Spark builds the hash table of a broadcast join for one query and forgets it. An index is such a table that is kept: it
is built once, from the checkpointed rows of its state, which are then released, and every later join finds it in the
place where its own would have been built:

    BroadcastHashJoin(asking, rows)   →   BroadcastHashJoin(asking, the table that is there)

Spark does the same within one query, where two joins need the same table (`ReusedExchangeExec`).

Spark puts projections and filters on top of the rows. The table has all rows and all columns: projections that pick
columns are left out, and what a filter asks for is asked by the join, of each row that it finds:

    asking ⋈ σ(rows)   →   asking ⋈ rows with σ in the join's condition

That holds for every join that builds its table on the side whose rows it does not have to keep, and it builds on no
other. Some of the filters follow from the join's own condition. Others were above the join in the query, and Spark
pushed them down: without them, lines of orders that a query does not ask for would be among its rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from slackwater.execution.java_classes import java_classes

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

    def exchange(
        self, spark: SparkSession, mode: JavaObject, key: str, rows: Callable[[], tuple[JavaObject, JavaObject]]
    ) -> Any:
        """The table as the output of an exchange; `key` is how Spark writes the mode.

        `rows` gives the plan that reads the rows, and the rows.
        """
        with self._lock:
            if key not in self._tables:
                plan, rdd = rows()
                jvm: Any = spark._jvm
                execution = jvm.org.apache.spark.sql.execution
                prepared = execution.QueryExecution.prepareExecutedPlan(spark._jsparkSession, plan)
                made = execution.exchange.BroadcastExchangeExec(mode, prepared)
                sent = made.executeBroadcast()
                self._tables[key] = made, sent
                size = int(made.metrics().apply("dataSize").value())
                self.bytes += int(SERIALIZED * size * holders(spark))
                rdd.unpersist(False)
            return self._tables[key][0]

    def release(self) -> None:
        """Give the memory back."""
        with self._lock:
            for _, sent in self._tables.values():
                sent.destroy()
            self._tables.clear()
            self.bytes = 0


def holders(spark: SparkSession) -> int:
    """So many processes hold a table that they look things up in: the driver, and every executor there is by now."""
    return max(1, int(spark._sc._jsc.sc().getExecutorMemoryStatus().size()))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a plan looks something up in an index.

    Attributes:
        name: what the query calls the index.
        side: the part of the plan that would build the table.
        leaf: the leaf of it that reads the rows.
        arguments: what the leaf was made with.
        mode: how the table is to be built.
        output: the columns of the leaf.
        key: the mode, as Spark writes it.
    """

    name: str
    side: JavaObject
    leaf: JavaObject
    arguments: Any = field(compare=False)
    mode: JavaObject
    output: JavaObject
    key: str

    def table(self, spark: SparkSession, hashed: Hashed, rdd: JavaObject, reused: Any) -> JavaObject:
        """What to put there."""

        def rows() -> tuple[JavaObject, JavaObject]:
            self.arguments[1] = rdd
            return self.leaf.makeCopy(self.arguments), rdd

        return reused(self.output, hashed.exchange(spark, self.mode, self.key, rows))


Named = Callable[["JavaObject"], "str | None"]
"""Says which index a leaf reads, if any."""


@dataclass(frozen=True, slots=True)
class _Lookup:
    """A join that looks something up: which of its inputs is looked up, and what is at the bottom of that."""

    join: JavaObject
    at: int
    side: JavaObject
    leaf: JavaObject
    name: str


def places(spark: SparkSession, plan: JavaObject, named: Named) -> list[Place]:
    """The joins of a physical plan that look up an index, after `with_conditions`."""
    return [_place(spark, found) for found in _lookups(plan, named)]


def _place(spark: SparkSession, x: _Lookup) -> Place:
    mode = _mode(spark, x.join, x.at, x.side, x.leaf)
    return Place(x.name, x.side, x.leaf, arguments_of(spark, x.leaf), mode, x.leaf.output(), mode.toString())


def with_conditions(spark: SparkSession, plan: JavaObject, named: Named) -> JavaObject:
    """The plan with the filters over what is looked up in the conditions of the joins that look it up."""
    while True:
        found = [(lookup, _filter(lookup.side)) for lookup in _lookups(plan, named)]
        lookup, refusing = next((x for x in found if x[1] is not None), (None, None))
        if lookup is None or refusing is None:
            return plan
        plan = _exchange(spark, plan, lookup.join, _asking(spark, lookup, refusing))


def _asking(spark: SparkSession, lookup: _Lookup, refusing: JavaObject) -> JavaObject:
    """The join, which now asks for what a filter below it has asked for."""
    join, jvm = lookup.join, _jvm(spark)
    keys = _each(join.leftKeys() if lookup.at == 0 else join.rightKeys())
    terms = [x for x in _conjuncts(refusing.condition()) if not _says_no_null(x, keys)]
    if join.condition().isDefined():
        terms.insert(0, join.condition().get())
    arguments = arguments_of(spark, join)
    names = [join.productElementName(i) for i in range(join.productArity())]
    if terms:
        both = terms[0]
        for term in terms[1:]:
            both = jvm.org.apache.spark.sql.catalyst.expressions.And(both, term)
        arguments[names.index("condition")] = jvm.scala.Some(both)
    arguments[names.index("left" if lookup.at == 0 else "right")] = _exchange(
        spark, lookup.side, refusing, refusing.child()
    )
    return join.makeCopy(arguments)


def _says_no_null(term: JavaObject, keys: list[JavaObject]) -> bool:
    """Whether a term only keeps out keys that are NULL, which no key equals."""
    return term.getClass().getSimpleName() == "IsNotNull" and any(term.child().semanticEquals(key) for key in keys)


def _conjuncts(term: JavaObject) -> list[JavaObject]:
    if term.getClass().getSimpleName() != "And":
        return [term]
    return [*_conjuncts(term.left()), *_conjuncts(term.right())]


def _exchange(spark: SparkSession, plan: JavaObject, old: JavaObject, new: JavaObject) -> JavaObject:
    classes = java_classes(spark)
    known = classes.identity_map()
    known.put(old, new)
    return plan.transformUp(classes.as_scala(known))


def _jvm(spark: SparkSession) -> Any:
    return spark._jvm


def _each(found: Any) -> list[Any]:
    return [found.apply(i) for i in range(found.size())]


def _lookups(plan: JavaObject, named: Named) -> list[_Lookup]:
    children = _each(plan.children())
    if plan.getClass().getSimpleName() == "BroadcastHashJoinExec" and not plan.isNullAwareAntiJoin():
        at = 0 if plan.buildSide().toString() == "BuildLeft" else 1
        leaf = _bare_leaf(children[at])
        name = named(leaf) if leaf is not None else None
        if leaf is not None and name is not None:
            return [_Lookup(plan, at, children[at], leaf, name), *_lookups(children[1 - at], named)]
    return [lookup for child in children for lookup in _lookups(child, named)]


def _filter(plan: JavaObject) -> JavaObject | None:
    """The filter above a bare leaf, if there is one."""
    while plan.getClass().getSimpleName() in _BARE:
        if plan.getClass().getSimpleName() == "FilterExec":
            return plan
        plan = plan.child()
    return None


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
    gateway: Any = spark._sc._gateway
    arguments = gateway.new_array(java_classes(spark).anything, leaf.productArity())
    for i in range(len(arguments)):
        arguments[i] = leaf.productElement(i)
    return arguments


def _mode(spark: SparkSession, join: JavaObject, at: int, side: JavaObject, leaf: JavaObject) -> JavaObject:
    """How the join wants its table built if all columns of the leaf are in it."""
    return _exchange(spark, join, side, leaf).requiredChildDistribution().apply(at).mode()

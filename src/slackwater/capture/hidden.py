"""What Spark's JSON leaves out of a plan, fetched from the plan itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.capture.trees import Unsupported

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

LONGEST_LIST = 10_000
"""Constant relations with more rows are data, not part of a query's text."""


def java_nodes(node: JavaObject) -> list[JavaObject]:
    """A plan's operators, parents first: the order of its JSON."""
    return [node] + [below for child in java_seq(node.children()) for below in java_nodes(child)]


def java_seq(seq: JavaObject) -> list[JavaObject]:
    """A Scala sequence as a list."""
    return [seq.apply(i) for i in range(seq.size())]


def add_generated(optimized: list[dict[str, Any]], plan: JavaObject, spark: SparkSession) -> None:
    """The columns that a generator does not hand on, and the rows of constant relations.

    To be called while the session's time zone is UTC: timestamps come as text.
    """
    named = {"Generate", "LocalRelation"}
    wanting = [item for item in optimized if str(item["class"]).rsplit(".", 1)[-1] in named]
    if not wanting:
        return
    generates = any(str(item["class"]).endswith(".Generate") for item in wanting)
    # Each look at a node is a call to the JVM, and constant relations are leaves: one call finds those.
    nodes = java_nodes(plan) if generates else java_seq(plan.collectLeaves())
    found = [node for node in nodes if node.nodeName() in named]
    for item, node in zip(wanting, found, strict=True):
        if node.nodeName() == "Generate":
            item["unrequiredChildIndex"] = [int(at) for at in java_seq(node.unrequiredChildIndex())]
        else:
            item["data"] = _rows(node, spark)


def _rows(node: JavaObject, spark: SparkSession) -> list[list[str | None]]:
    """The cells of a constant relation as text, as a literal would print them."""
    size = node.data().size()
    if size == 0:
        return []
    if size > LONGEST_LIST:
        raise Unsupported("OPERATOR_UNSUPPORTED", "LocalRelation", f"a list of more than {LONGEST_LIST:,} rows")
    jvm: Any = spark._sc._jvm
    frame = DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, node), spark)
    names = [f"c{i}" for i in range(len(frame.columns))]
    if any(t in ("binary", "variant") or "interval" in t or "<" in t for _, t in frame.dtypes):
        raise Unsupported("OPERATOR_UNSUPPORTED", "LocalRelation", "constants of these types have no safe spelling")
    return [list(row) for row in frame.toDF(*names).select(*(F.col(c).cast("string") for c in names)).collect()]

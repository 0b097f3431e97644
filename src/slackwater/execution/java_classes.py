"""Classes of Java that every refresh calls. To find one by its name takes a call for each part of the name.

Methods that belong to a class and not to an object are looked up by name at each call, unless they are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class JavaClasses:
    """What is called of Java, Scala and Spark beside the objects at hand; `none` is Scala's empty option."""

    anything: Any
    identity_map: Any
    as_scala: Any
    put_at: Any
    none: Any
    rdd_block: Any
    stage: Any
    rows_of: Any
    reused: Any
    session: Any


_known: WeakKeyDictionary[Any, JavaClasses] = WeakKeyDictionary()


def java_classes(spark: SparkSession) -> JavaClasses:
    """The classes, found once for each Spark."""
    found = _known.get(spark._sc)
    if found is None:
        jvm: Any = spark._jvm
        found = _known[spark._sc] = JavaClasses(
            jvm.java.lang.Object,
            jvm.java.util.IdentityHashMap,
            jvm.scala.jdk.javaapi.CollectionConverters.asScala,
            jvm.java.lang.reflect.Array.set,
            jvm.scala.Option.empty(),
            jvm.org.apache.spark.storage.RDDBlockId,
            jvm.org.apache.spark.sql.execution.adaptive.LogicalQueryStage,
            jvm.org.apache.spark.sql.classic.Dataset.ofRows,
            jvm.org.apache.spark.sql.execution.exchange.ReusedExchangeExec,
            jvm.org.apache.spark.sql.classic.SparkSession,
        )
    return found

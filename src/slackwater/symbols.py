"""Tables and views as Spark sees them while it plans a query: empty leaves that can be told apart afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from slackwater.algebra.expressions import quote
from slackwater.algebra.nodes import Field
from slackwater.capture.plans import TableShape
from slackwater.capture.type_names import type_text
from slackwater.table import Table
from slackwater.view import View


class Symbols:
    """What names stand for in the sessions that capture queries; a name is bound again only where that has changed."""

    def __init__(self) -> None:
        self._bound: dict[tuple[int, str], int] = {}

    def bind(self, spark: SparkSession, relations: Sequence[Table | View]) -> dict[int, TableShape]:
        """Give every table and view to Spark as an empty leaf whose column names say where they come from."""
        self._forget(spark, frozenset(relation.name for relation in relations))
        shapes: dict[int, TableShape] = {}
        for relation in relations:
            number = _number(relation)
            fields = tuple(Field(f.name, type_text(f.dataType)) for f in relation.schema)
            shapes[number] = TableShape(relation.name, fields)
            if self._bound.get((id(spark), relation.name)) != number:
                symbol(spark, relation).createOrReplaceTempView(quote(relation.name))
                self._bound[id(spark), relation.name] = number
        return shapes

    def _forget(self, spark: SparkSession, names: frozenset[str]) -> None:
        """Names that were given up stand for nothing: a renamed table is not found under its old name."""
        for session, name in [bound for bound in self._bound if bound[0] == id(spark) and bound[1] not in names]:
            spark.catalog.dropTempView(name)
            del self._bound[session, name]


def symbol(spark: SparkSession, relation: Table | View) -> DataFrame:
    """An empty RDD-backed DataFrame: the optimizer folds other empty relations away, but not this one."""
    number, schema = _number(relation), relation.schema
    marked = StructType([StructField(f"sw_{number}_{i}", f.dataType, True) for i, f in enumerate(schema)])
    empty = spark.createDataFrame(spark.sparkContext.emptyRDD(), marked)
    return empty.toDF(*(f.name for f in schema))


def adopt(frame: DataFrame, spark: SparkSession) -> DataFrame:
    """The same logical plan in our session."""
    jvm: Any = spark._sc._jvm
    dataset = jvm.org.apache.spark.sql.classic.Dataset
    return DataFrame(dataset.ofRows(spark._jsparkSession, frame._jdf.queryExecution().logical()), spark)


def _number(relation: Table | View) -> int:
    """The number by which capture knows a relation: even for tables, odd for views."""
    return 2 * relation.id + isinstance(relation, View)

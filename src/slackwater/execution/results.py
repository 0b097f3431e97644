"""The results of views as DataFrames."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from slackwater.algebra.expressions import quote
from slackwater.algebra.nodes import Field
from slackwater.capture.type_names import type_text
from slackwater.execution.render import WEIGHT, consolidated
from slackwater.storage.records import SegmentRecord
from slackwater.storage.relations import RelationReader, physical_schema


class ResultReader(RelationReader):
    """Result segments have no positions: deletes cancel by value."""

    __slots__ = ()

    def minus(self, segments: Sequence[SegmentRecord]) -> DataFrame:
        """The rows that were taken away."""
        return self._read([s for s in segments if s.sign < 0], physical_schema(self.schema))

    def signed(self, segments: Sequence[SegmentRecord], names: list[str]) -> DataFrame:
        """The rows of the segments; with weights where some are deletes."""
        plus = self.plus(segments).toDF(*names)
        if not any(s.sign < 0 for s in segments):
            return plus
        minus = self.minus(segments).toDF(*names).withColumn(WEIGHT, F.lit(-1))
        return plus.withColumn(WEIGHT, F.lit(1)).unionAll(minus)

    def bag(self, segments: Sequence[SegmentRecord], names: list[str]) -> DataFrame:
        """The rows that the segments add up to."""
        signed = self.signed(segments, names)
        if not any(s.sign < 0 for s in segments):
            return signed
        fields = tuple(Field(n, type_text(f.dataType)) for n, f in zip(names, self.schema, strict=True))
        return self.spark.sql(consolidated("SELECT * FROM {changes}", fields, plain=True), changes=signed)


def sort_column(name: str, descending: bool, nulls_first: bool) -> Column:
    """A column of the query's order, as the catalog keeps it."""
    column = F.col(quote(name))
    if descending:
        return column.desc_nulls_first() if nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if nulls_first else column.asc_nulls_last()

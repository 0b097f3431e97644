"""Rows as users give them (Spark, pandas, polars, Arrow, lists) to a DataFrame with exactly a table's columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from slackwater.algebra.expressions import quote
from slackwater.arrow_times import in_microseconds
from slackwater.cell_checks import refuse_lossy_rows
from slackwater.errors import TableError
from slackwater.widening import widens

if TYPE_CHECKING:
    import pandas as pd

Rows = Any
"""A Spark, pandas or polars DataFrame, an Arrow table, or a list of dicts, tuples or Rows."""


def to_frame(rows: Rows, schema: StructType, spark: SparkSession, table: str) -> DataFrame:
    """A DataFrame with the columns of `schema`, in its order and types; anything else is refused with a code."""
    if isinstance(rows, DataFrame):
        frame = rows
    elif isinstance(rows, pa.Table | pa.RecordBatch) or _is_frame(rows, "polars"):
        frame = _from_arrow(_as_arrow(rows), schema, spark, table)
    elif _is_frame(rows, "pandas"):
        frame = _from_pandas(rows, schema, spark, table)
    elif isinstance(rows, Sequence) and not isinstance(rows, str | bytes):
        frame = _from_list(rows, schema, spark, table)
    else:
        raise TableError(
            "INPUT_KIND",
            f"cannot read rows from a {type(rows).__name__}",
            "give a Spark, pandas or polars DataFrame, an Arrow table, or a list of dicts or tuples",
        )
    return _fitted(frame, schema, table)


def frame_schema(rows: Rows, spark: SparkSession) -> StructType:
    """The columns of a DataFrame or an Arrow table, as Spark would have them."""
    if isinstance(rows, DataFrame):
        return rows.schema
    try:
        # The types of a column of pandas that has none of its own are those that Arrow finds in it.
        data = pa.Table.from_pandas(rows, preserve_index=False) if _is_frame(rows, "pandas") else _as_arrow(rows)
        return spark.createDataFrame(in_microseconds(data.schema.empty_table())).schema
    except (PySparkException, pa.ArrowException, TypeError, ValueError) as error:
        first = str(error).splitlines()[0][:300]
        raise TableError("SCHEMA_INVALID", f"Spark has no types for columns of the {type(rows).__name__}: {first}",
                         "give a DDL string such as 'id BIGINT, name STRING', and insert rows") from error  # fmt: skip


def is_tabular(rows: Rows) -> bool:
    """Whether these rows say by themselves which columns they have, and of which types."""
    known = isinstance(rows, DataFrame | pa.Table | pa.RecordBatch)
    return known or _is_frame(rows, "polars") or _is_frame(rows, "pandas")


def _as_arrow(rows: Rows) -> pa.Table:
    if _is_frame(rows, "polars"):
        return rows.to_arrow()
    return pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows


def _is_frame(rows: Rows, library: str) -> bool:
    """Whether this is the library's DataFrame, and not its Series or LazyFrame, without importing the library."""
    return type(rows).__module__.startswith(library) and type(rows).__name__ == "DataFrame"


def check_columns(given: Sequence[str], schema: StructType, table: str) -> None:
    """Refuse missing, extra and doubled columns."""
    wanted = [f.name for f in schema]
    missing = [c for c in wanted if c not in given]
    if missing:
        raise TableError("COLUMN_MISSING", f"table {table!r} needs the column {missing[0]!r}, which the rows lack",
                         f"give all of: {', '.join(wanted)}", {"missing": missing})  # fmt: skip
    extra = [c for c in given if c not in wanted]
    if extra:
        raise TableError("COLUMN_EXTRA", f"table {table!r} has no column {extra[0]!r}",
                         f"give only: {', '.join(wanted)}", {"extra": extra})  # fmt: skip
    if len(set(given)) != len(given):
        raise TableError("COLUMN_EXTRA", f"a column of {table!r} is given twice", "give each column once")


def _from_arrow(data: pa.Table, schema: StructType, spark: SparkSession, table: str) -> DataFrame:
    check_columns(data.column_names, schema, table)
    try:
        return spark.createDataFrame(in_microseconds(data))
    except (PySparkException, pa.ArrowException) as error:
        raise _wrong_type(table, error) from error


def _from_pandas(rows: pd.DataFrame, schema: StructType, spark: SparkSession, table: str) -> DataFrame:
    # Whoever has a frame has pandas loaded; nobody else needs to wait for it.
    from slackwater.pandas_columns import from_pandas

    check_columns([str(c) for c in rows.columns], schema, table)
    try:
        return spark.createDataFrame(from_pandas(rows, schema, table), _loose(schema))
    except (PySparkException, pa.ArrowException) as error:
        raise _wrong_type(table, error) from error


def _from_list(rows: Sequence[Any], schema: StructType, spark: SparkSession, table: str) -> DataFrame:
    names = [f.name for f in schema]
    tuples = []
    for at, row in enumerate(rows):
        if hasattr(row, "__fields__"):
            row = row.asDict(recursive=True)
        if isinstance(row, Mapping):
            check_columns(list(row), schema, table)
            tuples.append(tuple(row[name] for name in names))
        elif isinstance(row, Sequence) and not isinstance(row, str | bytes):
            if len(row) != len(names):
                code = "COLUMN_MISSING" if len(row) < len(names) else "COLUMN_EXTRA"
                raise TableError(code, f"row {at} has {len(row)} values, table {table!r} has {len(names)} columns",
                                 f"give the values of: {', '.join(names)}")  # fmt: skip
            tuples.append(tuple(row))
        else:
            raise TableError("INPUT_KIND", f"row {at} is a {type(row).__name__}", "give dicts or tuples")
    refuse_lossy_rows(tuples, schema, table)
    try:
        return spark.createDataFrame(tuples, _loose(schema))
    except (PySparkException, pa.ArrowException, TypeError, ValueError, OverflowError, AssertionError) as error:
        raise _wrong_type(table, error) from error


def _loose(schema: StructType) -> StructType:
    return StructType([StructField(f.name, f.dataType, True) for f in schema])


def _wrong_type(table: str, error: Exception) -> TableError:
    first = str(error).splitlines()[0][:300]
    return TableError("COLUMN_TYPE", f"the rows do not have the types of table {table!r}: {first}",
                      "convert the values first; see table.schema for the types")  # fmt: skip


def _fitted(frame: DataFrame, schema: StructType, table: str) -> DataFrame:
    check_columns(frame.columns, schema, table)
    given = {f.name: f.dataType for f in frame.schema}
    columns = []
    for f in schema:
        if given[f.name] != f.dataType and not widens(given[f.name], f.dataType):
            raise TableError("COLUMN_TYPE",
                             f"column {f.name!r} of {table!r} is {f.dataType.simpleString()}, "
                             f"the rows have {given[f.name].simpleString()}",
                             "cast it first: nothing is converted that could lose a digit")  # fmt: skip
        column = F.col(quote(f.name))
        columns.append((column if given[f.name] == f.dataType else column.cast(f.dataType)).alias(f.name))
    return frame.select(*columns)

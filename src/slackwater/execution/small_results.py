"""Merging the segments of a small result without a Spark job: read, net out, write."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from slackwater.storage.files import WarehouseFiles
from slackwater.storage.records import SegmentRecord

SMALL_RESULT = 50_000
"""Up to so many rows, the driver merges a result's segments faster than Spark starts."""

_COUNT = "_w"


def merge_small(files: WarehouseFiles, segments: Sequence[SegmentRecord]) -> pa.Table | None:
    """The rows that the segments add up to; None where the types or the sizes are for Spark.

    Floating-point and timestamp columns are for Spark: grouping would take -0.0 for 0.0, and Spark and Arrow write
    time zones differently.
    """
    if sum(s.row_count for s in segments) > SMALL_RESULT:
        return None
    parts = [_signed(files, s) for s in segments if s.row_count]
    if not parts or any(p.schema != parts[0].schema for p in parts) or not all(map(_exact, parts[0].schema.types)):
        return None
    names = [name for name in parts[0].column_names if name != _COUNT]
    net = pa.concat_tables(parts).group_by(names, use_threads=False).aggregate([(_COUNT, "sum")])
    counts = net.column(f"{_COUNT}_sum").to_numpy()
    if not names or (counts < 0).any():
        return None
    return net.select(names).take(pa.array(np.repeat(np.arange(len(counts)), counts)))


def _signed(files: WarehouseFiles, segment: SegmentRecord) -> pa.Table:
    tables = [pq.ParquetFile(file).read() for file in files.parquet_files(segment.path)]
    rows = pa.concat_tables(tables).replace_schema_metadata(None)
    bare = pa.schema([pa.field(f.name, f.type) for f in rows.schema])
    return rows.cast(bare).append_column(_COUNT, pa.array(np.full(rows.num_rows, segment.sign, dtype=np.int64)))


def _exact(dtype: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(dtype) or pa.types.is_decimal(dtype) or pa.types.is_string(dtype)
        or pa.types.is_boolean(dtype) or pa.types.is_date32(dtype)
    )  # fmt: skip

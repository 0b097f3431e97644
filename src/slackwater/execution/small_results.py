"""Small results without a Spark job: their segments are merged, and the next result is compared with the last one."""

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
    if parts[0].num_columns < 2:
        return None
    rows, counts = _net(parts)
    return None if (counts < 0).any() else _repeated(rows, counts)


def last_rows(files: WarehouseFiles, segments: Sequence[SegmentRecord]) -> pa.Table | None:
    """The rows of a small result, to be compared with; None as well where its files cannot be read here."""
    try:
        return merge_small(files, segments)
    except (OSError, pa.ArrowException):
        return None


def compare_small(new: pa.Table, old: pa.Table) -> pa.Table | None:
    """What comes and goes between two results, in a column `_w` of 1 and -1; None where they cannot be compared here.

    Args:
        new: the rows of the new result; with `_w`, the rows that add up to it.
        old: the rows of the last one, from `merge_small`.
    """
    bare = pa.schema([pa.field(f.name, f.type) for f in old.schema])
    counts = new.column(_COUNT).cast(pa.int64()) if _COUNT in new.column_names else _ones(new, 1)
    if _COUNT in new.column_names:
        new = new.drop_columns([_COUNT])
    if new.schema.types != bare.types:
        return None
    now = new.rename_columns(bare.names).replace_schema_metadata(None).cast(bare).append_column(_COUNT, counts)
    rows, counts = _net([now, old.replace_schema_metadata(None).cast(bare).append_column(_COUNT, _ones(old, -1))])
    changed = _repeated(rows, np.abs(counts))
    signs = np.repeat(np.sign(counts), np.abs(counts)).astype(np.int32)
    return changed.append_column(_COUNT, pa.array(signs))


def _net(parts: Sequence[pa.Table]) -> tuple[pa.Table, np.ndarray]:
    """Each different row once, and how often it is there after all."""
    names = [name for name in parts[0].column_names if name != _COUNT]
    net = pa.concat_tables(parts).group_by(names, use_threads=False).aggregate([(_COUNT, "sum")])
    return net.select(names), net.column(f"{_COUNT}_sum").to_numpy()


def _repeated(rows: pa.Table, counts: np.ndarray) -> pa.Table:
    return rows.take(pa.array(np.repeat(np.arange(len(counts)), counts)))


def _ones(rows: pa.Table, sign: int) -> pa.Array:
    return pa.array(np.full(rows.num_rows, sign, dtype=np.int64))


def _signed(files: WarehouseFiles, segment: SegmentRecord) -> pa.Table:
    tables = [pq.ParquetFile(file).read() for file in files.parquet_files(segment.path)]
    rows = pa.concat_tables(tables).replace_schema_metadata(None)
    bare = pa.schema([pa.field(f.name, f.type) for f in rows.schema])
    return rows.cast(bare).append_column(_COUNT, _ones(rows, segment.sign))


def _exact(dtype: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(dtype) or pa.types.is_decimal(dtype) or pa.types.is_string(dtype)
        or pa.types.is_boolean(dtype) or pa.types.is_date32(dtype)
    )  # fmt: skip

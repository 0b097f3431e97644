"""Times in Arrow tables as Spark can take them: all of them, or none."""

from __future__ import annotations

import pyarrow as pa


def in_microseconds(data: pa.Table) -> pa.Table:
    """The table with times as fine as Spark's, which would cut off the rest; raises ArrowInvalid where some is lost.

    Lists become those of one kind. In others Spark does not find the times without a zone, and takes them for UTC.
    """
    wanted = pa.schema([field.with_type(_coarser(field.type)) for field in data.schema])
    if wanted.types == data.schema.types:
        return data
    # What is cast of no rows has no piece to tell its type from.
    return data.cast(wanted) if data.num_rows else wanted.empty_table()


def _coarser(given: pa.DataType) -> pa.DataType:
    kinds = pa.types
    if kinds.is_timestamp(given) and given.unit == "ns":
        return pa.timestamp("us", given.tz)
    if kinds.is_time64(given):
        return pa.time64("us")
    if kinds.is_list(given) or kinds.is_large_list(given) or kinds.is_fixed_size_list(given):
        return pa.list_(given.value_field.with_type(_coarser(given.value_type)))
    if kinds.is_struct(given):
        return pa.struct([field.with_type(_coarser(field.type)) for field in given])
    if kinds.is_map(given):
        key, item = (field.with_type(_coarser(field.type)) for field in (given.key_field, given.item_field))
        return pa.map_(key, item)
    if kinds.is_dictionary(given):
        value = _coarser(given.value_type)
        return given if value == given.value_type else value
    return given

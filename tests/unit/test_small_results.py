"""Merging small results on the driver: the same bag as the segments, or left to Spark."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.execution import small_results
from slackwater.execution.small_results import merge_small
from slackwater.storage.files import WarehouseFiles
from slackwater.storage.records import SegmentRecord

TYPES = pa.schema([("c0", pa.int32()), ("c1", pa.string()), ("c2", pa.decimal128(12, 2)), ("c3", pa.date32())])
ROWS = [
    (1, "a", Decimal("1.00"), dt.date(2020, 1, 1)), (1, "a", None, None), (None, None, None, None),
    (2, "", Decimal("-0.01"), dt.date(1970, 1, 1)),
]  # fmt: skip


def segment(files: WarehouseFiles, sign: int, rows: list[tuple[object, ...]], schema: pa.Schema) -> SegmentRecord:
    columns = [list(c) for c in zip(*rows, strict=True)] or [[] for _ in schema]
    table = pa.table([pa.array(c, t) for c, t in zip(columns, schema.types, strict=True)], schema=schema)
    made = files.segment(sign, files.write_arrow(table, "v1"))
    return SegmentRecord(1, "v1", sign, 1, 1, made.path, made.row_count, made.byte_count, None, None, None)


def rows_of(table: pa.Table) -> Counter[tuple[object, ...]]:
    return Counter(zip(*(table.column(i).to_pylist() for i in range(table.num_columns)), strict=True))


@given(st.lists(st.lists(st.sampled_from(ROWS), max_size=6), min_size=1, max_size=4), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_rows_added_and_taken_away_net_out(
    tmp_path_factory: pytest.TempPathFactory, added: list[list[tuple[object, ...]]], random: Random
) -> None:
    files = WarehouseFiles(tmp_path_factory.mktemp("warehouse"))
    present = [row for rows in added for row in rows]
    gone = random.sample(present, random.randint(0, len(present)))
    segments = [segment(files, 1, rows, TYPES) for rows in added] + [segment(files, -1, gone, TYPES)]
    merged = merge_small(files, segments)
    expected = Counter(present)
    expected.subtract(Counter(gone))
    if merged is None:
        assert not present
    else:
        assert rows_of(merged) == +expected


def test_what_is_not_exact_or_not_small_is_for_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = WarehouseFiles(tmp_path)
    floats = pa.schema([("c0", pa.float64())])
    assert merge_small(files, [segment(files, 1, [(0.0,)], floats), segment(files, 1, [(-0.0,)], floats)]) is None
    moments = pa.schema([("c0", pa.timestamp("us", tz="UTC"))])
    assert merge_small(files, [segment(files, 1, [(dt.datetime(2020, 1, 1, tzinfo=dt.UTC),)], moments)]) is None
    whole = [segment(files, 1, ROWS, TYPES)]
    assert merge_small(files, whole) is not None
    monkeypatch.setattr(small_results, "SMALL_RESULT", len(ROWS) - 1)
    assert merge_small(files, whole) is None


def test_more_taken_away_than_there_was_is_for_spark_to_report(tmp_path: Path) -> None:
    files = WarehouseFiles(tmp_path)
    assert merge_small(files, [segment(files, 1, ROWS[:1], TYPES), segment(files, -1, ROWS[:1] * 2, TYPES)]) is None

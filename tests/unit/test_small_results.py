"""Comparing two small results on the driver."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from slackwater.execution.small_results import compare_small

TYPES = pa.schema([("c0", pa.string()), ("c1", pa.decimal128(38, 2))])


def result(*rows: tuple[str | None, str | None], names: tuple[str, str] = ("c0", "c1")) -> pa.Table:
    values = [(a, Decimal(b) if b is not None else None) for a, b in rows]
    columns = [pa.array([v[i] for v in values], TYPES.types[i]) for i in range(2)]
    return pa.table(columns, names=list(names))


def changed(new: pa.Table, old: pa.Table) -> list[tuple[str | None, str | None, int]]:
    found = compare_small(new, old)
    assert found is not None
    assert found.column_names == ["c0", "c1", "_w"]
    rows = zip(*(found.column(i).to_pylist() for i in range(3)), strict=True)
    return sorted(((a, None if b is None else str(b), w) for a, b, w in rows), key=str)


def test_rows_that_came_and_went() -> None:
    old = result(("a", "1"), ("b", "2"), (None, None), ("b", "2"))
    new = result(("b", "2"), ("a", "1.5"), (None, None), ("", None), names=("x", "`y"))
    assert changed(new, old) == [("", None, 1), ("a", "1.00", -1), ("a", "1.50", 1), ("b", "2.00", -1)]
    assert changed(old, old) == []


def test_a_row_that_is_there_more_often_than_once() -> None:
    assert changed(result(*[("a", "1")] * 3), result(("a", "1"))) == [("a", "1.00", 1), ("a", "1.00", 1)]
    assert changed(result(), result(*[("a", "1")] * 2)) == [("a", "1.00", -1), ("a", "1.00", -1)]


def test_rows_with_weights_add_up() -> None:
    new = result(("a", "1"), ("a", "1"), ("b", "1"), ("a", "1"))
    weighted = new.append_column("_w", pa.array([1, -1, 1, 1], pa.int32()))
    assert changed(weighted, result(("a", "1"))) == [("b", "1.00", 1)]


def test_other_types_are_left_to_spark() -> None:
    other = pa.table([pa.array(["a"]), pa.array([1.0])], names=["c0", "c1"])
    assert compare_small(other, result(("a", "1"))) is None

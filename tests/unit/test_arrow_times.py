"""Times of Arrow in microseconds, which is as fine as Spark's are."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from slackwater.arrow_times import in_microseconds

NANO, MICRO = pa.timestamp("ns"), pa.timestamp("us")
KINDS: list[tuple[Any, Any, pa.DataType]] = [
    (NANO, lambda n: n, MICRO),
    (pa.timestamp("ns", "Europe/Berlin"), lambda n: n, pa.timestamp("us", "Europe/Berlin")),
    (pa.time64("ns"), lambda n: n, pa.time64("us")),
    (pa.list_(NANO), lambda n: [n, None], pa.list_(MICRO)),
    (pa.large_list(NANO), lambda n: [n], pa.list_(MICRO)),
    (pa.list_(NANO, 1), lambda n: [n], pa.list_(MICRO)),
    (pa.struct([("x", NANO)]), lambda n: {"x": n}, pa.struct([("x", MICRO)])),
    (pa.map_(pa.string(), NANO), lambda n: [("x", n)], pa.map_(pa.string(), MICRO)),
]


@pytest.mark.parametrize(("given", "value", "wanted"), KINDS, ids=[str(k[0]) for k in KINDS])
def test_whole_microseconds_are_kept_and_others_raise(given: pa.DataType, value: Any, wanted: pa.DataType) -> None:
    whole = in_microseconds(pa.table({"a": pa.array([value(3000), None], given)}))
    assert whole.schema.types == [wanted]
    assert whole["a"].to_pylist() == pa.array([value(3), None], wanted).to_pylist()
    with pytest.raises(pa.ArrowInvalid, match="would lose data"):
        in_microseconds(pa.table({"a": pa.array([value(3001)], given)}))


def test_a_dictionary_of_times_is_written_out() -> None:
    times = pa.array([dt.datetime(2024, 2, 29)] * 2, NANO).dictionary_encode()
    assert in_microseconds(pa.table({"a": times})).schema.types == [MICRO]


def test_other_tables_are_left_alone() -> None:
    table = pa.table({"a": [1], "b": pa.array([1], MICRO), "c": pa.array(["x"]).dictionary_encode(), "d": [[1]]})
    assert in_microseconds(table) is table


def test_no_rows_keep_their_types() -> None:
    given = pa.table({"at": pa.array([], pa.timestamp("ns")), "list": pa.array([], pa.large_list(pa.int8()))})
    found = in_microseconds(given)
    assert found.schema.types == [pa.timestamp("us"), pa.list_(pa.int8())]
    assert [column.num_chunks for column in found.columns] == [1, 1], "Spark asks the first one"

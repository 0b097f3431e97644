"""What the footers of files tell of their values."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slackwater.storage.files import WarehouseFiles


def written(root: Path, *parts: dict[str, list[object]]) -> str:
    (root / "data/t1/a").mkdir(parents=True)
    for at, columns in enumerate(parts):
        pq.write_table(pa.table(columns), root / f"data/t1/a/part-{at}.parquet", row_group_size=2)
    return "data/t1/a"


def test_the_span_covers_all_files_and_row_groups(tmp_path: Path) -> None:
    path = written(tmp_path, {"c0": [5, 7, 6]}, {"c0": [3, -2]})
    assert WarehouseFiles(tmp_path).span(path, "c0") == (-2, 7)


def test_no_span_where_the_files_do_not_tell(tmp_path: Path) -> None:
    path = written(tmp_path, {"c0": [5, 7], "c1": [None, 1], "c2": [{"c3": 1}, {"c3": 2}]})
    files = WarehouseFiles(tmp_path)
    assert files.span(path, "c0") == (5, 7)
    assert [files.span(path, name) for name in ("c1", "c2", "c3", "c9")] == [None] * 4


def test_no_rows_have_no_span(tmp_path: Path) -> None:
    path = written(tmp_path, {"c0": []})
    assert WarehouseFiles(tmp_path).span(path, "c0") is None


def test_a_broken_file_tells_nothing(tmp_path: Path) -> None:
    path = written(tmp_path, {"c0": [1]})
    broken = tmp_path / path / "part-0.parquet"
    broken.write_bytes(broken.read_bytes()[:-9])
    assert WarehouseFiles(tmp_path).span(path, "c0") is None


@pytest.mark.parametrize("days", [2932897, -719163])
def test_dates_that_python_does_not_have_tell_nothing(tmp_path: Path, days: int) -> None:
    dates = pa.array([0, days], pa.int32()).cast(pa.date32())
    (tmp_path / "data/t1/a").mkdir(parents=True)
    pq.write_table(pa.table({"c0": dates, "c1": [1, 2]}), tmp_path / "data/t1/a/part-0.parquet")
    files = WarehouseFiles(tmp_path)
    assert files.span("data/t1/a", "c0") is None
    assert files.span("data/t1/a", "c1") == (1, 2)

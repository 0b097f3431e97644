"""What a power cut must not take: files that a commit is about to name, and the directories that have their names."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from slackwater.errors import SlackwaterError
from slackwater.storage.directory import open_catalog
from slackwater.storage.files import STAGING, WarehouseFiles

ROWS = pa.table({"c0": [1]})


class Disk:
    """Notes what is brought to the disk, and can refuse to take directories."""

    def __init__(self) -> None:
        self.synced: list[Path] = []
        self.refusal: int | None = None
        self._paths: dict[int, Path] = {}
        self._open = os.open

    def open(self, path: Any, flags: int, *more: Any, **named: Any) -> int:
        descriptor = self._open(path, flags, *more, **named)
        self._paths[descriptor] = Path(path)
        return descriptor

    def fsync(self, descriptor: int) -> None:
        path = self._paths.get(descriptor, Path())
        if self.refusal is not None and path.is_dir():
            raise OSError(self.refusal, os.strerror(self.refusal))
        self.synced.append(path)

    def taken(self) -> list[Path]:
        """What was brought there since this was asked last."""
        found, self.synced = self.synced, []
        return found


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    found = Disk()
    monkeypatch.setattr(os, "open", found.open)
    monkeypatch.setattr(os, "fsync", found.fsync)
    return found


def test_a_segment_lasts_with_all_directories_above_it(tmp_path: Path, disk: Disk) -> None:
    files = WarehouseFiles(tmp_path)
    first = tmp_path / files.write_arrow(ROWS, "t1")
    owner = first.parent
    assert disk.taken() == [*first.iterdir(), first, owner, owner.parent, tmp_path]
    second = tmp_path / files.write_arrow(ROWS, "t1")
    assert disk.taken() == [*second.iterdir(), second, owner]
    other = tmp_path / files.write_arrow(ROWS, "t2")
    assert disk.taken() == [*other.iterdir(), other, other.parent, owner.parent, tmp_path]
    files.write_arrow(ROWS, "t1", STAGING)
    assert disk.taken() == []


def test_a_new_warehouse_lasts(tmp_path: Path, disk: Disk) -> None:
    open_catalog(tmp_path / "a" / "wh").close()
    assert {tmp_path, tmp_path / "a", tmp_path / "a" / "wh"} <= set(disk.taken())


def test_a_disk_that_refuses_directories(tmp_path: Path, disk: Disk) -> None:
    files = WarehouseFiles(tmp_path)
    disk.refusal = errno.EINVAL  # what some file systems say that have no such thing
    assert files.parquet_files(files.write_arrow(ROWS, "t1"))
    disk.refusal = errno.ENOSPC
    with pytest.raises(SlackwaterError, match="STORAGE_FULL"):
        files.write_arrow(ROWS, "t2")
    assert list((tmp_path / "data" / "t2").iterdir()) == []

"""The warehouse directory and its catalog: that they belong together, before either is written to.

Whatever the catalog does not name is garbage, so that a catalog that is not the directory's would have all of its data
removed: an empty one that was made because a URL was forgotten, say. The directory therefore says in a small file of
which warehouse it is, from before the first row is written.

The catalog is made first, then the file, then data. A crash in between leaves a directory without data, which may be
given to any catalog.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import URL, Connection

from slackwater.errors import SlackwaterError
from slackwater.storage.catalog import Catalog, named_paths
from slackwater.storage.database import sqlite_url
from slackwater.storage.files import DATA, is_disk_full, sync
from slackwater.storage.schema import warehouse_id

ID_FILE: Final = "warehouse.id"


def open_catalog(
    root: Path, url: str | URL | None = None, *, create: bool = True, now: Callable[[], float] = time.time
) -> Catalog:
    """Open the catalog of a warehouse directory, the SQLite file inside by default; refuse one of another warehouse.

    Args:
        root: the warehouse directory.
        url: the catalog's URL, if it is not inside.
        create: make what is not there; without it nothing is written to either.
        now: gives the time that commits are recorded with.

    Raises:
        SlackwaterError: WAREHOUSE_INVALID.
    """
    found = Found.at(root)  # first: another process that makes the warehouse has made the catalog before the file
    if not create and not root.is_dir():
        raise SlackwaterError(
            "WAREHOUSE_INVALID", f"there is no warehouse at {root}", f"create it first: slackwater init {root}"
        )

    def check(connection: Connection | None) -> None:
        found.check(connection, writes=create)
        if create:
            _make(root)

    place = url if url is not None else sqlite_url(root / "catalog.db")
    catalog = Catalog.open(place, create=create, now=now, check=check)
    try:
        if create and found.id is None:
            _claim(root, catalog.warehouse_id)
    except BaseException:
        catalog.close()
        raise
    return catalog


@dataclass(frozen=True, slots=True)
class Found:
    """What a directory held before its catalog was looked at.

    Attributes:
        root: the directory.
        id: the warehouse that it says it is; None where it does not say.
        data: the paths of the data in it.
    """

    root: Path
    id: str | None
    data: frozenset[str]

    @classmethod
    def at(cls, root: Path) -> Found:
        """Look at a directory."""
        if root.exists() and not root.is_dir():
            raise SlackwaterError("WAREHOUSE_INVALID", f"{root} is a file", "give a directory")
        try:
            # The data first: who finds some that was just written finds the file that came before it.
            owners = [owner for owner in (root / DATA).glob("*") if owner.is_dir()]
            data = frozenset(f"{DATA}/{owner.name}/{entry.name}" for owner in owners for entry in owner.iterdir())
            return cls(root, _read(root), data)
        except OSError as error:
            raise SlackwaterError(
                "STORAGE_FAILED", f"cannot read {root}: {error.strerror}", "check the path and its permissions"
            ) from error

    def check(self, connection: Connection | None, *, writes: bool) -> None:
        """Refuse a catalog, or to make one where there is none (`None`), if it is not this directory's.

        A directory with data that does not say what it is was made before there was such a file: there the catalog has
        to name some of the data. A reader removes nothing, and may see data that no commit names yet.
        """
        known = warehouse_id(connection) if connection is not None else None
        if self.id is not None and self.id != known:
            other = "there is no catalog yet" if known is None else f"the catalog is that of the warehouse {known}"
            raise self._refused(f"{self.root} is the warehouse {self.id!r} by its {ID_FILE}, and {other}", known)
        if self.id is None and self.data and writes:
            if connection is None:
                raise self._refused(f"{self.root} holds data, and there is no catalog yet", known)
            if self.data.isdisjoint(named_paths(connection)):
                raise self._refused(f"{self.root} holds data, and the catalog names nothing of it", known)

    def _refused(self, message: str, known: str | None) -> SlackwaterError:
        advice = "give the catalog that the warehouse was made with, or another directory; nothing was changed"
        details = {"directory": str(self.root), "directory_id": self.id, "catalog_id": known}
        return SlackwaterError("WAREHOUSE_INVALID", message, advice, details)


def _make(root: Path) -> None:
    data = root / DATA
    new = [path for path in (data, *data.parents) if not path.exists()]
    try:
        data.mkdir(parents=True, exist_ok=True)
        for path in new:
            sync(path.parent)
    except OSError as error:
        code = "STORAGE_FULL" if is_disk_full(error) else "STORAGE_FAILED"
        raise SlackwaterError(
            code, f"cannot create {root}: {error.strerror}", "check the path and its permissions"
        ) from error


def _read(root: Path) -> str | None:
    try:
        return (root / ID_FILE).read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError:
        return None


def _claim(root: Path, warehouse: str) -> None:
    """Write down whose directory it is, unless somebody did so meanwhile: then it must be the same warehouse."""
    try:
        _write_once(root, warehouse)
    except OSError as error:
        code = "STORAGE_FULL" if is_disk_full(error) else "STORAGE_FAILED"
        raise SlackwaterError(
            code, f"cannot write {root / ID_FILE}: {error.strerror}", "check the disk and the permissions"
        ) from error
    if (there := _read(root)) != warehouse:
        raise Found(root, there, frozenset())._refused(
            f"{root} was just made the warehouse {there!r}, and the catalog is that of the warehouse {warehouse}",
            warehouse,
        )


def _write_once(root: Path, warehouse: str) -> None:
    draft = root / f".{ID_FILE}.{uuid.uuid4().hex}"
    try:
        with draft.open("w", encoding="utf-8") as file:
            file.write(warehouse + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, root / ID_FILE)  # whole or not at all, and never over another one
        except FileExistsError:
            return
        except OSError:  # a file system without links
            if (root / ID_FILE).exists():
                return
            os.replace(draft, root / ID_FILE)
        sync(root)
    finally:
        draft.unlink(missing_ok=True)

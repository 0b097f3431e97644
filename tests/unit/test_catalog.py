"""The catalog on SQLite, and what does not depend on the database."""

from __future__ import annotations

import copy
import pickle
import sqlite3
import subprocess
from pathlib import Path

import pytest
from sqlalchemy import URL, event

from slackwater.errors import CODES, CatalogError, SlackwaterError
from slackwater.storage import Catalog, NewSegment, NewState, database, faults, sqlite_url
from slackwater.storage.faults import CRASH_POINTS, crash_point
from tests.unit.catalog_suite import CatalogSuite, add_table, refused, segment
from tests.unit.durability_suite import DurabilitySuite
from tests.unit.forecast_suite import ForecastSuite
from tests.unit.segment_suite import SegmentSuite


@pytest.fixture
def url(tmp_path: Path) -> URL:
    return sqlite_url(tmp_path / "catalog.db")


class TestSqliteCatalog(CatalogSuite):
    pass


class TestSqliteDurability(DurabilitySuite):
    pass


class TestSqliteForecasts(ForecastSuite):
    pass


class TestSqliteSegments(SegmentSuite):
    pass


@pytest.mark.parametrize("name", ["with space", "a?b=c", "a%20b", "ünï", "a#b", "a'b\"c"])
def test_any_path_will_do(tmp_path: Path, name: str) -> None:
    with Catalog.open(sqlite_url(tmp_path / name)) as catalog:
        add_table(catalog)
    assert (tmp_path / name).exists()
    with Catalog.open(sqlite_url(tmp_path / name), create=False) as catalog:
        assert catalog.version() == 1


def test_looking_for_a_catalog_makes_no_file(tmp_path: Path) -> None:
    with refused("WAREHOUSE_INVALID"):
        Catalog.open(sqlite_url(tmp_path / "catalog.db"), create=False)
    assert list(tmp_path.iterdir()) == []


def test_commits_are_durable(url: URL) -> None:
    with Catalog.open(url) as catalog, catalog.database.read() as connection:
        settings = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    assert settings == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


@pytest.mark.parametrize("content", [b"not a database at all " * 100, b"SQLite format 3\0" + b"\xff" * 8000])
def test_a_corrupt_file_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "catalog.db"
    path.write_bytes(content)
    with refused("WAREHOUSE_INVALID"):
        Catalog.open(sqlite_url(path))
    assert path.read_bytes() == content


def test_damage_found_later_is_coded(url: URL) -> None:
    with Catalog.open(url) as catalog:
        for number in range(200):
            add_table(catalog, f"table {number} {'x' * 200}")
    path = Path(str(url.database))
    content = bytearray(path.read_bytes())
    content[4096 * 20 :] = b"\xa5" * (len(content) - 4096 * 20)
    path.write_bytes(content)
    with refused("WAREHOUSE_INVALID"), Catalog.open(url) as catalog:
        catalog.tables()


def test_a_file_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "photos.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE photos (id INTEGER)")
    connection.close()
    before = path.read_bytes()
    with refused("WAREHOUSE_INVALID"):
        Catalog.open(sqlite_url(path))
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["photos.db"]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nonsense",
        "sqlite://",
        "sqlite:///:memory:",
        "mysql://u:hunter2@h/d",
        "postgresql+psycopg2://u:hunter2@h/d",
        "postgresql://u:hunter2@extra@127.0.0.1/d",
        "postgresql://u:hunter2@127.0.0.1:port/d",
        "postgresql://u:hunter2@127.0.0.1:1/d",
        "postgresql://u@127.0.0.1:1/d?password=hunter2",
        "postgresql://u:hunter2@127.0.0.1:1/d?hunter2=hunter2",
        "postgresql://u:hunter2@hunter2.invalid/d",
    ],
)
def test_what_cannot_be_reached_is_said_without_the_password(url: str) -> None:
    with pytest.raises(CatalogError) as caught:
        Catalog.open(url)
    error = caught.value
    assert error.code == "CATALOG_UNREACHABLE"
    # The host is named in any case: a password that equals it is no secret.
    said = f"{error} {error.to_dict()}".replace("hunter2.invalid", "").replace("***.invalid", "")
    assert "hunter2" not in said
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None


def test_a_directory_is_not_a_catalog(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent" / "catalog.db"):
        with refused("CATALOG_UNREACHABLE"):
            Catalog.open(sqlite_url(path))


def test_a_full_database_is_coded(url: URL) -> None:
    with Catalog.open(url) as catalog:
        catalog.database.engine.dispose()
        event.listen(
            catalog.database.engine, "connect", lambda connection, _: connection.execute("PRAGMA max_page_count = 60")
        )
        made = 0
        with refused("STORAGE_FULL"):
            for made in range(1000):
                add_table(catalog, f"table {made} {'x' * 200}")
        assert 0 < made == catalog.version() == len(catalog.tables())


def test_waiting_for_a_lock_ends(url: URL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.2)
    with Catalog.open(url) as catalog:
        with catalog.commit("change", "x"), refused("CATALOG_BUSY"), catalog.commit("change", "y"):
            pass
        assert catalog.version() == 1


@pytest.mark.parametrize("path", ["", "/etc", "..", "a/../b", "a\\b", "a\0b"])
def test_a_path_stays_inside_the_warehouse(path: str) -> None:
    with refused("INVARIANT_BROKEN"):
        segment(path)
    with refused("INVARIANT_BROKEN"):
        NewState("n", 1, path, 1, 1)


def test_a_path_that_was_tampered_with_is_refused(url: URL) -> None:
    with Catalog.open(url) as catalog:
        table = add_table(catalog)
        with catalog.commit("change", "orders") as tx:
            tx.add_segments(table.owner, [segment("t1/a")])
        with catalog.database.write() as connection:
            connection.exec_driver_sql("UPDATE segments SET path = '../../etc'")
        with refused("INVARIANT_BROKEN"):
            catalog.segments(table.owner)


@pytest.mark.parametrize("values", [(0, 1, 1), (2, 1, 1), (1, -1, 1), (1, 1, -1)])
def test_an_illegal_segment_cannot_be_built(values: tuple[int, int, int]) -> None:
    sign, rows, size = values
    with refused("INVARIANT_BROKEN"):
        NewSegment(sign, "a", rows, size)


def test_an_error_says_what_and_what_to_do() -> None:
    error = CatalogError("STORAGE_FULL", "no space left", "Free some.", {"bytes": 7})
    assert str(error) == "[STORAGE_FULL] no space left\n  → Free some."
    assert error.to_dict() == {
        "code": "STORAGE_FULL",
        "message": "no space left",
        "advice": "Free some.",
        "details": {"bytes": 7},
    }
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301 - our own bytes
        assert type(other) is CatalogError
        assert other.to_dict() == error.to_dict()


def test_codes_are_registered_and_well_formed() -> None:
    with pytest.raises(AssertionError):
        SlackwaterError("NO_SUCH_CODE", "x", "y")
    for code, meaning in CODES.items():
        assert code.replace("_", "").isalpha()
        assert code.isupper()
        assert meaning.endswith(".")
        assert "\n" not in meaning


def test_crash_points_are_named_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError):
        crash_point("no.such.point")
    for name in CRASH_POINTS:
        crash_point(name)
    monkeypatch.setenv("SLACKWATER_FAIL_AT", "source.after_read:2")
    for _ in range(2):
        crash_point("commit.before")
    crash_point("source.after_read")
    with pytest.raises(OSError, match="No space left"):
        crash_point("source.after_read")
    crash_point("source.after_read")
    monkeypatch.setenv("SLACKWATER_FAIL_AT", "mispelt")
    with pytest.raises(AssertionError):
        crash_point("commit.before")


@pytest.mark.parametrize(("place", "commits"), [("commit.before", 0), ("commit.inside", 0), ("commit.after", 1)])
def test_a_copy_taken_at_a_crash_point_is_what_a_killed_process_leaves(
    place: str, commits: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wh").mkdir()
    seen: list[str] = []

    def copied(name: str) -> None:
        seen.append(name)
        if name == place:
            subprocess.run(["cp", "-a", str(tmp_path / "wh"), str(tmp_path / "image")], check=True)

    with Catalog.open(sqlite_url(tmp_path / "wh" / "catalog.db")) as catalog:
        monkeypatch.setattr(faults, "watchers", [copied])
        add_table(catalog)
        assert catalog.version() == 1
    assert seen == ["commit.before", "commit.inside", "commit.after"]
    with Catalog.open(sqlite_url(tmp_path / "image" / "catalog.db"), create=False) as catalog:
        assert catalog.version() == len(catalog.tables()) == commits

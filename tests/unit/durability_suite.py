"""What a catalog withstands, on whichever database: other writers, crashes, a full disk, damage."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import URL, Connection, event, func, select, text

from slackwater.errors import SlackwaterError
from slackwater.storage import Catalog, NewState, schema
from slackwater.storage.faults import CRASH_STATUS
from slackwater.storage.files import WarehouseFiles
from slackwater.storage.uncommitted import remove_uncommitted
from tests.unit.catalog_suite import WithCatalog, add_table, add_view, refused, segment

SOURCE = Path(__file__).parents[2] / "src"


def run_python(code: str, url: URL, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, url.render_as_string(hide_password=False)],
        env={**os.environ, "PYTHONPATH": str(SOURCE), **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


class DurabilitySuite(WithCatalog):
    """Nothing is lost, doubled or half done."""

    def test_two_writers_never_take_the_same_version(self, catalog: Catalog, url: URL) -> None:
        table = add_table(catalog)
        start = threading.Barrier(4)

        def write(writer: int) -> list[int]:
            versions = []
            with Catalog.open(url) as mine:
                start.wait()
                for number in range(10):
                    with mine.commit("change", "orders") as tx:
                        tx.add_segments(table.owner, [segment(f"t1/{writer}-{number}")])
                        versions.append(tx.version)
            return versions

        with ThreadPoolExecutor(4) as pool:
            versions = [version for found in pool.map(write, range(4)) for version in found]
        assert sorted(versions) == list(range(2, 42))
        assert [found.first_version for found in catalog.segments(table.owner)] == list(range(2, 42))

    def test_a_reader_is_not_blocked_and_sees_only_what_is_committed(self, catalog: Catalog, url: URL) -> None:
        table = add_table(catalog)
        with Catalog.open(url) as reader:
            with catalog.commit("change", "orders") as tx:
                tx.add_segments(table.owner, [segment("t1/a")])
                assert reader.version() == 1
                assert reader.segments(table.owner) == ()
            assert reader.version() == 2
            assert len(reader.segments(table.owner)) == 1

    def test_a_reader_sees_one_state_throughout(self, catalog: Catalog, url: URL) -> None:
        add_table(catalog)
        count = select(func.count()).select_from(schema.commits)
        with Catalog.open(url) as reader, reader.database.read() as connection:
            assert connection.scalar(count) == 1
            add_table(catalog, "other")
            assert connection.scalar(count) == 1
        assert catalog.version() == 2

    def test_threads_may_create_it_at_the_same_time(self, url: URL) -> None:
        start = threading.Barrier(12)

        def create(_: int) -> str:
            start.wait()
            with Catalog.open(url) as catalog:
                return catalog.warehouse_id

        with ThreadPoolExecutor(12) as pool:
            assert len(set(pool.map(create, range(12)))) == 1

    def test_processes_may_create_it_at_the_same_time(self, url: URL) -> None:
        code = (
            "import sys; from slackwater.storage import Catalog\n"
            "with Catalog.open(sys.argv[1]) as catalog:\n"
            "    with catalog.commit('change', 'x'): pass\n"
            "    print(catalog.warehouse_id)"
        )
        with ThreadPoolExecutor(4) as pool:
            done = list(pool.map(lambda _: run_python(code, url), range(4)))
        assert [found.stderr for found in done if found.returncode] == []
        assert len({found.stdout for found in done}) == 1
        with Catalog.open(url, create=False) as catalog:
            assert catalog.version() == 4

    @pytest.mark.parametrize(
        ("point", "version"), [("commit.before", 1), ("commit.inside", 1), ("commit.after", 2), ("commit.inside:2", 2)]
    )
    def test_a_killed_commit_happened_or_not(self, catalog: Catalog, url: URL, point: str, version: int) -> None:
        table = add_table(catalog)
        code = (
            "import sys; from slackwater.storage import Catalog, NewSegment\n"
            "with Catalog.open(sys.argv[1]) as catalog:\n"
            "    for number in range(2):\n"
            "        with catalog.commit('change', 'orders') as tx:\n"
            "            tx.add_segments('t1', [NewSegment(1, f't1/{number}', 1, 1)])"
        )
        assert run_python(code, url, SLACKWATER_CRASH_AT=point).returncode == CRASH_STATUS
        assert catalog.version() == version
        assert len(catalog.segments(table.owner)) == version - 1
        with catalog.commit("change", "orders") as tx:
            assert tx.version == version + 1

    def test_a_full_disk_is_coded_and_leaves_no_trace(self, catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
        view = add_view(catalog)
        monkeypatch.setenv("SLACKWATER_FAIL_AT", "commit.inside")
        with pytest.raises(SlackwaterError) as caught, catalog.commit("change", "x") as tx:
            tx.add_table("x", "{}")
        assert caught.value.code == "STORAGE_FULL"
        assert isinstance(caught.value.__cause__, OSError)
        assert caught.value.__cause__.errno == errno.ENOSPC
        monkeypatch.setenv("SLACKWATER_FAIL_AT", "states.saving")
        with refused("STORAGE_FULL"):
            catalog.save_states(view.id, [NewState("n", 1, "s/1", 1, 1)])
        assert (catalog.version(), catalog.tables(), catalog.states(view.id)) == (1, (), ())

    @pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError])
    def test_an_interrupt_before_a_commit_leaves_nothing_open(
        self, catalog: Catalog, url: URL, error: type[BaseException]
    ) -> None:
        def interrupt(_: Connection) -> None:
            raise error

        event.listen(catalog.database.engine, "commit", interrupt)
        with pytest.raises(error):
            add_table(catalog)
        event.remove(catalog.database.engine, "commit", interrupt)
        with Catalog.open(url) as other:
            assert other.tables() == ()
            add_table(other, "theirs")
        add_table(catalog)
        assert [table.name for table in catalog.tables()] == ["theirs", "orders"]

    def test_what_a_failed_commit_named_stays(self, catalog: Catalog, tmp_path: Path) -> None:
        table = add_table(catalog)
        files = WarehouseFiles(tmp_path)
        paths = [f"data/t1/{name}" for name in ("named", "unnamed")]
        for path in paths:
            (tmp_path / path).mkdir(parents=True)
        with catalog.commit("change", "orders") as tx:
            tx.add_segments(table.owner, [segment(paths[0])])
        unknown = SlackwaterError("CATALOG_UNREACHABLE", "it broke", "look", {"committed": "unknown"})
        remove_uncommitted(files, catalog, paths, unknown)
        assert [(tmp_path / path).exists() for path in paths] == [True, True]
        remove_uncommitted(files, catalog, paths, KeyboardInterrupt())
        assert [(tmp_path / path).exists() for path in paths] == [True, False]
        catalog.close()
        remove_uncommitted(files, catalog, paths, KeyboardInterrupt())
        assert (tmp_path / paths[0]).exists()

    def test_a_commit_under_way_is_waited_for(self, catalog: Catalog, url: URL, tmp_path: Path) -> None:
        table = add_table(catalog)
        (tmp_path / "data/t1/a").mkdir(parents=True)
        begun, asked = threading.Event(), threading.Event()

        def commit() -> None:
            with Catalog.open(url) as other, other.commit("change", "orders") as tx:
                tx.add_segments(table.owner, [segment("data/t1/a")])
                begun.set()
                assert asked.wait(10)
                time.sleep(0.3)

        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(commit)
            assert begun.wait(10)
            asked.set()
            remove_uncommitted(WarehouseFiles(tmp_path), catalog, ["data/t1/a"], KeyboardInterrupt())
            done.result()
        assert (tmp_path / "data/t1/a").exists()

    def test_a_newer_catalog_is_refused(self, catalog: Catalog, url: URL) -> None:
        with catalog.database.write() as connection:
            connection.execute(text("UPDATE meta SET value = '99' WHERE key = 'schema_version'"))
        with pytest.raises(SlackwaterError, match="99") as caught:
            Catalog.open(url)
        assert caught.value.code == "CATALOG_NEWER"
        assert caught.value.details == {"found": 99, "known": schema.SCHEMA_VERSION}

    @pytest.mark.parametrize(
        "damage",
        [
            "DELETE FROM meta",
            "UPDATE meta SET value = 'x'",
            "DROP TABLE source_files",
            "DROP TABLE meta",
            "ALTER TABLE meta RENAME COLUMN value TO data",
        ],
    )
    def test_a_damaged_catalog_is_refused(self, catalog: Catalog, url: URL, damage: str) -> None:
        with catalog.database.write() as connection:
            connection.execute(text(damage))
        with refused("WAREHOUSE_INVALID"):
            Catalog.open(url)

"""A warehouse directory and its catalog belong together: another catalog would have all the data removed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql.types import LongType, StructType

from slackwater import Engine
from slackwater.errors import SlackwaterError
from slackwater.storage import Catalog, sqlite_url
from slackwater.storage.directory import ID_FILE, open_catalog
from tests.unit.catalog_suite import add_table, refused, segment

PATH = "data/t1/a"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A warehouse with a table, and rows of it."""
    with Engine(tmp_path / "wh") as engine:
        table = engine.create_table("t", StructType().add("id", LongType()))
        with engine.catalog.commit("change", "t") as tx:
            tx.add_segments(f"t{table.id}", [segment(PATH)])
    (tmp_path / "wh" / PATH).mkdir(parents=True)
    (tmp_path / "wh" / PATH / "part-0.parquet").write_bytes(b"rows")
    return tmp_path / "wh"


def listed(root: Path) -> dict[str, bytes | None]:
    return {str(p.relative_to(root)): p.read_bytes() if p.is_file() else None for p in root.rglob("*")}


def url_beside(place: Path, name: str = "other.db") -> str:
    return sqlite_url(place.parent / name).render_as_string()


def test_the_directory_says_of_which_warehouse_it_is(place: Path) -> None:
    with Catalog.open(sqlite_url(place / "catalog.db"), create=False) as catalog:
        assert (place / ID_FILE).read_text() == catalog.warehouse_id + "\n"
    assert sorted(p.name for p in place.iterdir()) == ["catalog.db", "data", ID_FILE]


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("made", [False, True])
@pytest.mark.parametrize("old", [False, True])
def test_another_catalog_is_refused_and_nothing_removed(place: Path, made: bool, old: bool, read_only: bool) -> None:
    if made:  # a catalog of its own, which names nothing of this directory
        with Catalog.open(url_beside(place)) as catalog:
            add_table(catalog)
    if old:
        (place / ID_FILE).unlink()
    before = listed(place.parent)
    if old and made and read_only:
        Engine(place, catalog=url_beside(place), read_only=True).close()  # removes nothing
    else:
        with refused("WAREHOUSE_INVALID"):
            Engine(place, catalog=url_beside(place), read_only=read_only)
        assert listed(place.parent) == before
    assert (place / PATH / "part-0.parquet").exists()
    with Engine(place) as engine:
        assert engine.catalog.all_paths() == {PATH}
    assert (place / PATH / "part-0.parquet").exists()


@pytest.mark.parametrize("old", [False, True])
def test_a_lost_catalog_is_not_made_anew(place: Path, old: bool) -> None:
    (place / "catalog.db").rename(place.parent / "kept.db")
    if old:
        (place / ID_FILE).unlink()
    before = listed(place)
    with pytest.raises(SlackwaterError, match="give the catalog that the warehouse was made with") as caught:
        Engine(place)
    assert caught.value.code == "WAREHOUSE_INVALID"
    assert listed(place) == before
    (place / "catalog.db").touch()  # as other programs leave it
    with refused("WAREHOUSE_INVALID"):
        Engine(place)
    (place.parent / "kept.db").rename(place / "catalog.db")
    Engine(place).close()
    assert (place / PATH / "part-0.parquet").exists()


def test_a_catalog_that_names_other_files_is_refused(place: Path) -> None:
    (place / ID_FILE).unlink()
    with Catalog.open(url_beside(place)) as catalog:
        table = add_table(catalog)
        with catalog.commit("change", "orders") as tx:
            tx.add_segments(table.owner, [segment("data/t1/b")])
    with refused("WAREHOUSE_INVALID"):
        Engine(place, catalog=url_beside(place))
    assert (place / PATH / "part-0.parquet").exists()


def test_a_warehouse_of_before_is_taken_over(place: Path) -> None:
    written = (place / ID_FILE).read_text()
    (place / ID_FILE).unlink()
    (place / "data/t1/garbage").mkdir()
    Engine(place, read_only=True).close()
    assert not (place / ID_FILE).exists(), "a reader writes nothing"
    Engine(place).close()
    assert (place / ID_FILE).read_text() == written
    assert sorted(p.name for p in (place / "data/t1").iterdir()) == ["a"]


def test_a_warehouse_of_before_without_data_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / "wh").mkdir()
    with Catalog.open(sqlite_url(tmp_path / "wh" / "catalog.db")) as catalog:
        add_table(catalog)
    Engine(tmp_path / "wh").close()
    assert (tmp_path / "wh" / ID_FILE).read_text() == catalog.warehouse_id + "\n"


def test_a_directory_of_others_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "data" / "photos" / "2024").mkdir(parents=True)
    before = listed(tmp_path)
    with refused("WAREHOUSE_INVALID"):
        Engine(tmp_path)
    assert listed(tmp_path) == before


@pytest.mark.parametrize("call", ["os.link", "os.fsync", "os.open"])
def test_a_creation_that_was_killed_can_be_taken_up_again(tmp_path: Path, call: str) -> None:
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom slackwater.storage import directory\n"
        "def die(*a): os._exit(9)\n"
        f"directory.{call} = die\n"
        "directory.open_catalog(Path(sys.argv[1]))"
    )
    source = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "wh")], env={**os.environ, "PYTHONPATH": source}, timeout=120
    )
    assert done.returncode == 9
    with Engine(tmp_path / "wh") as engine:
        assert (tmp_path / "wh" / ID_FILE).read_text() == engine.catalog.warehouse_id + "\n"
    Engine(tmp_path / "wh").close()


def test_without_links_it_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    with Engine(tmp_path / "wh") as engine:
        assert (tmp_path / "wh" / ID_FILE).read_text() == engine.catalog.warehouse_id + "\n"
    assert sorted(p.name for p in (tmp_path / "wh").iterdir()) == ["catalog.db", "data", ID_FILE]


def test_a_disk_that_cannot_be_written_is_coded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with refused("STORAGE_FULL"):
        Engine(tmp_path / "wh")
    monkeypatch.undo()
    Engine(tmp_path / "wh").close()


def test_many_may_make_it_at_the_same_time(tmp_path: Path) -> None:
    start = threading.Barrier(8)

    def make(_: int) -> str:
        start.wait()
        with open_catalog(tmp_path / "wh") as catalog:
            return catalog.warehouse_id

    with ThreadPoolExecutor(8) as pool:
        made = set(pool.map(make, range(8)))
    assert made == {(tmp_path / "wh" / ID_FILE).read_text().strip()}


def test_of_several_catalogs_one_gets_the_directory(tmp_path: Path) -> None:
    start = threading.Barrier(8)

    def make(number: int) -> str:
        start.wait()
        try:
            with open_catalog(tmp_path / "wh", url_beside(tmp_path / "wh", f"{number}.db")) as catalog:
                return catalog.warehouse_id
        except SlackwaterError as error:
            return error.code

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(make, range(8)))
    assert sorted(set(made)) == sorted({"WAREHOUSE_INVALID", (tmp_path / "wh" / ID_FILE).read_text().strip()})
    assert made.count("WAREHOUSE_INVALID") == 7


def test_readers_stay_beside_a_writer(place: Path) -> None:
    with Engine(place), Engine(place, read_only=True) as reader:
        assert reader.catalog.all_paths() == {PATH}

"""Kill the writer at every step and open the warehouse again: nothing is lost, half-applied or applied twice.

What a killed process leaves behind is what is on disk at that moment. So one run through all steps copies the
warehouse at every place that it passes, and each copy is opened as if the writer had died there. Some writers are
killed for real.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.execution import compaction
from slackwater.storage import faults
from slackwater.storage.faults import CRASH_POINTS, CRASH_STATUS
from tests.fault.child import ADDED, LIMITS, MADE, STEPS, Sale, act

pytestmark = [pytest.mark.spark, pytest.mark.fault]

QUERY = """SELECT s.name, c.city, sum(s.amount) AS total, max(s.amount) AS most
    FROM sales s JOIN cities c ON s.name = c.name GROUP BY s.name, c.city"""
FIRST: list[Sale] = [*((i, "abc"[i % 3], i) for i in range(60)), (100, "a", 1000)]
COMMITS = ("commit.before", "commit.inside", "commit.after")
COMMITTED = "commit.after"
SEGMENTS = ("segment.before_write", "segment.after_write")
CHANGE = {*COMMITS, *SEGMENTS}
FORGETTING = {"forget.before_commit", "forget.after_commit"}
REFRESH = {*CHANGE, "state.after_build", "compact.before_commit", "compact.after_commit"}
PASSED = {
    "insert": CHANGE, "delete": CHANGE, "refresh": REFRESH, "upsert": CHANGE, "apply": CHANGE, "delete keys": CHANGE,
    "attach": {*COMMITS}, "poll": {*CHANGE, "source.after_read"}, "refresh again": {*REFRESH, *FORGETTING},
    "create table": CHANGE, "create view": CHANGE, "mark complete": {*COMMITS}, "drop view": {*COMMITS},
    "drop table": {*COMMITS}, "close": {*SEGMENTS, "states.saving"},
}  # fmt: skip
"""What each step must pass; a refresh also passes `state.before_build` where it makes states."""
SLICE = (
    ("insert", "segment.after_write"), ("delete", "commit.inside"), ("refresh", "segment.after_write"),
    ("attach", "commit.inside"), ("poll", "source.after_read"), ("refresh again", "commit.inside"),
    ("refresh again", "compact.after_commit"), ("refresh again", "forget.after_commit"),
    ("create table", "commit.inside"), ("create view", "commit.after"),
    ("close", "states.saving"),
)  # fmt: skip
KILLED = ("refresh/compact.before_commit",)
KILLED_SLOWLY = (
    "insert/segment.after_write", "delete/commit.inside", "refresh/commit.inside", "refresh/state.after_build",
    "refresh/commit.after:2", "upsert/commit.after", "apply/segment.after_write:2", "delete keys/commit.before",
    "attach/commit.inside", "poll/source.after_read", "refresh again/compact.after_commit:2",
    "refresh again/forget.after_commit", "create table/segment.after_write", "create view/commit.inside",
    "drop view/commit.after", "drop table/commit.inside", "close/states.saving",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Image:
    """What was on disk when a step came to a place."""

    step: str
    point: str
    path: Path
    committed: bool
    """Whether what the step changes was committed: what comes after that merges segments."""


class Recorder:
    """Copies a warehouse at each place that is passed during a step."""

    def __init__(self, warehouse: Path, target: Path) -> None:
        self.images: list[Image] = []
        self._warehouse, self._target, self._lock = warehouse, target, threading.Lock()
        self._step, self._committed = "", False

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        self._step, self._committed = name, False
        faults.watchers.append(self._passed)
        try:
            yield
        finally:
            faults.watchers.remove(self._passed)

    def _passed(self, point: str) -> None:
        with self._lock:
            path = self._target / f"{len(self.images)}"
            # By another process: SQLite's locks go when this one closes a file of the database.
            subprocess.run(["cp", "-a", str(self._warehouse), str(path)], check=True)
            self._committed |= point == COMMITTED
            self.images.append(Image(self._step, point, path, self._committed))


@pytest.fixture(scope="module")
def prepared(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with a view and some history, and a folder with a file to be read."""
    root = tmp_path_factory.mktemp("crash")
    with sw.Engine(root / "wh", spark=spark) as engine:
        sales = engine.create_table("sales", "id BIGINT, name STRING, amount INT", key=["id"])
        cities = engine.create_table("cities", "name STRING, city STRING")
        sales.insert(FIRST[:-1])
        cities.insert([("a", "Oslo"), ("b", "Bergen"), ("c", "Oslo")])
        view = engine.create_view("totals", QUERY, strategy="incremental")
        sales.insert(FIRST[-1:])
        view.refresh()
    (root / "landing").mkdir()
    (root / "landing" / "one.csv").write_text("id,name,amount\n2001,c,7\n2002,c,8\n")
    return root


@pytest.fixture(scope="module")
def images(prepared: Path, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[Image]:
    """The warehouse at every place that a run through all steps passes."""
    root = tmp_path_factory.mktemp("images")
    shutil.copytree(prepared / "wh", root / "wh")
    recorder = Recorder(root / "wh", root)
    with pytest.MonkeyPatch.context() as patch:
        for limit, value in LIMITS.items():
            patch.setattr(compaction, limit, value)
        with sw.Engine(root / "wh", spark=spark) as engine:
            act(engine, str(prepared / "landing"), recorder.step)
    return recorder.images


def _rows(step: str, committed: bool) -> list[Sale]:
    """What the table has when a process dies within a step: what it changes is there once it is committed."""
    before = ADDED[STEPS[STEPS.index(step) - 1]] if step != STEPS[0] else []
    return sorted([*FIRST, *(ADDED[step] if committed else before)])


def _made(step: str, committed: bool) -> tuple[str, ...]:
    """The tables and views that steps have made, when a process dies within one."""
    before = MADE.get(STEPS[STEPS.index(step) - 1], ()) if step != STEPS[0] else ()
    return MADE.get(step, ()) if committed else before


def _found(engine: sw.Engine) -> tuple[str, ...]:
    """What is there of what steps have made; all of it whole."""
    found = list[str]()
    for table in engine.tables():
        if table.name == "more":
            assert sorted(tuple(r) for r in table.snapshot().collect()) == [(n, n % 2) for n in range(5)]
            found.append("more, complete" if table.complete else "more")
    for view in engine.views():
        if view.name == "counts":
            assert sorted(tuple(r) for r in view.result().collect()) == [(0, 3), (1, 2)]
            found.append(view.name)
    return tuple(found)


def _check(
    warehouse: Path, landing: Path, expected: list[Sale], spark: SparkSession, made: tuple[str, ...] = ()
) -> None:
    with sw.Engine(warehouse, spark=spark) as engine:
        assert not _garbage(engine), "garbage was left behind"
        assert _found(engine) == made
        sales, view = engine.table("sales"), engine.view("totals")
        assert sorted(tuple(r) for r in sales.snapshot().collect()) == expected
        assert view.verify(), "the last committed result is wrong"
        view.refresh()
        assert view.verify(), "the result after a refresh is wrong"
        sales.landing_directory(str(landing)).poll()
        landed = [r for r in sales.snapshot().collect() if r.id >= 2000]
        assert len(landed) == 2, "a file was applied twice or lost"
        view.refresh()
        assert view.verify()
        assert not _garbage(engine)


def _garbage(engine: sw.Engine) -> set[str]:
    """What is on disk and in no commit."""
    found = {d for area in ("data", "states") for d in (engine.path / area).glob("*/*")}
    return {str(d.relative_to(engine.path)) for d in found} - engine.catalog.all_paths()


def _check_image(image: Image, landing: Path, tmp_path: Path, spark: SparkSession) -> None:
    warehouse = tmp_path / f"wh{image.path.name}"
    shutil.copytree(image.path, warehouse)
    with sqlite3.connect(warehouse / "catalog.db") as catalog:  # its holder, this process, lives on
        catalog.execute("UPDATE lease SET expires_at = 0")
    catalog.close()
    try:
        _check(warehouse, landing, _rows(image.step, image.committed), spark,
               _made(image.step, image.committed))  # fmt: skip
    except Exception as error:
        raise AssertionError(f"killed during {image.step!r} at {image.point}: {error}") from error


def test_every_place_is_passed_by_each_step_that_writes(images: list[Image]) -> None:
    passed = {step: {image.point for image in images if image.step == step} for step in STEPS}
    assert {step: PASSED[step] - passed[step] for step in STEPS if not PASSED[step] <= passed[step]} == {}
    assert set().union(*passed.values()) == set(CRASH_POINTS)
    merges = [image for image in images if image.point == "compact.after_commit"]
    assert len(merges) >= 4, "each refresh merges its result and the table"


@pytest.mark.parametrize(("step", "point"), SLICE)
def test_a_writer_that_dies(
    step: str, point: str, images: list[Image], prepared: Path, tmp_path: Path, spark: SparkSession
) -> None:
    found = [image for image in images if (image.step, image.point) == (step, point)]
    assert found, "the place was not passed"
    _check_image(found[0], prepared / "landing", tmp_path, spark)


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_writer_that_dies_anywhere(
    step: str, images: list[Image], prepared: Path, tmp_path: Path, spark: SparkSession
) -> None:
    found = [image for image in images if image.step == step]
    assert found, "no place was passed"
    for image in found:
        _check_image(image, prepared / "landing", tmp_path, spark)


@pytest.mark.parametrize("place", [*KILLED, *(pytest.param(p, marks=pytest.mark.slow) for p in KILLED_SLOWLY)])
def test_a_killed_writer(place: str, prepared: Path, tmp_path: Path, spark: SparkSession) -> None:
    shutil.copytree(prepared / "wh", tmp_path / "wh")
    shutil.copytree(prepared / "landing", tmp_path / "landing")
    command = [sys.executable, str(Path(__file__).with_name("child.py")), str(tmp_path / "wh"),
               str(tmp_path / "landing"), place]  # fmt: skip
    done = subprocess.run(command, env=dict(os.environ), capture_output=True, timeout=300)
    assert done.returncode == CRASH_STATUS, f"{place} was not reached: {done.stderr.decode()[-3000:]}"
    step, point = place.split("/")
    committed = point.split(":")[0] == COMMITTED  # what follows the commit is passed by refreshes, which change no rows
    _check(tmp_path / "wh", tmp_path / "landing", _rows(step, committed), spark, _made(step, committed))


@pytest.mark.parametrize(("point", "commits"), [("commit.inside", 0), ("commit.after", 1)])
@pytest.mark.parametrize("query", ["SELECT a, count(*) AS n FROM t GROUP BY a", "SELECT a FROM t WHERE a > 1"])
def test_a_refresh_whose_commit_raises(
    point: str, commits: int, query: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sw.Engine(tmp_path / "wh", spark=spark) as engine:
        table = engine.create_table("t", "a INT")
        table.insert([(1,), (2,), (3,)])
        view = engine.create_view("v", query)
        table.insert([(2,), (4,)])
        version = engine.catalog.version()
        monkeypatch.setenv("SLACKWATER_FAIL_AT", point)
        with pytest.raises((sw.SlackwaterError, OSError)):
            view.refresh()
        monkeypatch.delenv("SLACKWATER_FAIL_AT")
        assert engine.catalog.version() == version + commits
        assert {d for d in engine.catalog.all_paths() if not (engine.path / d).is_dir()} == set()
        assert not _garbage(engine)
        assert (view.refresh().mode == "none") == bool(commits), "what was committed is not applied again"
        assert view.verify()
        table.insert([(5,)])
        view.refresh()
        assert view.verify()
        assert sorted(r.a for r in view.result().collect())[-1] == 5
    with sw.Engine(tmp_path / "wh", spark=spark) as engine:
        assert engine.view("v").verify()


@pytest.mark.parametrize(
    ("what", "point"),
    [("insert", "segment.after_write"), ("insert", "commit.inside"), ("refresh", "segment.before_write"),
     ("refresh", "segment.after_write"), ("refresh", "commit.inside"), ("refresh", "state.before_build")],
)  # fmt: skip
def test_a_full_disk(
    what: str, point: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sw.Engine(tmp_path / "wh", spark=spark) as engine:
        table = engine.create_table("t", "a INT")
        table.insert([(1,), (2,), (3,)])
        view = engine.create_view("v", "SELECT a, count(*) AS n FROM t GROUP BY a")
        if what == "refresh":
            table.insert([(4,)])
        version = engine.catalog.version()
        monkeypatch.setenv("SLACKWATER_FAIL_AT", point)
        with pytest.raises((sw.SlackwaterError, OSError)) as caught:
            table.insert([(4,)]) if what == "insert" else view.refresh()
        if isinstance(caught.value, sw.SlackwaterError):
            assert caught.value.code in ("STORAGE_FULL", "STORAGE_FAILED")
        monkeypatch.delenv("SLACKWATER_FAIL_AT")
        assert engine.catalog.version() == version
        assert not _garbage(engine)
        view.refresh()
        assert view.verify()
        table.insert([(5,)])
        view.refresh()
        assert view.verify()
        assert sorted(r.a for r in view.result().collect())[-1] == 5

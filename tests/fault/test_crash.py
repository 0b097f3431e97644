"""Kill the writer at every step and open the warehouse again: nothing is lost, half-applied or applied twice."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.storage.faults import CRASH_POINTS, CRASH_STATUS

pytestmark = [pytest.mark.spark, pytest.mark.fault]

QUERY = """SELECT s.name, c.city, sum(s.amount) AS total, max(s.amount) AS most
    FROM sales s JOIN cities c ON s.name = c.name GROUP BY s.name, c.city"""
STEPS = ("inserted", "deleted", "refreshed", "polled", "refreshed again", "closed")
FAST = ("commit.inside:3", "state.before_build")
ALL = tuple(f"{point}:{hit}" for point in CRASH_POINTS for hit in (1, 2, 3))


@pytest.fixture(scope="module")
def prepared(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with a view and some history, and a folder with a file to be read."""
    root = tmp_path_factory.mktemp("crash")
    with sw.Engine(root / "wh", spark=spark) as engine:
        sales = engine.create_table("sales", "id BIGINT, name STRING, amount INT")
        cities = engine.create_table("cities", "name STRING, city STRING")
        sales.insert([(i, "abc"[i % 3], i) for i in range(60)])
        cities.insert([("a", "Oslo"), ("b", "Bergen"), ("c", "Oslo")])
        view = engine.create_view("totals", QUERY)
        sales.insert([(100, "a", 1000)])
        view.refresh()
    (root / "landing").mkdir()
    (root / "landing" / "one.csv").write_text("id,name,amount\n2001,c,7\n2002,c,8\n")
    return root


def _crash(prepared: Path, root: Path, point: str) -> tuple[int, list[str]]:
    shutil.copytree(prepared / "wh", root / "wh")
    shutil.copytree(prepared / "landing", root / "landing")
    log = root / "wh.log"
    log.touch()
    environment = {**os.environ, "SLACKWATER_CRASH_AT": point}
    command = [sys.executable, str(Path(__file__).with_name("child.py")), str(root / "wh"), str(root / "landing")]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=300)
    assert done.returncode in (0, CRASH_STATUS), done.stderr.decode()[-3000:]
    return done.returncode, log.read_text().splitlines()


def _check(point: str, prepared: Path, tmp_path: Path, spark: SparkSession) -> None:
    status, done = _crash(prepared, tmp_path, point)
    if status == 0:
        assert done == list(STEPS)  # the point is not reached that often: the whole run must have gone well
    with sw.Engine(tmp_path / "wh", spark=spark) as engine:
        sales, view = engine.table("sales"), engine.view("totals")
        rows = sorted(tuple(r) for r in sales.snapshot().collect())
        base = [(i, "abc"[i % 3], i) for i in range(60)] + [(100, "a", 1000)]
        ends = [
            base,
            sorted([*base, (1001, "a", 5), (1002, "b", 6)]),
            sorted([*base, (1002, "b", 6)]),
            sorted([*base, (1002, "b", 6), (2001, "c", 7), (2002, "c", 8)]),
        ]
        at_least = 3 if "polled" in done else 2 if "deleted" in done else 1 if "inserted" in done else 0
        assert rows in [sorted(e) for e in ends[at_least:]], f"after {done}: {rows[-5:]}"
        assert view.verify(), "the last committed result is wrong"
        view.refresh()
        assert view.verify(), "the result after a refresh is wrong"
        sales.landing_directory(str(tmp_path / "landing")).poll()
        landed = [r for r in sales.snapshot().collect() if r.id >= 2000]
        assert len(landed) == 2, "a file was applied twice or lost"
        view.refresh()
        assert view.verify()
        named = engine.catalog.all_paths()
        on_disk = {f"data/{d.parent.name}/{d.name}" for d in (tmp_path / "wh" / "data").glob("*/*")}
        assert on_disk <= named, "garbage was left behind"


@pytest.mark.parametrize("point", FAST)
def test_a_killed_writer(point: str, prepared: Path, tmp_path: Path, spark: SparkSession) -> None:
    _check(point, prepared, tmp_path, spark)


@pytest.mark.slow
@pytest.mark.parametrize("point", [p for p in ALL if p not in FAST])
def test_a_killed_writer_everywhere(point: str, prepared: Path, tmp_path: Path, spark: SparkSession) -> None:
    _check(point, prepared, tmp_path, spark)


def _insert_and_refresh(table: sw.Table, view: sw.View) -> None:
    table.insert([(4,)])
    view.refresh()


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
        on_disk = {f"data/{d.parent.name}/{d.name}" for d in (tmp_path / "wh" / "data").glob("*/*")}
        assert on_disk == engine.catalog.all_paths()
        assert (view.refresh().mode == "none") == bool(commits), "what was committed is not applied again"
        assert view.verify()
        table.insert([(5,)])
        view.refresh()
        assert view.verify()
        assert sorted(r.a for r in view.result().collect())[-1] == 5
    with sw.Engine(tmp_path / "wh", spark=spark) as engine:
        assert engine.view("v").verify()


@pytest.mark.parametrize("point", ["segment.after_write", "commit.inside", "state.before_build"])
def test_a_full_disk(point: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with sw.Engine(tmp_path / "wh", spark=spark) as engine:
        table = engine.create_table("t", "a INT")
        table.insert([(1,), (2,), (3,)])
        view = engine.create_view("v", "SELECT a, count(*) AS n FROM t GROUP BY a")
        version = engine.catalog.version()
        monkeypatch.setenv("SLACKWATER_FAIL_AT", point)
        with pytest.raises((sw.SlackwaterError, OSError)) as caught:
            _insert_and_refresh(table, view)
        if isinstance(caught.value, sw.SlackwaterError):
            assert caught.value.code in ("STORAGE_FULL", "STORAGE_FAILED")
        monkeypatch.delenv("SLACKWATER_FAIL_AT")
        assert engine.catalog.version() - version <= 1
        view.refresh()
        assert view.verify()
        table.insert([(5,)])
        view.refresh()
        assert view.verify()

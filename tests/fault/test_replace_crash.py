"""Kill the writer while it replaces a view: there is the old view or the new one, whole."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.storage.faults import CRASH_STATUS

pytestmark = [pytest.mark.spark, pytest.mark.fault]

OLD = "SELECT name, sum(amount) AS x FROM sales GROUP BY name"
NEW = "SELECT amount, count(*) AS n, max(name) AS m FROM sales GROUP BY amount"
FAST = {"commit.inside": "x"}
ALL = {"commit.after": "m", "segment.before_write": "x", "segment.after_write": "x", "commit.before": "x",
       "state.before_build": "x", "state.after_build": "x", "states.saving": "m"}  # fmt: skip


@pytest.fixture(scope="module")
def prepared(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with a view and a saved state."""
    root = tmp_path_factory.mktemp("replace")
    with sw.Engine(root / "wh", spark=spark) as engine:
        engine.create_table("sales", "name STRING, amount INT").insert([("abc"[i % 3], i) for i in range(60)])
        engine.create_view("totals", OLD)
    return root / "wh"


def _check(point: str, last_column: str, prepared: Path, tmp_path: Path, spark: SparkSession) -> None:
    place = tmp_path / "wh"
    shutil.copytree(prepared, place)
    command = [sys.executable, str(Path(__file__).with_name("replace_child.py")), str(place), NEW]
    environment = {**os.environ, "SLACKWATER_CRASH_AT": point}
    done = subprocess.run(command, env=environment, capture_output=True, timeout=300)
    assert done.returncode == CRASH_STATUS, done.stderr.decode()[-3000:]
    with sw.Engine(place, spark=spark) as engine:
        assert [v.name for v in engine.views()] == ["totals"]
        view = engine.view("totals")
        assert view.columns[-1] == last_column
        assert view.verify()
        engine.table("sales").insert([("z", 1)])
        view.refresh()
        assert view.verify()
        on_disk = {f"data/{d.parent.name}/{d.name}" for d in (place / "data").glob("*/*")}
        assert on_disk <= engine.catalog.all_paths(), "garbage was left behind"


@pytest.mark.parametrize("point", FAST)
def test_a_killed_replacement(point: str, prepared: Path, tmp_path: Path, spark: SparkSession) -> None:
    _check(point, FAST[point], prepared, tmp_path, spark)


@pytest.mark.slow
@pytest.mark.parametrize("point", ALL)
def test_a_killed_replacement_everywhere(point: str, prepared: Path, tmp_path: Path, spark: SparkSession) -> None:
    _check(point, ALL[point], prepared, tmp_path, spark)

"""A warehouse and a landing directory may be called anything that a file system allows."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import slackwater as sw

pytestmark = pytest.mark.spark

NAMES = ["we[i]rd {a,b} *?", "a\\b", "späße #1 %20"]


@pytest.mark.parametrize("name", NAMES)
def test_a_path_is_not_a_pattern(tmp_path: Path, spark: SparkSession, name: str) -> None:
    landing = tmp_path / f"{name} landing"
    landing.mkdir()
    with sw.Engine(tmp_path / name, spark=spark) as engine:
        table = engine.create_table("t", "a INT, b INT", key=["a"])
        table.insert([(i, i) for i in range(100)])
        view = engine.create_view("v", "SELECT b % 2 AS odd, sum(b) AS s FROM t GROUP BY b % 2")
        table.delete([(3, 3)])
        table.upsert([(2, 5)])
        source = table.landing_directory(str(landing))
        (landing / "x[1].csv").write_text("a,b\n109,9\n")
        assert source.poll().applied == ("x[1].csv",)
        (landing / "x{2}.jsonl").write_text('{"a": 111, "b": 11}\n')
        assert source.poll().applied == ("x{2}.jsonl",)
        assert view.refresh().mode == "incremental"
        assert view.verify()
    with sw.Engine(tmp_path / name, spark=spark) as engine:
        view = engine.view("v")
        engine.table("t").insert([(110, 10)])
        assert view.refresh().mode == "incremental", "the states were saved and found again"
        assert view.verify()
        assert {tuple(row) for row in view.result().collect()} == {(0, 2458), (1, 2522)}

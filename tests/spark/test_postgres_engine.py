"""A whole engine over a PostgreSQL catalog."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from tests.postgres import running_postgres

pytestmark = [pytest.mark.postgres, pytest.mark.spark]


def test_refresh_reopen_and_one_writer(spark: SparkSession, tmp_path: Path) -> None:
    with running_postgres() as server:
        url = server.new_database().render_as_string(hide_password=False)
        with sw.Engine(tmp_path / "wh", spark=spark, catalog=url) as engine:
            table = engine.create_table("t", "g STRING, x INT", key=["g"])
            table.insert([(c, i) for i, c in enumerate("abcdefgh")])
            view = engine.create_view("v", "SELECT x % 2 AS odd, count(*) AS n, max(x) AS top FROM t GROUP BY x % 2")
            with pytest.raises(sw.SlackwaterError) as caught:
                sw.Engine(tmp_path / "wh", spark=spark, catalog=url)
            assert caught.value.code == "WAREHOUSE_LOCKED"
            table.upsert([("h", 100)])
            assert view.refresh().mode == "incremental"
            assert view.verify()
        with sw.Engine(tmp_path / "wh", spark=spark, catalog=url) as engine:
            engine.table("t").delete_keys([("h",)])
            report = engine.view("v").refresh()
            assert report.mode == "incremental", report.reason
            assert engine.view("v").verify()
            assert not (tmp_path / "wh" / "catalog.db").exists()

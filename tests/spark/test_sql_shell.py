"""Every statement of the grammar through `slackwater sql`, one call after another as a user would type them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.cli import cli

pytestmark = pytest.mark.spark
TOTALS = "SELECT cust, sum(amount) AS total FROM orders GROUP BY cust"


class Shell:
    """One warehouse, seen through the command alone."""

    def __init__(self, place: Path) -> None:
        self.place = str(place)

    def call(self, *arguments: str) -> Result:
        return CliRunner().invoke(cli, ["sql", self.place, *arguments], catch_exceptions=False)

    def result(self, statement: str) -> Any:
        """The one report of a statement that succeeds."""
        done = self.call(statement, "--json")
        assert done.exit_code == 0, done.output
        (only,) = json.loads(done.stdout)["results"]
        return only["result"]

    def refusal(self, statement: str) -> str:
        done = self.call(statement, "--json")
        assert done.exit_code == 1, done.output
        return str(json.loads(done.stdout)["error"]["code"])


@pytest.fixture
def shell(tmp_path: Path, spark: SparkSession) -> Shell:
    with sw.Engine(tmp_path / "wh", spark=spark) as engine:
        orders = engine.create_table("orders", "o_id INT, cust STRING, amount INT", key=["o_id"])
        orders.insert([(1, "ann", 10), (2, "bob", 20), (3, "ann", 5)])
    return Shell(tmp_path / "wh")


def test_every_statement_from_the_shell(shell: Shell, spark: SparkSession) -> None:
    explained = shell.result(f"EXPLAIN {TOTALS}")
    assert "PARTIALS_ADD" in json.dumps(explained)
    strict = "REFRESH POLICY INCREMENTAL STRICT"
    sorted_first = "SELECT o_id FROM orders ORDER BY amount LIMIT 20000"
    assert shell.refusal(f"CREATE MATERIALIZED VIEW first {strict} AS {sorted_first}") == "QUERY_NOT_INCREMENTAL"
    assert "ORDER_READS_ALL" in json.dumps(shell.result(f"EXPLAIN CREATE MATERIALIZED VIEW first AS {sorted_first}"))
    made = shell.result(
        f"""CREATE MATERIALIZED VIEW revenue (customer, total) COMMENT 'by customer' {strict}
        SCHEDULE EVERY 5 MINUTES MEMORY BUDGET '64MB' AS {TOTALS}"""
    )
    assert made["outcome"] == "created"
    assert shell.result(f"CREATE MATERIALIZED VIEW IF NOT EXISTS revenue AS {TOTALS}")["outcome"] == "skipped"
    assert shell.refusal(f"CREATE MATERIALIZED VIEW revenue AS {TOTALS}") == "VIEW_EXISTS"
    assert shell.result("SHOW MATERIALIZED VIEWS")[0]["name"] == "revenue"
    described = json.dumps(shell.result("DESCRIBE MATERIALIZED VIEW revenue"))
    assert all(said in described for said in ("by customer", "EVERY 5 MINUTES", "customer"))
    assert shell.result("DESC MATERIALIZED VIEW revenue") == shell.result("DESCRIBE MATERIALIZED VIEW revenue")
    assert "Aggregate" in json.dumps(shell.result("EXPLAIN MATERIALIZED VIEW revenue"))

    with sw.Engine(shell.place, spark=spark) as engine:
        engine.table("orders").upsert([(2, "ann", 1), (9, "cyd", 7)])
    assert shell.result("REFRESH MATERIALIZED VIEW revenue")["mode"] == "incremental"
    assert shell.result("REFRESH MATERIALIZED VIEW revenue FULL")["mode"] == "recompute"
    with sw.Engine(shell.place, spark=spark, read_only=True) as engine:
        view = engine.view("revenue")
        assert sorted(map(tuple, view.result().collect())) == [("ann", 16), ("cyd", 7)]
        assert view.verify()

    assert shell.refusal("ALTER MATERIALIZED VIEW revenue ADD SCHEDULE EVERY 1 HOUR") == "SCHEDULE_EXISTS"
    cron = "ALTER MATERIALIZED VIEW revenue ALTER SCHEDULE CRON '0 3 * * *' AT TIME ZONE 'Europe/Berlin'"
    assert shell.result(cron)["outcome"] == "altered"
    assert "Europe/Berlin" in json.dumps(shell.result("SHOW MATERIALIZED VIEWS"))
    assert shell.result("ALTER MATERIALIZED VIEW revenue DROP SCHEDULE")["outcome"] == "altered"
    assert shell.refusal("ALTER MATERIALIZED VIEW revenue DROP SCHEDULE") == "SCHEDULE_MISSING"
    assert shell.result("ALTER MATERIALIZED VIEW revenue ADD SCHEDULE REFRESH EVERY 2 DAYS")["outcome"] == "altered"

    assert shell.result("ALTER MATERIALIZED VIEW revenue RENAME TO income")["outcome"] == "renamed"
    assert shell.refusal("ALTER MATERIALIZED VIEW income RENAME TO Orders") == "VIEW_EXISTS"
    assert shell.result("ALTER MATERIALIZED VIEW income RENAME TO revenue")["view"] == "revenue"

    other = "SELECT cust, max(amount) AS m FROM orders GROUP BY cust"
    assert shell.refusal(f"CREATE OR REPLACE MATERIALIZED VIEW revenue AS {other}") == "STATES_AT_STAKE"
    agreed = shell.result(f"CREATE OR REPLACE MATERIALIZED VIEW revenue REFRESH POLICY FULL DISCARD STATES AS {other}")
    assert agreed["outcome"] == "replaced"
    with sw.Engine(shell.place, spark=spark) as engine:
        engine.table("orders").insert([(11, "cyd", 70)])
    assert shell.result("REFRESH MATERIALIZED VIEW revenue")["mode"] == "recompute"
    assert shell.refusal("SELECT 1") == "STATEMENT_UNSUPPORTED"
    assert shell.result("DROP MATERIALIZED VIEW revenue")["outcome"] == "dropped"
    assert shell.result("DROP MATERIALIZED VIEW IF EXISTS revenue")["outcome"] == "skipped"
    assert shell.refusal("DROP MATERIALIZED VIEW revenue") == "VIEW_UNKNOWN"
    assert shell.result("SHOW MATERIALIZED VIEWS") == []

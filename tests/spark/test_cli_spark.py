"""The command line with Spark: one warehouse from its creation to a proof, and the demo."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from slackwater import Engine
from slackwater.cli import cli

pytestmark = pytest.mark.spark
Run = Callable[..., Result]
SQL = "SELECT region, sum(amount) AS total, count(*) AS n FROM orders JOIN customers ON cust = name GROUP BY region"


@pytest.fixture
def run(spark: SparkSession) -> Run:
    """Call the command with the session's Spark, which it finds active."""
    return lambda *arguments: CliRunner().invoke(cli, [str(a) for a in arguments], catch_exceptions=False)


@pytest.fixture
def warehouse(run: Run, tmp_path: Path) -> Path:
    """A warehouse with two tables, made by the command; the orders come from files of all three formats."""
    place, files = tmp_path / "wh", tmp_path / "files [1]"
    files.mkdir()
    # Columns in another order than the table's, and a name that looks like a pattern.
    (files / "a{1}*.csv").write_text("cust,o_id,amount\nann,1,10.00\nbob,2,20.50\n")
    (files / "b.jsonl").write_text('{"o_id": 3, "cust": "ann", "amount": 5}\n{"o_id": 4, "cust": "eve"}\n')
    (files / "customers.csv").write_text("name,region\nann,north\nbob,south\neve,south\n")
    run("init", place)
    assert (
        run(
            "create-table", place, "orders", "o_id BIGINT, cust STRING, amount DECIMAL(12,2)", "--key", "o_id"
        ).exit_code
        == 0
    )
    assert run("create-table", place, "customers", "name STRING, region STRING", "--json").exit_code == 0
    loaded = run("load", place, "orders", files / "a{1}*.csv", files / "b.jsonl", "--json")
    assert json.loads(loaded.stdout)["rows"] == 4, loaded.output
    assert run("load", place, "customers", files / "customers.csv").exit_code == 0
    return place


def document(result: Result) -> Any:
    """The one JSON document; nothing else may be there."""
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return json.loads(result.stdout)


def rows(warehouse: Path, view: str, spark: SparkSession) -> list[tuple[Any, ...]]:
    with Engine(warehouse, spark=spark, read_only=True) as engine:
        return sorted(
            tuple(row) for row in engine.view(view).result().selectExpr("region", "string(total)", "n").collect()
        )


def test_from_creation_to_proof(run: Run, warehouse: Path, spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "query.sql").write_text(SQL)
    made = document(run("create-view", warehouse, "by_region", f"@{tmp_path / 'query.sql'}", "--json"))
    assert (made["columns"], made["refresh"]["mode"]) == (["region", "total", "n"], "initial")
    assert rows(warehouse, "by_region", spark) == [("north", "15.00", 2), ("south", "20.50", 2)]

    more = tmp_path / "more.csv"
    more.write_text("o_id,cust,amount\n6,eve,1.25\n")
    assert run("load", warehouse, "orders", more).exit_code == 0
    assert document(run("status", warehouse, "--json"))["views"][0]["pending_rows"] == 1
    refreshed = document(run("refresh", warehouse, "by_region", "--json"))["refreshes"]
    assert [(r["view"], r["rows_in"]) for r in refreshed] == [("by_region", {"orders": 1})]
    assert rows(warehouse, "by_region", spark) == [("north", "15.00", 2), ("south", "21.75", 3)]

    assert document(run("refresh", warehouse, "--full", "--json"))["refreshes"][0]["mode"] == "recompute"
    verified = run("verify", warehouse)
    assert (verified.exit_code, "✓ equal" in verified.stdout) == (0, True)
    assert len(document(run("history", warehouse, "by_region", "--limit", "2", "--json"))["refreshes"]) == 2
    assert "by_region" in run("history", warehouse, "by_region").stdout
    asked = document(run("what-if", warehouse, "by_region", "--budget", "1MB", "--forecast", "orders=5", "--json"))
    assert (asked["budget_bytes"], asked["usable_bytes"], asked["expected_rows"]) == (10**6, 10**6, {"orders": 5.0})
    told = document(run("forecasts", warehouse, "by_region", "--json"))["forecasts"]
    assert [row["actual"] for row in told if row["table"] == "orders"][:2] == [None, 1]
    plain, with_sql = (
        run("explain", warehouse, "by_region", "--no-sql").stdout,
        run("explain", warehouse, "by_region").stdout,
    )
    assert with_sql.startswith(plain.rstrip("\n"))
    assert "SELECT" in with_sql[len(plain) :]


def test_a_difference_is_found_and_has_an_exit_code(run: Run, warehouse: Path) -> None:
    run("create-view", warehouse, "by_region", SQL)
    with Engine(warehouse, read_only=True) as engine:
        segment = engine.catalog.segments(f"v{engine.view('by_region').id}")[0]
        directory = Path(engine.files.absolute(segment.path))
    damaged = next(file for file in directory.glob("*.parquet") if pq.read_metadata(file).num_rows)
    table = pq.read_table(damaged)
    pq.write_table(table.set_column(0, table.schema.names[0], pa.array(["west"] * table.num_rows)), damaged)
    for sums in directory.glob(".*.crc"):
        sums.unlink()
    words = run("verify", warehouse, "by_region")
    assert (words.exit_code, "✗ DIFFERS" in words.stdout, "west" in words.stdout) == (3, True, True)
    found = run("verify", warehouse, "--json")
    assert (found.exit_code, json.loads(found.stdout)["equal"]) == (3, False)


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("bad.csv", "o_id,cust,amount\nten,ann,1\n", "SOURCE_FILE_MALFORMED"),
        ("bad.json", '{"o_id": 9}\nno json\n', "SOURCE_FILE_MALFORMED"),
        ("bad.parquet", "no parquet", "SOURCE_FILE_MALFORMED"),
        ("fine.csv", "o_id,cust,amount\n9,ann,1.005\n", "SOURCE_FILE_MALFORMED"),
        ("fine.json", '{"o_id": 9, "amount": 1.005}\n', "SOURCE_FILE_MALFORMED"),
        ("lines.csv", 'amount,o_id,cust\n1,9,"an\n2,8,n"\n', "SOURCE_FILE_MALFORMED"),
        ("short.csv", "o_id,cust\n9,ann\n", "COLUMN_MISSING"),
        ("wide.json", '{"o_id": 9, "colour": "red"}\n', "COLUMN_EXTRA"),
        ("twice.csv", "o_id,cust,amount\n1,ann,1\n", "KEY_EXISTS"),
        ("rows.txt", "o_id,cust,amount\n", "SOURCE_FORMAT"),
        ("_rows.csv", "o_id,cust,amount\n9,ann,1\n", "SOURCE_FORMAT"),
    ],
)
def test_files_that_cannot_be_loaded_change_nothing(
    run: Run, warehouse: Path, tmp_path: Path, name: str, text: str, code: str
) -> None:
    good = tmp_path / "good.csv"
    good.write_text("o_id,cust,amount\n77,ann,1\n")
    (tmp_path / name).write_text(text)
    result = run("load", warehouse, "orders", good, tmp_path / name, "--json")
    assert (result.exit_code, json.loads(result.stdout)["error"]["code"]) == (1, code), result.stdout
    assert {t["name"]: t["rows"] for t in document(run("status", warehouse, "--json"))["tables"]}["orders"] == 4


def test_one_view_that_fails_does_not_keep_the_others(run: Run, warehouse: Path, tmp_path: Path) -> None:
    run("create-view", warehouse, "inverse", "SELECT cust, 1 / o_id AS inverse FROM orders")
    run("create-view", warehouse, "by_region", SQL)
    (tmp_path / "zero.csv").write_text("o_id,cust,amount\n0,ann,1\n")
    run("load", warehouse, "orders", tmp_path / "zero.csv")
    result = run("refresh", warehouse, "--json")
    found = json.loads(result.stdout)
    assert (result.exit_code, found["error"]["code"], found["error"]["view"]) == (1, "SPARK_FAILED", "inverse")
    assert [r["view"] for r in found["refreshes"]] == ["by_region"]


def test_a_query_that_spark_refuses_is_a_coded_error(run: Run, warehouse: Path) -> None:
    result = run("create-view", warehouse, "v", "SELECT nope FROM orders", "--json")
    assert (result.exit_code, json.loads(result.stdout)["error"]["code"]) == (1, "QUERY_INVALID")


def test_files_are_loaded_without_losing_what_structs_hold(run: Run, warehouse: Path, tmp_path: Path) -> None:
    assert run("create-table", warehouse, "nested", "s STRUCT<a: INT, b: DECIMAL(3,1)>").exit_code == 0
    for number, (line, fits) in enumerate(
        [('{"s": {"a": 1, "b": 2.5}}', True), ('{"s": {"a": 1, "c": 2}}', False), ('{"s": {"b": 2.55}}', False)]
    ):
        file = tmp_path / f"{number}.json"
        file.write_text(line + "\n")
        result = run("load", warehouse, "nested", file, "--json")
        assert (result.exit_code == 0) is fits, result.output
        assert fits or json.loads(result.stdout)["error"]["code"] == "SOURCE_FILE_MALFORMED"


def test_whatever_takes_time_says_so(run: Run, warehouse: Path, tmp_path: Path) -> None:
    """Without a terminal there is a line for what a spinner would show."""
    made = run("sql", warehouse, f"CREATE MATERIALIZED VIEW by_region SCHEDULE EVERY 5 MINUTES AS {SQL}")
    assert "CREATE MATERIALIZED VIEW by_region" in made.stderr, made.stderr
    assert "saving states …" in run("create-view", warehouse, "kept", SQL, "--strategy", "plain").stderr
    (tmp_path / "more.csv").write_text("o_id,cust,amount\n7,eve,1.25\n")
    assert run("load", warehouse, "orders", tmp_path / "more.csv").exit_code == 0
    assert "looking for what is due …" in run("run", warehouse, "--once").stderr
    statement = "REFRESH MATERIALIZED VIEW by_region"
    assert f"{statement} …" in run("sql", warehouse, statement).stderr
    assert "checking the query …" in run("check", warehouse, SQL).stderr
    assert run("explain", warehouse, "by_region").stderr == ""
    with Engine(warehouse) as engine:
        measured = engine.rates.to_dict() | {"cluster": "another"}
        engine.catalog.set_fact("rates", json.dumps(measured), engine.lease)
    explained = run("explain", warehouse, "by_region")
    assert (explained.exit_code, explained.stderr) == (0, "starting Spark …\n"), "what was measured is for one cluster"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_demo(run: Run, tmp_path: Path) -> None:
    result = run("demo", "--sf", "0.01", "--output", tmp_path / "pictures", "--json")
    found = document(result)
    assert found["verified"]
    assert [round(r["share"], 1) for r in found["rounds"]] == [9.0, 0.9, 0.1]
    assert all(len(r["measures"]) == 3 for r in found["rounds"])
    assert found["budget_bytes"] == 256_000_000
    for told in (found, *found["rounds"]):
        assert {"lineitem", "orders", "customer"} <= {f["table"] for f in told["forecasts"]}
        assert all(f["low"] <= f["rows"] <= f["high"] for f in told["forecasts"])
        assert {s["view"] for s in told["states"]} <= {"pricing_summary", "shipping_priority", "local_suppliers"}
        assert 0 < sum(s["bytes"] for s in told["states"]) <= found["budget_bytes"]
        assert all(s["label"] for s in told["states"])
    assert all(f["came"] is None for f in found["forecasts"])
    for told in found["rounds"]:
        (lines,) = (f["came"] for f in told["forecasts"] if f["table"] == "lineitem")
        assert 0 < lines < told["rows"]
        assert sum(s["bytes"] for s in told["states"]) == sum(told["state_bytes"].values())
    picture = tmp_path / "pictures" / "slackwater-demo.png"
    assert found["chart"] == str(picture)
    assert picture.read_bytes().startswith(b"\x89PNG")

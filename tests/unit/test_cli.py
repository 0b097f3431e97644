"""The command line, as far as it goes without Spark."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StringType, StructType
from rich.console import Console

import slackwater as sw
from slackwater import Engine, __version__
from slackwater.algebra.printer import node_key
from slackwater.arrivals.outlook import look_ahead
from slackwater.bench.tpch import Measured, summary
from slackwater.bench.tpch_report import print_table
from slackwater.cli import cli
from slackwater.execution.reports import PricedWay, Refresh
from slackwater.planning.rates import Rates
from tests.unit.catalogued import LINES, ORDERS, TOTALS, add_refresh, add_table, add_view

Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Call the command; a Spark that is started is a failure."""

    def refuse(memory: str | None = None) -> SparkSession:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("slackwater.engine.start_spark", refuse)
    return lambda *arguments: CliRunner().invoke(cli, [str(a) for a in arguments])


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """A warehouse with one table and no view."""
    with Engine(tmp_path / "wh") as engine:
        engine.create_table("a [b] `c`", StructType().add("id", LongType()).add("name", StringType()), key=["id"])
    return tmp_path / "wh"


def test_init_creates_a_warehouse_and_leaves_one_that_is_there(run: Run, tmp_path: Path, warehouse: Path) -> None:
    first = run("init", tmp_path / "new", "--json")
    assert (first.exit_code, json.loads(first.stdout)) == (0, {"warehouse": str(tmp_path / "new"), "version": 0})
    again = run("init", warehouse, "--json")
    assert json.loads(again.stdout)["version"] == 1
    assert run("init", tmp_path / "new").stdout == f"The warehouse {tmp_path / 'new'} is ready, at version 0.\n"


def test_status_tells_what_is_there(run: Run, warehouse: Path) -> None:
    found = json.loads(run("status", warehouse, "--json", "--memory-budget", "2MB").stdout)
    assert (found["version"], found["budget_bytes"], found["views"]) == (1, 2_000_000, [])
    assert found["tables"] == [{"name": "a [b] `c`", "rows": 0, "complete": False, "key": ["id"], "segments": 0}]
    shown = run("status", warehouse)
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert "a [b] `c`" in shown.stdout  # brackets are no markup
    assert "No views yet" in shown.stdout


def test_status_of_an_empty_warehouse(run: Run, tmp_path: Path) -> None:
    run("init", tmp_path / "wh")
    assert "No tables yet" in run("status", tmp_path / "wh").stdout


@pytest.mark.parametrize("command", ["history", "explain", "verify", "refresh", "what-if", "forecasts"])
def test_an_unknown_view_is_a_coded_error(run: Run, warehouse: Path, command: str) -> None:
    words = run(command, warehouse, "nope")
    assert (words.exit_code, words.stdout) == (1, "")
    assert words.stderr.startswith("error [VIEW_UNKNOWN] there is no view 'nope'\n  → ")
    document = run(command, warehouse, "nope", "--json")
    assert (document.exit_code, document.stderr) == (1, "")
    assert json.loads(document.stdout)["error"]["code"] == "VIEW_UNKNOWN"


@pytest.mark.parametrize("command", ["status", "refresh", "verify", "run", "calibrate"])
def test_a_warehouse_is_made_by_init_only(run: Run, tmp_path: Path, command: str) -> None:
    (tmp_path / "empty").mkdir()
    for place in ("absent", "empty"):
        result = run(command, tmp_path / place, "--json")
        assert (result.exit_code, json.loads(result.stdout)["error"]["code"]) == (1, "WAREHOUSE_INVALID")
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["empty"]


@pytest.mark.parametrize("command", ["init", "status", "refresh", "run"])
def test_another_catalog_removes_nothing(run: Run, tmp_path: Path, warehouse: Path, command: str) -> None:
    (warehouse / "data/t1/a").mkdir(parents=True)
    result = run(command, warehouse, "--json", "--catalog", f"sqlite:///{tmp_path}/other.db")
    assert (result.exit_code, json.loads(result.stdout)["error"]["code"]) == (1, "WAREHOUSE_INVALID")
    (warehouse / "catalog.db").unlink()
    result = run(command, warehouse, "--json")
    assert (result.exit_code, json.loads(result.stdout)["error"]["code"]) == (1, "WAREHOUSE_INVALID")
    assert (warehouse / "data/t1/a").exists()
    assert not (warehouse / "catalog.db").exists()


def test_no_views_are_nothing_to_do(run: Run, warehouse: Path) -> None:
    assert run("refresh", warehouse).stdout == "Nothing was refreshed.\n"
    assert json.loads(run("refresh", warehouse, "--json").stdout) == {"refreshes": []}
    verified = run("verify", warehouse, "--json")
    assert verified.exit_code == 0
    assert json.loads(verified.stdout) == {"equal": True, "verifications": [], "without_result": []}


def test_the_history_tells_predictions_and_what_was_not_done(run: Run, tmp_path: Path) -> None:
    with Engine(tmp_path / "wh") as engine:
        view = add_view(engine, "totals", TOTALS)
        ways = (PricedWay("incremental", 0.4, True), PricedWay("recompute", 1.5, False))
        add_refresh(engine, view, "incremental", 0.5, 0.4, ways=ways, next_best="with more: 1 s against 2 s")
    found = json.loads(run("history", tmp_path / "wh", "totals", "--json").stdout)
    assert found["errors"] == {"incremental": {"count": 1, "median": 1.25, "worst": 1.25}}
    assert found["refreshes"][0]["ways"][1] == {"way": "recompute", "seconds": 1.5, "chosen": False}
    shown = run("history", tmp_path / "wh", "totals").stdout
    for words in ("0.40", "1.25x", "not taken: recompute, 1.5 s", "with more: 1 s", "seconds of incremental refreshes"):
        assert words in shown


@pytest.fixture
def with_view(tmp_path: Path) -> Path:
    """A warehouse with a view that keeps a state of 2 kB, by what the catalog says."""
    with Engine(tmp_path / "with view") as engine:
        add_table(engine, LINES, 6_000_000)
        add_table(engine, ORDERS, 1_500_000)
        key = node_key(TOTALS)
        choice = {"key": key, "label": "sums", "keep": True, "reason": "it pays"}
        view = add_view(engine, "totals", TOTALS, choices=[choice], bytes={key: 2_000},
                        forecast=sw.fixed({"lines": 6_000}).to_dict())  # fmt: skip
        for came in (None, {1: (5, 0), 2: (0, 0)}):
            with engine.catalog.commit("refresh", "totals", {}, engine.lease) as tx:
                replace(look_ahead(view, 1_000.0, taking=True), came=came or {}).record(tx)
    return tmp_path / "with view"


def test_status_tells_the_bytes_of_states_and_the_budget(run: Run, with_view: Path) -> None:
    found = json.loads(run("status", with_view, "--json", "--memory-budget", "2MB").stdout)
    assert (found["state_bytes"], found["budget_bytes"]) == (2_000, 2_000_000)
    assert "States: 2.0 kB of the budget of 2.0 MB" in run("status", with_view, "--memory-budget", "2MB").stdout


def test_forecasts_stand_beside_what_came(run: Run, with_view: Path) -> None:
    found = json.loads(run("forecasts", with_view, "totals", "--json").stdout)
    assert (found["view"], found["kind"], found["demoted"]) == ("totals", "fixed", [])
    told = [(row["table"], row["rows"], row["actual"]) for row in found["forecasts"]]
    assert sorted(told, key=str) == [("lines", 6_000, 5), ("lines", 6_000, None), ("orders", 0, 0), ("orders", 0, None)]
    assert found["errors"] == {"lines": pytest.approx(5_995 / 5), "orders": None}
    assert len(json.loads(run("forecasts", with_view, "totals", "--limit", "1", "--json").stdout)["forecasts"]) == 1
    shown = run("forecasts", with_view, "totals").stdout
    for words in ("Forecasts of totals (fixed)", "6,000", "missed", "orders: nothing came", "of what came"):
        assert words in shown


def test_what_if_plans_for_another_budget(run: Run, with_view: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slackwater.engine.start_spark", lambda: SimpleNamespace(stop=lambda: None))
    monkeypatch.setattr("slackwater.execution.refresh.storage_memory", lambda spark: 50_000_000)
    found = json.loads(run("what-if", with_view, "totals", "--budget", "40MB", "--json").stdout)
    assert (found["view"], found["budget_bytes"], found["expected_rows"]) == ("totals", 40_000_000, {"lines": 6_000.0})
    assert found["state_bytes"] > 0
    assert json.loads(run("what-if", with_view, "totals", "--json").stdout)["usable_bytes"] == 50_000_000
    picture = with_view.parent / "p.png"
    asked = ("--forecast", "LINES=7", "--forecast", "orders=1e3", "--picture", picture)
    other = run("what-if", with_view, "totals", "--budget", "0", *asked)
    assert (other.exit_code, "lines 7, orders 1,000" in other.stdout) == (0, True), other.output
    assert f"The picture is in {picture}." in other.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert run("what-if", with_view, "totals", "--picture", with_view / "absent" / "p.png").exit_code == 2
    for wrong, code in (("nope=1", "FORECAST_TABLE_UNKNOWN"), ("lines=nan", "FORECAST_INVALID")):
        result = run("what-if", with_view, "totals", "--forecast", wrong, "--json")
        assert (result.exit_code, json.loads(result.stdout)["error"]["code"]) == (1, code)


def test_what_if_refuses_a_wrong_budget_before_spark_starts(run: Run, with_view: Path) -> None:
    result = run("what-if", with_view, "totals", "--budget", "much", "--json")
    assert (result.exit_code, json.loads(result.stdout)["error"]["code"]) == (1, "BUDGET_INVALID")


def test_calibrating_keeps_what_was_measured(run: Run, warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slackwater.engine.start_spark", lambda: SimpleNamespace(stop=lambda: None))
    monkeypatch.setattr(Engine, "calibrate", lambda engine: Rates(step=0.25, cluster="two cores"))
    assert json.loads(run("calibrate", warehouse, "--json").stdout)["rates"]["step"] == 0.25
    shown = run("calibrate", warehouse).stdout
    assert ("0.25" in shown, "These go for two cores." in shown) == (True, True)


def test_a_locked_warehouse_has_an_exit_code_of_its_own(run: Run, warehouse: Path) -> None:
    with Engine(warehouse):
        for arguments in (("refresh", warehouse), ("load", warehouse, "a [b] `c`", __file__), ("init", warehouse)):
            result = run(*arguments)
            assert (result.exit_code, result.stderr.startswith("error [WAREHOUSE_LOCKED]")) == (4, True)
        assert run("status", warehouse).exit_code == 0, "readers are never blocked"


def test_an_interrupt_ends_quietly(run: Run, warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(engine: Engine) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Engine, "status", interrupted)
    result = run("status", warehouse)
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "interrupted\n")


def test_a_wrong_budget_is_a_coded_error(run: Run, warehouse: Path) -> None:
    result = run("status", warehouse, "--memory-budget", "much", "--json")
    assert (result.exit_code, json.loads(result.stdout)["error"]["code"]) == (1, "BUDGET_INVALID")


@pytest.mark.parametrize(
    "arguments",
    [
        ("status",),
        ("nope",),
        ("history", "wh", "v", "--limit", "0"),
        ("load", "wh", "t"),
        ("load", "wh", "t", "absent.csv"),
        ("create-view", "wh", "v", "@absent.sql"),
        ("bench", "tpch", "--queries", "one"),
        ("bench", "iqp"),
        ("bench", "iqp", "--figure", "3", "--table", "2"),
        ("bench", "iqp", "--figure", "5", "--only-auto"),
        ("sql", "wh"),
        ("sql", "wh", "SHOW MATERIALIZED VIEWS", "-f", __file__),
        ("sql", "wh", "-f", "absent.sql"),
        ("demo", "--sf", "0"),
        ("run", "wh", "--once", "--until-complete"),
        ("what-if", "wh"),
        ("what-if", "wh", "v", "--forecast", "lines"),
        ("what-if", "wh", "v", "--forecast", "lines=many"),
        ("forecasts", "wh", "v", "--limit", "0"),
    ],
)
def test_a_wrong_command_line_is_told_apart(run: Run, arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Usage:" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "module"),
    [(("tpch",), "tpch"), (("steady",), "steady"), (("division",), "division"), (("iqp", "--figure", "3"), "iqp"),
     (("iqp", "--table", "2"), "iqp_movies")],
)  # fmt: skip
def test_a_benchmark_with_a_wrong_result_fails(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], module: str
) -> None:
    for verified, status in ((1.0, 0), (0.0, 3)):
        document = {"summary": {"all verified": verified}}
        monkeypatch.setattr(f"slackwater.bench.{module}.command", lambda *a, found=document, **k: found)
        result = run("bench", *arguments, "--json")
        assert (result.exit_code, json.loads(result.stdout)) == (status, document)


def test_a_spark_that_explain_turns_out_to_need_starts_in_silence(
    warehouse: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Where a recompute may be cheaper, what states may occupy is asked for, and Spark's memory has a say in that."""
    with Engine(warehouse) as engine:
        add_table(engine, LINES, 60_000_000)
        add_table(engine, ORDERS, 15_000_000)
        add_view(engine, "totals", TOTALS)

    def start() -> SparkSession:
        os.write(2, b"WARN Utils: Your hostname resolves to a loopback address\n")
        raise sw.SlackwaterError("SPARK_FAILED", "no Spark in this test", "")

    monkeypatch.setattr("slackwater.engine.start_spark", start)
    result = CliRunner().invoke(cli, ["explain", str(warehouse), "totals"])
    assert result.stderr == "starting Spark …\nerror [SPARK_FAILED] no Spark in this test\n"
    assert result.exit_code == 1
    assert "WARN" not in capfd.readouterr().err


def test_one_wrong_result_of_tpch_is_seen_in_the_summary() -> None:
    figures = {label: [0.5] for label in ("1%", "0.1%")}
    results = {q: Measured(q, [1.0], [1.0], figures, figures, figures, verified=True) for q in (1, 3)}
    assert summary(results)["all verified"] == 1.0
    results[3].checked("the deltas of 1%", equal=False)
    results[3].checked("the end", equal=True)
    assert summary(results)["all verified"] == 0.0, "once wrong is wrong"


def test_a_refresh_of_tpch_that_was_a_recompute_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    results = {q: Measured(q, [1.0], [1.0], verified=True) for q in (1, 3)}
    for query, measured in results.items():
        for label in ("1%", "0.1%"):
            measured.warming[label] = [0.5]
            for mode in ("incremental", "recompute" if (query, label) == (3, "0.1%") else "incremental"):
                measured.counted(label, Refresh("v", mode, 1, 2, seconds={"total": 0.5}), 1.0)
    print_table(results, summary(results), Console(width=160))
    shown = capsys.readouterr().out
    assert "  Q3, 0.1%: 1 of 2 not incremental (recompute)\n" in shown
    assert shown.count("not incremental (") == 1
    assert "counted refreshes that were not incremental: 1.00" in shown
    assert results[3].to_dict()["modes"] == {"1%": ["incremental"] * 2, "0.1%": ["incremental", "recompute"]}


@pytest.mark.parametrize(
    ("policy", "code"),
    [("every 0s", "POLICY_INVALID"), ("often", "POLICY_INVALID"), ("manual & rows 5", "POLICY_NEVER")],
)
def test_a_bad_policy_is_refused_before_spark_starts(run: Run, warehouse: Path, policy: str, code: str) -> None:
    result = run("create-view", warehouse, "v", "SELECT 1", "--refresh", policy, "--json")
    assert (result.exit_code, json.loads(result.stdout)["error"]["code"]) == (1, code)


def test_running_once_with_nothing_to_do_starts_no_spark(run: Run, warehouse: Path) -> None:
    assert json.loads(run("run", warehouse, "--once", "--json").stdout) == {
        "refreshes": [],
        "polls": [],
        "failures": [],
        "notes": [],
    }
    assert run("run", warehouse, "--once").stdout == "Nothing was refreshed.\n"
    ended = run("run", warehouse, "--until-complete", "--json")
    expected = {"ticks": 1, "refreshes": {}, "failures": {}, "rows_from_sources": 0}
    assert (ended.exit_code, json.loads(ended.stdout)) == (0, expected)
    wrong = run("run", warehouse, "--poll", "0s", "--json")
    assert (wrong.exit_code, json.loads(wrong.stdout)["error"]["code"]) == (1, "POLICY_INVALID")


def _heed_interrupts() -> None:
    """What a shell starts in the background ignores them, and so do its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_cleanly(warehouse: Path, number: signal.Signals) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    command = [sys.executable, "-m", "slackwater.cli", "run", str(warehouse), "--poll", "1h"]
    with subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=_heed_interrupts,
    ) as child:  # fmt: skip
        assert child.stderr is not None
        assert child.stderr.readline() == "running; Ctrl-C ends it\n"
        time.sleep(0.3)
        child.send_signal(number)
        stdout, stderr = child.communicate(timeout=30)
    assert (child.returncode, stdout, stderr) == (0, "Ended. Refreshes: 0; looks: 1.\n", "")
    with Engine(warehouse):
        pass  # the lease was given back


def test_statements_that_look_need_neither_spark_nor_the_lease(run: Run, warehouse: Path, tmp_path: Path) -> None:
    script = tmp_path / "two.sql"
    script.write_text("-- all of them\nSHOW MATERIALIZED VIEWS; SHOW MATERIALIZED VIEWS;\n")
    with Engine(warehouse):
        assert run("sql", warehouse, "SHOW MATERIALIZED VIEWS").stdout == "there are no materialized views\n"
        found = json.loads(run("sql", warehouse, "-f", script, "--json").stdout)
    assert found == {"results": [{"statement": "SHOW MATERIALIZED VIEWS", "result": []}] * 2}


def test_a_script_is_read_whole_before_any_of_it_runs(run: Run, warehouse: Path) -> None:
    result = run("sql", warehouse, "DROP MATERIALIZED VIEW nope; SELEC 1", "--json")
    error = json.loads(result.stdout)["error"]
    assert (result.exit_code, error["code"], error["details"]["position"]) == (1, "STATEMENT_UNSUPPORTED", 29)


def test_a_script_stops_at_the_first_failure_and_tells_what_was_done(run: Run, warehouse: Path) -> None:
    text = "DROP MATERIALIZED VIEW IF EXISTS a; DROP MATERIALIZED VIEW b; DROP MATERIALIZED VIEW IF EXISTS c"
    result = run("sql", warehouse, text, "--json")
    found = json.loads(result.stdout)
    assert (result.exit_code, found["error"]["code"]) == (1, "VIEW_UNKNOWN")
    assert [r["result"]["outcome"] for r in found["results"]] == ["skipped"]
    words = run("sql", warehouse, text)
    assert (words.exit_code, words.stdout) == (1, "there is no view a\n")
    assert words.stderr.startswith("error [VIEW_UNKNOWN]")


def test_an_unknown_table_is_refused_before_spark_starts(run: Run, warehouse: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("id,name\n1,x\n")
    result = run("load", warehouse, "nope", rows)
    assert (result.exit_code, result.stderr.split("]")[0]) == (1, "error [TABLE_UNKNOWN")


@pytest.mark.parametrize(
    "command",
    [
        "",
        "init",
        "refresh",
        "run",
        "set-policy",
        "status",
        "explain",
        "verify",
        "history",
        "create-table",
        "create-view",
        "load",
        "demo",
        "sql",
        "check",
        "what-if",
        "forecasts",
        "calibrate",
    ],
)
def test_help_tells_the_exit_codes(run: Run, command: str) -> None:
    text = run(*command.split(), "--help").stdout
    for code, meaning in (
        (0, "fine"),
        (1, "error with a code"),
        (3, "differs"),
        (4, "another writer"),
        (130, "interr"),
    ):
        assert any(line.strip().startswith(str(code)) and meaning in line for line in text.splitlines())


def test_help_lists_the_commands(run: Run) -> None:
    text = run("--help").stdout
    lines = text.partition("Commands:")[2].partition("Exit codes")[0].splitlines()
    listed = [line.split()[0] for line in lines if line.strip()]
    expected = [
        "bench",
        "calibrate",
        "check",
        "create-table",
        "create-view",
        "demo",
        "explain",
        "forecasts",
        "history",
        "init",
        "load",
        "refresh",
        "run",
        "set-policy",
        "sql",
        "status",
    ]
    assert listed == [*expected, "verify", "what-if"]
    assert run("--version").stdout == f"slackwater, version {__version__}\n"


def test_a_spark_that_does_not_start_is_told_in_a_sentence(warehouse: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src"), "JAVA_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "slackwater.cli", "create-table", str(warehouse), "t", "id INT", "--json"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    error = json.loads(result.stdout)["error"]
    assert (result.returncode, error["code"], result.stderr) == (1, "SPARK_FAILED", "")
    assert "No such file" in error["message"]

"""Eligibility, SQL statements and changed queries, on a real Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.cli import cli
from slackwater.ddl_running import Done, Explained, Listing
from slackwater.errors import StatementError
from tests.spark.settling import settle, sorted_rows

TOTALS = "SELECT region, sum(amount) AS total FROM orders JOIN customers ON cust = name GROUP BY region"


@pytest.fixture
def shop(engine: sw.Engine) -> sw.Engine:
    """A warehouse with orders and customers."""
    orders = engine.create_table("orders", "o_id BIGINT, cust STRING, amount INT, weight DOUBLE")
    customers = engine.create_table("customers", "name STRING, region STRING")
    orders.insert([(i, "abc"[i % 3], i, i / 7) for i in range(60)])
    customers.insert([("a", "north"), ("b", "south"), ("c", "south")])
    return engine


# --- eligibility -----------------------------------------------------------------------------------------------------


def test_check_tells_the_way_of_each_operator(shop: sw.Engine) -> None:
    version = shop.catalog.version()
    found = shop.check(TOTALS)
    ways = {o.label.split()[0]: o.code for o in found.operators}
    assert (found.verdict, ways["Aggregate"], ways["Join"], ways["Scan"]) == (
        "incremental",
        "PARTIALS_ADD",
        "BILINEAR",
        "TABLE_CHANGES",
    )
    assert "PARTIALS_MERGE" in shop.check("SELECT cust, max(amount) AS m FROM orders GROUP BY cust").codes
    top = shop.check(f"{TOTALS} ORDER BY total DESC LIMIT 2")
    assert (top.verdict, top.codes[0]) == ("incremental", "ORDER_REDONE")
    first = shop.check("SELECT o_id, amount FROM orders ORDER BY amount DESC LIMIT 2")
    assert (first.verdict, first.codes[:2]) == ("incremental", ("ORDER_REDONE", "FIRST_KEPT"))
    most = shop.check("SELECT o_id, amount FROM orders ORDER BY amount DESC LIMIT 20000")
    assert (most.verdict, most.codes[0]) == ("recomputed", "ORDER_READS_ALL")
    moving = shop.check("SELECT now() AS t, o_id FROM orders")
    assert (moving.verdict, moving.codes) == ("refused", ("QUERY_NONDETERMINISTIC",))
    assert shop.check("SELEC").codes == ("QUERY_INVALID",)
    assert shop.check(shop.table("orders").relation().groupBy("cust").count()).incremental
    assert shop.check(lambda t: t["orders"].groupBy("cust").count()).incremental
    assert (shop.catalog.version(), shop.views()) == (version, []), "a check changes nothing"


@pytest.mark.slow
def test_a_query_over_floating_point_aggregates_is_computed_from_their_groups(shop: sw.Engine) -> None:
    sql = "SELECT max(w) AS m FROM (SELECT cust, sum(weight) AS w FROM orders GROUP BY cust)"
    found = shop.check(sql)
    assert found.verdict == "partly incremental"
    assert "FLOATING_INPUT" in found.codes
    view = shop.create_view("v", sql, strategy="incremental")
    shop.table("orders").insert([(100, "a", 1, 0.1)])
    settle(view)


def test_explain_uses_the_words_of_check(shop: sw.Engine) -> None:
    view = shop.create_view("totals", TOTALS)
    explained = str(view.explain(sql=False))
    assert "· merge [PARTIALS_ADD]" in explained
    assert "· delta [BILINEAR]" in explained
    for operator in shop.check(TOTALS).operators:
        assert operator.text in explained


def test_a_strict_view_is_incremental_or_refused(shop: sw.Engine) -> None:
    assert shop.create_view("fine", TOTALS, strict=True).declared.strict
    version = shop.catalog.version()
    with pytest.raises(sw.SlackwaterError) as caught:
        shop.create_view("no", "SELECT o_id, amount FROM orders ORDER BY amount LIMIT 20000", strict=True)
    assert caught.value.code == "QUERY_NOT_INCREMENTAL"
    assert "[ORDER_READS_ALL]" in caught.value.message
    report = caught.value.details["eligibility"]
    assert isinstance(report, dict)
    assert report["verdict"] == "recomputed"
    assert shop.catalog.version() == version


# --- statements ------------------------------------------------------------------------------------------------------


def test_a_view_from_its_creation_to_its_end(shop: sw.Engine) -> None:
    made = shop.sql(
        """CREATE MATERIALIZED VIEW `a;b ``c` (`where`, n) COMMENT 'it''s; AS' REFRESH POLICY INCREMENTAL STRICT
           SCHEDULE EVERY 5 MINUTES MEMORY BUDGET '5MB'
           AS -- ; a remark
           WITH x AS (SELECT cust AS c, 'a;b' AS s FROM orders)
           SELECT c, count(s) /* ; */ FROM x GROUP BY c ORDER BY c;"""
    )
    assert isinstance(made, Done)
    assert (made.view, made.outcome) == ("a;b `c", "created")
    view = shop.view("a;b `c")
    assert [tuple(r) for r in view.result().collect()] == [("a", 20), ("b", 20), ("c", 20)]
    assert view.columns == ("where", "n")
    assert view.sql is not None
    assert view.sql.startswith("-- ; a remark\n")
    assert view.sql.endswith("ORDER BY c")
    shop.table("orders").insert([(100, "a", 5, 0.5)])
    refreshed = shop.sql("refresh materialized view `A;B ``C`")
    assert isinstance(refreshed, sw.Refresh)
    assert (refreshed.mode, refreshed.budget_bytes) == ("incremental", 5_000_000)
    assert view.verify()

    shown = shop.sql("SHOW MATERIALIZED VIEWS")
    assert isinstance(shown, Listing)
    assert [(r["name"], r["refresh_policy"], r["schedule"], r["verdict"]) for r in shown] == [
        ("a;b `c", "INCREMENTAL STRICT", "EVERY 5 MINUTES", "incremental")
    ]
    described = shop.sql("DESCRIBE MATERIALIZED VIEW `a;b ``c`")
    assert isinstance(described, Listing)
    facts = {r["col_name"]: r["data_type"] for r in described}
    assert (facts["where"], facts["n"], facts["# Memory budget"]) == ("string", "bigint", "5000000")
    assert "· merge [PARTIALS_ADD]" in str(shop.sql("EXPLAIN MATERIALIZED VIEW `a;b ``c`"))
    assert shop.sql("REFRESH MATERIALIZED VIEW `a;b ``c` FULL").mode == "recompute"  # type: ignore[union-attr]

    assert shop.sql("DROP MATERIALIZED VIEW `a;b ``c`").outcome == "dropped"  # type: ignore[union-attr]
    assert shop.sql("DROP MATERIALIZED VIEW IF EXISTS `a;b ``c`").outcome == "skipped"  # type: ignore[union-attr]
    with pytest.raises(sw.SlackwaterError, match="VIEW_UNKNOWN"):
        shop.sql("DROP MATERIALIZED VIEW `a;b ``c`")


def test_if_not_exists_leaves_a_view_alone(shop: sw.Engine) -> None:
    shop.sql("CREATE MATERIALIZED VIEW v AS SELECT cust FROM orders")
    version = shop.catalog.version()
    done = shop.sql("CREATE MATERIALIZED VIEW IF NOT EXISTS V AS SELECT amount FROM orders")
    assert isinstance(done, Done)
    assert (done.outcome, shop.view("v").columns, shop.catalog.version()) == ("skipped", ("cust",), version)
    with pytest.raises(sw.SlackwaterError, match="VIEW_EXISTS"):
        shop.sql("CREATE MATERIALIZED VIEW v AS SELECT amount FROM orders")
    with pytest.raises(StatementError, match="STATEMENT_UNSUPPORTED"):
        shop.sql("SELECT * FROM v")


@pytest.mark.parametrize("columns", ["a", "a, b, c", "a, A"])
def test_a_column_list_must_fit(shop: sw.Engine, columns: str) -> None:
    with pytest.raises(sw.SlackwaterError, match="COLUMNS_MISMATCH"):
        shop.sql(f"CREATE MATERIALIZED VIEW v ({columns}) AS SELECT cust, amount FROM orders")
    assert shop.views() == []


def test_policies_decide_between_delta_and_recompute(shop: sw.Engine) -> None:
    for policy in ("AUTO", "INCREMENTAL", "FULL"):
        shop.sql(f"CREATE MATERIALIZED VIEW {policy}_v REFRESH POLICY {policy} AS {TOTALS}")
    shop.table("orders").insert([(i, "abc"[i % 3], i, 0.0) for i in range(100, 200)])
    settle(shop.view("AUTO_v"), "recompute")
    settle(shop.view("INCREMENTAL_v"), "incremental")
    settle(shop.view("FULL_v"), "recompute")
    assert shop.view("FULL_v").state_bytes() == 0


def test_a_budget_of_its_own_caps_a_view_and_no_other(shop: sw.Engine) -> None:
    shop.sql(f"CREATE MATERIALIZED VIEW poor MEMORY BUDGET '0' AS {TOTALS}")
    shop.sql(f"CREATE MATERIALIZED VIEW rich AS {TOTALS}")
    poor, rich = shop.view("poor"), shop.view("rich")
    assert (poor.state_bytes(), poor.states) == (0, {})
    assert rich.state_bytes() > 0
    shop.table("orders").insert([(100, "a", 5, 0.5)])
    settle(poor, "recompute")
    settle(rich, "incremental")
    assert "of a budget of 0 B" in str(poor.explain())


def test_schedules_are_added_changed_and_dropped(shop: sw.Engine, spark: SparkSession) -> None:
    shop.sql("CREATE MATERIALIZED VIEW v AS SELECT cust FROM orders")
    view = shop.view("v")
    with pytest.raises(sw.SlackwaterError, match="SCHEDULE_MISSING"):
        shop.sql("ALTER MATERIALIZED VIEW v DROP SCHEDULE")
    shop.sql("ALTER MATERIALIZED VIEW v ADD SCHEDULE EVERY 1 HOUR")
    assert view.declared.schedule == "EVERY 1 HOUR"
    with pytest.raises(sw.SlackwaterError, match="SCHEDULE_EXISTS"):
        shop.sql("ALTER MATERIALIZED VIEW v ADD SCHEDULE EVERY 2 HOURS")
    shop.sql("ALTER MATERIALIZED VIEW v ALTER SCHEDULE CRON '0 30 6 ? * MON-FRI' AT TIME ZONE 'Europe/Oslo'")
    shop.table("orders").insert([(100, "a", 5, 0.5)])
    settle(view, "incremental")
    with sw.Engine(shop.path, spark=spark, read_only=True) as again:
        assert again.view("v").declared.schedule == "CRON '0 30 6 ? * MON-FRI' AT TIME ZONE 'Europe/Oslo'"
        assert again.view("v").policy == view.policy == sw.cron("0 30 6 ? * mon-fri", "Europe/Oslo")
    shop.sql("ALTER MATERIALIZED VIEW v DROP SCHEDULE")
    assert view.declared.schedule == ""


def test_a_renamed_view_keeps_its_states_and_history(shop: sw.Engine, spark: SparkSession) -> None:
    shop.sql(f"CREATE MATERIALIZED VIEW totals REFRESH POLICY INCREMENTAL SCHEDULE EVERY 1 HOUR AS {TOTALS}")
    view = shop.view("totals")
    states = dict(view.states)
    assert shop.check("SELECT total FROM totals").verdict == "incremental"
    assert shop.sql("ALTER MATERIALIZED VIEW totals RENAME TO Sums").outcome == "renamed"  # type: ignore[union-attr]
    view.rename("sums")
    assert (shop.view("sums"), view.states) == (view, states)
    assert shop.check("SELECT total FROM totals").codes == ("QUERY_INVALID",), "the old name stands for nothing"
    most = shop.create_view("most", "SELECT max(total) AS most FROM sums")
    with pytest.raises(sw.SlackwaterError, match="VIEW_IN_USE"):
        view.rename("totals")
    shop.table("orders").insert([(100, "a", 5000, 0.5)])
    settle(most, None)
    assert sorted_rows(most) == [(5570,)]
    shop.close()
    with sw.Engine(shop.path, spark=spark) as again:
        sums = again.view("sums")
        assert (sums.declared.schedule, sums.policy, len(sums.history())) == ("EVERY 1 HOUR", sw.every("1h"), 2)
        again.table("orders").delete([(100, "a", 5000, 0.5)])
        settle(sums, "incremental")
        with pytest.raises(sw.SlackwaterError, match="VIEW_UNKNOWN"):
            again.view("totals")


def test_explain_before_creation(shop: sw.Engine) -> None:
    found = shop.sql(f"EXPLAIN {TOTALS}")
    assert isinstance(found, Explained)
    assert found.eligibility == shop.check(TOTALS)
    strict = shop.sql(
        "EXPLAIN CREATE MATERIALIZED VIEW v REFRESH POLICY INCREMENTAL STRICT"
        " AS SELECT o_id FROM orders ORDER BY 1 LIMIT 20000"
    )
    assert isinstance(strict, Explained)
    assert strict.obstacle is not None
    assert strict.obstacle.code == "QUERY_NOT_INCREMENTAL"
    refused = shop.sql("EXPLAIN CREATE MATERIALIZED VIEW v AS SELECT rand() AS r FROM orders")
    assert isinstance(refused, Explained)
    assert refused.eligibility.verdict == "refused"
    mismatch = shop.sql("EXPLAIN CREATE MATERIALIZED VIEW v (a, b) AS SELECT cust FROM orders")
    assert isinstance(mismatch, Explained)
    assert mismatch.obstacle is not None
    assert mismatch.obstacle.code == "COLUMNS_MISMATCH"
    for cron, code in (("0 0 6 LW * ?", "POLICY_UNSUPPORTED"), ("0 0 6 13 * FRI", "POLICY_INVALID")):
        late = shop.sql(f"EXPLAIN CREATE MATERIALIZED VIEW v SCHEDULE CRON '{cron}' AS SELECT cust FROM orders")
        assert isinstance(late, Explained)
        assert (late.eligibility.verdict, late.to_json()["obstacle"]["code"]) == ("incremental", code)
    assert shop.views() == []


# --- replacing -------------------------------------------------------------------------------------------------------


def test_the_same_query_keeps_everything(shop: sw.Engine) -> None:
    shop.sql(f"CREATE MATERIALIZED VIEW totals AS {TOTALS}")
    view, version = shop.view("totals"), shop.catalog.version()
    states = dict(view.states)
    done = shop.sql(f"CREATE OR REPLACE MATERIALIZED VIEW totals AS {TOTALS}")
    assert isinstance(done, Done)
    assert (done.outcome, shop.catalog.version()) == ("unchanged", version)
    # The same plan in other words, with a comment: that is recorded, and nothing else changes.
    spaced = TOTALS.replace(" FROM", "  FROM")
    shop.sql(f"CREATE OR REPLACE MATERIALIZED VIEW totals COMMENT 'c' REFRESH POLICY INCREMENTAL AS {spaced}")
    assert shop.view("totals") is view
    assert (view.declared.comment, view.strategy, view.sql, view.states) == ("c", "incremental", spaced, states)
    shop.table("orders").insert([(100, "a", 5, 0.5)])
    settle(view, "incremental")


def test_replacing_reuses_what_the_new_query_needs(shop: sw.Engine, spark: SparkSession) -> None:
    old = shop.create_view("totals", TOTALS)
    aggregate, kept = next((k, s.rdd_ids()) for k, s in old.states.items() if s.partial)
    statement = f"CREATE OR REPLACE MATERIALIZED VIEW totals AS {TOTALS} HAVING sum(amount) > 600"
    planned = shop.sql(f"EXPLAIN {statement}")
    assert isinstance(planned, Explained)
    assert planned.replacement is not None
    assert [s.key for s in planned.replacement.reused] == [aggregate]
    assert old.verify(), "explaining changes nothing"
    done = shop.sql(statement)
    assert isinstance(done, Done)
    assert done.replacement is not None
    assert ([s.key for s in done.replacement.reused], done.replacement.lost) == ([aggregate], ())
    assert done.refresh is not None
    assert done.refresh["mode"] == "initial"
    new = shop.view("totals")
    assert sorted_rows(new) == [("south", 1200)]
    assert new.states[aggregate].rdd_ids() == kept, "the rows were computed again"
    assert new.known_bytes()[aggregate] > 0
    with pytest.raises(sw.SlackwaterError, match="VIEW_DROPPED"):
        old.result()
    shop.table("orders").insert([(100, "a", 500, 0.5)])
    settle(new, "incremental")
    assert sorted_rows(new) == [("north", 1070), ("south", 1200)]
    shop.close()
    with sw.Engine(shop.path, spark=spark) as again:
        again.table("orders").delete([(100, "a", 500, 0.5)])
        settle(again.view("totals"), "incremental")


def test_replacing_reuses_the_input_of_a_join_with_its_deletes(shop: sw.Engine) -> None:
    query = "SELECT region, {} AS x FROM orders JOIN customers ON cust = name WHERE amount < 9 GROUP BY region"
    view = shop.create_view("v", query.format("sum(amount)"))
    shop.table("orders").delete([(3, "a", 3, 3 / 7)])
    settle(view, "incremental")
    joined = {key for key, state in view.states.items() if not state.partial}
    assert any(view.states[key].weighted for key in joined)
    view = shop.create_view("v", query.format("max(amount)"), replace=True, discard_states=True)
    assert view.replacement is not None
    assert {s.key for s in view.replacement.reused} == joined
    assert sorted_rows(view) == [("north", 6), ("south", 8)]
    shop.table("orders").delete([(8, "c", 8, 8 / 7)])
    shop.table("orders").insert([(100, "a", 8, 0.5)])
    settle(view, "incremental")


def test_replacing_after_a_restart_reuses_saved_states(shop: sw.Engine, spark: SparkSession) -> None:
    query = TOTALS.replace(" GROUP BY", " WHERE amount < 9 GROUP BY")
    shop.create_view("totals", query)
    shop.close()
    with sw.Engine(shop.path, spark=spark) as again:
        view = again.create_view("totals", f"{query} HAVING sum(amount) > 20", replace=True)
        assert view.replacement is not None
        assert len(view.replacement.reused) == 2, "the aggregate, and the filtered orders that only a change reads"
        assert {p.parent.name for p in (again.path / "states").glob("*/*")} == set(), "the old view's files are gone"
        again.table("customers").insert([("a", "south")])
        settle(view, "incremental")
        assert sorted_rows(view) == [("south", 36)]


def test_replacing_asks_before_it_throws_states_away(shop: sw.Engine) -> None:
    old = shop.create_view("totals", TOTALS)
    version, before = shop.catalog.version(), sorted_rows(old)
    other = "SELECT region, max(amount) AS total FROM orders JOIN customers ON cust = name GROUP BY region"
    with pytest.raises(sw.SlackwaterError) as caught:
        shop.create_view("totals", other, replace=True)
    assert caught.value.code == "STATES_AT_STAKE"
    replacement = caught.value.details["replacement"]
    assert isinstance(replacement, dict)
    assert replacement["lost_bytes"] == old.state_bytes() > 0
    assert (shop.catalog.version(), sorted_rows(old)) == (version, before)
    shop.sql(f"CREATE OR REPLACE MATERIALIZED VIEW totals DISCARD STATES AS {other}")
    new = shop.view("totals")
    assert sorted_rows(new) == [("north", 57), ("south", 59)]
    shop.table("orders").insert([(100, "a", 500, 0.5)])
    settle(new, "incremental")
    assert [v.name for v in shop.views()] == ["totals"]


def test_a_state_behind_its_tables_is_not_reused(shop: sw.Engine) -> None:
    shop.create_view("totals", TOTALS)
    shop.table("orders").insert([(100, "a", 5, 0.5)])
    filtered = f"{TOTALS} HAVING sum(amount) > 600"
    with pytest.raises(sw.SlackwaterError, match="orders has changed since: refresh the view first"):
        shop.create_view("totals", filtered, replace=True)
    view = shop.create_view("totals", filtered, replace=True, discard_states=True)
    assert view.verify()


@pytest.mark.slow
def test_other_settings_are_another_view(shop: sw.Engine, spark: SparkSession) -> None:
    shop.create_view("totals", TOTALS)
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        with pytest.raises(sw.SlackwaterError, match="settings of Spark that the view depends on have changed"):
            shop.create_view("totals", TOTALS, replace=True)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.parametrize(
    "point",
    [
        pytest.param("segment.after_write", marks=pytest.mark.slow),
        pytest.param("commit.before", marks=pytest.mark.slow),
        "commit.inside",
    ],
)
def test_a_replacement_that_fails_leaves_the_old_view(
    shop: sw.Engine, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = shop.create_view("totals", TOTALS)
    version, before = shop.catalog.version(), sorted_rows(old)
    monkeypatch.setenv("SLACKWATER_FAIL_AT", point)
    with pytest.raises((sw.SlackwaterError, OSError)):
        shop.create_view("totals", f"{TOTALS} HAVING sum(amount) > 600", replace=True, discard_states=True)
    monkeypatch.delenv("SLACKWATER_FAIL_AT")
    assert (shop.catalog.version(), sorted_rows(shop.view("totals"))) == (version, before)
    assert shop.view("totals") is old
    shop.table("orders").insert([(100, "a", 5, 0.5)])
    settle(old, "incremental")


@pytest.mark.slow
def test_a_new_query_that_fails_on_the_data_leaves_the_old_view(shop: sw.Engine) -> None:
    old = shop.create_view("totals", TOTALS)
    with pytest.raises(sw.SlackwaterError, match="SPARK_FAILED"):
        shop.create_view("totals", "SELECT cust, 1 / amount AS x FROM orders", replace=True, discard_states=True)
    shop.table("orders").insert([(100, "a", 5, 0.5)])
    settle(old, "incremental")


# --- the command line ------------------------------------------------------------------------------------------------


def test_sql_and_check_from_the_shell(shop: sw.Engine, tmp_path: Path) -> None:
    place = str(shop.path)
    shop.close()

    def run(*arguments: str) -> Any:
        return CliRunner().invoke(cli, list(arguments), catch_exceptions=False)

    script = tmp_path / "views.sql"
    script.write_text(
        f"CREATE MATERIALIZED VIEW a AS {TOTALS};\n-- next;\nCREATE MATERIALIZED VIEW b AS SELECT cust FROM orders;\n"
        "REFRESH MATERIALIZED VIEW a; SHOW MATERIALIZED VIEWS"
    )
    done = json.loads(run("sql", place, "-f", str(script), "--json").stdout)["results"]
    assert [r["statement"].split()[0] for r in done] == ["CREATE", "CREATE", "REFRESH", "SHOW"]
    assert (done[0]["result"]["outcome"], done[2]["result"]["mode"]) == ("created", "none")
    assert [r["name"] for r in done[3]["result"]] == ["a", "b"]
    replace = f"CREATE OR REPLACE MATERIALIZED VIEW a AS {TOTALS.replace('sum', 'max')}"
    refused = run("sql", place, replace)
    assert refused.exit_code == 1
    assert "error [STATES_AT_STAKE]" in refused.stderr
    agreed = run("sql", place, replace, "--yes")
    assert agreed.exit_code == 0, agreed.output
    assert "view a was replaced" in agreed.stdout

    checked = run("check", place, TOTALS, "--json")
    assert (checked.exit_code, json.loads(checked.stdout)["verdict"]) == (0, "incremental")
    assert "· merge [PARTIALS_ADD]" in run("check", place, TOTALS).stdout
    moving = run("check", place, "SELECT rand() AS r FROM orders", "--json")
    assert (moving.exit_code, json.loads(moving.stdout)["codes"]) == (1, ["QUERY_NONDETERMINISTIC"])

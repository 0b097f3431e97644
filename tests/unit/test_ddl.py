"""The head of a statement is read; what follows AS is handed on as it was written."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from slackwater.arrivals import cron, every, manual
from slackwater.ddl import (
    AlterSchedule,
    CreateView,
    DescribeView,
    DropView,
    ExplainCreate,
    ExplainView,
    RefreshView,
    RenameView,
    ShowViews,
    Statement,
    parse,
    parse_all,
)
from slackwater.errors import SlackwaterError, StatementError
from slackwater.schedules import Schedule, policy_of, schedule_of


def create(**given: Any) -> CreateView:
    return CreateView(**{"name": "v", "query": "SELECT 1", **given})


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CREATE MATERIALIZED VIEW v AS SELECT 1", create()),
        ("create or replace materialized view v as SELECT 1;", create(replace=True)),
        ("CREATE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT 1", create(if_not_exists=True)),
        ("CREATE MATERIALIZED VIEW v(a, `b c`,d)AS SELECT 1", create(columns=("a", "b c", "d"))),
        ("CREATE MATERIALIZED VIEW `AS` AS SELECT 1", create(name="AS")),
        ("CREATE MATERIALIZED VIEW if AS SELECT 1", create(name="if")),
        (
            "CREATE MATERIALIZED VIEW comment COMMENT 'AS SELECT 2' AS SELECT 1",
            create(name="comment", comment="AS SELECT 2"),
        ),
        ("CREATE MATERIALIZED VIEW v COMMENT \"it's\" AS SELECT 1", create(comment="it's")),
        ("CREATE MATERIALIZED VIEW v COMMENT 'it''s' AS SELECT 1", create(comment="it's")),
        ("CREATE MATERIALIZED VIEW v REFRESH POLICY AUTO AS SELECT 1", create()),
        ("CREATE MATERIALIZED VIEW v REFRESH POLICY FULL AS SELECT 1", create(strategy="rebatch")),
        ("CREATE MATERIALIZED VIEW v REFRESH POLICY INCREMENTAL AS SELECT 1", create(strategy="incremental")),
        (
            "CREATE MATERIALIZED VIEW v REFRESH POLICY INCREMENTAL STRICT AS SELECT 1",
            create(strategy="incremental", strict=True),
        ),
        ("CREATE MATERIALIZED VIEW v SCHEDULE EVERY 1 HOUR AS SELECT 1", create(schedule=Schedule(1, "HOUR"))),
        (
            "CREATE MATERIALIZED VIEW v SCHEDULE REFRESH EVERY 90 seconds AS SELECT 1",
            create(schedule=Schedule(90, "SECOND")),
        ),
        (
            "CREATE MATERIALIZED VIEW v SCHEDULE CRON '0 0 * * * ?' AT TIME ZONE 'Europe/Oslo' AS SELECT 1",
            create(schedule=Schedule(cron="0 0 * * * ?", timezone="Europe/Oslo")),
        ),
        ("CREATE MATERIALIZED VIEW v MEMORY BUDGET '512MB' AS SELECT 1", create(memory_budget=512_000_000)),
        (
            "CREATE OR REPLACE MATERIALIZED VIEW v -- AS SELECT 2\n DISCARD STATES /* AS */ COMMENT 'c' AS SELECT 1",
            create(replace=True, discard_states=True, comment="c"),
        ),
        (
            "CREATE MATERIALIZED VIEW v AS WITH a AS (SELECT ';' AS x) SELECT * FROM a ;",
            create(query="WITH a AS (SELECT ';' AS x) SELECT * FROM a"),
        ),
        ("REFRESH MATERIALIZED VIEW v", RefreshView("v")),
        ("REFRESH MATERIALIZED VIEW `v` FULL", RefreshView("v", full=True)),
        ("DROP MATERIALIZED VIEW v", DropView("v")),
        ("DROP MATERIALIZED VIEW IF EXISTS v", DropView("v", if_exists=True)),
        ("ALTER MATERIALIZED VIEW v ADD SCHEDULE EVERY 2 DAYS", AlterSchedule("v", "ADD", Schedule(2, "DAY"))),
        (
            "ALTER MATERIALIZED VIEW v ALTER SCHEDULE REFRESH CRON '5 * * * *'",
            AlterSchedule("v", "ALTER", Schedule(cron="5 * * * *")),
        ),
        ("ALTER MATERIALIZED VIEW v DROP SCHEDULE", AlterSchedule("v", "DROP")),
        ("ALTER MATERIALIZED VIEW v RENAME TO w", RenameView("v", "w")),
        ("alter materialized view `a;b` rename to `c ``d`;", RenameView("a;b", "c `d")),
        ("SHOW MATERIALIZED VIEWS", ShowViews()),
        ("DESCRIBE MATERIALIZED VIEW v", DescribeView("v")),
        ("DESC MATERIALIZED VIEW v", DescribeView("v")),
        ("EXPLAIN MATERIALIZED VIEW v", ExplainView("v")),
        ("EXPLAIN CREATE MATERIALIZED VIEW v AS SELECT 1", ExplainCreate(create())),
        ("EXPLAIN SELECT 1 AS x", ExplainCreate(create(name="", query="SELECT 1 AS x"))),
        ("EXPLAIN (SELECT 1)", ExplainCreate(create(name="", query="(SELECT 1)"))),
        ("EXPLAIN TABLE t |> LIMIT 1", ExplainCreate(create(name="", query="TABLE t |> LIMIT 1"))),
    ],
)  # fmt: skip
def test_statements(text: str, expected: Statement) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "code", "position"),
    [
        ("", "STATEMENT_INVALID", 0),
        (" -- nothing\n;", "STATEMENT_INVALID", 0),
        ("SELECT 1", "STATEMENT_UNSUPPORTED", 0),
        ("ALTER MATERIALIZED VIEW v RENAME w", "STATEMENT_INVALID", 26),
        ("ALTER MATERIALIZED VIEW v RENAME TO", "STATEMENT_INVALID", 35),
        ("ALTER MATERIALIZED VIEW v RENAME TO s.w", "STATEMENT_INVALID", 37),
        ("ALTER MATERIALIZED VIEW v RENAME TO w x", "STATEMENT_INVALID", 38),
        ("ALTER TABLE t RENAME TO u", "STATEMENT_UNSUPPORTED", 0),
        ("  INSERT INTO t VALUES (1)", "STATEMENT_UNSUPPORTED", 2),
        ("CREATE TABLE t (a INT)", "STATEMENT_UNSUPPORTED", 0),
        ("CREATE VIEW v AS SELECT 1", "STATEMENT_UNSUPPORTED", 0),
        ("CREATE OR REFRESH MATERIALIZED VIEW v AS SELECT 1", "STATEMENT_UNSUPPORTED", 0),
        ("EXPLAIN DROP MATERIALIZED VIEW v", "STATEMENT_UNSUPPORTED", 8),
        ("EXPLAIN", "STATEMENT_INVALID", 7),
        ("CREATE MATERIALIZED VIEW AS SELECT 1", "STATEMENT_INVALID", 25),
        ("CREATE MATERIALIZED VIEW 'v' AS SELECT 1", "STATEMENT_INVALID", 25),
        ("CREATE MATERIALIZED VIEW a.b AS SELECT 1", "STATEMENT_INVALID", 26),
        ("CREATE MATERIALIZED VIEW a-b AS SELECT 1", "STATEMENT_INVALID", 26),
        ("CREATE MATERIALIZED VIEW v", "STATEMENT_INVALID", 26),
        ("CREATE MATERIALIZED VIEW v SELECT 1", "STATEMENT_INVALID", 27),
        ("CREATE MATERIALIZED VIEW v AS", "STATEMENT_INVALID", 29),
        ("CREATE MATERIALIZED VIEW v AS -- gone", "STATEMENT_INVALID", 37),
        ("CREATE MATERIALIZED VIEW v () AS SELECT 1", "STATEMENT_INVALID", 28),
        ("CREATE MATERIALIZED VIEW v (a INT) AS SELECT 1", "STATEMENT_INVALID", 30),
        ("CREATE MATERIALIZED VIEW v COMMENT 'a' COMMENT 'b' AS SELECT 1", "STATEMENT_INVALID", 39),
        ("CREATE MATERIALIZED VIEW v CLUSTER BY (a) AS SELECT 1", "STATEMENT_INVALID", 27),
        ("CREATE MATERIALIZED VIEW v REFRESH POLICY STRICT AS SELECT 1", "STATEMENT_INVALID", 42),
        ("CREATE MATERIALIZED VIEW v SCHEDULE EVERY 0 HOURS AS SELECT 1", "STATEMENT_INVALID", 42),
        ("CREATE MATERIALIZED VIEW v SCHEDULE EVERY 5 FORTNIGHTS AS SELECT 1", "STATEMENT_INVALID", 44),
        ("CREATE MATERIALIZED VIEW v SCHEDULE EVERY 5L HOURS AS SELECT 1", "STATEMENT_INVALID", 42),
        ("CREATE MATERIALIZED VIEW v SCHEDULE EVERY 99999999999999999999 HOURS AS SELECT 1", "STATEMENT_INVALID", 42),
        ("CREATE MATERIALIZED VIEW v SCHEDULE CRON 'now; and' AS SELECT 1", "STATEMENT_INVALID", 41),
        (
            "CREATE MATERIALIZED VIEW v SCHEDULE CRON '0 0 * * *' AT TIME ZONE 'Mars/X' AS SELECT 1",
            "STATEMENT_INVALID", 66,
        ),
        (
            "CREATE MATERIALIZED VIEW v SCHEDULE CRON '0 0 * * *' AT TIME ZONE '../x' AS SELECT 1",
            "STATEMENT_INVALID", 66,
        ),
        ("CREATE MATERIALIZED VIEW v MEMORY BUDGET 'much' AS SELECT 1", "BUDGET_INVALID", 41),
        ("CREATE OR REPLACE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT 1", "STATEMENT_INVALID", 36),
        ("CREATE MATERIALIZED VIEW v COMMENT 'open AS SELECT 1", "STATEMENT_INVALID", 35),
        ("CREATE MATERIALIZED VIEW v AS SELECT 1 /* open", "STATEMENT_INVALID", 39),
        ("REFRESH MATERIALIZED VIEW v FULLY", "STATEMENT_INVALID", 28),
        ("SHOW MATERIALIZED VIEWS LIKE 'a'", "STATEMENT_INVALID", 24),
        ("DROP MATERIALIZED VIEW v; DROP MATERIALIZED VIEW w", "STATEMENT_INVALID", 0),
        ("ALTER MATERIALIZED VIEW v SCHEDULE EVERY 1 DAY", "STATEMENT_INVALID", 26),
    ],
)  # fmt: skip
def test_refusals_say_where(text: str, code: str, position: int) -> None:
    with pytest.raises(StatementError) as caught:
        parse(text)
    assert (caught.value.code, caught.value.details["position"]) == (code, position), str(caught.value)
    assert caught.value.message.startswith("line ")


def test_a_place_is_told_by_line_and_column() -> None:
    with pytest.raises(StatementError) as caught:
        parse("CREATE MATERIALIZED VIEW v\n  REFRESH POLICY\n    SOMETIMES AS SELECT 1")
    assert caught.value.details == {"position": 48, "line": 3, "column": 5}
    assert caught.value.message.startswith("line 3, column 5: AUTO, INCREMENTAL [STRICT] or FULL was expected here")


def test_what_is_accepted_is_said() -> None:
    with pytest.raises(StatementError, match="CREATE, REFRESH, ALTER, DROP, SHOW, DESCRIBE and EXPLAIN"):
        parse("TRUNCATE TABLE t")


# --- property: hostile names and queries -----------------------------------------------------------------------------

NAMES = st.text(st.characters(blacklist_categories=("Cs",)), min_size=1, max_size=30)
PARTS = st.one_of(
    st.sampled_from(["SELECT", "AS", "a", "1.5e3", "5L", "\n", "\t", "(", ")", "*", "=", "||", ":x", "?", "é", "😀"]),
    st.text(string.ascii_letters + string.digits + "_ \n+-*/%<>=.,()[]", max_size=8).map(
        lambda s: s.replace("--", "").replace("/*", "")
    ),
    st.text(max_size=8).map(lambda s: "'" + s.replace("\\", "\\\\").replace("'", "\\'") + "'"),
    st.text(max_size=8).map(lambda s: '"' + s.replace("\\", "\\\\").replace('"', '\\"') + '"'),
    st.text(st.characters(blacklist_categories=("Cs",)), max_size=8).map(quoted),
    st.text(max_size=8).map(lambda s: "-- " + s.replace("\n", "").replace("\r", "") + "\n"),
    st.text(string.ascii_letters + ";'\"`", max_size=8).map(lambda s: f"/* {s} */"),
    st.just("r'\\'"),
)  # fmt: skip
QUERIES = st.lists(PARTS, max_size=12).map(lambda parts: "SELECT " + " ".join(parts))


@given(NAMES, QUERIES)
@example("`;--", "SELECT ';' AS `;` -- ;\n, 1 /* ; /* ; */ ; */")
@example("AS", "SELECT r'\\' , ';'")
@example("\\", "SELECT '\\'; DROP MATERIALIZED VIEW x; --'")
def test_names_and_queries_come_through_as_written(name: str, query: str) -> None:
    text = f"CREATE MATERIALIZED VIEW {quoted(name)} ({quoted(name)}) COMMENT ';' AS {query}"
    assert parse(text) == CreateView(name, query.strip(), (name,), ";")
    script = parse_all(f"{text};\nREFRESH MATERIALIZED VIEW {quoted(name)};")
    assert script == (CreateView(name, query.strip(), (name,), ";"), RefreshView(name))
    assert parse(f"EXPLAIN {query}") == ExplainCreate(CreateView("", query.strip()))


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    for statement in ("", "CREATE MATERIALIZED VIEW ", "CREATE MATERIALIZED VIEW v ", "ALTER MATERIALIZED VIEW v "):
        try:
            parse_all(statement + text)
        except StatementError as error:
            position = error.details["position"]
            assert isinstance(position, int)
            assert 0 <= position <= len(statement + text)


# --- schedules -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule(1, "WEEK"),
        Schedule(45, "MINUTE"),
        Schedule(cron="0 0 6 ? * MON-FRI", timezone="UTC"),
        Schedule(cron="*/5 * * * *"),
    ],
)
def test_a_schedule_is_read_back_from_its_text(schedule: Schedule) -> None:
    assert schedule_of(schedule.text) == schedule
    keywords = schedule.text.replace("EVERY", "every").replace("CRON", "cron").replace("AT TIME ZONE", "at  time zone")
    assert schedule_of(f"  {keywords} ") == schedule


def test_schedules_have_seconds() -> None:
    assert [Schedule(2, unit).seconds for unit in ("SECOND", "MINUTE", "HOUR", "DAY", "WEEK")] == [
        2,
        120,
        7200,
        172800,
        1209600,
    ]
    assert schedule_of("") is None
    for wrong in ("daily", "EVERY 5 MINUTES please", "EVERY 1 DAY; EVERY 2 DAYS"):
        with pytest.raises(SlackwaterError):
            schedule_of(wrong)


def test_a_schedule_becomes_a_policy() -> None:
    assert policy_of(Schedule(5, "MINUTE")) == every("5m")
    assert policy_of(Schedule(cron="0 * * * *", timezone="UTC")) == cron("0 * * * *", timezone="UTC")
    quartz = Schedule(cron="0 30 6 ? * MON-FRI", timezone="Europe/Oslo")
    assert policy_of(quartz) == cron("0 30 6 ? * MON-FRI", timezone="Europe/Oslo")
    assert policy_of(Schedule(cron="0 30 6 ? * MON-FRI")) == cron("0 30 6 ? * MON-FRI", timezone="UTC")
    assert policy_of(None) == manual()

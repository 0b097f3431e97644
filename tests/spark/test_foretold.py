"""What EXPLAIN CREATE foretells and what CREATE OR REPLACE asks: the same, and before anything is thrown away."""

from __future__ import annotations

import pytest

import slackwater as sw
from slackwater.ddl_running import Done, Explained
from tests.spark.settling import settle, sorted_rows

TOTALS = "SELECT region, sum(amount) AS total FROM orders JOIN customers ON cust = name GROUP BY region"
SELECTED = "SELECT region, sum(amount) AS total FROM orders JOIN customers ON cust = name WHERE {} GROUP BY region"


@pytest.fixture
def shop(engine: sw.Engine) -> sw.Engine:
    """A warehouse with orders and customers."""
    orders = engine.create_table("orders", "o_id BIGINT, cust STRING, amount INT")
    customers = engine.create_table("customers", "name STRING, region STRING", key=["name"])
    orders.insert([(i, "abc"[i % 3], i) for i in range(60)])
    customers.insert([("a", "north"), ("b", "south"), ("c", "south")])
    return engine


def explained(engine: sw.Engine, statement: str) -> Explained:
    found = engine.sql(f"EXPLAIN {statement}")
    assert isinstance(found, Explained)
    return found


def obstacle(engine: sw.Engine, statement: str) -> str:
    found = explained(engine, statement).obstacle
    return "" if found is None else found.code


def refused(engine: sw.Engine, statement: str) -> str:
    with pytest.raises(sw.SlackwaterError) as caught:
        engine.sql(statement)
    return caught.value.code


# --- the same query, declared otherwise ------------------------------------------------------------------------------


def test_a_budget_that_releases_states_asks_first(shop: sw.Engine) -> None:
    view = shop.create_view("totals", TOTALS, comment="c")
    states, version = dict(view.states), shop.catalog.version()
    assert states
    statement = f"CREATE OR REPLACE MATERIALIZED VIEW totals COMMENT 'c' MEMORY BUDGET '0' {{}} AS {TOTALS}"
    foretold = explained(shop, statement.format("")).replacement
    assert foretold is not None
    assert (foretold.same_query, foretold.altered) == (True, True)
    assert {s.key for s in foretold.lost} == {key for key in states if view.known_bytes()[key]}
    assert "states are lost" in str(foretold)
    assert refused(shop, statement.format("")) == "STATES_AT_STAKE"
    assert (view.states, shop.catalog.version(), view.declared.budget_bytes) == (states, version, None)
    done = shop.sql(statement.format("DISCARD STATES"))
    assert isinstance(done, Done)
    assert done.replacement == foretold
    assert (done.outcome, view.state_bytes(), view.declared.budget_bytes) == ("altered", 0, 0)
    shop.table("orders").insert([(100, "a", 5)])
    settle(view, "recompute")


def test_a_strategy_that_needs_another_plan_asks_first(shop: sw.Engine) -> None:
    view = shop.create_view("totals", TOTALS)
    states = dict(view.states)
    assert states
    with pytest.raises(sw.SlackwaterError, match="the plan was made for another strategy") as caught:
        shop.create_view("totals", TOTALS, strategy="higher_order", replace=True)
    assert caught.value.code == "STATES_AT_STAKE"
    assert (view.strategy, view.states) == ("auto", states)
    shop.create_view("totals", TOTALS, strategy="higher_order", replace=True, discard_states=True)
    assert view.replacement is not None
    assert {s.key for s in view.replacement.lost} == set(states)
    shop.table("orders").insert([(100, "a", 5)])
    assert "another strategy" in settle(view, "recompute").reason


def test_other_declarations_are_recorded_and_said(shop: sw.Engine) -> None:
    view = shop.create_view("totals", TOTALS)
    states = dict(view.states)
    for clause, outcome in (("COMMENT 'c'", "altered"), ("COMMENT 'c'", "unchanged"),
                            ("COMMENT 'c' SCHEDULE EVERY 1 HOUR", "altered"),
                            ("COMMENT 'c' SCHEDULE EVERY 1 HOUR MEMORY BUDGET '1GB'", "altered")):  # fmt: skip
        foretold = explained(shop, f"CREATE OR REPLACE MATERIALIZED VIEW totals {clause} AS {TOTALS}").replacement
        done = shop.sql(f"CREATE OR REPLACE MATERIALIZED VIEW totals {clause} AS {TOTALS}")
        assert isinstance(done, Done)
        assert (done.outcome, done.replacement, view.states) == (outcome, foretold, states), clause
        assert "the query is the same; its result and states are kept" in str(done)


# --- another query ---------------------------------------------------------------------------------------------------


def test_it_is_told_which_states_are_rebuilt(shop: sw.Engine) -> None:
    old = shop.create_view("totals", TOTALS)
    other = f"CREATE OR REPLACE MATERIALIZED VIEW totals DISCARD STATES AS {TOTALS.replace('sum', 'max')}"
    foretold = explained(shop, other).replacement
    assert foretold is not None
    assert foretold.lost
    assert foretold.rebuilt
    assert not {s.key for s in foretold.rebuilt} & old.kept
    done = shop.sql(other)
    assert isinstance(done, Done)
    assert done.replacement == foretold
    assert {s.key for s in foretold.rebuilt + foretold.reused} == shop.view("totals").kept
    listed = foretold.to_json()["rebuilt"]
    assert [(r["state"], r["bytes"]) for r in listed] == [(s.label, s.bytes) for s in foretold.rebuilt]
    assert f"{len(foretold.rebuilt)} are rebuilt" in str(done)
    assert "\n  rebuilt" in str(done)
    assert foretold._repr_html_().count("rebuilt") == len(foretold.rebuilt)
    same = explained(shop, f"{other} HAVING max(amount) > 0").replacement
    assert same is not None
    assert not {s.key for s in same.rebuilt} & {s.key for s in same.reused}


def test_a_state_over_a_view_that_lags_is_not_foretold_to_be_reused(shop: sw.Engine) -> None:
    shop.create_view("totals", TOTALS, strategy="incremental")
    query = "SELECT total % 2 AS odd, sum(total) AS s FROM totals GROUP BY total % 2"
    shop.create_view("odds", query, strategy="incremental")
    shop.table("orders").insert([(100, "a", 5)])
    filtered = f"CREATE OR REPLACE MATERIALIZED VIEW odds REFRESH POLICY INCREMENTAL AS {query} HAVING sum(total) > 0"
    foretold = explained(shop, filtered).replacement
    assert foretold is not None
    assert (foretold.reused, len(foretold.lost)) == ((), 1)
    assert "refresh the view first" in foretold.lost[0].why
    assert refused(shop, filtered) == "STATES_AT_STAKE"
    shop.view("odds").refresh()
    foretold = explained(shop, filtered).replacement
    assert foretold is not None
    assert (len(foretold.reused), foretold.lost) == (1, ())
    done = shop.sql(filtered)
    assert isinstance(done, Done)
    assert done.replacement == foretold


# --- obstacles -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("CREATE MATERIALIZED VIEW TOTALS AS SELECT cust FROM orders", "VIEW_EXISTS"),
        ("CREATE MATERIALIZED VIEW orders AS SELECT name FROM customers", "VIEW_EXISTS"),
        ("CREATE OR REPLACE MATERIALIZED VIEW Orders AS SELECT name FROM customers", "VIEW_EXISTS"),
        ("CREATE MATERIALIZED VIEW IF NOT EXISTS orders AS SELECT name FROM customers", "VIEW_EXISTS"),
        (f"CREATE MATERIALIZED VIEW {'v' * 300} AS SELECT name FROM customers", "NAME_INVALID"),
        (f"CREATE MATERIALIZED VIEW s REFRESH POLICY INCREMENTAL STRICT MEMORY BUDGET '0' AS {TOTALS}",
         "QUERY_NOT_INCREMENTAL"),
        ("CREATE MATERIALIZED VIEW s REFRESH POLICY INCREMENTAL STRICT MEMORY BUDGET '0' AS SELECT o_id, amount"
         " FROM orders ORDER BY amount LIMIT 3", "QUERY_NOT_INCREMENTAL"),
        ("CREATE MATERIALIZED VIEW IF NOT EXISTS totals AS SELECT cust FROM orders", ""),
        ("CREATE MATERIALIZED VIEW s REFRESH POLICY INCREMENTAL STRICT MEMORY BUDGET '0' AS SELECT cust FROM orders",
         ""),
        (f"CREATE MATERIALIZED VIEW s REFRESH POLICY INCREMENTAL STRICT MEMORY BUDGET '1MB' AS {TOTALS}", ""),
    ],
)  # fmt: skip
def test_explain_foretells_what_create_refuses(shop: sw.Engine, statement: str, code: str) -> None:
    shop.create_view("totals", TOTALS)
    version = shop.catalog.version()
    assert obstacle(shop, statement) == code
    assert shop.catalog.version() == version
    if code:
        assert refused(shop, statement) == code
    else:
        assert isinstance(shop.sql(statement), Done)


def test_a_strict_view_that_is_always_recomputed_is_refused(shop: sw.Engine) -> None:
    with pytest.raises(sw.SlackwaterError, match="the strategy rebatch recomputes") as caught:
        shop.create_view("totals", TOTALS, strict=True, strategy="rebatch")
    assert caught.value.code == "QUERY_NOT_INCREMENTAL"
    with pytest.raises(sw.SlackwaterError, match="a memory budget of 0") as caught:
        shop.create_view("totals", TOTALS, strict=True, memory_budget=0)
    assert caught.value.code == "QUERY_NOT_INCREMENTAL"
    assert shop.views() == []


# --- schedules and policies ------------------------------------------------------------------------------------------


def test_a_schedule_does_not_silently_replace_a_policy(shop: sw.Engine) -> None:
    view = shop.create_view("v", "SELECT cust FROM orders", refresh=sw.rows(10))
    with pytest.raises(sw.SlackwaterError, match="10") as caught:
        shop.sql("ALTER MATERIALIZED VIEW v ADD SCHEDULE EVERY 1 HOUR")
    assert caught.value.code == "SCHEDULE_EXISTS"
    assert (view.policy, view.declared.schedule) == (sw.rows(10), "")
    shop.sql("ALTER MATERIALIZED VIEW v ALTER SCHEDULE EVERY 1 HOUR")
    assert (view.policy, view.declared.schedule) == (sw.every("1h"), "EVERY 1 HOUR")
    view.set_policy(sw.rows(10))
    shop.sql("ALTER MATERIALIZED VIEW v DROP SCHEDULE")
    assert not view.due().due
    assert refused(shop, "ALTER MATERIALIZED VIEW v DROP SCHEDULE") == "SCHEDULE_MISSING"


def test_a_query_that_starts_with_a_table_is_explained(shop: sw.Engine) -> None:
    query = "TABLE orders |> WHERE amount > 57 |> SELECT o_id"
    assert explained(shop, query).eligibility == shop.check(query)
    shop.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    assert sorted_rows(shop.view("v")) == [(58,), (59,)]

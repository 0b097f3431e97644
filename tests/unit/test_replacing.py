"""What is asked before a view is declared otherwise, and what EXPLAIN CREATE foretells. None of this needs Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import col
from slackwater.algebra.nodes import Aggregate, Rel
from slackwater.algebra.printer import node_key
from slackwater.algebra.serialize import from_json
from slackwater.arrivals.learned import Learned
from slackwater.arrivals.policies import Policy, manual
from slackwater.capture import Captured
from slackwater.ddl import CreateView, parse
from slackwater.ddl_running import _checked, run_statement
from slackwater.declared import Declared, options_of
from slackwater.eligibility import refuse_contradiction
from slackwater.execution.refresh import Refresher
from slackwater.replacing import _obstacle, plan_replacement, replace_view
from tests.unit import catalogued
from tests.unit.held_states import Rows, hold


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sw.Engine]:
    def refuse() -> None:
        raise AssertionError("Spark was asked for")

    monkeypatch.setattr("slackwater.engine.start_spark", refuse)
    with sw.Engine(tmp_path / "wh", save_states=False) as engine:
        catalogued.add_table(engine, catalogued.LINES, 1000)
        catalogued.add_table(engine, catalogued.ORDERS, 100)
        yield engine


def add_view(engine: sw.Engine, name: str, plan: Rel) -> sw.View:
    declared = options()
    del declared["declared"]
    return catalogued.add_view(engine, name, plan, **declared)


@pytest.fixture
def view(engine: sw.Engine) -> sw.View:
    """A view over a join, with states of 100 and 10 bytes."""
    view = add_view(engine, "totals", catalogued.TOTALS)
    hold(view, {"large": (100, 1.0, Rows(1)), "small": (10, 1.0, Rows(2))})
    return view


def options(
    strategy: str = "auto", comment: str = "", budget: int | None = None, policy: Policy | None = None
) -> dict[str, Any]:
    declared = Declared(comment, budget_bytes=budget)
    return options_of(strategy, declared, policy or manual(), Learned(), {})


def again(view: sw.View) -> Captured:
    """The query that the view has."""
    record = view.engine.catalog.view_by_id(view.id)
    return Captured(from_json(json.loads(record.plan_json)), view.columns, view.order, view.sql)


@pytest.mark.parametrize(
    ("declared", "lost", "why", "altered"),
    [
        (options(), [], "", False),
        (options(comment="c"), [], "", True),
        (options(budget=200), [], "", True),
        (options(strategy="incremental"), [], "", True),
        (options(budget=50), ["large"], "100 bytes do not fit the budget of 50", True),
        (options(budget=0), ["large", "small"], "do not fit the budget of 0", True),
        (options(strategy="higher_order"), ["large", "small"], "the plan was made for another strategy", True),
    ],
)
def test_the_same_query_asks_before_states_go(
    engine: sw.Engine, view: sw.View, declared: dict[str, Any], lost: list[str], why: str, altered: bool
) -> None:
    before, version = dict(view.states), engine.catalog.version()
    foretold = plan_replacement(engine, view, again(view), {}, declared)[1]
    assert (foretold.same_query, foretold.altered) == (True, altered)
    assert sorted(state.key for state in foretold.lost) == lost
    assert all(why in state.why for state in foretold.lost)
    assert ("its result and states are kept" in str(foretold)) is not bool(lost)
    if lost:
        with pytest.raises(sw.SlackwaterError, match=why) as caught:
            replace_view(engine, view, again(view), {}, declared, discard_states=False)
        assert caught.value.code == "STATES_AT_STAKE"
    assert (view.states, engine.catalog.version()) == (before, version)
    assert replace_view(engine, view, again(view), {}, declared, discard_states=True) is view
    assert view.replacement == foretold
    assert engine.catalog.version() == version + altered
    assert json.loads(engine.catalog.view_by_id(view.id).options_json).items() >= declared.items()
    if declared["strategy"] == "auto":
        assert before.keys() - view.states.keys() == set(lost)


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("CREATE MATERIALIZED VIEW TOTALS AS SELECT 1", "VIEW_EXISTS"),
        ("CREATE MATERIALIZED VIEW lines AS SELECT 1", "VIEW_EXISTS"),
        ("CREATE OR REPLACE MATERIALIZED VIEW Lines AS SELECT 1", "VIEW_EXISTS"),
        ("CREATE MATERIALIZED VIEW IF NOT EXISTS lines AS SELECT 1", "VIEW_EXISTS"),
        (f"CREATE MATERIALIZED VIEW {'v' * 300} AS SELECT 1", "NAME_INVALID"),
        ("CREATE MATERIALIZED VIEW v REFRESH POLICY INCREMENTAL STRICT MEMORY BUDGET '0' AS SELECT 1",
         "QUERY_NOT_INCREMENTAL"),
        ("CREATE MATERIALIZED VIEW v (a) AS SELECT 1", "COLUMNS_MISMATCH"),
        ("CREATE MATERIALIZED VIEW IF NOT EXISTS totals (a) AS SELECT 1", ""),
        ("CREATE MATERIALIZED VIEW v REFRESH POLICY INCREMENTAL STRICT MEMORY BUDGET '1MB' AS SELECT 1", ""),
        ("CREATE OR REPLACE MATERIALIZED VIEW totals AS SELECT 1", ""),
    ],
)  # fmt: skip
def test_explain_foretells_what_create_refuses(engine: sw.Engine, view: sw.View, statement: str, code: str) -> None:
    create = parse(statement)
    assert isinstance(create, CreateView)
    if not code:
        found = _checked(engine, create, again(view), {})
        assert (found is not None) is create.replace
        return
    with pytest.raises(sw.SlackwaterError) as caught:
        _checked(engine, create, again(view), {})
    assert caught.value.code == code
    if code in ("VIEW_EXISTS", "NAME_INVALID"):  # as the catalog refuses it
        with pytest.raises(sw.SlackwaterError) as caught:
            catalogued.add_view(engine, create.name, catalogued.TOTALS)
        assert caught.value.code == code


def test_a_strict_view_cannot_be_one_that_is_always_recomputed() -> None:
    with pytest.raises(sw.SlackwaterError, match="the strategy rebatch recomputes") as caught:
        refuse_contradiction("v", catalogued.LINES, "rebatch", None)
    assert caught.value.code == "QUERY_NOT_INCREMENTAL"
    with pytest.raises(sw.SlackwaterError, match="a memory budget of 0"):
        refuse_contradiction("v", catalogued.TOTALS, "incremental", 0)
    refuse_contradiction("v", catalogued.LINES, "incremental", 0)
    refuse_contradiction("v", catalogued.TOTALS, "incremental", 1)
    refuse_contradiction("v", catalogued.TOTALS, "incremental", None)


def test_a_schedule_does_not_silently_replace_a_policy(engine: sw.Engine, view: sw.View) -> None:
    def refused(text: str) -> str:
        with pytest.raises(sw.SlackwaterError) as caught:
            run_statement(engine, parse(text))
        return caught.value.code

    view.set_policy(sw.rows(10))
    assert refused("ALTER MATERIALIZED VIEW totals ADD SCHEDULE EVERY 1 HOUR") == "SCHEDULE_EXISTS"
    assert (view.policy, view.declared.schedule) == (sw.rows(10), "")
    run_statement(engine, parse("ALTER MATERIALIZED VIEW totals ALTER SCHEDULE EVERY 1 HOUR"))
    assert (view.policy, view.declared.schedule) == (sw.every("1h"), "EVERY 1 HOUR")
    view.set_policy(sw.rows(10))
    run_statement(engine, parse("ALTER MATERIALIZED VIEW totals DROP SCHEDULE"))
    assert (view.policy, view.declared.schedule) == (manual(), "")
    assert refused("ALTER MATERIALIZED VIEW totals DROP SCHEDULE") == "SCHEDULE_MISSING"
    run_statement(engine, parse("ALTER MATERIALIZED VIEW totals ADD SCHEDULE EVERY 1 HOUR"))


def test_changes_to_come_below_a_view_count_as_changes(engine: sw.Engine) -> None:
    """A replacement refreshes what is below first, so that a state over it is behind then."""
    below = add_view(engine, "below", catalogued.LINES)
    total = Aggregate(
        catalogued.scan("below", "l_order", "price"), (), (AggCall("n", "sum", (col("price", "int"),), "bigint"),)
    )
    above = add_view(engine, "above", total)
    key = node_key(total)
    hold(above, {key: (10, 1.0, Rows(1))})

    def obstacle() -> str:
        return _obstacle(above, above, key, frozenset([key]), frozenset([key]))

    assert obstacle() == ""
    catalogued.insert(engine, "orders", 5)
    assert obstacle() == ""
    catalogued.insert(engine, "lines", 5)
    assert below.status()["pending_rows"] == 5
    assert obstacle() == "below has changes to come: refresh the view first"


def test_it_is_told_which_states_are_rebuilt(engine: sw.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Refresher, "usable", property(lambda _: 10**9))

    def total(func: str) -> Aggregate:
        made = AggCall("n", func, (col("price", "int"),), "bigint" if func == "sum" else "int")
        return Aggregate(catalogued.LINES, (n.Item("l_order", col("l_order", "int")),), (made,))

    old, new = total("sum"), total("max")
    view = add_view(engine, "totals", old)
    hold(view, {node_key(old): (10, 1.0, Rows(1))})
    other = Captured(new, ("l_order", "n"), (), "another query")
    foretold = plan_replacement(engine, view, other, {}, options(strategy="incremental"))[1]
    assert [s.key for s in foretold.lost] == [node_key(old)]
    assert [s.key for s in foretold.rebuilt] == [node_key(new)]
    (state,) = foretold.rebuilt
    assert state.bytes > 0
    assert foretold.to_json()["rebuilt"] == [{"state": state.label, "bytes": state.bytes, "why": state.why}]
    assert str(foretold).startswith("totals: 0 states are reused, 1 are lost, 1 are rebuilt\n")
    assert "\n  rebuilt" in str(foretold)
    assert foretold._repr_html_().count("rebuilt") == 1
    more = n.Project(old, n.pass_through(old.schema[1:]))
    kept = plan_replacement(engine, view, Captured(more, ("n",), (), "more"), {}, options(strategy="incremental"))[1]
    assert ([s.key for s in kept.reused], kept.lost, kept.rebuilt) == ([node_key(old)], (), ())

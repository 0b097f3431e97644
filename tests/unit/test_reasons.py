"""Why a state is kept or not: what it saves, what it cost to build, and what the other choice would cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import slackwater as sw
from slackwater.algebra.printer import node_key
from slackwater.execution.state_planning import Facts, plan_next
from slackwater.planning.cardinality import Expected
from slackwater.planning.choices import Choice
from slackwater.planning.costing import AtHand
from slackwater.planning.rates import Rates
from slackwater.planning.strategies import with_paid_builds
from tests.unit.catalogued import TOTALS, add_view

ROWS = {"lines": 6_000_000, "orders": 1_500_000}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[sw.Engine]:
    with sw.Engine(tmp_path / "wh") as opened:
        yield opened


def planned(there: frozenset[str], *, everything: bool) -> tuple[Choice, ...]:
    facts = Facts(TOTALS, ROWS, {}, {}, lambda _: (), {}, replace(Rates(), write=1e-9))
    return plan_next(facts, "auto", 10**12, {"lines": Expected(6_000)}, AtHand(there, everything)).choices


def test_what_a_state_cost_is_told_as_long_as_it_is_kept() -> None:
    first = with_paid_builds(planned(frozenset(), everything=True), ())
    kept = frozenset(c.key for c in first if c.keep)
    costs = {c.key: c.build for c in first if c.keep}
    assert costs
    assert all(cost > 0 for cost in costs.values())
    for _ in range(2):
        again = with_paid_builds(planned(kept, everything=False), first)
        assert {c.key: c.build for c in again if c.keep} == costs
        assert all(c.reason.count("it is there and cost") == 1 for c in again if c.keep)
        first = again
    dropped = tuple(replace(c, keep=False) for c in first)
    assert not any(c.build for c in with_paid_builds(planned(kept, everything=False), dropped) if c.keep)


def test_each_node_has_the_price_of_its_other_choice() -> None:
    for choice in planned(frozenset(), everything=True):
        assert choice.seconds_without - choice.seconds_with == pytest.approx(choice.saves)
        if choice.keep:
            assert choice.seconds_with < choice.seconds_without


def test_explain_prints_for_each_node_what_else_could_be_done(engine: sw.Engine) -> None:
    aggregate, join = TOTALS, TOTALS.child
    saves = "saves 2.0 s; it is there and cost 500 ms to build"
    listed = [
        Choice(node_key(aggregate), "sums", True, saves, 10, 2.0, 0.5, 1.0, 3.0),
        Choice(node_key(join), "join", False, "would save nothing at the next refresh", 99, -0.5, 4.0, 1.5, 1.0),
    ]  # fmt: skip
    view = add_view(engine, "totals", TOTALS, choices=[asdict(c) for c in listed], bytes={node_key(aggregate): 2_000})
    text = str(view.explain(sql=False))
    assert "■ kept 2.0 kB: saves 2.0 s; it is there and cost 500 ms to build" in text
    assert "otherwise: not kept, and the next refresh takes 3.0 s instead of 1.0 s" in text
    assert "□ not kept (about 99 B)" in text
    assert "otherwise: kept, and the next refresh takes 1.5 s instead of 1.0 s" in text


def test_choices_of_an_older_version_are_read(engine: sw.Engine) -> None:
    old = {"key": node_key(TOTALS), "label": "sums", "keep": True, "reason": "it pays", "size": 10, "saves": 2.0}
    view = add_view(engine, "totals", TOTALS, choices=[old])
    text = str(view.explain(sql=False))
    assert "it pays" in text
    assert "otherwise" not in text

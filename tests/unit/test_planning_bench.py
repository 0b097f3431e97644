"""The benchmark of planning runs, its plans are those of real queries, and the work grows as it should."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from slackwater.algebra.lookups import LookupJoin
from slackwater.algebra.nodes import Join, Scan
from slackwater.bench import planning
from slackwater.bench.movie_queries import JOINS, MOVIES
from slackwater.bench.planning_plans import MOVIE_ROWS, Planned, join_chain, movie, q9
from slackwater.planning import state_choice
from slackwater.planning.costing import AtHand, Pricing
from slackwater.planning.rates import Rates
from slackwater.planning.staircase import Staircase
from slackwater.planning.state_choice import Root
from slackwater.planning.strategies import plan_states


def root(planned: Planned) -> Root:
    plan, cards = planned
    return Pricing(cards, Rates(write=2e-8), AtHand(serves=50.0)).root(plan, by_delta=True)


def test_it_measures_chains_and_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "SIZES", (2, 6))
    monkeypatch.setattr(planning, "ROUNDS", 1)
    planning.command(tmp_path)
    found = json.loads((tmp_path / "planning.json").read_text())
    assert [row["tables"] for row in found["sizes"]] == [2, 6]
    assert [(row["name"], row["tables"], row["limit_ms"]) for row in found["queries"]] == [
        ("TPC-H Q9", 6, 50.0), ("movie query 33", 17, 500.0),
    ]  # fmt: skip
    for row in (*found["sizes"], *found["queries"]):
        assert row["search_ms"] > 0
        assert row["points"] > 1
    assert all(row["met"] == (row["everything_ms"] <= row["limit_ms"]) for row in found["queries"])
    assert (tmp_path / "planning.png").stat().st_size > 5_000


@pytest.mark.parametrize("number", MOVIES)
def test_a_movie_query_has_its_tables_and_no_cross_join(number: int) -> None:
    plan, _ = movie(number)
    tables = sorted(x.table for x in plan.walk() if isinstance(x, Scan))
    assert tables == sorted(JOINS[name][0] for name in MOVIES[number].tables.split())
    joins = [x for x in plan.walk() if isinstance(x, Join)]
    assert len(joins) == MOVIES[number].joins
    assert all(x.condition is not None for x in joins)


def test_real_queries_look_keys_up_and_keep_something() -> None:
    assert set(MOVIE_ROWS) >= {table for table, _ in JOINS.values()}
    for planned in (q9(), movie(33)):
        plan, _ = planned
        assert any(isinstance(x, LookupJoin) for x in plan.walk())
        chosen = plan_states(root(planned), "auto", 4e9)
        assert chosen.kept
        assert chosen.seconds < chosen.nothing


def test_the_work_grows_with_the_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merges of staircases for each operator do not grow with the plan; what a merge compares stays small."""
    merges, compared = 0, 0
    real = state_choice.add

    def counted(one: Staircase, two: Staircase, limit: float) -> Staircase:
        nonlocal merges, compared
        merges, compared = merges + 1, compared + len(one) * len(two)
        return real(one, two, limit)

    monkeypatch.setattr(state_choice, "add", counted)
    for planned in (*map(join_chain, (4, 8, 16, 32)), q9(), movie(33)):
        merges = compared = 0
        memo = root(planned)
        assert memo.stairs(4e9).exact
        assert merges <= 12 * len(memo.group.walk())
        assert compared <= 500 * merges

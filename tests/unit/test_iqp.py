"""The experiments' arithmetic, tables and pictures, from made-up measurements; nothing is run."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from slackwater.bench.iqp import FIGURES
from slackwater.bench.iqp_cleaning import ORDER, REFRESHES, draw_timeline
from slackwater.bench.iqp_experiment import Run
from slackwater.bench.iqp_figures import as_it_runs, materialized
from slackwater.bench.iqp_movies import aggregated, print_tables
from slackwater.bench.iqp_movies import draw as draw_movies
from slackwater.bench.iqp_report import draw, draw_costs, print_table, summary
from slackwater.execution.reports import Refresh
from slackwater.execution.state_planning import Facts, plan_next
from slackwater.planning.cardinality import Expected
from slackwater.planning.costing import AtHand
from slackwater.planning.rates import Rates
from tests.unit.test_plain_rules import BELOW, CUSTOMERS, LINES, NARROW, TOP, node_key, total


def measured(query: int, label: str, initial: float, refresh: float, size: int) -> Run:
    run = Run(query, label, initial, {"1%": [refresh, refresh]}, {"initial": size, "1%": size}, verified=True)
    run.modes["1%"] = "recompute" if label == "rebatch" else "incremental"
    return run


RUNS = [
    measured(3, "rebatch", 1.0, 4.0, 0), measured(8, "rebatch", 2.0, 9.0, 0),
    measured(3, "auto", 2.0, 1.0, 50), measured(8, "auto", 3.0, 1.0, 10),
    measured(3, "higher_order", 4.0, 2.0, 100), measured(8, "higher_order", 4.0, 4.0, 100),
]  # fmt: skip


def test_ratios_are_against_the_recompute_and_the_higher_order_views() -> None:
    found = summary(3, RUNS)
    assert found["auto, 1%: faster, geometric mean"] == pytest.approx(6.0)
    assert (found["auto, 1%: faster, worst"], found["auto, 1%: faster, best"]) == (4.0, 9.0)
    assert found["auto: queries whose total is at most rebatch's"] == 2
    assert found["auto: total time over rebatch, worst"] == pytest.approx(3 / 5), "a delta that came twice counts once"
    assert found["auto: delta time over higher_order's, worst"] == 0.5
    assert found["auto: memory over higher_order's, best"] == 0.1
    assert found["auto: memory over higher_order's, geometric mean"] == pytest.approx((0.5 * 0.1) ** 0.5)
    assert found["auto: queries compared with higher_order"] == 2
    assert found["all verified"] == 1.0
    assert summary(3, [*RUNS, replace(RUNS[2], verified=False)])["all verified"] == 0.0


def test_queries_where_higher_order_recomputed_are_not_compared_with_it() -> None:
    gave_up = replace(RUNS[5], modes={"1%": "recompute"})
    found = summary(3, [*RUNS[:5], gave_up])
    assert found["auto: queries compared with higher_order"] == 1
    assert found["auto: memory over higher_order's, best"] == 0.5


def test_what_the_first_refresh_takes_more_counts_in_the_total() -> None:
    hashed = replace(RUNS[2], warm_ups=[2.5, 0.9, 1.0])
    assert (hashed.first_more, hashed.total) == (pytest.approx(1.5), pytest.approx(2.0 + 1.5 + 1.0))
    assert (RUNS[2].first_more, RUNS[2].total) == (0.0, 3.0)
    assert replace(RUNS[2], warm_ups=[0.5, 0.9, 1.0]).total == 3.0, "a quick first refresh makes nothing cheaper"


def test_a_recompute_among_the_refreshes_of_a_kind_shows() -> None:
    run = Run(3, "higher_order")
    for version, mode in enumerate(("incremental", "recompute", "incremental")):
        run.took("0.1%", Refresh("v", mode, version, version + 1))
    assert run.modes == {"0.1%": "recompute"}


def test_tables_and_pictures_are_made(tmp_path: Path) -> None:
    shown = StringIO()
    print_table(RUNS, "late data", summary(3, RUNS), Console(file=shown, width=140))
    assert "4.000 r" in shown.getvalue()
    draw(RUNS, "late data", tmp_path / "late.png")
    draw_costs(RUNS, "what it costs", tmp_path / "costs.png")
    cleaned = replace(RUNS[2], timeline=[0.1] * len(ORDER) * (REFRESHES + 1), state_bytes=dict.fromkeys(ORDER, 5))
    draw_timeline([cleaned], "cleaning", tmp_path / "cleaning.png")
    lost = Run(8, "higher_order", failure="HIGHER_ORDER_TOO_LARGE")
    found = aggregated([*RUNS[:5], lost])
    assert found["higher_order: queries finished"] == 1
    assert found["auto: total seconds, average"] == pytest.approx(3.5)
    assert found["auto: MB after the initial run, most"] == 50 / 1e6
    assert found["all verified"] == 1.0
    print_tables([*RUNS[:5], lost], found, Console(file=shown, width=140))
    assert "did not finish: HIGHER_ORDER_TOO_LARGE" in shown.getvalue()
    draw_movies([*RUNS[:5], lost], "movies", tmp_path / "movies.png")
    assert all((tmp_path / f"{name}.png").stat().st_size > 5_000 for name in ("late", "costs", "cleaning", "movies"))


def test_there_is_an_experiment_for_each_figure() -> None:
    assert set(FIGURES) == {3, 4, 5, 6, 7, 8, 9}
    assert all(figure.queries and 0 < figure.held_back < 1 for figure in FIGURES.values())


def test_what_may_be_kept_grows_from_scenario_to_scenario() -> None:
    plan = total("sum")
    assert as_it_runs(plan) == {node_key(plan), node_key(BELOW), node_key(CUSTOMERS)}
    assert materialized(plan) == as_it_runs(plan), "here nothing streams but tables"
    turned = replace(TOP, left=BELOW, right=LINES)
    assert materialized(turned) - as_it_runs(turned) == {node_key(BELOW)}
    rows = {"lines": 6_000_000, "orders": 1_500_000, "customers": 150_000}
    facts = Facts(plan, rows, {}, NARROW, lambda t: () if t == "lines" else (0,), {}, Rates())
    coming = {t: Expected(0.01 * n) for t, n in rows.items()}
    free = plan_next(facts, "incremental", 10**12, coming, AtHand())
    bound = plan_next(replace(facts, allowed=as_it_runs(plan)), "incremental", 10**12, coming, AtHand())
    assert bound.kept == free.kept & as_it_runs(plan) < free.kept

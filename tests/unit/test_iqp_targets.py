"""The targets of the experiments, from made-up measurements: each is told to be met, missed or not measured."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from slackwater.bench.iqp_experiment import Run
from slackwater.bench.iqp_targets import Target, print_targets, table_targets, targets


def run(query: int, label: str, initial: float, size: int = 0, **seconds: float | list[float]) -> Run:
    """A run; deltas are given as keyword arguments with names that only tests have."""
    took = {_DELTAS[name]: some if isinstance(some, list) else [some] for name, some in seconds.items()}
    return Run(query, label, initial, took, {"initial": size}, dict.fromkeys(took, "incremental"), [0.5], verified=True)


_DELTAS = {
    "large": "9%", "small": "0.1%", "one": "1%", "much": "30%",
    "first": "1 of 5 arrive", "third": "3 of 5 arrive", "fifth": "5 of 5 arrive",
    "none_gone": "0% deletes", "half_gone": "50% deletes", "all_gone": "100% deletes",
}  # fmt: skip


def by_name(figure: int, runs: Sequence[Run], scale: float = 1.0) -> dict[str, Target]:
    return {one.name: one for one in targets(figure, runs, scale)}


def missed(figure: int, runs: Sequence[Run], scale: float = 1.0) -> set[str]:
    return {one.name for one in targets(figure, runs, scale) if one.met is False}


LATE = [
    run(3, "rebatch", 2.0, large=4.0, small=[9.0, 3.0, 3.0]), run(8, "rebatch", 2.0, large=9.0, small=16.0),
    run(3, "auto", 2.0, 50, large=1.0, small=[8.0, 1.0, 1.0]), run(8, "auto", 4.0, 8, large=2.0, small=1.0),
    run(3, "higher_order", 4.0, 100, large=2.0, small=2.0), run(8, "higher_order", 4.0, 100, large=6.0, small=0.0),
]  # fmt: skip


def test_late_data_that_reaches_everything() -> None:
    assert not missed(3, LATE)
    found = by_name(3, LATE)
    assert all(one.met for one in found.values())
    assert found["auto: queries whose total is at most rebatch's"].value == 2
    assert found["auto: total over rebatch's, worst"].value == pytest.approx(4 / 9), "the median of three counts once"
    assert found["auto: total over rebatch's, worst"].where == "Q3 auto"
    assert found["auto, 0.1%: faster than rebatch, geometric mean"].value == pytest.approx(48**0.5)
    assert found["auto, 0.1%: faster than rebatch, best"].value == 16.0
    assert found["auto: delta time over higher_order's, five or more joins, worst"].value == 0.5
    assert found["auto: memory over higher_order's, geometric mean"].value == pytest.approx((0.5 * 0.08) ** 0.5)
    assert found["auto: memory over higher_order's, best"].value == 0.08
    assert found["auto: initial run over rebatch's, worst"].value == 2.0
    assert found["auto: memory over higher_order's, geometric mean"].where == "on 2 of 2 queries"


def test_what_is_put_off_to_the_first_refresh_counts_with_the_initial_run() -> None:
    later = [*LATE[:3], replace(LATE[3], warm_ups=[3.0, 1.0, 1.0]), *LATE[4:]]
    name = "auto: initial run and what the first refresh took more over rebatch's, worst"
    assert missed(3, later) == {name}
    assert (by_name(3, later)[name].value, by_name(3, later)[name].where) == (3.0, "Q8 auto")
    assert by_name(3, [replace(one, warm_ups=[]) for one in LATE])[name].met is None


def test_higher_order_views_that_recompute_decide_nothing() -> None:
    lazy = [*LATE[:5], replace(LATE[5], modes={"9%": "incremental", "0.1%": "recompute"})]
    found = by_name(3, lazy)
    assert found["auto: memory over higher_order's, best"].value == 0.5
    assert found["auto: memory over higher_order's, geometric mean"].where == "on 1 of 2 queries"
    assert found["auto: delta time over higher_order's, five or more joins, worst"].met is None


def test_more_is_asked_of_late_data_at_a_larger_scale() -> None:
    gains = {"auto, 0.1%: faster than rebatch, geometric mean", "auto, 0.1%: faster than rebatch, best"}
    assert missed(3, LATE, scale=5.0) == gains
    assert {name: by_name(3, LATE, 5.0)[name].limit for name in gains} == dict(
        zip(sorted(gains), (40, 15), strict=True)
    )


def test_late_data_that_misses_everything() -> None:
    slow = [
        *LATE[:2],
        run(3, "auto", 9.0, 90, large=4.0, small=3.0), run(8, "auto", 20.0, 90, large=9.0, small=16.0),
        *LATE[4:],
    ]  # fmt: skip
    slow[2].verified = False
    assert missed(3, slow) == {one.name for one in targets(3, slow)}


def test_what_was_given_up_is_not_measured() -> None:
    alone = [one for one in LATE if one.label != "higher_order"]
    lost = [*alone, Run(8, "higher_order", failure="not within 100 s")]
    found = by_name(3, lost)
    assert found["auto: memory over higher_order's, best"].met is None
    assert found["auto: delta time over higher_order's, five or more joins, worst"].value is None
    assert found["results that are not verified"].met


def test_forecasts_of_the_wrong_size() -> None:
    runs = [
        run(8, "rebatch", 1.0, one=9.0, much=9.0), run(8, "1% foreseen", 1.0, one=1.0, much=3.9),
        run(8, "30% foreseen", 1.0, one=1.3, much=3.0), run(8, "0.03% foreseen", 1.0, one=0.5, much=9.0),
    ]  # fmt: skip
    assert not missed(5, runs)
    runs[2] = run(8, "30% foreseen", 1.0, one=1.31, much=2.9)
    assert missed(5, runs) == {
        "30% foreseen, 1% came: time over that of the right forecast, worst",
        "1% foreseen, 30% came: time over that of the right forecast, worst",
    }


def test_forecasts_of_the_wrong_size_under_a_budget() -> None:
    """The right and the wrong forecast of one budget are compared; a smaller budget alone may take longer."""
    runs = [
        run(8, "1% foreseen", 1.0, one=1.0, much=3.0), run(8, "30% foreseen", 1.0, one=1.0, much=3.0),
        run(8, "1% foreseen, 5% of memory", 1.0, one=2.0, much=6.0),
        run(8, "30% foreseen, 5% of memory", 1.0, one=2.5, much=6.0),
    ]  # fmt: skip
    assert not missed(5, runs)
    runs[3] = run(8, "30% foreseen, 5% of memory", 1.0, one=2.7, much=6.0)
    found = by_name(5, runs)["30% foreseen, 1% came: time over that of the right forecast, worst"]
    assert (found.met, found.value, found.where) == (False, pytest.approx(1.35), "Q8 30% foreseen, 5% of memory")


TABLES = [
    run(8, "rebatch", 1.0, first=2.0, third=2.0, fifth=2.0), run(8, "1 foreseen", 1.0, first=1.0, third=2.2, fifth=2.3),
    run(8, "3 foreseen", 1.0, first=1.1, third=1.0, fifth=1.5),
    run(8, "5 foreseen", 1.0, first=1.0, third=1.0, fifth=0.1),
]  # fmt: skip


def test_forecasts_of_the_wrong_tables() -> None:
    assert not missed(6, TABLES)
    absent, unforeseen, _ = targets(6, TABLES)
    assert (absent.value, absent.where) == (pytest.approx(1.1), "Q8 3 foreseen, 1 of 5 arrive")
    assert (unforeseen.value, unforeseen.where) == (pytest.approx(1.15), "Q8 1 foreseen, 5 of 5 arrive")
    late = [*TABLES[:3], run(8, "5 foreseen", 1.0, first=1.0, third=1.3, fifth=0.1)]
    assert missed(6, late) == {absent.name}
    late = [*TABLES[:2], run(8, "3 foreseen", 1.0, first=1.0, third=1.0, fifth=3.0), TABLES[3]]
    assert missed(6, late) == {unforeseen.name}


BUDGETS = [
    run(9, "rebatch", 1.0, one=2.0), run(9, "auto 0%", 1.0, one=2.1), run(9, "auto 15%", 1.0, one=2.2),
    run(9, "auto 100%", 1.0, one=0.5), run(9, "recycler 0%", 1.0, one=2.0), run(9, "recycler 15%", 1.0, one=2.2),
    run(9, "recycler 100%", 1.0, one=1.5),
]  # fmt: skip


def test_budgets() -> None:
    assert not missed(7, BUDGETS)
    assert by_name(7, BUDGETS)["auto: faster than the recycler, best"].value == 3.0
    assert by_name(7, BUDGETS)["auto: faster than the recycler, best"].where == "Q9 auto 100%"
    rising = [*BUDGETS[:2], run(9, "auto 15%", 1.0, one=2.5), *BUDGETS[3:]]
    assert missed(7, rising) == {"auto: time over that under a smaller budget, worst"}
    worse = [*BUDGETS[:4], run(9, "recycler 0%", 1.0, one=1.5), *BUDGETS[5:]]
    assert missed(7, worse) == {"auto: time over the recycler's, worst"}
    quick = [BUDGETS[0], run(9, "auto 0%", 1.0, one=1.7), *BUDGETS[2:]]
    assert "auto without memory: time over rebatch's or the other way, worst" in missed(7, quick)
    alike = [*BUDGETS[:6], run(9, "recycler 100%", 1.0, one=1.4)]
    assert missed(7, alike) == {"auto: faster than the recycler, best"}


def test_deletes() -> None:
    runs = [run(1, "rebatch", 1.0, none_gone=1.0, half_gone=9.0, all_gone=9.0),
            run(1, "auto", 1.0, none_gone=1.0, half_gone=1.2, all_gone=1.5)]  # fmt: skip
    assert not missed(9, runs)
    runs[1] = run(1, "auto", 1.0, none_gone=1.0, half_gone=1.6, all_gone=1.0)
    assert missed(9, runs) == {"auto: slowest share of deletes over fastest, worst"}


@pytest.mark.parametrize("figure", [4, 8])
def test_every_experiment_is_asked_for_right_results(figure: int) -> None:
    runs = [run(8, "rebatch", 1.0, one=1.0), run(8, "auto", 1.0, one=1.0)]
    assert not missed(figure, runs)
    assert missed(figure, [runs[0], replace(runs[1], verified=False)]) == {"results that are not verified"}


def test_every_query_with_many_joins_must_finish() -> None:
    runs = [run(1, "rebatch", 1.0, one=1.0), run(1, "auto", 1.0, one=1.0), run(1, "higher_order", 1.0, one=1.0)]
    assert all(one.met for one in table_targets([*runs[:2], Run(1, "higher_order", failure="too large")]))
    lost = table_targets([runs[0], Run(1, "auto", failure="not within 500 s"), runs[2]])
    assert [one.name for one in lost if one.met is False] == ["auto: queries finished"]


def test_targets_are_shown_and_saved() -> None:
    shown = StringIO()
    print_targets([*targets(3, LATE), Target("never seen", None, 1.0)], Console(file=shown, width=140))
    assert "not measured" in shown.getvalue()
    assert "at least 6" in shown.getvalue()
    (first, *_) = json.loads(json.dumps([one.to_dict() for one in targets(3, LATE)]))
    assert first == {"name": "auto: queries whose total is at most rebatch's", "value": 2, "asked": "at least",
                     "limit": 1, "met": True, "where": ""}  # fmt: skip

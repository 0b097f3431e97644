"""ORDER BY … LIMIT over tables and joins: the first rows are kept, and some more."""

from __future__ import annotations

import random

import pytest

import slackwater as sw
from slackwater.algebra.first_rows import First
from slackwater.capture.first_rows import SPARE
from tests.spark.settling import fresh
from tests.spark.tides import check_rounds

QUERIES = {
    "the largest": "SELECT id, v FROM {tides} ORDER BY v DESC NULLS LAST LIMIT 4",
    "floating, with NaN and zeros": "SELECT d, p, id FROM {tides} WHERE v IS NOT NULL ORDER BY d DESC LIMIT 6 OFFSET 1",
    "by another column": "SELECT id FROM {tides} ORDER BY p NULLS FIRST, o DESC LIMIT 5",
    "of a join": "SELECT t.id, l.n FROM {tides} t LEFT JOIN {labels} l ON t.p = l.k ORDER BY l.n DESC, t.id LIMIT 5",
    "no order": "SELECT o FROM {tides} LIMIT 7",
    "counted": "SELECT p, count(*) AS c FROM (SELECT p, v FROM {tides} ORDER BY v DESC, id LIMIT 9) GROUP BY p",
}


QUICK = ("floating, with NaN and zeros", "of a join")


def test_the_first_rows_follow_every_change(warehouse: sw.Engine) -> None:
    check_rounds(warehouse, {name: QUERIES[name] for name in QUICK})


@pytest.mark.slow
def test_more_first_rows_follow_every_change(warehouse: sw.Engine) -> None:
    check_rounds(warehouse, {name: sql for name, sql in QUERIES.items() if name not in QUICK})


def test_only_the_first_rows_are_kept_and_a_row_that_goes_is_made_up_for(warehouse: sw.Engine) -> None:
    """The expected rows are chosen here: a LIMIT is verified by the plan that was read."""
    table = warehouse.create_table(fresh("t"), "k INT, v INT")
    rows = [(k, (k * 37) % 1000) for k in range(900)]
    table.insert(rows)
    view = warehouse.create_view(fresh(), f"SELECT k, v FROM {table.name} ORDER BY v, k LIMIT 5 OFFSET 2", strict=True)
    (kept,) = (x for x in view.plan.walk() if isinstance(x, First))
    assert (kept.need, kept.most) == (7, 14 + SPARE)
    rng, modes = random.Random(7), []
    for turn in range(6):
        rows.sort(key=lambda row: (row[1], row[0]))
        gone = [rows.pop(rng.randrange(10 if turn != 3 else 1)) for _ in range(3 if turn != 3 else 150)]
        came = [(1000 + 10 * turn + n, rng.randrange(1000)) for n in range(4)]
        table.delete(gone)
        table.insert(came)
        rows += came
        report = view.refresh()
        modes.append(report.mode)
        assert ("first rows" in report.reason) is (turn == 3), report.reason
        expected = sorted(rows, key=lambda row: (row[1], row[0]))[2:7]
        assert sorted(map(tuple, view.result().collect())) == sorted(expected), f"round {turn}"
        assert view.verify()
    table.delete(rows)
    report = view.refresh()
    assert (report.mode, view.result().count()) == ("recompute", 0), "nothing came, and all that was kept went"
    assert modes == ["incremental"] * 3 + ["recompute"] + ["incremental"] * 2, "in round 3 more went than were to spare"


def test_all_that_is_kept_goes_and_nothing_comes(warehouse: sw.Engine) -> None:
    """What follows was never kept: an empty prefix would be taken for an empty table."""
    table = warehouse.create_table(fresh("t"), "v INT")
    table.insert([(v,) for v in range(300)])
    view = warehouse.create_view(fresh(), f"SELECT v FROM {table.name} ORDER BY v LIMIT 2")
    table.delete([(v,) for v in range(2 * 2 + SPARE)])
    view.refresh()
    assert sorted(row.v for row in view.result().collect()) == [104, 105]

"""Filters that Spark pushes into files: what the files say of themselves must not cost a row."""

from __future__ import annotations

import math

import pytest

import slackwater as sw

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("number", ["DOUBLE", pytest.param("FLOAT", marks=pytest.mark.slow)])
def test_the_greatest_of_all_numbers_is_found_among_changes(engine: sw.Engine, number: str) -> None:
    """The changes of a view are written by Arrow, whose greatest number of a file is never NaN."""
    table = engine.create_table("t", f"id INT, x {number}")
    table.insert([(0, 1.0), (9, None)])
    below = engine.create_view("below", "SELECT id, x FROM t")
    conditions = ["x > 5", "x >= 5", "x <> 1.0", "x = double('NaN')", "NOT x <= 5"]
    above = [engine.create_view(f"v{at}", f"SELECT id FROM below WHERE {c}") for at, c in enumerate(conditions)]
    for turn in (1, 2):
        table.insert([(10 * turn, 1.0), (10 * turn + 1, math.nan)])
        for condition, view in zip(conditions, above, strict=True):
            view.refresh()
            assert ids(view) == [11, 21][:turn], condition
            assert sorted(row.id for row in below.result().where(condition).select("id").collect()) == ids(view)


CHOSEN = {"x >= 0": {0, 2}, "x = 0": {0, 2}, "x IN (0.0D, 7.0D)": {0, 2}, "x < 0": {1}, "x <= 0": {0, 1, 2}}


@pytest.mark.parametrize("zero", [-0.0, pytest.param(0.0, marks=pytest.mark.slow)])
def test_both_zeros_are_found(engine: sw.Engine, zero: float) -> None:
    """The dictionary of a file tells -0.0 from 0.0, which no comparison does."""
    table = engine.create_table("t", "id INT, x DOUBLE")
    table.insert([(100, 3.5)])
    wheres = [f"({condition}) AND id < 100" for condition in CHOSEN]
    views = [engine.create_view(f"v{at}", f"SELECT id, x FROM t WHERE {w}") for at, w in enumerate(wheres)]
    rows = [(i, (zero, -1.0, zero)[i % 3]) for i in range(30)]
    table.insert(rows)
    for where, view, kept in zip(wheres, views, CHOSEN.values(), strict=True):
        view.refresh()
        assert ids(view) == [i for i, _ in rows if i % 3 in kept], where
        assert sorted(row.id for row in table.snapshot().where(where).collect()) == ids(view)
    table.delete(rows[:6])
    for view, kept in zip(views, CHOSEN.values(), strict=True):
        view.refresh()
        assert ids(view) == [i for i, _ in rows[6:] if i % 3 in kept]


def ids(view: sw.View) -> list[int]:
    return sorted(row.id for row in view.result().collect())

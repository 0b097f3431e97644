"""When what waited from the first is looked up again: once most of it may have found its match."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slackwater.algebra.lookups import LookupJoin, Waiting
from slackwater.execution.settling import NAMED, Arrivals
from slackwater.execution.states import State, StateSegment
from slackwater.planning.cardinality import row_bytes
from slackwater.planning.lookups import with_lookups
from tests.unit.test_costing import TOP, unique

MARKED = with_lookups(TOP, unique, lambda _: 1.0)
assert isinstance(MARKED, LookupJoin)
LINES: Waiting = MARKED.waiting
"""Lines that wait for their order."""

BEFORE, AFTER = {"lineitem": 4_000, "orders": 1_000}, {"lineitem": 4_000, "orders": 1_100}


def state(rdd_id: int = 7, *, weighted: bool = False) -> State:
    def gone() -> tuple[object, object]:
        raise AssertionError("nobody reads the rows")

    return State("k", "lines", (StateSegment(gone, weighted, rdd_id),), partial=False)


def noted(*tables: dict[str, int]) -> Arrivals:
    arrivals = Arrivals()
    for rows in tables:
        arrivals.note({"k": state()}, rows)
    return arrivals


@pytest.mark.parametrize(("rows", "ripe"), [(700, True), (880, False)])
def test_each_arrival_settles_as_many_rows_as_there_are_to_a_key(rows: int, ripe: bool) -> None:
    """A hundred orders came, of some four lines each."""
    size = rows * row_bytes(LINES)
    assert noted(BEFORE, AFTER).ripe(LINES, state(), size) is ripe


def test_nothing_is_looked_up_for_nothing() -> None:
    size = 10 * row_bytes(LINES)
    assert not noted(BEFORE, BEFORE).ripe(LINES, state(), size), "nothing came"
    assert not noted(AFTER, BEFORE).ripe(LINES, state(), size), "rows went"
    assert not noted(BEFORE).ripe(LINES, state(), size)
    assert not Arrivals().ripe(LINES, state(), size), "it was never noted"
    assert not noted(BEFORE, AFTER).ripe(LINES, state(weighted=True), size), "deletes may be of rows that were settled"
    assert not noted(BEFORE, {**AFTER, "orders": 10**9}).ripe(LINES, state(), (NAMED + 1) * row_bytes(LINES))


def test_it_is_counted_from_when_the_segment_was_made() -> None:
    size = 10 * row_bytes(LINES)
    arrivals = noted(BEFORE, AFTER)
    assert arrivals.ripe(LINES, state(), size)
    arrivals.note({"k": replace(state(), segments=state(8).segments)}, AFTER)
    assert not arrivals.ripe(LINES, state(8), size)
    assert not arrivals.ripe(LINES, state(7), size), "that segment is gone"

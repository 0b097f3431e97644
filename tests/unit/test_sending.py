"""Which full outputs are sent to every task: few rows, and never too many at worst."""

from __future__ import annotations

import math

import pytest

from slackwater.algebra.expressions import call, col, lit
from slackwater.algebra.joins import ANTI, SEMI, MatchJoin
from slackwater.algebra.nodes import Aggregate, Field, Filter, Item, Join, Rel, Scan, TopK, Union
from slackwater.algebra.printer import node_key
from slackwater.delta.environment import Change
from slackwater.execution.program import INCREMENTAL, INITIAL, compile_program
from slackwater.planning.cardinality import Cardinalities
from slackwater.planning.sending import rows_to_send

ROWS = {"large": 6_000_000.0, "huge": 1e9, "small": 1_000.0}


def scan(table: str, *columns: str) -> Scan:
    fields = tuple(Field(c, "bigint") for c in columns)
    return Scan(table, fields, tuple(range(len(columns))))


LARGE, HUGE, SMALL = scan("large", "a", "b"), scan("huge", "x", "y"), scan("small", "k", "v")


def few(rel: Rel, column: str) -> Filter:
    return Filter(rel, call(">", col(column, "bigint"), lit(5, dtype="bigint"), dtype="boolean"))


def on(left: Rel, right: Rel, a: str, b: str) -> Join:
    return Join(left, right, call("=", col(a, "bigint"), col(b, "bigint"), dtype="boolean"))


def cards(shares: dict[str, float] | None = None, observed: dict[str, float] | None = None) -> Cardinalities:
    return Cardinalities(ROWS, {}, observed or {}, shares or {}, lambda t: (0,) if t == "small" else ())


def test_a_small_table_is_sent_and_a_large_one_is_not() -> None:
    assert rows_to_send(cards(), SMALL) == 1_000
    assert math.isinf(rows_to_send(cards(), LARGE))


def test_a_sampled_filter_is_sent_where_the_table_is_bearable_at_worst() -> None:
    kept, worst = few(LARGE, "a"), few(HUGE, "x")
    shares = {node_key(kept): 0.001, node_key(worst): 1e-6}
    assert rows_to_send(cards(shares), kept) == 6_000
    assert math.isinf(rows_to_send(cards(shares), worst)), "a wrong sample would send a billion rows"
    assert rows_to_send(cards(shares, {node_key(worst): 1_000.0}), worst) == 1_000, "they have been counted"


def test_a_join_on_a_key_has_no_more_rows_than_the_side_that_asks() -> None:
    kept = few(LARGE, "a")
    by_key, by_value = on(kept, SMALL, "b", "k"), on(kept, SMALL, "b", "v")
    shares = {node_key(kept): 0.001}
    assert rows_to_send(cards(shares), by_key) <= 6_000
    assert math.isinf(rows_to_send(cards(shares), by_value)), "every row could match every row"


@pytest.mark.parametrize(
    ("rel", "sent"),
    [
        (TopK(LARGE, (), 10), True),
        (Union((SMALL, SMALL), SMALL.schema), True),
        (Aggregate(SMALL, (Item("k", col("k", "bigint")),), ()), True),
        (Join(SMALL, scan("small", "k2", "v2"), None), False),
    ],
    ids=["top-k", "union", "aggregate", "cross join"],
)
def test_what_is_bounded_by_its_inputs(rel: Rel, sent: bool) -> None:
    assert math.isfinite(rows_to_send(cards(), rel)) is sent


def test_a_program_sends_the_side_it_was_told_in_full_joins_and_rather_than_a_larger_change() -> None:
    join = on(LARGE, SMALL, "b", "k")
    known = cards()

    def compiled(mode: str, changes: dict[str, Change]) -> str:
        return compile_program(
            join, mode, changes, {}, frozenset(), {}, to_send=lambda x: rows_to_send(known, x)
        ).as_sql()

    assert "BROADCAST(r)" in compiled(INITIAL, {})
    assert "BROADCAST" not in compile_program(join, INITIAL, {}, {}, frozenset(), {}).as_sql()
    assert "BROADCAST(r)" in compiled(INCREMENTAL, {"large": Change(60_000, 0, 6_000_000)})
    assert "BROADCAST(l)" in compiled(INCREMENTAL, {"large": Change(100, 0, 6_000_000)}), (
        "the change is the smaller one"
    )
    arrived = compiled(INCREMENTAL, {"small": Change(10, 0, 1_000)})
    assert "BROADCAST(r)" in arrived, "the change of the right side"


@pytest.mark.parametrize("kind", [SEMI, ANTI])
def test_a_full_match_join_sends_its_right_side_or_none(kind: str) -> None:
    known = cards()
    for left, right, sent in ((LARGE, SMALL, True), (SMALL, LARGE, False)):
        same = call("=", col(left.names[1], "bigint"), col(right.names[0], "bigint"), dtype="boolean")
        join = MatchJoin(left, right, same, kind)
        text = compile_program(
            join, INITIAL, {}, {}, frozenset(), {}, to_send=lambda x: rows_to_send(known, x)
        ).as_sql()
        assert ("BROADCAST(r)" in text) is sent
        assert "BROADCAST(l)" not in text, "Spark cannot look for the matches of rows that every task has"
        assert math.isfinite(rows_to_send(known, join)) is (left is SMALL), "no more rows than the left side has"


def test_a_program_that_moves_many_rows_is_heavy() -> None:
    sizes = {t: int(n) for t, n in ROWS.items()}
    join = on(LARGE, HUGE, "b", "x")
    assert compile_program(join, INITIAL, {}, {}, frozenset(), {}, sizes).heavy
    small = on(SMALL, scan("small", "k2", "v2"), "v", "v2")
    assert not compile_program(small, INITIAL, {}, {}, frozenset(), {}, sizes).heavy

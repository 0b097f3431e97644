"""The whole text of an explanation, of views whose states are written down here: no Spark and no measured seconds."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import call, col, lit
from slackwater.algebra.lookups import RIGHT, KeyPair, LookupJoin
from slackwater.algebra.printer import describe, node_key
from slackwater.algebra.windows import Window, WindowCall
from slackwater.delta.environment import Change
from slackwater.execution.explaining import explain
from slackwater.execution.program import INCREMENTAL, Program, compile_program
from slackwater.planning.choices import Choice

AMOUNT, CUST = col("amount", "int"), col("cust", "int")
ORDERS = n.Scan("orders", (n.Field("id", "int"), n.Field("cust", "int"), n.Field("amount", "int")), (0, 1, 2))
CUSTOMERS = n.Scan("customers", (n.Field("c_id", "int"), n.Field("region", "string")), (0, 1))
LARGE = n.Filter(ORDERS, call(">", AMOUNT, lit(9, dtype="int"), dtype="boolean"))
SAME = call("=", CUST, col("c_id", "int"), dtype="boolean")
JOINED = LookupJoin(LARGE, CUSTOMERS, SAME, "", RIGHT, (KeyPair(CUST, "c_id"),))
BY_REGION = n.Aggregate(
    JOINED, (n.Item("region", col("region", "string")),),
    (AggCall("total", "sum", (AMOUNT,), "bigint"), AggCall("most", "max", (AMOUNT,), "int")),
)  # fmt: skip
TOP = n.TopK(BY_REGION, (n.SortKey(col("total", "bigint"), True, False),), 3)
RANKED = Window(BY_REGION, (), (WindowCall("place", "rank", (), "int", (n.SortKey(col("most", "int"), True, False),)),))


def view(plan: n.Rel, kept: dict[str, int], choices: tuple[Choice, ...], program: Program | None) -> Any:
    """What `explain` asks of a view."""
    return SimpleNamespace(
        name="totals", version=7, strategy="auto", plan=plan, choices=choices, kept=frozenset(kept), budget=2_000_000,
        known_bytes=lambda: kept, state_bytes=lambda: sum(kept.values()), last_program=program,
        history=lambda limit: [{"next_best": "nothing kept: 0.3 s more"}] if choices else [],
    )  # fmt: skip


def choice(node: n.Rel, keep: bool, reason: str, size: int = 0) -> Choice:
    return Choice(node_key(node), describe(node), keep, reason, size)


def test_states_kept_and_not_kept_and_groups_that_are_redone(golden: Callable[[str, str], None]) -> None:
    assert JOINED.index is not None
    choices = (
        choice(BY_REGION, True, "saves 0.2 s at the next refresh; it is there", 900),
        choice(LARGE, False, "would save 0.1 s, but 3,000,000 bytes more do not fit the budget", 3_000_000),
        choice(CUSTOMERS, False, "would save nothing at the next refresh"),
        choice(JOINED.index, True, "saves 0.1 s at the next refresh; building it costs 0.2 s", 40_000),
    )
    kept = {node_key(BY_REGION): 1_234, node_key(JOINED.index): 43_210}
    changes = {"orders": Change(10, 2, 1_000), "customers": Change(1, 0, 100)}
    program = compile_program(TOP, INCREMENTAL, changes, {node_key(BY_REGION): False}, frozenset(kept), {})
    text = explain(view(TOP, kept, choices, program), with_sql=False)
    golden("explain/kept_and_not_kept.txt", text)
    assert (text.count("■ kept"), text.count("□ not kept"), text.count("↻")) == (2, 2, 1)


def test_an_operator_that_is_recomputed(golden: Callable[[str, str], None]) -> None:
    changes = {"orders": Change(10, 0, 1_000)}
    partials = {node_key(BY_REGION): 1_234}
    program = compile_program(RANKED, INCREMENTAL, changes, {node_key(BY_REGION): False}, frozenset(partials), {})
    golden("explain/recomputed.txt", explain(view(RANKED, partials, (), program), with_sql=False))


def test_a_query_that_no_algebra_follows(golden: Callable[[str, str], None]) -> None:
    opaque = n.Opaque(
        "SELECT median(a) AS m FROM t", ("t",), (n.Field("m", "double"),), "EXPRESSION_UNSUPPORTED", "median"
    )
    golden("explain/opaque.txt", explain(view(opaque, {}, (), None), with_sql=False))

"""A view's plan for people: what each operator does, what is kept, what was dropped and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slackwater.algebra.nodes import Opaque, Rel
from slackwater.algebra.printer import describe, node_key
from slackwater.delta.environment import Change
from slackwater.delta.rules import keeps_state
from slackwater.delta.ways import Operator, ways
from slackwater.execution.modes import mode_by_price
from slackwater.execution.program import INCREMENTAL, INITIAL, RECOMPUTE, compile_program
from slackwater.execution.state_planning import price_now
from slackwater.execution.states import added_to, few_groups
from slackwater.planning.choices import Choice
from slackwater.planning.sending import rows_to_send
from slackwater.planning.strategies import BY_RULE, seconds_text
from slackwater.settings import show_bytes

if TYPE_CHECKING:
    from slackwater.view import View


def explain(view: View, *, with_sql: bool) -> str:
    """The plan tree with states and reasons; then the program of the next refresh, if every table changed."""
    choices = {c.key: c for c in view.choices}
    sizes = view.known_bytes()
    lines = [f"view {view.name} at version {view.version}, strategy {view.strategy}"]
    lines.append(f"states {show_bytes(view.state_bytes())} of a budget of {show_bytes(view.budget)}")
    last = view.history(1)
    if last and last[0].get("next_best"):
        lines.append(f"next best choice of states: {last[0]['next_best']}")
    lines.append("")
    _tree(view, view.plan, ways(view.plan), 0, lines, choices, sizes)
    if with_sql:
        lines += ["", "program of the next refresh, if every table brings inserts:", "", program_sql(view)]
    return "\n".join(lines)


def _tree(
    view: View,
    node: Rel,
    way: Operator,
    depth: int,
    lines: list[str],
    choices: dict[str, Choice],
    sizes: dict[str, int],
) -> None:
    key = node_key(node)
    text = "  " * depth + way.label
    lines.append(f"{text if len(text) <= 160 else text[:157] + '…'}  · {way.text}")
    for state in (node, *node.side_states):
        choice = choices.get(node_key(state))
        if choice is not None:
            what = "" if state is node else f" {describe(state)}"
            lines.append("  " * depth + f"    {_mark(view, choice, sizes)}{what}: {choice.reason}")
            lines += ["  " * depth + f"      {other}" for other in _otherwise(choice, kept=choice.key in view.kept)]
    reasons = view.last_program.reasons if view.last_program is not None else {}
    if key in reasons:
        lines.append("  " * depth + f"    ↻ {reasons[key]}")
    for child, below in zip(node.children, way.inputs, strict=True):
        _tree(view, child, below, depth + 1, lines, choices, sizes)


def _mark(view: View, choice: Choice, sizes: dict[str, int]) -> str:
    if choice.key in view.kept:
        return f"■ kept {show_bytes(sizes.get(choice.key, 0))}"
    return f"□ not kept{f' (about {show_bytes(choice.size)})' if choice.size else ''}"


def _otherwise(choice: Choice, *, kept: bool) -> list[str]:
    """What the node's other choice would cost, if nothing else were decided otherwise."""
    with_it, without = seconds_text(choice.seconds_with), seconds_text(choice.seconds_without)
    if not choice.seconds_with and not choice.seconds_without:  # a choice that an older version put down
        return []
    if kept:
        return [f"otherwise: not kept, and the next refresh takes {without} instead of {with_it}"]
    return [f"otherwise: kept, and the next refresh takes {with_it} instead of {without}"]


def program_sql(view: View) -> str:
    """The SQL of the next refresh."""
    if isinstance(view.plan, Opaque):
        return compile_program(view.plan, INITIAL, {}, {}, view.wanted, {}).as_sql()
    from slackwater.execution.refresh import Refresher

    refresher = Refresher(view)
    facts, sizes = refresher.facts(), {t: s.rows for t, s in refresher.tables.items()}
    changes = {t: Change(max(1, n // 100), 0, n) for t, n in sizes.items() if not refresher.tables[t].complete}
    cards = facts.cardinalities({})
    prices = price_now(facts, changes, view.kept)
    by_rule = prices.quick or view.strategy in BY_RULE
    if by_rule:
        recomputed = bool(view.wanted - view.kept) or _lacks_partials(view)
    else:
        recomputed = mode_by_price(refresher, prices, changes)[0] == RECOMPUTE
    if recomputed:
        mode = RECOMPUTE if view.version else INITIAL
        changes, kept, wanted = {}, frozenset[str](), view.wanted
    else:
        mode, kept, wanted = INCREMENTAL, view.kept, view.kept
    weights = {key: key in view.states and view.states[key].weighted for key in kept}
    few = few_groups(view.plan, view.states, view.known_bytes())
    program = compile_program(view.plan, mode, changes, weights, wanted, view.row_estimates(), sizes,
                              to_send=lambda node: rows_to_send(cards, node), signed_result=refresher.result_is_signed,
                              compare=prices.compare and not by_rule,
                              since=added_to(view.states), few_groups=few,
                              result_at_hand=bool(few) and refresher.last_result() is not None)  # fmt: skip
    return program.as_sql()


def _lacks_partials(view: View) -> bool:
    """Whether an aggregate that merges has nothing to merge with, so that the next refresh recomputes."""
    merging = filter(keeps_state, view.plan.walk())
    return any(node_key(x) not in view.kept for x in merging)

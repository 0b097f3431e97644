"""For each family of operators: how each operator is refreshed, and the program that does it, as stable text."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from slackwater.algebra import nodes as n
from slackwater.algebra.first_rows import First
from slackwater.algebra.lookups import Indexed, LookupJoin, Waiting
from slackwater.algebra.printer import node_key, tree_text
from slackwater.delta.aggregate import keeps_partials
from slackwater.delta.environment import Change
from slackwater.delta.ways import Operator, ways
from slackwater.execution.program import INCREMENTAL, Program, compile_program
from tests.unit.family_plans import FAMILIES

CHANGES = {"r": Change(3, 1, 1_000_000), "s": Change(2, 1, 1_000_000)}
INSERTS = {"r": Change(3, 0, 1_000_000), "s": Change(2, 0, 1_000_000)}


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_plans(golden: Callable[[str, str], None], family: str) -> None:
    golden(f"families/{family}.txt", "\n\n".join(_told(name, plan) for name, plan in FAMILIES[family].items()))


def _told(name: str, plan: n.Rel) -> str:
    stateful = [x for x in plan.keepable() if not isinstance(x, n.Aggregate) or keeps_partials(x)]
    kept = {node_key(x) for x in stateful if not isinstance(x, n.Scan)} - {node_key(plan)}
    kept |= {node_key(x) for x in stateful if isinstance(x, n.Aggregate)}
    parts = [f"=== {name}", "--- ways", _ways(ways(plan)), "--- program, nothing kept", _program(plan, frozenset())]
    if kept:
        parts += ["--- program, all kept", _program(plan, frozenset(kept))]
    if any(isinstance(x, LookupJoin) for x in plan.walk()):
        lookups = frozenset(node_key(x) for x in plan.keepable() if isinstance(x, Waiting | Indexed))
        parts += ["--- program, lookups kept", _program(plan, lookups)]
        parts += ["--- program, lookups kept, inserts alone", _program(plan, lookups, INSERTS, since=True)]
    return "\n".join(parts)


def _ways(operator: Operator, depth: int = 0) -> str:
    lines = [f"{'  ' * depth}{operator.label}  · {operator.text}"]
    return "\n".join(lines + [_ways(o, depth + 1) for o in operator.inputs])


def _program(plan: n.Rel, states: frozenset[str], changes: dict[str, Change] = CHANGES, *, since: bool = False) -> str:
    """The program of a refresh; with `since`, rows have been added to indexes after they were made."""
    nodes = {node_key(x): x for x in plan.keepable() if node_key(x) in states}
    weighted = {key: not (since or isinstance(x, n.Aggregate | First)) for key, x in nodes.items()}
    added = frozenset(key for key, x in nodes.items() if since and isinstance(x, Indexed))
    return _named(plan, _text(compile_program(plan, INCREMENTAL, changes, weighted, states, {}, since=added)))


def _text(program: Program) -> str:
    parts = [f"{step.name} ({step.purpose.value}):\n{_shifted(step.rel)}" for step in program.steps]
    root = _shifted(program.root) if program.root is not None else "  nothing"
    return "\n".join([*parts, f"result delta:\n{root}"])


def _shifted(rel: n.Rel) -> str:
    return "\n".join("  " + line for line in tree_text(rel).splitlines())


def _named(plan: n.Rel, text: str) -> str:
    """Short names in the place of keys, numbered as the plan's nodes stand: #1 is the root."""
    numbers = itertools.count(1)
    for key in dict.fromkeys(map(node_key, (*plan.walk(), *plan.keepable()))):
        text = text.replace(key, f"#{next(numbers)}")
    return text

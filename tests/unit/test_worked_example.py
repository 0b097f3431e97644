"""The numbers of the worked example in docs/state-choice.md are those that the planner finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from slackwater.algebra.expressions import call, col, lit
from slackwater.algebra.nodes import Field, Filter, Join, Rel, Scan
from slackwater.algebra.printer import node_key
from slackwater.planning.cardinality import Cardinalities, Expected
from slackwater.planning.costing import AtHand, Pricing
from slackwater.planning.memo import Demand, Group
from slackwater.planning.rates import Rates
from slackwater.planning.staircase import Staircase
from slackwater.planning.state_choice import Root, StateChoice, choose

PAGE = (Path(__file__).parents[2] / "docs" / "state-choice.md").read_text(encoding="utf-8")
ROWS = {"lineitem": 6_000_000.0, "orders": 1_500_000.0, "customer": 150_000.0}
D, NEW = Demand.DELTA, Demand.NEW


def filtered(table: str, *columns: str) -> Rel:
    scan = Scan(table, tuple(Field(c, "bigint") for c in columns), tuple(range(len(columns))))
    return Filter(scan, call(">", col(columns[-1], "bigint"), lit(0), dtype="boolean"))


def joined(left: Rel, right: Rel, one: str, other: str) -> Join:
    return Join(left, right, call("=", col(one, "bigint"), col(other, "bigint"), dtype="boolean"))


LINES, ORDERS = filtered("lineitem", "l_order", "l_price"), filtered("orders", "o_key", "o_cust", "o_date")
CUSTOMERS = filtered("customer", "c_key", "c_segment")
BELOW = joined(ORDERS, CUSTOMERS, "o_cust", "c_key")
TOP = joined(LINES, BELOW, "l_order", "o_key")
NAMES = {
    node_key(LINES): "lineitem", node_key(ORDERS): "orders", node_key(CUSTOMERS): "customer",
    node_key(BELOW): "orders ⋈ customer", node_key(TOP): "lineitem ⋈ (orders ⋈ customer)",
}  # fmt: skip
SHARES = {node_key(LINES): 0.5, node_key(ORDERS): 0.5, node_key(CUSTOMERS): 0.2}
ALL = {"lineitem": 60_000.0, "orders": 15_000.0, "customer": 1_500.0}


def memo(coming: dict[str, float]) -> Root:
    cards = Cardinalities(ROWS, {t: Expected(n) for t, n in coming.items()}, {}, SHARES,
                          lambda table: () if table == "lineitem" else (0,))  # fmt: skip
    return Pricing(cards, Rates(), AtHand(serves=50.0)).root(TOP, by_delta=True)


def megabytes(size: float) -> str:
    return f"{size / 1e6:g} MB"


def steps(stairs: Staircase) -> str:
    return ", ".join(f"{megabytes(p.bytes)}: {p.seconds:.3f} s" for p in stairs.points())


def groups(root: Root) -> list[Group]:
    """The nodes that the page names, the leaves first."""
    return [g for g in reversed(root.group.walk()) if g.key in NAMES]


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ("---",) * len(head), *rows])


def candidates() -> str:
    rows = [(NAMES[g.key], megabytes(k.size), f"{k.build:.3f} s", f"{k.share:.4f} s")
            for g in groups(memo(ALL)) for k in g.keepings]  # fmt: skip
    return table(("state", "bytes", "to build", "of which the next refresh bears"), rows)


def staircases() -> str:
    root, solver = memo(ALL), StateChoice()
    rows = [(NAMES[g.key], steps(solver.stairs(g, D)), steps(solver.stairs(g, NEW))) for g in groups(root)]
    return table(("node", "D(m), its delta", "F(m), its new output"), rows)


def answers() -> str:
    rows = []
    for coming in ({"lineitem": ALL["lineitem"]}, {"customer": ALL["customer"]}, ALL):
        for budget in (5e6, 20e6, 200e6):
            found = choose(memo(coming), budget)
            kept = ", ".join(NAMES[key] for key in sorted(found.decisions, key=list(NAMES).index)) or "nothing"
            rows.append((", ".join(coming), megabytes(budget), kept, megabytes(found.bytes), f"{found.seconds:.3f} s"))
    return table(("what comes", "budget", "kept", "bytes", "the next refresh"), rows)


@pytest.mark.parametrize("made", [candidates, staircases, answers])
def test_the_page_shows_what_the_planner_finds(made) -> None:  # type: ignore[no-untyped-def]
    assert made() in PAGE, f"put this into docs/state-choice.md:\n{made()}"


def test_what_the_page_says_of_both_demands() -> None:
    below = next(g for g in groups(memo(ALL)) if NAMES[g.key] == "orders ⋈ customer")
    assert f"`{steps(StateChoice().stairs(below, D | NEW))}`" in PAGE


if __name__ == "__main__":
    print(candidates(), staircases(), answers(), sep="\n\n")
    below = next(g for g in groups(memo(ALL)) if NAMES[g.key] == "orders ⋈ customer")
    print(steps(StateChoice().stairs(below, D | NEW)), steps(memo(ALL).stairs()), sep="\n")
    print(memo(ALL).demands)

"""The state choice against trying everything, and against the discretised table of the original algorithm."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.planning.memo import Demand, Group, Keeping, Way
from slackwater.planning.staircase import add, best, flat, shift
from slackwater.planning.state_choice import Pricer, Root, StateChoice, choose, price

D, OLD, NEW = Demand.DELTA, Demand.OLD, Demand.NEW
DEMANDS = [Demand(bits) for bits in range(1, 8)]

DEPTH = 3
MOST_CHOICES = 400
"""Trees are drawn so that trying every set of states takes no more tries than this: none has to be left out."""

# Whole numbers: then adding up in another order cannot change a digit, and equality can be asked for.
COSTS = st.integers(0, 40).map(float)


class Drawn:
    """Random trees of groups with random ways: the program may not rely on what operators happen to cost."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.choices, self._names = 1, itertools.count()

    def cost(self) -> float:
        return float(self.chance.randint(0, 40))

    def tree(self, level: int = DEPTH) -> Group:
        width = self.chance.randint(level == DEPTH, 2) if level else 0
        inputs = tuple(self.tree(level - 1) for _ in range(width))
        key, plain, keepings = f"g{next(self._names)}", self._ways(len(inputs)), []
        room = min(2, MOST_CHOICES // self.choices - 1)
        for at in range(self.chance.randint(0, room)):
            opened = self._ways(len(inputs))
            keepings.append(Keeping(f"{key}.{at}", self.chance.randint(0, 30), self.cost(), opened.__getitem__))
        self.choices *= 1 + len(keepings)
        return Group(key, key, inputs, plain.__getitem__, tuple(keepings))

    def demand(self) -> Demand:
        return self.chance.choice(DEMANDS)

    def _ways(self, width: int) -> dict[Demand, tuple[Way, ...]]:
        asked = [Demand.NOTHING, *DEMANDS]
        return {
            demand: tuple(
                Way(self.cost(), tuple(self.chance.choice(asked) for _ in range(width)))
                for _ in range(self.chance.randint(1, 2))
            )
            for demand in DEMANDS
        }


def every_choice(group: Group) -> list[frozenset[str]]:
    """Each node keeps nothing, or one of its states."""
    options = [[None, *(k.key for k in g.keepings)] for g in group.walk()]
    return [frozenset(k for k in chosen if k is not None) for chosen in itertools.product(*options)]


def bytes_of(group: Group, kept: frozenset[str]) -> int:
    return sum(k.size for g in group.walk() for k in g.keepings if k.key in kept)


def no_choice_is_cheaper(seed: int) -> None:
    drawn = Drawn(seed)
    group, demand, budget = drawn.tree(), drawn.demand(), drawn.chance.randint(0, 90)
    choices, pricer = every_choice(group), Pricer()
    assert len(choices) == drawn.choices <= MOST_CHOICES
    cheapest = min(pricer.price(group, demand, kept) for kept in choices if bytes_of(group, kept) <= budget)
    found = StateChoice(budget).stairs(group, demand).at(budget)
    assert found is not None, seed
    assert found.seconds == cheapest, seed
    # The decisions are real: they fit, and they cost what is claimed.
    kept = frozenset(found.decisions)
    assert bytes_of(group, kept) == found.bytes <= budget, seed
    assert price(group, demand, kept) == found.seconds, seed


def test_no_choice_of_states_is_cheaper() -> None:
    for seed in range(3_000):
        no_choice_is_cheaper(seed)


@pytest.mark.slow
def test_no_choice_of_states_is_cheaper_in_many_more_trees() -> None:
    for seed in range(3_000, 20_000):
        no_choice_is_cheaper(seed)


def test_one_pass_answers_every_budget() -> None:
    for seed in range(1_000):
        drawn = Drawn(seed)
        group, demand = drawn.tree(), drawn.demand()
        stairs = StateChoice().stairs(group, demand)
        points = stairs.points()
        assert stairs.exact
        assert all(a.bytes < b.bytes and a.seconds > b.seconds for a, b in itertools.pairwise(points))
        for budget in (0, 7, 19, 45, 80):
            alone = StateChoice(budget).stairs(group, demand).at(budget)
            whole = stairs.at(budget)
            assert alone is not None, seed
            assert whole is not None, seed
            assert alone.seconds == whole.seconds, seed


# --- the original algorithm: a table over whole units of memory ------------------------------------------------------


@dataclass(frozen=True)
class Op:
    """An operator of the original algorithm, with the numbers that its actions read."""

    kind: str
    inputs: tuple[Op, ...]
    name: str
    size: int
    left: int
    right: int
    c: tuple[float, ...]


def operator(chance: random.Random, level: int, names: Iterator[int]) -> Op:
    kind = chance.choice(["materialize", "sort", "aggregate", "join"] if level else ["scan"])
    inputs = tuple(operator(chance, level - 1, names) for _ in range({"scan": 0, "join": 2}.get(kind, 1)))
    numbers = tuple(float(chance.randint(0, 40)) for _ in range(8))
    size, left, right = (chance.randint(1, 12) for _ in range(3))
    return Op(kind, inputs, f"o{next(names)}", size, left, right, numbers)


def actions(op: Op) -> list[tuple[int, tuple[float, tuple[Demand, ...]], tuple[float, tuple[Demand, ...]]]]:
    """Every action: bytes kept, then cost and demands for the delta and for the full output.

    `c` holds, in order: delta work, full work, materializing, scanning what was kept, building or inserting on the
    left, on the right, probing with the left delta, probing with the right delta.
    """
    delta, full, make, scan, left, right, probe_left, probe_right = op.c
    if op.kind == "scan":
        return [(0, (delta, ()), (full, ()))]
    if op.kind == "materialize":
        return [
            (0, (delta, (D,)), (full, (NEW,))),
            (op.size, (make + delta, (D,)), (make + delta + scan, (D,))),
        ]
    if op.kind == "sort":
        return [
            (0, (delta, (D,)), (full, (NEW,))),
            (op.size, (delta, (D,)), (delta + scan, (D,))),
        ]
    if op.kind == "aggregate":
        return [
            (0, (full, (NEW,)), (full, (NEW,))),
            (op.size, (delta, (D,)), (delta + scan, (D,))),
        ]
    return [
        (0, (full, (NEW, NEW)), (full, (NEW, NEW))),
        (op.right, (right + probe_left + probe_right, (NEW, D)), (right + full, (NEW, D))),
        (op.left + op.right, (left + right + probe_left + probe_right, (D, D)), (left + right + full, (D, D))),
        (op.left, (left + probe_left + probe_right, (D, NEW)), (left + full, (D, NEW))),
    ]


def discretised(op: Op, memory: int) -> dict[Demand, list[float]]:
    """D(m) and F(m) for m = 0 … memory, by enumerating how a join's inputs share what is left."""
    below = [discretised(child, memory) for child in op.inputs]
    table = {D: [math.inf] * (memory + 1), NEW: [math.inf] * (memory + 1)}
    for size, *costs in actions(op):
        for output, (cost, demands) in zip((D, NEW), costs, strict=True):
            for m in range(size, memory + 1):
                rest = m - size
                if not below:
                    value = cost
                elif len(below) == 1:
                    value = cost + below[0][demands[0]][rest]
                else:
                    one, two = below[0][demands[0]], below[1][demands[1]]
                    value = cost + min(one[a] + two[rest - a] for a in range(rest + 1))
                table[output][m] = min(table[output][m], value)
    return table


def as_group(op: Op) -> Group:
    """The same operator in the memo."""
    (_, *plain), *kept = actions(op)

    def ways(pair: list[tuple[float, tuple[Demand, ...]]]) -> dict[Demand, tuple[Way, ...]]:
        return {output: (Way(cost, demands),) for output, (cost, demands) in zip((D, NEW), pair, strict=True)}

    def keeping(at: int, size: int, pair: list[tuple[float, tuple[Demand, ...]]]) -> Keeping:
        table = ways(pair)
        return Keeping(f"{op.name}.{at}", size, 0.0, lambda d: table[d])

    table = ways(plain)
    keepings = tuple(keeping(at, size, pair) for at, (size, *pair) in enumerate(kept))
    return Group(op.name, op.kind, tuple(as_group(child) for child in op.inputs), lambda d: table[d], keepings)


def equals_the_discretised_table(seed: int) -> None:
    chance, memory = random.Random(seed), 40
    op = operator(chance, chance.randint(1, 3), itertools.count())
    table, group = discretised(op, memory), as_group(op)
    for output in (D, NEW):
        stairs = StateChoice(memory).stairs(group, output)
        for m in range(memory + 1):
            found = stairs.at(m)
            assert found is not None, seed
            assert found.seconds == table[output][m], seed


def test_equals_the_discretised_table_of_the_original_algorithm() -> None:
    for seed in range(2_000):
        equals_the_discretised_table(seed)


@pytest.mark.slow
def test_equals_the_discretised_table_in_many_more_plans() -> None:
    for seed in range(2_000, 12_000):
        equals_the_discretised_table(seed)


# --- the staircase itself --------------------------------------------------------------------------------------------


def test_a_budget_of_zero_keeps_nothing() -> None:
    leaf = Group("a", "a", (), lambda _: (Way(5.0),), (Keeping("a", 1, 0.0, lambda _: (Way(1.0),)),))
    root = Root(leaf, ((D, 0.0),))
    assert choose(root, 0).decisions == ()
    assert choose(root, -7).decisions == ()
    assert choose(root, 1).decisions == ("a",)


def test_building_a_state_counts() -> None:
    leaf = Group("a", "a", (), lambda _: (Way(5.0),), (Keeping("a", 1, 4.5, lambda _: (Way(1.0),)),))
    assert choose(Root(leaf, ((D, 0.0),)), 100).decisions == ()


def test_the_cheaper_of_delta_and_comparison_is_taken() -> None:
    leaf = Group("a", "a", (), lambda d: (Way(5.0 if d is D else 2.0),))
    root = Root(leaf, ((D, 0.0), (NEW, 1.0)))
    assert root.price(frozenset()) == 3.0
    assert root.demand(frozenset()) is NEW


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 50), COSTS), min_size=1, max_size=30))
def test_a_staircase_is_the_pareto_front(points: list[tuple[int, float]]) -> None:
    made = best([shift(flat(0.0), size, cost, "x", math.inf) for size, cost in points], math.inf)
    for budget in range(52):
        fitting = [cost for size, cost in points if size <= budget]
        found = made.at(budget)
        assert (found.seconds if found is not None else None) == (min(fitting) if fitting else None)


def test_adding_thins_only_what_is_huge_and_says_so() -> None:
    many = best([shift(flat(0.0), i, float(5000 - i), str(i), math.inf) for i in range(5000)], math.inf)
    assert many.exact
    both = add(many, best([flat(1.0), shift(flat(0.0), 3, 0.5, "y", math.inf)], math.inf), math.inf)
    assert not both.exact
    assert both.at(0) is not None

"""The experiments over TPC-H, one function for each figure."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from slackwater.algebra.nodes import Aggregate, Join, Rel
from slackwater.algebra.printer import node_key
from slackwater.arrivals.fixed import fixed
from slackwater.bench.iqp_experiment import Experiment, Run, Way, expected
from slackwater.bench.tpch_queries import QUERIES

WARM_UPS = 5
REPEATS = 3
"""So many deltas of a kind are measured; the median counts."""

LATE = (("9%", 0.09, 1), ("0.9%", 0.009, 1), ("0.1%", 0.001, REPEATS))
"""The late deltas: their name, their share of the rows, and how often they come. The last can come again, the first
could not: 9% more of the rows each time would be another experiment."""
LATE_HELD_BACK = round(sum(share * times for _, share, times in LATE), 6)

SMALL_WARM_UPS = 20
SMALL_WARM_UP = 0.0005
"""When late data are rehearsed, so many small deltas come after the large ones: a small refresh is little but code of
Spark's driver, which takes some twenty rounds to be compiled by Java."""
REHEARSED = (LATE[0][:2], LATE[1][:2], *[("small", SMALL_WARM_UP)] * SMALL_WARM_UPS)
REHEARSED_HELD_BACK = round(sum(share for _, share in REHEARSED), 6)

FEW_WARM_UPS = 3
"""So many of them are enough for a recompute, where refreshes of large tables take long."""

PATIENCE = 100.0
"""Seconds that the initial run of higher-order views may take."""

LARGE = 0.3
FORESEEN = {"1% foreseen": 0.01, "30% foreseen": LARGE, "0.03% foreseen": 0.01 / 30}
"""Forecasts of figure 5, for deltas of 1% and of 30%."""
TIGHT = (0.05, 0.15, 0.4)
"""Budgets of figure 5, of what `incremental` keeps, beside one that limits nothing. Without memory all recompute."""

COUNTS = (1, 2, 3, 4, 5)
"""So many tables are foreseen, and so many bring rows, in figure 6."""

DELETES = (0.0, 0.25, 0.5, 0.75, 1.0)
BUDGETS = (0.0, 0.05, 0.15, 0.4, 1.0)


def late_data(experiment: Experiment, queries: Sequence[int]) -> list[Run]:
    """Figure 3: some 90%, then 9%, 0.9% and 0.1%, under the strategies; each is foreseen when the last one is taken.

    Those that keep much have the memory, and the tables, to themselves: a heap that is full of one way's states would
    slow down the others.
    """
    told = expected(experiment.engine, LATE[0][1])
    experiment.add([Way(q, s, s, told) for q in queries for s in ("rebatch", "auto", "plain")])
    return _late(experiment)


def late_data_alone(experiment: Experiment, queries: Sequence[int]) -> list[Run]:
    """Figure 3 for `auto` and `rebatch` alone, for large scale factors."""
    told = expected(experiment.engine, LATE[0][1])
    experiment.add([Way(q, s, s, told) for q in queries for s in ("rebatch", "auto")])
    return _late(experiment, few="rebatch")


def late_data_higher_order(experiment: Experiment, queries: Sequence[int]) -> list[Run]:
    """Figure 3 again, for higher-order views, apart from all else that needs memory.

    Some of their joins are near to cross products: an initial run that takes too long is given up.
    """
    told = expected(experiment.engine, LATE[0][1])
    for query in queries:
        experiment.start_limited(Way(query, "higher_order", "higher_order", told), PATIENCE)
    return _late(experiment)


def late_data_kept(experiment: Experiment, queries: Sequence[int]) -> list[Run]:
    """Figure 3 once more, for the strategy that keeps both inputs of every join."""
    told = expected(experiment.engine, LATE[0][1])
    experiment.add([Way(q, "incremental", "incremental", told) for q in queries])
    return _late(experiment)


def _late(experiment: Experiment, few: str = "") -> list[Run]:
    """All late deltas, or their rehearsal; in that, one way may do with few of the small ones.

    Between them the tables move on. It lags behind by half of them at most, for the changes that a view has not read
    yet cannot be merged, and a pile of them would slow down the others.
    """
    counted = not experiment.rehearsal
    coming = [(label, share) for label, share, times in LATE for _ in range(times)] if counted else list(REHEARSED)
    large = len(coming) - SMALL_WARM_UPS
    taken = {large + round(turn * (SMALL_WARM_UPS - 1) / (FEW_WARM_UPS - 1)) for turn in range(FEW_WARM_UPS)}
    for turn, ((label, share), (_, then)) in enumerate(zip(coming, [*coming[1:], coming[-1]], strict=True)):
        experiment.foresee(then)
        left_out = () if counted or turn < large or turn in taken else (few,)
        experiment.delta(label, share, counted=counted, but=left_out)
    return experiment.verified() if counted else []


def wrong_sizes(experiment: Experiment, queries: Sequence[int]) -> list[Run]:
    """Figure 5: deltas of 1%, then one of 30%, each foreseen as 1%, as 30% and as a thirtieth of a percent.

    Under several budgets: where there is room for little, a wrong forecast could keep the wrong states.
    """
    ways = [Way(q, "rebatch", "rebatch") for q in queries]
    here = 1.0 / experiment.there  # shares are of all rows, not of those there
    wanted = {q: _all_states(experiment, q, expected(experiment.engine, 0.01 * here)) for q in queries}
    for label, share in FORESEEN.items():
        told = expected(experiment.engine, share * here)
        ways += [Way(q, label, forecast=told) for q in queries]
        ways += [Way(q, under(label, part), forecast=told, budget=int(part * wanted[q]))
                 for q in queries for part in TIGHT]  # fmt: skip
    experiment.add(ways)
    _repeat(experiment, "1%", 0.01)
    experiment.delta("30%", LARGE)
    return experiment.verified()


def wrong_tables(experiment: Experiment, queries: Sequence[int]) -> list[Run]:
    """Figure 6: forecasts that name more or fewer tables than then bring rows."""
    order = ("lineitem", "orders", "part", "customer", "supplier")
    ways = [Way(q, "rebatch", "rebatch") for q in queries]
    for count in COUNTS:
        told = expected(experiment.engine, 0.01, order[:count])
        ways += [Way(q, f"{count} foreseen", forecast=told) for q in queries]
    experiment.add(ways)
    for _ in range(WARM_UPS):
        experiment.delta("warm-up", 0.002, order, counted=False)
    for count, _ in itertools.product(COUNTS, range(REPEATS)):
        experiment.delta(f"{count} of 5 arrive", 0.01, order[:count])
    return experiment.verified()


def budgets(experiment: Experiment, queries: Sequence[int]) -> list[Run]:
    """Figure 7: a delta of 1% under budgets from nothing to all that is wanted, against a cache's heuristic."""
    ways = [Way(q, "rebatch", "rebatch") for q in queries]
    told = expected(experiment.engine, 0.01)
    for query in queries:
        wanted = _all_states(experiment, query, told)
        for share in BUDGETS:
            size = int(share * wanted)
            ways.append(Way(query, f"auto {share:.0%}", "auto", told, size))
            ways.append(Way(query, f"recycler {share:.0%}", "recycler", told, size))
    experiment.add(ways)
    return _repeated(experiment, "1%", 0.01)


def under(label: str, part: float) -> str:
    """A forecast of figure 5 under a budget."""
    return f"{label}, {part:.0%} of memory"


def _all_states(experiment: Experiment, query: int, told: Mapping[str, float]) -> int:
    """The bytes of all that `incremental` keeps."""
    full = experiment.engine.create_view("full", QUERIES[query], forecast=fixed(dict(told)), strategy="incremental")
    found = full.state_bytes()
    full.drop()
    return found


def deletes(experiment: Experiment, queries: Sequence[int]) -> list[Run]:
    """Figure 9: a delta of 1% of which a growing share are deletes."""
    experiment.add([Way(q, s, s) for q in queries for s in ("rebatch", "auto", "plain")])
    for _ in range(WARM_UPS):
        experiment.delta("warm-up", 0.01, deletes=0.5, counted=False)
    for share, _ in itertools.product(DELETES, range(REPEATS)):
        experiment.delta(f"{share:.0%} deletes", 0.01, deletes=share)
    return experiment.verified()


def injected(experiment: Experiment, queries: Sequence[int]) -> list[Run]:
    """Figure 8: what may be kept beyond what a pipelined run has in memory anyway."""
    told = expected(experiment.engine, 0.01)
    ways = [Way(q, "rebatch", "rebatch") for q in queries]
    for label, only in (("as it runs", as_it_runs), ("materialized too", materialized), ("both sides too", None)):
        ways += [Way(q, label, "auto", told, only=only) for q in queries]
    experiment.add(ways)
    return _repeated(experiment, "1%", 0.01)


def as_it_runs(plan: Rel) -> frozenset[str]:
    """What a pipelined plan has in memory when it is done: the groups of aggregates, and each join's right input."""
    found = {node_key(x) for x in plan.walk() if isinstance(x, Aggregate)}
    return frozenset(found | {node_key(x.right) for x in plan.walk() if isinstance(x, Join)})


def materialized(plan: Rel) -> frozenset[str]:
    """Besides, the outputs of joins that stream into another join."""
    inputs = [side for x in plan.walk() if isinstance(x, Join) for side in x.children]
    streamed = {node_key(side) for side in inputs if any(isinstance(x, Join) for x in side.walk())}
    return as_it_runs(plan) | streamed


def _repeated(experiment: Experiment, label: str, share: float) -> list[Run]:
    _repeat(experiment, label, share)
    return experiment.verified()


def _repeat(experiment: Experiment, label: str, share: float) -> None:
    for turn in range(WARM_UPS + REPEATS):
        experiment.delta(label, share, counted=turn >= WARM_UPS)

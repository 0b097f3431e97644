"""What the experiments should reach, as numbers: each target is computed from the runs and is met or missed.

Single measurements differ by some 15% from one to the next. Where a target says that something costs nothing, or never
more than something else, it is asked up to `NOISE`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from slackwater.bench.iqp_experiment import Run
from slackwater.bench.iqp_report import MANY_JOINS, at_work, delta_seconds, geometric_mean

NOISE = 1.15
LARGE_SCALE = 5.0
"""From this scale factor on, late data should gain more."""
FASTER, FASTER_AT_LARGE_SCALE = (6.0, 15.0), (15.0, 40.0)
"""How much faster than a recompute a late 0.1% should be: in the geometric mean, and at best."""


@dataclass(frozen=True, slots=True)
class Target:
    """One number that an experiment should reach.

    Attributes:
        name: what it is.
        value: what the runs come to; None where none of them measures it.
        limit: what it should be at most, or at least.
        least: whether it should be at least the limit.
        where: the run that decided, where one did.
    """

    name: str
    value: float | None
    limit: float
    least: bool = False
    where: str = ""

    @property
    def met(self) -> bool | None:
        """Whether it was reached; None where it was not measured."""
        if self.value is None:
            return None
        return self.value >= self.limit if self.least else self.value <= self.limit

    def to_dict(self) -> dict[str, Any]:
        """As it is saved."""
        return {"name": self.name, "value": self.value, "asked": "at least" if self.least else "at most",
                "limit": self.limit, "met": self.met, "where": self.where}  # fmt: skip


def targets(figure: int, runs: Sequence[Run], scale: float = 1.0) -> list[Target]:
    """The targets of one figure."""
    done = [run for run in runs if not run.failure]
    own = _OF_FIGURES[figure](done, scale) if figure in _OF_FIGURES else []
    return [*own, *_of_every_experiment(done)]


def table_targets(runs: Sequence[Run]) -> list[Target]:
    """The targets of table 2: what is kept must not cost a single query."""
    mine = [run for run in runs if run.label == "auto"]
    finished = sum(not run.failure for run in mine)
    done = [run for run in runs if not run.failure]
    return [Target("auto: queries finished", finished, len(mine), least=True), *_of_every_experiment(done)]


def _of_every_experiment(runs: Sequence[Run]) -> list[Target]:
    wrong = [run for run in runs if not run.verified]
    found = [Target("results that are not verified", len(wrong), 0, where=_name(wrong[0]) if wrong else "")]
    pairs = _against(runs, "auto", "rebatch")
    if pairs:
        found[:0] = [
            _worst("auto: initial run over rebatch's, worst", 2.0,
                   ((mine.initial / base.initial, mine) for mine, base in pairs)),
            _worst("auto: initial run and what the first refresh took more over rebatch's, worst", 2.0,
                   (((mine.initial + mine.first_more) / (base.initial + base.first_more), mine)
                    for mine, base in pairs if mine.warm_ups and base.warm_ups)),
        ]  # fmt: skip
    return found


# --- figure by figure --------------------------------------------------------------------------------------------


def _late_data(runs: Sequence[Run], scale: float) -> list[Target]:
    pairs = _against(runs, "auto", "rebatch")
    mean, best = FASTER_AT_LARGE_SCALE if scale >= LARGE_SCALE else FASTER
    gains = [(base.seconds("0.1%") / mine.seconds("0.1%"), mine) for mine, base in pairs]
    return [
        Target("auto: queries whose total is at most rebatch's", sum(a.total <= b.total for a, b in pairs),
               max(1, len(pairs) - 1), least=True),
        _worst("auto: total over rebatch's, worst", 1.05, ((a.total / b.total, a) for a, b in pairs)),
        _mean("auto, 0.1%: faster than rebatch, geometric mean", mean, [g for g, _ in gains], least=True),
        _best("auto, 0.1%: faster than rebatch, best", best, gains),
        *_against_higher_order(runs),
    ]  # fmt: skip


def _against_higher_order(runs: Sequence[Run]) -> list[Target]:
    pairs = [(a, b) for a, b in _against(runs, "auto", "higher_order") if at_work(b)]
    among = f"on {len(pairs)} of {len({run.query for run in runs})} queries"
    memory = [(max(a.state_bytes.values()) / max(b.state_bytes.values()), a) for a, b in pairs]
    many = [(delta_seconds(a) / delta_seconds(b), a) for a, b in pairs if a.query in MANY_JOINS]
    least = min(memory, key=lambda x: x[0], default=None)
    return [
        _worst("auto: delta time over higher_order's, five or more joins, worst", 0.5, many),
        _mean("auto: memory over higher_order's, geometric mean", 0.5, [max(m, 1e-6) for m, _ in memory],
              where=among),
        Target("auto: memory over higher_order's, best", least[0] if least else None, 0.1,
               where=_name(least[1]) if least else ""),
    ]  # fmt: skip


def _wrong_sizes(runs: Sequence[Run], scale: float) -> list[Target]:
    """The worst of all budgets: a wrong forecast against the right one under the same budget."""
    limits = {run.label.partition(", ")[2] for run in runs if "foreseen" in run.label}

    def pairs(wrong: str, right: str) -> list[tuple[Run, Run]]:
        ends = [f", {limit}" if limit else "" for limit in sorted(limits)]
        return [pair for end in ends for pair in _against(runs, wrong + end, right + end)]

    return [
        _worst(f"{wrong}, {delta} came: time over that of the right forecast, worst", 1.3,
               ((a.seconds(delta) / b.seconds(delta), a) for a, b in pairs(wrong, right)))
        for wrong, right, delta in (
            ("30% foreseen", "1% foreseen", "1%"),
            ("0.03% foreseen", "1% foreseen", "1%"),
            ("1% foreseen", "30% foreseen", "30%"),
        )
    ]  # fmt: skip


def _wrong_tables(runs: Sequence[Run], scale: float) -> list[Target]:
    """The right forecast for so many tables that arrive is the one that foresaw as many."""
    absent: list[tuple[float, Run, str]] = []
    unforeseen: list[tuple[float, Run, str]] = []
    counts = sorted({int(run.label.split()[0]) for run in runs if run.label.endswith("foreseen")})
    for arrived, foreseen in itertools.product(counts, counts):
        delta, label = f"{arrived} of 5 arrive", f"{foreseen} foreseen"
        if foreseen > arrived:
            pairs, into = _against(runs, label, f"{arrived} foreseen"), absent
        elif foreseen < arrived:
            pairs, into = _against(runs, label, "rebatch"), unforeseen
        else:
            continue
        into += [(a.seconds(delta) / b.seconds(delta), a, delta) for a, b in pairs]
    return [
        _worst_delta("a table foreseen but absent: time over that of the right forecast, worst", NOISE, absent),
        _worst_delta("a table unforeseen: time over rebatch's, worst", NOISE, unforeseen),
    ]


def _budgets(runs: Sequence[Run], scale: float) -> list[Target]:
    rises, against = [], []
    for query in dict.fromkeys(run.query for run in runs):
        mine = _by_budget(runs, query, "auto")
        theirs = _by_budget(runs, query, "recycler")
        rises += [(b.seconds("1%") / a.seconds("1%"), b) for a, b in itertools.combinations(mine.values(), 2)]
        against += [(mine[share].seconds("1%") / theirs[share].seconds("1%"), mine[share])
                    for share in mine if share in theirs]  # fmt: skip
    nothing = _against(runs, "auto 0%", "rebatch")
    return [
        _worst("auto: time over that under a smaller budget, worst", NOISE, rises),
        _worst("auto without memory: time over rebatch's or the other way, worst", 1.1,
               ((max(x := a.seconds("1%") / b.seconds("1%"), 1 / x), a) for a, b in nothing)),
        _worst("auto: time over the recycler's, worst", NOISE, against),
        _best("auto: faster than the recycler, best", 3.0, [(1 / ratio, run) for ratio, run in against]),
    ]  # fmt: skip


def _by_budget(runs: Sequence[Run], query: int, strategy: str) -> dict[float, Run]:
    """The runs of a strategy by their budget in percent, the smallest first."""
    found = {float(run.label.removeprefix(strategy).rstrip("%")): run
             for run in runs if run.query == query and run.label.startswith(f"{strategy} ")}  # fmt: skip
    return dict(sorted(found.items()))


def _deletes(runs: Sequence[Run], scale: float) -> list[Target]:
    spread = []
    for run in runs:
        if run.label == "auto" and run.refreshes:
            seconds = [run.seconds(delta) for delta in run.refreshes]
            spread.append((max(seconds) / min(seconds), run))
    return [_worst("auto: slowest share of deletes over fastest, worst", 1.5, spread)]


_OF_FIGURES: dict[int, Callable[[Sequence[Run], float], list[Target]]] = {
    3: _late_data, 5: _wrong_sizes, 6: _wrong_tables, 7: _budgets, 9: _deletes,
}  # fmt: skip


# --- from runs to a number ---------------------------------------------------------------------------------------


def _against(runs: Sequence[Run], label: str, other: str) -> list[tuple[Run, Run]]:
    """The runs of one way, each with that of another way of the same query."""
    others = {run.query: run for run in runs if run.label == other}
    return [(run, others[run.query]) for run in runs if run.label == label and run.query in others]


def _worst(name: str, limit: float, ratios: Iterable[tuple[float, Run]]) -> Target:
    found = max(ratios, key=lambda x: x[0], default=None)
    return Target(name, found[0] if found else None, limit, where=_name(found[1]) if found else "")


def _worst_delta(name: str, limit: float, ratios: Sequence[tuple[float, Run, str]]) -> Target:
    found = max(ratios, key=lambda x: x[0], default=None)
    where = f"{_name(found[1])}, {found[2]}" if found else ""
    return Target(name, found[0] if found else None, limit, where=where)


def _best(name: str, limit: float, gains: Sequence[tuple[float, Run]]) -> Target:
    found = max(gains, key=lambda x: x[0], default=None)
    return Target(name, found[0] if found else None, limit, least=True, where=_name(found[1]) if found else "")


def _mean(name: str, limit: float, values: Sequence[float], *, least: bool = False, where: str = "") -> Target:
    return Target(name, geometric_mean(values) if values else None, limit, least=least, where=where)


def _name(run: Run) -> str:
    return f"Q{run.query} {run.label}"


def print_targets(found: Sequence[Target], console: Console) -> None:
    """A row for each target."""
    table = Table(title="What was asked for")
    for name in ("target", "value", "asked", "met", "where"):
        table.add_column(name, justify="right" if name == "value" else "left")
    for one in found:
        value = "-" if one.value is None else f"{one.value:.2f}"
        asked = f"at {'least' if one.least else 'most'} {one.limit:g}"
        met = {True: "yes", False: "NO", None: "not measured"}[one.met]
        table.add_row(one.name, value, asked, met, one.where)
    console.print(table)

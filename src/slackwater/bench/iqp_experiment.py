"""What all experiments of intermittent query processing share: tables that grow, and the ways that are compared.

Every way of keeping states is a view of its own over the same tables and meets the same deltas, so the ratios come from
one run. Every result is verified.
"""

from __future__ import annotations

import statistics
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from slackwater.algebra.nodes import Rel
from slackwater.arrivals.fixed import fixed
from slackwater.arrivals.kinds import Forecaster
from slackwater.bench.tpch_data import HELD_BACK, Slices, insert_slice, load
from slackwater.bench.tpch_queries import QUERIES
from slackwater.cli_output import Steps
from slackwater.engine import Engine
from slackwater.errors import SlackwaterError
from slackwater.execution.reports import Refresh
from slackwater.view import View

LIMIT = 500.0
"""Seconds that a run may take."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way of keeping states for a query.

    Attributes:
        query: the number of the query.
        label: what it is called in the table.
        strategy: how states are chosen.
        forecast: rows expected of each table at each refresh, or how to forecast them; None where they are learned.
        budget: bytes for this view alone; None for the engine's.
        only: the nodes of a plan that may be kept; None for all.
    """

    query: int
    label: str
    strategy: str = "auto"
    forecast: Mapping[str, float] | Forecaster | None = None
    budget: int | None = None
    only: Callable[[Rel], frozenset[str]] | None = None

    @property
    def forecaster(self) -> Forecaster | None:
        """How the next delta is forecast."""
        return fixed(dict(self.forecast)) if isinstance(self.forecast, Mapping) else self.forecast


@dataclass(slots=True)
class Run:
    """What was measured of one way."""

    query: int
    label: str
    initial: float = 0.0
    refreshes: dict[str, list[float]] = field(default_factory=dict)
    state_bytes: dict[str, int] = field(default_factory=dict)
    modes: dict[str, str] = field(default_factory=dict)
    """The mode of each kind of delta; where a kind came several times, one that was not incremental shows."""
    warm_ups: list[float] = field(default_factory=list)
    """The refreshes that no figure counts."""
    verified: bool = False
    timeline: list[float] = field(default_factory=list)
    """Every refresh in turn, where the experiment is about that."""
    failure: str = ""
    """Why it did not finish; empty where it did."""

    @property
    def total(self) -> float:
        """The initial run, what the first refresh took more, and one delta of each kind.

        Where a kind came several times, the median counts, and once.
        """
        return self.initial + self.first_more + sum(self.seconds(delta) for delta in self.refreshes)

    @property
    def first_more(self) -> float:
        """What the first warm-up took more than the usual one.

        Some ways put work off from the initial run to the first refresh: an index is hashed when it is first looked up.
        """
        return max(0.0, self.warm_ups[0] - statistics.median(self.warm_ups)) if self.warm_ups else 0.0

    def took(self, label: str, report: Refresh) -> None:
        """Note a refresh."""
        self.refreshes.setdefault(label, []).append(report.total_seconds)
        self.state_bytes[label] = report.state_bytes
        if self.modes.get(label, "incremental") == "incremental":
            self.modes[label] = report.mode

    def seconds(self, delta: str) -> float:
        """The median refresh of one kind of delta."""
        return statistics.median(self.refreshes[delta])


class Experiment:
    """Tables, the ways that are compared, and the deltas that all of them meet."""

    def __init__(
        self, engine: Engine, slices: Slices, held_back: float, steps: Steps, *,
        queries: Mapping[int, str] = QUERIES, growing: Sequence[str] = HELD_BACK, rehearsal: bool = False,
    ) -> None:  # fmt: skip
        """`rehearsal` says that nothing will be counted, nor proved: it is to warm Java up for the run that is."""
        self.rehearsal = rehearsal
        self.engine, self.slices, self.steps = engine, slices, steps
        self.queries, self.growing = queries, tuple(growing)
        self.views: list[tuple[Way, View, Run]] = []
        self._next, self._gone, self._turn = 1.0 - held_back, 0.0, 0
        self._warmed: set[int] = set()
        self.say("loading the tables")
        load(engine, slices, held_back, growing)

    def say(self, text: str) -> None:
        """Show progress."""
        self.steps.say(text)

    def add(self, ways: Sequence[Way]) -> None:
        """Make a view for each way; a first one, dropped again, has warmed Spark up for the query."""
        for way in ways:
            self._warm(way.query)
            self.start(way)

    def _warm(self, query: int) -> None:
        if query not in self._warmed:
            self.engine.create_view("warm", self.queries[query]).drop()
            self._warmed.add(query)

    @property
    def there(self) -> float:
        """The share of the rows that has been inserted so far."""
        return self._next

    def start(self, way: Way, run: Run | None = None) -> None:
        """The initial run of one way."""
        self.say(f"Q{way.query} {way.label}: initial run")
        view = self.engine.create_view(
            f"q{way.query} {way.label}", self.queries[way.query], strategy=way.strategy, populate=False,
            forecast=way.forecaster, memory_budget=way.budget,
        )  # fmt: skip
        view.only = way.only
        run = run or Run(way.query, way.label)
        self.views.append((way, view, run))
        run.initial = view.refresh().total_seconds
        run.state_bytes["initial"] = view.state_bytes()

    def start_limited(self, way: Way, limit: float = LIMIT) -> None:
        """The initial run of one way; one that takes longer is given up, and meets no deltas."""
        run = Run(way.query, way.label)
        self._warm(way.query)
        with self.limited(run, limit):
            self.start(way, run)
        if run.failure:
            self.say(f"Q{way.query} {way.label}: {run.failure}")
            self.views[-1][1].drop()

    @contextmanager
    def limited(self, run: Run, limit: float) -> Iterator[None]:
        """Stop Spark's jobs when the time is up, those of every further attempt as well; the run has then failed."""
        over = threading.Event()

        def stop() -> None:
            if over.wait(limit):
                return
            run.failure = f"not within {limit:g} s"
            while not over.wait(1.0):
                self.engine.spark.sparkContext.cancelAllJobs()

        timer = threading.Thread(target=stop, daemon=True)
        timer.start()
        try:
            yield
        except SlackwaterError:
            if not run.failure:
                raise
        finally:
            over.set()
            timer.join()

    def delta(self, label: str, share: float, tables: Sequence[str] = (), deletes: float = 0.0, *,
              counted: bool = True, but: Collection[str] = ()) -> None:  # fmt: skip
        """Insert a slice of some tables, delete as much as is asked for, and refresh every view `but` some ways'."""
        self.change(label, share, tables, deletes, counted=counted)
        for view, run in self.steps.over(self.in_turn()):
            if run.label in but:
                continue
            report = view.refresh()
            if counted:
                run.took(label, report)
            else:
                run.warm_ups.append(report.total_seconds)

    def in_turn(self) -> list[tuple[View, Run]]:
        """The views that have not been given up, every other time from the last to the first.

        Whoever comes first finds the files of the delta cold, and whoever comes late the caches of those before.
        """
        self._turn += 1
        return self._going() if self._turn % 2 else self._going()[::-1]

    def _going(self) -> list[tuple[View, Run]]:
        """The views that have not been given up."""
        return [(view, run) for _, view, run in self.views if not run.failure]

    def change(self, label: str, share: float, tables: Sequence[str] = (), deletes: float = 0.0, *,
               counted: bool = True) -> None:  # fmt: skip
        """Insert a slice of some tables, all that grow by default, and delete as much as is asked for."""
        tables = tables or self.growing
        inserted = share * (1.0 - deletes)
        rows = insert_slice(self.engine, self.slices, tuple(tables), self._next, self._next + inserted)
        for table in tables if deletes else ():
            gone = self.slices.part(table, self._gone, self._gone + share * deletes)
            self.engine.table(table).delete(gone)
        self._next += inserted
        self._gone += share * deletes
        self.say(f"{label}: {rows:,} rows inserted" + ("" if counted else ", warming up"))

    def foresee(self, share: float) -> None:
        """Tell every view what the delta after the next one will bring."""
        told = fixed(expected(self.engine, share, self.growing))
        for view, _ in self._going():
            view.set_forecast(told)

    def verified(self) -> list[Run]:
        """Everything that was measured, once every result has been proved."""
        self.say("verifying every result")
        for view, run in self.steps.over(self._going()):
            run.verified = bool(view.verify())
        return [run for _, _, run in self.views]


def expected(engine: Engine, share: float, tables: Sequence[str] = HELD_BACK) -> dict[str, float]:
    """The rows that a share of some tables comes to."""
    return {t: max(1.0, share * engine.table(t).count()) for t in tables}

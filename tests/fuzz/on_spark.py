"""Views of random queries on Spark: against a recompute, DuckDB, the interpreter, and runs that must agree."""

from __future__ import annotations

import re
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw
from slackwater.algebra.nodes import Opaque
from slackwater.errors import QueryRefused
from tests.fuzz import sql
from tests.fuzz.duck import Twin, difference
from tests.fuzz.interpreted import interpreted
from tests.fuzz.own_functions import declare
from tests.fuzz.sizes import beyond, drawn
from tests.fuzz.tables import MAP, Round, Row, Story
from tests.fuzz.wanted import EACH_STEP, LATE, VIEWS, Wanted, draw


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong with a view: the oracle that said so, and what it said."""

    wanted: Wanted
    oracle: str
    told: str
    round: int


COUNTS = ("compared", "parts", "modes", "reasons", "refused", "recomputed")
INDEPENDENT = ("duckdb", "interpreter", "recompute")
"""Oracles that say what is right; the others compare views with each other."""
MOST_INVALID, MOST_REFUSED, LEAST_INCREMENTAL = 0.01, 0.25, 0.2
"""Shares of the views and, the last, of the refreshes that had something to do: far from what a run has."""


@dataclass(slots=True)
class Tally:
    """What a run did.

    `parts` counts how many of three parts had rows. `invalid` has the queries that Spark did not understand: the
    generator should draw none of them.
    """

    cases: int = 0
    compared: Counter[str] = field(default_factory=Counter)
    parts: Counter[str] = field(default_factory=Counter)
    modes: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    recomputed: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    invalid: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Take another one's counts over."""
        self.cases += other.cases
        self.invalid += other.invalid
        for name in COUNTS:
            getattr(self, name).update(getattr(other, name))

    def complaints(self, asked: int | None = None) -> list[str]:
        """Why this run proves less than its silence says: it was cut, or nearly all was refused or not compared.

        `asked` is how many views were asked for.
        """
        refused, unknown = sum(self.refused.values()), len(self.invalid)
        made = self.cases - refused
        refreshed = sum(n for mode, n in self.modes.items() if mode != "none")
        compared = sum(self.compared[oracle] for oracle in INDEPENDENT)
        found = {
            "no view was drawn": not self.cases,
            f"only {self.cases} of {asked} views were drawn": asked is not None and 0 < self.cases < asked,
            f"Spark did not understand {unknown} of {self.cases} queries": unknown > MOST_INVALID * self.cases,
            f"{refused} of {self.cases} queries were refused": refused > MOST_REFUSED * self.cases,
            f"only {self.modes['incremental']} of {refreshed} refreshes were incremental":
                self.modes["incremental"] < LEAST_INCREMENTAL * refreshed or not refreshed,
            f"{made} views were compared {compared} times with what is right": compared < made,
        }  # fmt: skip
        return [complaint for complaint, holds in found.items() if holds]

    def __str__(self) -> str:
        parts = [f"{self.cases} views"]
        for name in COUNTS:
            found = getattr(self, name)
            parts += [f"{name}: " + ", ".join(f"{k} {n}" for k, n in sorted(found.items()))] if found else []
        return "; ".join(parts)


# --- playing ---------------------------------------------------------------------------------------------------------


@contextmanager
def warehouse(spark: SparkSession, seed: int) -> Iterator[sw.Engine]:
    """A fresh warehouse; some have a budget for next to nothing, most have sizes beyond which other ways are taken."""
    with beyond(drawn(seed)), tempfile.TemporaryDirectory(prefix="slackwater-fuzz-") as scratch:
        budget: str | int = "1GB" if seed % 5 else 3_000
        path = Path(scratch) / "wh"
        with sw.Engine(path, spark=spark, save_states=False, memory_budget=budget) as engine:
            yield engine


def play(engine: sw.Engine, story: Story, wanted: list[Wanted]) -> tuple[Tally, list[Failure]]:
    """All views through the whole story; a view that fails is left behind."""
    fill(engine, story)
    batch = _Batch(engine, story, Twin(story.schema))
    batch.start(wanted)
    for number in range(1, len(story.rounds) + 1):
        steps = story.steps(number)
        for at, step in enumerate(steps, start=1):
            change(engine, story, step)
            if at < len(steps):
                batch.step(number, at)
        batch.round(number)
    batch.relate()
    return batch.tally, batch.failures


def fill(engine: sw.Engine, story: Story) -> None:
    """Make the tables with their first rows."""
    for name, columns in story.schema.items():
        listed = ", ".join(f"{c} {t}" for c, t in columns.items())
        table = engine.create_table(name, listed, key=story.keys.get(name, ()))
        if story.start[name]:
            table.insert(story.start[name])


def change(engine: sw.Engine, story: Story, changes: Round) -> None:
    """Apply one round, or a step of it. Rows with a map cannot be compared: they are changed by their keys."""
    for name, (come, gone) in changes.items():
        names = list(story.schema[name])
        if MAP in story.schema[name].values():
            key = [names.index(column) for column in story.keys[name]]
            left = {tuple(row[at] for at in key) for row in gone} - {tuple(row[at] for at in key) for row in come}
            if left:
                engine.table(name).delete_keys(sorted(left))
            if come:
                engine.table(name).upsert(come)
            continue
        feed = [(*row, weight) for rows, weight in ((come, 1), (gone, -1)) for row in rows]
        if feed:
            engine.table(name).apply([dict(zip([*names, "_weight"], row, strict=True)) for row in feed])


def create(engine: sw.Engine, name: str, want: Wanted) -> tuple[sw.View, list[sw.View]]:
    """Make a view, and before it those that it reads and that are not there yet."""
    there = {view.name for view in engine.views()}
    below = []
    for view in sql.views_below(want.query):
        if view.name not in there:
            engine.create_view(view.name, view.query.sql(sql.SPARK), strategy="incremental")
            there.add(view.name)
        below.append(engine.view(view.name))
    text = want.query.sql(sql.SPARK)
    query = asked(engine, text, frame=want.frame)
    return engine.create_view(name, query, strategy=want.strategy, memory_budget=want.budget), below


def asked(engine: sw.Engine, text: str, *, frame: bool) -> str | DataFrame:
    """A query as its text, or as a DataFrame over the relations that stand for the tables."""
    if not frame:
        return text
    for table in engine.tables():
        table.relation().createOrReplaceTempView(table.name)
    return engine.spark.sql(text)


class _Batch:
    def __init__(self, engine: sw.Engine, story: Story, twin: Twin) -> None:
        self.engine, self.story, self.twin = engine, story, twin
        self.tally, self.failures = Tally(), list[Failure]()
        self.views: dict[str, tuple[sw.View, Wanted]] = {}
        self.below: dict[str, list[sw.View]] = {}
        self.seen: dict[str, dict[int, list[Row]]] = {}

    def start(self, wanted: list[Wanted]) -> None:
        self.twin.load(self.story.rows(0))
        declare(self.engine, " ".join(want.query.sql(sql.DUCK) for want in wanted))
        for number, want in enumerate(wanted):
            name = f"v{number}"
            self.tally.cases += 1
            try:
                view, self.below[name] = create(self.engine, name, want)
            except QueryRefused as error:
                self.tally.refused[error.code] += 1
                if error.code == "QUERY_INVALID":
                    self.tally.invalid.append(f"{error.message[:300]}\n    {want.query.sql(sql.SPARK)}")
                continue
            except Exception as error:
                self._failed(want, *blamed(error), 0)
                continue
            if isinstance(view.plan, Opaque):
                self.tally.recomputed[f"[{view.plan.code}] {view.plan.reason}"] += 1
            self.views[name] = (view, want)
            self._look(name, 0)

    def step(self, number: int, at: int) -> None:
        """In the middle of a round: only some views are refreshed. A way back leads to where the round began."""
        back = at == 2 and self.story.ways[number - 1] == "detour"
        for name, (view, want) in list(self.views.items()):
            if want.pace != EACH_STEP:
                continue
            try:
                self._report(view.refresh())
                if back and number - 1 in self.seen[name]:
                    self._compare(name, "way back", _rows(view), self.seen[name][number - 1], number)
            except Exception as error:
                self._drop(name, *blamed(error), number)

    def round(self, number: int) -> None:
        rounds = len(self.story.rounds)
        self.twin.load(self.story.rows(number))
        for name, (view, want) in list(self.views.items()):
            if want.pace == LATE and number < rounds - 1:
                continue
            try:
                self._report(view.refresh())
            except Exception as error:
                self._drop(name, *blamed(error), number)
                continue
            self._look(name, number)

    def _report(self, report: sw.Refresh) -> None:
        self.tally.modes[report.mode] += 1
        if report.mode == "recompute":
            self.tally.reasons[re.sub(r"[\d,.]+", "#", report.reason)[:60]] += 1
        if "failed" in report.reason:
            raise Differs("program", report.reason)

    def _look(self, name: str, number: int) -> None:
        view, want = self.views[name]
        rounds = len(self.story.rounds)
        try:
            found = _rows(view)
            text = want.query.sql(sql.DUCK)
            compared = sql.ONLY_SPARK not in text
            if compared:
                self._compare(name, "duckdb", found, self.twin.rows(text), number)
            if number == rounds:
                self._compare(name, "inverse", found, self.seen[name][0], number)
            expected = interpreted(view.logical_plan, self.story, number)
            if expected is not None:
                self._compare(name, "interpreter", found, expected, number)
            sampled = number == rounds - 1 and want.family % 3 == 0
            if sampled or (0 < number < rounds and not compared):
                for checked in (*self.below[name], view):
                    check = checked.verify()
                    self.tally.compared["recompute"] += 1
                    if not check:
                        raise Differs("recompute", str(check))
        except Exception as error:
            self._drop(name, *blamed(error), number)
            return
        self.seen.setdefault(name, {})[number] = found

    def _compare(self, name: str, oracle: str, found: list[Row], expected: list[Row], number: int) -> None:
        self.tally.compared[oracle] += 1
        ours, theirs = difference(found, expected, self.views[name][1].query.kinds)
        if ours or theirs:
            raise Differs(oracle, f"round {number}: the view alone has {ours[:5]}, the oracle alone {theirs[:5]}")

    def _drop(self, name: str, oracle: str, told: str, number: int) -> None:
        if name in self.views:
            view, want = self.views.pop(name)
            self._failed(want, oracle, f"{told}\n{view.history(1)}", number)

    def _failed(self, want: Wanted, oracle: str, told: str, number: int) -> None:
        self.failures.append(Failure(want, oracle, told, number))

    def relate(self) -> None:
        """Views of one family: those of the same query agree after each round, and the parts add up to the whole."""
        families: dict[int, list[str]] = {}
        for name, (_, want) in self.views.items():
            families.setdefault(want.family, []).append(name)
        for names in families.values():
            first, *others = sorted(names, key=lambda name: self.views[name][1].part)
            parts = [n for n in others if self.views[n][1].part]
            if self.views[first][1].part:
                continue
            if len(parts) == 3:
                self._add_up(first, parts)
            for name in (n for n in others if n not in parts):
                same = self.views[name][1].pace == self.views[first][1].pace
                for number in sorted(self.seen[name].keys() & self.seen[first].keys()):
                    self._agree(name, "strategies" if same else "paces", self.seen[name][number], first, number)

    def _add_up(self, whole: str, parts: list[str]) -> None:
        last = len(self.story.rounds) - 1
        self.tally.parts[str(sum(bool(self.seen[name][last]) for name in parts))] += 1
        for number in self.seen[whole]:
            rows = [row for name in parts for row in self.seen[name][number]]
            self._agree(parts[0], "partition", rows, whole, number)

    def _agree(self, name: str, oracle: str, rows: list[Row], first: str, number: int) -> None:
        if first not in self.views or name not in self.views:
            return
        try:
            self._compare(first, oracle, rows, self.seen[first][number], number)
        except Differs as error:
            self._drop(name, *blamed(error), number)


def _rows(view: sw.View) -> list[Row]:
    return [tuple(row) for row in view.result().collect()]


class Differs(Exception):
    """An oracle gives another answer."""

    def __init__(self, oracle: str, told: str) -> None:
        super().__init__(told)
        self.oracle = oracle


def blamed(error: Exception) -> tuple[str, str]:
    """The oracle that an error stands for, and what it says."""
    if isinstance(error, Differs):
        return error.oracle, str(error)
    code = getattr(error, "code", "") or getattr(error, "getErrorClass", lambda: "")() or ""
    return f"error {type(error).__name__} {code}".strip(), traceback.format_exc(limit=-3)[-1500:]


def play_seed(spark: SparkSession, seed: int, views: int = VIEWS) -> tuple[Tally, Story, list[Failure]]:
    """One batch."""
    story, wanted = draw(seed, views)
    started = time.perf_counter()
    with warehouse(spark, seed) as engine:
        tally, failures = play(engine, story, wanted)
    took = time.perf_counter() - started
    print(f"spark seed {seed}: {tally}; {len(failures)} failed; {took:.0f} s; {', '.join(drawn(seed))}", flush=True)
    for told in tally.invalid:
        print(f"  invalid: {told}", flush=True)
    return tally, story, failures

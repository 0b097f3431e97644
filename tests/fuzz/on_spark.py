"""Views of random queries on Spark: against a recompute, DuckDB, the interpreter, and runs that must agree."""

from __future__ import annotations

import math
import random
import re
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.algebra.nodes import Opaque
from slackwater.errors import QueryRefused
from slackwater.execution import compaction, modes
from slackwater.planning.strategies import STRATEGIES
from tests.fuzz import sql
from tests.fuzz.duck import Twin, difference
from tests.fuzz.interpreted import interpreted
from tests.fuzz.queries import Generator
from tests.fuzz.tables import Round, Row, Story, draw_story

VIEWS = 20
"""Views for each seed: they share tables and changes."""

ROUNDS = 2
"""Rounds of changes, before the one that takes them all back."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One view of a batch.

    Attributes:
        query: what it asks.
        strategy: how it keeps states.
        late: it skips the rounds in between, so that their deltas come merged.
        family: views of one family are related.
        part: what it is in its family: whole, or a part of it.
    """

    query: sql.Query
    strategy: str
    late: bool = False
    family: int = 0
    part: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong with a view: the oracle that said so, and what it said."""

    wanted: Wanted
    oracle: str
    told: str
    round: int


COUNTS = ("compared", "modes", "reasons", "refused", "recomputed")


@dataclass(slots=True)
class Tally:
    """What a run did."""

    cases: int = 0
    compared: Counter[str] = field(default_factory=Counter)
    modes: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    recomputed: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        """Take another one's counts over."""
        self.cases += other.cases
        for name in COUNTS:
            getattr(self, name).update(getattr(other, name))

    def __str__(self) -> str:
        parts = [f"{self.cases} views"]
        for name in COUNTS:
            found = getattr(self, name)
            parts += [f"{name}: " + ", ".join(f"{k} {n}" for k, n in sorted(found.items()))] if found else []
        return "; ".join(parts)


def draw(seed: int, views: int = VIEWS) -> tuple[Story, list[Wanted]]:
    """What a seed stands for."""
    chance = random.Random(seed)
    story = draw_story(chance, ROUNDS)
    generator = Generator(story.schema, chance)
    wanted: list[Wanted] = []
    family = 0
    while len(wanted) < views:
        family += 1
        base = Wanted(generator.query(), _strategy(chance), family=family)
        wanted.append(base)
        kind = chance.random()
        if kind < 0.08:
            at = 0 if isinstance(base.query, sql.Pivoted) else chance.randrange(len(base.query.kinds))
            p = f"c{at} = c{at}" if base.query.kinds[at] == "exact" else f"c{at} IS NULL"
            splits = (p, f"NOT ({p})", f"({p}) IS NULL")
            wanted += [Wanted(sql.Filtered(base.query, s), base.strategy, family=family, part=True) for s in splits]
        elif kind < 0.2:
            wanted.append(replace(base, strategy=_strategy(chance), late=True))
    return story, wanted[:views]


def _strategy(chance: random.Random) -> str:
    """Any strategy, most often one that does not recompute."""
    return chance.choice([*STRATEGIES, "auto", "incremental", "incremental", "recycler"])


# --- playing ---------------------------------------------------------------------------------------------------------


@contextmanager
def warehouse(spark: SparkSession, seed: int) -> Iterator[sw.Engine]:
    """A fresh warehouse; some have a budget for next to nothing, some merge segments as soon as they can.

    The tables are so small that most deltas are large against them: mostly they are followed all the same.
    """
    settings = [(compaction, name, 2) for name in ("STATE_SEGMENTS", "RESULT_SEGMENTS", "TABLE_SEGMENTS") if seed % 2]
    settings += [(modes, "LARGE_DELTA", math.inf)] if seed % 7 else []
    before = [(module, name, getattr(module, name)) for module, name, _ in settings]
    try:
        for module, name, value in settings:
            setattr(module, name, value)
        with tempfile.TemporaryDirectory(prefix="slackwater-fuzz-") as scratch:
            budget: str | int = "1GB" if seed % 5 else 3_000
            path = Path(scratch) / "wh"
            with sw.Engine(path, spark=spark, save_states=False, memory_budget=budget) as engine:
                yield engine
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def play(engine: sw.Engine, story: Story, wanted: list[Wanted]) -> tuple[Tally, list[Failure]]:
    """All views through the whole story; a view that fails is left behind."""
    fill(engine, story)
    batch = _Batch(engine, story, Twin(story.schema))
    batch.start(wanted)
    for number, changes in enumerate(story.rounds, start=1):
        change(engine, story, changes)
        batch.round(number)
    batch.relate()
    return batch.tally, batch.failures


def fill(engine: sw.Engine, story: Story) -> None:
    """Make the tables with their first rows."""
    for name, columns in story.schema.items():
        key = [story.keys[name]] if name in story.keys else ()
        table = engine.create_table(name, ", ".join(f"{c} {t}" for c, t in columns.items()), key=key)
        if story.start[name]:
            table.insert(story.start[name])


def change(engine: sw.Engine, story: Story, changes: Round) -> None:
    """Apply one round."""
    for name, (come, gone) in changes.items():
        feed = [(*row, weight) for rows, weight in ((come, 1), (gone, -1)) for row in rows]
        if feed:
            names = [*story.schema[name], "_weight"]
            engine.table(name).apply([dict(zip(names, row, strict=True)) for row in feed])


class _Batch:
    def __init__(self, engine: sw.Engine, story: Story, twin: Twin) -> None:
        self.engine, self.story, self.twin = engine, story, twin
        self.tally, self.failures = Tally(), list[Failure]()
        self.views: dict[str, tuple[sw.View, Wanted]] = {}
        self.first: dict[str, list[Row]] = {}
        self.last: dict[str, list[Row]] = {}

    def start(self, wanted: list[Wanted]) -> None:
        self.twin.load(self.story.rows(0))
        for number, want in enumerate(wanted):
            name, text = f"v{number}", want.query.sql(sql.SPARK)
            self.tally.cases += 1
            try:
                view = self.engine.create_view(name, text, strategy=want.strategy)
            except QueryRefused as error:
                self.tally.refused[error.code] += 1
                continue
            except Exception as error:
                self._failed(want, *blamed(error), 0)
                continue
            if isinstance(view.plan, Opaque):
                self.tally.recomputed[f"[{view.plan.code}] {view.plan.reason}"] += 1
            self.views[name] = (view, want)
            self._look(name, 0)

    def round(self, number: int) -> None:
        rounds = len(self.story.rounds)
        self.twin.load(self.story.rows(number))
        for name, (view, want) in list(self.views.items()):
            if want.late and number < rounds - 1:
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
            found = [tuple(row) for row in view.result().collect()]
            text = want.query.sql(sql.DUCK)
            compared = sql.ONLY_SPARK not in text
            if compared:
                self._compare(name, "duckdb", found, self.twin.rows(text), number)
            if number == rounds:
                self._compare(name, "inverse", found, self.first[name], number)
            expected = interpreted(view.logical_plan, self.story, number)
            if expected is not None:
                self._compare(name, "interpreter", found, expected, number)
            sampled = number == rounds - 1 and want.family % 3 == 0
            if sampled or (number < rounds and not compared):
                check = view.verify()
                self.tally.compared["recompute"] += 1
                if not check:
                    self._drop(name, "recompute", str(check), number)
        except Exception as error:
            self._drop(name, *blamed(error), number)
            return
        self.first.setdefault(name, found)
        if number == rounds - 1:
            self.last[name] = found

    def _compare(self, name: str, oracle: str, found: list[Row], expected: list[Row], number: int) -> None:
        self.tally.compared[oracle] += 1
        ours, theirs = difference(found, expected, self.views[name][1].query.kinds)
        if ours or theirs:
            raise Differs(oracle, f"the view alone has {ours[:5]}, the oracle alone {theirs[:5]}")

    def _drop(self, name: str, oracle: str, told: str, number: int) -> None:
        if name in self.views:
            view, want = self.views.pop(name)
            self._failed(want, oracle, f"{told}\n{view.history(1)}", number)

    def _failed(self, want: Wanted, oracle: str, told: str, number: int) -> None:
        self.failures.append(Failure(want, oracle, told, number))

    def relate(self) -> None:
        """Views of one family: those of the same query agree, and the parts add up to the whole."""
        families: dict[int, list[str]] = {}
        for name in self.last:
            if name in self.views:
                families.setdefault(self.views[name][1].family, []).append(name)
        for names in families.values():
            whole = [n for n in names if not self.views[n][1].part]
            parts = [n for n in names if self.views[n][1].part]
            related = [(n, self.last[n], "strategies") for n in whole[1:]]
            if whole and len(parts) == 3:
                related.append((whole[0], [row for n in parts for row in self.last[n]], "partition"))
            for name, rows, oracle in related:
                try:
                    self._compare(whole[0], oracle, rows, self.last[whole[0]], len(self.story.rounds) - 1)
                except Differs as error:
                    self._drop(name, *blamed(error), len(self.story.rounds) - 1)


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
    print(f"spark seed {seed}: {tally}; {len(failures)} failed; {time.perf_counter() - started:.0f} s", flush=True)
    return tally, story, failures

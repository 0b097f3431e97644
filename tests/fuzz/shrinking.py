"""Make a failing view small: fewer changes, fewer rows, fewer clauses, while it still fails in the same way."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import duckdb
from pyspark.sql import SparkSession

import slackwater as sw
from tests.fuzz import sql
from tests.fuzz.duck import Twin, difference
from tests.fuzz.interpreted import interpreted
from tests.fuzz.on_spark import Failure, asked, blamed, change, fill, warehouse
from tests.fuzz.own_functions import declare
from tests.fuzz.tables import Keys, Round, Row, Schema, Story
from tests.fuzz.wanted import EACH_ROUND, EACH_STEP, LATE


@dataclass(frozen=True, slots=True)
class ViewCase:
    """One view and all that happens to its tables, as plain data.

    Attributes:
        schema: the tables.
        start: their first rows.
        rounds: for each table that changes, the rows that come and those that go.
        query: the view's query.
        duck: the same for DuckDB; empty where it does not mean the same there.
        kinds: how each column is compared.
        strategy: how the view keeps states.
        pace: when the view is refreshed.
        keys: the columns of the key of each table that has one.
        budget: what its states may occupy; None for what the engine has.
        ways: how each round comes.
        below: the views that it reads, by name, each after those that it reads itself.
        frame: it is made from a DataFrame.
    """

    schema: Schema
    start: dict[str, list[Row]]
    rounds: list[Round]
    query: str
    duck: str
    kinds: list[str]
    strategy: str = "auto"
    pace: str = EACH_ROUND
    keys: Keys = field(default_factory=dict)
    budget: int | None = None
    ways: tuple[str, ...] = ()
    below: dict[str, str] = field(default_factory=dict)
    frame: bool = False

    @property
    def story(self) -> Story:
        """The tables and what happens to them."""
        return Story(self.schema, self.start, self.rounds, self.keys, self.ways)


def as_case(story: Story, failure: Failure) -> ViewCase:
    """The plain data of a failure."""
    want, query = failure.wanted, failure.wanted.query
    duck = query.sql(sql.DUCK)
    used = {name: columns for name, columns in story.schema.items() if f"{name} " in duck}
    rounds = [{name: both for name, both in changes.items() if name in used} for changes in story.rounds]
    below = {view.name: view.query.sql(sql.SPARK) for view in sql.views_below(query)}
    ways = story.ways[: failure.round]
    return ViewCase(used, {name: story.start[name] for name in used}, rounds[: failure.round], query.sql(sql.SPARK),
                    "" if sql.ONLY_SPARK in duck else duck, query.kinds, want.strategy, want.pace,
                    {name: key for name, key in story.keys.items() if name in used}, want.budget,
                    () if set(ways) == {"whole"} else ways, below, want.frame)  # fmt: skip


def check_view(engine: sw.Engine, case: ViewCase) -> None:
    """A view against every oracle after every round; raises AssertionError with the oracle's name."""
    found = problem(engine, case)
    assert found is None, f"{found[0]}: {found[1]}"


def problem(engine: sw.Engine, case: ViewCase) -> tuple[str, str] | None:
    """The first oracle that disagrees, and what it says."""
    story, twin = case.story, Twin(case.schema)
    try:
        fill(engine, story)
        declare(engine, " ".join((case.query, *case.below.values())))
        below = [engine.create_view(name, text, strategy="incremental") for name, text in case.below.items()]
        query = asked(engine, case.query, frame=case.frame)
        view = engine.create_view("v", query, strategy=case.strategy, memory_budget=case.budget)
        for number in range(len(story.rounds) + 1):
            steps = story.steps(number) if number else []
            for at, step in enumerate(steps, start=1):
                change(engine, story, step)
                if case.pace == EACH_STEP and at < len(steps) and (found := _refreshed(view, f"step {at} of {number}")):
                    return found
            if case.pace == LATE and 0 < number < len(story.rounds):
                continue
            if found := _refreshed(view, f"round {number}", *below):
                return found
            rows = [tuple(row) for row in view.result().collect()]
            oracles = {"interpreter": interpreted(view.logical_plan, story, number)}
            if case.duck:
                twin.load(story.rows(number))
                oracles["duckdb"] = twin.rows(case.duck)
            for oracle, expected in oracles.items():
                if expected is not None and any(only := difference(rows, expected, case.kinds)):
                    return oracle, f"round {number}: the view alone has {only[0]}, the oracle alone {only[1]}"
    except Exception as error:
        return blamed(error)
    return None


def _refreshed(view: sw.View, when: str, *below: sw.View) -> tuple[str, str] | None:
    """Refresh, and compare with a recompute."""
    report = view.refresh()
    if "failed" in report.reason:
        return "program", f"{when}: {report.reason}"
    for checked in (*below, view):
        check = checked.verify()
        if not check:
            return "recompute", f"{when}: {check}"
    return None


# --- smaller cases ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Candidate:
    """A story and a failure that may still be one."""

    story: Story
    failure: Failure


def shrink(spark: SparkSession, story: Story, failure: Failure, seed: int, seconds: float) -> tuple[ViewCase, str]:
    """The smallest case found in the time given, and what its oracle says."""
    deadline = time.monotonic() + seconds
    told, related = "", failure.oracle in _RELATIONS
    without_duck = not as_case(story, failure).duck

    def still(candidate: Candidate) -> bool:
        nonlocal told
        if not _sensible(candidate):
            return False
        with warehouse(spark, seed) as engine:
            case = as_case(candidate.story, candidate.failure)
            found = problem(engine, replace(case, duck="") if without_duck else case)
        same = found is not None and (found[0] == failure.oracle or (related and found[0] in _FOUND_AGAIN))
        if same and found is not None:
            told = f"{found[0]}: {found[1]}"
        return same

    best = Candidate(story, failure)
    if not still(best):
        return as_case(story, failure), f"not found again when alone; in company: {failure.oracle}: {failure.told}"
    best = smallest(best, still, deadline)
    return as_case(best.story, best.failure), told


def smallest(best: Candidate, still: Callable[[Candidate], bool], deadline: float) -> Candidate:
    """Take parts away while what is left still fails."""
    progress = True
    while progress and time.monotonic() < deadline:
        progress = False
        for smaller in _smaller(best):
            if time.monotonic() > deadline:
                break
            if still(smaller):
                best, progress = smaller, True
                break
    return best


_FOUND_AGAIN = ("recompute", "duckdb", "interpreter", "program")
"""Oracles that can be asked about one view alone."""

_RELATIONS = ("inverse", "way back", "strategies", "paces", "partition")
"""Oracles that compare runs: what they find, one of the others should find as well."""


def _sensible(candidate: Candidate) -> bool:
    """Whether each view below has one query, and DuckDB can run the whole, where it can be asked."""
    below = sql.views_below(candidate.failure.wanted.query)
    if len({view.name for view in below}) < len({(view.name, view.query) for view in below}):
        return False
    text = candidate.failure.wanted.query.sql(sql.DUCK)
    if sql.ONLY_SPARK in text:
        return True
    twin = Twin(candidate.story.schema)
    try:
        twin.rows(text)
    except duckdb.Error:
        return False
    return True


def _smaller(case: Candidate) -> Iterator[Candidate]:
    story, failure = case.story, case.failure
    for at in range(min(failure.round, len(story.rounds)) - 1, -1, -1):
        rest = [*story.rounds[:at], *story.rounds[at + 1 : failure.round]]
        ways = (*story.ways[:at], *story.ways[at + 1 :])
        yield Candidate(_repaired(replace(story, rounds=rest, ways=ways)), replace(failure, round=len(rest)))
    if failure.wanted.pace != EACH_ROUND:
        yield Candidate(story, replace(failure, wanted=replace(failure.wanted, pace=EACH_ROUND)))
    for at, way in enumerate(story.ways[: failure.round]):
        if way != "whole":
            yield Candidate(replace(story, ways=(*story.ways[:at], "whole", *story.ways[at + 1 :])), failure)
    if failure.wanted.frame:
        yield Candidate(story, replace(failure, wanted=replace(failure.wanted, frame=False)))
    if failure.wanted.budget is not None:
        yield Candidate(story, replace(failure, wanted=replace(failure.wanted, budget=None)))
    for query in smaller_queries(failure.wanted.query):
        yield Candidate(story, replace(failure, wanted=replace(failure.wanted, query=query)))
    yield from (Candidate(made, failure) for made in _fewer_rows(story))


def _fewer_rows(story: Story) -> Iterator[Story]:
    """Without half of the rows of a list, a quarter of them, …, one of them."""
    for name, rows in story.start.items():
        for kept in _thinned(rows):
            yield _repaired(replace(story, start={**story.start, name: kept}))
    for at, changes in enumerate(story.rounds):
        for name, (come, gone) in changes.items():
            pairs = [(kept, gone) for kept in _thinned(come)] + [(come, kept) for kept in _thinned(gone)]
            for pair in pairs:
                rounds = [*story.rounds[:at], {**changes, name: pair}, *story.rounds[at + 1 :]]
                yield _repaired(replace(story, rounds=rounds))


def _thinned(rows: list[Row]) -> Iterator[list[Row]]:
    size = len(rows)
    while size >= 1:
        for at in range(0, len(rows), size):
            yield rows[:at] + rows[at + size :]
        size //= 2


def _repaired(story: Story) -> Story:
    """Without deletes of rows that are not there."""
    now = {name: [repr(row) for row in rows] for name, rows in story.start.items()}
    rounds: list[Round] = []
    for changes in story.rounds:
        made: Round = {}
        for name, (come, gone) in changes.items():
            now[name] += map(repr, come)
            left = []
            for row in gone:
                if repr(row) in now[name]:
                    now[name].remove(repr(row))
                    left.append(row)
            if come or left:
                made[name] = (come, left)
        rounds.append(made)
    return replace(story, rounds=rounds)


def smaller_queries(node: Any) -> Iterator[Any]:
    """The same tree without one of its parts; not all of them make sense, those are refused."""
    kind = sql.Query if isinstance(node, sql.Query) else sql.Source
    fields = [(f.name, getattr(node, f.name)) for f in dataclasses.fields(node)]
    if not isinstance(node, sql.With):
        yield from (value for _, value in fields if isinstance(value, kind))
    if isinstance(node, sql.Viewed):
        yield sql.Derived(node.query, node.alias)
    for name, value in fields:
        if isinstance(value, bool | int) and value and name != "limit":
            yield replace(node, **{name: type(value)(0)})
        elif name == "grouping" and value:
            yield replace(node, grouping="")
        elif isinstance(value, tuple) and value and name != "names":
            yield from _without_one(node, name, value)
    for name, value in fields:
        if isinstance(value, sql.Query | sql.Source):
            yield from (replace(node, **{name: made}) for made in smaller_queries(value))


def _without_one(node: Any, name: str, parts: tuple[Any, ...]) -> Iterator[Any]:
    least = 0 if name in ("where", "having", "group", "on", "order") else 1
    for at, part in enumerate(parts):
        rest = parts[:at] + parts[at + 1 :]
        if len(rest) < least:
            continue
        if isinstance(node, sql.Select) and name == "group":
            shown = tuple(c for c in node.columns if c.text != part)
            if shown:
                yield replace(node, group=rest, columns=shown)
        else:
            yield replace(node, **{name: rest})

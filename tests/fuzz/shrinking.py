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
from tests.fuzz.on_spark import Failure, blamed, change, fill, warehouse
from tests.fuzz.tables import Round, Row, Schema, Story


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
        late: it is refreshed after the last round only.
        keys: the key of each table that has one.
    """

    schema: Schema
    start: dict[str, list[Row]]
    rounds: list[Round]
    query: str
    duck: str
    kinds: list[str]
    strategy: str = "auto"
    late: bool = False
    keys: dict[str, str] = field(default_factory=dict)


def as_case(story: Story, failure: Failure) -> ViewCase:
    """The plain data of a failure."""
    query = failure.wanted.query
    duck = query.sql(sql.DUCK)
    used = {name: columns for name, columns in story.schema.items() if f"{name} " in duck}
    rounds = [{name: both for name, both in changes.items() if name in used} for changes in story.rounds]
    return ViewCase(used, {name: story.start[name] for name in used}, rounds[: failure.round], query.sql(sql.SPARK),
                    "" if sql.ONLY_SPARK in duck else duck, query.kinds, failure.wanted.strategy,
                    failure.wanted.late, {name: key for name, key in story.keys.items() if name in used})  # fmt: skip


def check_view(engine: sw.Engine, case: ViewCase) -> None:
    """A view against every oracle after every round; raises AssertionError with the oracle's name."""
    story = Story(case.schema, case.start, case.rounds, case.keys)
    found = problem(engine, story, case)
    assert found is None, f"{found[0]}: {found[1]}"


def problem(engine: sw.Engine, story: Story, case: ViewCase) -> tuple[str, str] | None:
    """The first oracle that disagrees, and what it says."""
    try:
        fill(engine, story)
        view = engine.create_view("v", case.query, strategy=case.strategy)
        twin = Twin(story.schema)
        for number, changes in enumerate(({}, *story.rounds)):
            change(engine, story, changes)
            if case.late and 0 < number < len(story.rounds):
                continue
            report = view.refresh()
            if "failed" in report.reason:
                return "program", f"round {number}: {report.reason}"
            rows = [tuple(row) for row in view.result().collect()]
            oracles = {"interpreter": interpreted(view.logical_plan, story, number)}
            if case.duck:
                twin.load(story.rows(number))
                oracles["duckdb"] = twin.rows(case.duck)
            for oracle, expected in oracles.items():
                if expected is not None and any(only := difference(rows, expected, case.kinds)):
                    return oracle, f"round {number}: the view alone has {only[0]}, the oracle alone {only[1]}"
            check = view.verify()
            if not check:
                return "recompute", f"round {number}: {check}"
    except Exception as error:
        return blamed(error)
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
    told = ""

    def still(candidate: Candidate) -> bool:
        nonlocal told
        if not _sensible(candidate):
            return False
        with warehouse(spark, seed) as engine:
            case = as_case(candidate.story, candidate.failure)
            found = problem(engine, Story(case.schema, case.start, case.rounds, case.keys), case)
        same = found is not None and (found[0] == failure.oracle or failure.oracle not in _FOUND_AGAIN)
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
"""Oracles that can be asked about one view alone; a relation that fails is as good as any of them."""


def _sensible(candidate: Candidate) -> bool:
    """Whether DuckDB can run the query, where it can be asked."""
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
        yield Candidate(_repaired(replace(story, rounds=rest)), replace(failure, round=len(rest)))
    if failure.wanted.late:
        yield Candidate(story, replace(failure, wanted=replace(failure.wanted, late=False)))
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
    for name, value in fields:
        if isinstance(value, bool | int) and value and name != "limit":
            yield replace(node, **{name: type(value)(0)})
        elif name == "grouping" and value:
            yield replace(node, grouping="")
        elif isinstance(value, tuple) and value and not (isinstance(node, sql.Top) and name == "columns"):
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

"""The views of a batch: random queries, and relatives of some of them that must agree."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import duckdb

from slackwater.planning.strategies import STRATEGIES
from tests.fuzz import sql
from tests.fuzz.duck import Twin
from tests.fuzz.queries import Generator
from tests.fuzz.tables import Story, draw_story

VIEWS = 20
"""Views for each seed: they share tables and changes."""

ROUNDS = 2
"""Rounds of changes, before the one that takes them all back."""

BUDGETS = (0, 3_000, 10**9)
"""What a view's states may occupy: nothing, next to nothing, and more than it can need."""

EACH_ROUND, EACH_STEP, LATE = "each round", "each step", "late"
"""When a view is refreshed; a late one skips the rounds in between, so that their deltas come merged."""

FRAMES = 0.12
"""The share of the queries that come as DataFrames."""

PARTS, SEVERAL, PACES = 0.07, 0.1, 0.12
"""Shares of the queries that are split by a condition, kept by several strategies, and refreshed at another pace."""


QUERIES_TRIED, CONDITIONS_TRIED = 40, 6
"""How many are drawn, at most, to find a condition that splits a query in three."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One view of a batch.

    Attributes:
        query: what it asks.
        strategy: how it keeps states.
        budget: what its states may occupy; None for what the engine has.
        pace: when it is refreshed.
        family: views of one family are related.
        part: what it is in its family: whole, or a part of it.
        frame: it is made from a DataFrame, not from text.
    """

    query: sql.Query
    strategy: str
    budget: int | None = None
    pace: str = EACH_ROUND
    family: int = 0
    part: bool = False
    frame: bool = False


def draw(seed: int, views: int = VIEWS) -> tuple[Story, list[Wanted]]:
    """What a seed stands for."""
    chance = random.Random(seed)
    story = draw_story(chance, ROUNDS)
    generator = Generator(story.schema, chance, story.keys)
    twin = Twin(story.schema)
    twin.load(story.rows(ROUNDS))
    wanted: list[Wanted] = []
    number = 0
    while len(wanted) < views:
        number += 1
        family = [replace(want, family=number) for want in _family(generator, twin)]
        wanted += family if len(wanted) + len(family) <= views else family[:1]
    return story, wanted


def any_strategy(chance: random.Random) -> str:
    """Any strategy, most often one that does not recompute."""
    return chance.choice([*STRATEGIES, "auto", "incremental", "incremental", "recycler"])


def _family(generator: Generator, twin: Twin) -> list[Wanted]:
    """A view, and those that must agree with it."""
    chance, kind = generator.random, generator.random.random()
    if kind < PARTS:
        query, p = splitting(generator, twin)
        base = Wanted(query, any_strategy(chance))
        split = (p, f"NOT ({p})", f"({p}) IS NULL")
        return [base, *(replace(base, query=sql.Filtered(query, s), part=True) for s in split)]
    base = Wanted(generator.query(), any_strategy(chance))
    if chance.random() < FRAMES and not sql.views_below(base.query) and sql.OWN not in base.query.sql(sql.SPARK):
        base = replace(base, frame=True)
    if kind < PARTS + SEVERAL:
        others = chance.sample([s for s in STRATEGIES if s != base.strategy], 3)
        budgets = chance.sample(BUDGETS, 3)
        text = replace(base, frame=False)
        return [base, *(replace(text, strategy=s, budget=b) for s, b in zip(others, budgets, strict=True))]
    if kind < PARTS + SEVERAL + PACES:
        pace = chance.choice([EACH_STEP, EACH_STEP, LATE])
        return [base, replace(base, strategy=any_strategy(chance), pace=pace)]
    return [base]


def splitting(generator: Generator, twin: Twin) -> tuple[sql.Query, str]:
    """A query and a condition over its columns, such that none of the three parts is empty, if that can be found.

    DuckDB counts them, over the rows before they are all taken back. Where it cannot be asked, the parts are what they
    are; of these queries only a few are taken, or there would be hardly any others.
    """
    found: list[tuple[int, sql.Query, str]] = []
    for query in (generator.query() for _ in range(QUERIES_TRIED)):
        asked = sql.ONLY_SPARK not in query.sql(sql.DUCK)
        if not asked and generator.random.random() < 0.04:
            return query, generator.condition(query)
        for _ in range(CONDITIONS_TRIED if asked else 0):
            p = generator.condition(query)
            found.append((parts_found(query, p, twin), query, p))
            if found[-1][0] == 3:
                return query, p
    return max(found, key=lambda one: one[0])[1:]


def parts_found(query: sql.Query, p: str, twin: Twin) -> int:
    """How many of the three parts have rows, as DuckDB sees it; none where only Spark can be asked."""
    if sql.ONLY_SPARK in p:
        return 0
    try:
        return len(twin.rows(f"SELECT DISTINCT {p} AS p FROM ({query.sql(sql.DUCK)}) z"))
    except duckdb.Error:  # the batch will tell
        return 0

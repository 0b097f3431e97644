"""The fuzzer in the tests: a few cases always, all of them in `make test-all`; and tests of the fuzzer itself."""

from __future__ import annotations

import math
import random
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from pyspark.sql import SparkSession

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import Expr, call, col, lit
from slackwater.algebra.generate import Generate, Values
from slackwater.algebra.interpreter import Bag
from slackwater.algebra.joins import MatchJoin, OuterJoin
from slackwater.algebra.scalars import ScalarFilter
from slackwater.algebra.windows import Frame, Window, WindowCall
from slackwater.delta import rules
from slackwater.delta.join import join_delta
from tests.fuzz import on_interpreter, on_spark, sql
from tests.fuzz.as_code import code
from tests.fuzz.plan_cases import PlanCase, plan_cases
from tests.fuzz.queries import Generator
from tests.fuzz.shrinking import Candidate, as_case, smaller_queries, smallest
from tests.fuzz.tables import Story, draw_story

pytestmark = pytest.mark.fuzz

SEED = 20240229
NAMES: dict[str, Any] = {
    c.__name__: c
    for c in (AggCall, Expr, Generate, Values, Bag, MatchJoin, OuterJoin, ScalarFilter, Frame, Window, WindowCall,
              PlanCase, Decimal, date)
} | {"n": n, "call": call, "col": col, "lit": lit, "math": math}  # fmt: skip


def test_a_few_cases_on_the_interpreter() -> None:
    ran, finding = on_interpreter.play(SEED, 200)
    assert finding is None, finding.regression
    assert ran == 200


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_ten_thousand_cases_on_the_interpreter() -> None:
    ran, finding = on_interpreter.play(1, 10_000)
    assert finding is None, finding.regression
    assert ran == 10_000


def test_a_few_views_on_spark(spark: SparkSession) -> None:
    _, _, failures = on_spark.play_seed(spark, SEED, views=4)
    assert not failures, "\n".join(map(str, failures))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(25))
def test_five_hundred_views_on_spark(spark: SparkSession, seed: int) -> None:
    tally, _, failures = on_spark.play_seed(spark, seed)
    assert not failures, "\n".join(map(str, failures))
    assert tally.cases == on_spark.VIEWS


# --- the fuzzer itself -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_wrong_rule_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The naive join rule loses the pairs of which both rows are new."""

    def naive(node: n.Join, left: Any, right: Any, old_left: n.Rel, new_right: n.Rel, *small: bool) -> n.Rel | None:
        old_right = new_right.transform_up(lambda x: _at(x, "old"))
        return join_delta(node, left, right, old_left, old_right, *small)

    monkeypatch.setattr(rules, "join_delta", naive)
    _, finding = on_interpreter.play(SEED, 500)
    assert finding is not None
    found = eval(finding.regression.split("check(", 1)[1].rsplit(")", 1)[0], dict(NAMES))  # noqa: S307
    assert sum(abs(w) for changes in found.history for bag in changes.values() for _, w in bag.items()) <= 3
    assert len(list(found.plan.walk())) <= 4


def _at(node: n.Rel, when: str) -> n.Rel:
    return n.Scan(node.table, node.fields, node.positions, when) if isinstance(node, n.Scan) else node


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(plan_cases())
def test_a_case_printed_is_the_same_case(case: PlanCase) -> None:
    text = code(case)
    assert code(eval(text, dict(NAMES))) == text  # noqa: S307


def test_the_generator_draws_every_kind_of_query() -> None:
    drawn, generator = [], None
    for seed in range(40):
        chance = random.Random(seed)
        generator = Generator(draw_story(chance, 0).schema, chance)
        drawn += [generator.query().sql(sql.SPARK) for _ in range(20)]
    parts = (" JOIN ", "CROSS JOIN", "IS NOT DISTINCT FROM", "UNION ALL", "SELECT DISTINCT", "HAVING", "FILTER",
             "LIMIT", "OFFSET", "count(DISTINCT", "sum(DISTINCT", "var_pop", "stddev_samp", "bool_or", "bit_xor",
             "CASE", "GROUP BY", "NOT IN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "IN (SELECT", "EXISTS (SELECT",
             "NOT EXISTS", "INTERSECT", "EXCEPT", "EXCEPT ALL", "ROLLUP", "CUBE", "GROUPING SETS", "grouping(",
             "OVER (", "PARTITION BY", "ROWS BETWEEN", "row_number", "lag(", "nth_value", "cume_dist", "WITH w",
             "VALUES", "PIVOT", "explode", "OUTER explode", "percentile", "max_by", "collect_list", "(SELECT max(",
             "try_cast(", "transform(",
             "LIMIT 1)")  # fmt: skip
    assert [part for part in parts if not any(part in text for text in drawn)] == []
    assert len(set(drawn)) > 780


def test_stories_are_of_every_character_and_come_back() -> None:
    sizes = set()
    for seed in range(30):
        story = draw_story(random.Random(seed), 3)
        sizes |= {len(rows) for rows in story.start.values()}
        assert _as_bags(story, len(story.rounds)) == _as_bags(story, 0)
    assert 0 in sizes
    assert max(sizes) >= 24


def _as_bags(story: Story, rounds: int) -> dict[str, list[str]]:
    return {name: sorted(map(repr, rows)) for name, rows in story.rows(rounds).items()}


def test_a_failing_view_is_made_small() -> None:
    """As if every view of a join that reads t1 failed while some row of t1 comes and another goes."""

    def fails(candidate: Candidate) -> bool:
        case = as_case(candidate.story, candidate.failure)
        come, gone = (sum(len(c["t1"][at]) for c in case.rounds if "t1" in c) for at in (0, 1))
        return " JOIN t1 " in case.query and come > 0 and gone > 0

    found = 0
    for seed in range(20):
        chance = random.Random(seed)
        story = draw_story(chance, 2)
        wanted = on_spark.Wanted(Generator(story.schema, chance).query(), "auto")
        first = Candidate(story, on_spark.Failure(wanted, "duckdb", "", 2))
        if fails(first):
            found += 1
            least = smallest(first, fails, math.inf)
            case = as_case(least.story, least.failure)
            assert len(case.rounds) <= 2
            assert sum(len(rows) for rows in case.start.values()) <= 1
            assert case.query.count(" JOIN ") == 1
            assert len(case.query) < len(wanted.query.sql(sql.SPARK)) or len(case.kinds) == 1
    assert found >= 2


def test_queries_can_be_taken_apart() -> None:
    chance = random.Random(3)
    generator = Generator(draw_story(chance, 0).schema, chance)
    for _ in range(40):
        query = generator.query()
        text = query.sql(sql.SPARK)
        smaller = [made.sql(sql.SPARK) for made in smaller_queries(query)]
        assert text not in smaller
        assert all(len(made) < len(text) for made in smaller if "GROUPING" not in text and "CROSS" not in made)

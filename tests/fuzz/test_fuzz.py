"""The fuzzer in the tests: a few cases always, all of them in `make test-all`; and tests of the fuzzer itself."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections import Counter
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from pyspark.sql import Row, SparkSession

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import Expr, call, col, lit
from slackwater.algebra.first_rows import First
from slackwater.algebra.generate import Generate, Values
from slackwater.algebra.interpreter import Bag
from slackwater.algebra.joins import MatchJoin, OuterJoin
from slackwater.algebra.scalars import ScalarFilter
from slackwater.algebra.windows import Frame, Window, WindowCall
from slackwater.delta import rules
from slackwater.delta.join import join_delta
from tests.fuzz import __main__ as fuzzer
from tests.fuzz import on_interpreter, on_spark, sql
from tests.fuzz.as_code import code
from tests.fuzz.duck import Twin, difference
from tests.fuzz.expressions import OF_SEVERAL
from tests.fuzz.plan_cases import PlanCase, plan_cases
from tests.fuzz.queries import Generator
from tests.fuzz.shrinking import Candidate, ViewCase, as_case, smaller_queries, smallest
from tests.fuzz.tables import WAYS, Story, draw_story
from tests.fuzz.wanted import BUDGETS, EACH_STEP, LATE, VIEWS, Wanted, draw

pytestmark = pytest.mark.fuzz

SEED = 20240229
NAMES: dict[str, Any] = {
    c.__name__: c
    for c in (AggCall, Expr, First, Generate, Values, Bag, MatchJoin, OuterJoin, ScalarFilter, Frame, Window,
              WindowCall, PlanCase, Decimal, date, datetime, timedelta, timezone)
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
    tally, _, failures = on_spark.play_seed(spark, SEED, views=2)
    assert not failures, "\n".join(map(str, failures))
    assert tally.complaints() == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(25))
def test_five_hundred_views_on_spark(spark: SparkSession, seed: int) -> None:
    tally, _, failures = on_spark.play_seed(spark, seed)
    assert not failures, "\n".join(map(str, failures))
    assert tally.cases == VIEWS
    assert tally.complaints() == []


# --- the fuzzer itself -----------------------------------------------------------------------------------------------


def test_a_run_that_proves_nothing_is_no_silent_one() -> None:
    def tally(**counts: Any) -> on_spark.Tally:
        usual: dict[str, Any] = {
            "compared": Counter(duckdb=30, recompute=10, inverse=20), "refused": Counter(QUERY_UNSUPPORTED=1),
            "modes": Counter(incremental=40, recompute=20, none=10),
        }  # fmt: skip
        return on_spark.Tally(cases=20, **(usual | counts))

    assert tally().complaints() == []
    for counts, words in [
        ({"refused": Counter(QUERY_UNSUPPORTED=20)}, "20 of 20 queries were refused"),
        ({"modes": Counter(recompute=60, none=10)}, "only 0 of 60 refreshes were incremental"),
        ({"modes": Counter(none=70)}, "only 0 of 0 refreshes were incremental"),
        ({"compared": Counter(inverse=90, strategies=9)}, "19 views were compared 0 times with what is right"),
        ({"invalid": ["SELECT"]}, "Spark did not understand 1 of 20 queries"),
    ]:
        assert tally(**counts).complaints() == [words]
    assert "no view was drawn" in on_spark.Tally().complaints()


class _NoSpark:
    def stop(self) -> None:
        pass


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """The command, with batches in which all goes well and that take a minute; its exit code and what it told."""
    clock = itertools.count(step=60)
    now = [next(clock)]

    def played(spark: Any, seed: int, views: int) -> tuple[on_spark.Tally, None, list[Any]]:
        now[0] = next(clock)
        modes = Counter(incremental=2 * views)
        return on_spark.Tally(cases=views, compared=Counter(duckdb=3 * views), modes=modes), None, []

    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["fuzz", "--seed", "1", *arguments])
        code = fuzzer.main()
        return code, capsys.readouterr().out

    monkeypatch.setattr(fuzzer, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(fuzzer, "small_spark", lambda _: _NoSpark())
    monkeypatch.setattr(on_spark, "play_seed", played)
    monkeypatch.setattr(on_interpreter, "play", lambda _, cases: (min(cases, 1_000), None))
    return run


def test_a_run_that_did_all_that_was_asked_is_silent(command: Any) -> None:
    code, told = command("--cases", "1000", "--spark-cases", "50")
    assert (code, told.splitlines()[-1]) == (0, "silent")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--cases", "0", "--spark-cases", "50", "--minutes", "1"), "only 40 of 50 views were drawn"),
        (("--cases", "1500", "--spark-cases", "0"), "only 1000 of 1500 cases were played"),
    ],
)
def test_a_run_that_was_cut_is_no_silent_one(command: Any, arguments: tuple[str, ...], words: str) -> None:
    code, told = command(*arguments)
    assert code == 1
    assert f"this proves little: {words}" in told
    assert "silent" not in told


def test_fewer_views_than_were_asked_for_are_told() -> None:
    tally = on_spark.Tally(cases=20, compared=Counter(duckdb=60), modes=Counter(incremental=40))
    assert tally.complaints(20) == []
    assert tally.complaints(500) == ["only 20 of 500 views were drawn"]


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
    for seed in range(90):
        chance = random.Random(seed)
        story = draw_story(chance, 0)
        generator = Generator(story.schema, chance, story.keys)
        drawn += [generator.query().sql(sql.SPARK) for _ in range(20)]
    parts = (" JOIN ", "CROSS JOIN", "IS NOT DISTINCT FROM", "UNION ALL", "SELECT DISTINCT", "HAVING", "FILTER",
             "LIMIT", "OFFSET", "count(DISTINCT", "sum(DISTINCT", "var_pop", "stddev_samp", "bool_or", "bit_xor",
             "CASE", "GROUP BY", "NOT IN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "IN (SELECT", "EXISTS (SELECT",
             "NOT EXISTS", "INTERSECT", "EXCEPT", "EXCEPT ALL", "ROLLUP", "CUBE", "GROUPING SETS", "grouping(",
             "OVER (", "PARTITION BY", "ROWS BETWEEN", "row_number", "lag(", "nth_value", "cume_dist", "WITH w",
             "VALUES", "PIVOT", "explode", "OUTER explode", "percentile", "max_by", "collect_list", "(SELECT max(",
             "try_cast(", "transform(",
             "LIMIT 1)", "RANGE BETWEEN", "posexplode(", "inline(", "stack(", "UNPIVOT", "INCLUDE NULLS", "COLLATE",
             "named_struct(", "to_json(", "make_dt_interval(", "TIMESTAMP_NTZ", "unhex(", "own_step(", "own_spread(",
             "own_total(", "FROM b", "LIKE", "to_date(", "INTERVAL '1' MONTH", "split_part(", "floor(",
             "map('a'", "X'01'", "IGNORE NULLS", " LATERAL (SELECT", "json_tuple(", "listagg(", "listagg(DISTINCT",
             "covar_", "regr_", "array(0.25, 0.75)", "approx_count_distinct(", "make_ym_interval(")  # fmt: skip
    assert [part for part in parts if not any(part in text for text in drawn)] == []
    assert len(set(drawn)) > 1750
    assert any(re.search(r"LIMIT \d( OFFSET \d)?\) o LIMIT", text) for text in drawn), "limits over limits"
    assert any(re.search(r"ON .*[<>] \(SELECT", text) for text in drawn), "scalar subqueries in ON"
    for what, pattern in {
        "IN in the SELECT list": r"SELECT [^()]*\([^()]* IN \(SELECT",
        "EXISTS in the SELECT list": r"SELECT [^()]*\((NOT )?EXISTS",
        "IN and EXISTS in ON": r" JOIN [^()]* ON [^()]*( IN|EXISTS) \(SELECT",
        "IN in HAVING": r"HAVING max\([^()]*\) (NOT )?IN \(SELECT",
        "correlated NOT IN": r"NOT IN \(SELECT (y\d+)\.\w+ FROM \w+ \1 WHERE \1\.\w+ (=|<|IS NOT D)",
        "NOT IN of several columns": r"\([^()]*, [^()]*\) NOT IN \(SELECT y\d+\.\w+, y\d+",
        "defaults of lag and lead": r"(lag|lead)\([^()]*, \d, -9\)",
    }.items():
        assert any(re.search(pattern, text) for text in drawn), what
    assert any(re.search(r"max_by\([^()]*, 2\)", text) for text in drawn) is OF_SEVERAL
    assert any(re.search(r"\(SELECT y\d+\.\w+ FROM \w+ y\d+ WHERE", text) for text in drawn), "lookups by key"


def test_duckdb_runs_every_query_that_it_is_asked() -> None:
    asked = 0
    for seed in range(12):
        story, wanted = draw(seed)
        twin = Twin(story.schema)
        twin.load(story.rows(2))
        for want in wanted:
            text = want.query.sql(sql.DUCK)
            if sql.ONLY_SPARK not in text:
                asked += 1
                assert all(len(row) == len(want.query.kinds) == len(want.query.types) for row in twin.rows(text))
    assert asked > 80


def test_values_of_every_type_are_compared() -> None:
    ours = [(Row(x=1, y=None), bytearray(b"a"), {"b": 2, "a": 1}, 0.25)]
    same = [((1, None), b"a", {"a": 1, "b": 2}, 0.25)]
    assert difference(ours, same, ["exact"] * 4) == ([], [])
    for other in (((1, ""), b"a", {"a": 1, "b": 2}, 0.25), ((1, None), b"a", {"a": 1}, 0.25)):
        assert difference(ours, [other], ["exact"] * 4) != ([], [])


@pytest.mark.slow
def test_families_differ_in_what_must_not_matter() -> None:
    families: dict[tuple[int, int], list[Wanted]] = {}
    found: dict[int, int] = {}
    for seed in range(60):
        story, wanted = draw(seed)
        assert len(wanted) == VIEWS
        twin = Twin(story.schema)
        twin.load(story.rows(2))
        for want in wanted:
            families.setdefault((seed, want.family), []).append(want)
            if want.part and want.query.sql(sql.DUCK).endswith(" IS NULL"):
                parts = [v for v in families[seed, want.family] if v.part]
                if not any(sql.ONLY_SPARK in v.query.sql(sql.DUCK) for v in parts):
                    filled = sum(bool(twin.rows(v.query.sql(sql.DUCK))) for v in parts)
                    found[filled] = found.get(filled, 0) + 1
    several = [members for members in families.values() if len({m.strategy for m in members}) == 4]
    assert len(several) > 15
    assert all({m.budget for m in members[1:]} == set(BUDGETS) for members in several)
    assert any(members[0].frame and not members[1].frame for members in several)
    paces = [m.pace for members in families.values() for m in members]
    assert min(paces.count(EACH_STEP), paces.count(LATE)) > 5
    assert found[3] > sum(found.values()) / 2, found


def test_stories_are_of_every_character_and_come_back() -> None:
    sizes = set()
    for seed in range(30):
        story = draw_story(random.Random(seed), 3)
        sizes |= {len(rows) for rows in story.start.values()}
        assert _as_bags(story, len(story.rounds)) == _as_bags(story, 0)
    assert 0 in sizes
    assert max(sizes) >= 24


def test_steps_add_up_to_their_round() -> None:
    met, composed = set(), False
    for seed in range(60):
        story = draw_story(random.Random(seed), 2)
        for number in range(1, len(story.rounds) + 1):
            steps = story.steps(number)
            met.add((story.ways[number - 1], len(steps) > 1))
            walk = Story(story.schema, story.rows(number - 1), steps, story.keys)
            for at in range(len(steps) + 1):
                for name, key in story.keys.items():  # no key is taken twice, and no row goes that is not there
                    places = [list(story.schema[name]).index(column) for column in key]
                    keys = [tuple(row[place] for place in places) for row in walk.rows(at)[name]]
                    assert len(set(keys)) == len(keys)
                    composed |= len(places) == 2 and len({first for first, *_ in keys}) < len(keys)
            assert _as_bags(walk, len(steps)) == _as_bags(story, number)
    assert {way for way, several in met if several} == {way for way in WAYS if way != "whole"}
    assert composed, "no table whose rows only a key of two columns tells apart"


def _as_bags(story: Story, rounds: int) -> dict[str, list[str]]:
    return {name: sorted(map(repr, rows)) for name, rows in story.rows(rounds).items()}


def test_a_view_printed_is_the_same_view() -> None:
    """With values of every type, in other steps, over another view."""
    made = 0
    for seed in range(30):
        story, wanted = draw(seed)
        for want in wanted:
            case = as_case(story, on_spark.Failure(want, "duckdb", "", 3))
            assert eval(code(case), NAMES | {"ViewCase": ViewCase}) == case or "nan" in code(case)  # noqa: S307
            assert all(f" {name} " in case.query + str(case.below) for name in case.below)
            made += bool(case.below)
    assert made > 10


def test_a_failing_view_is_made_small() -> None:
    """As if every view of a join that reads t1 failed while some row of t1 comes and another goes."""

    def fails(candidate: Candidate) -> bool:
        case = as_case(candidate.story, candidate.failure)
        come, gone = (sum(len(c["t1"][at]) for c in case.rounds if "t1" in c) for at in (0, 1))
        return " JOIN t1 " in case.query and come > 0 and gone > 0

    found = 0
    for seed in range(40):
        chance = random.Random(seed)
        story = draw_story(chance, 2)
        wanted = Wanted(Generator(story.schema, chance, story.keys).query(), "auto")
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
    story = draw_story(chance, 0)
    generator = Generator(story.schema, chance, story.keys)
    for _ in range(60):
        query = generator.query()
        text = _said(query)
        smaller = [_said(made) for made in smaller_queries(query)]
        if len(sql.views_below(query)) > 1:
            continue  # what reads a view twice must be changed in both places; only that is sensible
        assert text not in smaller
        assert all(len(made) < len(text) for made in smaller if "GROUPING" not in text and "CROSS" not in made)


def _said(query: sql.Query) -> str:
    """All the text that stands for a query: its own, and that of the views that it reads."""
    below = {view.name: view.query.sql(sql.SPARK) for view in sql.views_below(query)}
    return " ".join((query.sql(sql.SPARK), *below.values()))

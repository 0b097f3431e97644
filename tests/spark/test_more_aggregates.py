"""Every aggregate function of Spark: merged, redone by group, or refused with a code; none is recomputed in silence."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

import pytest

import slackwater as sw
from slackwater.algebra.aggregates import Combine
from slackwater.algebra.nodes import Aggregate, Opaque, Rel
from slackwater.settings import pinned_settings
from tests.spark.tides import SCHEMA, check_rounds, row

MERGED = """
count_if(v > 1)
every(v > 0)
some(v > 3)
bool_or(v > 3)
regr_count(v, o)
regr_avgx(v, o)
std(v)
mean(m)
bit_xor(v)
""".strip().splitlines()
MERGED_WITH_TIES = """
max_by(id, v)
min_by(p, v)
max_by(p, o) FILTER (WHERE v > 1)
""".strip().splitlines()
REDONE = """
percentile(v, 0.5)
percentile(v, array(0.25, 0.75))
percentile(v, 0.5, o)
median(m)
percentile_cont(0.25) WITHIN GROUP (ORDER BY v DESC)
percentile_disc(0.25) WITHIN GROUP (ORDER BY v DESC)
percentile_disc(0.25) WITHIN GROUP (ORDER BY v)
mode(v, true)
mode() WITHIN GROUP (ORDER BY v DESC)
approx_count_distinct(v)
approx_count_distinct(v, 0.01)
count_min_sketch(v, 0.5D, 0.5D, 1)
try_sum(v)
try_avg(m)
bitmap_or_agg(CAST(p AS BINARY))
bitmap_and_agg(CAST(p AS BINARY))
bitmap_construct_agg(CAST(abs(v) AS BIGINT))
""".strip().splitlines()
REDONE_WITH_TIES = """
collect_list(v)
collect_set(v)
array_agg(v) FILTER (WHERE o > 0)
collect_list(v) RESPECT NULLS
collect_set(v) FILTER (WHERE o > 0) RESPECT NULLS
concat_ws('-', collect_list(p))
listagg(p, ',')
string_agg(DISTINCT p, '|')
listagg(p, ',') WITHIN GROUP (ORDER BY o DESC)
""".strip().splitlines()
FLOATING = """
corr(v, o)
covar_pop(v, o)
covar_samp(v, o)
regr_slope(v, o)
regr_intercept(v, o)
regr_r2(v, o)
regr_sxx(v, o)
regr_sxy(v, o)
regr_syy(v, o)
skewness(v)
kurtosis(v)
stddev_samp(d)
percentile(d, 0.5)
""".strip().splitlines()
REFUSED = """
first(v)
last(v)
any_value(v)
mode(v)
approx_percentile(v, 0.5)
percentile_approx(v, 0.5)
histogram_numeric(v, 5)
hll_sketch_agg(v)
""".strip().splitlines()


def listed(functions: list[str]) -> str:
    return ", ".join(f"{f} AS x{i}" for i, f in enumerate(functions))


def combines(plan: Rel) -> Iterator[tuple[str, Combine]]:
    for node in plan.walk():
        if isinstance(node, Aggregate):
            yield from ((a.text, a.combine) for a in node.aggs)


@pytest.fixture(scope="module")
def tables(warehouse: sw.Engine) -> sw.Engine:
    warehouse.create_table("t", SCHEMA)
    return warehouse


def captured(engine: sw.Engine, sql: str) -> Rel:
    return engine.capture(sql, pinned_settings(engine.spark)).plan


def test_how_each_function_is_followed(tables: sw.Engine) -> None:
    for functions, combine, ties in (
        (MERGED, None, False), (MERGED_WITH_TIES, Combine.MERGEABLE, True), (REDONE, Combine.REDO, False),
        (REDONE_WITH_TIES, Combine.REDO, True),
    ):  # fmt: skip
        plan = captured(tables, f"SELECT o, {listed(functions)} FROM t GROUP BY o")
        assert not isinstance(plan, Opaque), plan
        followed = dict(combines(plan))
        assert followed
        if combine is None:
            assert Combine.REDO not in followed.values(), followed
        else:
            assert set(followed.values()) == {combine}, followed
        aggregates = [x for x in plan.walk() if isinstance(x, Aggregate)]
        assert all(x.repeatable for x in aggregates if combine is Combine.REDO)
        assert any(x.breaks_ties for x in aggregates) is ties
    floating = captured(tables, f"SELECT p, {listed(FLOATING)} FROM t GROUP BY p")
    assert not isinstance(floating, Opaque), floating


@pytest.mark.parametrize("function", REFUSED)
def test_what_depends_on_the_order_of_rows_is_refused(tables: sw.Engine, function: str) -> None:
    with pytest.raises(sw.SlackwaterError) as caught:
        captured(tables, f"SELECT p, {function} AS x FROM t GROUP BY p")
    assert caught.value.code == "QUERY_NONDETERMINISTIC"
    assert caught.value.advice


def test_a_list_that_relies_on_the_order_of_a_subquery_is_refused(tables: sw.Engine) -> None:
    with pytest.raises(sw.SlackwaterError, match="ORDER BY of a subquery"):
        captured(tables, "SELECT p, collect_list(v) AS x FROM (SELECT * FROM t ORDER BY o) GROUP BY p")


def test_every_aggregate_of_spark_has_a_place(tables: sw.Engine) -> None:
    """A function that a new Spark brings shows up here, and must be given one."""
    registry = tables.spark._jsparkSession.sessionState().functionRegistry()
    listing, groups = registry.listFunction(), {}
    for i in range(listing.size()):
        info = registry.lookupFunction(listing.apply(i)).get()
        groups.setdefault(str(info.getGroup()), set()).add(str(listing.apply(i).funcName()))
    text = " ".join(MERGED + MERGED_WITH_TIES + REDONE + REDONE_WITH_TIES + FLOATING + REFUSED)
    known = {name for name in groups["agg_funcs"] if f"{name}(" in text}
    elsewhere = {"any", "avg", "bit_and", "bit_or", "bool_and", "count", "max", "min", "sum", "stddev", "stddev_pop",
                 "var_pop", "var_samp", "variance", "first_value", "last_value", "grouping", "grouping_id", "regr_avgy",
                 "skewness"}  # fmt: skip
    sketches = {n for n in groups["agg_funcs"] if n.startswith(("hll_", "kll_", "theta_", "tuple_", "approx_top_k"))}
    assert groups["agg_funcs"] - known - elsewhere - sketches - ODD.keys() == set()


ODD = {
    "collect_union": ("sort_array(collect_union(array(v)))", "recomputed", "EXPRESSION_UNSUPPORTED"),
    "measure": ("measure(v)", "recomputed", "EXPRESSION_UNSUPPORTED"),
    "product": ("product(v)", "refused", "QUERY_INVALID"),
    "max_by_k": ("max_by_k(id, v, 2)", "refused", "QUERY_INVALID"),
    "schema_of_variant_agg": ("schema_of_variant_agg(parse_json(p))", "incremental", ""),
    "vector_avg": ("vector_avg(array(CAST(v AS FLOAT)))", "incremental", ""),
    "vector_sum": ("vector_sum(array(CAST(v AS FLOAT)))", "incremental", ""),
}
"""Functions that are called by no name of their own, take odd arguments or work in a metric view only."""


@pytest.mark.parametrize("name", ODD)
def test_odd_functions_have_a_verdict(tables: sw.Engine, name: str) -> None:
    call, verdict, code = ODD[name]
    if name == "collect_union" and tables.spark.version < "4.3":
        pytest.skip("Spark has it since 4.3")
    found = tables.check(f"SELECT p, {call} AS x FROM t GROUP BY p")
    assert found.verdict == verdict, str(found)
    assert not code or found.codes[0] == code, str(found)


def test_groups_follow_every_change(warehouse: sw.Engine) -> None:
    check_rounds(
        warehouse,
        {
            "merged": f"SELECT p, {listed(MERGED)} FROM {{tides}} GROUP BY p",
            "redone": f"SELECT o, {listed(REDONE)} FROM {{tides}} GROUP BY o",
            "ties": f"SELECT p, {listed(MERGED_WITH_TIES + REDONE_WITH_TIES)} FROM {{tides}} GROUP BY p",
        },
    )


@pytest.mark.slow
def test_groups_of_many_kinds_follow_every_change(warehouse: sw.Engine) -> None:
    check_rounds(
        warehouse,
        {
            "ties": f"SELECT p, {listed(MERGED_WITH_TIES)} FROM {{tides}} GROUP BY p",
            "lists": f"SELECT o, {listed(REDONE_WITH_TIES)} FROM {{tides}} GROUP BY o",
            "over a join": """SELECT l.n, percentile(t.v, 0.5) AS x, listagg(t.p, ',') AS y
                FROM {tides} t JOIN {labels} l ON t.p <=> l.k GROUP BY l.n""",
        },
    )


@pytest.mark.slow
def test_groups_of_several_layers_follow_every_change(warehouse: sw.Engine) -> None:
    check_rounds(
        warehouse,
        {
            "floating": f"SELECT p, {listed([f for f in FLOATING if 'corr' not in f])} FROM {{tides}} GROUP BY p",
            "of groups": """SELECT median(s) AS x, collect_list(most) AS y, count(*) AS n FROM
                (SELECT p, sum(v) AS s, max_by(id, v) AS most FROM {tides} GROUP BY p)""",
            "distinct and more": """SELECT p, count(DISTINCT v) AS a, count(DISTINCT o) AS b, sum(DISTINCT v) AS c,
                max_by(id, v) AS e, sum(v) FILTER (WHERE o > 1) AS f FROM {tides} GROUP BY p""",
            "one distinct and max_by": "SELECT p, count(DISTINCT v) AS a, max_by(id, o) AS b FROM {tides} GROUP BY p",
            "cube": """SELECT p, o, grouping_id() AS g, grouping(p) AS gp, median(v) AS x, max_by(id, v) AS y
                FROM {tides} GROUP BY CUBE (p, o)""",
            "of all": "SELECT median(v) AS x, max_by(id, o) AS y, collect_set(p) AS z FROM {tides}",
            "having": "SELECT o, median(v) AS x FROM {tides} GROUP BY o HAVING percentile(v, 0.9) > 2",
        },
    )


ONE_PART = "SELECT avg(m) AS a{0}, count(m) AS n{0}, count(DISTINCT m) AS d{0} FROM {{tides}} WHERE o {1}"
BESIDE_A_DISTINCT = {
    "over everything": ONE_PART.format("", "< 9"),
    "a row of two": f"SELECT * FROM ({ONE_PART.format(1, '< 2')}) CROSS JOIN ({ONE_PART.format(2, '>= 2')})",
    "by a key": """SELECT o, avg(v) AS a, avg(DISTINCT p) AS x, count(DISTINCT p) AS d, sum(v) AS s,
        avg(m) FILTER (WHERE v > 1) AS f FROM (SELECT o, v, m, length(p) AS p FROM {tides}) GROUP BY o""",
}


def test_an_average_beside_a_distinct_follows_every_change(warehouse: sw.Engine, tables: sw.Engine) -> None:
    for name, sql in BESIDE_A_DISTINCT.items():
        assert tables.check(sql.format(tides="t")).verdict == "incremental", name
    check_rounds(warehouse, BESIDE_A_DISTINCT)


def test_an_average_beside_a_distinct_is_rounded_as_ever(engine: sw.Engine) -> None:
    table = engine.create_table("t", "v INT, m DECIMAL(7,2), w DECIMAL(18,6)")
    some = [(n, Decimal(n % 5) / 100, Decimal(n % 7) / 10**6) for n in range(1, 8)]
    table.insert([*some, (None, None, None)])
    calls = "avg(v) AS a, avg(m) AS b, avg(w) AS c"
    both = f"SELECT {calls}, count(DISTINCT v) AS d FROM t"
    view, plain = engine.create_view("v", both), engine.create_view("plain", f"SELECT {calls} FROM t")
    for gone in ([], some[:2], some[2:]):
        table.delete(gone)
        engine.refresh()
        alone = table.snapshot().selectExpr("avg(v)", "avg(m)", "avg(w)").collect()[0]
        assert tuple(view.result().collect()[0])[:3] == tuple(plain.result().collect()[0]) == tuple(alone)
        assert view.verify()
    assert tuple(view.result().collect()[0]) == (None, None, None, 0)


MONTHS, TIME = "make_ym_interval(0, v)", "make_dt_interval(o, 0, v, v / 3)"
OF_INTERVALS = {
    "by a key": f"""SELECT p, CAST(sum({MONTHS}) AS STRING) AS m, CAST(avg({MONTHS}) AS STRING) AS am, sum({TIME}) AS t,
        avg({TIME}) AS at, sum(-{TIME}) FILTER (WHERE v > 1) AS f FROM {{tides}} GROUP BY p""",
    "beside a distinct": f"""SELECT sum({TIME}) AS t, CAST(avg({MONTHS}) AS STRING) AS m, count(DISTINCT p) AS d
        FROM {{tides}}""",
}


def test_sums_of_intervals_add_up(warehouse: sw.Engine, tables: sw.Engine) -> None:
    for sql in OF_INTERVALS.values():
        followed = dict(combines(captured(tables, sql.format(tides="t"))))
        assert set(followed.values()) == {Combine.ADDITIVE}, followed
    check_rounds(warehouse, OF_INTERVALS)


def test_a_sum_of_intervals_that_is_too_large_is_an_error_as_in_spark(engine: sw.Engine) -> None:
    table = engine.create_table("t", "k INT, t INTERVAL DAY TO SECOND")
    most = timedelta(days=60_000_000)
    table.insert([(1, most), (2, timedelta(1))])
    view = engine.create_view("v", "SELECT sum(t) AS s, avg(t) AS a FROM t")
    before = view.result().collect()
    table.insert([(3, most)])
    with pytest.raises(Exception, match="OVERFLOW"):
        table.snapshot().selectExpr("sum(t)").collect()
    with pytest.raises(sw.SlackwaterError):
        view.refresh()
    assert view.result().collect() == before
    table.delete([(3, most)])
    view.refresh()
    assert view.result().collect() == before
    assert view.verify()


def test_ties_of_max_by_have_one_answer(engine: sw.Engine) -> None:
    """Among rows with the largest order the largest value wins, in the view and in its proof."""
    table = engine.create_table("t", SCHEMA)
    table.insert([row(1, "a", 5, 1), row(9, "a", 5, 1), row(4, "a", 5, 1), row(7, "a", None, 1)])
    view = engine.create_view("v", "SELECT max_by(id, o) AS most, min_by(id, o) AS least FROM t")
    assert tuple(view.result().collect()[0]) == (9, 1)
    table.delete([row(9, "a", 5, 1)])
    view.refresh()
    assert tuple(view.result().collect()[0]) == (4, 1)
    assert view.verify()


def test_lists_are_sorted(engine: sw.Engine) -> None:
    table = engine.create_table("t", SCHEMA)
    table.insert([row(n, "ba"[n % 2], n, v) for n, v in enumerate([3, 1, 2, None, 2])])
    view = engine.create_view("v", "SELECT collect_list(v) AS l, collect_set(v) AS s, listagg(p, '') AS t FROM t")
    assert [tuple(r) for r in view.result().collect()] == [([1, 2, 2, 3], [1, 2, 3], "aabbb")]
    table.insert([row(8, "c", 1, 0)])
    view.refresh()
    assert [tuple(r) for r in view.result().collect()] == [([0, 1, 2, 2, 3], [0, 1, 2, 3], "aabbbc")]
    assert view.verify()

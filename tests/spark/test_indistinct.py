"""VARIANT and calendar intervals: refused where rows would have to be told apart by them, followed where not."""

from __future__ import annotations

import itertools

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.algebra.nodes import Opaque
from slackwater.settings import pinned_settings

_NAMES = itertools.count(1)

READ = "variant_get(v, '$.a', 'int')"


@pytest.fixture(scope="module")
def variants(warehouse: sw.Engine, spark: SparkSession) -> sw.Table:
    """A table with a VARIANT, and with one inside of a struct."""
    table = warehouse.create_table("t", "id INT, g STRING, v VARIANT, s STRUCT<variant: INT, w: VARIANT>", key=["id"])
    table.insert(rows(spark, "range(1, 9)"))
    return table


def rows(spark: SparkSession, ids: str, plus: int = 0) -> object:
    made = f"parse_json('{{\"a\": ' || (id + {plus}) || '}}')"
    return spark.sql(
        f"SELECT CAST(id AS INT) AS id, substr('abc', id % 3 + 1, 1) AS g, {made} AS v,"
        f" named_struct('variant', CAST(id AS INT), 'w', {made}) AS s FROM {ids}"
    )


@pytest.mark.parametrize(
    ("query", "advice"),
    [
        ("SELECT id, v FROM t", "to_json"),
        ("SELECT id, s FROM t", "to_json"),
        ("SELECT id, array(v) AS a FROM t", "to_json"),
        ("SELECT id, map('a', array(v)) AS a FROM t", "to_json"),
        ("SELECT id, parse_json(g) AS j FROM t", "to_json"),
        ("SELECT id, arrays_zip(array(v)) AS z FROM t", "to_json"),
        ("SELECT id, make_interval(0, id) AS i FROM t", "make_dt_interval"),
        ("SELECT id, struct(make_interval(0, id)) AS i FROM t", "make_dt_interval"),
    ],
)
@pytest.mark.usefixtures("variants")
def test_results_have_no_values_that_cannot_be_told_apart(warehouse: sw.Engine, query: str, advice: str) -> None:
    with pytest.raises(sw.SlackwaterError) as caught:
        warehouse.capture(query, pinned_settings(warehouse.spark))
    assert caught.value.code == "QUERY_UNSUPPORTED"
    assert advice in caught.value.advice


FOLLOWED = (
    f"SELECT id, to_json(v) AS j, s.variant, {READ} AS a FROM t WHERE {READ} > 2",
    f"SELECT g, sum({READ}) AS s, count(*) AS n FROM t GROUP BY g",
    f"SELECT g, max({READ}) AS m, collect_list(to_json(s.w)) AS l FROM t GROUP BY g",
    f"SELECT {READ} % 2 AS odd, count(DISTINCT g) AS n FROM t GROUP BY ALL",
    "SELECT x.id, x.j, y.g FROM (SELECT id, g, to_json(v) AS j FROM t) x JOIN t y ON x.g = y.g",
    "SELECT id, g, CAST(make_interval(0, id) AS STRING) AS i FROM t",
)
RECOMPUTED = (
    f"SELECT x.id, to_json(x.v) AS j, y.g FROM t x JOIN t y ON x.g = y.g AND {READ.replace('v,', 'y.v,')} > 3",
    "SELECT to_json(v) AS j, n FROM (SELECT v, count(*) OVER (PARTITION BY g) AS n FROM t)",
)


def test_views_over_variants_follow_every_change(warehouse: sw.Engine, variants: sw.Table, spark: SparkSession) -> None:
    views = {query: warehouse.create_view(f"v{next(_NAMES)}", query, strategy="incremental")
             for query in FOLLOWED + RECOMPUTED}  # fmt: skip
    assert [isinstance(v.plan, Opaque) for v in views.values()] == [query in RECOMPUTED for query in views]
    for change in (
        lambda: variants.delete_keys([(2,), (3,)]),
        lambda: variants.upsert(rows(spark, "range(4, 7)", plus=10)),
        lambda: variants.insert(rows(spark, "range(20, 24)")),
    ):
        change()
        for query, view in views.items():
            report = view.refresh()
            assert report.mode == ("recompute" if query in RECOMPUTED else "incremental"), f"{query}\n{report}"
            assert view.verify(), f"{query}\n{view.verify()}"
            assert view.result().count() > 0

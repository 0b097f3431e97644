"""Views that read views: changes flow in order, at one version of the tables."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.execution import compaction
from tests.spark.settling import settle, sorted_rows

REGIONS = """SELECT region, sum(total) AS total, max(total) AS most FROM totals JOIN customers ON cust = name
    GROUP BY region"""


@pytest.fixture
def graph(engine: sw.Engine) -> sw.Engine:
    """orders → totals → regions (with customers) → best."""
    engine.create_table("orders", "o_id BIGINT, cust STRING, amount INT", key=["o_id"])
    engine.create_table("customers", "name STRING, region STRING")
    engine.table("orders").insert([(i, "abcd"[i % 4], i) for i in range(80)])
    engine.table("customers").insert([("a", "north"), ("b", "south"), ("c", "south"), ("d", "west")])
    # Of so few groups most change at once, and AUTO would recompute.
    create = "CREATE MATERIALIZED VIEW {} REFRESH POLICY INCREMENTAL AS {}"
    engine.sql(create.format("totals", "SELECT cust, sum(amount) AS total FROM orders GROUP BY cust"))
    engine.sql(create.format("regions", REGIONS))
    engine.sql(create.format("best", "SELECT region, total FROM regions ORDER BY total DESC LIMIT 1"))
    return engine


def in_order(engine: sw.Engine) -> list[int]:
    return [engine.view(name).version for name in ("totals", "regions", "best")]


def test_changes_flow_through_the_graph(graph: sw.Engine) -> None:
    best, regions, orders = graph.view("best"), graph.view("regions"), graph.table("orders")
    assert (regions.inputs, regions.tables, best.tables) == (
        ("customers", "totals"),
        ("customers", "orders"),
        ("customers", "orders"),
    )
    assert sorted_rows(best) == [("south", 1580)]
    orders.insert([(100, "d", 2000)])
    orders.delete([(1, "b", 1)])
    assert best.status()["pending_rows"] == 2
    settle(best, "incremental")
    assert in_order(graph) == sorted(in_order(graph)), "each after those that it reads"
    assert best.status()["pending_rows"] == graph.view("totals").status()["pending_rows"] == 0
    assert sorted_rows(best) == [("west", 2820)]
    # A key's total falls, so that `max` must look again; a customer moves.
    orders.upsert([(100, "d", 1), (2, "c", 50)])
    graph.table("customers").apply([
        {"name": "d", "region": "west", "_weight": -1},
        {"name": "d", "region": "north", "_weight": 1},
    ])  # fmt: skip
    assert [r.mode for r in graph.refresh()] == ["incremental"] * 3
    for view in graph.views():
        check = view.verify()
        assert check, str(check)
    assert [r.mode for r in graph.refresh()] == ["none"] * 3
    expected = graph.spark.createDataFrame(orders.snapshot().collect()).groupBy("cust").sum("amount").collect()
    assert sorted_rows(graph.view("totals")) == sorted(tuple(r) for r in expected)


@pytest.mark.slow
def test_a_view_may_lag_behind_the_one_that_it_reads(graph: sw.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STATE_SEGMENTS", "RESULT_SEGMENTS", "TABLE_SEGMENTS"):
        monkeypatch.setattr(compaction, name, 2)
    monkeypatch.setattr(compaction, "KEEP_VERSIONS", 0)
    totals, regions, orders = graph.view("totals"), graph.view("regions"), graph.table("orders")
    before = sorted_rows(regions)
    for i in range(6):
        orders.insert([(200 + i, "abcd"[i % 4], i)])
        settle(totals, "incremental")
    assert sorted_rows(regions) == before
    assert regions.verify(), "a result is compared at its own version"
    assert len(graph.catalog.segments(f"v{totals.id}")) > 2, "single changes are kept for those that lag"
    settle(regions, "incremental")
    orders.insert([(300, "a", 1)])
    settle(graph.view("best"), "incremental")
    settle(totals, "none")
    orders.insert([(301, "a", 1)])
    settle(totals, "incremental")
    settle(graph.view("best"), "incremental")
    assert any(s.merged for s in graph.catalog.segments(f"v{totals.id}")), "what all have read is merged"


def test_what_is_read_cannot_be_taken_away(graph: sw.Engine) -> None:
    version = graph.catalog.version()
    for statement, code, named in (
        ("DROP MATERIALIZED VIEW totals", "VIEW_IN_USE", "'regions'"),
        ("ALTER MATERIALIZED VIEW totals RENAME TO sums", "VIEW_IN_USE", "'regions'"),
        ("CREATE OR REPLACE MATERIALIZED VIEW regions DISCARD STATES AS SELECT 1 AS region, 2L AS total FROM orders",
         "VIEW_IN_USE", "'best'"),
        ("CREATE OR REPLACE MATERIALIZED VIEW totals AS SELECT region AS cust, total FROM best", "VIEW_CYCLE",
         "totals → best → regions → totals"),
        ("CREATE OR REPLACE MATERIALIZED VIEW best AS SELECT * FROM BEST", "VIEW_CYCLE", "best → best"),
    ):  # fmt: skip
        with pytest.raises(sw.SlackwaterError) as caught:
            graph.sql(statement)
        assert caught.value.code == code
        assert named in caught.value.message
        if statement.startswith("CREATE"):
            assert f"would be refused: [{code}]" in str(graph.sql(f"EXPLAIN {statement}"))
    with pytest.raises(sw.SlackwaterError, match="read by totals, regions, best"):
        graph.drop_table("orders")
    with pytest.raises(sw.SlackwaterError, match="cannot be renamed: it is read by totals, regions, best"):
        graph.table("orders").rename("sales")
    assert graph.catalog.version() == version
    done = graph.sql(
        "CREATE OR REPLACE MATERIALIZED VIEW totals AS SELECT cust, sum(amount) AS total FROM orders GROUP BY cust"
    )
    assert done.outcome == "altered", "the query is the same, the policy is AUTO now"  # type: ignore[union-attr]
    for name in ("best", "regions", "totals"):
        graph.view(name).drop()
    graph.drop_table("orders")


@pytest.mark.slow
def test_frames_and_recomputed_queries_read_views_too(graph: sw.Engine) -> None:
    totals = graph.view("totals")
    frame = graph.create_view("frame", totals.relation().where("total > 790"))
    function = graph.create_view("function", lambda t: t["totals"].groupBy().sum("total"))
    recomputed = graph.create_view("recomputed", "SELECT cust, percentile(total, 0.5) AS p FROM totals GROUP BY cust")
    opaque = graph.create_view(
        "opaque",
        "SELECT c.name, size(arrays_zip(array(t.total))) AS x FROM totals t JOIN customers c ON t.cust = c.name",
    )
    assert sorted_rows(frame) == [("c", 800), ("d", 820)]
    graph.table("orders").insert([(100, "a", 1000), (101, "z", 7)])
    graph.table("orders").delete_keys([{"o_id": 79}])
    for view in (frame, function, recomputed, opaque):
        view.refresh()
        check = view.verify()
        assert check, f"{view}: {check}"
    assert sorted_rows(frame) == [("a", 1760), ("c", 800)]


def test_a_first_result_brings_those_below_along(graph: sw.Engine) -> None:
    below = graph.create_view("below", "SELECT cust, amount FROM orders WHERE amount > 70", populate=False)
    above = graph.create_view("above", "SELECT count(*) AS n FROM below")
    assert below.version
    assert sorted_rows(above) == [(9,)]


@pytest.mark.slow
def test_replacing_over_a_view_that_has_not_caught_up(graph: sw.Engine) -> None:
    graph.view("best").drop()
    graph.table("orders").insert([(100, "a", 10_000)])
    view = graph.create_view("regions", f"{REGIONS} HAVING sum(total) > 1000", replace=True, discard_states=True)
    assert view.replacement is not None
    assert not view.replacement.reused, "its states were behind the view that it reads"
    assert view.verify()
    assert ("north", 10_760, 10_760) in sorted_rows(view)
    view = graph.create_view("regions", f"{REGIONS} HAVING sum(total) > 2000", replace=True, strategy="incremental")
    assert view.replacement is not None
    assert view.replacement.reused
    graph.table("orders").insert([(101, "d", 10_000)])
    settle(view, "incremental")


@pytest.mark.slow
def test_a_graph_survives_a_restart(graph: sw.Engine, spark: SparkSession) -> None:
    graph.close()
    with sw.Engine(graph.path, spark=spark) as again:
        again.table("orders").insert([(100, "d", 2000)])
        settle(again.view("best"), "incremental")
        assert sorted_rows(again.view("best")) == [("west", 2820)]

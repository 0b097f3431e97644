"""Equal states of several views are kept once, and only while they are equal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from tests.spark.settling import session_with, settle
from tests.spark.storage import leaked, occupied, stored

pytestmark = pytest.mark.spark

JOIN = "FROM lines l JOIN orders o ON l.oid = o.oid WHERE o.state = 'open' AND l.price > 30"
BY_ORDER = f"SELECT o.cid, sum(l.price) AS total {JOIN} GROUP BY o.cid"
MOST = f"SELECT o.cid, max(l.price) AS most {JOIN} GROUP BY o.cid"


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession) -> Iterator[sw.Engine]:
    with sw.Engine(tmp_path / "wh", spark=spark, save_states=False) as engine:
        lines = engine.create_table("lines", "oid INT, price INT")
        orders = engine.create_table("orders", "oid INT, cid INT, state STRING", key=["oid"])
        lines.insert([(n % 50, n % 40) for n in range(400)])
        orders.insert([(n, n % 7, "open" if n % 3 else "closed") for n in range(50)])
        yield engine


def tide(engine: sw.Engine, first: int) -> None:
    engine.table("lines").insert([(n % 50, 31 + n % 9) for n in range(first, first + 4)])
    engine.table("orders").upsert([(first % 50, 3, "open"), (100 + first, 4, "open")])


def shared(one: sw.View, two: sw.View) -> set[str]:
    """The nodes of which both have a state, in the very same rows."""
    common = one.states.keys() & two.states.keys()
    return {key for key in common if one.states[key].rdd_ids() == two.states[key].rdd_ids()}


@pytest.mark.slow
@pytest.mark.usefixtures("eager_compaction")
def test_equal_states_are_kept_once(shop: sw.Engine) -> None:
    before = stored(shop.spark)
    total, most = shop.create_view("total", BY_ORDER), shop.create_view("most", MOST)
    common = total.states.keys() & most.states.keys()
    assert common, "both keep the filtered orders"
    assert shared(total, most) == common
    assert shop.state_bytes() < total.state_bytes() + most.state_bytes()
    for turn in range(5):
        tide(shop, 10 * turn)
        settle(total)
        assert not shared(total, most), "one has moved on: they are no longer the same rows"
        assert not leaked(shop, before)
        settle(most)
        assert not leaked(shop, before), "doubles are gone"
        assert shared(total, most) == total.states.keys() & most.states.keys() != set()
    assert occupied(shop) == pytest.approx(shop.state_bytes(), rel=0.05), "compaction saves a little"
    total.drop()
    for turn in range(5, 7):
        tide(shop, 10 * turn)
        settle(most)
    assert not leaked(shop, before)
    most.drop()
    assert not leaked(shop, before)
    assert not occupied(shop)


def test_a_state_that_is_behind_is_not_taken(shop: sw.Engine) -> None:
    total = shop.create_view("total", BY_ORDER)
    tide(shop, 1)
    most = shop.create_view("most", MOST)
    assert not shared(total, most)
    assert most.verify()
    settle(total)
    tide(shop, 2)
    settle(most)
    settle(total)
    assert shared(total, most)


def test_other_settings_are_other_states(shop: sw.Engine, spark: SparkSession) -> None:
    total = shop.create_view("total", BY_ORDER)
    with session_with(spark, ansi__enabled="false"):
        most = shop.create_view("most", MOST)
    assert total.states.keys() & most.states.keys()
    assert not shared(total, most)


def test_a_failed_first_refresh_leaves_the_rows_to_their_owner(shop: sw.Engine) -> None:
    total = shop.create_view("total", BY_ORDER)
    with pytest.raises(sw.SlackwaterError, match="SPARK_FAILED"):
        shop.create_view("bad", f"SELECT o.cid, max(1 / (l.price - 35)) AS x {JOIN} GROUP BY o.cid")
    tide(shop, 3)
    settle(total)


def test_other_code_is_another_state(shop: sw.Engine) -> None:
    query = "SELECT o.cid, {} AS x FROM lines l JOIN orders o ON l.oid = o.oid WHERE dear(l.price) GROUP BY o.cid"
    shop.register_udf("dear", lambda price: price > 35, "boolean", deterministic=True)
    total = shop.create_view("total", query.format("sum(l.price)"))
    shop.register_udf("dear", lambda price: price > 36, "boolean", deterministic=True)
    most = shop.create_view("most", query.format("max(l.price)"))
    assert total.states.keys() & most.states.keys()
    assert not shared(total, most)
    assert most.verify()
    tide(shop, 4)
    settle(total, "recompute")
    settle(most)
    assert shared(total, most)

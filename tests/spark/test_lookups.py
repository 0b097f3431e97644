"""Joins that look up a key, on Spark: rows that come before their match wait for it, and nothing else is read again."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.algebra.lookups import LookupJoin, Waiting
from slackwater.algebra.nodes import Join
from slackwater.delta.environment import Purpose
from slackwater.execution import compaction, settling
from slackwater.planning import plain_rules

pytestmark = pytest.mark.spark

QUERY = """SELECT c.region, count(*) AS n, sum(l.price) AS total FROM lines l
    JOIN orders o ON l.oid = o.oid JOIN customers c ON o.cid = c.cid
    WHERE o.open AND c.region <> 'north' GROUP BY c.region"""


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_rules, "MANY", 0)


@pytest.fixture
def sales(tmp_path: Path, spark: SparkSession) -> Iterator[sw.Engine]:
    with sw.Engine(tmp_path / "wh", spark=spark) as engine:
        fill(engine)
        yield engine


def fill(engine: sw.Engine) -> None:
    lines = engine.create_table("lines", "oid INT, price INT")
    orders = engine.create_table("orders", "oid INT, cid INT, open BOOLEAN", key=["oid"])
    customers = engine.create_table("customers", "cid INT, region STRING", key=["cid"])
    lines.insert([(n % 70, n % 11) for n in range(300)])  # ten orders are not there yet
    orders.insert([(n, n % 22, n % 3 > 0) for n in range(60)])  # nor are two customers
    customers.insert([(n, ("north", "south", "east")[n % 3]) for n in range(20)])


def waiting(view: sw.View) -> dict[str, Waiting]:
    found = {key: view.state_node(key) for key in view.states}
    return {key: node for key, node in found.items() if isinstance(node, Waiting)}


def held(view: sw.View) -> int:
    return sum(view.states[key].scan(view.engine.spark).count() for key in waiting(view))


def test_what_comes_late_finds_what_waits_for_it(sales: sw.Engine) -> None:
    view = sales.create_view("totals", QUERY)
    assert sum(isinstance(x, LookupJoin) for x in view.plan.walk()) == 2
    assert len(waiting(view)) == 2
    assert 0 < held(view) < 100, "most lines have their order"
    assert "Waiting `oid" in str(view.explain())
    for turn in range(3):
        sales.table("lines").insert([(60 + turn, 5), (turn, 7), (80, 1), (None, 3)])
        sales.table("orders").insert([(60 + turn, 20, True), (80 + turn, 1, False)])
        sales.table("customers").insert([(20 + turn, "west")])
        report = view.refresh()
        assert report.mode == "incremental", report.reason
        assert view.last_program is not None
        assert not {at for table, at in view.last_program.scans if table == "lines"} & {"old", "new"}
        assert view.verify()
    sales.table("customers").insert([(40, "west")])  # only the side that is looked up
    assert view.refresh().mode == "incremental"
    assert len(waiting(view)) == 2
    assert view.verify()


@pytest.mark.slow
def test_deletes_where_matches_come_from_start_anew(sales: sw.Engine) -> None:
    view = sales.create_view("totals", QUERY)
    sales.table("orders").delete_keys([(0,), (3,)])  # both are closed: the result does not change
    report = view.refresh()
    assert report.mode == "incremental", report.reason
    assert view.verify()
    sales.table("orders").insert([(0, 1, True), (3, 1, True)])
    report = view.refresh()
    assert report.rows_inserted > 0
    assert view.verify()
    for turn in range(3):
        sales.table("customers").upsert([(turn, "north" if turn % 2 else "south")])
        sales.table("lines").delete([(turn + 1, turn + 1)])
        sales.table("lines").insert([(60 + turn, 9)])
        view.refresh()
        assert view.verify()
        sales.table("orders").insert([(60 + turn, 4, True)])
        view.refresh()
        assert view.verify()


def test_a_join_that_is_not_kept_is_not_made_again_for_a_delete(sales: sw.Engine) -> None:
    view = sales.create_view("twice", QUERIES["twice"])
    assert any(isinstance(x, Join) for node in waiting(view).values() for x in node.rows.walk())
    sales.table("customers").upsert([(3, "elsewhere")])
    report = view.refresh()
    assert report.mode == "recompute"
    assert "deleted from customers" in report.reason
    assert view.verify()


def test_what_waits_is_saved_and_found_again(tmp_path: Path, spark: SparkSession) -> None:
    with sw.Engine(tmp_path / "wh", spark=spark) as engine:
        fill(engine)
        engine.create_view("totals", QUERY)
    with sw.Engine(tmp_path / "wh", spark=spark) as engine:
        view = engine.view("totals")
        engine.table("orders").insert([(65, 4, True)])
        report = view.refresh()
        assert report.mode == "incremental", report.reason
        assert len(waiting(view)) == 2
        assert view.verify()


def test_what_found_its_match_goes_when_segments_are_merged(sales: sw.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "STATE_SEGMENTS", 3)
    monkeypatch.setattr(settling, "RIPE", 1e9)  # but for what waited from the first
    view = sales.create_view("totals", QUERY)
    before, most = held(view), 0
    for turn in range(6):
        sales.table("orders").insert([(100 + turn, 3, True), (200 + turn, 30, True)])  # there is no customer 30 yet
        sales.table("lines").insert([(oid + turn, 1) for oid in (100, 200, 300) for _ in range(20)])
        assert view.refresh().mode == "incremental"
        most = max(most, held(view))
    added = {key: state.segments[1:] for key, state in view.states.items() if key in waiting(view)}
    assert most > before + 100
    # Lines of 100… are settled; those of 200… wait behind their order, and those of 300… for one.
    assert held(view) < before + 6 * 41 + 3 * 21
    assert all(len(segments) <= 3 for segments in added.values())
    assert view.verify()
    sales.table("customers").insert([(30, "west")])
    sales.table("orders").insert([(300 + turn, 3, True) for turn in range(6)])
    report = view.refresh()
    assert report.mode == "incremental", report.reason
    assert view.verify()


def test_what_waited_from_the_first_goes_when_most_matches_came(
    sales: sw.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "STATE_SEGMENTS", 3)
    sales.table("lines").insert([(n, 2) for n in range(500, 560) for _ in range(5)])
    view = sales.create_view("totals", QUERY)
    before = held(view)
    for turn in range(6):
        late = [500 + 10 * turn + i for i in range(10)]
        sales.table("orders").insert([(n, 3, n % 3 > 0) for n in late])
        sales.table("lines").insert([(late[0], 1), (900, 1)])
        report = view.refresh()
        assert report.mode == "incremental", report.reason
    assert held(view) < before - 100
    assert view.verify()
    sales.table("orders").insert([(900, 4, True), (65, 4, True)])  # what waits still is there
    sales.table("orders").delete_keys([(501,)])
    sales.table("orders").insert([(501, 4, True)])
    view.refresh()
    assert view.verify()


@pytest.mark.slow
def test_what_has_piled_up_is_settled(sales: sw.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "LOOSE", -(10**9))
    monkeypatch.setattr(compaction, "STATE_SEGMENTS", 6)
    monkeypatch.setattr(compaction, "NAMED", -1)
    view = sales.create_view("totals", QUERY)
    before, most, least = held(view), 0, 10**9
    for turn in range(compaction.STATE_SEGMENTS + 4):
        sales.table("lines").insert([(n, 1) for n in range(0, 70, 7)])
        sales.table("lines").delete([(turn, turn % 11)])
        assert view.refresh().mode == "incremental"
        now = held(view)
        most = max(most, now)
        least = now if turn > compaction.STATE_SEGMENTS else least
    assert not view.grown
    assert most > before + 50
    assert least < most - 50, "lines whose order is there do not wait any more"
    assert view.verify()
    sales.table("orders").insert([(63, 4, True), (69, 4, True)])
    view.refresh()
    assert view.verify()


def test_a_tight_budget_settles_sooner(sales: sw.Engine) -> None:
    view = sales.create_view("totals", QUERY)
    sales.budget = 4 * view.state_bytes()
    sizes = []
    for _ in range(5):
        sales.table("lines").insert([(n % 60, 1) for n in range(100)])
        assert view.refresh().mode == "incremental"
        sizes.append(held(view))
        assert view.state_bytes() <= sales.budget
        assert view.last_program is not None
        assert not [step for step in view.last_program.steps if step.purpose is Purpose.REPLACE]
    assert len(waiting(view)) == 2
    assert min(sizes[1:]) < max(sizes) - 80, "what found its match at once does not stay"
    assert not view.grown
    assert view.verify()
    sales.table("lines").delete([(1, 1)])  # a delete may be of a line that was settled, so these cannot be looked up
    for _ in range(3):
        sales.table("lines").insert([(n % 60, 1) for n in range(100)])
        view.refresh()
        assert view.verify()


def test_what_waits_behind_is_found_in_the_tables(sales: sw.Engine) -> None:
    """Lines of an order that is there wait on where its customer is not, whether or not such orders are kept."""
    view = sales.create_view("totals", QUERY)
    sales.table("lines").insert([(60 + n, 5) for n in range(4)] + [(1, 7), (None, 3)])
    sales.table("orders").insert([(60, 20, True), (61, 1, True), (62, 20, False)])  # a customer who is not there yet
    view.refresh()
    spark = sales.sessions.get("delta", view.settings)
    (lines,) = [key for key, node in waiting(view).items() if node.path.lookups]
    (behind,) = set(waiting(view)) - {lines}

    def left() -> list[tuple[object, ...]]:
        found = settling.still_waiting(view, view.states[lines], spark)
        assert found is not None
        return sorted(tuple(row) for row in found.collect())

    kept = left()
    assert {(60, 5), (61, 5), (63, 5)} <= set(kept), "all orders that came are held as waiting"
    assert not {(62, 5), (1, 7)} & set(kept), "the order is there, wherever the filter lets it"
    del view.states[behind]
    assert left() == [row for row in kept if row[0] != 61], "in the table its customer is found"


def test_expected_deletes_keep_the_rows_themselves(sales: sw.Engine) -> None:
    view = sales.create_view("totals", QUERY)
    coming = {t: sw.TableForecast(t, 10, 0, 20, deletes=0.5) for t in view.tables}
    kept = view.what_if(forecast=sw.Forecast(tuple(coming.values()), "fixed", 0.0, 60.0)).choices
    assert not [c for c in kept if c.keep and c.label.startswith("Waiting")]
    assert [c for c in view.choices if c.keep and c.label.startswith("Waiting")]


def test_other_strategies_have_plans_of_their_own(sales: sw.Engine) -> None:
    sales.create_view("totals", QUERY)
    with pytest.raises(sw.SlackwaterError, match="the plan was made for another strategy"):
        sales.create_view("totals", QUERY, strategy="incremental", replace=True)
    view = sales.create_view("totals", QUERY, strategy="incremental", replace=True, discard_states=True)
    sales.table("orders").insert([(65, 4, True)])
    assert "another strategy" in view.refresh().reason
    assert not any(isinstance(x, LookupJoin) for x in view.plan.walk())
    assert view.verify()


QUERIES = {
    "chain": QUERY,
    "rows": """SELECT l.oid, l.price, c.region FROM lines l JOIN orders o ON l.oid = o.oid
        JOIN customers c ON c.cid = o.cid AND l.price <> c.cid""",
    "twice": """SELECT a.region AS one, b.region AS two, count(*) AS n FROM orders o JOIN customers a ON o.cid = a.cid
        JOIN customers b ON o.oid = b.cid GROUP BY a.region, b.region""",
    "top": """SELECT o.oid, max(l.price) AS most FROM lines l JOIN orders o ON l.oid = o.oid WHERE o.open
        GROUP BY o.oid ORDER BY most DESC LIMIT 5""",
    "outer": """SELECT c.cid, c.region, s.n FROM customers c LEFT JOIN
        (SELECT o.cid, count(*) AS n FROM lines l JOIN orders o ON l.oid = o.oid GROUP BY o.cid) s ON s.cid = c.cid""",
    "self": "SELECT o.oid, p.oid AS other FROM orders o JOIN orders p ON o.cid = p.oid WHERE p.open",
}


def change(engine: sw.Engine, rng: random.Random, deletes: bool) -> None:
    """Rows come and go in some of the tables; parents often later than what names them."""
    for name, width in (("orders", 70), ("customers", 30)):
        present = {row[0] for row in engine.table(name).snapshot().collect()}
        absent = [k for k in range(width) if k not in present]
        fresh = rng.sample(absent, min(len(absent), rng.randint(0, 4)))
        changed = rng.sample(sorted(present), rng.randint(0, 2)) if deletes and present else []
        made = [
            (k, rng.randrange(30), rng.random() < 0.6) if name == "orders" else (k, rng.choice(["north", "west"]))
            for k in (*fresh, *changed)
        ]
        if made and rng.random() < 0.7:
            engine.table(name).upsert(made)
        gone = rng.sample(sorted(present - set(changed)), 1) if deletes and len(present) > 3 else []
        if gone and rng.random() < 0.4:
            engine.table(name).delete_keys([(k,) for k in gone])
    lines = [tuple(row) for row in engine.table("lines").snapshot().collect()]
    if rng.random() < 0.8:
        engine.table("lines").insert([(rng.choice([None, *range(75)]), rng.randrange(9)) for _ in range(5)])
    if lines and rng.random() < 0.5:
        engine.table("lines").delete(rng.sample(lines, 2))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 12))
def test_random_changes(sales: sw.Engine, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """All kinds of queries, both strategies that look up keys, phases with deletes and phases without."""
    rng = random.Random(seed)
    monkeypatch.setattr(compaction, "LOOSE", rng.choice([-(10**9), 0]))
    monkeypatch.setattr(compaction, "STATE_SEGMENTS", rng.choice([2, 12]))
    monkeypatch.setattr(compaction, "NAMED", rng.choice([-1, 10**6]))
    monkeypatch.setattr(compaction, "TIGHT", rng.choice([-1.0, 0.8]))
    monkeypatch.setattr(compaction, "LITTLE", 0.0)
    chosen = rng.sample(sorted(QUERIES), 3)
    views = [sales.create_view(name, QUERIES[name], strategy=rng.choice(["auto", "plain"])) for name in chosen]
    for turn in range(8):
        change(sales, rng, deletes=turn % 4 == 3 or rng.random() < 0.2)
        for view in views:
            report = view.refresh()
            assert view.verify(), f"seed {seed}, turn {turn}, {view.name}: {report.reason}"

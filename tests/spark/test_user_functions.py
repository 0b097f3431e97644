"""User-defined functions: linear over rows, redone or merged as aggregates, and refused where undeclared."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from slackwater.cli import cli
from tests.spark.settling import fresh, rows, settle

pytestmark = pytest.mark.spark

BASE = [(n, "abc"[n % 3], n % 5 if n % 7 else None, n / 4) for n in range(40)]

OPAQUE = "SELECT id, own(v) + size(arrays_zip(array(v))) AS w FROM t"
"""A query that is recomputed: it calls a lenient function that has no delta yet."""


def plus(step: int) -> Callable[[int | None], int | None]:
    """A plain Python function; made here, so that workers get its code and not its place."""

    def added(x: int | None) -> int | None:
        return None if x is None or x == 3 else x + step

    return added


def spread() -> Callable[[pd.Series], Any]:
    return lambda values: None if values.isna().all() else int(values.max() - values.min())


def mean() -> Callable[[pd.Series], Any]:
    return lambda values: float(values.mean()) if len(values) > 2 else None


def known_sum() -> Callable[[pd.Series], Any]:
    return lambda values: int(values.dropna().sum())


@pytest.fixture(scope="module")
def functions(warehouse: sw.Engine) -> sw.Engine:
    """A warehouse in which functions of every kind are declared."""

    def halved(values: pd.Series) -> pd.Series:
        return values / 2

    def doubled(values: pa.Array) -> pa.Array:
        return pc.multiply(values.cast(pa.int64()), 2)

    warehouse.register_udf("plus_one", plus(1), "int", deterministic=True)
    warehouse.register_udf("halved", F.pandas_udf(halved, "double"), deterministic=True)
    warehouse.register_udf("doubled", F.arrow_udf(doubled, "long"), deterministic=True)
    warehouse.register_udaf("spread", spread(), "int", deterministic=True)
    warehouse.register_udaf("mean_of_some", mean(), "double", deterministic=True)
    return warehouse


@pytest.fixture
def table(functions: sw.Engine) -> sw.Table:
    made = functions.create_table(fresh("t"), "id INT, k STRING, v INT, d DOUBLE", key=["id"])
    made.insert(BASE)
    return made


def changes(table: sw.Table) -> Iterator[str]:
    """Inserts, deletes that empty a group, updates, all of them at once, and nothing that matters."""
    table.insert([(100, "a", 4, 1.5), (101, "new", None, 0.5), (102, None, 1, 9.0)])
    yield "inserts"
    table.delete_keys([(101,), (0,), (1,)])
    yield "deletes"
    table.upsert([(4, "b", 2, 8.0), (7, "c", None, -1.0), (200, "late", 3, 1.0)])
    yield "updates"
    table.apply([
        {"id": 300, "k": "a", "v": 99, "d": 0.0, "_change_type": "insert"},
        {"id": 200, "k": "late", "v": 3, "d": 1.0, "_change_type": "delete"},
    ])  # fmt: skip
    yield "both"


def steps(table: sw.Table, every: bool) -> Iterator[str]:
    """The changes one by one, or the first and then all the others at once."""
    for number, change in enumerate(changes(table)):
        if every or number in (0, 3):
            yield change


OF_ROWS = {
    "everywhere": """SELECT id, plus_one(plus_one(v)) AS w, halved(d) AS h, doubled(v) AS z FROM t
    WHERE plus_one(v) > 1 OR halved(d) < 1 OR plus_one(v) IS NULL""",
    "keys": "SELECT plus_one(v) AS g, count(*) AS n, sum(doubled(v)) AS s FROM t GROUP BY plus_one(v)",
    "joins": "SELECT l.id, r.k FROM t l JOIN t r ON plus_one(l.v) = r.v AND doubled(l.id) < plus_one(r.id)",
    "outer": "SELECT l.id, r.id AS other FROM t l LEFT JOIN t r ON doubled(l.v) = r.id",
    "subquery": "SELECT id FROM t WHERE plus_one(v) = (SELECT max(plus_one(v)) FROM t)",
}
OF_GROUPS = {
    "exact": "SELECT k, spread(v) AS s FROM t GROUP BY k",
    "floating": "SELECT k, mean_of_some(d) AS m, spread(v) AS s FROM t GROUP BY k",
    "above": "SELECT s, count(*) AS n FROM (SELECT k, spread(v) AS s FROM t GROUP BY k) GROUP BY s",
    "having": "SELECT plus_one(v) AS g, spread(id) + 1 AS s FROM t GROUP BY plus_one(v) HAVING spread(id) > 1",
    "all": "SELECT spread(v) AS s FROM t WHERE k <> 'nobody'",
    "window": "SELECT id, spread(v) OVER (PARTITION BY k) AS s FROM t",
    "rollup": "SELECT k, v, spread(id) AS s FROM t GROUP BY ROLLUP (k, v)",
}
FEW_OR_ALL = pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])


@FEW_OR_ALL
def test_functions_of_rows_are_linear(functions: sw.Engine, table: sw.Table, every: bool) -> None:
    views = {}
    for name in OF_ROWS if every else ("everywhere",):
        query = re.sub(r"\bt\b", table.name, OF_ROWS[name])
        assert functions.check(query).incremental, (name, str(functions.check(query)))
        views[name] = functions.create_view(fresh(), query, strategy="incremental")
    for change in steps(table, every):
        for name, view in views.items():
            report = view.refresh()
            assert report.mode == "incremental", (name, change, str(report))
            assert view.verify(), (name, change, str(view.verify()))


@FEW_OR_ALL
def test_aggregates_redo_touched_groups(functions: sw.Engine, table: sw.Table, every: bool) -> None:
    names = OF_GROUPS if every else ("floating", "above")
    queries = {name: re.sub(r"\bt\b", table.name, OF_GROUPS[name]) for name in names}
    views = {name: functions.create_view(fresh(), q, strategy="incremental") for name, q in queries.items()}
    assert "GROUPS_REDONE" in functions.check(queries["above"]).codes
    for change in steps(table, every):
        for name, view in views.items():
            view.refresh()
            assert view.verify(), (name, change, str(view.verify()))
    for name in ("floating", "above"):
        assert views[name].history(limit=1)[0]["mode"] == "incremental", name
    assert any(row[1] is None for row in rows(views["floating"]))  # an answer that is NULL is an answer


def test_a_merge_spares_the_old_rows(functions: sw.Engine, table: sw.Table, tmp_path: Path) -> None:
    seen = str(tmp_path / "seen")

    def total(values: pd.Series) -> int | None:
        with open(seen, "a") as file:
            file.write(f"{len(values)}\n")
        return None if values.isna().all() else int(values.sum())

    def merged(parts: list[int | None]) -> int | None:
        known = [part for part in parts if part is not None]
        return sum(known) if known else None

    def calls() -> list[int]:
        found = [int(line) for line in Path(seen).read_text().split()] if Path(seen).exists() else []
        Path(seen).unlink(missing_ok=True)
        return found

    name = fresh("total")
    functions.register_udaf(name, total, "bigint", deterministic=True, merge=merged)
    query = f"SELECT k, {name}(v) AS s FROM {table.name} GROUP BY k"
    assert "PARTIALS_MERGE" in functions.check(query).codes
    view = functions.create_view(fresh(), query)
    assert sum(calls()) == len(BASE)
    rounds = changes(table)
    next(rounds)
    assert view.refresh().mode == "incremental"
    assert sorted(calls()) == [1, 1, 1]  # three new rows in three groups, and none of the old ones
    assert view.verify()
    for change in rounds:
        calls()
        assert view.refresh().mode == "incremental"
        assert sum(calls()) < len(BASE), change
        assert view.verify(), (change, str(view.verify()))
    table.insert([(n, "a", 1, 0.0) for n in range(400, 405)])
    calls()
    view.refresh()
    assert calls() == [5]
    assert view.verify()


def test_dataframes_call_what_registering_gives(functions: sw.Engine, table: sw.Table) -> None:
    own = functions.register_udf(fresh("own"), plus(10), "int", deterministic=True)
    view = functions.create_view(fresh(), table.relation().select("id", own("v").alias("w")))
    table.insert([(500, "a", 1, 0.0)])
    settle(view)
    assert (500, 11) in rows(view)
    by_name = functions.create_view(fresh(), lambda t: t[table.name].selectExpr("id", f"{own._name}(v) AS w"))
    assert sorted(rows(by_name), key=str) == sorted(rows(view), key=str)


def test_undeclared_functions_are_refused(functions: sw.Engine, table: sw.Table, spark: SparkSession) -> None:
    def refused(query: Any, code: str) -> str:
        with pytest.raises(sw.SlackwaterError) as caught:
            functions.create_view(fresh(), query)
        assert caught.value.code == code, str(caught.value)
        return caught.value.advice

    relation, t = table.relation(), table.name
    somebody = F.udf(plus(1), "int", useArrow=False)
    assert "register_udf" in refused(relation.select(somebody("v").alias("w")), "QUERY_NONDETERMINISTIC")
    # Another function under a declared name is not the declared one.
    again = spark.udf.register("plus_one", plus(2), "int")
    refused(relation.select(again("v").alias("w")), "QUERY_NONDETERMINISTIC")
    assert "register_udf" in refused(f"SELECT nowhere(v) AS w FROM {t}", "QUERY_INVALID")
    refused(f"SELECT k, spread(v) AS s, count(*) AS n FROM {t} GROUP BY k", "QUERY_UNSUPPORTED")
    refused(relation.mapInPandas(lambda frames: frames, relation.schema), "QUERY_NONDETERMINISTIC")


@pytest.mark.parametrize(
    ("name", "function", "returns", "given", "code"),
    [
        ("undeclared", plus(1), "int", {}, "FUNCTION_UNDECLARED"),
        ("maybe", plus(1), "int", {"deterministic": "yes"}, "FUNCTION_UNDECLARED"),
        ("untyped", plus(1), None, {"deterministic": True}, "FUNCTION_INVALID"),
        ("mistyped", plus(1), "number", {"deterministic": True}, "FUNCTION_INVALID"),
        ("upper", plus(1), "int", {"deterministic": True}, "FUNCTION_INVALID"),
        ("a b", plus(1), "int", {"deterministic": True}, "FUNCTION_INVALID"),
        ("slackwater_x", plus(1), "int", {"deterministic": True}, "FUNCTION_INVALID"),
        ("number", 17, "int", {"deterministic": True}, "FUNCTION_INVALID"),
        ("locked", (lambda lock: lambda x: lock)(__import__("threading").Lock()), "int", {"deterministic": True},
         "FUNCTION_INVALID"),
    ],
)  # fmt: skip
def test_what_cannot_be_declared(
    functions: sw.Engine, name: str, function: Any, returns: Any, given: dict[str, Any], code: str
) -> None:
    with pytest.raises(sw.SlackwaterError) as caught:
        functions.register_udf(name, function, returns, **given)
    assert caught.value.code == code, str(caught.value)


def test_a_function_that_pyspark_was_told_to_distrust(functions: sw.Engine) -> None:
    rolled = F.udf(plus(1), "int", useArrow=False).asNondeterministic()
    with pytest.raises(sw.SlackwaterError) as caught:
        functions.register_udf("rolled", rolled, deterministic=True)
    assert caught.value.code == "FUNCTION_UNDECLARED"


def test_a_reopened_warehouse_wants_its_functions_again(tmp_path: Path, spark: SparkSession) -> None:
    place = tmp_path / "wh"
    with sw.Engine(place, spark=spark) as engine:
        engine.register_udf("own", plus(1), "int", deterministic=True)
        table = engine.create_table("t", "id INT, v INT", key=["id"])
        table.insert([(1, 1), (2, 2), (5, None)])
        engine.create_view("below", "SELECT id, own(v) AS w FROM t")
        engine.create_view("above", "SELECT count(w) AS n, sum(w) AS s FROM below")
        engine.create_view("opaque", OPAQUE)
        for name, merge in (("kept", None), ("merged", sum)):
            engine.register_udaf(name, known_sum(), "bigint", deterministic=True, merge=merge)
            engine.create_view(f"by_{name}", f"SELECT id % 2 AS g, {name}(v) AS s FROM t GROUP BY id % 2")
        assert not engine.check(OPAQUE).incremental
    with sw.Engine(place, spark=spark) as engine:
        engine.table("t").insert([(7, 4)])
        version = engine.catalog.version()
        for name in ("below", "above", "opaque"):
            with pytest.raises(sw.SlackwaterError) as caught:
                engine.view(name).refresh()
            assert caught.value.code == "FUNCTION_MISSING"
            assert caught.value.details["functions"] == ["own"]
            assert engine.view("above").result().collect()[0]["s"] == 5  # the last result stands
        with pytest.raises(sw.SlackwaterError) as caught:
            engine.view("below").verify()
        assert caught.value.code == "FUNCTION_MISSING"
        assert engine.catalog.version() == version
        engine.register_udf("own", plus(1), "int", deterministic=True)
        assert settle(engine.view("below"), None).mode == "incremental"
        settle(engine.view("above"), None)
        settle(engine.view("opaque"), None)
        for name, merge in (("kept", None), ("merged", sum)):
            engine.register_udaf(name, known_sum(), "bigint", deterministic=True, merge=merge)
            settle(engine.view(f"by_{name}"))  # from the results that were saved
            assert sorted(rows(engine.view(f"by_{name}"))) == [(0, 2), (1, 5)]
    with sw.Engine(place, spark=spark) as engine:
        engine.register_udf("own", plus(100), "int", deterministic=True)
        below = engine.view("below")
        with pytest.raises(sw.SlackwaterError) as caught:
            below.verify()
        assert caught.value.code == "FUNCTION_CHANGED"
        report = settle(engine.view("above"), None)  # no table has changed, and yet there is something to do
        assert engine.view("above").result().collect()[0]["s"] == 101 + 102 + 104, str(report)
        assert below.history(limit=1)[0]["mode"] == "recompute"
        assert "own" in below.history(limit=1)[0]["reason"]
        assert below.refresh().mode == "none"
        engine.register_udf("own", plus(100), "bigint", deterministic=True)
        with pytest.raises(sw.SlackwaterError) as caught:
            below.refresh()
        assert caught.value.code == "FUNCTION_CHANGED"
        opaque = engine.create_view("opaque", OPAQUE, replace=True)
        assert dict(rows(opaque))[7] == 105
    file = tmp_path / "functions.py"
    file.write_text("def register(engine):\n    engine.register_udf('own', lambda x: x, 'int', deterministic=True)\n")
    called = CliRunner().invoke(cli, ["refresh", str(place), "below"])
    assert called.exit_code == 1
    assert "FUNCTION_MISSING" in called.output
    called = CliRunner().invoke(cli, ["refresh", str(place), "below", "--functions", str(file)])
    assert called.exit_code == 0, called.output
    with sw.Engine(place, spark=spark, read_only=True) as engine:
        assert dict(rows(engine.view("below"))) == {1: 1, 2: 2, 5: None, 7: 4}


def test_replacing_reuses_no_state_of_other_code(engine: sw.Engine) -> None:
    engine.register_udf("own", plus(1), "int", deterministic=True)
    table = engine.create_table("t", "id INT, v INT")
    table.insert([(n, n % 3) for n in range(30)])
    query = "SELECT own(v) AS g, count(*) AS n FROM t GROUP BY own(v)"
    engine.create_view("v", query)
    replacing = f"EXPLAIN CREATE OR REPLACE MATERIALIZED VIEW v AS {query}"
    assert "the query is the same" in str(engine.sql(replacing))
    engine.register_udf("own", plus(5), "int", deterministic=True)
    assert "the query is the same" not in str(engine.sql(replacing))
    replaced = engine.create_view("v", f"SELECT * FROM ({query}) WHERE n > 1", replace=True, discard_states=True)
    assert replaced.replacement is not None
    assert not replaced.replacement.reused
    assert sorted(rows(replaced)) == [(5, 10), (6, 10), (7, 10)]
    engine.register_udf("own", plus(7), "int", deterministic=True)
    same = engine.create_view("v", f"SELECT * FROM ({query}) WHERE n > 1", replace=True, discard_states=True)
    assert sorted(rows(same)) == [(7, 10), (8, 10), (9, 10)]
    assert same.verify()


def test_a_function_that_raises_loses_nothing(engine: sw.Engine) -> None:
    def picky(x: int) -> int:
        if x == 13:
            raise ValueError(f"no {x} here")
        return x

    engine.register_udf("picky", picky, "int", deterministic=True)
    table = engine.create_table("t", "id INT, v INT", key=["id"])
    table.insert([(1, 1), (2, 2)])
    view = engine.create_view("v", "SELECT id, picky(v) AS w FROM t")
    table.insert([(3, 13), (4, 4)])
    with pytest.raises(sw.SlackwaterError) as caught:
        view.refresh()
    assert caught.value.code == "SPARK_FAILED"
    assert "no 13 here" in caught.value.message
    assert sorted(rows(view)) == [(1, 1), (2, 2)]
    with pytest.raises(sw.SlackwaterError):
        engine.create_view("other", "SELECT picky(v) AS w FROM t")
    assert [v.name for v in engine.views()] == ["v"]
    table.delete_keys([(3,)])
    settle(view, None)
    assert sorted(rows(view)) == [(1, 1), (2, 2), (4, 4)]


def test_arrow_aggregates(engine: sw.Engine) -> None:
    def known(values: pa.Array) -> int:
        return len(values.drop_null())

    engine.register_udaf("known", F.arrow_udf(known, "int"), deterministic=True)
    table = engine.create_table("t", "k STRING, v STRING")
    table.insert([("a", "x"), ("a", None), ("b", None)])
    view = engine.create_view("v", "SELECT k, known(v) AS n FROM t GROUP BY k", strategy="incremental")
    table.insert([("b", "y"), ("c", "z")])
    table.delete([("a", "x")])
    settle(view)
    assert sorted(rows(view)) == [("a", 0), ("b", 1), ("c", 1)]

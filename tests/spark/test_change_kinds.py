"""Every kind of change takes every kind of rows; none of them is no change. And keys of floating-point numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.algebra.lookups import LookupJoin
from tests.fuzz.sizes import beyond
from tests.spark.settling import fresh, settle
from tests.spark.tabled import bag, refused

SCHEMA = "id BIGINT, name STRING, x DOUBLE"
TYPES = {
    "id": (pa.int64(), "BIGINT"), "name": (pa.string(), "STRING"), "x": (pa.float64(), "DOUBLE"),
    "_weight": (pa.int64(), "BIGINT"), "_change_type": (pa.string(), "STRING"),
}  # fmt: skip
KINDS: dict[str, Callable[[SparkSession, list[dict[str, Any]]], Any]] = {
    "pandas": lambda _, dicts: pd.DataFrame(dicts),
    "polars": lambda _, dicts: pl.from_arrow(_arrow(dicts)),
    "arrow": lambda _, dicts: _arrow(dicts),
    "record batch": lambda _, dicts: _arrow(dicts).to_batches()[0],
    "spark": lambda spark, dicts: spark.createDataFrame(
        [tuple(row.values()) for row in dicts], ", ".join(f"{name} {TYPES[name][1]}" for name in dicts[0])
    ),
    "dicts": lambda _, dicts: dicts,
    "dicts, other order": lambda _, dicts: [dict(reversed(row.items())) for row in dicts],
    "tuples": lambda _, dicts: [tuple(row.values()) for row in dicts],
}


def _arrow(dicts: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(dicts, pa.schema([(name, TYPES[name][0]) for name in dicts[0]]))


Cells = Sequence[tuple[Any, ...]]
DONE: dict[str, tuple[tuple[str, ...], Cells, Cells]] = {
    "delete": (("id", "name", "x"), [(1, "a", 0.5), (2, None, None)], [(3, "c", -0.0)]),
    "delete_keys": (("id",), [(1,), (3,)], [(2, None, None)]),
    "upsert": (("id", "name", "x"), [(2, "new", 2.5), (4, None, None)],
               [(1, "a", 0.5), (2, "new", 2.5), (3, "c", -0.0), (4, None, None)]),
    "apply": (("id", "name", "x", "_weight"), [(2, None, None, -1), (4, "d", None, 1)],
              [(1, "a", 0.5), (3, "c", -0.0), (4, "d", None)]),
    "apply, by type": (("id", "name", "x", "_change_type"),
                       [(3, "c", -0.0, "update_preimage"), (3, "c", 0.0, "update_postimage"), (5, None, 1.5, "insert")],
                       [(1, "a", 0.5), (2, None, None), (3, "c", 0.0), (5, None, 1.5)]),
}  # fmt: skip
"""Each change: the columns of what is given, the rows, and what is then in a table that had the rows of START."""
START: Cells = [(1, "a", 0.5), (2, None, None), (3, "c", -0.0)]


@pytest.mark.parametrize("change", DONE)
def test_every_kind_of_rows_changes_the_same(change: str, make: Callable[..., sw.Table], spark: SparkSession) -> None:
    names, given, left = DONE[change]
    kinds = [kind for kind in KINDS if kind != "tuples" or not change.startswith("apply")]  # these need names
    offsets = {kind: 100 * at for at, kind in enumerate(kinds)}
    table = make(SCHEMA, [(row[0] + by, *row[1:]) for by in offsets.values() for row in START], key=["id"])
    for kind, by in offsets.items():
        dicts = [dict(zip(names, (row[0] + by, *row[1:]), strict=True)) for row in given]
        getattr(table, change.split(",")[0])(KINDS[kind](spark, dicts))
    found = bag(table)
    for kind, by in offsets.items():
        mine = Counter({(row[0] - by, *row[1:]): n for row, n in found.items() if by <= row[0] < by + 100})
        assert mine == Counter((*row[:2], None if row[2] is None else repr(row[2])) for row in left), kind
    assert table.count() == sum(found.values())


@pytest.mark.parametrize("change", ["insert", "delete", "delete_keys", "upsert", "apply"])
def test_no_rows_are_a_version_without_changes(change: str, make: Callable[..., sw.Table]) -> None:
    table = make("a INT, b STRING", [(1, "x")], key=["a"])
    before = table.insert([(2, "y")])
    for rows in ([], ()):
        assert getattr(table, change)(rows) == before + 1
        before += 1
    assert table.count() == 2
    assert table.changes(since=before - 2).count() == 0


# --- keys of floating-point numbers ----------------------------------------------------------------------------------


def test_a_key_is_equal_as_spark_compares_it(warehouse: sw.Engine, make: Callable[..., sw.Table]) -> None:
    """NaN is one key, and so are both zeros; a whole row is there only with the zero that it was written with."""
    table = make("k DOUBLE, v INT", [(0.0, 1), (math.nan, 2), (math.inf, 3)], key=["k"])
    for taken in (-0.0, 0.0, math.nan, math.inf):
        with refused(warehouse, "KEY_EXISTS"):
            table.insert([(7.0, 0), (taken, 0)])
    for twice in ((-0.0, 0.0), (math.nan, math.nan)):
        with refused(warehouse, "KEY_DUPLICATE"):
            table.upsert([(key, 0) for key in twice])
        with refused(warehouse, "KEY_DUPLICATE"):
            table.delete_keys([(key,) for key in twice])
    with refused(warehouse, "ROW_ABSENT"):
        table.delete([(-0.0, 1)])
    table.upsert([(-0.0, 10), (math.nan, 20)])
    assert bag(table) == Counter({("-0.0", 10): 1, ("nan", 20): 1, ("inf", 3): 1})
    with refused(warehouse, "ROW_ABSENT"):
        table.delete([(0.0, 10)])
    table.delete_keys([(0.0,), (math.nan,)])
    assert bag(table) == Counter({("inf", 3): 1})
    with refused(warehouse, "ROW_ABSENT"):
        table.delete_keys([(math.nan,)])
    table.insert([(-0.0, 4), (math.nan, 5)])
    assert table.count() == 3


@pytest.mark.parametrize("sizes", [(), ("lookups",)], ids=["few rows", "many rows"])
def test_a_join_on_such_keys_meets_them_all(warehouse: sw.Engine, sizes: tuple[str, ...]) -> None:
    """It is no lookup: what a table takes for one value may be two where it is stored."""
    with beyond(sizes):
        keyed = warehouse.create_table(fresh("k"), "k DOUBLE, v INT", key=["k"])
        rows = warehouse.create_table(fresh("r"), "id INT, k DOUBLE")
        keyed.insert([(0.0, 1), (5.0, 5), *((float(n), n) for n in range(100, 120))])
        rows.insert([(n, key) for n, key in enumerate((0.0, -0.0, math.nan, None, 5.0, 7.0))])
        query = f"SELECT r.id, k.v, k.k FROM {rows.name} r JOIN {keyed.name} k ON r.k = k.k"
        view = warehouse.create_view(fresh(), query, strategy="incremental")

        def found() -> dict[int, int]:
            return {r.id: r.v for r in view.result().collect()}

        assert not any(isinstance(x, LookupJoin) for x in view.plan.walk())
        assert found() == {0: 1, 1: 1, 4: 5}
        keyed.insert([(math.nan, 2)])
        rows.insert([(10, -0.0), (11, math.nan)])
        settle(view)
        assert found() == {0: 1, 1: 1, 2: 2, 4: 5, 10: 1, 11: 2}
        keyed.upsert([(-0.0, 30), (math.nan, 40)])
        settle(view)
        assert found() == {0: 30, 1: 30, 2: 40, 4: 5, 10: 30, 11: 40}
        assert {repr(r.k) for r in view.result().collect() if r.v == 30} == {"-0.0"}
        keyed.delete_keys([(0.0,), (math.nan,)])
        rows.insert([(12, 0.0)])
        settle(view)
        assert found() == {4: 5}

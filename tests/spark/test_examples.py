"""The examples tell what their texts say they tell."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from pyspark.sql import SparkSession

import slackwater as sw

pytestmark = [pytest.mark.spark, pytest.mark.slow]

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_late_data(tmp_path: Path, spark: SparkSession) -> None:
    story = example("late_data")
    story.main(tmp_path)
    with sw.Engine(tmp_path / "warehouse", spark=spark) as engine:
        view = engine.view("by_site")
        assert view.verify()
        day, earlier = story.READINGS, story.EARLIER_DAYS * story.EARLIER_READINGS
        assert sum(row.readings for row in view.result().collect()) == day + earlier
        told = [row for row in reversed(view.forecasts()) if row["table"] == "readings"]
        assert not any("geometric" in row["reason"] for row in told), "three days say how late rows are"
        assert [row["actual"] for row in told[:3]] == [0.09 * day, 0.009 * day, 0.001 * day]
        for row in told[:3]:
            assert row["rows"] == pytest.approx(row["actual"], abs=1)
            assert not row["missed"]
        assert [row["complete_after"] for row in told[:3]] == [False, False, True]


def test_data_cleaning(tmp_path: Path, spark: SparkSession) -> None:
    story = example("data_cleaning")
    story.main(tmp_path)
    truth = {"orders": "amount = quantity * price", "customers": "credit = income * 10 + years * 5"}
    dirty = {"orders": "id % 10 IN (3, 7)", "customers": "id % 5 = 2"}
    with sw.Engine(tmp_path / "warehouse", spark=spark) as engine:
        for name, rows in (("orders", story.ORDERS), ("customers", story.CUSTOMERS)):
            found = engine.table(name).snapshot()
            assert found.count() == rows
            assert found.where(story.RULES[name]).isEmpty(), "every row was repaired"
            repaired = found.where(dirty[name])
            assert repaired.where(truth[name]).count() > 0.8 * repaired.count(), "and most of them rightly"
        view = engine.view("revenue")
        assert view.verify()
        kept: dict[str, set[str]] = {name: set() for name in story.RULES}
        for refresh in view.history():
            (name, *others) = refresh["rows_in"]
            if not others and refresh["mode"] != "initial":
                kept[name] |= {label for label in refresh["states"] if "Aggregate" not in label}
        assert kept["orders"], "what repaired orders will meet is kept while they come"
        assert kept["customers"], "and what customers will meet while those come"
        assert kept["orders"].isdisjoint(kept["customers"])

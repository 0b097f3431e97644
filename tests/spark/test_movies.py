"""The queries with many joins, kept fresh: all of them are followed, and results equal a recompute."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.bench.movie_data import HELD_BACK, KEYS, generate
from slackwater.bench.movie_queries import MOVIES, TEXTS
from slackwater.bench.tpch_data import Slices, insert_slice, load

pytestmark = pytest.mark.spark

BY_DEFAULT: tuple[int, ...] = ()


@pytest.fixture(scope="module")
def movies(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[tuple[sw.Engine, Slices]]:
    place: Path = tmp_path_factory.mktemp("movies")
    generate(place / "data", 0.01)
    with sw.Engine(place / "wh", spark=spark, save_states=False) as engine:
        slices = Slices(spark, place / "data", KEYS)
        load(engine, slices, 0.5, HELD_BACK)
        yield engine, slices


def test_all_queries_are_followed(movies: tuple[sw.Engine, Slices]) -> None:
    engine, _ = movies
    for number, text in TEXTS.items():
        found = engine.check(text)
        assert found.incremental, f"{number}: {found}"


@pytest.mark.parametrize("number", [n if n in BY_DEFAULT else pytest.param(n, marks=pytest.mark.slow) for n in MOVIES])
def test_a_refresh_equals_a_recompute(movies: tuple[sw.Engine, Slices], number: int) -> None:
    engine, slices = movies
    view = engine.create_view(f"movies {number}", TEXTS[number])
    share = (number - 1) / 80
    insert_slice(engine, slices, HELD_BACK, 0.5 + share, 0.5 + share + 1 / 80)
    report = view.refresh()
    assert report.mode == "incremental", report.reason
    assert view.verify()
    view.drop()

"""One Spark for the whole test run, and a fresh warehouse for each test that asks for one."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.execution import compaction
from tests.sessions import small_spark


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-goldens", action="store_true", help="write the golden files instead of comparing with them"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever asks for a session is a Spark test."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A small local Spark; an engine that is given it does not stop it."""
    scratch = tmp_path_factory.mktemp("spark")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the workers of user-defined functions need pandas
    session = small_spark(scratch)
    yield session
    session.stop()


@pytest.fixture
def engine(tmp_path: Path, spark: SparkSession) -> Iterator[sw.Engine]:
    """A fresh warehouse."""
    with sw.Engine(tmp_path / "wh", spark=spark) as opened:
        yield opened


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[sw.Engine]:
    """A warehouse that the tests of one module share; each uses names of its own."""
    with sw.Engine(tmp_path_factory.mktemp("shared") / "wh", spark=spark, save_states=False) as opened:
        yield opened


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with a file under tests/golden, or write it with --update-goldens."""
    root = Path(__file__).parent / "golden"

    def check(name: str, text: str) -> None:
        path = root / name
        text = text.rstrip("\n") + "\n"
        if request.config.getoption("--update-goldens"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        assert path.exists(), f"there is no {path}; write it with --update-goldens"
        assert text == path.read_text(encoding="utf-8"), f"{name} has changed; see --update-goldens"

    return check


@pytest.fixture
def eager_compaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merge segments as soon as there are a few."""
    monkeypatch.setattr(compaction, "STATE_SEGMENTS", 2)
    monkeypatch.setattr(compaction, "RESULT_SEGMENTS", 3)
    monkeypatch.setattr(compaction, "TABLE_SEGMENTS", 3)

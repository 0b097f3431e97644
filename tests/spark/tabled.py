"""What is in a table, and how a refusal leaves it: what the tests of tables have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql import Row

import slackwater as sw


def bag(table: sw.Table, version: int | None = None) -> Counter[Any]:
    """The rows of a snapshot, with floats told apart by their text: NaN equals itself, -0.0 is not 0.0."""
    return Counter(tuple(map(_plain, row)) for row in table.snapshot(version).collect())


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Row | tuple | list):
        return tuple(map(_plain, value))
    return tuple(sorted(value.items())) if isinstance(value, dict) else value


@contextmanager
def refused(engine: sw.Engine, code: str) -> Iterator[None]:
    """A refusal with this code that leaves version and files as they were."""
    version, files = engine.catalog.version(), segment_files(engine)
    with pytest.raises(sw.SlackwaterError) as caught:
        yield
    assert caught.value.code == code, str(caught.value)
    assert caught.value.advice
    assert (engine.catalog.version(), segment_files(engine)) == (version, files)


def segment_files(engine: sw.Engine) -> set[str]:
    return {str(p) for p in (engine.path / "data").glob("*/*")}


def table_names(engine: sw.Engine) -> set[str]:
    return {t.name for t in engine.tables()}

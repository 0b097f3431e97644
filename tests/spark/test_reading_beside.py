"""What a reader holds beside a running writer: it follows, and says so when it is no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import slackwater as sw

pytestmark = pytest.mark.spark

QUERY = "SELECT k, sum(v) AS s FROM a GROUP BY k"
ASKED: dict[str, Callable[[sw.View], Any]] = {
    "result": lambda view: view.result(), "changes": lambda view: view.changes(), "status": lambda view: view.status(),
    "due": lambda view: view.due(), "explain": lambda view: view.explain(), "what_if": lambda view: view.what_if(),
    "verify": lambda view: view.verify(), "relation": lambda view: view.relation(),
}  # fmt: skip


@pytest.fixture
def both(spark: SparkSession, tmp_path: Path) -> Iterator[tuple[sw.Engine, sw.Engine]]:
    with sw.Engine(tmp_path / "wh", spark=spark) as writer:
        writer.create_table("a", "k INT, v INT").insert([(1, 1), (2, 2)])
        writer.create_view("v", QUERY, refresh=sw.rows(1))
        with sw.Engine(tmp_path / "wh", spark=spark, read_only=True) as reader:
            yield writer, reader


def _rows(view: sw.View, version: int | None = None) -> list[tuple[int, int]]:
    return sorted((row.k, row.s) for row in view.result(version).collect())


def test_a_view_that_is_held_follows_the_writer(both: tuple[sw.Engine, sw.Engine]) -> None:
    writer, reader = both
    view, before = reader.view("v"), writer.view("v").version
    assert _rows(view) == [(1, 1), (2, 2)]
    writer.table("a").insert([(1, 10)])
    assert (view.status()["pending_rows"], view.status()["due"], view.due().due) == (1, True, True)
    writer.view("v").refresh()
    assert _rows(view) == [(1, 11), (2, 2)]
    assert _rows(view, before) == [(1, 1), (2, 2)]
    after = writer.view("v").version
    assert (view.version, view.status()["version"]) == (after, after)
    assert (view.status()["pending_rows"], view.due().due) == (0, False)
    assert f"at version {after}" in str(view.explain())
    writer.table("a").insert([(3, 3)])
    writer.view("v").refresh()
    check = view.verify()
    assert (bool(check), check.version) == (True, writer.view("v").version)
    assert reader.status()["views"][0]["version"] == check.version
    writer.view("v").set_policy("manual")
    assert (view.status()["policy"], view.due().due) == ("manual", False)


def test_a_view_below_follows_as_well(both: tuple[sw.Engine, sw.Engine]) -> None:
    writer, reader = both
    writer.create_view("top", "SELECT sum(s) AS t FROM v")
    top, below = reader.view("top"), reader.view("v")
    writer.table("a").insert([(1, 10)])
    writer.view("top").refresh()
    assert [row.t for row in top.result().collect()] == [13]
    assert top.verify()
    assert _rows(below) == [(1, 11), (2, 2)]


@pytest.mark.parametrize("asked", ASKED)
def test_a_view_that_the_writer_drops_is_no_empty_one(asked: str, both: tuple[sw.Engine, sw.Engine]) -> None:
    writer, reader = both
    view = reader.view("v")
    assert view.result().count() == 2
    writer.view("v").drop()
    with pytest.raises(sw.SlackwaterError, match="was dropped") as caught:
        ASKED[asked](view)
    assert caught.value.code == "VIEW_DROPPED"


def test_a_view_that_the_writer_replaces_says_where_the_new_one_is(both: tuple[sw.Engine, sw.Engine]) -> None:
    writer, reader = both
    old, ours = reader.view("v"), writer.view("v")
    writer.create_view("v", "SELECT k, count(*) AS s FROM a GROUP BY k", replace=True, discard_states=True)
    for view in (old, ours):
        with pytest.raises(sw.SlackwaterError, match=r"was replaced(.|\n)*engine\.view\('v'\)") as caught:
            view.result()
        assert caught.value.code == "VIEW_DROPPED"
    assert _rows(reader.view("v")) == [(1, 1), (2, 1)]

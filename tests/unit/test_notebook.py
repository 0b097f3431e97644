"""What a notebook shows: reports say what their text says, objects what the catalog says; nothing is taken for HTML."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import IntegerType, StructType

import slackwater as sw
from slackwater.algebra.nodes import Field, Scan
from slackwater.arrivals.ticks import Failure, Tick
from slackwater.ddl_running import Done, Explained, Listing
from slackwater.eligibility import eligibility
from slackwater.execution import sessions
from slackwater.execution.reports import Refresh, Report, Verification
from slackwater.execution.what_if import WhatIf
from slackwater.planning.choices import Choice
from slackwater.replacing import HeldState, Replacement
from slackwater.sources import Poll, RejectedFile
from slackwater.view import History
from tests.unit.catalogued import LINES, ORDERS, TOTALS, add_refresh, add_table, add_view, insert

EVIL = "<script>alert('x')</script>"
REFRESH = Refresh(EVIL, "incremental", 1, 2, {EVIL: 3}, 4, 5, {"total": 0.1}, {EVIL: 6}, 6, 7, EVIL)
REPLACEMENT = Replacement(EVIL, False, (HeldState("k", EVIL, 1, EVIL),), (HeldState("l", "lost", 2, "why"),),
                          (HeldState("m", f"new {EVIL}", 3, EVIL),))  # fmt: skip
REPORTS: list[Any] = [
    REFRESH,
    Report(EVIL),
    Verification(EVIL, 1, True, 2),
    Verification("v", 1, False, 2, ((EVIL, 1),), ((None, EVIL),)),
    History(EVIL, [REFRESH.to_dict() | {"at": 0.0}]),
    WhatIf(EVIL, 1, {EVIL: 2.0}, (Choice("k", EVIL, True, EVIL),), 3, 0.1, 0.2, 0.3, ((0, 1.0),), (0, 1.0), 3),
    REPLACEMENT,
    Done(EVIL, "replaced", f"view {EVIL} was replaced", REFRESH.to_dict(), REPLACEMENT),
    Listing([{"name": EVIL, EVIL: 1}]),
    Explained(
        eligibility(Scan(EVIL, (Field("a", "int"),), (0,))),
        sw.SlackwaterError("TABLE_UNKNOWN", f"no {EVIL}", EVIL),
        REPLACEMENT,
    ),
    Poll(EVIL, 1, 2, (EVIL,), (RejectedFile(EVIL, 1, 2, "SOURCE_FORMAT", EVIL, "advice"),), {EVIL: "later"}),
    Tick(
        [REFRESH],
        {EVIL: EVIL},
        [Poll(EVIL, 1, 2, ("a",))],
        [Failure("view", EVIL, sw.SlackwaterError("UNEXPECTED", EVIL, ""), 1, 60.0)],
    ),
]
NOTHING: list[Any] = [
    Refresh("v", "none", 1, 1),
    History("v", []),
    Listing(),
    Replacement("v", True),
    Poll("t"),
    Tick(),
]


def kind(report: Any) -> str:
    return type(report).__name__


@pytest.mark.parametrize("report", REPORTS, ids=kind)
def test_a_report_is_shown_and_cannot_smuggle_html(report: Any) -> None:
    shown = report._repr_html_()
    assert shown.startswith(("<table>", "<pre>"))
    assert shown.endswith(("</table>", "</pre>"))
    assert "<script" not in shown
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;" in shown


@pytest.mark.parametrize("report", NOTHING, ids=kind)
def test_a_report_of_nothing_is_shown_too(report: Any) -> None:
    assert report._repr_html_().startswith(("<table>", "<pre>"))


class Started:
    """Stands for a Spark, and for what builds it: notes the settings of each."""

    def __init__(self) -> None:
        self.built: dict[str, str] = {}
        self.set_later: dict[str, str] = {}
        self.conf = SimpleNamespace(set=self.set_later.__setitem__)

    def appName(self, _: str) -> Started:
        return self

    master = appName

    def config(self, name: str, value: str) -> Started:
        self.built[name] = value
        return self

    def getOrCreate(self) -> Started:
        return self


def test_only_the_session_of_the_user_shows_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a Spark is built with holds for all sessions; what is set later, for this one."""
    spark = Started()
    built = SimpleNamespace(getActiveSession=lambda: None, builder=spark)
    monkeypatch.setattr(sessions, "SparkSession", built)
    monkeypatch.setenv("JAVA_HOME", "/java")
    assert sessions.start_spark() is spark  # type: ignore[comparison-overlap]
    assert spark.set_later == {sessions.EAGER: "true"}
    assert sessions.EAGER not in spark.built


def test_what_is_shown_is_what_the_text_says() -> None:
    assert "due because" in Tick([REFRESH], {EVIL: "why"})._repr_html_()
    assert "nothing was due" in Tick()._repr_html_()
    assert "<th>mode</th>" in History("v", [REFRESH.to_dict() | {"at": 0.0}])._repr_html_()
    assert "DIFFERS" in REPORTS[3]._repr_html_()


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sw.Engine]:
    """A warehouse with tables and a view in the catalog alone; a Spark that is started is a failure."""

    def refuse() -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("slackwater.engine.start_spark", refuse)
    with sw.Engine(tmp_path / "wh") as opened:
        add_table(opened, LINES, 60_000)
        add_table(opened, ORDERS, 15_000)
        opened.create_table(EVIL, StructType().add(EVIL, IntegerType()), key=[EVIL])
        view = add_view(opened, EVIL + " view", TOTALS)
        add_refresh(opened, view, "incremental", 0.25, 0.2)
        insert(opened, "lines", 1_234)
        yield opened


def test_an_engine_shows_its_tables_and_views(engine: sw.Engine) -> None:
    shown = engine._repr_html_()
    assert shown.startswith("<table>")
    assert shown.endswith("</table>")
    assert "<script" not in shown
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt; view" in shown
    assert "<td>lines</td><td>61,234</td>" in shown
    assert "<td>1,234</td>" in shown, "rows that wait"
    assert str(engine.path) in shown
    assert "0 B of 1.0 GB" in shown


def test_a_table_shows_its_columns(engine: sw.Engine) -> None:
    shown = engine.table(EVIL)._repr_html_()
    assert "<script" not in shown
    name = "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;"
    assert f"<tr><td>{name}</td><td>int</td><td>yes</td></tr>" in shown
    assert "<td>rows</td><td>0</td>" in shown
    engine.table("lines").mark_complete()
    assert "<td>complete</td><td>yes</td>" in engine.table("lines")._repr_html_()


def test_a_view_shows_where_it_stands(engine: sw.Engine) -> None:
    view = engine.view(EVIL + " view")
    shown = view._repr_html_()
    assert "<script" not in shown
    assert f"<td>version</td><td>{view.version}</td>" in shown
    assert "<td>columns</td><td>s int, rows bigint</td>" in shown
    assert "<td>reads</td><td>lines, orders</td>" in shown
    assert "<td>rows waiting</td><td>1,234</td>" in shown
    assert "<td>last refresh</td><td>incremental, 0.250 s</td>" in shown


def test_what_is_gone_is_shown_too(engine: sw.Engine) -> None:
    view, table = engine.view(EVIL + " view"), engine.table(EVIL)
    view.drop()
    engine.drop_table(EVIL)
    for gone in (view, table):
        shown = gone._repr_html_()
        assert shown.startswith("<pre>")
        assert "<script" not in shown
        assert "alert" in shown
    engine.close()
    assert engine._repr_html_().startswith("<pre>Engine(")

"""The README's first examples run as they stand, and say what they should."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import slackwater as sw

pytestmark = pytest.mark.spark

README = Path(__file__).parents[2] / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_first_view_and_the_run_that_keeps_it_fresh(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, running = BLOCKS[:2]
    assert len(first.split("with ")[1].splitlines()) <= 10, "ten lines, it says"
    engine = functools.partial(sw.Engine, spark=spark)  # a Spark of its own would end that of the tests
    monkeypatch.setattr(sw, "Engine", engine)
    monkeypatch.chdir(tmp_path)

    exec(compile(first, "README", "exec"), {})  # noqa: S102 - the project's own page

    printed = capsys.readouterr().out
    assert "revenue: " in printed
    assert re.search(r"\|\s*ann\|\s*40\|", printed), printed
    assert re.search(r"\|\s*cyd\|\s*7\|", printed), printed
    assert "bob" not in printed
    assert "2 rows, equal to a recompute" in printed

    with engine("warehouse") as opened:
        opened.table("orders").insert([(5, "bob", 1)])
        opened.view("revenue").refresh()
        opened.table("orders").mark_complete()  # so that the run has an end

    exec(compile(running, "README", "exec"), {})  # noqa: S102

    with engine("warehouse") as opened:
        assert str(opened.view("revenue").policy) == str(sw.every("60s") | sw.rows(10_000))
        assert opened.view("revenue").verify()

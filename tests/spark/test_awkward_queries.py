"""Many awkward queries through rounds of changes, against their own text over the same rows, run by a plain Spark.

`verify()` reads a query as the engine has read it, and shares what the engine got wrong; the text knows nothing of
that.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from tests.spark.awkward_queries import QUERIES
from tests.spark.awkward_rows import SCHEMAS, Rows

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROUNDS = 2
FAMILIES = sorted({name[:3] for name in QUERIES})


@dataclass(frozen=True, slots=True)
class Plain:
    """A session that knows the tables as files, and nothing of the engine."""

    session: SparkSession
    place: Path

    def look(self, engine: sw.Engine, version: int) -> None:
        """See the tables as they are now."""
        for table in SCHEMAS:
            path = str(self.place / f"{table}{version}")
            engine.table(table).snapshot().coalesce(1).write.parquet(path)
            self.session.read.parquet(path).createOrReplaceTempView(table)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.session.sql(query).collect()]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("family", FAMILIES)
def test_views_have_the_rows_of_their_text(tmp_path: Path, spark: SparkSession, family: str) -> None:
    queries = {name: marked for name, marked in QUERIES.items() if name.startswith(family)}
    rows, plain = Rows(seed=11), Plain(spark.newSession(), tmp_path)
    with sw.Engine(tmp_path / "wh", spark=spark, save_states=False) as engine:
        rows.start(engine)
        plain.look(engine, 0)
        views = {(name, strategy): engine.create_view(f"{name} {strategy}", QUERIES[name][1], strategy=strategy)
                 for name, (marks, _) in queries.items() if "R" not in marks
                 for strategy in ("auto", "incremental")[: 1 + ("i" in marks)]}  # fmt: skip
        refused = {name: engine.check(query).refusal for name, (marks, query) in queries.items() if "R" in marks}
        found = [f"{name} is not refused" for name, told in refused.items() if told is None]
        found += [told for (name, _), view in views.items() for told in _problems(view, plain, name)]
        for number in range(1, ROUNDS + 1):
            rows.change(engine)
            plain.look(engine, number)
            for (name, strategy), view in views.items():
                report = view.refresh()
                if "failed" in report.reason:
                    found.append(f"{name} {strategy}, round {number}: {report.reason}")
                found += [f"{strategy}, round {number}: {told}" for told in _problems(view, plain, name)]
    assert found == []


def _problems(view: sw.View, plain: Plain, name: str) -> Iterator[str]:
    marks, query = QUERIES[name]
    if "t" in marks:
        check = view.verify()
        if not check:
            yield f"{name}: {check}"
        return
    ours, theirs = (_bag(rows, marks) for rows in (view.result().collect(), plain.rows(query)))
    if ours != theirs:
        yield f"{name}: has {list((ours - theirs).items())[:3]}, lacks {list((theirs - ours).items())[:3]}"


def _bag(rows: Iterable[Any], marks: str) -> Counter[str]:
    return Counter(repr(_said(tuple(row), marks)) for row in rows)


def _said(value: Any, marks: str) -> Any:
    """A value as it is compared: floating-point numbers to seven digits, and as the marks say."""
    if isinstance(value, float):
        if value == 0:
            return "-0.0" if "z" in marks and math.copysign(1, value) < 0 else "0.0"
        return f"{value:.7g}"
    if isinstance(value, str):
        return value.casefold() if "f" in marks else value
    if isinstance(value, dict):
        return sorted((repr(k), repr(_said(v, marks))) for k, v in value.items())
    if isinstance(value, tuple):
        return tuple(_said(v, marks) for v in value)
    if isinstance(value, list):
        cells = [_said(v, marks) for v in value]
        return sorted(cells, key=repr) if "b" in marks else cells
    return bytes(value) if isinstance(value, bytearray) else value

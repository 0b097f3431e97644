"""Refresh and prove: what the tests of views have in common."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

import slackwater as sw

_NUMBERS = itertools.count(1)


def fresh(prefix: str = "v") -> str:
    return f"{prefix}{next(_NUMBERS)}"


def settle(view: sw.View, mode: str | None = "incremental") -> sw.Refresh:
    """Refresh, and prove the result; `mode` is how the refresh must have been done."""
    report = view.refresh()
    check = view.verify()
    assert check, str(check)
    assert mode is None or report.mode == mode, str(report)
    return report


def problems(view: sw.View, mode: str) -> Iterator[str]:
    """What is wrong with a view after a refresh, for tests that look at many views before they fail."""
    try:
        report, check = view.refresh(), view.verify()
    except Exception as error:
        yield f"{type(error).__name__}: {str(error)[:500]}"
        return
    if not check:
        yield str(check)
    if report.mode != mode:
        yield str(report)


def rows(view: sw.View) -> list[tuple[Any, ...]]:
    return [tuple(r) for r in view.result().collect()]


def sorted_rows(view: sw.View) -> list[tuple[Any, ...]]:
    return sorted(rows(view))


@contextmanager
def session_with(spark: SparkSession, **settings: str) -> Iterator[None]:
    """The user changes settings of the session, and back."""
    names = {f"spark.sql.{name.replace('__', '.')}": value for name, value in settings.items()}
    before = {name: spark.conf.get(name) for name in names}
    try:
        for name, value in names.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)

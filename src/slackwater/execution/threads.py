"""Threads that talk to Spark while others wait for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache, lru_cache
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

PLANNERS = 4
"""How many steps are planned at the same time."""


@cache
def _threads() -> ThreadPoolExecutor:
    """Threads that talk to Spark; each has a partner in the JVM, so they are made once."""
    return ThreadPoolExecutor(PLANNERS, thread_name_prefix="slackwater")


@lru_cache(maxsize=1)
def _context(context: SparkContext) -> Any:
    """Spark's own object behind PySpark's: asked for once, so that Python knows its methods."""
    return context._jsc.sc()


def submitter(spark: SparkSession) -> Callable[..., Future[Any]]:
    """Start work in a thread under the caller's job group, pool and other local properties of Spark."""
    context = _context(spark._sc)
    properties = context.getLocalProperties().clone()

    def carried(work: Callable[..., Any], *args: Any) -> Any:
        context.setLocalProperties(properties.clone())
        return work(*args)

    return lambda work, *args: _threads().submit(carried, work, *args)


def wait_for(started: Sequence[Future[Any]]) -> None:
    """Wait for all, then raise the first failure: nothing may run on behind the caller's back."""
    wait(started)
    for future in started:
        future.result()

"""PySpark logs every analysis error as a page of JSON; ours are caught and told in a sentence instead."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.logger import PySparkLogger


@contextmanager
def quiet() -> Iterator[None]:
    """Keep PySpark's own report of an expected error from the user's screen."""
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    before = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = before

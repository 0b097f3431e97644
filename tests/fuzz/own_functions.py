"""User-defined functions that random queries call: of rows, of groups, and of groups with a merge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

import slackwater as sw
from tests.fuzz.sql import OWN

AGGREGATES = ("spread", "total")


def declare(engine: sw.Engine, query: str) -> None:
    """Declare the functions, if a query calls any of them. They are made here, so that workers get their code."""
    if OWN not in query:
        return
    engine.register_udf(f"{OWN}step", _step(), "int", deterministic=True)
    engine.register_udf(f"{OWN}twice", F.arrow_udf(_twice(), "long"), deterministic=True)
    engine.register_udf(f"{OWN}shout", _shout(), "string", deterministic=True)
    engine.register_udaf(f"{OWN}spread", _spread(), "int", deterministic=True)
    engine.register_udaf(f"{OWN}total", _total(), "bigint", deterministic=True, merge=_merged())


def _step() -> Callable[[int | None], int | None]:
    return lambda x: None if x is None or x == 3 else x + 1


def _shout() -> Callable[[str | None], str | None]:
    return lambda text: None if text is None else f"{text.upper()}!"


def _twice() -> Callable[[pa.Array], pa.Array]:
    def twice(values: pa.Array) -> pa.Array:
        return pc.multiply(values.cast(pa.int64()), 2)

    return twice


def _spread() -> Callable[[pd.Series], Any]:
    def spread(values: pd.Series) -> Any:
        return None if values.isna().all() else int(values.max() - values.min())

    return spread


def _total() -> Callable[[pd.Series], Any]:
    def total(values: pd.Series) -> Any:
        return None if values.isna().all() else int(values.sum())

    return total


def _merged() -> Callable[[list[Any]], Any]:
    def merged(parts: list[Any]) -> Any:
        known = [part for part in parts if part is not None]
        return sum(known) if known else None

    return merged

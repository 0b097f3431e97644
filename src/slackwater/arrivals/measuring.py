"""How late the rows of new versions were: one column of their files, read on the driver, without a Spark job."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from slackwater.arrivals.distribution import Numbers

POINTS = 64
"""One version's delays are kept exactly up to so many different ones, and as so many quantiles beyond."""

_SHARES = np.unique(np.concatenate([np.linspace(0, 1, POINTS - 8), 1 - np.geomspace(0.1, 0.0001, 8)]))


def event_seconds(files: Iterable[Path], column: str) -> Numbers:
    """The times in a column of Parquet files, in seconds since 1970; NULLs are left out, and dates are midnight UTC."""
    parts: list[Numbers] = [np.empty(0)]
    for file in files:
        source = pq.ParquetFile(file, coerce_int96_timestamp_unit="us")
        for batch in source.iter_batches(batch_size=1_000_000, columns=[column]):
            values = batch.column(0).drop_null()
            if pa.types.is_date(values.type):
                parts.append(values.cast(pa.int32()).to_numpy(zero_copy_only=False) * 86_400.0)
            else:
                whole = values.cast(pa.timestamp("us", tz=values.type.tz)).cast(pa.int64())
                parts.append(whole.to_numpy(zero_copy_only=False) / 1e6)
    return np.concatenate(parts)


def delay_points(events: Numbers, arrived: float, batch: float | None) -> list[list[float]]:
    """Delays of rows that arrived together, as pairs of seconds and rows.

    With a batch, a row is due at the end of its batch, and negative seconds say that it came before.
    """
    due = events if batch is None else (np.floor(events / batch) + 1) * batch
    return summary(np.round(arrived - due, 3))


def summary(delays: Numbers) -> list[list[float]]:
    """Different delays with their numbers; where they are many, the mean of each quantile with its number."""
    steps, rows = np.unique(delays, return_counts=True)
    if len(steps) <= POINTS:
        return _pairs(steps, rows)
    edges = np.unique(np.quantile(delays, _SHARES))
    part = np.clip(np.searchsorted(edges, steps, side="left"), 0, len(edges) - 1)
    counts = np.bincount(part, weights=rows, minlength=len(edges))
    sums = np.bincount(part, weights=rows * steps, minlength=len(edges))
    full = counts > 0
    return _pairs(sums[full] / counts[full], counts[full])


def _pairs(steps: Iterable[float], rows: Iterable[float]) -> list[list[float]]:
    return [[float(step), int(count)] for step, count in zip(steps, rows, strict=True)]

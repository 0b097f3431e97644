"""How late the rows of new versions were: one column of their files, read on the driver, without a Spark job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from slackwater.arrivals.distribution import Numbers

POINTS = 64
"""One version's delays are kept exactly up to so many different ones, and as so many quantiles beyond."""

AT_ONCE = 1_000_000
"""A first load may have very many rows: so many are looked at together."""

_SHARES = np.unique(np.concatenate([np.linspace(0, 1, POINTS - 8), 1 - np.geomspace(0.1, 0.0001, 8)]))


def event_seconds(files: Iterable[Path], column: str) -> Iterator[Numbers]:
    """The times in a column of Parquet files, in seconds since 1970; NULLs are left out, and dates are midnight UTC."""
    for file in files:
        source = pq.ParquetFile(file, coerce_int96_timestamp_unit="us")
        for batch in source.iter_batches(batch_size=AT_ONCE, columns=[column]):
            values = batch.column(0).drop_null()
            if pa.types.is_date(values.type):
                yield values.cast(pa.int32()).to_numpy(zero_copy_only=False) * 86_400.0
            else:
                whole = values.cast(pa.timestamp("us", tz=values.type.tz)).cast(pa.int64())
                yield whole.to_numpy(zero_copy_only=False) / 1e6


def delay_points(events: Iterable[Numbers], arrived: float, batch: float | None) -> list[list[float]]:
    """Delays of rows that arrived together, as pairs of seconds and rows.

    With a batch, a row is due at the end of its batch, and negative seconds say that it came before.
    """
    found: list[list[float]] = []
    for times in events:
        due = times if batch is None else (np.floor(times / batch) + 1) * batch
        found += summary(np.round(arrived - due, 3), np.ones(len(due)))
    pairs = np.array(found, dtype=float).reshape(-1, 2)
    return summary(pairs[:, 0], pairs[:, 1])


def summary(delays: Numbers, rows: Numbers) -> list[list[float]]:
    """Different delays with their numbers; where they are many, the mean of each quantile with its number."""
    steps, where = np.unique(delays, return_inverse=True)
    counts = np.bincount(where, weights=rows, minlength=len(steps))
    if len(steps) > POINTS:
        share = np.cumsum(counts) / counts.sum()
        edges = np.unique(steps[np.minimum(np.searchsorted(share, _SHARES), len(steps) - 1)])
        part = np.minimum(np.searchsorted(edges, steps, side="left"), len(edges) - 1)
        sums = np.bincount(part, weights=counts * steps, minlength=len(edges))
        counts = np.bincount(part, weights=counts, minlength=len(edges))
        steps = sums / counts
    return [[float(step), int(count)] for step, count in zip(steps, counts, strict=True)]

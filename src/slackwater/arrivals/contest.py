"""The back-test that picks a model: at each of the last deltas, what would it have said, knowing only what came before?

The origin rolls: parameters are fitted once on what lies before the first origin, then every origin adds one delta to
what is known. The smallest mean square error wins, because the model that has it says the mean: rows that come now and
then are expected now and then, and not never. The winner's errors are its bounds.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from slackwater.arrivals.distribution import Numbers
from slackwater.arrivals.models import BY_NAME, MODELS, Model, Parameters

_log = logging.getLogger(__name__)

LEAST_ORIGINS, MOST_ORIGINS = 4, 12
CLEARLY = 0.98
"""A later, less simple model must be better than this share of the best error so far."""


@dataclass(frozen=True, slots=True)
class Past:
    """A table's past as one series.

    Attributes:
        by: what cut it: "refresh" or "clock".
        rows: the rows of each delta.
        ends: when each delta ended.
        horizon: how long the next one lasts.
        bins: for each width in seconds, where the last whole bin ends, and the rows of the whole bins up to there.
    """

    by: str
    rows: Numbers
    ends: Numbers
    horizon: float
    bins: Mapping[float, tuple[float, Numbers]] = field(default_factory=dict)

    def upto(self, delta: int) -> Past:
        """As it was at the end of a delta."""
        now, bins = float(self.ends[delta - 1]), {}
        for width, (end, rows) in self.bins.items():
            whole = min(math.floor(now / width) * width, end)
            kept = len(rows) - round((end - whole) / width)
            if kept > 0:
                bins[width] = (whole, rows[:kept])
        return Past(self.by, self.rows[:delta], self.ends[:delta], self.horizon, bins)

    def allows(self, model: Model) -> bool:
        """Whether there is history enough for a model."""
        if model.season is None:
            return len(self.rows) >= model.least
        # A pattern that is finer than the horizon is of no use to it, and hours are too fine for weeks ahead.
        if self.horizon > 7 * 24 * 3600 or (model.season.width > self.horizon and model.season.width > 3600):
            return False
        bins = self.bins.get(model.season.width)
        if bins is None or len(bins[1]) < model.least:
            return False
        return bool(np.count_nonzero(bins[1]) >= model.season.period // 4)


@dataclass(frozen=True, slots=True)
class Winner:
    """The model that won, and how it did; what a forecast remembers until the contest is held again."""

    model: str
    by: str
    error: float
    low: float
    high: float
    origins: int
    changes: int
    at: float
    parameters: Parameters = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "parameters": dict(self.parameters)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Winner | None:
        """Read what `to_dict` gave; None for anything else, such as what another version remembered."""
        try:
            winner = cls(**values)
        except TypeError:
            return None
        return winner if winner.model in BY_NAME else None


def next_rows(model: Model, past: Past, parameters: Parameters) -> float:
    """What a model says about the delta that follows; not a number where it has nothing to say."""
    try:
        if model.season is None:
            return _clean(float(model.ahead(past.rows, parameters, 1)[0]))
        end, rows = past.bins[model.season.width]
        width, now = model.season.width, float(past.ends[-1])
        until = now + past.horizon
        steps = max(math.ceil((until - end) / width), 1)
        expected = model.ahead(rows, parameters, steps)
        starts = end + width * np.arange(steps)
        overlap = np.clip(np.minimum(starts + width, until) - np.maximum(starts, now), 0.0, width)
        return _clean(float(np.sum(np.maximum(expected, 0.0) * overlap / width)))
    except Exception as error:  # whatever a library's model runs into, it is that model which is out
        _log.debug("model %s gave up: %s", model.name, error)
        return math.nan


def contest(past: Past, now: float, changes: int) -> Winner:
    """Let all models that there is history enough for say what they would have said, and take the best."""
    origins = _origins(len(past.rows))
    known = [past.upto(origin) for origin in origins]
    actual = past.rows[origins]
    best: tuple[float, Model, Numbers] | None = None
    for model in MODELS:
        if not known[0].allows(model):
            continue
        parameters = _fitted(model, known[0])
        if parameters is None:
            continue
        said = np.array([next_rows(model, one, parameters) for one in known])
        if not np.isfinite(said).all():
            continue
        errors = actual - said
        mean = math.sqrt(float(np.mean(errors**2)))
        if best is None or mean < CLEARLY * best[0]:
            best = (mean, model, errors)
        if best[0] == 0:
            break
    if best is None:
        raise AssertionError("the model that says zero can always say it")
    mean, model, errors = best
    # Few origins have not seen the worst yet.
    wider = 1.0 + 2.0 / len(origins)
    return Winner(
        model.name,
        past.by,
        mean,
        min(float(errors.min()), 0.0) * wider,
        max(float(errors.max()), 0.0) * wider,
        len(origins),
        changes,
        now,
        _fitted(model, past) or {},
    )


def _origins(count: int) -> list[int]:
    """The last third, or as many of it as are enough: then evenly spread, so that a season shows itself."""
    third = max(count // 3, LEAST_ORIGINS)
    stride = max(third // MOST_ORIGINS, 1)
    return list(range(count - 1, count - third - 1, -stride))[:MOST_ORIGINS][::-1]


def _fitted(model: Model, past: Past) -> Parameters | None:
    try:
        return model.fit(past.rows if model.season is None else past.bins[model.season.width][1])
    except Exception as error:
        _log.debug("model %s could not be fitted: %s", model.name, error)
        return None


def _clean(rows: float) -> float:
    return max(rows, 0.0) if math.isfinite(rows) else math.nan

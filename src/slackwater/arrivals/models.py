"""The simple models that contend for a table: each says, from the past, what the next delta brings.

Two families. *By delta*: the rows of past deltas, one number each. *By season*: the rows of past hours or days, with a
pattern that repeats by hour of day, hour of week or day of week. Smoothing and Theta models are those of statsmodels,
imported when first needed because that takes a second or two.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from slackwater.arrivals.distribution import Numbers

Parameters = Mapping[str, float]

MEAN_OF = 10
PROFILE_OF = 5
"""A seasonal mean is taken over so many repetitions."""

REMEMBERED = 512
"""So many answers of a model are remembered: the views of one table are often refreshed together, and ask the same."""


@dataclass(frozen=True, slots=True)
class Season:
    """A pattern that repeats: bins of `width` seconds, `period` of them until it begins again."""

    name: str
    width: float
    period: int

    @property
    def needed(self) -> int:
        """Bins of history before the pattern can be told from chance."""
        return 4 * self.period if self.period <= 24 else 3 * self.period


HOUR_OF_DAY = Season("hour of day", 3600.0, 24)
HOUR_OF_WEEK = Season("hour of week", 3600.0, 168)
DAY_OF_WEEK = Season("day of week", 86_400.0, 7)
SEASONS = (HOUR_OF_DAY, HOUR_OF_WEEK, DAY_OF_WEEK)


@dataclass(frozen=True, slots=True)
class Model:
    """One contender.

    Attributes:
        name: what it is called in reports.
        fit: finds parameters for a series.
        ahead: the next values of a series, so many of them.
        season: the pattern it knows; None for models of deltas.
        least: the shortest series it can be used on.
    """

    name: str
    fit: Callable[[Numbers], Parameters]
    ahead: Callable[[Numbers, Parameters, int], Numbers]
    season: Season | None = None
    least: int = 1


def _no_parameters(series: Numbers) -> Parameters:
    return {}


def _flat(level: Callable[[Numbers], float]) -> Callable[[Numbers, Parameters, int], Numbers]:
    return lambda series, parameters, steps: np.full(steps, level(series))


@contextmanager
def _quiet() -> Iterator[None]:
    """A fit that does not converge, or divides by nothing, loses the contest by its errors; that is warning enough."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def _remembering(
    fit: Callable[[Numbers], Parameters], ahead: Callable[[Numbers, Parameters, int], Numbers]
) -> tuple[Callable[[Numbers], Parameters], Callable[[Numbers, Parameters, int], Numbers]]:
    """The same two functions, which take milliseconds, asked once for each series."""

    @lru_cache(REMEMBERED)
    def fitted(series: bytes) -> Parameters:
        return fit(np.frombuffer(series))

    @lru_cache(REMEMBERED)
    def said(series: bytes, parameters: tuple[tuple[str, float], ...], steps: int) -> Numbers:
        found = ahead(np.frombuffer(series), dict(parameters), steps)
        found.flags.writeable = False
        return found

    return (
        lambda series: fitted(np.ascontiguousarray(series, dtype=float).tobytes()),
        lambda series, parameters, steps: said(
            np.ascontiguousarray(series, dtype=float).tobytes(), tuple(sorted(parameters.items())), steps
        ),
    )


def _smoothing(series: Numbers, trend: bool, season: Season | None) -> Any:
    """A smoothing model whose start does not depend on its parameters, so that they can be kept and used again."""
    from statsmodels.tsa.holtwinters import ExponentialSmoothing

    first = series[: (2 * season.period if season else min(4, len(series)))]
    start: dict[str, Any] = {"initial_level": float(np.mean(first))}
    if trend:
        start["initial_trend"] = 0.0
    if season:
        start["initial_seasonal"] = first.reshape(2, season.period).mean(axis=0) - np.mean(first)
    return ExponentialSmoothing(
        series,
        trend="add" if trend else None,
        damped_trend=trend,
        seasonal="add" if season else None,
        seasonal_periods=season.period if season else None,
        initialization_method="known",
        **start,
    )


_KEPT = {"smoothing_level", "smoothing_trend", "smoothing_seasonal", "damping_trend"}


def _smoothed(name: str, *, trend: bool = False, season: Season | None = None) -> Model:
    def fit(series: Numbers) -> Parameters:
        with _quiet():
            found = _smoothing(series, trend, season).fit(use_brute=False).params
        return {key: float(found[key]) for key in _KEPT & set(found) if np.isfinite(found[key])}

    def ahead(series: Numbers, parameters: Parameters, steps: int) -> Numbers:
        with _quiet():
            fitted = _smoothing(series, trend, season).fit(optimized=False, **parameters)
            return np.asarray(fitted.forecast(steps), dtype=float)

    return Model(name, *_remembering(fit, ahead), season, least=12 if season is None else season.needed)


def _theta(name: str, season: Season | None = None) -> Model:
    def ahead(series: Numbers, parameters: Parameters, steps: int) -> Numbers:
        from statsmodels.tsa.forecasting.theta import ThetaModel

        with _quiet():
            period = season.period if season else 1
            model = ThetaModel(series, period=period, deseasonalize=season is not None, method="additive")
            return np.asarray(model.fit().forecast(steps), dtype=float)

    return Model(name, *_remembering(_no_parameters, ahead), season, least=12 if season is None else season.needed)


def _profile(season: Season) -> Model:
    def ahead(series: Numbers, parameters: Parameters, steps: int) -> Numbers:
        repeats = min(len(series) // season.period, PROFILE_OF)
        mean = series[-repeats * season.period :].reshape(repeats, season.period).mean(axis=0)
        return np.resize(mean, steps)

    return Model(f"mean by {season.name}", _no_parameters, ahead, season, season.needed)


MODELS: tuple[Model, ...] = (
    Model("zero", _no_parameters, _flat(lambda series: 0.0)),
    Model("last", _no_parameters, _flat(lambda series: float(series[-1]))),
    Model("mean", _no_parameters, _flat(lambda series: float(np.mean(series[-MEAN_OF:])))),
    _smoothed("exponential smoothing"),
    _smoothed("damped trend", trend=True),
    _theta("theta"),
    *(_profile(season) for season in SEASONS),
    *(_smoothed(f"Holt-Winters by {season.name}", season=season) for season in SEASONS),
    _theta(f"theta by {HOUR_OF_DAY.name}", HOUR_OF_DAY),
)
"""All contenders, the simpler ones first: of two that do equally well the first is taken."""

BY_NAME = {model.name: model for model in MODELS}

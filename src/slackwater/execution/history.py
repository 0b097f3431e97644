"""What the refreshes of a view did: which ways were taken and which not, and how far off the predictions were."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from slackwater.execution.reports import table_html
from slackwater.planning.strategies import seconds_text


@dataclass(frozen=True, slots=True)
class PredictionError:
    """How far predictions of one kind were off.

    Attributes:
        count: how many there were.
        median: the median of actual over predicted: 1 is exact, 2 is twice as much as predicted.
        worst: the ratio that is the farthest from 1, upwards or downwards.
    """

    count: int
    median: float
    worst: float

    @classmethod
    def of(cls, pairs: Iterable[tuple[float, float]]) -> PredictionError | None:
        """From pairs of a predicted and an actual number; None where there is nothing to compare."""
        ratios = [actual / predicted for predicted, actual in pairs if _comparable(predicted) and _comparable(actual)]
        return cls(len(ratios), median(ratios), max(ratios, key=lambda r: abs(math.log(r)))) if ratios else None

    def to_dict(self) -> dict[str, float]:
        """Plain values."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.median:.2f}x of what was predicted in the median of {self.count:,}, {self.worst:.2f}x at worst"


def _comparable(number: float) -> bool:
    return 0 < number < math.inf


class History(list[dict[str, Any]]):
    """Refreshes, the latest first; a table in a notebook."""

    def __init__(self, view: str, rows: list[dict[str, Any]]) -> None:
        super().__init__(rows)
        self.view = view

    def errors(self) -> dict[str, PredictionError]:
        """How far predictions were off: of seconds by mode, and of the `bytes` and `rows` of what was new.

        Bytes are those of states that were built for the first time, rows those of operators that were counted for the
        first time: after that, what was measured stands in for an estimate.
        """
        pairs: dict[str, list[tuple[float, float]]] = {}
        for row in self:
            pairs.setdefault(row["mode"], []).append((row.get("predicted_seconds", 0.0), row["seconds"]["total"]))
        for what in ("bytes", "rows"):
            pairs[what] = [(one["estimated"], one["actual"]) for row in self for one in row.get("estimates", ())
                           if one["what"] == what]  # fmt: skip
        return {what: found for what, two in pairs.items() if (found := PredictionError.of(two)) is not None}

    def error_lines(self) -> list[str]:
        """The errors for people."""
        return [f"{_subject(what)}: {error}" for what, error in self.errors().items()]

    def __str__(self) -> str:
        lines = [f"history of {self.view}"]
        for r in self:
            when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(r["at"]))
            lines.append(
                f"  {when}  {r['from_version']:>5} → {r['to_version']:<5} {r['mode']:<12}"
                f" {r['seconds']['total']:8.3f} s ({r.get('predicted_seconds', 0.0):.3f} s predicted)"
                f"  +{r['rows_inserted']:,} −{r['rows_deleted']:,}  {r['reason']}"
            )
            lines += [f"      {line}" for line in not_taken(r)]
        return "\n".join([*lines, *(f"  {line}" for line in self.error_lines())])

    def _repr_html_(self) -> str:
        names = ("from_version", "to_version", "mode", "rows_inserted", "rows_deleted", "state_bytes", "reason")
        return table_html(
            {name: [r[name] for r in self] for name in names}
            | {
                "seconds": [r["seconds"]["total"] for r in self],
                "predicted_seconds": [r.get("predicted_seconds", 0.0) for r in self],
                "actual ÷ predicted": [ratio_text(r) for r in self],
                "not taken": ["; ".join(not_taken(r)) for r in self],
            }
        )


def _subject(what: str) -> str:
    return {"bytes": "bytes of new states", "rows": "rows counted first"}.get(what, f"seconds of {what} refreshes")


def ratio_text(report: Mapping[str, Any]) -> str:
    """Actual over predicted seconds of one refresh; empty where nothing was predicted."""
    error = PredictionError.of([(report.get("predicted_seconds", 0.0), report["seconds"].get("total", 0.0))])
    return f"{error.median:.2f}x" if error is not None else ""


def not_taken(report: Mapping[str, Any]) -> list[str]:
    """What a refresh could have done instead, and the states that were the next best, with their costs."""
    taken = [way for way in report.get("ways", ()) if way["chosen"]]
    other = [way for way in report.get("ways", ()) if not way["chosen"]]
    said = [f"not taken: {way['way']}, {seconds_text(way['seconds'])} against"
            f" {seconds_text(taken[0]['seconds'])}" for way in other if taken]  # fmt: skip
    return said + ([f"next best states: {report['next_best']}"] if report.get("next_best") else [])

"""What a refresh did, for people, programs and notebooks."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from slackwater.settings import show_bytes


@dataclass(frozen=True, slots=True)
class PricedWay:
    """One way that a refresh could go: its mode, the seconds that it should take, and whether it was taken."""

    way: str
    seconds: float
    chosen: bool


@dataclass(frozen=True, slots=True)
class Estimate:
    """What was estimated of an operator and what it turned out to be; `what` is bytes or rows."""

    label: str
    what: str
    estimated: float
    actual: float


@dataclass(frozen=True, slots=True)
class Refresh:
    """The report of one refresh.

    Attributes:
        view: the view's name.
        mode: none (nothing had changed), initial, incremental or recompute.
        from_version: where the result stood.
        to_version: where it stands now.
        rows_in: changed rows by table.
        rows_inserted: rows added to the result.
        rows_deleted: rows taken from the result.
        seconds: wall time, by phase (`forecast`, `plan`, `run`, `commit`, `compact`) and in `total`.
        states: bytes of each state that is kept, by node.
        state_bytes: all states of this view together.
        budget_bytes: what states may occupy.
        reason: why this mode.
        predicted_seconds: what it should have taken, the states that it built included; 0 where nothing was predicted.
        next_best: the best choice of states that was not taken, and its price.
        ways: the mode that was taken and those that were not, with their prices, as far as they were priced.
        estimates: bytes of states and rows of operators that were seen for the first time, beside what they are.
    """

    view: str
    mode: str
    from_version: int
    to_version: int
    rows_in: Mapping[str, int] = field(default_factory=dict)
    rows_inserted: int = 0
    rows_deleted: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    states: Mapping[str, int] = field(default_factory=dict)
    state_bytes: int = 0
    budget_bytes: int = 0
    reason: str = ""
    predicted_seconds: float = 0.0
    next_best: str = ""
    ways: tuple[PricedWay, ...] = ()
    estimates: tuple[Estimate, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as they are kept in the history."""
        return {k: dict(v) if isinstance(v, Mapping) else list(v) if isinstance(v, tuple) else v
                for k, v in asdict(self).items()}  # fmt: skip

    @property
    def total_seconds(self) -> float:
        """Wall time of the whole refresh."""
        return float(self.seconds.get("total", 0.0))

    def __str__(self) -> str:
        rows = ", ".join(f"{t} {n:,}" for t, n in self.rows_in.items()) or "nothing"
        return (
            f"{self.view}: {self.mode} {self.from_version} → {self.to_version} in {self.total_seconds:.3f} s;"
            f" in: {rows};"
            f" out: +{self.rows_inserted:,} −{self.rows_deleted:,}; states {show_bytes(self.state_bytes)}"
            f" of {show_bytes(self.budget_bytes)}; {self.reason}"
        )

    def _repr_html_(self) -> str:
        return table_html({"": list(self.to_dict()), "value": [str(v) for v in self.to_dict().values()]})


def table_html(columns: Mapping[str, list[Any]]) -> str:
    """A small HTML table for notebooks; everything is escaped."""
    head = "".join(f"<th>{html.escape(str(c))}</th>" for c in columns)
    rows = zip(*columns.values(), strict=True)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(str(v))}</td>" for v in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


class Report(str):
    """Text that shows as preformatted text in a notebook."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether a result is what a recompute gives.

    Attributes:
        view: the view's name.
        version: the version compared at.
        equal: bag-equality, with floating-point columns compared to nine digits.
        rows: rows of the result.
        missing: rows that the recompute has and the result lacks (some of them).
        unexpected: rows that the result has and the recompute lacks (some of them).
        seconds: how long the check took.
    """

    view: str
    version: int
    equal: bool
    rows: int
    missing: tuple[tuple[Any, ...], ...] = ()
    unexpected: tuple[tuple[Any, ...], ...] = ()
    seconds: float = 0.0

    def __bool__(self) -> bool:
        return self.equal

    def __str__(self) -> str:
        if self.equal:
            equal = f"{self.rows:,} rows, equal to a recompute ({self.seconds:.2f} s)"
            return f"{self.view} at version {self.version}: {equal}"
        lines = [f"{self.view} at version {self.version} DIFFERS from a recompute:"]
        lines += [f"  missing     {row}" for row in self.missing]
        lines += [f"  unexpected  {row}" for row in self.unexpected]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; rows as text."""
        return {
            **asdict(self),
            "missing": [str(r) for r in self.missing],
            "unexpected": [str(r) for r in self.unexpected],
        }

    def _repr_html_(self) -> str:
        return Report(self)._repr_html_()

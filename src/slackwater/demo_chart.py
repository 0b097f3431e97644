"""The demo's picture: seconds of a refresh against a recompute, and bytes of state against the budget."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

if TYPE_CHECKING:
    from slackwater.demo import Round

FILE_NAME = "slackwater-demo.png"
REFRESH, RECOMPUTE, BUDGET = "#0b7a75", "#c9cba3", "#b3001b"
VIEW_COLORS = ("#0b7a75", "#5aa9a5", "#a9d6d2")


def draw(rounds: Sequence[Round], budget: int, place: Path) -> Path:
    """Save the picture, in a directory or under the name of a .png file; gives its path."""
    path = place if place.suffix.lower() == ".png" else place / FILE_NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(13, 5), layout="constrained")
    FigureCanvasAgg(figure)  # draws without a screen, whatever backend the user has set
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    _seconds(left, rounds)
    _states(right, rounds, budget)
    figure.savefig(path, dpi=130)
    return path.absolute()


def _seconds(axes: Any, rounds: Sequence[Round]) -> None:
    bars = [(r, m) for r in rounds for m in r.measures]
    # A gap between rounds.
    at = [i + 0.6 * (i // len(rounds[0].measures)) for i in range(len(bars))]
    axes.bar(
        [x - 0.2 for x in at], [m.refresh_seconds for _, m in bars], 0.4, label="refresh (Slackwater)", color=REFRESH
    )
    axes.bar(
        [x + 0.2 for x in at],
        [m.recompute_seconds for _, m in bars],
        0.4,
        label="recompute (plain Spark)",
        color=RECOMPUTE,
    )
    for x, (_, measure) in zip(at, bars, strict=True):
        top = max(measure.refresh_seconds, measure.recompute_seconds)
        axes.annotate(f"{measure.ratio:.1f}×", (x, top), ha="center", va="bottom", fontsize=9)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_ylabel("seconds (log scale)")
    axes.set_xticks(at, [f"{m.view.replace('_', chr(10))}\n+{r.label}" for r, m in bars], fontsize=8)
    axes.set_title("A refresh against a recompute, as late rows arrive")
    axes.margins(y=0.15)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)


def _states(axes: Any, rounds: Sequence[Round], budget: int) -> None:
    labels = [f"+{r.label}" for r in rounds]
    below = [0.0] * len(rounds)
    for view, color in zip(rounds[0].state_bytes, VIEW_COLORS, strict=True):
        heights = [r.state_bytes[view] / 1e6 for r in rounds]
        axes.bar(labels, heights, 0.5, bottom=below, label=view, color=color)
        below = [a + b for a, b in zip(below, heights, strict=True)]
    axes.axhline(budget / 1e6, color=BUDGET, linestyle="--", label="budget")
    axes.set_ylabel("MB")
    axes.set_xlabel("after each round")
    axes.set_title("States against the budget")
    axes.margins(y=0.15)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)

"""The benchmark's table and picture."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
from rich.console import Console
from rich.table import Table

from slackwater.settings import show_bytes

if TYPE_CHECKING:
    from slackwater.bench.tpch import Measured

LABELS = ("1%", "0.1%")


def print_table(results: Mapping[int, Measured], summary: Mapping[str, float], console: Console) -> None:
    """Print a row a query, and the summary below."""
    table = Table(title="TPC-H: refresh against recompute (seconds, medians)")
    for name in ("query", "plain", "initial", "initial/plain"):
        table.add_column(name, justify="right")
    for label in LABELS:
        for name in (f"refresh {label}", f"recompute {label}", "ratio"):
            table.add_column(name, justify="right")
    table.add_column("states", justify="right")
    table.add_column("verified")
    for query, m in results.items():
        plain, initial = statistics.median(m.plain), statistics.median(m.initial)
        cells = [f"Q{query}", f"{plain:.2f}", f"{initial:.2f}", f"{initial / plain:.2f}"]
        for label in LABELS:
            refresh, recompute = m.median(label)
            cells += [f"{refresh:.3f}", f"{recompute:.3f}", f"{recompute / refresh:.1f}x"]
        table.add_row(*cells, show_bytes(m.state_bytes), "yes" if m.verified else "NO")
    console.print(table)
    for query, m in results.items():
        for label in LABELS:
            if others := m.otherwise(label):
                modes = ", ".join(others)
                console.print(f"  Q{query}, {label}: {len(others)} of {len(m.modes[label])} not incremental ({modes})")
    for name, value in summary.items():
        console.print(f"  {name}: {value:.2f}")


def save_chart(results: Mapping[int, Measured], path: Path, scale: float) -> None:
    """Draw refresh and recompute side by side for each query."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(LABELS), figsize=(12, 4.5), sharey=True)
    for axis, label in zip(axes, LABELS, strict=True):
        names = [f"Q{q}" for q in results]
        medians = [m.median(label) for m in results.values()]
        at = range(len(names))
        axis.bar([x - 0.2 for x in at], [b for _, b in medians], 0.4, label="recompute", color="#b8b8b8")
        axis.bar([x + 0.2 for x in at], [a for a, _ in medians], 0.4, label="refresh", color="#1f77b4")
        for x, (refresh, recompute) in zip(at, medians, strict=True):
            axis.annotate(
                f"{recompute / refresh:.1f}x", (x, max(refresh, recompute)), ha="center", va="bottom", fontsize=8
            )
        axis.set_xticks(list(at), names)
        axis.set_title(f"delta of {label}, TPC-H SF{scale:g}")
    axes[0].set_ylabel("seconds (median)")
    axes[0].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)

"""Reports as tables for people."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from slackwater.arrivals.scoring import percent_off, remark
from slackwater.execution.history import not_taken, ratio_text
from slackwater.settings import show_bytes

if TYPE_CHECKING:
    from slackwater.arrivals.scoring import ForecastReport
    from slackwater.cli_output import Output
    from slackwater.execution.history import History
    from slackwater.execution.reports import Verification

Report = Mapping[str, Any]


def refreshes(output: Output, reports: Sequence[Report]) -> None:
    """What refreshes did."""
    if not reports:
        output.line("Nothing was refreshed.")
        return
    columns = ("view", "how", "version", "#rows in", "#rows out", "#seconds", "#states", "why")
    output.table(columns, ([r["view"], *_refresh(r)] for r in reports))
    budget = reports[-1]["budget_bytes"]
    output.line(f"States may occupy {show_bytes(budget)}.")


def history(output: Output, found: History) -> None:
    """The refreshes of one view, and how far off their predictions were."""
    if not found:
        output.line(f"View {found.view} was never refreshed.")
        return
    columns = ("when", "how", "version", "#rows in", "#rows out", "#seconds", "#predicted", "#actual ÷ predicted")
    output.table((*columns, "#states", "why"), map(_past_refresh, found), title=f"Refreshes of {found.view}")
    for line in found.error_lines():
        output.line(line)


def _past_refresh(report: Report) -> list[str]:
    """What a refresh did, beside what it was thought to take and could have done instead."""
    *done, states, why = _refresh(report)
    predicted = report.get("predicted_seconds", 0.0)
    shown = f"{predicted:.2f}" if predicted else ""
    return [_when(report["at"]), *done, shown, ratio_text(report), states, "\n".join((why, *not_taken(report)))]


def _refresh(report: Report) -> list[str]:
    """The cells that tables of refreshes share."""
    return [
        report["mode"],
        f"{report['from_version']} → {report['to_version']}",
        f"{sum(report['rows_in'].values()):,}",
        f"+{report['rows_inserted']:,} −{report['rows_deleted']:,}",
        f"{report['seconds'].get('total', 0.0):.2f}",
        show_bytes(report["state_bytes"]),
        report["reason"],
    ]


def forecasts(output: Output, found: ForecastReport) -> None:
    """What was expected and what came."""
    if not found:
        output.line(f"Nothing was forecast for view {found.view} yet: slackwater refresh")
        return
    columns = ("made", "table", "kind", "#rows", "#low", "#high", "#came", "#error", "remark")
    output.table(columns, map(_forecast, found), title=f"Forecasts of {found.view} ({found.kind})")
    for line in found.closing_lines():
        output.line(line)


def _forecast(row: Report) -> list[str]:
    came = "" if row["actual"] is None else f"{row['actual']:,}"
    rows = (f"{row[name]:,.0f}" for name in ("rows", "low", "high"))
    return [_when(row["made_at"]), row["table"], row["kind"], *rows, came, percent_off(row), remark(row)]


def rates(output: Output, found: Report) -> None:
    """What work costs, as it was measured."""
    output.table(("work", "#seconds"), ((name, f"{n:.3g}") for name, n in found.items() if name != "cluster"))
    output.line(f"These go for {found['cluster']}.")


def status(output: Output, found: Report) -> None:
    """What a warehouse holds."""
    output.line(f"Warehouse {found['warehouse']} at version {found['version']}")
    output.line(f"States: {show_bytes(found['state_bytes'])} of the budget of {show_bytes(found['budget_bytes'])}")
    if found["tables"]:
        output.table(("table", "#rows", "key", "complete", "#segments"), (_table(t) for t in found["tables"]))
    else:
        output.line("No tables yet: slackwater create-table")
    if found["views"]:
        columns = ("view", "#version", "#rows to come", "reads", "incremental", "#states", "refreshed", "#seconds")
        output.table((*columns, "policy", "due"), ([*_view(v), v["policy"], _due(v)] for v in found["views"]))
    else:
        output.line("No views yet: slackwater create-view")


def _table(table: Report) -> list[object]:
    return [table["name"], f"{table['rows']:,}", ", ".join(table["key"]), _yes(table["complete"]), table["segments"]]


def _view(view: Report) -> list[object]:
    reads, incremental = ", ".join(view["tables"]), _yes(view["incremental"])
    cells = [view["name"], view["version"], f"{view['pending_rows']:,}", reads, incremental]
    last = view["last_refresh"]
    if last is None:
        return [*cells, "", "never", ""]
    return [*cells, show_bytes(last["state_bytes"]), _when(last["at"]), f"{last['seconds'].get('total', 0.0):.2f}"]


def _due(view: Report) -> str:
    if view["due"]:
        return f"now: {view['due_reason']}"
    return _when(view["due_at"]) if view["due_at"] is not None else view["due_reason"]


def verifications(output: Output, found: Sequence[Verification], empty: Sequence[str]) -> None:
    """Whether results are what a recompute gives, and the first rows that are not."""
    if found:
        columns = ("view", "#version", "#rows", "against a recompute", "#seconds")
        output.table(columns, (_verification(v) for v in found))
    for verification in found:
        if not verification.equal:
            output.line(str(verification))
    for name in empty:
        output.line(f"View {name} has no result yet: slackwater refresh")
    if not found and not empty:
        output.line("There are no views to verify.")


def _verification(found: Verification) -> list[object]:
    verdict = "✓ equal" if found.equal else "✗ DIFFERS"
    return [found.view, found.version, f"{found.rows:,}", verdict, f"{found.seconds:.2f}"]


def _when(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def _yes(value: bool) -> str:
    return "yes" if value else ""

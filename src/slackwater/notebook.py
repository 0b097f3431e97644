"""An engine, a table and a view as a notebook shows them: what the catalog says, as small tables. Starts no Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from slackwater.errors import SlackwaterError
from slackwater.execution.reports import Report, table_html
from slackwater.settings import show_bytes

if TYPE_CHECKING:
    from slackwater.engine import Engine
    from slackwater.table import Table
    from slackwater.view import View


def engine_html(engine: Engine) -> str:
    """The warehouse, its tables and its views, a row each."""
    return _shown(lambda: _engine(engine), f"Engine({str(engine.path)!r})")


def base_table_html(table: Table) -> str:
    """A table: what it is called, how many rows it has, and its columns."""
    return _shown(lambda: _base_table(table), f"Table({table._name!r})")


def view_html(view: View) -> str:
    """A view: its query, where it stands, and what it waits for."""
    return _shown(lambda: _facts(_view(view)), repr(view))


def _shown(make: Callable[[], str], otherwise: str) -> str:
    """What there is to show, or why there is nothing: what was dropped or closed still has to be shown somehow."""
    try:
        return make()
    except SlackwaterError as error:
        return Report(f"{otherwise}: {error.message}")._repr_html_()


def _engine(engine: Engine) -> str:
    found = engine.status()
    states = f"{show_bytes(found['state_bytes'])} of {show_bytes(found['budget_bytes'])}"
    tables, views = found["tables"], found["views"]
    shown = [_facts({"warehouse": found["warehouse"], "version": found["version"], "states": states})]
    if tables:
        shown.append(table_html({
            "table": [t["name"] for t in tables],
            "rows": [f"{t['rows']:,}" for t in tables],
            "key": [", ".join(t["key"]) for t in tables],
            "complete": [_yes(t["complete"]) for t in tables],
        }))  # fmt: skip
    if views:
        shown.append(table_html({
            "view": [v["name"] for v in views],
            "version": [v["version"] for v in views],
            "reads": [", ".join(v["tables"]) for v in views],
            "rows waiting": [f"{v['pending_rows']:,}" for v in views],
            "states": [show_bytes(v["state_bytes"]) for v in views],
            "incremental": [_yes(v["incremental"]) for v in views],
            "policy": [v["policy"] for v in views],
        }))  # fmt: skip
    return "".join(shown)


def _base_table(table: Table) -> str:
    facts = _facts({"table": table.name, "rows": f"{table.count():,}", "complete": _yes(table.complete)})
    columns = {
        "column": [field.name for field in table.schema],
        "type": [field.dataType.simpleString() for field in table.schema],
        "key": [_yes(field.name in table.key) for field in table.schema],
    }
    return facts + table_html(columns)


def _view(view: View) -> Mapping[str, object]:
    view._check_alive()
    found, last = view.status(), view.history(limit=1)
    columns = zip(view.columns, view.plan.schema, strict=True)
    return {
        "view": view.name,
        "version": view.version,
        "query": view.sql or "",
        "columns": ", ".join(f"{name} {field.dtype}" for name, field in columns),
        "reads": ", ".join(found["tables"]),
        "rows waiting": f"{found['pending_rows']:,}",
        "policy": f"{found['policy']}, {'due' if found['due'] else 'not due'}: {found['due_reason']}",
        "strategy": view.strategy,
        "states": f"{show_bytes(found['state_bytes'])} of {show_bytes(view.budget)}",
        "last refresh": f"{last[0]['mode']}, {last[0]['seconds']['total']:.3f} s" if last else "",
    }


def _facts(facts: Mapping[str, object]) -> str:
    return table_html({"": list(facts), "value": list(facts.values())})


def _yes(true: bool) -> str:
    return "yes" if true else ""

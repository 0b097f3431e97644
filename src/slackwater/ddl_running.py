"""Runs the statements of `ddl` on an engine. Every statement gives a report: text, HTML and plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slackwater import ddl
from slackwater.arrivals.learned import Learned
from slackwater.arrivals.outlook import check_forecaster
from slackwater.arrivals.policies import manual
from slackwater.declared import Declared, options_of, renamed
from slackwater.eligibility import Eligibility, eligibility, refuse_contradiction, refused, require_incremental
from slackwater.errors import QueryRefused, SlackwaterError, ViewError
from slackwater.execution.leaves import inputs_of, refuse_cycle, refuse_while_read, tables_read
from slackwater.execution.reports import Refresh, Report, table_html
from slackwater.execution.sessions import active_session_kept
from slackwater.schedules import policy_of
from slackwater.settings import pinned_settings
from slackwater.storage.rows import check_name

if TYPE_CHECKING:
    from slackwater.capture import Captured
    from slackwater.engine import Engine
    from slackwater.replacing import Replacement
    from slackwater.view import View


@dataclass(frozen=True, slots=True)
class Done:
    """What CREATE, ALTER or DROP did.

    Attributes:
        view: the view's name; the new one where it was renamed.
        outcome: created, replaced, unchanged, altered, renamed, dropped, or skipped where IF [NOT] EXISTS said so.
        text: the same in a sentence.
        refresh: the report of the first refresh, where there was one.
        replacement: what became of the states of a view that was replaced.
    """

    view: str
    outcome: str
    text: str
    refresh: dict[str, Any] | None = None
    replacement: Replacement | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values for programs."""
        replacement = None if self.replacement is None else self.replacement.to_json()
        return {"view": self.view, "outcome": self.outcome, "text": self.text, "refresh": self.refresh,
                "replacement": replacement}  # fmt: skip

    def __str__(self) -> str:
        parts = [self.text]
        if self.replacement is not None and not self.replacement.same_query:
            parts.append(str(self.replacement))
        return "\n".join(parts)

    def _repr_html_(self) -> str:
        return Report(self)._repr_html_()


class Listing(list[dict[str, Any]]):
    """Rows of SHOW and DESCRIBE; a table in a notebook."""

    def to_json(self) -> list[dict[str, Any]]:
        """Plain values for programs."""
        return list(self)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self[0]) if self else ()

    def __str__(self) -> str:
        if not self:
            return "there are no materialized views"
        texts = [self.columns, *(tuple(str(row[c]) for c in self.columns) for row in self)]
        widths = [max(len(row[i]) for row in texts) for i in range(len(self.columns))]
        return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in texts)

    def _repr_html_(self) -> str:
        return table_html({c: [row[c] for row in self] for c in self.columns})


@dataclass(frozen=True, slots=True)
class Explained:
    """What a CREATE would do, or what would become of a query.

    Attributes:
        eligibility: how each operator would be refreshed.
        obstacle: why the statement would be refused nevertheless; None where it would not.
        replacement: what would become of the states of a view that it replaces.
    """

    eligibility: Eligibility
    obstacle: SlackwaterError | None = None
    replacement: Replacement | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values for programs."""
        return {
            **self.eligibility.to_json(),
            "obstacle": None if self.obstacle is None else self.obstacle.to_dict(),
            "replacement": None if self.replacement is None else self.replacement.to_json(),
        }

    def __str__(self) -> str:
        parts = [str(self.eligibility)]
        parts += [str(self.replacement)] if self.replacement is not None else []
        parts += [f"would be refused: {self.obstacle}"] if self.obstacle is not None else []
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        return Report(self)._repr_html_()


Outcome = Done | Refresh | Listing | Explained | Report
"""What `Engine.sql` gives."""


def run_statement(engine: Engine, statement: ddl.Statement, *, discard_states: bool = False) -> Outcome:
    """Run one statement."""
    match statement:
        case ddl.CreateView():
            return _create(engine, statement, discard_states)
        case ddl.RefreshView():
            return _view(engine, statement.name).refresh(full=statement.full)
        case ddl.DropView():
            return _drop(engine, statement)
        case ddl.AlterSchedule():
            return _alter(engine, statement)
        case ddl.RenameView():
            return _rename(engine, statement)
        case ddl.ShowViews():
            return Listing(_shown(view) for view in engine.views())
        case ddl.DescribeView():
            return _described(_view(engine, statement.name))
        case ddl.ExplainView():
            return _view(engine, statement.name).explain()
        case ddl.ExplainCreate():
            return _explained(engine, statement.create)


def _find(engine: Engine, name: str) -> View | None:
    """A view by its name in any case, as SQL takes names."""
    found = [r.name for r in engine.catalog.views() if r.name.casefold() == name.casefold()]
    return engine.view(found[0]) if found else None


def _view(engine: Engine, name: str) -> View:
    return _find(engine, name) or engine.view(name)


def _create(engine: Engine, create: ddl.CreateView, discard_states: bool) -> Done:
    old = _find(engine, create.name)
    if old is not None and create.if_not_exists:
        return Done(old.name, "skipped", f"there is a view {old.name} already; it was left as it is")
    view = engine.create_view(
        create.name, create.query, strategy=create.strategy, strict=create.strict, columns=create.columns,
        comment=create.comment, memory_budget=create.memory_budget, replace=create.replace,
        discard_states=discard_states or create.discard_states,
        schedule=create.schedule.text if create.schedule is not None else "",
    )  # fmt: skip
    replacement = view.replacement if old is not None else None
    if replacement is not None and replacement.same_query:
        outcome = "altered" if replacement.altered else "unchanged"
        return Done(view.name, outcome, str(replacement), replacement=replacement)
    outcome = "created" if replacement is None else "replaced"
    report = dict(view.history(limit=1)[0])
    text = f"view {view.name} was {outcome} at version {view.version}, with {report['rows_inserted']:,} rows"
    return Done(view.name, outcome, text, report, replacement)


def _drop(engine: Engine, drop: ddl.DropView) -> Done:
    view = _find(engine, drop.name)
    if view is None and drop.if_exists:
        return Done(drop.name, "skipped", f"there is no view {drop.name}")
    view = view or engine.view(drop.name)
    view.drop()
    return Done(view.name, "dropped", f"view {view.name} was dropped")


def _alter(engine: Engine, alter: ddl.AlterSchedule) -> Done:
    view = _view(engine, alter.name)
    # A policy that was set in Python stands where a schedule would.
    present = view.declared.schedule or (str(view.policy) if view.policy != manual() else "")
    if alter.action == "ADD" and present:
        raise ViewError(
            "SCHEDULE_EXISTS", f"view {view.name!r} is refreshed {present} already", "use ALTER SCHEDULE to change that"
        )
    if alter.action != "ADD" and not present:
        raise ViewError("SCHEDULE_MISSING", f"view {view.name!r} has no schedule", "use ADD SCHEDULE to give it one")
    view.set_schedule(alter.schedule.text if alter.schedule is not None else "")
    now = f"is refreshed {alter.schedule.text}" if alter.schedule is not None else "is refreshed on request"
    return Done(view.name, "altered", f"view {view.name} {now}")


def _rename(engine: Engine, rename: ddl.RenameView) -> Done:
    view = _view(engine, rename.name)
    old = view.name
    view.rename(rename.new_name)
    return Done(view.name, "renamed", f"view {old} is called {view.name} now")


POLICIES = {"auto": "AUTO", "incremental": "INCREMENTAL", "rebatch": "FULL"}
"""SQL's words for our strategies."""


def _policy(view: View) -> str:
    return POLICIES.get(view.strategy, view.strategy) + " STRICT" * view.declared.strict


def _shown(view: View) -> dict[str, Any]:
    status = view.status()
    return {
        "name": view.name,
        "version": view.version,
        "pending_rows": status["pending_rows"],
        "refresh_policy": _policy(view),
        "schedule": view.declared.schedule,
        "verdict": eligibility(view.plan).verdict,
        "state_bytes": view.state_bytes(),
        "comment": view.declared.comment,
    }


def _described(view: View) -> Listing:
    """Columns first, then facts, as DESCRIBE … EXTENDED lists them."""
    types = zip(view.columns, view.plan.schema, strict=True)
    rows = [{"col_name": name, "data_type": field.dtype} for name, field in types]
    last = view.history(limit=1)
    facts = {
        "Name": view.name,
        "Comment": view.declared.comment,
        "Refresh policy": _policy(view),
        "Schedule": view.declared.schedule,
        "Memory budget": view.budget,
        "Version": view.version,
        "Last refresh": f"{last[0]['mode']}: {last[0]['reason']}" if last else "never",
        "Eligibility": eligibility(view.plan).verdict,
        "Reads": ", ".join(view.inputs),
        "State bytes": view.state_bytes(),
        "Query": view.sql or "(a DataFrame)",
    }
    return Listing([*rows, *({"col_name": f"# {name}", "data_type": str(value)} for name, value in facts.items())])


def _explained(engine: Engine, create: ddl.CreateView) -> Explained:
    with active_session_kept():
        settings = pinned_settings(engine.spark)
        try:
            captured = engine.capture(create.query, settings)
        except QueryRefused as error:
            return Explained(refused(error))
        found = eligibility(captured.plan)
        try:
            return Explained(found, None, _checked(engine, create, captured, settings))
        except SlackwaterError as error:
            return Explained(found, error)


def _checked(
    engine: Engine, create: ddl.CreateView, captured: Captured, settings: Mapping[str, str]
) -> Replacement | None:
    """What CREATE would replace, or the error that it would raise, looked for in the same order."""
    from slackwater.replacing import plan_replacement

    old = _find(engine, create.name)
    if old is not None and create.if_not_exists:
        return None
    schedule = create.schedule.text if create.schedule is not None else ""
    declared = Declared.of(create.comment, create.strict, create.memory_budget, schedule)
    policy = policy_of(create.schedule)
    captured = renamed(captured, create.columns)
    refuse_cycle(engine, create.name, captured.plan)
    if create.strict:
        require_incremental(eligibility(captured.plan), create.name)
        refuse_contradiction(create.name, captured.plan, create.strategy, declared.budget_bytes)
    if old is None or not create.replace:
        _refuse_taken(engine, create)
        return None
    read = tables_read(engine, inputs_of(captured.plan))
    forecaster = check_forecaster(Learned(), engine.catalog.tables(), read)
    functions = engine.functions.records(captured.functions)
    options = options_of(create.strategy, declared, policy, forecaster, functions)
    replacement = plan_replacement(engine, old, captured, settings, options)[1]
    if not replacement.same_query:
        refuse_while_read(old, "given another query")
    return replacement


def _refuse_taken(engine: Engine, create: ddl.CreateView) -> None:
    """Refuse a name that CREATE would refuse; a query alone has none."""
    if not create.name:
        return
    check_name(create.name)
    taken = {"view": [v.name for v in engine.catalog.views()], "table": [t.name for t in engine.catalog.tables()]}
    for kind, names in taken.items():
        for name in names:
            if name.casefold() == create.name.casefold():
                advice = "say OR REPLACE, or choose another name" if kind == "view" else "choose another name"
                raise ViewError("VIEW_EXISTS", f"there is a {kind} {name!r} already", advice)

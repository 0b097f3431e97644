"""The commands that keep views fresh by their policies: `slackwater run` and `slackwater set-policy`."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from slackwater import cli_tables
from slackwater.cli_session import EXIT_CODES, Session, exit_code, with_session

if TYPE_CHECKING:
    from slackwater.arrivals.ticks import Tick
    from slackwater.cli_output import Output
    from slackwater.engine import Engine

WAREHOUSE = click.argument("warehouse", type=click.Path(path_type=Path))


@click.command("run", epilog=EXIT_CODES)
@WAREHOUSE
@click.option("--once", is_flag=True, help="Look once, refresh what is due, and end.")
@click.option("--until-complete", is_flag=True, help="End when all tables are complete and all views are fresh.")
@click.option("--poll", metavar="DURATION", default="1s", show_default=True, help="How often to look for arrivals.")
@with_session
def run(session: Session, warehouse: Path, once: bool, until_complete: bool, poll: str) -> None:
    """Keep views fresh, each by its policy.

    Polls landing directories and refreshes what is due, until Ctrl-C. A view that fails does not keep the others from
    their turn, and is tried again; with --once the exit code is then 1.
    """
    if once and until_complete:
        raise click.UsageError("--once and --until-complete exclude each other")
    with session.engine(warehouse) as engine:
        if any(view.policy.can_fire for view in engine.views()) or _has_sources(engine):
            session.start_spark(engine)
        if once:
            _once(session, engine)
        else:
            _until_ended(session, engine, until_complete, poll)


def _has_sources(engine: Engine) -> bool:
    return any(engine.catalog.sources(table.id) for table in engine.catalog.tables() if not table.complete)


def _once(session: Session, engine: Engine) -> None:
    with session.output.working("looking for what is due"):
        tick = engine.tick()
    found = tick.to_dict()
    session.output.document({**found, **({"error": found["failures"][0]} if tick.failures else {})})
    for poll in tick.polls:
        session.output.line(str(poll))
    cli_tables.refreshes(session.output, [report.to_dict() for report in tick])
    for note in tick.notes:
        session.output.note(note)
    for failure in tick.failures:
        session.output.complaint(failure.error)
    if tick.failures:
        raise click.exceptions.Exit(exit_code(tick.failures[0].error))


@dataclass(slots=True)
class _Tally:
    """What a run has done so far; a run may be long, so reports are shown and then counted."""

    output: Output
    ticks: int = 0
    refreshes: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    rows: int = 0

    def take(self, tick: Tick) -> None:
        self.ticks += 1
        self.refreshes.update(report.view for report in tick)
        self.failures.update(failure.name for failure in tick.failures)
        self.rows += sum(poll.rows for poll in tick.polls)
        if not tick.idle:
            self.output.line(str(tick))


def _until_ended(session: Session, engine: Engine, until_complete: bool, poll: str) -> None:
    session.output.note("running; Ctrl-C ends it")
    tally = _Tally(session.output)
    with _ended_by_sigterm(engine):
        engine.run(until_complete=until_complete, poll=poll, on_tick=tally.take)
    session.output.document(
        {
            "ticks": tally.ticks,
            "refreshes": dict(tally.refreshes),
            "failures": dict(tally.failures),
            "rows_from_sources": tally.rows,
        }
    )
    session.output.line(f"Ended. Refreshes: {tally.refreshes.total():,}; looks: {tally.ticks:,}.")


@contextmanager
def _ended_by_sigterm(engine: Engine) -> Iterator[None]:
    """What a service is ended with counts as a wish to stop, as far as this thread may say so."""

    def ended(number: int, frame: FrameType | None) -> None:
        if not engine.running:  # it is about to begin, and would not hear of it
            raise KeyboardInterrupt
        engine.stop()

    try:
        before = signal.signal(signal.SIGTERM, ended)
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@click.command("set-policy", epilog=EXIT_CODES)
@WAREHOUSE
@click.argument("view")
@click.argument("policy")
@with_session
def set_policy(session: Session, warehouse: Path, view: str, policy: str) -> None:
    """Change when a view is refreshed.

    POLICY is, for example, "every 60s | rows 10000", "on_arrival", "cron '0 3 * * *' in Europe/Berlin", "target_lag 5m"
    or "manual".
    """
    with session.engine(warehouse) as engine:
        found = engine.view(view)
        found.set_policy(policy)
        text, verdict = str(found.policy), found.due()
    session.output.document({"view": view, "policy": text, "due": verdict.due, "due_at": verdict.at})
    session.output.line(f"View {view} is refreshed by the policy: {text}")

"""The commands that show what is expected and what it would cost: `what-if`, `forecasts` and `calibrate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from slackwater import cli_tables
from slackwater.cli_session import EXIT_CODES, Session, with_session
from slackwater.settings import parse_bytes

if TYPE_CHECKING:
    from slackwater.execution.what_if import WhatIf

WAREHOUSE = click.argument("warehouse", type=click.Path(path_type=Path))


@click.command("what-if", epilog=EXIT_CODES)
@WAREHOUSE
@click.argument("view")
@click.option("--budget", metavar="SIZE", help="The budget to think of; that of --memory-budget if not given.")
@click.option("--forecast", "told", metavar="TABLE=ROWS", multiple=True,
              help="What the next delta brings; may be repeated. The view's own forecast if not given.")  # fmt: skip
@click.option("--picture", type=click.Path(dir_okay=False, path_type=Path),
              help="Draw the cost of a refresh against the budget into this file.")  # fmt: skip
@with_session
def what_if(
    session: Session, warehouse: Path, view: str, budget: str | None, told: tuple[str, ...], picture: Path | None
) -> None:
    """Plan for another budget or forecast.

    Tells what a view would keep and what its next refresh would take. Runs no query and changes nothing.
    """
    forecast = dict(map(_rows_of, told)) or None
    size = None if budget is None else parse_bytes(budget)  # before Spark is started for nothing
    with session.engine(warehouse, read_only=True) as engine:
        asked = engine.view(view)
        engine.views()  # the states of the others take their part of the budget
        session.start_spark(engine)
        found = asked.what_if(budget=size, forecast=forecast)
    document = found.to_dict()
    if picture is not None:
        document["picture"] = str(_saved(found, picture))
    session.output.document(document)
    session.output.line(str(found))
    if picture is not None:
        session.output.line(f"The picture is in {document['picture']}.")


def _saved(found: WhatIf, picture: Path) -> Path:
    try:
        return found.save_picture(picture).absolute()
    except (OSError, ValueError) as error:  # no such directory, or no kind of picture
        raise click.BadParameter(str(error), param_hint="--picture") from error


def _rows_of(text: str) -> tuple[str, float]:
    """What one --forecast says; whether the number can be meant is for the planner to judge."""
    table, equals, rows = text.rpartition("=")
    try:
        if equals:
            return table, float(rows)
    except ValueError:
        pass
    raise click.BadParameter(f"{text!r} is not TABLE=ROWS", param_hint="--forecast")


@click.command("forecasts", epilog=EXIT_CODES)
@WAREHOUSE
@click.argument("view")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Show at most this many.")
@with_session
def forecasts(session: Session, warehouse: Path, view: str, limit: int) -> None:
    """Show what was expected of each table and what came, the latest first.

    At the end: how far off the forecasts were, and which are demoted. Starts no Spark.
    """
    with session.engine(warehouse, read_only=True) as engine:
        found = engine.view(view).forecasts(limit=limit)
    document = {"view": view, "kind": found.kind, "forecasts": list(found), "errors": found.errors(),
                "demoted": found.notes}  # fmt: skip
    session.output.document(document)
    cli_tables.forecasts(session.output, found)


@click.command("calibrate", epilog=EXIT_CODES)
@WAREHOUSE
@with_session
def calibrate(session: Session, warehouse: Path) -> None:
    """Measure what work costs on this Spark.

    Takes some ten seconds. What is found is kept for this cluster, and choices of states go by it from then on.
    """
    with session.engine(warehouse) as engine:
        session.start_spark(engine)
        with session.output.working("measuring what work costs"):
            rates = engine.calibrate().to_dict()
    session.output.document({"rates": rates})
    cli_tables.rates(session.output, rates)

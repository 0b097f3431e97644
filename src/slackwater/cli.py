"""The command `slackwater`: a warehouse from the shell.

Exit codes:
    0    fine
    1    an error with a code, printed as `error [CODE] message` on stderr, with what to do about it
    2    the command line was wrong
    3    `verify` (or the demo) found a result that differs from a recompute
    4    another writer has the warehouse open
    130  interrupted

With `--json`, every command prints one JSON document on stdout and nothing else there; an error with a code is
{"error": {...}}. A wrong command line (2) is click's to tell: in words on stderr, without a document.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from slackwater import __version__, cli_tables
from slackwater.arrivals.policy_text import parse_policy
from slackwater.cli_demo import bench, demo
from slackwater.cli_reasons import calibrate, forecasts, what_if
from slackwater.cli_run import run, set_policy
from slackwater.cli_session import EXIT_CODES, ExitCode, Session, exit_code, with_session
from slackwater.cli_sql import check, sql
from slackwater.errors import SlackwaterError

if TYPE_CHECKING:
    from slackwater.engine import Engine
    from slackwater.view import View

WAREHOUSE = click.argument("warehouse", type=click.Path(path_type=Path))


@click.group(epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="slackwater")
def cli() -> None:
    """Keep SQL queries fresh on Apache Spark while their data arrives.

    A WAREHOUSE is a directory with tables and views. A view is a query whose result is kept: `refresh` brings it up to
    date, from the changes alone where that is faster. See it work first: slackwater demo
    """


for _command in (demo, bench, calibrate, check, forecasts, run, set_policy, sql, what_if):
    cli.add_command(_command)


def command(name: str) -> Callable[[Callable[..., None]], click.Command]:
    """A subcommand with the shared options, and with the exit codes in its help."""

    def register(function: Callable[..., None]) -> click.Command:
        return cli.command(name, epilog=EXIT_CODES)(with_session(function))

    return register


# --- making ------------------------------------------------------------------------------------------


@command("init")
@WAREHOUSE
def init(session: Session, warehouse: Path) -> None:
    """Create a warehouse.

    One that is there already is left as it is.
    """
    with session.engine(warehouse, create=True) as engine:
        path, version = engine.path, engine.catalog.version()
    session.output.document({"warehouse": str(path), "version": version})
    session.output.line(f"The warehouse {path} is ready, at version {version}.")


@command("create-table")
@WAREHOUSE
@click.argument("name")
@click.argument("ddl")
@click.option("--key", metavar="A,B", default="", help="The columns that tell rows apart.")
def create_table(session: Session, warehouse: Path, name: str, ddl: str, key: str) -> None:
    """Create a table.

    DDL names its columns and their types: "id BIGINT, name STRING, amount DECIMAL(12,2)".
    """
    columns = [column.strip() for column in key.split(",") if column.strip()]
    with session.engine(warehouse) as engine:
        session.start_spark(engine)
        table = engine.create_table(name, ddl, key=columns)
    session.output.document({"table": table.name, "schema": table.schema.simpleString(), "key": list(table.key)})
    session.output.line(f"Table {table.name} is there, with {len(table.schema)} columns.")


@command("create-view")
@WAREHOUSE
@click.argument("name")
@click.argument("query", metavar="SQL|@FILE")
@click.option(
    "--strategy",
    default="auto",
    show_default=True,
    help="auto, plain, incremental, higher_order, recycler, or rebatch to keep no states.",
)
@click.option(
    "--refresh",
    "policy",
    metavar="POLICY",
    default="manual",
    show_default=True,
    help='When `run` refreshes it: "every 60s | rows 10000", on_arrival, "cron \'0 3 * * *\'", "target_lag 5m".',
)
def create_view(session: Session, warehouse: Path, name: str, query: str, strategy: str, policy: str) -> None:
    """Create a view and compute its first result.

    @FILE reads the SQL from a file, @- from stdin.
    """
    parse_policy(policy)  # before Spark is started for nothing
    sql = _query_text(query)
    with session.engine(warehouse) as engine:
        session.start_spark(engine)
        with session.output.working(f"computing the first result of {name}"):
            view = engine.create_view(name, sql, strategy=strategy, refresh=policy)
        report = dict(view.history(limit=1)[0])
    session.output.document(
        {"view": view.name, "columns": list(view.columns), "policy": str(view.policy), "refresh": report}
    )
    cli_tables.refreshes(session.output, [report])


def _query_text(query: str) -> str:
    if not query.startswith("@"):
        return query
    try:
        with click.open_file(query[1:], encoding="utf-8") as file:
            return str(file.read())
    except (OSError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"cannot read {query[1:]}: {error}", param_hint="SQL|@FILE") from error


@command("load")
@WAREHOUSE
@click.argument("table")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(exists=True, path_type=Path))
def load(session: Session, warehouse: Path, table: str, files: tuple[Path, ...]) -> None:
    """Insert the rows of files into a table.

    Their names end in .parquet, .csv (with a header) or .json (one row a line). All of them together make one version,
    or none does.
    """
    with session.engine(warehouse) as engine:
        target = engine.table(table)
        before = target.count()
        session.start_spark(engine)
        from slackwater.cli_load import load_files

        with session.output.working(f"loading {len(files)} file{'s' * (len(files) > 1)} into {table}"):
            version = load_files(target, files, engine.spark)
        rows = target.count() - before
    session.output.document({"table": table, "rows": rows, "version": version, "files": [str(f) for f in files]})
    session.output.line(f"{rows:,} rows were inserted into {table}, at version {version}.")


# --- keeping fresh -----------------------------------------------------------------------------------


@command("refresh")
@WAREHOUSE
@click.argument("views", nargs=-1, metavar="[VIEW]...")
@click.option("--full", is_flag=True, help="Recompute, whatever the states could save.")
def refresh(session: Session, warehouse: Path, views: tuple[str, ...], full: bool) -> None:
    """Bring views up to date.

    All of them, if none is named. One that fails does not keep the others from it; the exit code is then 1.
    """
    reports, failures = [], []
    with session.engine(warehouse) as engine:
        chosen = _chosen(engine, views)
        if chosen:
            session.start_spark(engine)
        for view in session.output.each(chosen, "refreshing"):
            try:
                reports.append(view.refresh(full=full).to_dict())
            except SlackwaterError as error:
                failures.append((view.name, error))
    failed = [{"view": name, **failure.to_dict()} for name, failure in failures]
    session.output.document({"refreshes": reports, **({"failures": failed, "error": failed[0]} if failed else {})})
    cli_tables.refreshes(session.output, reports)
    for _, failure in failures:
        session.output.complaint(failure)
    if failures:
        raise click.exceptions.Exit(exit_code(failures[0][1]))


def _chosen(engine: Engine, names: tuple[str, ...]) -> list[View]:
    return [engine.view(name) for name in dict.fromkeys(names)] if names else engine.views()


@command("verify")
@WAREHOUSE
@click.argument("views", nargs=-1, metavar="[VIEW]...")
def verify(session: Session, warehouse: Path, views: tuple[str, ...]) -> None:
    """Compare results with a recompute.

    All of them, if none is named. Rows that differ are shown, and the exit code is then 3.
    """
    with session.engine(warehouse, read_only=True) as engine:
        chosen = _chosen(engine, views)
        empty = [] if views else [view.name for view in chosen if not view.version]
        checked = [view for view in chosen if view.name not in empty]
        if checked:
            session.start_spark(engine)
        found = [view.verify() for view in session.output.each(checked, "verifying")]
    equal = all(found)
    session.output.document({"equal": equal, "verifications": [v.to_dict() for v in found], "without_result": empty})
    cli_tables.verifications(session.output, found, empty)
    if not equal:
        raise click.exceptions.Exit(ExitCode.DIFFERENCE)


# --- looking -----------------------------------------------------------------------------------------


@command("status")
@WAREHOUSE
def status(session: Session, warehouse: Path) -> None:
    """Show tables, and views and what they wait for.

    Starts no Spark.
    """
    with session.engine(warehouse, read_only=True) as engine:
        found = engine.status()
        for view in found["views"]:
            last = engine.view(view["name"]).history(limit=1)
            view["last_refresh"] = dict(last[0]) if last else None
    session.output.document(found)
    cli_tables.status(session.output, found)


@command("explain")
@WAREHOUSE
@click.argument("view")
@click.option("--no-sql", is_flag=True, help="Leave out the SQL of the next refresh.")
def explain(session: Session, warehouse: Path, view: str, no_sql: bool) -> None:
    """Show a view's plan, and what is kept and why.

    The next refresh follows as SQL.
    """
    with session.engine(warehouse, read_only=True) as engine:
        found = engine.view(view)
        text = str(found.explain(sql=not no_sql))
    session.output.document({"view": view, "explain": text})
    session.output.line(text)


@command("history")
@WAREHOUSE
@click.argument("view")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Show at most this many.")
def history(session: Session, warehouse: Path, view: str, limit: int) -> None:
    """Show the refreshes of a view, the latest first.

    What each took stands beside what it should have taken, and below what could have been done instead. At the end: how
    far off the predictions were. Starts no Spark.
    """
    with session.engine(warehouse, read_only=True) as engine:
        found = engine.view(view).history(limit=limit)
    errors = {what: error.to_dict() for what, error in found.errors().items()}
    session.output.document({"view": view, "refreshes": list(found), "errors": errors})
    cli_tables.history(session.output, found)


def main() -> None:
    """The entry point."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without ✓ shows "?" instead of failing
    cli()


if __name__ == "__main__":
    main()

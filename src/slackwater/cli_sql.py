"""`slackwater sql` and `slackwater check`: statements and queries from the shell."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from slackwater.cli_session import EXIT_CODES, Session, exit_code, with_session
from slackwater.errors import SlackwaterError

if TYPE_CHECKING:
    from slackwater.ddl import Statement

WAREHOUSE = click.argument("warehouse", type=click.Path(path_type=Path))


@click.command("sql", epilog=EXIT_CODES)
@WAREHOUSE
@click.argument("statements", metavar="[SQL]", required=False)
@click.option(
    "-f", "--file", "script", type=click.File(encoding="utf-8"), help="Read the statements from a file; - is stdin."
)
@click.option("--yes", is_flag=True, help="Agree that CREATE OR REPLACE throws states away.")
@with_session
def sql(session: Session, warehouse: Path, statements: str | None, script: Any, yes: bool) -> None:
    """Run statements about materialized views.

    CREATE, REFRESH, ALTER, DROP, SHOW, DESCRIBE and EXPLAIN; several are parted by semicolons. All of them are read
    before the first one runs; the first that fails ends the run.
    """
    from slackwater.ddl import READING
    from slackwater.ddl_running import run_statement

    parsed = _parsed(_text(statements, script))
    reading = all(isinstance(statement, READING) for _, statement in parsed)
    results: list[dict[str, Any]] = []
    failure: SlackwaterError | None = None
    with session.engine(warehouse, read_only=reading) as engine:
        if _needs_spark(parsed):
            session.start_spark(engine)
        for text, statement in parsed:
            try:
                with session.output.working(_head(text)) if _takes_long(statement) else nullcontext():
                    result = run_statement(engine, statement, discard_states=yes)
            except SlackwaterError as error:
                failure = error
                break
            results.append({"statement": text, "result": _plain(result)})
            session.output.line(str(result))
    told = {"error": failure.to_dict()} if failure is not None else {}
    session.output.document({"results": results, **told})
    if failure is not None:
        session.output.complaint(failure)
        raise click.exceptions.Exit(exit_code(failure))


def _text(statements: str | None, script: Any) -> str:
    if (statements is None) == (script is None):
        raise click.UsageError("give either SQL or -f FILE")
    if statements is not None:
        return statements
    try:
        return str(script.read())
    except UnicodeDecodeError as error:
        raise click.BadParameter(f"cannot read {script.name}: {error}", param_hint="-f") from error


def _parsed(text: str) -> list[tuple[str, Statement]]:
    """Each statement with its text."""
    from slackwater.ddl import parse_all
    from slackwater.ddl_tokens import pieces

    texts = [text[piece.words[0].start : piece.end].strip() for piece in pieces(text)]
    return list(zip(texts, parse_all(text), strict=True))


def _needs_spark(parsed: list[tuple[str, Statement]]) -> bool:
    return any(_takes_long(statement) for _, statement in parsed)


def _takes_long(statement: Statement) -> bool:
    from slackwater.ddl import CreateView, ExplainCreate, RefreshView

    return isinstance(statement, CreateView | RefreshView | ExplainCreate)


def _head(text: str) -> str:
    """The beginning of a statement, on one line."""
    return " ".join(text.split())[:60].rstrip()


def _plain(result: Any) -> Any:
    """A report as plain values."""
    if hasattr(result, "to_json"):
        return result.to_json()
    return result.to_dict() if hasattr(result, "to_dict") else str(result)


@click.command("check", epilog=EXIT_CODES)
@WAREHOUSE
@click.argument("query", metavar="SQL")
@with_session
def check(session: Session, warehouse: Path, query: str) -> None:
    """Tell how a query would be refreshed as a view.

    Operator by operator: delta, merge, redo keys or recompute, and why. The exit code is 0 for any query that can be a
    view, and 1 for one that is refused.
    """
    with session.engine(warehouse, read_only=True) as engine:
        session.start_spark(engine)
        with session.output.working("checking the query"):
            found = engine.check(query)
    session.output.document(found.to_json())
    session.output.line(str(found))
    if found.refusal is not None:
        raise click.exceptions.Exit(exit_code(found.refusal))

"""The SQL that the engine understands: statements about materialized views, in the words that Databricks uses.

    CREATE [OR REPLACE] MATERIALIZED VIEW [IF NOT EXISTS] name [(column, …)]
        [COMMENT '…'] [REFRESH POLICY {AUTO | INCREMENTAL [STRICT] | FULL}]
        [SCHEDULE [REFRESH] {EVERY n unit | CRON '…' [AT TIME ZONE '…']}]
        [MEMORY BUDGET '512MB'] [DISCARD STATES]
        AS query
    REFRESH MATERIALIZED VIEW name [FULL]
    ALTER MATERIALIZED VIEW name {{ADD | ALTER} SCHEDULE … | DROP SCHEDULE | RENAME TO name}
    DROP MATERIALIZED VIEW [IF EXISTS] name
    SHOW MATERIALIZED VIEWS
    {DESCRIBE | DESC} MATERIALIZED VIEW name
    EXPLAIN {MATERIALIZED VIEW name | CREATE … | query}

Clauses may come in any order, each once. The query is handed on as it was written: parsing it is Spark's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slackwater.ddl_tokens import STRING, Cursor, Piece, pieces, refusal
from slackwater.errors import SlackwaterError
from slackwater.schedules import Schedule, read_schedule
from slackwater.settings import parse_bytes

ACCEPTED = (
    "CREATE, REFRESH, ALTER, DROP, SHOW, DESCRIBE and EXPLAIN for materialized views; tables are made and changed by "
    "create_table, insert and so on, queries over results are run on view.result()"
)
"""What to do instead of a statement that is not ours."""


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE MATERIALIZED VIEW.

    Attributes:
        name: the view's name.
        query: the text after AS.
        columns: names for its columns; empty for the query's own.
        comment: a remark.
        strategy: auto, incremental or rebatch, as `create_view` calls the policies AUTO, INCREMENTAL and FULL.
        strict: INCREMENTAL STRICT.
        schedule: when to refresh.
        memory_budget: what its states may occupy, in bytes.
        replace: OR REPLACE.
        if_not_exists: leave a view of that name as it is.
        discard_states: DISCARD STATES: replacing may throw states away.
    """

    name: str
    query: str
    columns: tuple[str, ...] = ()
    comment: str = ""
    strategy: str = "auto"
    strict: bool = False
    schedule: Schedule | None = None
    memory_budget: int | None = None
    replace: bool = False
    if_not_exists: bool = False
    discard_states: bool = False


@dataclass(frozen=True, slots=True)
class RefreshView:
    """REFRESH MATERIALIZED VIEW name [FULL]."""

    name: str
    full: bool = False


@dataclass(frozen=True, slots=True)
class DropView:
    """DROP MATERIALIZED VIEW [IF EXISTS] name."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterSchedule:
    """ALTER MATERIALIZED VIEW name {ADD | ALTER | DROP} SCHEDULE; without a schedule where it is dropped."""

    name: str
    action: str
    schedule: Schedule | None = None


@dataclass(frozen=True, slots=True)
class RenameView:
    """ALTER MATERIALIZED VIEW name RENAME TO name."""

    name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class ShowViews:
    """SHOW MATERIALIZED VIEWS."""


@dataclass(frozen=True, slots=True)
class DescribeView:
    """DESCRIBE MATERIALIZED VIEW name."""

    name: str


@dataclass(frozen=True, slots=True)
class ExplainView:
    """EXPLAIN MATERIALIZED VIEW name."""

    name: str


@dataclass(frozen=True, slots=True)
class ExplainCreate:
    """EXPLAIN CREATE …, or EXPLAIN of a query alone."""

    create: CreateView


Statement = (
    CreateView | RefreshView | DropView | AlterSchedule | RenameView | ShowViews | DescribeView | ExplainView
    | ExplainCreate
)  # fmt: skip

READING = (ShowViews, DescribeView, ExplainView, ExplainCreate)
"""Statements that change nothing."""


def parse(text: str) -> Statement:
    """Read one statement; a semicolon may follow it."""
    found = parse_all(text)
    if len(found) != 1:
        message = "there are several statements" if found else "there is no statement"
        raise refusal("STATEMENT_INVALID", message, "give one statement at a time", text, 0)
    return found[0]


def parse_all(text: str) -> tuple[Statement, ...]:
    """Read the statements of a text, parted by semicolons."""
    if not isinstance(text, str):
        raise refusal("STATEMENT_INVALID", f"a {type(text).__name__} is no SQL text", "give a string", "", 0)
    return tuple(_statement(piece) for piece in pieces(text))


def _statement(piece: Piece) -> Statement:
    cursor = Cursor(piece)
    if cursor.take("CREATE", "MATERIALIZED", "VIEW"):
        return _create(cursor, replace=False)
    if cursor.take("CREATE", "OR", "REPLACE", "MATERIALIZED", "VIEW"):
        return _create(cursor, replace=True)
    if cursor.take("REFRESH", "MATERIALIZED", "VIEW"):
        return _ended(cursor, RefreshView(cursor.name("the view's name"), cursor.take("FULL")))
    if cursor.take("DROP", "MATERIALIZED", "VIEW"):
        if_exists = cursor.take("IF", "EXISTS")
        return _ended(cursor, DropView(cursor.name("the view's name"), if_exists))
    if cursor.take("ALTER", "MATERIALIZED", "VIEW"):
        return _ended(cursor, _alter(cursor))
    if cursor.take("SHOW", "MATERIALIZED", "VIEWS"):
        return _ended(cursor, ShowViews())
    if cursor.take("DESCRIBE", "MATERIALIZED", "VIEW") or cursor.take("DESC", "MATERIALIZED", "VIEW"):
        return _ended(cursor, DescribeView(cursor.name("the view's name")))
    if cursor.take("EXPLAIN", "MATERIALIZED", "VIEW"):
        return _ended(cursor, ExplainView(cursor.name("the view's name")))
    if cursor.take("EXPLAIN"):
        return _explain(cursor)
    words = " ".join(w.value for w in piece.words[:3])[:60]
    raise refusal("STATEMENT_UNSUPPORTED", f"{words!r} begins no statement that is run here", ACCEPTED,
                  piece.text, piece.words[0].start)  # fmt: skip


def _ended(cursor: Cursor, statement: Statement) -> Statement:
    cursor.end()
    return statement


def _explain(cursor: Cursor) -> Statement:
    rest = Piece(cursor.piece.text, cursor.piece.words[cursor.at :], cursor.piece.end)
    if cursor.next is None:
        raise cursor.error("MATERIALIZED VIEW, CREATE or a query was expected here")
    if any(cursor.sees(word) for word in ("SELECT", "WITH", "(", "FROM", "VALUES", "TABLE")):
        return ExplainCreate(CreateView("", _slice(cursor, cursor.next.start)))
    if cursor.sees("CREATE"):
        explained = _statement(rest)
        if isinstance(explained, CreateView):
            return ExplainCreate(explained)
    raise refusal("STATEMENT_UNSUPPORTED", "only views, their creation and queries are explained", ACCEPTED,
                  rest.text, rest.words[0].start)  # fmt: skip


def _alter(cursor: Cursor) -> AlterSchedule | RenameView:
    name = cursor.name("the view's name")
    if cursor.take("RENAME", "TO"):
        return RenameView(name, cursor.name("the view's new name"))
    if cursor.take("DROP", "SCHEDULE"):
        return AlterSchedule(name, "DROP")
    for action in ("ADD", "ALTER"):
        if cursor.take(action, "SCHEDULE"):
            cursor.take("REFRESH")
            return AlterSchedule(name, action, read_schedule(cursor))
    raise cursor.error("ADD SCHEDULE, ALTER SCHEDULE, DROP SCHEDULE or RENAME TO was expected here")


# --- CREATE ----------------------------------------------------------------------------------------------------------


def _create(cursor: Cursor, *, replace: bool) -> CreateView:
    if_not_exists = cursor.sees("IF", "NOT", "EXISTS")
    if if_not_exists and replace:
        raise cursor.error("OR REPLACE and IF NOT EXISTS exclude each other", "use one of them")
    cursor.take("IF", "NOT", "EXISTS")
    name = cursor.name("the view's name")
    columns = _columns(cursor)
    clauses = _clauses(cursor)
    start = cursor.expect("AS").end
    if cursor.next is None:
        raise cursor.error("a query was expected here")
    return CreateView(name, _slice(cursor, start), columns, replace=replace, if_not_exists=if_not_exists, **clauses)


def _slice(cursor: Cursor, start: int) -> str:
    """The text from a place to the end of the statement, but for white space around it."""
    return cursor.piece.text[start : cursor.piece.end].strip()


def _columns(cursor: Cursor) -> tuple[str, ...]:
    if not cursor.take("("):
        return ()
    columns = [cursor.name("a column's name")]
    while cursor.take(","):
        columns.append(cursor.name("a column's name"))
    if not cursor.sees(")"):
        raise cursor.error("a comma or ) was expected here", "columns have no types or comments of their own here")
    cursor.expect(")")
    return tuple(columns)


def _clauses(cursor: Cursor) -> dict[str, Any]:
    found: dict[str, Any] = {}
    while not cursor.sees("AS") and cursor.next is not None:
        start = cursor.at
        clause = _clause(cursor)
        if found.keys() & clause.keys():
            cursor.at = start
            raise cursor.error("the clause is there twice")
        found |= clause
    return found


def _clause(cursor: Cursor) -> dict[str, Any]:
    if cursor.take("COMMENT"):
        return {"comment": cursor.value(STRING, "a comment in quotes")}
    if cursor.take("REFRESH", "POLICY"):
        return _policy(cursor)
    if cursor.take("SCHEDULE"):
        cursor.take("REFRESH")
        return {"schedule": read_schedule(cursor)}
    if cursor.take("MEMORY", "BUDGET"):
        return {"memory_budget": _budget(cursor)}
    if cursor.take("DISCARD", "STATES"):
        return {"discard_states": True}
    raise cursor.error(
        "AS, or one of COMMENT, REFRESH POLICY, SCHEDULE, MEMORY BUDGET, DISCARD STATES was expected here"
    )


def _policy(cursor: Cursor) -> dict[str, Any]:
    if cursor.take("AUTO"):
        return {"strategy": "auto", "strict": False}
    if cursor.take("FULL"):
        return {"strategy": "rebatch", "strict": False}
    if cursor.take("INCREMENTAL"):
        return {"strategy": "incremental", "strict": cursor.take("STRICT")}
    raise cursor.error("AUTO, INCREMENTAL [STRICT] or FULL was expected here")


def _budget(cursor: Cursor) -> int:
    start = cursor.at
    size = cursor.value(STRING, "a size in quotes")
    try:
        return parse_bytes(size)
    except SlackwaterError as error:
        at = cursor.piece.words[start].start
        raise refusal(error.code, error.message, error.advice, cursor.piece.text, at) from error

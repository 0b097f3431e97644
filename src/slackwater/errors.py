"""The errors Slackwater raises: a stable code, what was wrong, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

CODES: Final[dict[str, str]] = {
    # Tables and the changes they receive.
    "TABLE_EXISTS": "A table or view of that name exists already.",
    "TABLE_UNKNOWN": "There is no table of that name.",
    "TABLE_COMPLETE": "The table was marked complete and takes no more changes.",
    "TABLE_IN_USE": "A view still reads the table.",
    "NAME_INVALID": "The name cannot be used for a table, view, column or source.",
    "SCHEMA_INVALID": "The schema could not be understood.",
    "TYPE_UNSUPPORTED": "The column type is not supported.",
    "COLUMN_MISSING": "The input lacks a column of the table.",
    "COLUMN_EXTRA": "The input has a column the table does not have.",
    "COLUMN_TYPE": "A column of the input has another type than the table's.",
    "COLUMN_RESERVED": "The column name is reserved for Slackwater.",
    "KEY_UNKNOWN": "The key names a column the table does not have.",
    "KEY_REQUIRED": "The operation needs a table with a key.",
    "KEY_NULL": "A key column is NULL.",
    "KEY_DUPLICATE": "A key occurs more than once in the input.",
    "KEY_EXISTS": "A row with that key is in the table already.",
    "ROW_ABSENT": "A row to be deleted is not in the table.",
    "INPUT_KIND": "The input is of a kind that cannot be turned into rows.",
    "CHANGE_INVALID": "A change has an invalid type or weight.",
    "VERSION_UNKNOWN": "There is no such version.",
    "HISTORY_COMPACTED": "The changes up to that version were merged with later ones and can no longer be told apart.",
    # Views and queries.
    "VIEW_EXISTS": "A view or table of that name exists already.",
    "VIEW_EMPTY": "The view has no result yet.",
    "VIEW_UNKNOWN": "There is no view of that name.",
    "VIEW_DROPPED": "The view was dropped, or replaced by another.",
    "QUERY_INVALID": "Spark could not analyze the query.",
    "QUERY_NONDETERMINISTIC": "The query gives different results on the same data.",
    "QUERY_UNSUPPORTED": "The query cannot be kept as a view.",
    "OPERATOR_UNSUPPORTED": "The query uses an operator that is not supported.",
    "EXPRESSION_UNSUPPORTED": "The query uses an expression that is not supported.",
    "HIGHER_ORDER_TOO_LARGE": "Higher-order maintenance of this query would keep too many views.",
    "STRATEGY_UNKNOWN": "There is no refresh strategy of that name.",
    "POLICY_INVALID": "The refresh policy could not be understood.",
    "POLICY_UNSUPPORTED": "The refresh policy names times that cannot be computed.",
    "POLICY_NEVER": "The refresh policy can never become due.",
    "QUERY_NOT_INCREMENTAL": "A strict view was asked for, and its query would be recomputed.",
    "VIEW_NOT_INCREMENTAL": "The view is recomputed at each refresh, so that no state helps it.",
    "COLUMNS_MISMATCH": "The column list does not fit the query.",
    "STATES_AT_STAKE": "Replacing the view would throw away states, and that was not agreed to.",
    "VIEW_CYCLE": "The view would read itself.",
    "VIEW_IN_USE": "Another view still reads the view.",
    "SCHEDULE_INVALID": "The schedule could not be understood.",
    "SCHEDULE_EXISTS": "The view has a schedule, or another refresh policy, already.",
    "SCHEDULE_MISSING": "The view has no schedule.",
    # User-defined functions.
    "FUNCTION_INVALID": "The function cannot be declared.",
    "FUNCTION_UNDECLARED": "The function is not declared deterministic.",
    "FUNCTION_MISSING": "A view calls a function that is not declared in this process.",
    "FUNCTION_CHANGED": "A function is no longer what a view took it for.",
    # SQL statements.
    "STATEMENT_INVALID": "The SQL statement could not be understood.",
    "STATEMENT_UNSUPPORTED": "The SQL statement is not one that the engine runs.",
    # Settings and the engine.
    "BUDGET_INVALID": "The memory budget could not be understood.",
    "SETTING_INVALID": "A setting has an invalid value.",
    "ENGINE_CLOSED": "The engine or its catalog was closed.",
    "ENGINE_RUNNING": "The engine runs already.",
    "CLOCK_INVALID": "The clock shows something that is no time.",
    "UNEXPECTED": "Something failed in a way that has no code of its own.",
    "JAVA_MISSING": "No suitable Java was found.",
    "SPARK_FAILED": "A Spark job failed.",
    "SPARK_STOPPED": "The Spark session that the engine works with was stopped.",
    # Forecasts.
    "FORECAST_INVALID": "A forecast has an impossible number, span or kind.",
    "FORECAST_TABLE_UNKNOWN": "A forecast names a table that the warehouse does not have.",
    "FORECAST_COLUMN": "The column of event times does not exist or holds no times.",
    # Sources.
    "SOURCE_EXISTS": "The table has a source of that name already.",
    "SOURCE_MISSING": "The source, or what it points to, does not exist.",
    "SOURCE_FILE_MALFORMED": "A source file could not be read.",
    "SOURCE_FORMAT": "The source format is not supported.",
    # The demo and the benchmarks.
    "DEMO_DATA_MISSING": "The program that makes the data of the demo and the benchmarks is missing or failed.",
    # Storage.
    "STORAGE_FULL": "There is no space left where the warehouse or its catalog is stored.",
    "STORAGE_FAILED": "Reading or writing the warehouse or its catalog failed.",
    "WAREHOUSE_INVALID": "The location does not hold a usable Slackwater warehouse.",
    "WAREHOUSE_LOCKED": "Another writer has the warehouse open.",
    "CATALOG_NEWER": "The catalog was written by a newer Slackwater.",
    "CATALOG_UNREACHABLE": "The catalog's database cannot be reached.",
    "CATALOG_BUSY": "The catalog's database was locked for too long.",
    "LEASE_LOST": "The writer's lease was lost, so nothing more may be written.",
    "INVARIANT_BROKEN": "Slackwater found a contradiction in its own records: a bug.",
}
"""Every code an error may carry, with its meaning in one line. Codes are never renamed."""


class SlackwaterError(Exception):
    """An error with a code that programs can rely on and a text that people can act on.

    Args:
        code: one of `CODES`.
        message: what was wrong.
        advice: what to do about it.
        details: the facts behind the message, for programs.
    """

    def __init__(self, code: str, message: str, advice: str, details: Mapping[str, object] | None = None) -> None:
        """Build the error; a code that is not registered is a bug in the caller."""
        if code not in CODES:
            raise AssertionError(f"{code!r} is not registered in slackwater.errors.CODES")
        self.code = code
        self.message = message
        self.advice = advice
        self.details: dict[str, object] = dict(details or {})
        # All four go to `args`, so that the error survives copying and being sent to another process.
        super().__init__(code, message, advice, self.details)

    def __str__(self) -> str:
        """Give the text for people: the code and what was wrong, then what to do."""
        return f"[{self.code}] {self.message}" + (f"\n  → {self.advice}" if self.advice else "")

    def to_dict(self) -> dict[str, object]:
        """Give the parts for programs."""
        return {"code": self.code, "message": self.message, "advice": self.advice, "details": dict(self.details)}


class CatalogError(SlackwaterError):
    """The catalog, or the storage below it, failed or refused."""


class TableError(SlackwaterError):
    """A table or a change to it was refused."""


class QueryRefused(SlackwaterError):
    """A query cannot be kept as a view."""


class ViewError(SlackwaterError):
    """A view does not exist or an operation on it was refused."""


class StatementError(SlackwaterError):
    """A SQL statement was refused; the details have the position in the text."""


class SourceError(SlackwaterError):
    """A source, or a file it brought, was refused."""


class ForecastError(SlackwaterError):
    """A forecast, or what it is to be made from, was refused."""

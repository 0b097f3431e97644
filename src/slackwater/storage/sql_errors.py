"""What a database's complaint means, as one of Slackwater's codes."""

from __future__ import annotations

import errno
from typing import Final

from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, SQLAlchemyError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from slackwater.errors import CatalogError
from slackwater.storage.records import broken

UNKNOWN: Final = "unknown"
"""What the details of an error say of `committed` where the commit may or may not have happened."""

_ADVICE: Final = {
    "STORAGE_FULL": "Free some space and try again; nothing was committed.",
    "STORAGE_FAILED": "Check the disk and the permissions, and try again; nothing was committed.",
    "WAREHOUSE_INVALID": "Restore the catalog from a backup; Slackwater does not repair a damaged database.",
    "CATALOG_BUSY": "Try again; if it persists, look for a process that keeps a transaction on the catalog open.",
    "CATALOG_UNREACHABLE": "Check the catalog's URL, that its server is up, and that this user may use it.",
}

# SQLite says what happened only in words (its error numbers came to Python with 3.11).
_SQLITE: Final = (
    ("database or disk is full", "STORAGE_FULL"),
    ("is locked", "CATALOG_BUSY"),
    ("locking protocol", "CATALOG_BUSY"),
    ("not a database", "WAREHOUSE_INVALID"),
    ("malformed", "WAREHOUSE_INVALID"),
    ("unable to open", "CATALOG_UNREACHABLE"),
)

# PostgreSQL's SQLSTATE, by whole code or class.
_POSTGRES: Final = (
    ("53100", "STORAGE_FULL"),
    ("55P03", "CATALOG_BUSY"),
    ("40", "CATALOG_BUSY"),
    ("53", "CATALOG_UNREACHABLE"),
    ("57P", "CATALOG_UNREACHABLE"),
    ("08", "CATALOG_UNREACHABLE"),
    ("28", "CATALOG_UNREACHABLE"),
    ("3D", "CATALOG_UNREACHABLE"),
    ("XX", "WAREHOUSE_INVALID"),
)


def coded(error: SQLAlchemyError | OSError, place: str) -> Exception:
    """Turn a failure below the catalog into a coded error; a bug of the caller's comes back as it is."""
    if isinstance(error, OSError):
        return _error("STORAGE_FULL", place, str(error)) if error.errno == errno.ENOSPC else error
    if isinstance(error, PoolTimeout):
        return _error("CATALOG_BUSY", place, "all connections are in use")
    if isinstance(error, IntegrityError):
        return broken(f"the catalog refused a record: {reason(error)}")
    if not isinstance(error, DBAPIError):
        own = error.orig if isinstance(error, StatementError) else None
        return own if isinstance(own, Exception) else error
    return _error(_code(error), place, reason(error))


def outcome_unknown(error: DBAPIError, place: str) -> CatalogError:
    """Build the error for a connection that broke while a commit was under way."""
    return CatalogError(
        "CATALOG_UNREACHABLE",
        f"the connection to the catalog at {place} broke during a commit: {reason(error)}",
        "The commit may or may not have happened: look at the version, or at the data, before trying again.",
        {"catalog": place, "committed": UNKNOWN},
    )


def reason(error: SQLAlchemyError) -> str:
    """Give the driver's own words, in one line, without SQLAlchemy's."""
    words = str(error.orig if isinstance(error, StatementError) else error).strip()
    return words.splitlines()[0] if words else type(error).__name__


def _code(error: DBAPIError) -> str:
    sqlstate = getattr(error.orig, "sqlstate", None)
    if sqlstate:
        return next((code for start, code in _POSTGRES if sqlstate.startswith(start)), "STORAGE_FAILED")
    if type(error.orig).__module__ == "sqlite3":
        words = str(error.orig)
        return next((code for phrase, code in _SQLITE if phrase in words), "STORAGE_FAILED")
    # PostgreSQL's driver has no SQLSTATE to give when it finds no server or loses it.
    lost = error.connection_invalidated or isinstance(error, OperationalError)
    return "CATALOG_UNREACHABLE" if lost else "STORAGE_FAILED"


def _error(code: str, place: str, words: str) -> CatalogError:
    return CatalogError(code, f"the catalog at {place} failed: {words}", _ADVICE[code], {"catalog": place})

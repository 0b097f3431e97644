"""The connection to the catalog's database: SQLite in the warehouse, or PostgreSQL by URL."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, RootTransaction, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from slackwater.errors import CatalogError, SlackwaterError
from slackwater.storage import schema
from slackwater.storage.migrations import upgrade
from slackwater.storage.sql_errors import coded, outcome_unknown, reason

BUSY_SECONDS: float = 30.0
"""How long to wait for another process's transaction."""

_DRIVERS: Final = {
    "sqlite": "sqlite+pysqlite",
    "sqlite+pysqlite": "sqlite+pysqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}
_WRITES: Final = "slackwater_writes"


def sqlite_url(path: Path | str) -> URL:
    """Give the URL of a SQLite file, whatever characters its path holds."""
    return URL.create("sqlite", database=os.fspath(path))


@dataclass(frozen=True, slots=True)
class Reading:
    """A transaction that several reads share, and what they have found so far."""

    connection: Connection
    found: dict[Any, Any] = field(default_factory=dict)


class Database:
    """A database that is a catalog, and its two kinds of transactions."""

    def __init__(self, engine: Engine, place: str) -> None:
        """Wrap an engine; use `open`."""
        self.engine = engine
        self.place = place
        self._closed = False
        self._local = threading.local()

    @classmethod
    def open(
        cls, url: str | URL, *, create: bool, check: Callable[[Connection | None], None] | None = None
    ) -> Database:
        """Connect; if asked to create, make an empty database a catalog and bring an old catalog up to date.

        Before that, `check` may refuse: it is given a connection to the catalog, or None where there is none yet.
        """
        parsed = _parse(url)
        place = _place(parsed)
        if parsed.get_backend_name() == "sqlite" and not os.path.exists(parsed.database or ""):
            if check is not None:
                check(None)  # now, because SQLite makes the file when it connects
            if not create:
                raise _absent(place)
        try:
            database = cls(_engine(parsed), place)
        except (ImportError, SQLAlchemyError, TypeError) as error:
            raise _unreachable(place, _redacted(str(error), parsed)) from None
        try:
            _until_free(lambda: database._prepare(create, check))
        except DBAPIError as error:
            database.close()
            # `from None`, and its words only after redaction: a driver's error may repeat parts of the URL.
            failure = coded(error, place)
            if isinstance(failure, CatalogError) and failure.code not in ("STORAGE_FAILED", "CATALOG_UNREACHABLE"):
                raise failure from None
            raise _unreachable(place, _redacted(reason(error), parsed)) from None
        except BaseException:
            database.close()
            raise
        return database

    def close(self) -> None:
        """Close all connections; later use is refused."""
        self._closed = True
        self.engine.dispose()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a transaction that sees one state of the catalog throughout, and never waits for a writer.

        Within `reading` it is that one transaction.
        """
        if (shared := self.shared) is not None:
            with self._coded():
                yield shared.connection
            return
        with self._coded(), self.engine.connect() as connection:
            if connection.dialect.name == "postgresql":
                connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield connection

    @property
    def shared(self) -> Reading | None:
        """The transaction that all reads of this thread share, if there is one."""
        found: Reading | None = getattr(self._local, "reading", None)
        return found

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Let all reads of this thread, as long as it lasts, be one transaction; what was found once is known then."""
        if self.shared is not None:
            yield
            return
        with self.read() as connection:
            self._local.reading = Reading(connection)
            try:
                yield
            finally:
                self._local.reading = None

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Open a transaction that may write; it commits if the body ends well and leaves no trace otherwise."""
        with self._coded(), self._writing() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self.engine.connect() as connection:
            connection.execution_options(**{_WRITES: True})
            with connection.begin() as transaction:
                if connection.dialect.name == "postgresql":
                    milliseconds = str(int(BUSY_SECONDS * 1000))
                    connection.execute(text("SELECT set_config('lock_timeout', :ms, true)"), {"ms": milliseconds})
                yield connection
                self._commit(transaction)

    def _commit(self, transaction: RootTransaction) -> None:
        try:
            transaction.commit()
        except BaseException as error:
            # SQLAlchemy takes the transaction for ended and would give the connection back with it open, if COMMIT was
            # not sent or not obeyed: on SQLite, all other writers would wait for it in vain.
            transaction.connection.invalidate()
            if isinstance(error, DBAPIError) and error.connection_invalidated:
                raise outcome_unknown(error, self.place) from error
            raise

    def _prepare(self, create: bool, check: Callable[[Connection | None], None] | None) -> None:
        with self.engine.connect() as connection:
            ready = schema.is_catalog(connection)
            if check is not None:
                check(connection if ready else None)
            outdated = ready and schema.schema_version(connection) < schema.SCHEMA_VERSION
        if outdated and create:
            with self._writing() as connection:
                upgrade(connection)
        if ready:
            return
        if not create:
            raise _absent(self.place)
        if self.engine.dialect.name == "sqlite":
            _write_ahead(self.engine)
        with self._writing() as connection:
            schema.create(connection)

    @contextmanager
    def _coded(self) -> Iterator[None]:
        if self._closed:
            raise CatalogError("ENGINE_CLOSED", "the catalog was closed", "Open the warehouse again.")
        try:
            yield
        except SlackwaterError:
            raise
        except UnicodeEncodeError as error:
            # Half a character, such as Python makes of a file name that is not text.
            message = f"{error.object[:80]!r} cannot be stored as text"
            raise CatalogError("NAME_INVALID", message, "Choose or give it another name.") from error
        except (SQLAlchemyError, OSError) as error:
            failure = coded(error, self.place)
            if failure is error:
                raise
            raise failure from error


def _parse(url: str | URL) -> URL:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # Neither the URL nor the parser's words may be shown: a badly quoted password could be in both.
        raise _unreachable("the given URL", "it is not a database URL") from None
    driver = _DRIVERS.get(parsed.drivername)
    if driver is None:
        raise _unreachable(f"{parsed.drivername}://…", "only sqlite:// and postgresql:// are supported")
    if "@" in (parsed.host or ""):
        raise _unreachable("the given URL", "it has more than one '@': write '%40' for one in the password")
    if driver.startswith("sqlite") and parsed.database in (None, "", ":memory:"):
        raise _unreachable("sqlite://", "a catalog in memory cannot be shared; name a file")
    return parsed.set(drivername=driver)


def _place(url: URL) -> str:
    # Without user, password and query: any of them can hold a secret.
    host = f"{url.host or ''}:{url.port}" if url.port else (url.host or "")
    return f"{url.get_backend_name()}://{host}/{url.database or ''}"


def _redacted(words: str, url: URL) -> str:
    secrets = (url.password, *(value for key, value in url.query.items() if "pass" in key))
    for secret in secrets:
        if isinstance(secret, str) and secret:
            words = words.replace(secret, "***")
    return words


def _engine(url: URL) -> Engine:
    if url.get_backend_name() == "postgresql":
        timeout = {} if "connect_timeout" in url.query else {"connect_timeout": 10}
        # The default of a server may be another: under REPEATABLE READ two writers could take the same version.
        return create_engine(url, isolation_level="READ COMMITTED", pool_pre_ping=True, connect_args=timeout)
    engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS})
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _set_up_sqlite(connection: sqlite3.Connection, _: ConnectionPoolEntry) -> None:
    connection.isolation_level = None  # transactions begin where _begin_sqlite says, not where the driver guesses
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = FULL")  # a commit is on disk when it returns


def _begin_sqlite(connection: Connection) -> None:
    # A writer takes the lock at once: one that upgrades later can fail without being able to wait.
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _write_ahead(engine: Engine) -> None:
    raw = engine.raw_connection()
    try:
        raw.cursor().execute("PRAGMA journal_mode = WAL")  # readers are never blocked; stays with the file
    except sqlite3.Error as error:
        raise DBAPIError.instance("PRAGMA journal_mode", None, error, sqlite3.Error) from error
    finally:
        raw.close()


def _until_free(attempt: Callable[[], None]) -> None:
    # While another process creates the file, SQLite reports some locks at once instead of waiting.
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return attempt()
        except DBAPIError as error:
            failure = coded(error, "")
            busy = isinstance(failure, CatalogError) and failure.code == "CATALOG_BUSY"
            if not busy or time.monotonic() > deadline:
                raise
        time.sleep(0.02)


def _absent(place: str) -> CatalogError:
    return CatalogError(
        "WAREHOUSE_INVALID",
        f"there is no Slackwater catalog at {place}",
        "Check the location, or create the warehouse first.",
        {"catalog": place},
    )


def _unreachable(place: str, words: str) -> CatalogError:
    return CatalogError(
        "CATALOG_UNREACHABLE",
        f"the catalog at {place} cannot be reached: {words}",
        "Check the catalog's URL, that its server is up, and that this user may use it.",
        {"catalog": place},
    )

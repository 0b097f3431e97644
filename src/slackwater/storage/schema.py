"""The catalog's tables, and how a database becomes a catalog."""

from __future__ import annotations

import json
import time
import uuid
from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Connection,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    insert,
    inspect,
    select,
    text,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

from slackwater.errors import CatalogError

SCHEMA_VERSION: Final = 2
"""Grows with every change of the tables below; a catalog with a larger one is refused, an older one is upgraded."""

TABLES_SINCE: Final = {"forecasts": 2, "paces": 2, "delays": 2}
"""The schema version that brought a table; the others were there from the first."""

_CREATION_LOCK: Final = 0x536C61636B77  # "Slackw": any number, the same in every process


class JsonText(TypeDecorator[object]):
    """JSON as text, with sorted keys so that equal values are equal text."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: object, dialect: Dialect) -> str:
        """Write a value as text."""
        return json.dumps(value, sort_keys=True)

    def process_result_value(self, value: str | None, dialect: Dialect) -> object:
        """Read a value back."""
        return None if value is None else json.loads(value)


# SQLite numbers rows by itself only for its own INTEGER.
_Id = BigInteger().with_variant(Integer, "sqlite")

METADATA = MetaData(naming_convention={"ix": "ix_%(column_0_N_label)s"})


def _table(name: str, *parts: Column[object] | CheckConstraint | UniqueConstraint | Index) -> Table:
    # AUTOINCREMENT: an id that was ever used is never given out again, even after its row is gone.
    return Table(name, METADATA, *parts, sqlite_autoincrement=True)


def _id() -> Column[object]:
    return Column("id", _Id, primary_key=True)


def _number(name: str, *, optional: bool = False) -> Column[object]:
    return Column(name, BigInteger, nullable=optional)


def _text(name: str) -> Column[object]:
    return Column(name, Text, nullable=False)


def _json(name: str) -> Column[object]:
    return Column(name, JsonText, nullable=False)


def _reference(name: str, target: str, *, optional: bool = False) -> Column[object]:
    return Column(name, _Id, ForeignKey(target), nullable=optional)


def _unique_while_live(table: Table) -> None:
    live = table.c.dropped_version.is_(None)
    name = f"ux_{table.name}_live_name"
    Index(name, table.c.name_key, unique=True, sqlite_where=live, postgresql_where=live)


meta = Table("meta", METADATA, Column("key", Text, primary_key=True), _text("value"))

commits = Table(
    "commits",
    METADATA,
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
    _text("kind"),
    _text("subject"),
    _json("detail"),
    Index("ix_commits_subject", "subject", "version"),
)

tables = _table(
    "tables",
    _id(),
    _text("name"),
    _text("name_key"),
    _text("schema_json"),
    _json("key_json"),
    Column("complete", Boolean, nullable=False),
    _number("created_version"),
    _number("dropped_version", optional=True),
)
_unique_while_live(tables)

views = _table(
    "views",
    _id(),
    _text("name"),
    _text("name_key"),
    _text("query_json"),
    _text("plan_json"),
    _text("settings_json"),
    _text("options_json"),
    _number("created_version"),
    _number("version"),
    _number("dropped_version", optional=True),
)
_unique_while_live(views)

# A merge has a row of its own because it may have two outputs, or none where all its changes cancel out.
merges = _table(
    "merges",
    _id(),
    _text("owner"),
    _number("first_version"),
    _number("last_version"),
    Column("inputs_kept", Boolean, nullable=False),
    _reference("superseded_by", "merges.id", optional=True),
    _number("superseded_version", optional=True),
    CheckConstraint("first_version <= last_version"),
    Index("ix_merges_owner", "owner", "last_version"),
    Index("ix_merges_superseded_by", "superseded_by"),
)

segments = _table(
    "segments",
    _id(),
    _text("owner"),
    Column("sign", Integer, nullable=False),
    _number("first_version"),
    _number("last_version"),
    _text("path"),
    _number("row_count"),
    _number("byte_count"),
    _reference("merge_id", "merges.id", optional=True),
    _reference("superseded_by", "merges.id", optional=True),
    _number("superseded_version", optional=True),
    CheckConstraint("sign IN (1, -1)"),
    CheckConstraint("first_version <= last_version"),
    Index("ix_segments_owner", "owner", "last_version"),
    Index("ix_segments_merge_id", "merge_id"),
    Index("ix_segments_superseded_by", "superseded_by"),
)

states = _table(
    "states",
    _id(),
    _reference("view_id", "views.id"),
    _text("node"),
    _number("version"),
    _text("path"),
    _number("row_count"),
    _number("byte_count"),
    _json("detail"),
    Index("ix_states_view", "view_id"),
)

refreshes = _table(
    "refreshes",
    _id(),
    _reference("view_id", "views.id"),
    _number("from_version"),
    _number("to_version"),
    Column("at", Double, nullable=False),
    Column("seconds", Double, nullable=False),
    _json("report"),
    Index("ix_refreshes_view", "view_id"),
)

# One row for each table of a forecast; what came is filled in when the view is refreshed again.
forecasts = _table(
    "forecasts",
    _id(),
    _reference("view_id", "views.id"),
    _reference("table_id", "tables.id"),
    _text("table_name"),
    _number("made_version"),
    Column("made_at", Double, nullable=False),
    Column("horizon_seconds", Double, nullable=False),
    _text("kind"),
    Column("rows", Double, nullable=False),
    Column("low", Double, nullable=False),
    Column("high", Double, nullable=False),
    Column("deletes", Double, nullable=False),
    Column("complete_after", Boolean, nullable=False),
    _text("reason"),
    _json("detail"),
    _number("actual_rows", optional=True),
    _number("actual_deleted", optional=True),
    _number("settled_version", optional=True),
    Column("settled_at", Double, nullable=True),
    Index("ix_forecasts_view", "view_id", "id"),
)

# What an upstream system last said about the table it is delivering.
paces = Table(
    "paces",
    METADATA,
    Column("table_id", _Id, ForeignKey("tables.id"), primary_key=True, autoincrement=False),
    Column("rows_per_second", Double, nullable=False),
    _number("remaining", optional=True),
    Column("at", Double, nullable=False),
)

# How late the rows of one version were, by one column of event times: pairs of seconds and rows.
delays = Table(
    "delays",
    METADATA,
    Column("table_id", _Id, ForeignKey("tables.id"), primary_key=True, autoincrement=False),
    Column("measured", Text, primary_key=True),
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    _json("points"),
)

sources = _table(
    "sources",
    _id(),
    _reference("table_id", "tables.id"),
    _text("name"),
    _text("kind"),
    _json("config"),
    UniqueConstraint("table_id", "name"),
)

source_files = Table(
    "source_files",
    METADATA,
    Column("source_id", _Id, ForeignKey("sources.id"), primary_key=True),
    Column("file", Text, primary_key=True),
    Column("size", BigInteger, primary_key=True, autoincrement=False),
    Column("mtime_ns", BigInteger, primary_key=True, autoincrement=False),
    _text("status"),
    _number("version", optional=True),
    _json("report"),
    CheckConstraint("status IN ('applied', 'rejected')"),
)

lease = Table(
    "lease",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=False),
    _text("holder"),
    _text("host"),
    _number("pid"),
    _text("process_start"),
    _number("token"),
    Column("expires_at", Double, nullable=False),
    CheckConstraint("id = 1"),
)


def is_catalog(connection: Connection) -> bool:
    """Tell a catalog (true) from an empty database (false), and refuse anything else."""
    present = set(inspect(connection).get_table_names())
    if meta.name not in present:
        # A PostgreSQL database may well hold other tables; a SQLite file is all ours or not ours.
        if present if connection.dialect.name == "sqlite" else present & set(METADATA.tables):
            raise _invalid("the database holds tables of another program")
        return False
    version = schema_version(connection)
    if version > SCHEMA_VERSION:
        raise CatalogError(
            "CATALOG_NEWER",
            f"the catalog has schema version {version}; this Slackwater knows versions up to {SCHEMA_VERSION}",
            "Use the Slackwater version that wrote it, or a newer one.",
            {"found": version, "known": SCHEMA_VERSION},
        )
    expected = {name for name in METADATA.tables if TABLES_SINCE.get(name, 1) <= version}
    # Listed anew: another process may have upgraded the catalog between the first list and the look at the version.
    if missing := expected - set(inspect(connection).get_table_names()):
        raise _invalid(f"the catalog lacks {', '.join(sorted(missing))}")
    return True


def create(connection: Connection) -> None:
    """Make an empty database a catalog, unless another process did so in the meantime. Runs in a write transaction."""
    lock_tables(connection)
    if is_catalog(connection):
        return
    METADATA.create_all(connection)
    facts = {"schema_version": str(SCHEMA_VERSION), "warehouse_id": uuid.uuid4().hex, "created_at": repr(time.time())}
    connection.execute(insert(meta), [{"key": key, "value": value} for key, value in facts.items()])
    nobody = {"holder": "", "host": "", "pid": 0, "process_start": "", "token": 0, "expires_at": 0.0}
    connection.execute(insert(lease), {"id": 1, **nobody})


def lock_tables(connection: Connection) -> None:
    """Let one process at a time make or change tables; on SQLite a write transaction does so by itself."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _CREATION_LOCK})


def schema_version(connection: Connection) -> int:
    """Give the version that the catalog's tables were made or upgraded at."""
    columns = {column["name"] for column in inspect(connection).get_columns(meta.name)}
    found = None
    if columns == set(meta.c.keys()):
        found = connection.scalar(select(meta.c.value).where(meta.c.key == "schema_version"))
    if found is None or not found.isdecimal():
        raise _invalid("its table 'meta' names no schema version")
    return int(found)


def warehouse_id(connection: Connection) -> str:
    """Give the name, made at random, that tells the catalog's warehouse from all others."""
    return str(connection.scalar(select(meta.c.value).where(meta.c.key == "warehouse_id")))


def _invalid(reason: str) -> CatalogError:
    return CatalogError(
        "WAREHOUSE_INVALID",
        f"this is not a usable Slackwater catalog: {reason}",
        "Check the location; give Slackwater a new directory, or a database (or schema) of its own.",
    )

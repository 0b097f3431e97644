"""How a catalog that an older Slackwater wrote is brought up to date, in place.

Every step only adds: an older Slackwater that has the catalog open goes on undisturbed, and a reader of an old catalog
needs no step at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlalchemy import Connection, update

from slackwater.storage import schema


def upgrade(connection: Connection) -> None:
    """Take the steps that a catalog lacks. Runs in a write transaction: all of them happen, or none."""
    schema.lock_tables(connection)
    for version in range(schema.schema_version(connection), schema.SCHEMA_VERSION):
        _STEPS[version](connection)
    values = {"value": str(schema.SCHEMA_VERSION)}
    connection.execute(update(schema.meta).where(schema.meta.c.key == "schema_version").values(**values))


def _add_forecasts(connection: Connection) -> None:
    """From 1 to 2: forecasts, paces and delays, and an index by which a table's changes are found."""
    for table in (schema.forecasts, schema.paces, schema.delays):
        table.create(connection, checkfirst=True)
    index = next(index for index in schema.commits.indexes if index.name == "ix_commits_subject")
    index.create(connection, checkfirst=True)


_STEPS: Final[dict[int, Callable[[Connection], None]]] = {1: _add_forecasts}
"""The step from each schema version to the next."""

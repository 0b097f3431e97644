"""The writer's lease: one writer per warehouse.

The lease is a row of the catalog. Its holder renews it from a thread; whoever takes it over raises its token, and every
commit checks the token in its own transaction, so a writer that slept through its lease can no longer commit.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from datetime import datetime, timezone
from types import TracebackType

from sqlalchemy import Connection, select, update

from slackwater.errors import CatalogError, SlackwaterError
from slackwater.storage import rows, schema
from slackwater.storage.catalog import Catalog
from slackwater.storage.process import ProcessIdentity
from slackwater.storage.records import LeaseRecord

_log = logging.getLogger(__name__)


class WriterLease:
    """The right to write to a warehouse, held until `release` and renewed in the background until then."""

    def __init__(self, catalog: Catalog, record: LeaseRecord, seconds: float, clock: Callable[[], float]) -> None:
        """Hold a lease that is in the catalog already; use `acquire`."""
        self.record = record
        self._catalog = catalog
        self._seconds = seconds
        self._clock = clock
        self._ended = threading.Event()
        self._lost = False
        self._heartbeat = threading.Thread(target=self._renew_until_ended, name="slackwater-lease", daemon=True)
        self._heartbeat.start()

    @classmethod
    def acquire(
        cls, catalog: Catalog, holder: str, seconds: float = 30.0, clock: Callable[[], float] = time.time
    ) -> WriterLease:
        """Take the lease, or refuse while another writer, this process included, has it.

        Args:
            catalog: the warehouse's catalog.
            holder: a name for people who are refused because of this lease.
            seconds: how long it lasts without being renewed.
            clock: gives the time; the clocks of all writers' machines should agree.

        Raises:
            CatalogError: WAREHOUSE_LOCKED.
        """
        if not holder or seconds <= 0:
            raise CatalogError("SETTING_INVALID", "a lease needs a holder and a positive duration", "Give both.")
        me = ProcessIdentity.current()
        with catalog.database.write() as connection:
            found = _read(connection, lock=True)
            if found.holder and found.expires_at > clock() and not _identity(found).is_gone():
                raise _locked(found, me)
            record = LeaseRecord(holder, me.host, me.pid, me.start, found.token + 1, clock() + seconds)
            values = {name: getattr(record, name) for name in record.__slots__}
            connection.execute(update(schema.lease).values(**values))
        if found.holder:
            _log.warning("took over the lease of %s (process %s on %s)", found.holder, found.pid, found.host)
        return cls(catalog, record, seconds, clock)

    @property
    def token(self) -> int:
        """The token that proves the lease to `Catalog.commit`."""
        return self.record.token

    def check(self) -> None:
        """Raise LEASE_LOST unless this lease is the one in the catalog."""
        found = None
        if not self._ended.is_set():
            found = read_lease(self._catalog)
        if found is None or found.token != self.token or not found.holder:
            self._lost = self._lost or found is not None
            raise _lost(self.record, found, released=not self._lost)

    def release(self) -> None:
        """Give the lease back; again, or after losing it, this does nothing."""
        if self._ended.is_set() or self.record.pid != os.getpid():  # a forked child holds a copy, not the lease
            return
        self._ended.set()
        self._heartbeat.join()
        if self._lost:
            return
        mine = schema.lease.c.token == self.token
        with self._catalog.database.write() as connection:
            # The token stays: the next one must be larger.
            connection.execute(update(schema.lease).where(mine).values(holder="", expires_at=0.0))

    def __enter__(self) -> WriterLease:
        """Give itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the lease back."""
        self.release()

    def _renew_until_ended(self) -> None:
        while not self._ended.wait(self._seconds / 3):
            try:
                if not self._renew():
                    self._lost = True
                    _log.error("the lease on the warehouse was taken over; nothing more can be written")
                    return
            except SlackwaterError as error:
                # Not lost yet: as long as nobody took it, the next renewal mends it, even a late one.
                _log.warning("could not renew the lease: %s", error)

    def _renew(self) -> bool:
        mine = schema.lease.c.token == self.token
        with self._catalog.database.write() as connection:
            renewal = update(schema.lease).where(mine).values(expires_at=self._clock() + self._seconds)
            return connection.execute(renewal).rowcount == 1


def read_lease(catalog: Catalog) -> LeaseRecord | None:
    """Tell who holds the lease, if anybody does."""
    with catalog.database.read() as connection:
        found = _read(connection, lock=False)
    return found if found.holder else None


def _read(connection: Connection, *, lock: bool) -> LeaseRecord:
    query = select(schema.lease)
    return rows.read_as(LeaseRecord, connection.execute(query.with_for_update() if lock else query).one())


def _identity(record: LeaseRecord) -> ProcessIdentity:
    return ProcessIdentity(record.host, record.pid, record.process_start)


def _locked(found: LeaseRecord, me: ProcessIdentity) -> CatalogError:
    until = datetime.fromtimestamp(found.expires_at, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    who = "this process" if _identity(found) == me else f"process {found.pid} on {found.host}"
    return CatalogError(
        "WAREHOUSE_LOCKED",
        f"{who} ({found.holder}, pid {found.pid}, host {found.host}) has the warehouse open for writing until {until}, "
        "and may renew that",
        "Close the other engine or wait for it; a process that crashed elsewhere loses its lease at that time.",
        {"holder": found.holder, "host": found.host, "pid": found.pid, "expires_at": found.expires_at},
    )


def _lost(record: LeaseRecord, found: LeaseRecord | None, *, released: bool) -> CatalogError:
    by = "was released" if released else "was taken over"
    if found is not None and found.token != record.token:
        by += f" by {found.holder} (pid {found.pid}, host {found.host})"
    details = {"token": record.token, "found": found.token if found else None}
    return CatalogError("LEASE_LOST", f"the writer's lease {by}", "Open the warehouse again.", details)

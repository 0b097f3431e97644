"""What the writer's lease does, on whichever database: inherited by the tests of each."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from sqlalchemy import URL, text

from slackwater.errors import SlackwaterError
from slackwater.storage import Catalog, NewSourceFile, WriterLease
from slackwater.storage.lease import read_lease
from tests.unit.catalog_suite import WithCatalog, add_table, add_view, refused, segment
from tests.unit.durability_suite import SOURCE

HOLD = (
    "import sys, time; from slackwater.storage import Catalog, WriterLease\n"
    "lease = WriterLease.acquire(Catalog.open(sys.argv[1]), 'the other', 600)\n"
    "print(lease.token, flush=True)\n"
    "time.sleep(600)"
)


@dataclass
class Clock:
    """A clock that a test sets."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def other_process(url: URL) -> Iterator[subprocess.Popen[str]]:
    """Run a process that holds the lease, and end it at the end."""
    command = [sys.executable, "-c", HOLD, url.render_as_string(hide_password=False)]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == "1"
            yield process
        finally:
            process.kill()


class LeaseSuite(WithCatalog):
    """One writer at a time, and none that lost the lease."""

    def test_one_writer_at_a_time(self, catalog: Catalog, url: URL) -> None:
        assert read_lease(catalog) is None
        with WriterLease.acquire(catalog, "first") as lease:
            lease.check()
            assert read_lease(catalog) == lease.record
            with Catalog.open(url) as again, pytest.raises(SlackwaterError) as caught:
                WriterLease.acquire(again, "second")
            error = caught.value
            assert error.code == "WAREHOUSE_LOCKED"
            assert error.details["pid"] == os.getpid()
            for words in ("this process", "first", str(os.getpid()), lease.record.host, "UTC"):
                assert words in error.message
        assert read_lease(catalog) is None
        with WriterLease.acquire(catalog, "second") as lease:
            assert lease.token == 2

    def test_release_is_idempotent(self, catalog: Catalog) -> None:
        first = WriterLease.acquire(catalog, "first")
        first.release()
        first.release()
        with WriterLease.acquire(catalog, "second") as second:
            first.release()
            second.check()

    def test_a_released_lease_lets_nobody_write(self, catalog: Catalog) -> None:
        lease = WriterLease.acquire(catalog, "first")
        lease.release()
        with pytest.raises(SlackwaterError, match="was released"):
            lease.check()
        with refused("LEASE_LOST"), catalog.commit("change", "x", lease=lease):
            pass
        assert catalog.version() == 0

    def test_a_lease_that_ran_out_is_taken_over_and_fenced_off(self, catalog: Catalog) -> None:
        clock = Clock()
        view = add_view(catalog)
        table = add_table(catalog)
        slow = WriterLease.acquire(catalog, "slow", 3600, clock)
        with catalog.commit("source", "orders", lease=slow) as tx:
            source = tx.add_source(table.id, "in", "files", {})
            tx.add_segments(table.owner, [segment("t1/a")])
        clock.now += 3599
        with refused("WAREHOUSE_LOCKED"):
            WriterLease.acquire(catalog, "eager", 3600, clock)
        clock.now += 2
        with WriterLease.acquire(catalog, "eager", 3600, clock) as eager:
            assert eager.token == slow.token + 1
            with pytest.raises(SlackwaterError, match="taken over by eager") as caught:
                slow.check()
            assert caught.value.code == "LEASE_LOST"
            with refused("LEASE_LOST"), catalog.commit("change", "orders", lease=slow):
                pass
            with refused("LEASE_LOST"):
                catalog.save_states(view.id, [], lease=slow)
            with refused("LEASE_LOST"):
                catalog.record_rejected_files(source.id, [NewSourceFile("f", 1, 1)], lease=slow)
            with refused("LEASE_LOST"):
                catalog.forget_segments([], lease=slow)
            slow.release()
            eager.check()
            with catalog.commit("change", "orders", lease=eager) as tx:
                assert tx.version == 4

    def test_a_lease_is_renewed(self, catalog: Catalog) -> None:
        with WriterLease.acquire(catalog, "first", 0.3) as lease:
            time.sleep(1.0)
            with refused("WAREHOUSE_LOCKED"):
                WriterLease.acquire(catalog, "second", 0.3)
            found = read_lease(catalog)
            assert found is not None
            assert found.expires_at > lease.record.expires_at + 0.3

    def test_the_heartbeat_survives_a_late_renewal_and_notices_a_takeover(self, catalog: Catalog) -> None:
        lease = WriterLease.acquire(catalog, "first", 0.15)
        with catalog.database.write() as connection:
            connection.execute(text("UPDATE lease SET expires_at = 0"))
        time.sleep(0.3)
        lease.check()
        with catalog.database.write() as connection:
            connection.execute(text("UPDATE lease SET token = token + 1, holder = 'thief'"))
        lease._heartbeat.join(10)
        assert not lease._heartbeat.is_alive()
        with refused("LEASE_LOST"):
            lease.check()
        lease.release()
        found = read_lease(catalog)
        assert found is not None
        assert found.holder == "thief"

    def test_a_process_that_lives_keeps_its_lease(self, catalog: Catalog, url: URL) -> None:
        with other_process(url) as process:
            os.kill(process.pid, signal.SIGSTOP)  # asleep is not dead
            with pytest.raises(SlackwaterError, match=f"process {process.pid} on ") as caught:
                WriterLease.acquire(catalog, "me")
            assert caught.value.code == "WAREHOUSE_LOCKED"

    def test_a_killed_process_loses_its_lease_at_once(self, catalog: Catalog, url: URL) -> None:
        with other_process(url) as process:
            process.kill()
            process.wait()
            with WriterLease.acquire(catalog, "me") as lease:
                assert lease.token == 2

    @pytest.mark.parametrize(
        ("column", "value", "taken"),
        [
            ("process_start", "replace(process_start, '/', '/x')", False),  # another boot or container: cannot be known
            ("process_start", "process_start || '0'", True),  # the number was given to another process
            ("pid", "2147483000", True),
            ("host", "host || '-other'", False),
        ],
    )
    def test_only_a_holder_that_is_surely_gone_is_replaced(
        self, catalog: Catalog, column: str, value: str, taken: bool
    ) -> None:
        lease = WriterLease.acquire(catalog, "first")
        with catalog.database.write() as connection:
            connection.execute(text(f"UPDATE lease SET {column} = {value}"))
        if taken:
            WriterLease.acquire(catalog, "second").release()
        else:
            with refused("WAREHOUSE_LOCKED"):
                WriterLease.acquire(catalog, "second")
        lease.release()

    def test_only_one_of_many_gets_it(self, catalog: Catalog, url: URL) -> None:
        start = threading.Barrier(6)

        def attempt(number: int) -> WriterLease | str:
            with Catalog.open(url) as mine:
                start.wait()
                try:
                    return WriterLease.acquire(mine, f"writer {number}")
                except SlackwaterError as error:
                    return error.code

        with ThreadPoolExecutor(6) as pool:
            outcomes = list(pool.map(attempt, range(6)))
        leases = [outcome for outcome in outcomes if isinstance(outcome, WriterLease)]
        assert len(leases) == 1
        assert outcomes.count("WAREHOUSE_LOCKED") == 5
        leases[0]._ended.set()

    def test_a_forked_copy_cannot_release_it(self, catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
        with WriterLease.acquire(catalog, "first") as lease:
            with monkeypatch.context() as patch:
                patch.setattr(os, "getpid", lambda: -1)
                lease.release()
            lease.check()

    def test_a_lease_needs_a_holder_and_a_duration(self, catalog: Catalog) -> None:
        for holder, seconds in (("", 1.0), ("me", 0.0)):
            with refused("SETTING_INVALID"):
                WriterLease.acquire(catalog, holder, seconds)

"""The writer's lease on SQLite, and how a process is told from another."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import URL

from slackwater.storage import sqlite_url
from slackwater.storage.process import ProcessIdentity, _start_ticks
from tests.unit.lease_suite import LeaseSuite


@pytest.fixture
def url(tmp_path: Path) -> URL:
    return sqlite_url(tmp_path / "catalog.db")


class TestSqliteLease(LeaseSuite):
    pass


def test_this_process_is_not_gone() -> None:
    me = ProcessIdentity.current()
    assert me == ProcessIdentity.current()
    assert (me.pid, me.is_gone()) == (os.getpid(), False)


def test_a_process_of_someone_else_is_not_gone() -> None:
    me = ProcessIdentity.current()
    scope = me.start.rpartition("/")[0]
    # Process 1 belongs to root; without a start time on record only its existence counts.
    assert not ProcessIdentity(me.host, 1, f"{scope}/").is_gone()


def test_an_ended_process_is_gone_even_before_it_is_waited_for() -> None:
    me = ProcessIdentity.current()
    scope = me.start.rpartition("/")[0]
    code = "from slackwater.storage.process import ProcessIdentity as P; print(P.current().start, flush=True); input()"
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        other = ProcessIdentity(me.host, process.pid, process.stdout.readline().strip())
        assert other.start.startswith(scope)
        assert not other.is_gone()
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert other.is_gone() or not sys.platform.startswith("linux")
    assert other.is_gone()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def test_odd_program_names_are_read_past(tmp_path: Path) -> None:
    program = tmp_path / ") S 1 (x) R"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "60"]) as process:
        try:
            mine, others = _start_ticks(os.getpid()), _start_ticks(process.pid)
        finally:
            process.kill()
    assert mine is not None
    assert others is not None
    assert int(others) >= int(mine)

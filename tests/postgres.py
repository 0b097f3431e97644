"""A throwaway PostgreSQL server for tests: on loopback, in a directory of its own, gone at the end."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from sqlalchemy import URL

ROOT = Path(__file__).parents[1]
SECONDS = 60
# A test's server need not survive a power cut, and must not be reachable from elsewhere.
SETTINGS = {"listen_addresses": "127.0.0.1", "fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """A running server, and how to get at it."""

    port: int
    password: str

    def url(self, database: str = "postgres", *, query: Mapping[str, str] | None = None) -> URL:
        return URL.create(
            "postgresql", "postgres", self.password, "127.0.0.1", self.port, database, query=dict(query or {})
        )

    def connect(self, database: str = "postgres") -> psycopg.Connection[tuple[object, ...]]:
        """Connect as administrator, each statement a transaction of its own."""
        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user="postgres",
            password=self.password,
            dbname=database,
            autocommit=True,
        )

    def new_database(self) -> URL:
        """Make an empty database."""
        name = f"test_{secrets.token_hex(6)}"
        with self.connect() as connection:
            connection.execute(f"CREATE DATABASE {name}")  # type: ignore[call-overload,unused-ignore]
        return self.url(name)


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """Start a server, and stop it at the end whatever happens."""
    binaries = _binaries()
    # Not below pytest's directory: as root, the server runs as another user, who may not look into that.
    place = Path(tempfile.mkdtemp(prefix="slackwater-pg-"))
    try:
        password = _make_cluster(binaries, place)
        port = _start(binaries, place)
        try:
            yield PostgresServer(port, password)
        finally:
            _run(place, binaries / "pg_ctl", "-D", place / "data", "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _binaries() -> Path:
    # Prints where they are, and installs them where it may.
    found = subprocess.run([ROOT / "scripts" / "ensure-postgres"], capture_output=True, text=True, timeout=540)
    if found.returncode:
        raise RuntimeError(f"no PostgreSQL for tests; deselect them with -m 'not postgres'\n{found.stderr}")
    return Path(found.stdout.strip().splitlines()[-1])


def _make_cluster(binaries: Path, place: Path) -> str:
    password = secrets.token_urlsafe(16)
    (place / "password").write_text(password, encoding="ascii")
    if user := _server_user():
        for path in (place, place / "password"):
            os.chown(path, user.pw_uid, user.pw_gid)
    options = ("--auth=scram-sha-256", "--username=postgres", f"--pwfile={place / 'password'}")
    _run(place, binaries / "initdb", "-D", place / "data", "--encoding=UTF8", "--locale=C", "--no-sync", *options)
    return password


def _start(binaries: Path, place: Path) -> int:
    for attempt in range(5):
        port = _free_port()
        settings = {**SETTINGS, "port": str(port), "unix_socket_directories": str(place)}
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        command = (binaries / "pg_ctl", "-D", place / "data", "-l", place / "log", "-t", str(SECONDS), "-w")
        try:
            _run(place, *command, "-o", options, "start")
        except RuntimeError:
            # Someone else may have taken the port in the meantime.
            if attempt == 4:
                raise
        else:
            return port
    raise AssertionError("unreachable")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _server_user() -> pwd.struct_passwd | None:
    """Give the user to run as: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError("running as root, and there is neither a user 'postgres' nor 'nobody' to run PostgreSQL as")


def _run(place: Path, *command: Path | str) -> None:
    user = _server_user()
    # The server keeps what it inherits open, so its output goes to a file and not to a pipe someone waits for.
    with (place / "output").open("w", encoding="utf-8") as output:
        done = subprocess.run(
            [str(part) for part in command],
            cwd=place,
            env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=2 * SECONDS,
            user=user.pw_uid if user else None,
            group=user.pw_gid if user else None,
            extra_groups=[] if user else None,
        )
    if done.returncode:
        log = place / "log"
        words = (place / "output").read_text(encoding="utf-8") + (
            log.read_text(encoding="utf-8") if log.exists() else ""
        )
        raise RuntimeError(f"{command[0]} failed with status {done.returncode}:\n{words}")

"""Which process holds a lease, and whether it is gone for certain."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process: its machine's name, its number, and when and where it started.

    `start` has three parts, `boot/namespace/ticks`. A number means something only within one boot of one machine and
    one PID namespace; two containers may well share a host name and a warehouse.
    """

    host: str
    pid: int
    start: str

    @classmethod
    def current(cls) -> ProcessIdentity:
        """Describe this process."""
        return cls(socket.gethostname(), os.getpid(), f"{_scope()}/{_start_ticks(os.getpid()) or ''}")

    def is_gone(self) -> bool:
        """Tell whether the process has ended for certain; false wherever that cannot be known from here."""
        scope, _, ticks = self.start.rpartition("/")
        if os.name != "posix" or self.host != socket.gethostname() or scope != _scope():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass  # it exists and is someone else's
        if not ticks:
            return False
        # No start time: dead but not yet buried, or ended just now. Another one: the number was given to someone else.
        return _start_ticks(self.pid) != ticks


def _scope() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return "/"


def _start_ticks(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # Field 2 is the program's name in brackets, and may hold spaces and brackets itself.
    fields = stat.rpartition(")")[2].split()
    state, started = fields[0], fields[19]
    return None if state in ("Z", "X") else started

"""The tables and queries of TPC-DS, made once and kept in the user's cache directory.

They come from the generator inside DuckDB 0.9.2, the last line of releases whose Python package has it built in: newer
ones fetch it over the network. That release lives in an environment of its own, beside whatever DuckDB is installed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from slackwater.errors import SlackwaterError

DUCKDB = "duckdb==0.9.2"
SETUP = "slackwater bench tpcds-data"
"""The command that makes the data; tests that find none name it."""

SMALLEST = 0.01
GENERATOR = Path(__file__).with_name("tpcds_generator.py")
_TYPES = {"INTEGER": "INT", "VARCHAR": "STRING"}

FACTS = ("store_sales", "store_returns", "catalog_sales", "catalog_returns", "web_sales", "web_returns", "inventory")
"""The tables that receive rows all the time; the others describe what these refer to."""


@dataclass(frozen=True, slots=True)
class TpcdsData:
    """A directory with one Parquet file for each table, and the query texts in DuckDB's dialect."""

    directory: Path

    @property
    def columns(self) -> dict[str, dict[str, str]]:
        """The columns of each table with Spark's types."""
        told = json.loads((self.directory / "columns.json").read_text(encoding="utf-8"))
        return {table: {c: _TYPES.get(t, t) for c, t in columns.items()} for table, columns in told.items()}

    @property
    def schemas(self) -> dict[str, str]:
        """The columns of each table as DDL."""
        return {t: ", ".join(f"{c} {kind}" for c, kind in columns.items()) for t, columns in self.columns.items()}

    @property
    def texts(self) -> dict[int, str]:
        """The queries as DuckDB has them, by number."""
        told = json.loads((self.directory / "queries.json").read_text(encoding="utf-8"))
        return {int(number): text for number, text in told.items()}

    def file(self, table: str) -> Path:
        """Where a table's rows are."""
        return self.directory / f"{table}.parquet"


def cache() -> Path:
    """Where generated data is kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "slackwater" / "tpcds"


def prepared(scale: float = SMALLEST) -> TpcdsData | None:
    """The data if it was made before; None otherwise. Needs no network."""
    data = TpcdsData(cache() / f"sf{scale:g}")
    return data if (data.directory / "queries.json").exists() else None


def prepare(scale: float, say: Callable[[str], None]) -> TpcdsData:
    """The data, made if it is not there: the first time this installs the generator with pip."""
    made = prepared(scale)
    if made is not None:
        return made
    python = _environment(say)
    target = cache() / f"sf{scale:g}"
    started = target.with_name(f".{target.name}-{os.getpid()}")
    shutil.rmtree(started, ignore_errors=True)
    started.mkdir(parents=True)
    try:
        say(f"generating TPC-DS at scale factor {scale:g}")
        _generate([str(python), str(GENERATOR), str(started), repr(scale)], say)
        shutil.rmtree(target, ignore_errors=True)
        started.rename(target)
    finally:
        shutil.rmtree(started, ignore_errors=True)
    return TpcdsData(target)


def _environment(say: Callable[[str], None]) -> Path:
    """The interpreter of the environment that has the generator; made on first use."""
    place = cache() / DUCKDB.replace("==", "-")
    python = place / "bin" / "python"
    if (place / "ready").exists() and python.exists():
        return python
    say(f"installing {DUCKDB} into {place}")
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    venv.create(place, with_pip=True)
    # Built from source it would lack the generator, and take half an hour.
    command = [str(python), "-m", "pip", "install", "--quiet", "--only-binary", ":all:", DUCKDB]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own arguments
    if done.returncode:
        last = " ".join(done.stderr.strip().splitlines()[-1:])
        version = ".".join(map(str, sys.version_info[:2]))
        raise SlackwaterError(
            "DEMO_DATA_MISSING",
            f"{DUCKDB}, which makes the TPC-DS data, cannot be installed: {last}",
            f"it has packages for Python 3.7 to 3.12, and this is {version}; pip needs a network",
        )
    (place / "ready").touch()
    return python


def _generate(command: list[str], say: Callable[[str], None]) -> None:
    with subprocess.Popen(  # noqa: S603 - our own program and arguments
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None  # noqa: S101 - asked for above
        assert running.stderr is not None  # noqa: S101 - asked for above
        for line in running.stdout:
            say(line.rstrip("\n"))
        told = running.stderr.read()
    if running.returncode:
        last = " ".join(told.strip().splitlines()[-1:])
        raise SlackwaterError("DEMO_DATA_MISSING", f"the generator of TPC-DS failed: {last}",
                              "check the free space and memory; a smaller scale factor needs less")  # fmt: skip

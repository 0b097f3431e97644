"""What all commands share: their options, their exit codes, and an engine whose Spark keeps quiet."""

from __future__ import annotations

import functools
import logging
import os
import runpy
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from slackwater.cli_output import Output
from slackwater.errors import SlackwaterError

if TYPE_CHECKING:
    from slackwater.engine import Engine

DEFAULT_BUDGET = "1GB"

EXIT_CODES = """\b
Exit codes:
  0    fine
  1    an error with a code, printed as `error [CODE] message` on stderr
  2    the command line was wrong
  3    a result differs from a recompute
  4    another writer has the warehouse open
  130  interrupted
"""
"""The end of every help text."""

JSON = click.option("--json", "json_only", is_flag=True, help="Print one JSON document on stdout, and nothing else.")


class ExitCode(IntEnum):
    """The exit codes; a wrong command line is 2, which is click's own."""

    ERROR = 1
    DIFFERENCE = 3
    LOCKED = 4
    INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Session:
    """One call of the command.

    Attributes:
        output: where its words go.
        catalog: the catalog's URL; None for the SQLite file inside the warehouse.
        budget: what states may occupy.
        functions: a Python file that declares the functions which views call.
    """

    output: Output
    catalog: str | None
    budget: str
    functions: Path | None = None

    @contextmanager
    def engine(self, warehouse: Path, *, read_only: bool = False, create: bool = False) -> Iterator[Engine]:
        """Open a warehouse; one that is not there is made only where `create` says so."""
        from slackwater.capture.noise import quiet
        from slackwater.engine import Engine

        if not create:
            _require_warehouse(warehouse, self.catalog)
        with quiet(), Engine(warehouse, self.budget, catalog=self.catalog, read_only=read_only) as engine:
            engine.around_start = self._starting  # also where planning finds out on its way that it needs Spark
            yield engine
            if not read_only and any(view.states for view in engine.loaded_views()):
                with self.output.working("saving states"):
                    engine.close()

    def start_spark(self, engine: Engine) -> None:
        """Start Spark now, and declare the functions that views call."""
        assert engine.spark is not None  # noqa: S101 - the property starts Spark
        if self.functions is not None:
            declare_functions(engine, self.functions)

    @contextmanager
    def _starting(self) -> Iterator[None]:
        """What goes around the start of Spark: a spinner, and nothing of its own words."""
        with self.output.working("starting Spark"), muted():
            yield


def declare_functions(engine: Engine, file: Path) -> None:
    """Run a Python file and let its `register(engine)` declare functions."""
    try:
        register = runpy.run_path(str(file)).get("register")
        if not callable(register):
            raise SlackwaterError("FUNCTION_INVALID", f"{file} has no function register(engine)",
                                  "declare functions in it: engine.register_udf(…, deterministic=True)")  # fmt: skip
        register(engine)
    except SlackwaterError:
        raise
    except Exception as error:
        message = f"{file} failed: {type(error).__name__}: {_first_line(error)}"
        raise SlackwaterError("FUNCTION_INVALID", message, "correct the file; nothing was changed") from error


def _require_warehouse(warehouse: Path, catalog: str | None) -> None:
    """Refuse a place where no warehouse is, and leave no trace there."""
    from slackwater.storage.directory import open_catalog

    open_catalog(warehouse.absolute(), catalog or None, create=False).close()


# --- Spark's noise -----------------------------------------------------------------------------------


def start_muted(engine: Engine) -> None:
    """Start an engine's Spark without its own words."""
    with muted():
        assert engine.spark is not None  # noqa: S101 - the property starts Spark


@contextmanager
def muted() -> Iterator[None]:
    """Send what Java, started meanwhile, writes to a file that nobody keeps; its end is told on failure."""
    with tempfile.TemporaryFile() as log:
        try:
            with _descriptors_to(log):
                yield
        except SlackwaterError:
            raise
        except Exception as error:
            if not _from_spark(error):
                raise
            # Where Java itself did not start, PySpark only knows that much; the reason is in the log.
            reason = _complaint(log) if "JAVA_GATEWAY_EXITED" in str(error) else ""
            message = f"Spark did not start: {reason or _first_line(error)}"
            advice = "check that `java -version` says 17 or newer, and that JAVA_HOME, if set, is right"
            raise SlackwaterError("SPARK_FAILED", message, advice) from error


@contextmanager
def _descriptors_to(log: IO[bytes]) -> Iterator[None]:
    """Point descriptors 1 and 2 to a file: the JVM, started meanwhile, inherits them for life."""
    sys.stdout.flush()
    sys.stderr.flush()
    with ExitStack() as restore:
        for descriptor in (1, 2):
            try:
                saved = os.dup(descriptor)
            except OSError:  # closed by whoever started us
                continue
            restore.callback(os.close, saved)
            restore.callback(os.dup2, saved, descriptor)
            os.dup2(log.fileno(), descriptor)
        yield


def _complaint(log: IO[bytes]) -> str:
    """The first line that is no warning."""
    log.seek(0)
    lines = (line.strip() for line in log.read().decode(errors="replace").splitlines())
    return next((line[:300] for line in lines if line and "WARN" not in line), "")


# --- options and errors ------------------------------------------------------------------------------


def with_session(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command a `Session` as its first argument, the options for it, and a report of what goes wrong."""

    @JSON
    @click.option("--catalog", metavar="URL", envvar="SLACKWATER_CATALOG", show_envvar=True,
                  help="The catalog, such as postgresql://…; a SQLite file in the warehouse by default.")  # fmt: skip
    @click.option("--memory-budget", metavar="SIZE", default=DEFAULT_BUDGET, show_default=True,
                  envvar="SLACKWATER_MEMORY_BUDGET", show_envvar=True,
                  help="What the states of all views may occupy between refreshes.")  # fmt: skip
    @click.option("--functions", "declaring", metavar="FILE", envvar="SLACKWATER_FUNCTIONS", show_envvar=True,
                  type=click.Path(exists=True, dir_okay=False, path_type=Path),
                  help="A Python file whose register(engine) declares the functions that views call.")  # fmt: skip
    @functools.wraps(function)
    def wrapped(
        json_only: bool, catalog: str | None, memory_budget: str, declaring: Path | None, **arguments: Any
    ) -> None:
        with Output(json_only) as output, reported(output):
            function(Session(output, catalog, memory_budget, declaring), **arguments)

    return wrapped


@contextmanager
def reported(output: Output) -> Iterator[None]:
    """Turn errors that people can act on into words and an exit code; only bugs keep their traceback."""
    try:
        with _without_py4j():
            yield
    except SlackwaterError as error:
        output.error(error)
        raise click.exceptions.Exit(exit_code(error)) from None
    except KeyboardInterrupt:
        output.note("interrupted")
        raise click.exceptions.Exit(ExitCode.INTERRUPTED) from None
    except Exception as error:
        if not _from_spark(error):
            raise
        output.error(SlackwaterError("SPARK_FAILED", _first_line(error), "see whether the same works in Spark alone"))
        raise click.exceptions.Exit(ExitCode.ERROR) from None


@contextmanager
def _without_py4j() -> Iterator[None]:
    """Drop the traceback that py4j logs, as the root logger, when Ctrl-C finds it waiting for Java."""

    def of_others(record: logging.LogRecord) -> bool:
        return "py4j" not in Path(record.pathname).parts

    logging.root.addFilter(of_others)
    try:
        yield
    finally:
        logging.root.removeFilter(of_others)


def exit_code(error: SlackwaterError) -> ExitCode:
    """The exit code that stands for an error."""
    return ExitCode.LOCKED if error.code == "WAREHOUSE_LOCKED" else ExitCode.ERROR


def _from_spark(error: Exception) -> bool:
    return type(error).__module__.partition(".")[0] in ("pyspark", "py4j")


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]

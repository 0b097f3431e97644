"""What the command prints: tables and lines for people on stdout, progress on stderr, or one JSON document."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Literal, TextIO, TypeVar

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from slackwater.errors import SlackwaterError

T = TypeVar("T")
WIDTH_WITHOUT_TERMINAL = 160
"""A file or a pipe has no width; tables should not be cut to 80 columns there."""


class Output:
    """Where a command's words go. Use as a context manager."""

    def __init__(self, json_only: bool) -> None:
        self.json_only = json_only
        self._errors = _own_stderr()
        self._out = Console(markup=False, highlight=False, emoji=False, width=_width(sys.stdout))
        self._err = Console(file=self._errors, markup=False, highlight=False, emoji=False, width=_width(sys.stderr))

    def __enter__(self) -> Output:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._errors is not sys.stderr:
            self._errors.close()

    # --- results, on stdout ------------------------------------------------------------------------

    def document(self, value: Any) -> None:
        """The one JSON document of `--json`; nothing otherwise."""
        if self.json_only:
            click.echo(json.dumps(value, indent=2, default=str))

    def line(self, text: str = "") -> None:
        """A line for people."""
        if not self.json_only:
            self._out.print(text, soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]], title: str | None = None) -> None:
        """A table for people; columns whose names begin with "#" hold numbers and stand to the right."""
        if self.json_only:
            return
        shown = Table(title=title, title_justify="left", header_style="bold")
        for name in columns:
            side: Literal["left", "right"] = "right" if name.startswith("#") else "left"
            shown.add_column(name.removeprefix("#"), justify=side, overflow="fold")
        for row in rows:
            shown.add_row(*(str(value) for value in row))
        self._out.print(shown)

    # --- what goes on, on stderr --------------------------------------------------------------------

    def error(self, error: SlackwaterError) -> None:
        """A coded error that ends the command: as JSON on stdout, or for people on stderr."""
        self.document({"error": error.to_dict()})
        self.complaint(error)

    def complaint(self, error: SlackwaterError) -> None:
        """A coded error for people; with `--json` the document tells it."""
        self.note(f"error [{error.code}] {error.message}")
        if error.advice:
            self.note(f"  → {error.advice}")

    def note(self, text: str) -> None:
        """A remark that is no result."""
        if not self.json_only:
            self._err.print(text, soft_wrap=True)

    @contextmanager
    def working(self, text: str) -> Iterator[None]:
        """A spinner while something takes its time; a plain line where there is no terminal."""
        if self.json_only or not self._err.is_terminal:
            self.note(f"{text} …")
            yield
            return
        with self._progress() as progress:
            progress.add_task(text, total=None)
            yield

    def each(self, items: Sequence[T], text: str) -> Iterator[T]:
        """Go through items with a progress bar; a plain line for each where there is no terminal."""
        if self.json_only or not self._err.is_terminal:
            for at, item in enumerate(items, start=1):
                self.note(f"{text} {_name(item)} ({at} of {len(items)}) …")
                yield item
            return
        with self._progress(BarColumn(), MofNCompleteColumn()) as progress:
            task = progress.add_task(text, total=len(items))
            for item in items:
                progress.update(task, description=f"{text} {_name(item)}")
                yield item
                progress.advance(task)

    @contextmanager
    def steps(self) -> Iterator[Steps]:
        """Tell what a job of many minutes is at, one step after the other."""
        if self.json_only or not self._err.is_terminal:
            yield Steps(self.note, None)
            return
        with self._progress(BarColumn(), TaskProgressColumn()) as progress:
            yield Steps(self.note, progress)

    def _progress(self, *bars: ProgressColumn) -> Progress:
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), *bars, TimeElapsedColumn())
        # Gone when done. The standard streams are left alone: Spark is started underneath.
        return Progress(*columns, console=self._err, transient=True, redirect_stdout=False, redirect_stderr=False)


class Steps:
    """What a job of many minutes is at: a line for each step, with the time of day; in a terminal a bar below it."""

    def __init__(self, note: Callable[[str], None], progress: Progress | None) -> None:
        """Get one from `Output.steps`."""
        self._note, self._progress, self._text = note, progress, ""

    def say(self, text: str) -> None:
        """Begin a step."""
        self._text = text
        self._note(f"{time.strftime('%H:%M:%S')} {text}")
        self._show(None)

    def over(self, items: Sequence[T]) -> Iterator[T]:
        """Go through what the step consists of, with a bar in a terminal; no line of its own for any of it."""
        self._show(len(items))
        for item in items:
            yield item
            if self._progress is not None:
                self._progress.advance(self._progress.task_ids[0])
        self._show(None)

    def _show(self, total: int | None) -> None:
        if self._progress is None:
            return
        for task in self._progress.task_ids:  # a new one, because a total cannot be taken back
            self._progress.remove_task(task)
        self._progress.add_task(self._text, total=total)


def _name(item: object) -> str:
    return str(getattr(item, "name", item))


def _width(stream: TextIO) -> int | None:
    return None if stream.isatty() else WIDTH_WITHOUT_TERMINAL


def _own_stderr() -> TextIO:
    """Standard error under a descriptor of its own, so that the spinner turns while descriptor 2 is muted."""
    try:
        descriptor = os.dup(sys.stderr.fileno())
    except (OSError, ValueError):  # no file behind it, as in tests and notebooks
        return sys.stderr
    return open(descriptor, "w", encoding=sys.stderr.encoding, errors="replace", buffering=1)

"""What a failure of Spark comes to, in one line."""

from __future__ import annotations

import re

from py4j.protocol import Py4JJavaError

_RAISED = re.compile(r"^Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*(\S.*)", re.MULTILINE)
"""What a user-defined function raised, below its traceback."""


def first_line(error: BaseException | None) -> str:
    """The line that tells most: what a function raised, or the first one of the cause."""
    text = _root_cause(error) if isinstance(error, Py4JJavaError) else str(error).strip() if error is not None else ""
    if raised := _RAISED.search(text):
        return raised[1][:300]
    return text.splitlines()[0][:300] if text else type(error).__name__


def _root_cause(error: Py4JJavaError) -> str:
    """What Spark says at the bottom: the exceptions above it only say where they were thrown."""
    found = error.java_exception
    while found.getCause() is not None:
        found = found.getCause()
    return str(found.getMessage() or found.toString())

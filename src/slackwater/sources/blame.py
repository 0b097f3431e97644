"""Which file is to blame for an error, and in what words: a good file must never be set aside for another's fault."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException

from slackwater.errors import SlackwaterError, SourceError, TableError
from slackwater.sources.candidates import Candidate, FrozenFile

_WRAPPINGS = ("FAILED_READ_FILE", "MALFORMED_RECORD_IN_PARSING", "TASK_WRITE_FAILED")


def malformed(candidate: Candidate, reason: str, cause: str | None = None) -> SourceError:
    """Build the report on a file that cannot be read; `cause` is the code of what was wrong inside it."""
    details = {"file": candidate.file, "reason": reason, "cause": cause}
    return SourceError("SOURCE_FILE_MALFORMED", f"{candidate.file!r} was not read: {reason}",
                       "put a corrected file in its place; nothing of it was applied", details)  # fmt: skip


def keys_refused(candidate: Candidate, error: TableError) -> SourceError:
    """Build the report on a file whose keys collide."""
    details = {**error.details, "file": candidate.file, "reason": error.message}
    return SourceError(error.code, f"{candidate.file!r} was not applied: {error.message}",
                       "correct it, or apply its rows with upsert; nothing of it was applied", details)  # fmt: skip


def wrong_shape(error: Exception, file: FrozenFile) -> SourceError | None:
    """The report on a file whose columns were looked at alone, or None if the error was not the file's fault."""
    if isinstance(error, TableError):
        return malformed(file.candidate, error.message, error.code)
    if isinstance(error, AnalysisException) or failed_file(error, [file]) is file:
        code, reason = spark_reason(error)
        if code == "PATH_NOT_FOUND":  # somebody removed the copy
            return None
        return malformed(file.candidate, reason.replace(str(file.path), file.candidate.file), code)
    return None


def wrong_content(error: Exception, files: Sequence[FrozenFile]) -> tuple[FrozenFile, SourceError] | None:
    """The file, among those read together, that Spark could not read, with the report on it."""
    # A line that says "No space left on device" can make its error look like a full disk: ask Spark what failed.
    origin = error.__cause__ if isinstance(error, SlackwaterError) else error
    file = failed_file(origin, files)
    if file is None:
        return None
    code, reason = spark_reason(origin)
    return file, malformed(file.candidate, reason.replace(str(file.path), file.candidate.file), code)


def failed_file(error: BaseException | None, files: Sequence[FrozenFile]) -> FrozenFile | None:
    """The file that Spark says it failed to read, if it is one of these."""
    failure = _java(error)
    condition = _condition(failure) or ""
    if not condition.startswith("FAILED_READ_FILE") or condition.endswith("FILE_NOT_EXIST"):
        return None
    path = PurePosixPath(str(dict(failure.getMessageParameters()).get("path", "")))
    # The folder's name is unique, so a file of the warehouse is not mistaken for one of ours.
    return next((f for f in files if (f.path.name, f.path.parent.name) == (path.name, path.parent.name)), None)


def spark_reason(error: BaseException | None) -> tuple[str | None, str]:
    """The condition and the words of a failure in Spark, without the wrapping that only says that something failed."""
    failure = _java(error)
    if failure is None:
        return None, _line(str(error))
    while failure.getCause() is not None and _is_wrapping(failure):
        failure = failure.getCause()
    return _condition(failure), _line(failure.getMessage() or failure.getClass().getSimpleName())


def footer_reason(error: Exception) -> str | None:
    """The words of what is wrong with a Parquet file's footer; None if it is the disk that failed."""
    disk = isinstance(error, OSError) and error.errno is not None
    return None if disk or not isinstance(error, pa.ArrowException | OSError) else _line(str(error))


def _java(error: BaseException | None) -> Any:
    if isinstance(error, Py4JJavaError):
        return error.java_exception
    return getattr(error, "_origin", None) if isinstance(error, PySparkException) else None


def _condition(failure: Any) -> str | None:
    if failure is None:
        return None
    try:
        return str(failure.getCondition() or "") or None
    except (Py4JError, TypeError):  # it is none of Spark's own exceptions
        return None


def _is_wrapping(failure: Any) -> bool:
    condition = _condition(failure)
    if condition is None:
        return str(failure.getClass().getName()) == "org.apache.spark.SparkException"
    return condition.startswith(_WRAPPINGS)


def _line(message: str) -> str:
    return " ".join(message.split())[:500]

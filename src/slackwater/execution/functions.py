"""The user's own functions: declared deterministic, registered in every session, and told from what they were before.

The catalog keeps of each function that a view calls its kind, the type of its answers, and a fingerprint of its code.
The code itself stays with the user, who declares it again in each process. A view whose functions are not all there is
refused before anything runs; one whose functions have other code is recomputed; one whose functions have become
something else altogether is refused, because its plan would no longer fit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from slackwater.algebra.partials import user_merge, user_rows
from slackwater.capture.user_functions import AGGREGATE, MERGING, SCALAR, UserFunction
from slackwater.errors import SlackwaterError, ViewError
from slackwater.execution.fingerprint import fingerprint

if TYPE_CHECKING:
    from slackwater.view import View

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}")
_SCALARS = ("SQL_BATCHED_UDF", "SQL_ARROW_BATCHED_UDF", "SQL_SCALAR_PANDAS_UDF", "SQL_SCALAR_PANDAS_ITER_UDF",
            "SQL_SCALAR_ARROW_UDF", "SQL_SCALAR_ARROW_ITER_UDF")  # fmt: skip
_AGGREGATES = ("SQL_GROUPED_AGG_PANDAS_UDF", "SQL_GROUPED_AGG_ARROW_UDF")


@dataclass(frozen=True, slots=True)
class Function:
    """One declared function.

    Attributes:
        name: its name in SQL.
        kind: scalar, aggregate, or merging aggregate.
        returns: Spark's name of the type of its answers.
        fingerprint: what its code comes to.
        udf: the function as Spark calls it.
        beside: functions that programs call along with it, by their names in SQL.
    """

    name: str
    kind: str
    returns: str
    fingerprint: str
    udf: UserDefinedFunction
    beside: Mapping[str, UserDefinedFunction]

    def record(self) -> dict[str, str]:
        """What the catalog keeps."""
        return {"kind": self.kind, "returns": self.returns, "fingerprint": self.fingerprint}

    def install(self, session: SparkSession) -> None:
        """Let SQL in a session call it."""
        for name, udf in {self.name: self.udf, **self.beside}.items():
            session._jsparkSession.udf().registerPython(name, udf._judf)


class Functions:
    """The functions that were declared in this process."""

    def __init__(self) -> None:
        self._declared: dict[str, Function] = {}

    def declare(self, function: Function) -> None:
        """Add a function, in the place of one of the same name."""
        self._declared[function.name.casefold()] = function

    def install(self, session: SparkSession) -> None:
        """Let SQL in a session call all of them."""
        for function in self._declared.values():
            function.install(session)

    def for_capture(self) -> dict[str, UserFunction]:
        """What capture must know of each."""
        return {f.name: UserFunction(f.name, f.kind, f.udf._judf.func()) for f in self._declared.values()}

    def records(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        """What the catalog keeps of those that a view calls; all of them are declared."""
        return {name: self._declared[name.casefold()].record() for name in names}

    def moved(self, view: View) -> tuple[str, ...]:
        """The functions of a view whose code has changed since its last refresh.

        One that is not declared, or that has become something else, is refused.
        """
        found = {name: self._declared.get(name.casefold()) for name in view.functions}
        missing = sorted(name for name, function in found.items() if function is None)
        if missing:
            raise ViewError(
                "FUNCTION_MISSING",
                f"view {view.name!r} calls {', '.join(missing)}, not declared in this process",
                "declare what it calls first, with engine.register_udf or register_udaf, or with --functions on the"
                " command line; nothing was changed",
                {"view": view.name, "functions": missing},
            )
        records = self.records(view.functions)
        for name, was in view.functions.items():
            for what in ("kind", "returns"):
                if records[name][what] != was[what]:
                    raise ViewError(
                        "FUNCTION_CHANGED",
                        f"view {view.name!r} calls {name}, whose {what} was {was[what]!r} and is now"
                        f" {records[name][what]!r}",
                        "declare it as it was, or make the view anew with CREATE OR REPLACE; nothing was changed",
                        {"view": view.name, "functions": [name]},
                    )
        return tuple(sorted(n for n, was in view.functions.items() if records[n]["fingerprint"] != was["fingerprint"]))


def scalar_function(
    name: str, function: Callable[..., Any], returns: str | DataType | None, *, deterministic: bool, spark: SparkSession
) -> Function:
    """A function of the cells of one row, or a pandas or Arrow function that treats each row by itself."""
    udf = _udf(name, function, returns, "SQL_BATCHED_UDF", _SCALARS, deterministic, spark)
    return Function(name, SCALAR, _returns(udf), _fingerprint(udf), udf, {})


def aggregate_function(
    name: str,
    function: Callable[..., Any],
    returns: str | DataType | None,
    *,
    deterministic: bool,
    merge: Callable[[list[Any]], Any] | None,
    spark: SparkSession,
) -> Function:
    """A pandas or Arrow function from all values of a group to one."""
    udf = _udf(name, function, returns, "SQL_GROUPED_AGG_PANDAS_UDF", _AGGREGATES, deterministic, spark)
    kept = f"struct<v:{_returns(udf)}>"
    beside = {user_rows(name): UserDefinedFunction(_row_count(), "bigint", user_rows(name), udf.evalType)}
    if merge is not None:
        if not callable(merge):
            raise _invalid(name, f"its merge is no function but {type(merge).__name__}")
        merging = UserDefinedFunction(_merging(merge), kept, user_merge(name), PythonEvalType.SQL_BATCHED_UDF)
        beside[user_merge(name)] = _picklable(name, merging)
    kind = AGGREGATE if merge is None else MERGING
    return Function(name, kind, _returns(udf), _fingerprint(udf, merge), udf, beside)


def _row_count() -> Callable[[Any], int]:
    return lambda values: len(values)


def _merging(merge: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """The merge of kept results. None of them gives none, and one is what it is: `merge` sees two at least."""

    def merged(kept: list[Any]) -> Any:
        if len(kept) < 2:
            return kept[0] if kept else None
        return (merge([part[0] for part in kept]),)

    return merged


def _udf(name: str, function: Any, returns: str | DataType | None, plain: str, allowed: tuple[str, ...],
         deterministic: bool, spark: SparkSession) -> UserDefinedFunction:  # fmt: skip
    _check_name(name, spark)
    if deterministic is not True or getattr(function, "deterministic", True) is not True:
        raise SlackwaterError(
            "FUNCTION_UNDECLARED",
            f"the function {name!r} is not declared deterministic",
            "say deterministic=True if the same arguments always give the same answer; else keep answers in a column",
        )
    if not callable(function):
        raise _invalid(name, f"{type(function).__name__} cannot be called")
    kind = getattr(function, "evalType", getattr(PythonEvalType, plain))
    if kind not in {getattr(PythonEvalType, a) for a in allowed if hasattr(PythonEvalType, a)}:
        raise _invalid(name, "it is a function of another kind: register_udf takes functions of rows, register_udaf"
                             " those of the values of a group")  # fmt: skip
    returns = returns if returns is not None else getattr(function, "returnType", None)
    if returns is None:
        raise _invalid(name, "nothing says the type of its answers")
    made = UserDefinedFunction(getattr(function, "func", function), returns, name, kind, True)
    return _picklable(name, made)


def _picklable(name: str, udf: UserDefinedFunction) -> UserDefinedFunction:
    """Let Spark take the function now, so that what it refuses is told to whoever declares it."""
    try:
        assert udf._judf is not None  # noqa: S101 - the property sends the function to Spark
    except PySparkException as error:
        raise _invalid(name, str(error).strip().splitlines()[0]) from error
    except Exception as error:
        raise _invalid(name, f"it cannot be sent to Spark's workers: {error}") from error
    return udf


def _check_name(name: object, spark: SparkSession) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name.casefold().startswith("slackwater_"):
        raise _invalid(name, "a name has letters, digits and underscores, and starts with a letter")
    jvm: Any = spark._sc._jvm
    catalyst = jvm.org.apache.spark.sql.catalyst
    if catalyst.analysis.FunctionRegistry.builtin().functionExists(catalyst.FunctionIdentifier(name)):
        raise _invalid(name, "Spark has a function of this name")
    try:
        spark._jsparkSession.sessionState().sqlParser().parseExpression(f"{name}(1)")
    except Exception as error:
        raise _invalid(name, "the name is a word of SQL") from error


def _returns(udf: UserDefinedFunction) -> str:
    return str(udf.returnType.simpleString())


def _fingerprint(udf: UserDefinedFunction, merge: Callable[..., Any] | None = None) -> str:
    return fingerprint(udf.func, udf.evalType, merge)


def _invalid(name: object, why: str) -> SlackwaterError:
    return SlackwaterError("FUNCTION_INVALID", f"{name!r} cannot be declared: {why}",
                           "give register_udf or register_udaf a name, a Python, pandas or Arrow function, and the type"
                           " of its answers")  # fmt: skip

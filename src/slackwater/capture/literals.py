"""Dates, times and intervals: constants that Spark tells as numbers, and arithmetic that has no name of its own."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from slackwater.algebra.expressions import Expr, call
from slackwater.capture.trees import Tree, Unsupported

_EPOCH = datetime(1970, 1, 1)
_WHOLE = re.compile(r"-?\d+")


def special_literal(dtype: str, text: str) -> Expr | None:
    """The constant as Spark SQL, where its type is one of these and its value can be spelled."""
    if not _WHOLE.fullmatch(text):
        return None
    if dtype == "timestamp_ntz":
        moment = _moment(int(text))
        return None if moment is None else Expr("lit", (), f"TIMESTAMP_NTZ '{moment}'", dtype)
    if dtype.startswith("interval "):
        sign = "-" if text.startswith("-") else ""
        # The longest form holds every value of its family; the cast gives it the units that Spark says it has.
        return Expr("lit", (), f"CAST({interval_text(sign, text.lstrip('-'), dtype)} AS {dtype})", dtype)
    return None


TIME_ARITHMETIC = {
    "TimestampAddInterval": "+", "TimestampAddYMInterval": "+", "DateAddYMInterval": "+", "DateAddInterval": "+",
    "MultiplyDTInterval": "*", "MultiplyYMInterval": "*", "DivideDTInterval": "/", "DivideYMInterval": "/",
    "SubtractTimestamps": "-", "SubtractDates": "-", "PreciseTimestampConversion": "",
}  # fmt: skip
"""Spark's classes of it, and the operator that each is written with."""

_MICROS = {("timestamp", "long"): "unix_micros", ("long", "timestamp"): "timestamp_micros"}


def time_arithmetic(tree: Tree, args: tuple[Expr, ...]) -> Expr:
    """An expression of these classes; `window(at, …)` counts in microseconds and back."""
    if tree.name == "PreciseTimestampConversion":
        function = _MICROS.get((str(tree.props.get("fromType")), str(tree.props.get("toType"))))
        if function is None:
            raise Unsupported("EXPRESSION_UNSUPPORTED", tree.name, "windows over timestamps without a zone")
        return call(function, *args)
    if tree.props.get("legacyInterval"):
        raise Unsupported("EXPRESSION_UNSUPPORTED", tree.name, "calendar intervals have no safe spelling")
    return call(TIME_ARITHMETIC[tree.name], *args)


def interval_text(sign: str, amount: str, dtype: str) -> str:
    """An interval of so many months or microseconds, which is how Spark counts them."""
    if dtype.startswith(("interval year", "interval month")):
        return f"INTERVAL '{sign}{amount}' MONTH"
    seconds, micros = divmod(int(amount), 10**6)
    days, seconds = divmod(seconds, 86_400)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{micros:06}"
    return f"INTERVAL '{sign}{days} {clock}' DAY TO SECOND"


def _moment(micros: int) -> str | None:
    """A moment of the years 1 to 9999."""
    try:
        return (_EPOCH + timedelta(microseconds=micros)).strftime("%Y-%m-%d %H:%M:%S.%f").rjust(26, "0")
    except OverflowError:
        return None

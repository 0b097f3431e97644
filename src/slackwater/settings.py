"""Settings that change answers, and are therefore pinned when a view is made; sizes as people write them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slackwater.errors import SlackwaterError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PINNED = (
    "spark.sql.ansi.enabled",
    "spark.sql.session.timeZone",
    "spark.sql.caseSensitive",
    "spark.sql.decimalOperations.allowPrecisionLoss",
    "spark.sql.mapKeyDedupPolicy",
    "spark.sql.legacy.timeParserPolicy",
    "spark.sql.legacy.sizeOfNull",
    "spark.sql.legacy.statisticalAggregate",
    "spark.sql.legacy.castComplexTypesToString.enabled",
    "spark.sql.groupByOrdinal",
    "spark.sql.orderByOrdinal",
    "spark.sql.groupByAliases",
    "spark.sql.ansi.doubleQuotedIdentifiers",
    "spark.sql.ansi.enforceReservedKeywords",
    "spark.sql.crossJoin.enabled",
    "spark.sql.legacy.integerGroupingId",
    "spark.sql.timestampType",
)
"""Spark settings that can change what a query means."""


def pinned_settings(spark: SparkSession) -> dict[str, str]:
    """The session's settings that a view depends on."""
    if spark.conf.get("spark.sql.parser.escapedStringLiterals", "false") == "true":
        raise SlackwaterError(
            "SETTING_INVALID",
            "spark.sql.parser.escapedStringLiterals is on, under which SQL text means something else",
            "switch it off for the session that makes views",
        )
    found: dict[str, str] = {}
    for name in PINNED:
        value = spark.conf.get(name, None)
        if value is not None:
            found[name] = value
    return found


_UNITS = {"": 1, "B": 1, "K": 10**3, "KB": 10**3, "M": 10**6, "MB": 10**6, "G": 10**9, "GB": 10**9, "T": 10**12,
          "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}  # fmt: skip


def parse_bytes(size: str | int) -> int:
    """Read a size such as "1GB", "512 MiB" or a number of bytes.

    >>> parse_bytes("1.5 MiB")
    1572864
    """
    if isinstance(size, bool) or not isinstance(size, int | str):
        raise SlackwaterError("BUDGET_INVALID", f"a budget of {size!r} is no size", 'write "1GB" or a number of bytes')
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", str(size))
    if match is None or match[2].upper() not in _UNITS:
        raise SlackwaterError("BUDGET_INVALID", f"a budget of {size!r} is no size", 'write "1GB", "512 MiB" or 0')
    return int(float(match[1]) * _UNITS[match[2].upper()])


def show_bytes(count: float) -> str:
    """A size for people to read.

    >>> show_bytes(1_500_000)
    '1.5 MB'
    """
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError("unreachable")

"""Cron expressions, read as cron reads them and computed by APScheduler's triggers.

APScheduler differs from cron in two points, which are put right here: it counts weekdays from Monday, and where both a
day of the month and a weekday are given it wants both, while for cron either will do. Expressions of six or seven
fields are Quartz's; see `quartz`.
"""

from __future__ import annotations

import re
from datetime import datetime, timezone
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from apscheduler.triggers.cron import CronTrigger

from slackwater.arrivals.quartz import LENGTHS, quartz_choices
from slackwater.errors import SlackwaterError

FIELDS: Final = ("minute", "hour", "day", "month", "day_of_week")
_WEEKDAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTHS: Final = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_NUMBER: Final = r"\d{1,2}"
_VALUES: Final = {
    "minute": _NUMBER,
    "hour": _NUMBER,
    "day": _NUMBER,
    "month": rf"(?:{_NUMBER}|{_MONTHS})",
    "day_of_week": rf"(?:[0-7]|{'|'.join(_WEEKDAYS[:7])})",
}
_PATTERNS: Final = {
    name: re.compile(rf"(?:(?P<all>\*)|(?P<first>{value})(?:-(?P<last>{value}))?)(?:/(?P<step>{_NUMBER}))?", re.ASCII)
    for name, value in _VALUES.items()
}


def check_cron(expression: str, zone: str) -> str:
    """The expression with single spaces; refuses what cron or Quartz would not take, or what never comes.

    It comes in lower case, one of Quartz in upper case.
    """
    if not isinstance(expression, str):
        raise _invalid(f"a {type(expression).__name__} is no cron expression")
    parts = expression.split()
    normal = " ".join(parts).upper() if len(parts) in LENGTHS else " ".join(parts).lower()
    if next_time(normal, zone, 0.0) is None:
        raise SlackwaterError(
            "POLICY_NEVER", f"no day matches the cron expression {expression!r}", "correct the day or the month"
        )
    return normal


def next_time(expression: str, zone: str, at: float) -> float | None:
    """The first scheduled time at or after a moment; None where there is none.

    A local time that summer time skips counts one hour later; one that comes twice counts twice.
    """
    moment = datetime.fromtimestamp(at, timezone.utc)
    found = [trigger.get_next_fire_time(None, moment) for trigger in _triggers(expression, zone)]
    return min((time.timestamp() for time in found if time is not None), default=None)


@lru_cache(maxsize=1024)
def _triggers(expression: str, zone: str) -> tuple[CronTrigger, ...]:
    """One trigger, or two of which either will do."""
    of_quartz = len(expression.split()) in LENGTHS
    choices = quartz_choices(expression) if of_quartz else _cron_choices(expression)
    try:
        return tuple(CronTrigger(**choice, timezone=_zone(zone)) for choice in choices)
    except ValueError as error:
        raise _invalid(f"{expression!r} cannot be read: {error}") from error


def _cron_choices(expression: str) -> list[dict[str, str]]:
    """The fields of one trigger, or of two of which either will do, for cron's five fields."""
    parts = expression.split()
    if len(parts) != len(FIELDS):
        raise _invalid(f"{expression!r} has {len(parts)} field{'s' * (len(parts) != 1)}")
    values = {name: _field(name, part) for name, part in zip(FIELDS, parts, strict=True)} | {"second": "0"}
    either = not any(parts[FIELDS.index(name)].startswith("*") for name in ("day", "day_of_week"))
    return [{**values, "day": "*"}, {**values, "day_of_week": "*"}] if either else [values]


def _field(name: str, text: str) -> str:
    elements = [_PATTERNS[name].fullmatch(element) for element in text.split(",")]
    if not all(elements):
        raise _invalid(f"{text!r} is no {name.replace('_', ' ')}")
    if name != "day_of_week":
        return text
    found = [day for element in elements if element is not None for day in _weekdays(element)]
    return ",".join(dict.fromkeys(found))


def _weekdays(element: re.Match[str]) -> list[str]:
    """The names of the weekdays that one element stands for; 0 and 7 are both Sunday."""
    first, last = (0, 6) if element["all"] else (_weekday(element["first"]), _weekday(element["last"]))
    if element["last"] is None and not element["all"]:
        last = 6 if element["step"] else first
    if last == 0 < first:
        last = 7  # as in fri-sun
    step = int(element["step"] or 1)
    if first > last or step < 1:
        raise _invalid(f"{element[0]!r} is no range of weekdays")
    return [_WEEKDAYS[day] for day in range(first, last + 1, step)]


def _weekday(text: str | None) -> int:
    if text is None:
        return 0
    return int(text) if text.isdigit() else _WEEKDAYS.index(text)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError) as error:
        raise SlackwaterError(
            "POLICY_INVALID", f"there is no time zone {name!r}", 'use a name such as "UTC" or "Europe/Berlin"'
        ) from error


def _invalid(message: str) -> SlackwaterError:
    return SlackwaterError(
        "POLICY_INVALID",
        message,
        'write minute, hour, day, month and weekday: "0 3 * * mon-fri" is three at night; or six or seven fields, of '
        "Quartz",
    )

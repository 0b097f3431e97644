"""Schedules: when a view is to be refreshed, as SQL says it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from slackwater.arrivals.policies import Policy, cron, every, manual
from slackwater.ddl_tokens import NUMBER, STRING, Cursor, pieces
from slackwater.errors import SlackwaterError

UNITS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3_600, "DAY": 86_400, "WEEK": 604_800}
"""Seconds in each unit of EVERY."""

LONGEST = 366 * 86_400
"""More seconds than this are taken for a mistake."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Either every so often, or at the times of a cron expression in a time zone.

    Attributes:
        count: how many units lie between two refreshes; 0 with a cron expression.
        unit: one of `UNITS`.
        cron: the expression, of Quartz or of cron; empty otherwise.
        timezone: where the cron expression's times are; empty for UTC, whatever the zone of the session is.
    """

    count: int = 0
    unit: str = ""
    cron: str = ""
    timezone: str = ""

    @property
    def seconds(self) -> int:
        """The seconds between two refreshes; 0 with a cron expression."""
        return self.count * UNITS[self.unit] if self.unit else 0

    @property
    def text(self) -> str:
        """The schedule as SQL; `read_schedule` reads it back."""
        if not self.cron:
            return f"EVERY {self.count} {self.unit}{'S' * (self.count > 1)}"
        zone = f" AT TIME ZONE {_literal(self.timezone)}" if self.timezone else ""
        return f"CRON {_literal(self.cron)}{zone}"


def read_schedule(cursor: Cursor) -> Schedule:
    """EVERY n unit | CRON 'expression' [AT TIME ZONE 'zone'], at the cursor."""
    if cursor.take("EVERY"):
        return _every(cursor)
    if cursor.take("CRON"):
        return _cron(cursor)
    raise cursor.error("EVERY or CRON was expected here")


def _every(cursor: Cursor) -> Schedule:
    start = cursor.at
    count = int(cursor.value(NUMBER, "a whole number")[:12])
    for unit in UNITS:
        if cursor.take(unit) or cursor.take(f"{unit}S"):
            found = Schedule(count, unit)
            if not 0 < found.seconds <= LONGEST:
                cursor.at = start
                raise cursor.error("a time between one second and a year was expected here")
            return found
    raise cursor.error(f"one of {', '.join(f'{unit}S' for unit in UNITS)} was expected here")


def _cron(cursor: Cursor) -> Schedule:
    start = cursor.at
    cron = " ".join(cursor.value(STRING, "a cron expression in quotes").split())
    if not 5 <= len(cron.split()) <= 7 or not re.fullmatch(r"[\w*?/,#. -]+", cron):
        cursor.at = start
        raise cursor.error("a cron expression of five to seven fields was expected here")
    zone = ""
    if cursor.take("AT", "TIME", "ZONE"):
        start = cursor.at
        zone = cursor.value(STRING, "a time zone in quotes")
        if not _is_zone(zone):
            cursor.at = start
            raise cursor.error("a time zone such as 'Europe/Oslo' was expected here")
    return Schedule(cron=cron, timezone=zone)


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def schedule_of(text: str) -> Schedule | None:
    """Read a schedule's text; None for an empty one."""
    found = pieces(text)
    if not found:
        return None
    if len(found) > 1:
        raise SlackwaterError("SCHEDULE_INVALID", "a schedule is one phrase", 'write "EVERY 5 MINUTES"')
    cursor = Cursor(found[0])
    schedule = read_schedule(cursor)
    cursor.end()
    return schedule


def policy_of(schedule: Schedule | None) -> Policy:
    """The refresh policy that a schedule stands for."""
    if schedule is None:
        return manual()
    if schedule.cron:
        return cron(schedule.cron, timezone=schedule.timezone) if schedule.timezone else cron(schedule.cron)
    return every(f"{schedule.seconds}s")


def _literal(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"

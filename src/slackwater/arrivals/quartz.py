"""Quartz's cron expressions, as Databricks has them: seconds to years, in the fields of APScheduler's triggers.

Quartz differs from both cron and APScheduler: weekdays go from 1, Sunday, to 7, ranges may run past the end (`FRI-MON`,
`22-2`), and one of day-of-month and day-of-week is `?`. So every part is spelled out as a list of values here, and the
library is left with the calendar.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from slackwater.errors import SlackwaterError


@dataclass(frozen=True, slots=True)
class Part:
    """One part of an expression.

    Attributes:
        field: what APScheduler calls it.
        first: its smallest value.
        last: its largest value; a step may not be larger either.
        names: what its values are called, from the smallest on.
    """

    field: str
    first: int
    last: int
    names: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What Quartz calls it."""
        return {"day": "day-of-month", "day_of_week": "day-of-week"}.get(self.field, self.field)


_MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")

DAY: Final = Part("day", 1, 31)
DAY_OF_WEEK: Final = Part("day_of_week", 1, 7, _WEEKDAYS)
YEAR: Final = Part("year", 1970, 2099)
PARTS: Final = (Part("second", 0, 59), Part("minute", 0, 59), Part("hour", 0, 23), DAY, Part("month", 1, 12, _MONTHS),
                DAY_OF_WEEK, YEAR)  # fmt: skip
LENGTHS: Final = (6, 7)
"""How many parts an expression may have: the year may be missing."""

_ELEMENT: Final = re.compile(
    r"(?:(?P<all>\*|(?=/))|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>\d{1,4}))?", re.ASCII
)
_NTH: Final = re.compile(r"(?P<day>\w+)#(?P<nth>[1-5])", re.ASCII)
_ORDINALS: Final = ("1st", "2nd", "3rd", "4th", "5th")
_BEYOND: Final = re.compile(r"L?W|\d{1,2}W|L-\d{1,2}W?", re.ASCII)

_ADVICE: Final = (
    "write seconds, minutes, hours, day-of-month, month, day-of-week and perhaps a year, with ? for one of the days: "
    '"0 30 6 ? * MON-FRI" is half past six on working days'
)


def quartz_choices(expression: str) -> tuple[dict[str, str], ...]:
    """The fields of one trigger, or of several of which any will do, for an expression in upper case."""
    texts = dict(zip(PARTS, [*expression.split(), "*"][: len(PARTS)], strict=True))
    _refuse_both_days(texts[DAY], texts[DAY_OF_WEEK])
    others = {part: text.split(",") for part, text in texts.items() if part not in (DAY, DAY_OF_WEEK)}
    values = {part.field: _spelled(part, elements) for part, elements in others.items()}
    return tuple({**values, **days} for days in _days(texts[DAY], texts[DAY_OF_WEEK]))


def _refuse_both_days(day: str, weekday: str) -> None:
    if (day == "?") != (weekday == "?") or day == weekday == "*":
        return
    if day == "?":
        raise _invalid("day-of-month and day-of-week are both '?'")
    raise _invalid(f"day-of-month is {day!r} and day-of-week is {weekday!r}: one of them must be '?'")


def _days(day: str, weekday: str) -> list[dict[str, str]]:
    """Which days: by month or by week; days such as the second Monday are APScheduler's days of the month."""
    if weekday in ("?", "*"):
        return [{"day": "*" if day == "?" else _days_of_month(day), "day_of_week": "*"}]
    elements = weekday.split(",")
    counted = [days for element in elements if (days := _counted(element)) is not None]
    plain = [element for element in elements if _counted(element) is None]
    found = [{"day": ",".join(counted), "day_of_week": "*"}] if counted else []
    if plain:
        names = [_WEEKDAYS[value - 1].lower() for value in _values(DAY_OF_WEEK, plain)]
        found.append({"day": "*", "day_of_week": ",".join(names)})
    return found


def _days_of_month(text: str) -> str:
    elements = text.split(",")
    for element in elements:
        if _BEYOND.fullmatch(element):
            raise _unsupported(element, DAY)
    plain = [element for element in elements if element != "L"]
    last = ["last"] if "L" in elements else []
    return ",".join([*([_spelled(DAY, plain)] if plain else []), *last])


def _counted(element: str) -> str | None:
    """`MON#2` and `FRIL` in APScheduler's words; None for weekdays that are not counted within their month."""
    if (match := _NTH.fullmatch(element)) is not None:
        return f"{_ORDINALS[int(match['nth']) - 1]} {_weekday(match['day'])}"
    if element != "L" and element.endswith("L"):
        return f"last {_weekday(element[:-1])}"
    return None


def _weekday(text: str) -> str:
    return _WEEKDAYS[_value(DAY_OF_WEEK, text, text) - 1].lower()


def _spelled(part: Part, elements: list[str]) -> str:
    values = _values(part, elements)
    return "*" if len(values) > part.last - part.first else ",".join(map(str, values))


def _values(part: Part, elements: list[str]) -> list[int]:
    """All the values that a part lists, in order."""
    return sorted({value for element in elements for value in _element(part, element)})


def _element(part: Part, text: str) -> list[int]:
    if text == "L" and part is DAY_OF_WEEK:
        return [part.last]  # the last day of the week
    match = _ELEMENT.fullmatch(text)
    if match is None:
        raise _invalid(f"{text!r} is no {part.title}")
    step = int(match["step"] or 1)
    if not 1 <= step <= part.last:
        raise _invalid(f"{text!r} has no step that {part.title} can take")
    if match["first"] is None:
        return list(range(part.first, part.last + 1, step))
    first = _value(part, match["first"], text)
    if match["last"] is None:
        return list(range(first, part.last + 1, step)) if match["step"] else [first]
    last, size = _value(part, match["last"], text), part.last - part.first + 1
    if last < first and part is YEAR:
        raise _invalid(f"{text!r} is no range of years")
    beyond = last + size if last < first else last  # FRI-MON goes on after the week's end
    return [(value - part.first) % size + part.first for value in range(first, beyond + 1, step)]


def _value(part: Part, word: str, text: str) -> int:
    """The number of a value that is written as a number or a name."""
    if word in part.names:
        return part.names.index(word) + part.first
    if not word.isdigit() or len(word) > 4 or not part.first <= int(word) <= part.last:
        names = f" or {part.names[0]} to {part.names[-1]}" if part.names else ""
        raise _invalid(f"{text!r} is no {part.title}: that goes from {part.first} to {part.last}{names}")
    return int(word)


def _unsupported(text: str, part: Part) -> SlackwaterError:
    return SlackwaterError(
        "POLICY_UNSUPPORTED",
        f"{text!r} in {part.title}: days before the last one and working days near a day cannot be computed",
        "write the days themselves; L is the last day of a month, FRIL its last Friday, MON#2 its second Monday",
        {"part": part.title, "text": text},
    )


def _invalid(message: str) -> SlackwaterError:
    return SlackwaterError("POLICY_INVALID", message, _ADVICE)

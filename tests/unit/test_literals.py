"""Constants of times and intervals, from the numbers that Spark tells to SQL that says the same."""

from __future__ import annotations

import pytest

from slackwater.capture.literals import special_literal, time_arithmetic
from slackwater.capture.trees import Tree, Unsupported


@pytest.mark.parametrize(
    ("dtype", "value", "text"),
    [
        ("interval day", "259200000000", "CAST(INTERVAL '3 00:00:00.000000' DAY TO SECOND AS interval day)"),
        ("interval day to second", "-90000001",
         "CAST(INTERVAL '-0 00:01:30.000001' DAY TO SECOND AS interval day to second)"),
        ("interval month", "-18", "CAST(INTERVAL '-18' MONTH AS interval month)"),
        ("interval year", "24", "CAST(INTERVAL '24' MONTH AS interval year)"),
        ("timestamp_ntz", "1709208000000000", "TIMESTAMP_NTZ '2024-02-29 12:00:00.000000'"),
        ("timestamp_ntz", "-62135596800000000", "TIMESTAMP_NTZ '0001-01-01 00:00:00.000000'"),
    ],
)  # fmt: skip
def test_spelling(dtype: str, value: str, text: str) -> None:
    found = special_literal(dtype, value)
    assert found is not None
    assert (found.text, found.dtype) == (text, dtype)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("timestamp_ntz", "-62135596800000001"), ("interval", "1 months"), ("binary", "[B@17"), ("timestamp_ntz", "now")],
)
def test_no_spelling(dtype: str, value: str) -> None:
    assert special_literal(dtype, value) is None


def test_arithmetic_of_calendar_intervals_is_not_followed() -> None:
    with pytest.raises(Unsupported):
        time_arithmetic(Tree("SubtractTimestamps", {"legacyInterval": True}, ()), ())
    props = {"fromType": "timestamp_ntz", "toType": "long"}
    with pytest.raises(Unsupported):
        time_arithmetic(Tree("PreciseTimestampConversion", props, ()), ())

"""Cron expressions of Quartz: when they come, what they refuse, and that the catalog gives them back."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from slackwater.arrivals import Situation
from slackwater.arrivals.cron_times import next_time
from slackwater.arrivals.policy_text import parse_policy, policy_from_json, policy_to_json
from slackwater.errors import SlackwaterError
from slackwater.storage import Catalog


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp()


def times(expression: str, zone: str, after: str, count: int) -> list[str]:
    """The first times of a policy that come at or after a moment, as UTC."""
    policy, moment, found = sw.cron(expression, timezone=zone), at(after), list[str]()
    for _ in range(count):
        due = policy.judge(Situation(moment, 0.0, 1, moment)).at
        assert due is not None
        found.append(datetime.fromtimestamp(due, timezone.utc).isoformat(" ")[: len("2026-05-01 10:00:00")])
        moment = due + 0.5
    return found


# 2026-05-01 is a Friday.
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 0 12 * * ?", ["2026-05-01 12:00:00", "2026-05-02 12:00:00"]),
        ("0 15 10 ? * *", ["2026-05-01 10:15:00", "2026-05-02 10:15:00"]),
        ("* * * * * *", ["2026-05-01 10:00:30", "2026-05-01 10:00:31"]),
        ("*/20 * * * * ?", ["2026-05-01 10:00:40", "2026-05-01 10:01:00", "2026-05-01 10:01:20"]),
        ("45 0 0 * * ?", ["2026-05-02 00:00:45", "2026-05-03 00:00:45"]),
        ("0 0/5 14,18 * * ?", ["2026-05-01 14:00:00", "2026-05-01 14:05:00"]),
        ("0 10-50/20 * * * ?", ["2026-05-01 10:10:00", "2026-05-01 10:30:00", "2026-05-01 10:50:00"]),
        ("0 /30 * * * ?", ["2026-05-01 10:30:00", "2026-05-01 11:00:00"]),
        ("5/58 0 0 * * ?", ["2026-05-02 00:00:05", "2026-05-03 00:00:05"]),
        ("0 0 22-2/2 * * ?", ["2026-05-01 22:00:00", "2026-05-02 00:00:00", "2026-05-02 02:00:00"]),
        # Weekdays are counted from Sunday, which is 1.
        ("0 0 0 ? * 1", ["2026-05-03 00:00:00", "2026-05-10 00:00:00"]),
        ("0 0 0 ? * 2", ["2026-05-04 00:00:00", "2026-05-11 00:00:00"]),
        ("0 0 0 ? * 7", ["2026-05-02 00:00:00", "2026-05-09 00:00:00"]),
        ("0 0 0 ? * L", ["2026-05-02 00:00:00", "2026-05-09 00:00:00"]),
        ("0 0 0 ? * 2/2", ["2026-05-04 00:00:00", "2026-05-06 00:00:00", "2026-05-08 00:00:00", "2026-05-11 00:00:00"]),
        ("0 0 0 ? * */2", ["2026-05-02 00:00:00", "2026-05-03 00:00:00", "2026-05-05 00:00:00", "2026-05-07 00:00:00"]),
        ("0 15 10 ? * mon-Fri", ["2026-05-01 10:15:00", "2026-05-04 10:15:00"]),
        ("0 0 0 ? * FRI-MON", ["2026-05-02 00:00:00", "2026-05-03 00:00:00", "2026-05-04 00:00:00"]),
        ("0 0 0 ? * 6L", ["2026-05-29 00:00:00", "2026-06-26 00:00:00", "2026-07-31 00:00:00"]),
        ("0 0 0 ? * FRIL", ["2026-05-29 00:00:00", "2026-06-26 00:00:00"]),
        ("0 0 0 ? * 6#3", ["2026-05-15 00:00:00", "2026-06-19 00:00:00"]),
        ("0 0 0 ? * MON#5", ["2026-06-29 00:00:00", "2026-08-31 00:00:00"]),
        ("0 0 0 ? * MON#1,FRI", ["2026-05-04 00:00:00", "2026-05-08 00:00:00", "2026-05-15 00:00:00"]),
        ("0 0 0 L * ?", ["2026-05-31 00:00:00", "2026-06-30 00:00:00"]),
        ("0 0 0 15,L * ?", ["2026-05-15 00:00:00", "2026-05-31 00:00:00", "2026-06-15 00:00:00"]),
        ("0 0 12 1/5 * ?", ["2026-05-01 12:00:00", "2026-05-06 12:00:00"]),
        ("0 0 0 30-2 * ?", ["2026-05-02 00:00:00", "2026-05-30 00:00:00", "2026-05-31 00:00:00"]),
        ("0 10,44 14 ? 3 WED", ["2027-03-03 14:10:00", "2027-03-03 14:44:00", "2027-03-10 14:10:00"]),
        ("0 0 0 1 NOV-FEB ?", ["2026-11-01 00:00:00", "2026-12-01 00:00:00", "2027-01-01 00:00:00"]),
        ("0 0 0 29 2 ?", ["2028-02-29 00:00:00", "2032-02-29 00:00:00"]),
        ("0 15 10 1 1 ? 2030,2032", ["2030-01-01 10:15:00", "2032-01-01 10:15:00"]),
        ("0 15 10 ? 1 6L 2027-2028", ["2027-01-29 10:15:00", "2028-01-28 10:15:00"]),
        ("0 0 0 1 1 ? 2025/3", ["2028-01-01 00:00:00", "2031-01-01 00:00:00"]),
    ],
)  # fmt: skip
def test_quartz_counts_as_quartz_does(expression: str, expected: list[str]) -> None:
    assert times(expression, "UTC", "2026-05-01T10:00:30", len(expected)) == expected


def test_times_are_in_their_zone() -> None:
    assert times("0 30 6 ? * MON-FRI", "Europe/Oslo", "2026-03-27T00:00:00", 2) == [
        "2026-03-27 05:30:00",
        "2026-03-30 04:30:00",
    ]
    # Summer time: 02:30 is skipped on 29 March.
    assert times("0 30 2 * * ?", "Europe/Oslo", "2026-03-28T12:00:00", 1) == ["2026-03-29 01:30:00"]


@pytest.mark.parametrize(
    ("expression", "named"),
    [("0 0 0 ? * ?", "both '?'"), ("0 0 0 1 * *", "must be '?'"), ("0 0 0 * * MON", "must be '?'"),
     ("0 0 0 13 * FRI", "'13'"), ("? 0 0 * * ?", "second"), ("60 0 0 * * ?", "second"), ("0 60 0 * * ?", "minute"),
     ("0 0 24 * * ?", "hour"), ("0 0 0 32 * ?", "day-of-month"), ("0 0 0 0 * ?", "day-of-month"),
     ("0 0 0 1 13 ?", "month"), ("0 0 0 1 foo ?", "FOO"), ("0 0 0 ? * 0", "day-of-week"),
     ("0 0 0 ? * 8", "day-of-week"),
     ("0 0 0 ? * MON#6", "MON#6"), ("0 0 0 ? * XL", "'X'"), ("0 0 0 ? * MON#1,", "''"), ("0 0 0 L, * ?", "''"),
     ("0 0 0 1 1 ? 1969", "year"), ("0 0 0 1 1 ? 2100", "year"), ("0 0 0 1 1 ? 2030-2020", "2030-2020"),
     ("0 0/0 0 * * ?", "0/0"), ("0 0/60 * * * ?", "0/60"), ("0 5- 0 * * ?", "'5-'"), ("0 1.5 0 * * ?", "1.5"),
     ("0 0 0 L/2 * ?", "L/2"), ("\u0663 0 0 * * ?", "second"), ("0 0 0 1 1 ? * *", "8 fields")],
)  # fmt: skip
def test_what_is_wrong_is_named(expression: str, named: str) -> None:
    with pytest.raises(SlackwaterError) as caught:
        sw.cron(expression)
    assert caught.value.code == "POLICY_INVALID"
    assert named in caught.value.message


@pytest.mark.parametrize("day", ["W", "LW", "15W", "L-3", "L-3W", "1,15w"])
def test_days_that_cannot_be_computed_are_refused(day: str) -> None:
    with pytest.raises(SlackwaterError) as caught:
        sw.cron(f"0 0 0 {day} * ?")
    assert caught.value.code == "POLICY_UNSUPPORTED"
    assert caught.value.details == {"part": "day-of-month", "text": day.split(",")[-1].upper()}


@pytest.mark.parametrize("expression", ["0 0 0 30 2 ?", "0 0 0 29 2 ? 2027", "0 0 0 31 4,6,9,11 ? *"])
def test_a_day_that_never_comes_is_refused(expression: str) -> None:
    with pytest.raises(SlackwaterError, match="POLICY_NEVER"):
        sw.cron(expression)


def test_after_its_last_year_nothing_is_due() -> None:
    assert next_time("0 0 0 1 1 ? 2020", "UTC", at("2026-05-01T00:00:00")) is None
    verdict = sw.cron("0 0 0 1 1 ? 2020").judge(Situation(at("2026-05-01T00:00:00"), 0.0, 1, at("2026-05-01T00:00:00")))
    assert (verdict.due, verdict.at) == (False, None)
    assert "no time of cron '0 0 0 1 1 ? 2020' is left" in verdict.reason


def test_cron_stays_cron() -> None:
    assert str(sw.cron("0 3 * *  MON-fri")) == "cron '0 3 * * mon-fri'"
    assert str(sw.cron("0 0  3 ? * mon-fri")) == "cron '0 0 3 ? * MON-FRI'"
    # 1 is Monday to cron, and Sunday to Quartz.
    assert times("0 0 * * 1", "UTC", "2026-05-01T10:00:00", 1) == ["2026-05-04 00:00:00"]
    assert times("0 0 0 ? * 1", "UTC", "2026-05-01T10:00:00", 1) == ["2026-05-03 00:00:00"]


@pytest.mark.parametrize(
    "policy",
    [
        sw.cron("0 0/5 14 ? * MON#2,FRIL 2026-2030", "Europe/Berlin") | sw.rows(5),
        sw.cron("0 0 0 L * ?"),
        sw.cron("* * * * * *"),
    ],
)
def test_the_catalog_gives_policies_back(policy: Any, tmp_path: Path) -> None:
    assert parse_policy(str(policy)) == policy
    url = f"sqlite:///{tmp_path / 'catalog.db'}"
    with Catalog.open(url) as catalog, catalog.commit("create_view", "v") as tx:
        tx.add_view("v", "{}", "{}", "{}", json.dumps({"refresh": policy_to_json(policy)}))
    with Catalog.open(url) as again:
        assert policy_from_json(json.loads(again.view("v").options_json)["refresh"]) == policy

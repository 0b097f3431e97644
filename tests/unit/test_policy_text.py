"""Policies as text and as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

import slackwater as sw
from slackwater.arrivals import Policy
from slackwater.arrivals.policy_text import as_policy, parse_policy, policy_from_json, policy_to_json
from slackwater.errors import SlackwaterError


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("every 60s", sw.every(60)),
        ("EVERY 1h 30m", sw.every(5400)),
        ("rows 10_000", sw.rows(10_000)),
        ("every 60s | rows 10000", sw.every(60) | sw.rows(10_000)),
        ("every 60s|rows 5&on_arrival", sw.every(60) | (sw.rows(5) & sw.on_arrival())),
        ("(every 60s | rows 5) & on-arrival", (sw.every(60) | sw.rows(5)) & sw.on_arrival()),
        ("((manual))", sw.manual()),
        ("cron '0 3 * * mon-fri'", sw.cron("0 3 * * mon-fri")),
        ('cron "0 3 * * *" in Europe/Berlin & rows 1', sw.cron("0 3 * * *", timezone="Europe/Berlin") & sw.rows(1)),
        ("target_lag 5 min | manual", sw.target_lag("5m") | sw.manual()),
    ],
)
def test_text_is_read(text: str, policy: Policy) -> None:
    assert parse_policy(text) == policy
    assert parse_policy(str(policy)) == policy
    assert as_policy(text) == as_policy(policy) == policy


@pytest.mark.parametrize(
    "text",
    ["", "  ", "|", "every", "every 60s |", "| every 60s", "every 60s rows 5", "rows", "rows x", "rows 5 6", "rows 0",
     "rows -5", "rows \u0665", "(every 60s", "every 60s)", "()", "sometimes", "manual now", "on_arrival 5s", "cron",
     "cron 0 3 * * *", "cron '0 3 * * *' Europe/Berlin", "cron '0 3 * * *' in", "cron '0 3 * * *",
     "every 60s || rows 5", "every 0s", "cron '61 * * * *'", "(" * 51 + "manual" + ")" * 51, "every -5s"],
)  # fmt: skip
def test_bad_text_is_refused(text: str) -> None:
    with pytest.raises(SlackwaterError) as caught:
        parse_policy(text)
    assert caught.value.code == "POLICY_INVALID"


def test_text_that_can_never_fire_is_refused() -> None:
    with pytest.raises(SlackwaterError) as caught:
        parse_policy("every 60s & manual")
    assert caught.value.code == "POLICY_NEVER"


def test_json_is_stable() -> None:
    """The catalog keeps this: a change here needs a way to read what is there already."""
    policy = (sw.every("90s") | sw.rows(5)) & sw.cron("0 3 * * *", "Europe/Berlin") | sw.target_lag(5) | sw.on_arrival()
    expected = {
        "kind": "any",
        "policies": [
            {
                "kind": "all",
                "policies": [
                    {"kind": "any", "policies": [{"kind": "every", "seconds": 90.0}, {"kind": "rows", "count": 5}]},
                    {"kind": "cron", "expression": "0 3 * * *", "timezone": "Europe/Berlin"},
                ],
            },
            {"kind": "target_lag", "seconds": 5.0},
            {"kind": "on_arrival"},
        ],
    }
    assert policy_to_json(policy) == expected
    assert policy_from_json(json.loads(json.dumps(expected))) == policy
    assert policy_from_json({"kind": "manual"}) == sw.manual()


def test_a_kind_of_the_future_is_refused() -> None:
    with pytest.raises(SlackwaterError) as caught:
        policy_from_json({"kind": "tidal"})
    assert caught.value.code == "POLICY_INVALID"


@pytest.mark.parametrize("given", [60, ["every 60s"], object(), sw.every])
def test_what_is_no_policy_is_refused(given: Any) -> None:
    with pytest.raises(SlackwaterError) as caught:
        as_policy(given)
    assert caught.value.code == "POLICY_INVALID"
    assert as_policy(None) == sw.manual()

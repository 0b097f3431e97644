"""Policies over random situations: what `|` and `&` mean, and that what is said of the future comes true."""

from __future__ import annotations

import json
import math
from dataclasses import replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

import slackwater as sw
from slackwater.arrivals import Policy, Situation
from slackwater.arrivals.durations import parse_duration, show_duration
from slackwater.arrivals.policy_text import parse_policy, policy_from_json, policy_to_json
from slackwater.errors import SlackwaterError

NOW = 1_780_000_000.0
SECONDS = st.floats(0.001, 1e6)
SIMPLE = st.one_of(
    st.builds(sw.every, SECONDS),
    st.builds(sw.rows, st.integers(1, 50)),
    st.just(sw.on_arrival()),
    st.builds(sw.target_lag, SECONDS),
    st.builds(
        sw.cron,
        st.sampled_from(["* * * * *", "*/7 3 * * *", "0 3 1 * mon", "15 2 29 2 *", "30 2 * * *", "*/9 * 22-2 * * ?",
                         "0 0 3 15,L * ?", "30 0 0 ? FEB-MAR MON#2,FRIL", "0 0 3 ? * FRI-MON 2020-2099"]),
        st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kathmandu"]),
    ),
)  # fmt: skip


def combined(a: Policy, b: Policy, both: bool) -> Policy:
    return a & b if both else a | b


POLICIES = st.recursive(SIMPLE, lambda inner: st.builds(combined, inner, inner, st.booleans()), max_leaves=6)
PAST = st.floats(-1e7, 0).map(lambda s: NOW + s)
AHEAD = st.floats(0, 1e7).map(lambda s: NOW + s)  # recorded before the clock was set back


def situations(times: st.SearchStrategy[float]) -> st.SearchStrategy[Situation]:
    return st.builds(
        Situation,
        now=st.just(NOW),
        last_refresh=st.none() | times,
        pending_rows=st.integers(0, 100),
        oldest_pending=st.none() | times,
        complete=st.booleans(),
        durations=st.lists(st.floats(0, 1e4), max_size=3).map(tuple),
        next_look=st.floats(0, 60),
    )


SITUATIONS = situations(PAST | AHEAD)


@given(POLICIES, POLICIES, SITUATIONS)
def test_either_is_due_iff_one_is_and_both_iff_both_are(a: Policy, b: Policy, situation: Situation) -> None:
    one, other = a.judge(situation), b.judge(situation)
    assert (a | b).judge(situation).due == (one.due or other.due)
    assert (a & b).judge(situation).due == (one.due and other.due)
    assert (a | b).judge(situation).at == (b | a).judge(situation).at
    assert (a & b).judge(situation).at == (b & a).judge(situation).at


@given(POLICIES, POLICIES, POLICIES, SITUATIONS)
def test_both_distributes_over_either(a: Policy, b: Policy, c: Policy, situation: Situation) -> None:
    assert (a & (b | c)).judge(situation).due == ((a & b) | (a & c)).judge(situation).due


@given(POLICIES, situations(PAST))
def test_the_time_that_is_told_is_the_time_at_which_it_is_due(policy: Policy, situation: Situation) -> None:
    verdict = policy.judge(situation)
    if verdict.at is None:
        assert not policy.judge(replace(situation, now=NOW + 1e9)).due
    elif not verdict.due:
        assert policy.judge(replace(situation, now=verdict.at)).due
        assert not policy.judge(replace(situation, now=math.nextafter(verdict.at, 0))).due
    else:
        assert policy.judge(replace(situation, now=NOW + 1e7)).due, "what is due stays due"


@given(POLICIES, SITUATIONS)
def test_nothing_new_nothing_due(policy: Policy, situation: Situation) -> None:
    assert policy.judge(replace(situation, oldest_pending=None, pending_rows=0)).at is None


@given(POLICIES, SITUATIONS)
def test_nobody_waits_for_ever_once_all_is_complete(policy: Policy, situation: Situation) -> None:
    waiting = replace(situation, complete=True, oldest_pending=situation.oldest_pending or NOW)
    verdict = policy.judge(waiting)
    assert verdict.at is not None
    assert verdict.at <= NOW + 9 * 366 * 86400, "the longest wait is for a leap day"


@given(POLICIES | st.just(sw.manual()) | SIMPLE.map(lambda p: p | sw.manual()))
def test_json_and_text_give_the_policy_back(policy: Policy) -> None:
    assert policy_from_json(json.loads(json.dumps(policy_to_json(policy)))) == policy
    assert parse_policy(str(policy)) == policy


@given(st.text(max_size=40) | st.text("every row10s|&()'\"cm *", max_size=40))
@example("cron '* * * * *' in ")
@settings(max_examples=300)
def test_any_text_is_a_policy_or_a_coded_refusal(text: str) -> None:
    try:
        policy = parse_policy(text)
    except SlackwaterError as error:
        refusal = error
    else:
        assert parse_policy(str(policy)) == policy
        return
    assert refusal.code in ("POLICY_INVALID", "POLICY_NEVER")


@given(st.floats(min_value=0, exclude_min=True, max_value=3e9))
def test_durations_are_shown_exactly(seconds: float) -> None:
    assert parse_duration(show_duration(seconds)) == seconds

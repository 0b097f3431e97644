"""Sizes beyond which the engine takes another way, made so small that the fuzzer's few rows are beyond them.

Every group below is drawn for some seeds, so that they meet each other. The names are those that are read when it
matters: a module that has imported one by name reads its own.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from slackwater import key_checks
from slackwater.capture import first_rows
from slackwater.delta import lookup
from slackwater.delta.environment import Environment
from slackwater.execution import (
    compaction,
    gathering,
    modes,
    prepared,
    program,
    refresh,
    runner,
    small_results,
    state_planning,
    states,
)
from slackwater.planning import lookup_costing, narrowed_groups, plain_rules, sending
from slackwater.storage import covers, files, forgetting

Setting = tuple[Any, str, Any]

GROUPS: dict[str, tuple[float, tuple[Setting, ...]]] = {
    "large deltas": (0.8, ((modes, "LARGE_DELTA", math.inf),)),
    "merging early": (0.5, tuple((compaction, f"{x}_SEGMENTS", 2) for x in ("STATE", "RESULT", "TABLE"))),
    "forgetting at once": (0.2, ((compaction, "KEEP_VERSIONS", 0),)),
    "lookups": (0.4, ((plain_rules, "MANY", 0), (lookup_costing, "SENT_ANYWAY", 0))),
    "lookups of some tables": (0.2, ((plain_rules, "MANY", 8), (lookup_costing, "SENT_ANYWAY", 8),
                                     (lookup_costing, "INDEXED", 14))),
    "indexes made anew": (0.3, ((compaction, "SINCE", 0.0),)),
    "waiting rows looked up": (0.2, ((compaction, "LOOSE", -(10**9)), (compaction, "NAMED", -1))),
    "a tight budget": (0.1, ((compaction, "TIGHT", -1.0), (compaction, "LITTLE", 0.0))),
    "heavy programs": (0.15, ((gathering, "HEAVY", -1), (sending, "SENT_ROWS", -1))),
    "heavy recomputes": (0.1, ((program, "MODERATE", -1),)),
    "no hints": (0.15, ((program, "Environment", functools.partial(Environment, small=0, tiny=0, scan_all=0)),)),
    "groups looked up": (0.15, ((program, "Environment", functools.partial(Environment, scan_all=0)),)),
    "nothing gathered": (0.15, ((gathering, "LIGHT", -1),)),
    "sessions in turn": (0.25, ((refresh, "SMALL_DELTA", 3),)),
    "groups leave the driver": (0.2, ((states, "FEW", 2), (refresh, "FEW", 2))),
    "results compared by Spark": (0.25, ((small_results, "SMALL_RESULT", 3),)),
    "results that the driver cannot hold": (0.15, ((runner, "_fits_driver", lambda _: False),
                                                   (runner, "compare_small", lambda *_: None))),
    "states of several tasks": (0.2, ((states, "TASK_BYTES", 1),)),
    "joins put in order again": (0.2, ((refresh, "GROWN", 1.0),)),
    "by price": (0.25, ((state_planning, "QUICK", 0.0), (modes, "CLEARLY", 0.0))),
    "no spare first rows": (0.3, ((first_rows, "SPARE", 0),)),
    "narrowed groups": (0.3, ((narrowed_groups, "FEW", 1.0), (plain_rules, "WORTH_A_COPY", 1.0))),
    "many keys": (0.2, ((key_checks, "FEW", -1), (lookup, "BROADCAST_KEYS", -1))),
    "nothing remembered": (0.15, ((prepared, "KEPT_PLANS", 1), (prepared, "SLACK", 0), (prepared, "GROWN", 1.0),
                                  (files, "KEPT_FRAMES", 2), (files, "KEPT_SPANS", 1), (covers, "KEPT", 1),
                                  (forgetting, "_AT_ONCE", 1))),
    "bytes asked in one go": (0.2, ((states, "ASKED_SINGLY", 0),)),
}  # fmt: skip
"""How often each is drawn, and what it sets."""


def drawn(seed: int) -> tuple[str, ...]:
    """The groups of a seed. One in six has none of them: so do most users."""
    dice = random.Random(seed * 7919 + 17)
    found = tuple(name for name, (chance, _) in GROUPS.items() if dice.random() < chance)
    return ("large deltas",) if seed % 6 == 0 else found


@contextmanager
def beyond(names: tuple[str, ...]) -> Iterator[None]:
    """Set what the groups name, and put it back."""
    before: list[Setting] = []
    try:
        for module, name, value in (setting for group in names for setting in GROUPS[group][1]):
            before.append((module, name, getattr(module, name)))
            setattr(module, name, value)
        yield
    finally:
        for module, name, value in reversed(before):
            setattr(module, name, value)

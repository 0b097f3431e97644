"""Fingerprints: the same code has the same one in every process, other code another."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from slackwater.execution.fingerprint import fingerprint

SOURCE = """
import math
LIMIT = {limit}
NAMES = {{"b", "a", "c"}}
def helper(x):
    return x {sign} 1
class Rate:
    def __init__(self, by):
        self.by = by
    def of(self, x):
        return x * {factor}
RATE = Rate(3)
def outer(step):
    def inner(x, *, more={more}):
        if x in ("u", "v") or x in NAMES:
            return None
        return [helper(y) for y in (x, step, more)] if x < LIMIT else math.sqrt(RATE.of(x))
    return inner
function = outer({step})
"""
PLAIN = {"limit": 5, "sign": "+", "factor": 2, "more": 1, "step": 4}


def function(**changes: Any) -> Callable[..., Any]:
    space: dict[str, Any] = {"__name__": "somewhere"}
    exec(SOURCE.format(**{**PLAIN, **changes}), space)  # noqa: S102 - the tests' own text
    found: Callable[..., Any] = space["function"]
    return found


def test_the_same_code_is_the_same() -> None:
    assert fingerprint(function()) == fingerprint(function())


@pytest.mark.parametrize("change", [{"limit": 6}, {"sign": "-"}, {"factor": 7}, {"more": 2}, {"step": 5}])
def test_other_code_or_values_are_another(change: dict[str, Any]) -> None:
    assert fingerprint(function(**change)) != fingerprint(function())


def test_it_is_the_same_in_another_process_whatever_the_order_of_sets(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        SOURCE.format(**PLAIN)
        + "\nfrom slackwater.execution.fingerprint import fingerprint\nprint(fingerprint(function, 100, None))\n"
    )
    found = {
        subprocess.run(
            [sys.executable, str(script)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_a_module_of_ones_own_counts_by_its_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("rates_of_ours")
    module.__file__ = str(tmp_path / "rates_of_ours.py")
    Path(module.__file__).write_text("def rate(x): return 2 * x\n")
    space = {"rates": module}
    exec("def of(x): return rates.rate(x)", space)  # noqa: S102 - the tests' own text
    before = fingerprint(space["of"])
    assert fingerprint(space["of"]) == before
    Path(module.__file__).write_text("def rate(x): return 3 * x\n")
    assert fingerprint(space["of"]) != before


def test_what_stands_around_a_function_counts_with_it() -> None:
    def base(x: int, y: int) -> int:
        return x + y

    assert fingerprint(functools.partial(base, 1)) != fingerprint(functools.partial(base, 2))
    assert fingerprint([1, {"a": 2}]) == fingerprint([1, {"a": 2}])
    assert fingerprint([1, {"a": 2}]) != fingerprint([1, {"a": 3}])
    assert fingerprint(1) != fingerprint(True) != fingerprint("1")


def test_what_has_no_stable_form_never_comes_again() -> None:
    lock = __import__("threading").Lock()
    assert fingerprint(lock) != fingerprint(lock)


def test_a_function_that_calls_itself_ends() -> None:
    def down(x: int) -> int:
        return 0 if x == 0 else down(x - 1)

    assert fingerprint(down) == fingerprint(down)

"""Many cases on the interpreter: hypothesis draws and shrinks them."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from hypothesis import HealthCheck, Phase, given, seed, settings

from slackwater.algebra.expressions import call, col, lit
from slackwater.algebra.printer import tree_text
from tests.fuzz.as_code import as_test
from tests.fuzz.plan_cases import PlanCase, plan_cases
from tests.fuzz.plan_oracles import check

BATCH = 500
"""Cases for each seed."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A case that fails, as small as it could be made."""

    seed: int
    error: str
    regression: str


def play(first_seed: int, cases: int) -> tuple[int, Finding | None]:
    """Run cases until one fails; gives how many ran, and the finding."""
    ran = 0
    for number in range(first_seed, first_seed + -(-cases // BATCH)):
        started = time.perf_counter()
        count, found = _batch(number, min(BATCH, cases - ran))
        ran += count
        print(f"interpreter seed {number}: {count} cases, {time.perf_counter() - started:.1f} s", flush=True)
        if found is not None:
            return ran, found
    return ran, None


def smallest(case: PlanCase, error: BaseException) -> tuple[PlanCase, BaseException]:
    """The same failure from a part of the plan alone, which hypothesis does not look for."""
    for part in list(case.plan.walk())[1:]:
        first = part.schema[0] if part.schema else None
        known = case.predicate.inputs <= set(part.names)
        unknown = (
            call("is_null", col(first.name, first.dtype), dtype="boolean") if first else lit(True, dtype="boolean")
        )
        smaller = replace(case, plan=part, predicate=case.predicate if known else unknown)
        try:
            check(smaller)
        except (AssertionError, ValueError) as found:
            return smallest(smaller, found)
    return case, error


def _batch(number: int, cases: int) -> tuple[int, Finding | None]:
    count, failing = 0, None

    @seed(number)
    @settings(
        max_examples=cases,
        deadline=None,
        database=None,
        derandomize=False,
        print_blob=False,
        report_multiple_bugs=False,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(plan_cases())
    def one(case: PlanCase) -> None:
        nonlocal count, failing
        count += failing is None
        try:
            check(case)
        except BaseException:
            failing = case  # the last one to fail is the smallest
            raise

    try:
        one()
    except BaseException as error:
        if failing is None or isinstance(error, KeyboardInterrupt):
            raise
        failing, error = smallest(failing, error)
        told = f"{type(error).__name__}: {error}"
        remark = f"seed {number}\n{told}\n{tree_text(failing.plan)}"
        return count, Finding(number, told, as_test("check", failing, remark))
    return count, None  # fmt: skip

"""`python -m tests.fuzz`: random cases against every oracle, on the interpreter and on Spark.

Each batch prints its seed; `--seed N --cases 0 --spark-cases 20` plays one batch again. A case that fails is made small
and printed as a test for tests/fuzz/test_found.py; the command then ends with 1. So it does after a run that proves
less than was asked for: it was out of time, or nearly all queries were refused or recomputed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz import on_interpreter, on_spark
from tests.fuzz.as_code import as_test
from tests.fuzz.shrinking import shrink
from tests.fuzz.wanted import VIEWS
from tests.sessions import small_spark


def main() -> int:
    """Run what the arguments ask for."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000, help="cases on the interpreter")
    parser.add_argument("--spark-cases", type=int, default=500, help="views on Spark")
    parser.add_argument("--seed", type=int, default=None, help="the first seed; drawn from the clock if not given")
    parser.add_argument("--minutes", type=float, default=240.0, help="start no further batch on Spark after that time")
    parser.add_argument("--shrink-seconds", type=float, default=120.0, help="time to make a failing view small")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else int(time.time()) % 1_000_000
    print(f"first seed: {seed}", flush=True)
    found = _interpreter(seed, options.cases) if options.cases else 0
    if options.spark_cases:
        found += _spark(seed, options.spark_cases, options.minutes, options.shrink_seconds)
    print("silent" if not found else f"{found} found")
    return 1 if found else 0


def _interpreter(seed: int, cases: int) -> int:
    ran, finding = on_interpreter.play(seed, cases)
    print(f"interpreter: {ran} cases")
    if finding is not None:
        print(f"\n{finding.error}\n\n{finding.regression}")
    elif ran < cases:
        print(f"  this proves little: only {ran} of {cases} cases were played")
    return int(finding is not None or ran < cases)


def _spark(seed: int, cases: int, minutes: float, seconds: float) -> int:
    total, found, started = on_spark.Tally(), 0, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="slackwater-fuzz-") as scratch:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the workers of user-defined functions need pandas
        spark = small_spark(Path(scratch))
        try:
            for number in range(seed, seed + -(-cases // VIEWS)):
                if time.monotonic() - started > minutes * 60:
                    print(f"out of time before seed {number}")
                    break
                views = min(VIEWS, cases - total.cases)
                tally, story, failures = on_spark.play_seed(spark, number, views)
                total.add(tally)
                found += len(failures)
                for failure in failures:
                    case, told = shrink(spark, story, failure, number, seconds)
                    print(f"\n{as_test('check_view', case, f'seed {number}: {told}', fixture='engine')}", flush=True)
        finally:
            spark.stop()
    print(f"spark: {total}")
    complaints = total.complaints(cases)
    for complaint in complaints:
        print(f"  this proves little: {complaint}")
    return found + len(complaints)


if __name__ == "__main__":
    sys.exit(main())

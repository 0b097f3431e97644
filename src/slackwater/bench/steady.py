"""`slackwater bench steady`: many small refreshes in a row; time and memory must not grow with their number.

What that means is a number, for the time and for the heap that the collector of Spark leaves: the last against the
early ones, up to `GROWTH`. The memory of the Python process is told beside them.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import statistics
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from slackwater.bench.iqp_targets import Target, print_targets
from slackwater.cli_output import Output, Steps
from slackwater.cli_session import start_muted
from slackwater.engine import Engine

QUERY = """SELECT c.region, count(*) AS orders, sum(o.amount) AS revenue, max(o.amount) AS largest
FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.region"""
CUSTOMERS, ORDERS = 20_000, 500_000
GROWTH = 1.3
"""What the last refreshes may take of the time, and of the heap, of the early ones."""
EARLY = 40
STATUS = Path("/proc/self/status")


def command(
    refreshes: int = 200, rows: int = 100, output: str | Path | None = None, json_only: bool = False
) -> dict[str, Any]:
    """Refresh a view over and over with small deltas (inserts and deletes), and compare early with late refreshes."""
    target = Path(output or "bench-results")
    target.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="slackwater-steady-"))
    try:
        with (
            Output(json_only) as shown,
            shown.steps() as steps,
            Engine(work / "warehouse", memory_budget="1GB", save_states=False) as engine,
        ):
            steps.say("starting Spark")
            start_muted(engine)
            document = _run(engine, refreshes, rows, steps)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    (target / "steady.json").write_text(json.dumps(document, indent=2))
    if not json_only:
        for name, value in document["summary"].items():
            Console().print(f"  {name}: {'not measured' if value is None else f'{value:,.3f}'}")
        print_targets(targets(document["summary"]), Console())
    return document


def targets(summary: Mapping[str, Any]) -> list[Target]:
    """What time and memory should come to."""
    first, last = (summary[f"live heap after {turn} (MB)"] for turn in (EARLY, summary["refreshes"]))
    return [
        Target("time: median of the last 20 over that of the 20th to 40th", summary["ratio"], GROWTH),
        Target(f"live heap: after the last over that after {EARLY}", last / first, GROWTH),
    ]


def _run(engine: Engine, refreshes: int, rows: int, steps: Steps) -> dict[str, Any]:
    spark, chance = engine.spark, random.Random(7)  # noqa: S311 - test data, not secrets
    steps.say("loading the tables, and the first result")
    customers = engine.create_table("customers", "id BIGINT, region STRING")
    customers.insert(spark.range(CUSTOMERS).selectExpr("id", "concat('region ', id % 50) AS region"))
    orders = engine.create_table("orders", "id BIGINT, customer BIGINT, amount INT", key=["id"])
    base = f"id, id * 7919 % {CUSTOMERS} AS customer, CAST(id % 1000 AS INT) AS amount"
    orders.insert(spark.range(ORDERS).selectExpr(*base.split(", ")))
    view = engine.create_view("revenue", QUERY)
    seconds: list[float] = []
    heap: dict[int, int] = {}
    resident: dict[int, int | None] = {}
    steps.say(f"refreshing {refreshes} times")
    for turn in steps.over(range(refreshes)):
        first = ORDERS + turn * rows
        fresh = [(first + i, chance.randrange(CUSTOMERS), chance.randrange(1000)) for i in range(rows)]
        orders.insert(fresh)
        if turn % 10 == 9:
            orders.delete_keys([(first + i,) for i in range(rows // 2)])
        seconds.append(view.refresh().total_seconds)
        if turn + 1 in (EARLY, (EARLY + refreshes) // 2, refreshes):
            heap[turn + 1], resident[turn + 1] = _live_heap(engine), resident_bytes()
    steps.say("verifying the result")
    verified = bool(view.verify())
    early, late = statistics.median(seconds[20:40]), statistics.median(seconds[-20:])
    summary = {
        "refreshes": refreshes,
        "median of 20th to 40th": early,
        "median of the last 20": late,
        "ratio": late / early,
        "mean of 20th to 40th": statistics.fmean(seconds[20:40]),
        "mean of the last 20": statistics.fmean(seconds[-20:]),
        **{f"live heap after {turn} (MB)": found / 1e6 for turn, found in heap.items()},
        **{f"Python process after {turn} (MB)": found and found / 1e6 for turn, found in resident.items()},
        "all verified": float(verified),
    }
    asked = [target.to_dict() for target in targets(summary)]
    return {"benchmark": "steady", "targets": asked, "summary": summary, "seconds": seconds}


def _live_heap(engine: Engine) -> int:
    """Bytes of heap that survive a collection; Spark drops what only dead objects named after the first one."""
    jvm: Any = engine.spark._sc._jvm
    for _ in range(3):
        jvm.java.lang.System.gc()
        time.sleep(1)
    memory = jvm.java.lang.Runtime.getRuntime()
    return int(memory.totalMemory()) - int(memory.freeMemory())


def resident_bytes() -> int | None:
    """Bytes of memory that this process occupies, where the system tells; Spark's Java is another process."""
    try:
        found = re.search(r"^VmRSS:\s+(\d+) kB$", STATUS.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) * 1024 if found else None

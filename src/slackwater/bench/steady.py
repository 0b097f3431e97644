"""`slackwater bench steady`: many small refreshes in a row; time and memory must not grow with their number."""

from __future__ import annotations

import json
import random
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console

from slackwater.cli_output import Output, Steps
from slackwater.cli_session import start_muted
from slackwater.engine import Engine

QUERY = """SELECT c.region, count(*) AS orders, sum(o.amount) AS revenue, max(o.amount) AS largest
FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.region"""
CUSTOMERS, ORDERS = 20_000, 500_000


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
            Console().print(f"  {name}: {value:,.3f}")
    return document


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
    memory: dict[int, int] = {}
    steps.say(f"refreshing {refreshes} times")
    for turn in steps.over(range(refreshes)):
        first = ORDERS + turn * rows
        fresh = [(first + i, chance.randrange(CUSTOMERS), chance.randrange(1000)) for i in range(rows)]
        orders.insert(fresh)
        if turn % 10 == 9:
            orders.delete_keys([(first + i,) for i in range(rows // 2)])
        seconds.append(view.refresh().total_seconds)
        if turn + 1 in (40, (40 + refreshes) // 2, refreshes):
            memory[turn + 1] = _live_heap(engine)
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
        **{f"live heap after {turn} (MB)": found / 1e6 for turn, found in memory.items()},
        "all verified": float(verified),
    }
    return {"benchmark": "steady", "summary": summary, "seconds": seconds}


def _live_heap(engine: Engine) -> int:
    """Bytes of heap that survive a collection; Spark drops what only dead objects named after the first one."""
    jvm: Any = engine.spark._sc._jvm
    for _ in range(3):
        jvm.java.lang.System.gc()
        time.sleep(1)
    memory = jvm.java.lang.Runtime.getRuntime()
    return int(memory.totalMemory()) - int(memory.freeMemory())

"""A story told on a small cluster: a driver and two executors, each a process of its own on this machine.

    python -m tests.spark.on_a_cluster folder

Prints what `test_cluster.py` looks at, as JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.execution.hashed import holders
from slackwater.planning import lookup_costing, plain_rules

QUERY = """SELECT c.region, count(*) AS n, sum(o.amount) AS amount FROM orders o JOIN customers c ON o.customer = c.id
GROUP BY c.region"""


def small_cluster(scratch: Path) -> SparkSession:
    """A driver and two executors with one core each."""
    return (
        SparkSession.builder.appName("slackwater-cluster")
        .master("local-cluster[2,1,512]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.executor.memory", "512m")
        .config("spark.driver.memory", "1g")
        .config("spark.local.dir", str(scratch / "local"))
        .config("spark.log.level", "ERROR")
        .config("spark.buffer.pageSize", "1m")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )


def story(engine: sw.Engine) -> dict[str, Any]:
    """Inserts, an update and a delete, each followed by a refresh and a proof."""
    customers = engine.create_table("customers", "id INT, region STRING", key=["id"])
    orders = engine.create_table("orders", "id INT, customer INT, amount INT", key=["id"])
    customers.insert([(i, f"region {i % 5}") for i in range(400)])
    orders.insert([(i, i % 450, i % 97) for i in range(5_000)])
    view = engine.create_view("by_region", QUERY, strategy="auto")
    modes, proofs = [], []
    for turn in range(4):
        orders.insert([(10_000 + turn * 10 + i, 395 + turn * 10 + i, 7) for i in range(10)])
        if turn == 1:
            customers.insert([(400 + i, "region 9") for i in range(10)])
        if turn == 2:
            orders.delete_keys([(3,), (4,)])
            customers.upsert([(7, "region 1")])
        modes.append(view.refresh().mode)
        proofs.append(bool(view.verify()))
    hashed = [s.hashed for state in view.states.values() for s in state.segments if s.hashed is not None]
    return {
        "modes": modes, "proofs": proofs, "holders": holders(engine.spark), "tables": [h.bytes for h in hashed],
        "bytes": view.state_bytes(), "budget": engine.budget, "rows": sum(r.n for r in view.result().collect()),
    }  # fmt: skip


def refused(engine: sw.Engine) -> str:
    """The code with which a refresh is refused."""
    try:
        engine.view("by_region").refresh(full=True)
    except sw.SlackwaterError as error:
        return error.code
    return ""


def main(folder: Path) -> None:
    """Tell it, with indexes on tables of any size."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    plain_rules.MANY = lookup_costing.SENT_ANYWAY = 0
    logs = Path(pyspark.__file__).parent / "work"  # where such a cluster writes, whatever it is told
    before = set(logs.glob("*"))
    try:
        with sw.Engine(folder / "warehouse", spark=small_cluster(folder), memory_budget="256MB") as engine:
            found = story(engine)
            engine.spark.stop()  # before the engine is closed, as a notebook may
            found["afterwards"] = refused(engine)
        with sw.Engine(folder / "warehouse") as engine:
            found["version"] = engine.catalog.version()
    finally:
        for made in set(logs.glob("*")) - before:
            shutil.rmtree(made, ignore_errors=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

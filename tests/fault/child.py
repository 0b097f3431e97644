"""A writer that a crash point kills somewhere: insert, delete, refresh, compact, poll a folder, save states."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.execution import compaction


def main(warehouse: str, landing: str) -> None:
    compaction.STATE_SEGMENTS = compaction.RESULT_SEGMENTS = compaction.TABLE_SEGMENTS = 2
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.driver.memory", "1g")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    with sw.Engine(warehouse, spark=spark) as engine:
        sales, view = engine.table("sales"), engine.view("totals")
        log = Path(warehouse + ".log")

        def did(what: str) -> None:
            with log.open("a") as file:
                file.write(what + "\n")

        sales.insert([(1001, "a", 5), (1002, "b", 6)])
        did("inserted")
        sales.delete([(1001, "a", 5)])
        did("deleted")
        view.refresh()
        did("refreshed")
        sales.landing_directory(landing).poll()
        did("polled")
        view.refresh()
        did("refreshed again")
    did("closed")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

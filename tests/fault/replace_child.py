"""A writer that replaces a view's query, and that a crash point kills on the way."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

import slackwater as sw


def main(warehouse: str, query: str) -> None:
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.memory", "1g")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    with sw.Engine(warehouse, spark=spark) as engine:
        engine.sql(f"CREATE OR REPLACE MATERIALIZED VIEW totals DISCARD STATES AS {query}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

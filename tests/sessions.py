"""The Spark of the tests: local, small, and quiet."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession


def small_spark(scratch: Path) -> SparkSession:
    """A session that leaves its files in a scratch directory."""
    session = (
        SparkSession.builder.appName("slackwater-tests")
        .master("local[2]")
        .config("spark.driver.memory", "2g")
        .config(
            "spark.driver.extraJavaOptions",
            f"-XX:+UseParallelGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -Dderby.system.home={scratch}",
        )
        .config("spark.local.dir", str(scratch / "local"))
        .config("spark.log.level", "ERROR")
        .config("spark.sql.codegen.cache.maxEntries", "5000")
        .config("spark.buffer.pageSize", "4m")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session

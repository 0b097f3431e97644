"""Data cleaning: dirty rows are found by rules, repaired by a model, and delivered table by table at a known pace.

    python examples/data_cleaning.py [folder]

The clean rows are loaded first and the query is answered from them. The cleaner then takes one table after the other:
it trains a model on the clean rows, repairs the dirty ones, delivers them in batches, and tells Slackwater which table
it is at and how fast it goes. So the states that are kept are always those for the table that is being cleaned.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from pyspark.ml.feature import VectorAssembler
from pyspark.ml.regression import DecisionTreeRegressor
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

ORDERS, CUSTOMERS, BATCHES = 60_000, 6_000, 4
QUERY = """SELECT c.segment, count(*) AS orders, sum(o.amount) AS revenue
FROM orders o JOIN customers c ON o.customer = c.id WHERE c.credit > 900 AND o.amount > 1000 GROUP BY c.segment"""

RULES = {"orders": "amount IS NULL OR amount < 0", "customers": "credit IS NULL OR credit > 100000"}
"""What makes a row dirty, by table."""

REPAIRED = {"orders": ("amount", ["quantity", "price"]), "customers": ("credit", ["income", "years"])}
"""The column that is repaired, and those that the model predicts it from."""


def collected(spark: SparkSession) -> dict[str, DataFrame]:
    """The data as it was collected: every fifth row lost a value or has one that cannot be."""
    orders = (
        spark.range(ORDERS)
        .selectExpr(
            "CAST(id AS INT) AS id",
            f"CAST(id * 7919 % {CUSTOMERS} AS INT) AS customer",
            "CAST(1 + id % 9 AS INT) AS quantity",
            "CAST(5 + id * 31 % 199 AS INT) AS price",
        )
        .withColumn(
            "amount", F.expr("CASE WHEN id % 10 = 3 THEN NULL WHEN id % 10 = 7 THEN -1 ELSE quantity * price END")
        )
    )
    customers = (
        spark.range(CUSTOMERS)
        .selectExpr(
            "CAST(id AS INT) AS id",
            "concat('segment ', id % 5) AS segment",
            "CAST(20 + id * 17 % 79 AS INT) AS income",
            "CAST(id % 29 AS INT) AS years",
        )
        .withColumn("credit", F.expr("CASE WHEN id % 5 = 2 THEN 999999 ELSE income * 10 + years * 5 END"))
    )
    return {"orders": orders, "customers": customers}


def cleaned(table: str, rows: DataFrame) -> Iterator[DataFrame]:
    """Train on the clean rows, repair the dirty ones, and deliver them in batches."""
    column, inputs = REPAIRED[table]
    vectors = VectorAssembler(inputCols=inputs, outputCol="features")
    tree = DecisionTreeRegressor(labelCol=column, maxDepth=12, maxBins=256)
    model = tree.fit(vectors.transform(rows.where(f"NOT ({RULES[table]})")))
    dirty = vectors.transform(rows.where(RULES[table]).drop(column))
    repaired = (
        model.transform(dirty).withColumn(column, F.round("prediction").cast("int")).select(*rows.columns).cache()
    )
    for batch in range(BATCHES):
        yield repaired.where(F.col("id") % BATCHES == batch)
    repaired.unpersist()


def main(folder: Path) -> None:
    """Tell the story."""
    with sw.Engine(folder / "warehouse", memory_budget="64MB") as engine:
        data = collected(engine.spark)
        for name, rows in data.items():
            table = engine.create_table(name, rows.schema, key=["id"])
            table.insert(rows.where(f"NOT ({RULES[name]})"))
            print(f"{name}: {table.count():,} rows are clean")
        view = engine.create_view("revenue", QUERY, refresh=sw.on_arrival(), forecast=sw.paced())
        for name, rows in data.items():
            table, left = engine.table(name), rows.where(RULES[name]).count()
            started, delivered = time.monotonic(), 0
            for batch in cleaned(name, rows):
                before = table.count()
                table.insert(batch)
                delivered += table.count() - before
                pace = delivered / (time.monotonic() - started)
                table.report_pace(pace, remaining=left - delivered)
                for report in engine.tick():
                    print(report)
                    print("  kept for the next:", ", ".join(report.states) or "nothing")
            table.mark_complete()
            print(view.verify())
        print(view.forecasts())
        view.result().orderBy("segment").show()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory(prefix="slackwater-cleaning-") as directory:
            main(Path(directory))

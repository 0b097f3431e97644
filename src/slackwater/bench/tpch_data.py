"""TPC-H tables in slices: most rows now, the rest in small deltas later.

Rows are held back by a hash of their key, so that a slice is spread evenly over the table: the hard case for pruning.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.engine import Engine
from slackwater.errors import SlackwaterError

KEYS = {
    "customer": ("c_custkey",), "orders": ("o_orderkey",), "lineitem": ("l_orderkey", "l_linenumber"),
    "supplier": ("s_suppkey",), "part": ("p_partkey",), "partsupp": ("ps_partkey", "ps_suppkey"),
    "nation": ("n_nationkey",), "region": ("r_regionkey",),
}  # fmt: skip
HELD_BACK = ("customer", "orders", "lineitem", "supplier", "part", "partsupp")
BUCKETS = 100_000
"""Rows are dealt into this many buckets; a slice is a range of them."""


def generate(directory: Path, scale: float) -> None:
    """Write the tables as Parquet with tpchgen-cli, unless they are there."""
    if (directory / "lineitem.parquet").exists():
        return
    beside = Path(sys.executable).with_name("tpchgen-cli")
    program = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if program is None:
        raise SlackwaterError("DEMO_DATA_MISSING", "tpchgen-cli, which makes the TPC-H data, is not installed",
                              "install it: pip install 'slackwater[bench]'")  # fmt: skip
    directory.mkdir(parents=True, exist_ok=True)
    command = [program, "parquet", "-s", str(scale), "--output-dir", str(directory)]
    try:
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - a fixed program with our own arguments
    except subprocess.CalledProcessError as error:
        last = error.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise SlackwaterError(
            "DEMO_DATA_MISSING",
            f"tpchgen-cli failed: {' '.join(last)}",
            "check the free space and the version installed",
        ) from error


@dataclass(frozen=True, slots=True)
class Slices:
    """Tables cut into slices."""

    spark: SparkSession
    directory: Path
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: KEYS)

    def whole(self, table: str) -> DataFrame:
        """All rows of a table."""
        return self.spark.read.parquet(str(self.directory / f"{table}.parquet"))

    def part(self, table: str, first: float, last: float) -> DataFrame:
        """The rows from one share of the table to another, by a hash of the key."""
        bucket = F.pmod(F.xxhash64(*self.keys[table]), F.lit(BUCKETS))
        return self.whole(table).where((bucket >= round(first * BUCKETS)) & (bucket < round(last * BUCKETS)))


def load(engine: Engine, slices: Slices, held_back: float, growing: Collection[str] = HELD_BACK) -> None:
    """Create the tables; hold back a share of the rows of those that grow, the others are complete."""
    for table, key in slices.keys.items():
        created = engine.create_table(table, slices.whole(table).schema, key=key if table != "lineitem" else ())
        if table in growing:
            created.insert(slices.part(table, 0.0, 1.0 - held_back))
        else:
            created.insert(slices.whole(table))
            created.mark_complete()


def insert_slice(engine: Engine, slices: Slices, tables: tuple[str, ...], first: float, last: float) -> int:
    """Insert one slice of several tables; gives the number of rows."""
    before = sum(engine.table(t).count() for t in tables)
    for table in tables:
        engine.table(table).insert(slices.part(table, first, last).coalesce(1))
    return sum(engine.table(t).count() for t in tables) - before

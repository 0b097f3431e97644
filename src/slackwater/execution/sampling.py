"""What share of a table's rows a filter keeps, from a small sample; a wrong guess costs time, never correctness."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from slackwater.algebra.nodes import Filter, Project, Rel, Scan
from slackwater.algebra.printer import node_key
from slackwater.execution.render import render, table_view
from slackwater.planning.join_groups import filters

SAMPLE = 20_000
"""Rows looked at for each filter."""


def kept_shares(
    leaves: list[Rel],
    spark: SparkSession,
    frame: Callable[[str, str, SparkSession], DataFrame],
    rows: Mapping[str, int],
) -> dict[str, float]:
    """For each filtered scan, the share of the sampled rows that it keeps."""
    asked: list[tuple[str, str]] = []
    for at, leaf in enumerate(leaves):
        scan = _scan_below(leaf)
        if scan is None or not rows.get(scan.table) or not filters(leaf):
            continue
        sample = f"sample {at} of {scan.table}"
        frame(scan.table, "new", spark).limit(SAMPLE).createOrReplaceTempView(
            f"`{table_view(sample, 'new').replace('`', '``')}`"
        )
        renamed = leaf.transform_up(lambda n, s=sample: replace(n, table=s, at="new") if isinstance(n, Scan) else None)  # type: ignore[misc]
        total = min(SAMPLE, rows[scan.table])
        asked.append((node_key(leaf), f"SELECT {at} AS leaf, COUNT(1) / {total} AS share FROM ({render(renamed)})"))
    if not asked:
        return {}
    try:
        found = spark.sql("\nUNION ALL\n".join(sql for _, sql in asked)).collect()
    except PySparkException:
        # An expression that fails on a sampled row fails in the query as well, and is reported there.
        return {}
    by_leaf = {int(row["leaf"]): float(row["share"]) for row in found}
    order = [int(sql.split()[1]) for _, sql in asked]
    return {key: max(by_leaf[at], 0.5 / SAMPLE) for (key, _), at in zip(asked, order, strict=True)}


def _scan_below(node: Rel) -> Scan | None:
    while isinstance(node, Project | Filter):
        node = node.child
    return node if isinstance(node, Scan) else None


def filtered_scans(plan: Rel) -> list[Rel]:
    """The filtered, projected scans of a plan."""
    found, stack = [], [plan]
    while stack:
        node = stack.pop()
        if _is_leaf(node):
            found.append(node)
        else:
            stack.extend(node.children)
    return found


def _is_leaf(node: Rel) -> bool:
    while isinstance(node, Project | Filter):
        node = node.child
    return isinstance(node, Scan)

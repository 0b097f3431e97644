"""Tables and views that are in the catalog alone: enough to plan, to tell and to look back, without Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql.types import IntegerType, StructType

import slackwater as sw
from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import call, col
from slackwater.algebra.serialize import to_json
from slackwater.declared import Declared
from slackwater.execution.reports import Refresh
from slackwater.storage import NewSegment


def scan(table: str, *columns: str) -> n.Scan:
    return n.Scan(table, tuple(n.Field(name, "int") for name in columns), tuple(range(len(columns))))


LINES, ORDERS = scan("lines", "l_order", "price"), scan("orders", "o_key", "state")
JOINED = n.Join(
    n.Filter(LINES, call(">", col("price", "int"), col("l_order", "int"), dtype="boolean")),
    n.Filter(ORDERS, call(">", col("state", "int"), col("o_key", "int"), dtype="boolean")),
    call("=", col("l_order", "int"), col("o_key", "int"), dtype="boolean"),
)
TOTALS = n.Aggregate(JOINED, (n.Item("s", col("state", "int")),), (AggCall("rows", "count", (), "bigint"),))


def add_table(engine: sw.Engine, leaf: n.Scan, rows: int) -> None:
    fields = StructType()
    for field in leaf.fields:
        fields.add(field.name, IntegerType())
    engine.create_table(leaf.table, fields)
    insert(engine, leaf.table, rows)


def insert(engine: sw.Engine, table: str, rows: int) -> None:
    record = engine.catalog.table(table)
    with engine.catalog.commit("change", table, {"inserted": rows, "deleted": 0}, engine.lease) as tx:
        tx.add_segments(record.owner, [NewSegment(1, f"data/{record.owner}/{tx.version}", rows, rows)])


def add_view(engine: sw.Engine, name: str, plan: n.Rel, *, declared: Declared | None = None,
             **options: object) -> sw.View:  # fmt: skip
    """A view over tables of the catalog; it stands at the latest version, without a row."""
    columns = [field.name for field in plan.schema]
    query = json.dumps({"sql": f"the query of {name}", "columns": columns, "order": []})
    more = {"strategy": "auto", "declared": (declared or Declared()).to_json(), **options}
    with engine.catalog.commit("create_view", name, {}, engine.lease) as tx:
        record = tx.add_view(name, query, json.dumps(to_json(plan)), "{}", json.dumps(more), version=tx.version)
    return engine.view(record.name)


def add_refresh(engine: sw.Engine, view: sw.View, mode: str, seconds: float, predicted: float, **more: object) -> None:
    """One refresh on record."""
    values: Mapping[str, object] = {"predicted_seconds": predicted, "reason": "told so", **more}
    with engine.catalog.commit("refresh", view.name, {"mode": mode}, engine.lease) as tx:
        report = Refresh(view.name, mode, tx.version - 1, tx.version, {"lines": 5}, 3, 1,
                         {"total": seconds}, **values)  # type: ignore[arg-type]  # fmt: skip
        tx.add_refresh(view.id, report.from_version, tx.version, seconds, report.to_dict())

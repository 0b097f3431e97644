"""Views with states of which nothing but their bytes is real: enough to see which are released, without Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql.types import LongType, StructField, StructType

import slackwater as sw
from slackwater.algebra.nodes import Field, Scan
from slackwater.algebra.serialize import to_json
from slackwater.execution.states import State, StateSegment
from slackwater.planning.choices import Choice

SCHEMA = StructType([StructField("id", LongType())])


class Rows:
    """Checkpointed rows, as far as a release knows them."""

    def __init__(self, number: int) -> None:
        self.number, self.released = number, False

    def unpersist(self, blocking: bool) -> None:
        self.released = True

    def segment(self) -> StateSegment:
        found: Any = self
        return StateSegment(lambda: (found, found), weighted=False, rdd_id=self.number)


def add_view(engine: sw.Engine, name: str, reads: str = "t", **options: Any) -> sw.View:
    """A view over one table (made if need be); computing its result is Spark's business."""
    if reads not in [x.name for x in (*engine.tables(), *engine.views())]:
        engine.create_table(reads, SCHEMA)
    plan = Scan(reads, (Field("id", "bigint"),), (0,))
    query = json.dumps({"sql": f"SELECT id FROM {reads}", "columns": ["id"], "order": []})
    with engine.catalog.commit("create_view", name) as tx:
        tx.add_view(name, query, json.dumps(to_json(plan)), "{}", json.dumps({"strategy": "auto"} | options))
    return engine.view(name)


def hold(view: sw.View, states: Mapping[str, tuple[int, float, Rows]]) -> None:
    """Give a view states: by key their bytes, what they save, and their rows."""
    view._loaded = True
    view._known_bytes = {key: size for key, (size, _, _) in states.items()}
    view.choices = tuple(Choice(key, key, True, "kept", size, saves) for key, (size, saves, _) in states.items())
    view.states = {key: State(key, key, (rows.segment(),), False) for key, (_, _, rows) in states.items()}

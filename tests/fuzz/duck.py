"""DuckDB with the same tables, and the comparison of its rows with ours."""

from __future__ import annotations

import math
from collections import Counter
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import duckdb

from tests.fuzz.tables import FOLDED, LIST, MAP, PAIR, SPAN, TEXT, Row, Schema

_TYPES = {TEXT: "VARCHAR(1000)", LIST: "INTEGER[]", PAIR: "STRUCT(x INTEGER, y VARCHAR)", SPAN: "INTERVAL",
          FOLDED: "VARCHAR", MAP: "VARCHAR"}  # fmt: skip


def duck_type(dtype: str) -> str:
    """DuckDB's name of a type; columns that it is never asked for are texts there."""
    return _TYPES.get(dtype, dtype)


class Twin:
    """A database in memory."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.database = duckdb.connect()
        self.database.execute("CREATE TYPE timestamp_ntz AS TIMESTAMP")
        for name, columns in schema.items():
            listed = ", ".join(f"{c} {duck_type(t)}" for c, t in columns.items())
            self.database.execute(f"CREATE TABLE {name} ({listed})")

    def load(self, tables: dict[str, list[Row]]) -> None:
        """Take the rows over. To DuckDB the two zeros are two groups, to Spark one: it gets one of them only."""
        for name, rows in tables.items():
            self.database.execute(f"DELETE FROM {name}")
            if rows:
                places = ", ".join("?" * len(self.schema[name]))
                self.database.executemany(
                    f"INSERT INTO {name} VALUES ({places})", [tuple(map(_given, r)) for r in rows]
                )

    def rows(self, text: str) -> list[Row]:
        """What a query gives; structs as tuples."""
        found = self.database.execute(text).fetchall()
        return [tuple(tuple(v.values()) if isinstance(v, dict) else v for v in row) for row in found]


def _given(value: Any) -> Any:
    if isinstance(value, float):
        return value if value else 0.0
    if isinstance(value, tuple):
        return dict(zip("xy", value, strict=True))
    if isinstance(value, datetime) and value.tzinfo:
        return value.astimezone(timezone.utc).replace(tzinfo=None)
    return str(value) if isinstance(value, dict) else value


def difference(ours: list[Row], theirs: list[Row], kinds: list[str]) -> tuple[list[Row], list[Row]]:
    """The rows that only one side has; floats are compared to nine digits."""
    left, right = (Counter(_exact(row, kinds) for row in rows) for rows in (ours, theirs))
    if left == right:
        return [], []
    only_left, only_right = list((left - right).elements()), list((right - left).elements())
    for row in list(only_left):
        match = next((other for other in only_right if _close(row, other, kinds)), None)
        if match is not None:
            only_left.remove(row)
            only_right.remove(match)
    return only_left, only_right


def _exact(row: Row, kinds: list[str]) -> Row:
    return tuple(_comparable(v, kind) for v, kind in zip(row, kinds, strict=True))


def _comparable(value: Any, kind: str) -> Any:
    if isinstance(value, dict):
        return tuple(sorted(value.items()))
    if isinstance(value, list | tuple):
        return tuple(_comparable(v, "exact") for v in value)
    if isinstance(value, bytearray):
        return bytes(value)
    if value is None or kind == "exact":
        return value.normalize() + 0 if isinstance(value, Decimal) else value
    return "NaN" if math.isnan(value) else float(value) + 0.0


def _close(row: Row, other: Row, kinds: list[str]) -> bool:
    for a, b, kind in zip(row, other, kinds, strict=True):
        if a == b:
            continue
        if kind == "exact" or not isinstance(a, float) or not isinstance(b, float):
            return False
        if not math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-6 if kind == "coarse" else 1e-9):
            return False
    return True

"""Tables with awkward rows, and rounds of changes to all of them; some tables have a key and some have none."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from pyspark.sql import DataFrame

import slackwater as sw

Row = tuple[Any, ...]
UTC = dt.timezone.utc

SCHEMAS: dict[str, tuple[str, list[str]]] = {
    "t": ("id INT, k INT, g STRING, v INT, d DOUBLE, m DECIMAL(12,2), b BIGINT, ok BOOLEAN", []),
    "s": ("k INT, g STRING, w INT, x DOUBLE", []),
    "o": ("o_id INT, c_id INT, amt DECIMAL(38,2), at TIMESTAMP, st STRING", ["o_id"]),
    "c": ("c_id INT, name STRING, n_id INT, since DATE", ["c_id"]),
    "nn": ("n_id INT, nation STRING", ["n_id"]),
    "n": ("id INT, g STRING, arr ARRAY<INT>, fa ARRAY<DOUBLE>, st STRUCT<a: INT, b: STRING>, mp MAP<STRING, INT>, "
          "items ARRAY<STRUCT<p: STRING, q: INT>>, sf STRUCT<f: DOUBLE>", ["id"]),
    "e": ("id INT, g STRING, ts TIMESTAMP, tn TIMESTAMP_NTZ, dd DATE, iv INTERVAL DAY TO SECOND, "
          "nm STRING COLLATE UTF8_LCASE, bin BINARY, v INT", ["id"]),
    "z": ("id INT, c STRUCT<x: INT>, r STRUCT<k: INT>, l STRUCT<k: INT>, g STRUCT<xs: ARRAY<INT>>, e STRUCT<a: INT>, "
          "x INT, xs ARRAY<INT>, k INT, a INT", ["id"]),
    "u": ("k INT, v INT", ["k"]),
}  # fmt: skip
"""The columns and the key of each table; those of `z` are called like the relations of our own SQL."""

START = {"t": 90, "s": 45, "o": 60, "c": 12, "nn": 3, "n": 40, "e": 45, "z": 24, "u": 7}
KEYS = [1, 1, 2, 2, 3, 4, 5, 6, None]
GROUPS = ["a", "a", "b", "b", "c", "", None]
FLOATS = [0.0, -0.0, 1.5, 2.25, math.nan, None, -3.5, 1e300, 0.1]
SMALL = [None, *range(10)]
AMOUNTS = [*map(Decimal, ("123.45", "-7.10", "9" * 30 + ".99", "-" + "8" * 30 + ".01", "0.00")), None]


class Rows:
    """Makes rows, and remembers what each table holds."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.held: dict[str, list[Row]] = {}

    def make(self, table: str, ident: int) -> Row:
        """A row; `ident` is its key, where the table has one."""
        return _MAKERS[table](self.random, ident)

    def start(self, engine: sw.Engine) -> None:
        """Create and fill the tables."""
        for table, (schema, key) in SCHEMAS.items():
            rows = [self.make(table, ident) for ident in range(1, START[table] + 1)]
            if not key:
                rows += [rows[0], rows[0], (None,) * len(rows[0]), (None,) * len(rows[0])]
            self.held[table] = rows
            engine.create_table(table, schema, key=key).insert(_frame(engine, table, rows))

    def change(self, engine: sw.Engine) -> None:
        """One round: rows come, go and are replaced in every table."""
        for table, (_, key) in SCHEMAS.items():
            if key:
                self._replace(engine, table)
            else:
                self._exchange(engine, table)

    def _exchange(self, engine: sw.Engine, table: str) -> None:
        """Some go, among them all of one group, and others come, in one version."""
        held, group = self.held[table], self.random.choice(GROUPS)
        at = 2 if table == "t" else 1
        places = [i for i, row in enumerate(held) if row[at] == group][:12]
        places += self.random.sample([i for i in range(len(held)) if i not in places], 4)
        gone, came = [held[i] for i in places], [self.make(table, 0) for _ in range(9)]
        self.held[table] = [row for i, row in enumerate(held) if i not in places] + came
        signed = [(*row, 1) for row in came] + [(*row, -1) for row in gone]
        engine.table(table).apply(_frame(engine, table, signed, ", _weight BIGINT"))

    def _replace(self, engine: sw.Engine, table: str) -> None:
        """A tenth is updated, some are new, and a few go."""
        held = {row[0]: row for row in self.held[table]}
        chosen = self.random.sample(sorted(held), max(1, len(held) // 10))
        chosen += [max(held) + 1 + i for i in range(max(1, len(held) // 12))]
        new = [self.make(table, ident) for ident in chosen]
        engine.table(table).upsert(_frame(engine, table, new))
        held |= {row[0]: row for row in new}
        gone = self.random.sample(sorted(held), max(1, len(held) // 15))
        engine.table(table).delete_keys([(ident,) for ident in gone])
        self.held[table] = [row for ident, row in held.items() if ident not in gone]


def _frame(engine: sw.Engine, table: str, rows: list[Row], extra: str = "") -> DataFrame:
    return engine.spark.createDataFrame(rows, SCHEMAS[table][0] + extra)


def _t(r: random.Random, ident: int) -> Row:
    money = None if r.random() < 0.1 else Decimal(r.randint(-400, 400)) / 4
    return (r.randint(1, 25), r.choice(KEYS), r.choice(GROUPS), r.choice(SMALL), r.choice(FLOATS), money,
            r.choice([1, 2, -7, 10**12, None]), r.choice([True, False, None]))  # fmt: skip


def _s(r: random.Random, ident: int) -> Row:
    return (r.choice(KEYS), r.choice(GROUPS), r.choice(SMALL), r.choice(FLOATS))


def _o(r: random.Random, ident: int) -> Row:
    at = dt.datetime(2024, 1, 1, tzinfo=UTC) + dt.timedelta(hours=r.randint(0, 400))
    customer, status = r.choice([1, 2, 3, 4, 5, 5, 9, None]), r.choice(["open", "open", "closed", None, ""])
    return (ident, customer, r.choice(AMOUNTS), at, status)


def _c(r: random.Random, ident: int) -> Row:
    since = dt.date(2024, 1, 1) + dt.timedelta(days=r.randint(0, 90))
    return (ident, r.choice(["x", "x", "y", "z", None]), r.choice([1, 2, 3, None]), since)


def _nn(r: random.Random, ident: int) -> Row:
    return (ident, r.choice(["N", "M", None]))


def _n(r: random.Random, ident: int) -> Row:
    zeros = r.choice([[0.0, 1.0], [-0.0, 1.0], [-0.0], [0.0], [], None, [2.5, math.nan]])
    items = r.choice([[], None, [("p", 1)], [("p", 1), ("q", None)], [(None, 3), ("r", 2)]])
    pair = r.choice([(1, "p"), (2, None), (None, None), None, (1, "q"), (3, "p")])
    return (ident, r.choice(GROUPS), r.choice([[1, 2], [2, 1], [], None, [None, 3], [1]]), zeros, pair,
            r.choice([{"a": 1}, {}, {"b": 2, "a": 3}, None, {"a": 2}]), items,
            (r.choice([-0.0, 0.0, 1.0]),))  # fmt: skip


def _e(r: random.Random, ident: int) -> Row:
    at = dt.datetime(2024, 2, 27, 22) + dt.timedelta(minutes=37 * r.randint(0, 120))
    days = [dt.date(2024, 1, 1), dt.date(2024, 2, 29), dt.date(2024, 3, 2), None, dt.date(2024, 2, 28)]
    spans = [dt.timedelta(days=1, microseconds=7), dt.timedelta(seconds=-90), dt.timedelta(0), None]
    return (ident, r.choice(GROUPS), at.replace(tzinfo=UTC), at if r.random() > 0.1 else None, r.choice(days),
            r.choice(spans), r.choice(["Ann", "ann", "ANN", "Bob", "bob", "Cyd", None, ""]),
            r.choice([b"", b"\x00\xff", b"abc", None]), r.choice(SMALL[:7]))  # fmt: skip


def _z(r: random.Random, ident: int) -> Row:
    left, right = ((r.choice([1, 2, 3, 7, None]),) for _ in range(2))
    return (ident, (r.choice([1, 2, 3, 4, 5, None]),), left, right, (r.choice([[1], [1, 2], [], None]),),
            (r.choice([1, 2, None]),), r.choice([1, 2, 3, 100, 200, None]), r.choice([[8], [8, 9], []]),
            r.choice([50, 60, None]), r.choice([70, 80]))  # fmt: skip


def _u(r: random.Random, ident: int) -> Row:
    return (ident, r.choice([1, 2, 3, 4, 50]))


_MAKERS: dict[str, Callable[[random.Random, int], Row]] = {
    "t": _t, "s": _s, "o": _o, "c": _c, "nn": _nn, "n": _n, "e": _e, "z": _z, "u": _u,
}  # fmt: skip

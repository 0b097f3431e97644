"""Random schemas, rows of several characters, and rounds of changes, all as plain data."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

VALUES: dict[str, list[Any]] = {
    "INT": [None, None, -1, 0, 1, 1, 2, 3, 7],
    "STRING": [None, "", "a", "a", "b", "it's", "ü"],
    "DECIMAL(9,2)": [None, *map(Decimal, ("-1.50", "0.00", "0.01", "2.25", "2.25", "9999999.99"))],
    "DOUBLE": [None, -0.0, 0.0, 0.5, 0.1, 1.7, math.nan],
    "DATE": [None, date(1969, 12, 31), date(2024, 2, 29), date(2024, 3, 1), date(2024, 3, 1)],
    "BOOLEAN": [None, True, False],
    "BIGINT": [None, 0, 1, 2, -(2**40), 2**40],
    "ARRAY<INT>": [None, [], [1], [1, None, 2], [0, 0]],
    "DOUBLE /*quarters*/": [None, -1.75, 0.0, 0.25, 0.25, 2.5, 1024.0],
    "TIMESTAMP": [None, *(datetime(2024, 3, 10, h, 30, tzinfo=timezone.utc) for h in (6, 7, 7, 8)),
                  datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=timezone.utc)],
    "TIMESTAMP_NTZ": [None, datetime(2024, 3, 10, 2, 30), datetime(2024, 3, 10, 2, 30), datetime(2024, 3, 11),
                      datetime(1969, 12, 31, 23, 59, 59, 999_999)],
    "BINARY": [None, b"", b"\x00\xff", b"abc", b"abc"],
    "INTERVAL DAY TO SECOND": [None, timedelta(0), timedelta(seconds=-90), timedelta(days=1, microseconds=7),
                               timedelta(hours=26)],
    "STRUCT<x: INT, y: STRING>": [None, (1, "a"), (1, "a"), (1, None), (None, None), (2, "")],
    "STRING COLLATE UTF8_LCASE": [None, "Ann", "ann", "ANN", "bob", "", "Ü", "ü"],
    "MAP<STRING, INT>": [None, {}, {"a": 1}, {"a": None, "b": 2}, {"b": 2, "a": 1}],
}  # fmt: skip
INT, TEXT, MONEY, REAL, DAY, FLAG, LONG, LIST, QUARTERS, MOMENT, CLOCK, BYTES, SPAN, PAIR, FOLDED, MAP = VALUES
PLAIN = (INT, TEXT, MONEY, REAL, DAY, FLAG, LONG, LIST)
ODD = (QUARTERS, QUARTERS, MOMENT, CLOCK, BYTES, SPAN, PAIR, FOLDED, MAP)
"""Types that a table has one of at most; numbers that add up without rounding are drawn more often."""

UNSORTED = (LIST, PAIR, MAP)
"""Types of which Spark has no order, or another one than DuckDB."""

PROFILES = ("mixed", "null-heavy", "duplicate-heavy", "skewed")

KEYED, COMPOSED, KEYS = 0.5, 0.35, 8
"""The share of the tables that have a key, that of the keys of two columns, and how many there are for most rows."""

WAYS = ("whole", "whole", "whole", "by table", "deletes first", "halves", "detour", "detour")
"""How a round comes: at once, or in steps that add up to it."""

Row = tuple[Any, ...]
Schema = dict[str, dict[str, str]]
Keys = dict[str, tuple[str, ...]]
"""The columns of the key of each table that has one."""

Round = dict[str, tuple[list[Row], list[Row]]]
"""For each table that changes, the rows that come and those that go."""


@dataclass(frozen=True, slots=True)
class Story:
    """The tables, what they hold at first, and what happens to them; some have a key.

    Attributes:
        schema: the columns of each table, and their types.
        start: the first rows.
        rounds: the changes.
        keys: the key of each table that has one.
        ways: how each round comes; one that is not told comes at once.
    """

    schema: Schema
    start: dict[str, list[Row]]
    rounds: list[Round]
    keys: Keys = field(default_factory=dict)
    ways: tuple[str, ...] = ()

    def rows(self, rounds: int) -> dict[str, list[Row]]:
        """What the tables hold after some rounds."""
        now = {name: list(rows) for name, rows in self.start.items()}
        for changes in self.rounds[:rounds]:
            for name, (come, gone) in changes.items():
                now[name] += come
                for row in gone:
                    at = next(i for i, other in enumerate(now[name]) if repr(other) == repr(row))
                    del now[name][at]
        return now

    def steps(self, number: int) -> list[Round]:
        """The steps of a round, counted from one. Rows that both come and go are left out if there are several."""
        changes, way = self.rounds[number - 1], self.ways[number - 1] if number <= len(self.ways) else "whole"
        if way == "whole":
            return [changes]
        net = {name: _net(come, gone) for name, (come, gone) in changes.items()}
        return [step for step in _STEPS[way](net) if any(come or gone for come, gone in step.values())]


def _by_table(net: Round) -> list[Round]:
    return [{name: net[name]} for name in reversed(net)]


def _deletes_first(net: Round) -> list[Round]:
    return [
        {name: ([], gone) for name, (_, gone) in net.items()},
        {name: (come, []) for name, (come, _) in net.items()},
    ]


def _halves(net: Round) -> list[Round]:
    """Deletes before inserts, so that a key is free before it is taken again."""
    return [
        {name: ([], gone[::2]) for name, (_, gone) in net.items()},
        {name: (come[::2], gone[1::2]) for name, (come, gone) in net.items()},
        {name: (come[1::2], []) for name, (come, _) in net.items()},
    ]


def _detour(net: Round) -> list[Round]:
    """There, back and there again."""
    return [net, {name: (gone, come) for name, (come, gone) in net.items()}, net]


_STEPS = {"by table": _by_table, "deletes first": _deletes_first, "halves": _halves, "detour": _detour}


def draw_schema(chance: random.Random) -> Schema:
    """Three or four tables; each has a number and a text to join by, most have a column of an odd type."""
    made: Schema = {}
    for at in range(chance.choice([3, 3, 4])):
        types = [INT, TEXT, *(chance.choice(PLAIN) for _ in range(chance.randint(1, 3)))]
        types += [chance.choice(ODD)] if chance.random() < 0.7 else []
        chance.shuffle(types)
        made[f"t{at}"] = {}
        for n, dtype in enumerate(types):
            made[f"t{at}"][_column_name(n, at, dtype, made[f"t{at}"])] = dtype
    made["t0"]["xs"] = LIST
    return made


def _column_name(place: int, table: int, dtype: str, taken: Mapping[str, str]) -> str:
    """A name; structs are called like the relations of our own SQL, and some columns like the fields of structs."""
    if dtype == PAIR:
        return "lrcg"[table]
    namesake = {INT: "x", TEXT: "y"}.get(dtype, "") if table % 2 else ""
    return namesake if namesake and namesake not in taken else f"{'abcdefgh'[place]}{table}"


def draw_story(chance: random.Random, rounds: int) -> Story:
    """Tables and their changes; the last round takes all the others back."""
    schema = draw_schema(chance)
    keys = {
        name: (_first(columns, INT), *((_first(columns, TEXT),) if chance.random() < COMPOSED else ()))
        for name, columns in schema.items()
        if MAP in columns.values() or chance.random() < KEYED  # rows with a map can only be told apart by a key
    }
    rows = {
        name: _Rows(list(columns.values()), chance, tuple(list(columns).index(key) for key in keys.get(name, ())))
        for name, columns in schema.items()
    }
    start = {name: list(found.now) for name, found in rows.items()}
    made: list[Round] = []
    for _ in range(rounds):
        changing = chance.sample(list(schema), chance.randint(1, len(schema)))
        made.append({name: rows[name].change() for name in changing})
    back: Round = {}
    for changes in made:
        for name, (come, gone) in changes.items():
            taken, given = back.setdefault(name, ([], []))
            taken += gone
            given += come
    ways = tuple(chance.choice(WAYS) for _ in range(rounds + 1))
    return Story(schema, start, [*made, {name: _net(*both) for name, both in back.items()}], keys, ways)


def _first(columns: dict[str, str], dtype: str) -> str:
    return next(name for name, found in columns.items() if found == dtype)


def _net(come: list[Row], gone: list[Row]) -> tuple[list[Row], list[Row]]:
    """Without the rows that both come and go."""
    left = list(gone)
    kept = []
    for row in come:
        at = next((i for i, other in enumerate(left) if repr(other) == repr(row)), None)
        if at is None:
            kept.append(row)
        else:
            del left[at]
    return kept, left


class _Rows:
    """The rows of one table while its changes are drawn."""

    def __init__(self, types: list[str], chance: random.Random, key: tuple[int, ...] = ()) -> None:
        self.types, self.random, self.key = types, chance, key
        self.profile = chance.choice(PROFILES)
        self.pool = [self._fresh() for _ in range(3)]
        self.now: list[Row] = self._told_apart([self.row() for _ in range(chance.choice([0, 5, 12, 12, 24]))], [])

    def _told_apart(self, rows: list[Row], beside: list[Row]) -> list[Row]:
        """Rows with a key of their own, where the table has one."""
        if not self.key:
            return rows
        taken, kept = {self._named(row) for row in beside}, []
        for row in map(self._with_key, rows):
            if self._named(row) not in taken:
                taken.add(self._named(row))
                kept.append(row)
        return kept

    def _named(self, row: Row) -> Row:
        return tuple(row[at] for at in self.key)

    def _with_key(self, row: Row) -> Row:
        """The row with something in its key; of two columns the first alone is not enough."""
        cells = list(row)
        for at in self.key:
            if self.types[at] == TEXT:
                cells[at] = self.random.choice("ab") if cells[at] is None else cells[at]
            elif cells[at] is None or cells[at] < 0:
                cells[at] = self.random.randrange(KEYS if len(self.key) == 1 else 3)
        return tuple(cells)

    def _fresh(self) -> Row:
        return tuple(self.random.choice(VALUES[dtype]) for dtype in self.types)

    def row(self) -> Row:
        fresh = self._fresh()
        if self.profile == "duplicate-heavy" and self.random.random() < 0.8:
            return self.random.choice(self.pool)
        if self.profile == "null-heavy":
            return tuple(None if self.random.random() < 0.6 else v for v in fresh)
        if self.profile == "skewed":
            return tuple(
                v if self.random.random() < 0.25 else often for v, often in zip(fresh, self.pool[0], strict=True)
            )
        return fresh

    def change(self) -> tuple[list[Row], list[Row]]:
        """Some rows go, some are updated, some come, some come a second time; now and then everything goes."""
        chance = self.random
        share = len(self.now) if chance.random() < 0.08 else chance.randint(0, 4)
        gone = [self.now.pop(chance.randrange(len(self.now))) for _ in range(min(share, len(self.now)))]
        come = [self.row() for _ in range(chance.randint(0, 3))]
        if self.now and chance.random() < 0.4:
            come.append(chance.choice(self.now))
        for row in gone[:4]:
            if chance.random() < 0.5:
                at = chance.randrange(len(row))
                come.append((*row[:at], self._fresh()[at], *row[at + 1 :]))
            elif chance.random() < 0.1:
                come.append(row)
        come = self._told_apart(come, self.now)
        self.now += come
        return come, gone

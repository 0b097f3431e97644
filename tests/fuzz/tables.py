"""Random schemas, rows of several characters, and rounds of changes, all as plain data."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from datetime import date
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
}
INT, TEXT, MONEY, REAL, DAY, FLAG, LONG, LIST = VALUES
PROFILES = ("mixed", "null-heavy", "duplicate-heavy", "skewed")

KEYED, KEYS = 0.5, 8
"""The share of the tables that have a key, and how many keys there are for most of their rows."""

Row = tuple[Any, ...]
Schema = dict[str, dict[str, str]]
Round = dict[str, tuple[list[Row], list[Row]]]
"""For each table that changes, the rows that come and those that go."""


@dataclass(frozen=True, slots=True)
class Story:
    """The tables, what they hold at first, and what happens to them; some have a key."""

    schema: Schema
    start: dict[str, list[Row]]
    rounds: list[Round]
    keys: dict[str, str] = field(default_factory=dict)

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


def draw_schema(chance: random.Random) -> Schema:
    """Three or four tables; each has a number and a text to join by."""
    made: Schema = {}
    for at in range(chance.choice([3, 3, 4])):
        types = [INT, TEXT, *(chance.choice(list(VALUES)) for _ in range(chance.randint(1, 3)))]
        chance.shuffle(types)
        made[f"t{at}"] = {f"{'abcdefgh'[n]}{at}": dtype for n, dtype in enumerate(types)}
    made["t0"]["xs"] = LIST
    return made


def draw_story(chance: random.Random, rounds: int) -> Story:
    """Tables and their changes; the last round takes all the others back."""
    schema = draw_schema(chance)
    keys = {name: _first(columns, INT) for name, columns in schema.items() if chance.random() < KEYED}
    rows = {
        name: _Rows(list(columns.values()), chance, list(columns).index(keys[name]) if name in keys else None)
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
    return Story(schema, start, [*made, {name: _net(*both) for name, both in back.items()}], keys)


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

    def __init__(self, types: list[str], chance: random.Random, key: int | None = None) -> None:
        self.types, self.random, self.key = types, chance, key
        self.profile = chance.choice(PROFILES)
        self.pool = [self._fresh() for _ in range(3)]
        self.now: list[Row] = self._told_apart([self.row() for _ in range(chance.choice([0, 5, 12, 12, 24]))], [])

    def _told_apart(self, rows: list[Row], beside: list[Row]) -> list[Row]:
        """Rows with a key of their own, where the table has one."""
        if self.key is None:
            return rows
        taken, kept = {row[self.key] for row in beside}, []
        for row in rows:
            number = row[self.key]
            number = number if number is not None and number >= 0 else self.random.randrange(KEYS)
            if number not in taken:
                taken.add(number)
                kept.append((*row[: self.key], number, *row[self.key + 1 :]))
        return kept

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

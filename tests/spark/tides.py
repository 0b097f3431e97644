"""Rounds of changes that every view must survive, and the check after each."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import slackwater as sw
from slackwater.algebra.nodes import Opaque

SCHEMA = "id INT, p STRING, o INT, v INT, d DOUBLE, m DECIMAL(9,2)"
LABELS = "k STRING, n INT"
_NUMBERS = itertools.count(1)


def row(ident: int, p: str | None, o: int | None, v: int | None, d: float | None = 0.5) -> tuple[Any, ...]:
    return (ident, p, o, v, d, None if v is None else Decimal(v) / 4)


BASE = [
    *(row(n, "abc"[n % 3], n % 4, n % 5, (n % 3) / 4) for n in range(24)),
    row(30, None, 1, 7), row(31, None, None, None, None), row(31, None, None, None, None),
    row(40, "lonely", 2, 2), row(50, "odd", 1, 1, math.nan), row(51, "odd", 1, 2, -0.0), row(51, "odd", 1, 2, 0.0),
]  # fmt: skip
BASE_LABELS = [("a", 1), ("b", 2), ("c", 2), (None, 3), ("odd", 4)]

ROUNDS: Sequence[tuple[str, Mapping[str, tuple[list[Any], list[Any]]]]] = (
    (
        "inserts: ties, duplicates, a NULL key, a new partition",
        {"tides": ([row(60, "a", 1, 3), row(60, "a", 1, 3), row(61, None, 1, 0), row(62, "new", None, 5)], [])},
    ),
    (
        "the last row of a partition goes, one of two equal rows, the first of an order; rows move; labels change too",
        {
            "tides": (
                [row(4, "c", 0, 4, 0.25), row(5, "c", 9, 0, 0.5), row(70, "late", 0, 0)],
                [row(40, "lonely", 2, 2), row(60, "a", 1, 3), BASE[0], row(51, "odd", 1, 2, -0.0), BASE[4], BASE[5]],
            ),
            "labels": ([("late", 9), ("a", 5)], [("b", 2)]),
        },
    ),
    (
        "a whole partition goes",
        {"tides": ([], [row(30, None, 1, 7), *[row(31, None, None, None, None)] * 2, row(61, None, 1, 0)])},
    ),
)


def check_rounds(engine: sw.Engine, queries: Mapping[str, str], modes: Mapping[str, str] | None = None) -> None:
    """Make a view of each query; after every round each equals a recompute and was refreshed as it should."""
    number = next(_NUMBERS)
    names = {"tides": f"tides{number}", "labels": f"labels{number}"}
    tables = {
        "tides": engine.create_table(names["tides"], SCHEMA),
        "labels": engine.create_table(names["labels"], LABELS),
    }
    tables["tides"].insert(BASE)
    tables["labels"].insert(BASE_LABELS)
    views = {}
    for name, sql in queries.items():
        views[name] = engine.create_view(f"{name} {number}", sql.format(**names))
        assert not isinstance(views[name].plan, Opaque), f"{name}: {views[name].plan}"
    wrong = []
    for told, changes in ROUNDS:
        for table, (inserted, deleted) in changes.items():
            if deleted:
                tables[table].delete(deleted)
            if inserted:
                tables[table].insert(inserted)
        for name, view in views.items():
            report = view.refresh()
            found = view.verify()
            if not found:
                wrong.append(f"{told}: {name}: {found}")
            expected = (modes or {}).get(name, "incremental")
            if report.mode not in (expected, "none"):
                wrong.append(f"{told}: {name}: {report.mode}: {report.reason}")
    assert not wrong, "\n".join(wrong)
    for view in views.values():
        view.drop()
    for name in names.values():
        engine.drop_table(name)

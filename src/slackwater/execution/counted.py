"""Rows that jobs have counted, and what is left of that when tables grow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from slackwater.algebra.nodes import Rel, Scan
from slackwater.algebra.printer import node_key
from slackwater.planning.cardinality import MOST, plausible


def numbers(kept: object, least: float = 0.0, most: float = MOST) -> dict[str, float]:
    """The numbers that can be meant among those that a catalog kept; whatever else is there counts as unknown.

    >>> numbers({"a": 5, "b": None, "c": float("nan"), "d": "many", "e": -1}), numbers([1])
    ({'a': 5}, {})
    """
    found = plausible(kept, most) if isinstance(kept, Mapping) else {}
    return {str(key): n for key, n in found.items() if n >= least}


def whole(kept: object) -> dict[str, int]:
    """The same, without fractions."""
    return {key: int(n) for key, n in numbers(kept).items()}


@dataclass(slots=True)
class Counted:
    """The rows of a plan's nodes.

    Attributes:
        rows: by node.
        tables: by node, the rows that the tables had when it was counted.
        sampled: the rows that the tables had when it was last seen, in this process, what filters keep of them.
    """

    rows: dict[str, float] = field(default_factory=dict)
    tables: dict[str, dict[str, int]] = field(default_factory=dict)
    sampled: dict[str, int] = field(default_factory=dict)
    _below: tuple[Rel, dict[str, frozenset[str]]] | None = None

    @classmethod
    def from_json(cls, options: Mapping[str, Any]) -> Counted:
        """As the catalog kept it."""
        at = options.get("observed_at")
        tables = {str(key): whole(then) for key, then in at.items()} if isinstance(at, Mapping) else {}
        return cls(numbers(options.get("observed")), tables)

    def to_json(self) -> dict[str, Any]:
        """As the catalog keeps it."""
        return {"observed": self.rows, "observed_at": self.tables}

    def add(self, found: Mapping[str, float], tables: Mapping[str, int]) -> None:
        """Note what a run has counted over tables of this size."""
        self.rows.update(found)
        self.tables.update({key: dict(tables) for key in found})

    def now(self, plan: Rel, tables: Mapping[str, int]) -> dict[str, float]:
        """The rows of a plan's nodes over tables of another size, if they grow as all the tables below them together.

        What was counted over an empty table says nothing of a full one. Counter-example to counting on it: the join of
        two empty tables has no rows and could be sent anywhere; a month later it has a billion.
        """
        found = {}
        for key, read in self._tables_below(plan).items():
            then = self.tables.get(key)
            if key not in self.rows or then is None:
                continue
            before = [(tables.get(t, 0), then.get(t, 0)) for t in read]
            if all(n or not now for now, n in before):
                found[key] = self.rows[key] * math.prod(max(now / n, 1.0) for now, n in before if n)
        return found

    def _tables_below(self, plan: Rel) -> dict[str, frozenset[str]]:
        if self._below is None or self._below[0] is not plan:
            self._below = (plan, {node_key(x): frozenset(s.table for s in x.walk() if isinstance(s, Scan))
                                  for x in (*plan.walk(), *plan.keepable())})  # fmt: skip
        return self._below[1]

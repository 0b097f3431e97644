"""What work costs: seconds for each row, by kind of work, and the fixed price of a query.

The numbers here were measured on two cores and serve until Spark has been measured where it runs
(`execution/calibration.py`). They belong to one set of machines, which `cluster` names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Rates:
    """Seconds.

    Attributes:
        refresh: what every refresh costs before its first row.
        step: one more query that others wait for.
        append: one more state that is added to, beside the queries that others wait for.
        scan_row: a row read from files.
        scan_value: a column of it.
        pattern: a text compared with a pattern.
        wide: an operation on decimals of more than 18 digits, which are objects to Java.
        state_row: a row read from a state.
        probe: a row looked up in a small hash table.
        seek: a row looked up in an index of many rows, which no cache of the processor holds.
        build: a row sent to everyone in such a table.
        shuffle: a row sent to the task that needs it.
        aggregate: a row added to its group.
        aggregate_value: one aggregate of it.
        merge: a partial row merged with its group.
        sort: a row put in order.
        write: a row written to a state.
        emit: a row made by a join.
        compare: a row of the new result compared with the last one.
        cluster: where this was measured; empty for the built-in numbers.
    """

    refresh: float = 0.02
    step: float = 0.045
    append: float = 0.012
    scan_row: float = 5e-9
    scan_value: float = 9e-9
    pattern: float = 3.0e-7
    wide: float = 6.0e-8
    state_row: float = 5.5e-8
    probe: float = 2.5e-8
    seek: float = 2.0e-7
    build: float = 1.0e-6
    shuffle: float = 3.5e-7
    aggregate: float = 1.0e-7
    aggregate_value: float = 4.5e-8
    merge: float = 6.0e-7
    sort: float = 2.5e-7
    write: float = 3.5e-7
    emit: float = 2.0e-8
    compare: float = 1.0e-6
    cluster: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As the catalog keeps them."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Rates:
        """As the catalog kept them; what is missing or absurd is replaced by the built-in number."""
        good: dict[str, Any] = {"cluster": str(values.get("cluster", ""))}
        for f in fields(cls):
            value = values.get(f.name)
            if f.name != "cluster" and isinstance(value, int | float) and 0 < value < 1e6:
                good[f.name] = float(value)
        return cls(**good)

    @classmethod
    def from_json(cls, text: str) -> Rates:
        """As the catalog kept them; numbers that cannot be read are as good as none."""
        try:
            found = json.loads(text)
        except ValueError:
            found = {}
        return cls.from_dict(found if isinstance(found, dict) else {})

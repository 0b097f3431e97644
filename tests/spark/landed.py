"""Files for landing directories, and what became of them: what the tests of landing have in common."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slackwater as sw
from slackwater.errors import SlackwaterError
from slackwater.sources import Poll

SCHEMA = "id BIGINT, name STRING, amount DECIMAL(10,2), day DATE"
HEADER = "id,name,amount,day\n"
Rows = list[tuple[Any, ...]]


def land(directory: Path, name: str, content: str | bytes | pa.Table) -> Path:
    """Put a file there as a careful writer does: written aside, then renamed."""
    aside = directory.parent / "aside"
    if isinstance(content, pa.Table):
        pq.write_table(content, aside)
    else:
        aside.write_bytes(content.encode() if isinstance(content, str) else content)
    return aside.rename(directory / name)


def line(number: int) -> str:
    return f"{number},n{number},{number}.50,2024-01-02\n"


def json_line(number: int, **other: Any) -> str:
    return json.dumps({"id": number, "name": f"n{number}", "amount": number + 0.5, "day": "2024-01-02", **other}) + "\n"


def arrow(*numbers: int) -> pa.Table:
    text = pa.table({"id": list(numbers), "name": [f"n{n}" for n in numbers], "amount": [f"{n}.50" for n in numbers],
                     "day": ["2024-01-02"] * len(numbers)})  # fmt: skip
    types = [("id", pa.int64()), ("name", pa.string()), ("amount", pa.decimal128(10, 2)), ("day", pa.date32())]
    return text.cast(pa.schema(types))


def ids(table: sw.Table) -> list[int]:
    return sorted(row["id"] for row in table.snapshot().collect())


def codes(poll: Poll) -> dict[str, str]:
    return {rejected.file: rejected.code for rejected in poll.rejected}


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(SlackwaterError) as error:
        call()
    return error.value.code


def left_behind(engine: sw.Engine) -> list[str]:
    """Files in the warehouse that no record names."""
    data = [str(p.relative_to(engine.path)) for p in (engine.path / "data").glob("*/*")]
    staged = [str(p.relative_to(engine.path)) for p in (engine.path / "staging").glob("*/*")]
    return sorted({*data, *staged} - engine.catalog.all_paths())

"""What several tests on Spark start from."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from slackwater.bench.tpcds_data import SETUP, TpcdsData, prepared
from tests.spark.landed import SCHEMA

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def tpcds_data() -> TpcdsData:
    found = prepared()
    if found is None:
        pytest.skip(f"there is no TPC-DS data; make it with `{SETUP}` or `make tpcds-data`")
    return found


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    directory = tmp_path / "landing"
    directory.mkdir()
    return directory


@pytest.fixture
def table(engine: sw.Engine) -> sw.Table:
    return engine.create_table("orders", SCHEMA)


@pytest.fixture
def make(warehouse: sw.Engine) -> Callable[..., sw.Table]:
    """Create a table under a name that no other test has."""

    def create(schema: Any, rows: Any = None, key: Any = ()) -> sw.Table:
        table = warehouse.create_table(f"t{next(_NUMBERS)}", schema, key=key)
        if rows is not None:
            table.insert(rows)
        return table

    return create

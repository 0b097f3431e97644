"""Executors that are processes of their own, as on a cluster: nothing may count on the driver's memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TABLE = 1_000_000
"""Bytes of the smallest hash table there."""


@pytest.mark.timeout(600)
def test_a_cluster(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.spark.on_a_cluster", str(tmp_path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=540)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["modes"] == ["incremental"] * 4
    assert found["proofs"] == [True] * 4
    assert found["rows"] == 4_573
    assert found["holders"] == 3, "the driver and two executors"
    assert found["tables"], "an index was kept"
    assert all(size > 3 * TABLE for size in found["tables"]), "each of them holds a copy"
    assert sum(found["tables"]) <= found["bytes"] <= found["budget"]
    assert found["afterwards"] == "SPARK_STOPPED"
    assert found["version"] > 4, "the writer's lease was given back"

"""The benchmarks that the README takes its figures from, in small: their files are written, every result verified."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from slackwater.bench import steady, tpch
from slackwater.cli import cli

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("spark")]


def steps_told(text: str) -> list[str]:
    """What a log shows of a benchmark's steps: lines, each with the time of day."""
    lines = [line for line in text.splitlines() if not line.startswith("saved ")]
    assert all(re.match(r"\d\d:\d\d:\d\d \S", line) for line in lines), text
    return [line[9:] for line in lines]


def test_refreshes_of_tpch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tpch, "WARM_UPS", {"1%": 1, "0.1%": 2})
    arguments = ["tpch", "--sf", "0.01", "--queries", "3,5,6", "--repeats", "1", "--output", str(tmp_path)]
    result = CliRunner().invoke(cli, ["bench", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "Q3" in result.stdout
    assert "all verified: 1.00" in result.stdout
    assert steps_told(result.stderr) == [
        "making TPC-H data at scale factor 0.01",
        "starting Spark",
        "loading the tables",
        "initial runs, warming up",
        "initial runs, 1 of 1",
        "delta of 1%, 1 of 2, warming up",
        "delta of 1%, 2 of 2",
        "verifying every result after the deltas of 1%",
        "delta of 0.1%, 1 of 3, warming up",
        "delta of 0.1%, 2 of 3, warming up",
        "delta of 0.1%, 3 of 3",
        "verifying every result after the deltas of 0.1%",
        "a delta of a table that most queries do not read",
        "verifying every result after all deltas",
    ]
    found = json.loads((tmp_path / "tpch.json").read_text())
    assert (tmp_path / "tpch.png").read_bytes().startswith(b"\x89PNG")
    assert found["summary"]["all verified"] == 1.0
    assert found["summary"]["jobs for an untouched query"] == 0
    queries = {measured["query"]: measured for measured in found["queries"]}
    assert set(queries) == {3, 5, 6}
    for number, measured in queries.items():
        assert measured["verified"]
        assert measured["checks"] == dict.fromkeys(("the deltas of 1%", "the deltas of 0.1%", "all deltas"), True)
        assert measured["untouched_jobs"] == (-1 if number == 5 else 0), "Q5 alone reads supplier"
        for label in ("1%", "0.1%"):
            assert len(measured["refresh"][label]) == len(measured["recompute"][label]) == 1
            assert measured["modes"][label] == ["incremental"]
            assert min(measured["medians"][label].values()) > 0


def test_many_refreshes_in_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steady, "CUSTOMERS", 200)
    monkeypatch.setattr(steady, "ORDERS", 5_000)
    arguments = ["steady", "--refreshes", "60", "--rows", "20", "--output", str(tmp_path), "--json"]
    result = CliRunner().invoke(cli, ["bench", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert result.stderr == "", "beside JSON nothing is told"
    found = json.loads(result.stdout)
    assert json.loads((tmp_path / "steady.json").read_text()) == found
    assert len(found["seconds"]) == found["summary"]["refreshes"] == 60
    for turn in (40, 50, 60):
        assert found["summary"][f"live heap after {turn} (MB)"] > 0
        resident = found["summary"][f"Python process after {turn} (MB)"]
        assert (resident is None) is not steady.STATUS.exists()
    time, heap = found["targets"]
    assert time["value"] == found["summary"]["ratio"]
    assert heap["value"] == found["summary"]["live heap after 60 (MB)"] / found["summary"]["live heap after 40 (MB)"]
    assert [(target["asked"], target["limit"]) for target in (time, heap)] == [("at most", 1.3)] * 2
    assert all(target["met"] is (target["value"] <= 1.3) for target in (time, heap))
    assert found["summary"]["all verified"] == 1.0

"""Where the data of TPC-DS comes from: made once, kept in the cache, refused with a code where it cannot be made."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from slackwater.bench import tpcds_data
from slackwater.bench.tpcds_data import prepare, prepared
from slackwater.errors import SlackwaterError


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "slackwater" / "tpcds"


def pretend(directory: Path) -> None:
    directory.mkdir(parents=True)
    columns = {"item": {"i_item_sk": "INTEGER", "i_item_id": "VARCHAR", "i_price": "DECIMAL(7,2)"}}
    (directory / "columns.json").write_text(json.dumps(columns), encoding="utf-8")
    (directory / "queries.json").write_text(json.dumps({"1": "SELECT 1", "10": "SELECT 10"}), encoding="utf-8")


def test_nothing_is_there_at_first(cache: Path) -> None:
    assert prepared() is None


def test_what_was_made_is_taken_as_it_is(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(cache / "sf0.01")
    monkeypatch.setattr(subprocess, "run", None)
    monkeypatch.setattr(subprocess, "Popen", None)
    data = prepare(0.01, print)
    assert data.schemas == {"item": "i_item_sk INT, i_item_id STRING, i_price DECIMAL(7,2)"}
    assert data.texts == {1: "SELECT 1", 10: "SELECT 10"}
    assert data.file("item") == cache / "sf0.01" / "item.parquet"
    assert prepared(0.1) is None


def test_an_installation_that_fails_says_why(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(command: list[str], **_: Any) -> SimpleNamespace:
        assert command[-1] == tpcds_data.DUCKDB
        return SimpleNamespace(returncode=1, stderr="collecting\nERROR: no matching distribution\n")

    monkeypatch.setattr("venv.create", lambda *_, **__: None)
    monkeypatch.setattr(subprocess, "run", refuse)
    with pytest.raises(SlackwaterError, match="no matching distribution") as caught:
        prepare(0.01, print)
    assert caught.value.code == "DEMO_DATA_MISSING"
    assert prepared() is None


def test_a_generator_that_fails_leaves_nothing_behind(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = cache / tpcds_data.DUCKDB.replace("==", "-")
    (place / "bin").mkdir(parents=True)
    (place / "ready").touch()
    script = place / "bin" / "python"
    script.write_text("#!/bin/sh\necho 'item (1 of 24)'\necho 'out of space' >&2\nexit 1\n", encoding="utf-8")
    script.chmod(0o755)
    said: list[str] = []
    with pytest.raises(SlackwaterError, match="out of space"):
        prepare(0.01, said.append)
    assert "item (1 of 24)" in said
    assert prepared() is None
    assert not list(cache.glob("*sf0.01*"))

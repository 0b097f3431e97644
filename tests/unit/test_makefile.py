"""`make test-all` ends well only if nothing was left out, or if you asked for that."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A Makefile over an environment whose programs tell that they were called."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("pyproject.toml", "constraints.txt", "scripts/setup", ".venv/environment.sh", ".venv/.ready"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    _program(tmp_path, "python", "echo tests ran")
    return tmp_path


def _program(checkout: Path, name: str, script: str) -> None:
    path = checkout / ".venv" / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


def _make(checkout: Path, *more: str) -> subprocess.CompletedProcess[str]:
    without = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "SKIP_TPCDS")}
    command = ["make", "test-all", *more]
    return subprocess.run(command, cwd=checkout, env=without, capture_output=True, text=True, check=False)


def test_all_tests_fail_where_tpcds_cannot_be_made(checkout: Path) -> None:
    _program(checkout, "slackwater", "exit 3")
    done = _make(checkout)
    assert done.returncode != 0
    assert "tests ran" not in done.stdout
    assert "SKIP_TPCDS=1" in done.stderr


def test_all_tests_go_on_without_tpcds_where_one_says_so(checkout: Path) -> None:
    _program(checkout, "slackwater", "exit 3")
    done = _make(checkout, "SKIP_TPCDS=1")
    assert (done.returncode, "tests ran" in done.stdout) == (0, True)
    assert "TPC-DS are skipped" in done.stdout


def test_all_tests_run_with_tpcds(checkout: Path) -> None:
    _program(checkout, "slackwater", 'echo "$@"')
    done = _make(checkout)
    assert (done.returncode, done.stdout.splitlines()) == (0, ["bench tpcds-data", "tests ran"])

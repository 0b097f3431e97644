"""What the project says of itself to those who install it and work on it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
SETUP = (ROOT / "scripts" / "setup").read_text(encoding="utf-8")


def test_the_classifiers_are_the_pythons_that_are_set_up() -> None:
    oldest, newest = (re.findall(rf"^{name}=(\d+)", SETUP, re.MULTILINE) for name in ("oldest_python", "newest_python"))
    listed = [int(minor) for minor in re.findall(r"Programming Language :: Python :: 3\.(\d+)", PROJECT)]
    assert listed == list(range(int(oldest[0]), int(newest[0]) + 1))
    assert f'requires-python = ">=3.{listed[0]}"' in PROJECT
    assert f"Python 3.{listed[0]} to 3.{listed[-1]}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_all_that_goes_into_the_source_distribution_is_there() -> None:
    included = re.search(r"\[tool\.hatch\.build\.targets\.sdist\]\ninclude = \[(.*)\]", PROJECT)
    assert included is not None
    for pattern in re.findall(r'"([^"]+)"', included[1]):
        assert list(ROOT.glob(pattern)), pattern


def test_the_guide_for_contributors_knows_every_package_and_names_no_module_that_is_gone() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    source = ROOT / "src" / "slackwater"
    for package in source.glob("*/__init__.py"):
        assert f"\n| `{package.parent.name}` |" in text, package.parent.name
    for pattern in re.findall(r"`([\w*]+\.py)`", text):
        assert list(source.glob(pattern)), pattern


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not in a clone")
def test_what_demo_and_benchmarks_leave_behind_is_ignored_by_git() -> None:
    left = ["slackwater-demo.png", "bench-results/tpch.json", "warehouse/catalog.db"]
    ignored = subprocess.run(["git", "check-ignore", *left], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ignored.stdout.split() == left

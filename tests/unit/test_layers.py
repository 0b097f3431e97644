"""Data flows one way: capture → algebra → planning → execution → storage; the pure layers know no Spark."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "slackwater"
PURE = ("algebra", "arrivals", "delta", "planning")
MAY_IMPORT = {
    "algebra": {"algebra"},
    "delta": {"algebra", "delta"},
    "planning": {"algebra", "delta", "planning"},
    "capture": {"algebra", "capture", "errors"},
    "storage": {"storage", "errors"},
}


def imported(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


@pytest.mark.parametrize("package", PURE)
def test_pure_layers_know_no_spark(package: str) -> None:
    files = list((SOURCE / package).rglob("*.py"))
    assert files
    for file in files:
        assert not [m for m in imported(file) if m.split(".")[0] in ("pyspark", "py4j")], file


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_nothing_below_imports_from_above(package: str) -> None:
    for file in (SOURCE / package).rglob("*.py"):
        ours = {m.split(".")[1] for m in imported(file) if m.startswith("slackwater.")}
        assert ours <= MAY_IMPORT[package], f"{file.relative_to(SOURCE)} imports {sorted(ours - MAY_IMPORT[package])}"


def test_no_pickle_and_no_shell() -> None:
    for file in SOURCE.rglob("*.py"):
        assert not imported(file) & {"pickle", "cPickle", "marshal", "shelve"}, file
        assert "shell=True" not in file.read_text(), file

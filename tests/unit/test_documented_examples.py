"""The Python on the pages about operators runs as it stands; what needs no Spark is run here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "operators"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXAMPLES = {
    f"{page.stem}-{number}": code
    for page in sorted(PAGES.glob("*.md"))
    for number, code in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")))
}
FAMILIES = ("aggregates", "joins", "linear", "scalar-subqueries", "top-k", "user-functions", "windows")


@pytest.mark.parametrize("name", [name for name, code in EXAMPLES.items() if "slackwater" not in code])
def test_an_example_runs_and_its_assertions_hold(name: str) -> None:
    assert "assert " in EXAMPLES[name]
    exec(compile(EXAMPLES[name], name, "exec"), {"__name__": name})  # noqa: S102 - the project's own pages


def test_the_readme_tells_of_every_extra() -> None:
    section = (ROOT / "pyproject.toml").read_text().split("[project.optional-dependencies]\n")[1].split("\n[")[0]
    extras = set(re.findall(r"^([a-z]+) = ", section, re.MULTILINE)) - {"dev"}
    assert extras == set(re.findall(r"^\| `\[([a-z]+)\]` \|", (ROOT / "README.md").read_text(), re.MULTILINE))


@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_tells_its_delta_its_state_and_what_would_be_wrong(family: str) -> None:
    text = (PAGES / f"{family}.md").read_text(encoding="utf-8").lower()
    assert re.search(r"^    d(\(.*\))? += ", text, re.MULTILINE) or "its change" in text
    assert "state" in text
    assert "counter-example" in text
    assert any(name.startswith(f"{family}-") for name in EXAMPLES)
    assert f"{family}.md" in (PAGES / "README.md").read_text(encoding="utf-8")

"""The Python on the pages about operators runs as it stands; what needs no Spark is run here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[2] / "docs" / "operators"
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


@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_tells_its_delta_its_state_and_what_would_be_wrong(family: str) -> None:
    text = (PAGES / f"{family}.md").read_text(encoding="utf-8").lower()
    assert re.search(r"^    d(\(.*\))? += ", text, re.MULTILINE) or "its change" in text
    assert "state" in text
    assert "counter-example" in text
    assert any(name.startswith(f"{family}-") for name in EXAMPLES)
    assert f"{family}.md" in (PAGES / "README.md").read_text(encoding="utf-8")

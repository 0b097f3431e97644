"""What `make docs` checks holds with every run of the tests, and the check itself finds what is wrong."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_docs", ROOT / "scripts" / "check_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "check_docs", module)
    spec.loader.exec_module(module)
    return module


def test_links_and_code_blocks_are_right(check: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    status = check.main()
    assert status == 0, capsys.readouterr().out


def test_all_that_is_written_for_people_is_looked_at(check: ModuleType) -> None:
    names = {str(path.relative_to(ROOT)) for path in check.documents_of(ROOT)}
    assert {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/sql.md"} <= names
    assert "src/slackwater/storage/README.md" in names


def test_what_is_wrong_is_found(
    check: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "README.md").write_text("# Here\n[a](none.md) [b](#there) [c](../up.md) [d](#here) `[e](none.md)`\n")
    (tmp_path / "src" / "x.md").write_text("```python\nif\n```\n```bash\nif\n```\n```text\nif\n```\n")
    monkeypatch.setattr(check, "ROOT", tmp_path)
    assert check.main() == 1
    said = capsys.readouterr().out
    for wrong in (
        "README.md:2: link leads nowhere: none.md",
        "README.md:2: no such heading: #there",
        "README.md:2: link leads out of the project",
        "src/x.md:2: Python does not compile",
        "src/x.md:5: shell does not parse",
        "2 documents, 4 relative links, 2 code blocks: 5 problems",
    ):
        assert wrong in said

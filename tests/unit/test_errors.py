"""Codes of errors: each is raised somewhere and explained in the documentation."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from slackwater.errors import CODES, SlackwaterError
from slackwater.execution.sessions import start_spark
from slackwater.schedules import schedule_of

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "slackwater"


def test_the_documentation_explains_every_code() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \| (.+?) \| (.+) \|$", (ROOT / "docs" / "errors.md").read_text(), re.MULTILINE)
    assert [(code, meaning) for code, meaning, _ in rows] == list(CODES.items())
    for code, _, advice in rows:
        assert advice.endswith((".", "`", ")")), code
        for other in re.findall(r"`([A-Z]+_[A-Z_]+)`", advice):
            assert other in CODES or other == "JAVA_HOME", f"{code}: {other}"


def test_every_code_is_raised_somewhere() -> None:
    text = "".join(path.read_text() for path in SOURCE.rglob("*.py") if path != SOURCE / "errors.py")
    assert [code for code in CODES if f'"{code}"' not in text] == []


def test_every_code_that_is_raised_is_registered() -> None:
    raised = re.compile(r"\b(?:\w+Error|QueryRefused|refusal)\(\s*\"([A-Z]+(?:_[A-Z]+)+)\"")
    found = {code for path in SOURCE.rglob("*.py") for code in raised.findall(path.read_text())}
    assert len(found) > 40
    assert found - CODES.keys() == set()


def test_a_code_that_is_not_registered_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="'OOPS' is not registered"):
        SlackwaterError("OOPS", "", "")


def test_without_java_spark_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(SlackwaterError, match="JAVA_MISSING") as caught:
        start_spark()
    assert "install" in caught.value.advice


def test_a_schedule_is_one_phrase() -> None:
    with pytest.raises(SlackwaterError, match="SCHEDULE_INVALID"):
        schedule_of("EVERY 5 MINUTES; EVERY 6 MINUTES")

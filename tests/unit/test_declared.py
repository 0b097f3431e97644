"""What is declared about a view beside its query."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from slackwater.algebra.nodes import Field, Scan
from slackwater.capture import Captured
from slackwater.declared import Declared, renamed
from slackwater.errors import SlackwaterError
from slackwater.settings import parse_bytes

PLAN = Scan("t", (Field("a", "int"), Field("b", "int")), (0, 1))
CAPTURED = Captured(PLAN, ("a", "b"), (json.dumps(["b", True, False]), json.dumps(["a", False, True])), "SELECT …")


def test_declarations_are_read_back() -> None:
    declared = Declared.of("a remark", True, "512 MiB", " every 5 minutes ")
    assert declared == Declared("a remark", True, 512 * 2**20, "EVERY 5 MINUTES")
    assert Declared.from_json(json.loads(json.dumps(declared.to_json()))) == declared
    assert Declared.from_json({}) == Declared.of("", False, None, "")


def test_a_budget_caps_and_never_raises() -> None:
    assert [Declared(budget_bytes=b).capped(100) for b in (None, 0, 50, 200)] == [100, 0, 50, 100]
    with pytest.raises(SlackwaterError, match="BUDGET_INVALID"):
        Declared.of("", False, "much", "")


@pytest.mark.parametrize("bad", [-1, "-1GB", -0.5, True, 1.5, "", "GB", "1e9", "nan", "1 GB 2", "1XB", None, [1]])
def test_what_is_no_size_is_no_budget(bad: Any, tmp_path: Path) -> None:
    with pytest.raises(SlackwaterError, match="BUDGET_INVALID"):
        parse_bytes(bad)
    with pytest.raises(SlackwaterError, match="BUDGET_INVALID"):
        sw.Engine(tmp_path / "wh", memory_budget=bad)
    assert not (tmp_path / "wh").exists(), "nothing is made for a budget that is none"


def test_a_column_list_renames_the_order_as_well() -> None:
    found = renamed(CAPTURED, ["b", "x y"])
    assert found.columns == ("b", "x y")
    assert [json.loads(key) for key in found.order] == [["x y", True, False], ["b", False, True]]
    assert (found.plan, found.sql) == (PLAN, "SELECT …")
    assert renamed(CAPTURED, ()) is CAPTURED


@pytest.mark.parametrize(
    ("columns", "code"),
    [(["x"], "COLUMNS_MISMATCH"), (["x", "X"], "COLUMNS_MISMATCH"), ("ab", "COLUMNS_MISMATCH"),
     (["x", " "], "NAME_INVALID"), (["x", "a\nb"], "NAME_INVALID")],
)  # fmt: skip
def test_a_column_list_that_does_not_fit_is_refused(columns: list[str], code: str) -> None:
    with pytest.raises(SlackwaterError) as caught:
        renamed(CAPTURED, columns)
    assert caught.value.code == code

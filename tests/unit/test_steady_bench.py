"""What many refreshes in a row should come to, and the memory of this process."""

from __future__ import annotations

from pathlib import Path

import pytest

from slackwater.bench import steady


@pytest.mark.parametrize(("ratio", "heap", "met"), [(1.29, 129.0, [True, True]), (1.31, 100.0, [False, True]),
                                                    (0.5, 131.0, [True, False])])  # fmt: skip
def test_time_and_heap_may_grow_by_less_than_a_third(ratio: float, heap: float, met: list[bool]) -> None:
    summary = {"refreshes": 200, "ratio": ratio, "live heap after 40 (MB)": 100.0, "live heap after 120 (MB)": 900.0,
               "live heap after 200 (MB)": heap}  # fmt: skip
    assert [target.met for target in steady.targets(summary)] == met


@pytest.mark.skipif(not steady.STATUS.exists(), reason="the system does not tell")
def test_the_memory_of_this_process_is_told() -> None:
    before = steady.resident_bytes()
    held = bytearray(b"x") * 200_000_000
    after = steady.resident_bytes()
    assert before is not None
    assert after is not None
    assert after - before > 150_000_000
    assert len(held) == 200_000_000


def test_a_system_that_does_not_tell_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steady, "STATUS", tmp_path / "none")
    assert steady.resident_bytes() is None
    (tmp_path / "none").write_text("Name: python\n")
    assert steady.resident_bytes() is None

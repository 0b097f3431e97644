"""What can be known of states without Spark."""

from __future__ import annotations

import pytest

from slackwater.execution.states import _env_is_closed


@pytest.mark.parametrize(("version", "closed"), [("4.1.4", False), ("4.2.0", False), ("4.3.0", True), ("4.10.1", True)])
def test_which_spark_tells_the_bytes_of_single_rows(version: str, closed: bool) -> None:
    assert _env_is_closed(version) is closed

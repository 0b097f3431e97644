"""What a refresh leaves behind in cycles goes when it has ended, old objects among it now and then."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from slackwater.execution.java_names import EVERY, JavaNames


class Named:
    """An object in a cycle with itself, as those of Java are with their methods."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def unattended() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("unattended")
def test_young_objects_go_at_once() -> None:
    gone = weakref.ref(Named())
    assert gone() is not None
    JavaNames().let_go()
    assert gone() is None


@pytest.mark.usefixtures("unattended")
def test_old_objects_go_now_and_then() -> None:
    old = Named()
    gc.collect()  # it has survived, and counts as old
    gone = weakref.ref(old)
    del old
    names = JavaNames()
    for _ in range(EVERY - 1):
        names.let_go()
    assert gone() is not None
    names.let_go()
    assert gone() is None

"""What a refresh leaves behind in cycles goes when it has ended, old objects among it now and then."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from slackwater.execution.java_names import SHARE, JavaNames


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


class Clock:
    """Whatever is asked of it takes one second, but for what the test says."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def names(clock: Clock) -> JavaNames:
    """The first look at all objects has been, and took a second."""
    made = JavaNames(clock)
    with made.let_go():
        pass
    return made


def _old() -> weakref.ref[Named]:
    old = Named()
    gc.collect()  # it has survived, and counts as old
    return weakref.ref(old)


@pytest.mark.usefixtures("unattended")
def test_young_objects_go_at_once(names: JavaNames) -> None:
    with names.let_go():
        gone = weakref.ref(Named())
        assert gone() is not None
    assert gone() is None


@pytest.mark.usefixtures("unattended")
def test_they_go_after_a_failure_too(names: JavaNames) -> None:
    gone = weakref.ref(Named())
    with pytest.raises(ValueError, match="no"), names.let_go():
        raise ValueError("no")
    assert gone() is None


@pytest.mark.usefixtures("unattended")
def test_old_objects_go_when_the_look_is_a_small_share(names: JavaNames) -> None:
    gone = _old()
    for _ in range(int(1 / SHARE)):
        with names.let_go():
            pass
    assert gone() is not None
    with names.let_go():
        pass
    assert gone() is None


@pytest.mark.usefixtures("unattended")
def test_old_objects_go_after_long_work(names: JavaNames, clock: Clock) -> None:
    gone = _old()
    with names.let_go():
        clock.now += 1 / SHARE
    assert gone() is None

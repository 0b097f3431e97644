"""Progress of commands: a spinner or a bar in a terminal, lines elsewhere, nothing beside a JSON document."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import SimpleNamespace

import pytest
from rich.console import Console

from slackwater.cli_output import Output, Steps

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
Made = Callable[..., tuple[Output, Callable[[], str]]]


@pytest.fixture
def made() -> Iterator[Made]:
    """An output, and what it has written to standard error, which may be a terminal."""
    outputs = ExitStack()

    def make(*, terminal: bool, json_only: bool = False) -> tuple[Output, Callable[[], str]]:
        written = io.StringIO()
        output = outputs.enter_context(Output(json_only))
        output._err = Console(file=written, force_terminal=terminal, markup=False, highlight=False, emoji=False,
                              width=100, _environ={"TERM": "xterm"})  # fmt: skip
        return output, lambda: CONTROL.sub("", written.getvalue())

    with outputs:
        yield make


def test_a_terminal_shows_a_spinner_while_something_is_done(made: Made) -> None:
    output, written = made(terminal=True)
    with output.working("counting [b]sheep[/b]"):
        assert "counting [b]sheep[/b]" in written()
        assert "…" not in written()
    assert re.search(r"0:00:0\d", written()), "the time that has passed"


def test_a_spinner_ends_with_what_it_was_for(made: Made) -> None:
    output, written = made(terminal=True)
    with pytest.raises(ValueError, match="lost"), output.working("counting"):
        raise ValueError("lost")
    with output.working("counting again"):  # only one can turn at a time
        assert "counting again" in written()


def test_a_terminal_shows_a_bar_over_several(made: Made) -> None:
    output, written = made(terminal=True)
    items = [SimpleNamespace(name="[red]one"), SimpleNamespace(name="two"), "three"]
    assert list(output.each(items, "refreshing")) == items
    shown = written()
    assert "refreshing" in shown
    assert "3/3" in shown
    assert list(output.each([], "refreshing")) == []


def test_without_a_terminal_there_are_lines(made: Made) -> None:
    output, written = made(terminal=False)
    with output.working("counting"):
        pass
    assert list(output.each(["a", "b"], "refreshing")) == ["a", "b"]
    assert written() == "counting …\nrefreshing a (1 of 2) …\nrefreshing b (2 of 2) …\n"


@pytest.mark.parametrize("terminal", [True, False])
def test_beside_json_there_is_nothing(made: Made, terminal: bool) -> None:
    output, written = made(terminal=terminal, json_only=True)
    with output.working("counting"):
        assert list(output.each([1, 2], "refreshing")) == [1, 2]
    assert written() == ""


def test_steps_in_a_log_are_lines_with_the_time_of_day(made: Made) -> None:
    output, written = made(terminal=False)
    with output.steps() as steps:
        steps.say("loading [b]sheep[/b]")
        assert list(steps.over(["a", "b"])) == ["a", "b"]
        steps.say("counting")
    assert re.fullmatch(r"\d\d:\d\d:\d\d loading \[b\]sheep\[/b\]\n\d\d:\d\d:\d\d counting\n", written())


def test_steps_in_a_terminal_have_a_bar_that_begins_anew_with_each(made: Made) -> None:
    output, written = made(terminal=True)
    with output.steps() as steps:
        steps.say("loading")
        assert re.search(r"\d\d:\d\d:\d\d loading", written()), "the line stays"
        seen = []
        for item in steps.over([1, 2]):
            seen.append(item)
            assert output_percentages(steps, written) == ["0%", "50%"][: len(seen)]
        steps.say("counting")
        assert re.findall(r"\d+%", written().rpartition("counting")[2]) == []
    assert seen == [1, 2]


def output_percentages(steps: Steps, written: Callable[[], str]) -> list[str]:
    """The shares that the bar has shown, each once."""
    assert steps._progress is not None
    steps._progress.refresh()
    return list(dict.fromkeys(re.findall(r"\d+%", written())))


def test_steps_beside_json_are_not_told(made: Made) -> None:
    output, written = made(terminal=True, json_only=True)
    with output.steps() as steps:
        steps.say("loading")
        assert list(steps.over([1])) == [1]
    assert written() == ""

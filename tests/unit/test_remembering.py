"""Answers that are remembered by the identity of a node."""

from __future__ import annotations

from slackwater.algebra import remembering
from slackwater.algebra.nodes import Field, Scan
from slackwater.algebra.printer import describe, node_key
from slackwater.algebra.remembering import ByNode


def scan(table: str) -> Scan:
    return Scan(table, (Field("a", "int"),), (0,))


def test_an_answer_is_worked_out_once_for_each_node() -> None:
    asked = []
    known: ByNode[Scan, str] = ByNode(lambda node: asked.append(node.table) or node.table.upper())  # type: ignore[func-returns-value]
    one, same, other = scan("t"), scan("t"), scan("u")
    assert [known(one), known(one), known(same), known(other)] == ["T", "T", "T", "U"]
    assert asked == ["t", "t", "u"], "an equal node is another one"


def test_no_node_comes_to_have_the_answer_of_one_that_is_gone() -> None:
    known: ByNode[Scan, str] = ByNode(lambda node: node.table)
    for n in range(2_000):  # without the nodes held, identities would soon come again
        assert known(scan(f"t{n}")) == f"t{n}"


def test_only_so_many_are_held(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(remembering, "MOST", 10)
    known: ByNode[Scan, str] = ByNode(lambda node: node.table)
    for n in range(25):
        known(scan(f"t{n}"))
    assert len(known._known) <= 10


def test_equal_trees_have_equal_keys() -> None:
    assert node_key(scan("t")) == node_key(scan("t")) != node_key(scan("u"))
    assert describe(scan("t")) == "Scan t [a:int@0]"

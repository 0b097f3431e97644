"""Spark's JSON form of a plan, as trees. One list in prefix order becomes nodes with children."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import _parse_datatype_json_value

from slackwater.capture.type_names import type_text


class Unsupported(Exception):
    """Something that the algebra cannot follow; the view is then recomputed or refused."""

    def __init__(self, code: str, operator: str, reason: str) -> None:
        """Name the operator and say why."""
        super().__init__(f"{operator}: {reason}")
        self.code, self.operator, self.reason = code, operator, reason


@dataclass(frozen=True, slots=True)
class Tree:
    """A node of Spark's tree: its class, its other properties, its children."""

    name: str
    props: dict[str, Any]
    children: tuple[Tree, ...]

    def nested(self, prop: str) -> Tree:
        """A property that is itself an expression."""
        return parse(self.props[prop])

    def nested_list(self, prop: str) -> list[Tree]:
        """A property that is a list of expressions."""
        return [parse(item) for item in self.props[prop]]

    def object_name(self, prop: str) -> str:
        """The name of the Scala object that a property holds."""
        return str(self.props[prop]["object"]).rsplit(".", 1)[-1].rstrip("$")

    def walk(self) -> Iterator[Tree]:
        """This node and its children's, not the nested properties."""
        yield self
        for child in self.children:
            yield from child.walk()


def parse(items: list[dict[str, Any]]) -> Tree:
    """Read one tree from its prefix list."""
    tree, used = _parse_at(items, 0)
    if used != len(items):
        raise ValueError("a plan's JSON has more nodes than its tree")
    return tree


def parse_text(text: str) -> Tree:
    """Read one tree from JSON text."""
    return parse(json.loads(text))


def _parse_at(items: list[dict[str, Any]], at: int) -> tuple[Tree, int]:
    item = items[at]
    children, at = [], at + 1
    for _ in range(item["num-children"]):
        child, at = _parse_at(items, at)
        children.append(child)
    return Tree(str(item["class"]).rsplit(".", 1)[-1], item, tuple(children)), at


def class_names(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every class that occurs anywhere in a plan's JSON, nested plans and properties included, parents first.

    A plan of a hundred operators has a hundred thousand values: they wait in a list, not in generators on generators.
    """
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            if "class" in found:
                yield str(found["class"]).rsplit(".", 1)[-1], found
            found = list(found.values())
        waiting.extend(item for item in reversed(found) if isinstance(item, list | dict))


WRITTEN = "ddl"
"""Where the name of a type is noted that Spark's JSON does not tell."""


def type_name(json_type: Any) -> str:
    """The DDL name of a type in Spark's JSON form."""
    if isinstance(json_type, dict) and WRITTEN in json_type:
        return str(json_type[WRITTEN])
    return type_text(_parse_datatype_json_value(json_type))


def attribute_id(props: dict[str, Any]) -> int:
    """The id that ties a column's uses to its definition."""
    return int(props["exprId"]["id"])

"""User-defined functions in a query: only those that were declared deterministic, and only the very ones declared.

Spark's JSON names a function but does not hold it, and two functions may share a name. What is declared is therefore
compared with what the plan itself holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slackwater.capture.hidden import java_seq
from slackwater.capture.trees import class_names
from slackwater.errors import QueryRefused

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

SCALAR, AGGREGATE, MERGING = "scalar", "aggregate", "merging aggregate"

_CLASSES = ("PythonUDF", "PythonUDAF")


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A function that was declared deterministic: its name, its kind, and what Spark holds of it."""

    name: str
    kind: str
    java: JavaObject


def functions_called(
    analyzed: list[dict[str, Any]], plan: JavaObject, declared: Mapping[str, UserFunction]
) -> tuple[str, ...]:
    """The user-defined functions that a query calls; one that was not declared is refused."""
    names = {str(props["name"]) for name, props in class_names(analyzed) if name in _CLASSES}
    if not names:
        return ()
    for name in sorted(names - set(declared)):
        _refuse(name, "was not declared")
    for name, held in _held(plan):
        if name not in declared or not held.equals(declared[name].java):
            _refuse(name, "is not the one that was declared under this name")
    return tuple(sorted(names))


def _held(plan: JavaObject) -> Iterator[tuple[str, JavaObject]]:
    """Each user-defined function of a plan and its subqueries."""
    for expr in java_seq(plan.expressions()):
        yield from _in_expression(expr)
    for below in (*java_seq(plan.subqueries()), *java_seq(plan.children())):
        yield from _held(below)


def _in_expression(expr: JavaObject) -> Iterator[tuple[str, JavaObject]]:
    if str(expr.getClass().getSimpleName()) in _CLASSES:
        yield str(expr.name()), expr.func()
    for child in java_seq(expr.children()):
        yield from _in_expression(child)


def _refuse(name: str, why: str) -> None:
    raise QueryRefused(
        "QUERY_NONDETERMINISTIC",
        f"the query calls the user-defined function {name!r}, which {why}",
        "declare it: engine.register_udf(name, function, returns, deterministic=True), or register_udaf for an"
        " aggregate; then call it by its name in SQL, or use what register_udf gives back",
    )

"""What Spark's JSON does not say of single expressions, noted beside them from the plan itself.

* `try_cast(x AS INT)` looks like `CAST(x AS INT)`, `try_add(x, y)` like `x + y`: noted as `lenient`;
* `x LIKE y ESCAPE '!'` looks like `x LIKE y`: its character is noted as `escape`;
* a constant that is binary, an array, a map or a struct has no value that can be read: its SQL is noted as `sql`;
* `to_csv(x, map('sep', ';'))` looks like `to_csv(x)`: the options are noted, as is what objects of Spark's code hold;
* a string with a collation looks like any other: the name of its type is noted.

To look at an expression is to call the JVM, so nothing is done for a query without any of these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, _parse_datatype_json_value

from slackwater.algebra.aggregates import is_collated
from slackwater.capture.hidden import java_nodes, java_seq
from slackwater.capture.spellings import FORMATS, OBJECT, OPTIONS, TOLD
from slackwater.capture.trees import WRITTEN, Unsupported, class_names

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

    _Noting = Callable[[dict[str, Any], JavaObject], None]

LENIENT = {"Cast": "try_cast", "Add": "try_add", "Subtract": "try_subtract", "Multiply": "try_multiply",
           "Divide": "try_divide", "Remainder": "try_mod", "ElementAt": "try_element_at"}  # fmt: skip
"""Spark's classes that can be lenient, and how each is then written."""

_CALLED = re.compile(r"\b(try_(?!(?:sum|avg)\()\w+)\(", re.IGNORECASE)
_ESCAPES = re.compile(r" ESCAPE '|\bilike\(", re.IGNORECASE)
"""Where a LIKE may have an escape character of its own: ILIKE prints it among its arguments."""

_GARBLED = re.compile(r"@[0-9a-f]+\b|\ufffd")
"""What the text of a constant has in it where Java printed an object's address, or bytes that are no text."""

_BYTES = re.compile(r"string collate UTF8_BINARY\b")
"""What Spark calls a string that is compared by its bytes, where the query says so."""

_NAME = re.compile(r"[A-Za-z]\w*")
_SPELLED = re.compile(r"boolean|(tiny|small|big)?int|float|double|string|date|binary|decimal\(\d+,\d+\)")
"""Types whose constants Spark prints as SQL that means the same under any settings."""


def note_unsaid(
    optimized: list[dict[str, Any]], plan: JavaObject, analyzed: str, *, strict: bool, collated: bool = False
) -> None:
    """Note what is missing; refuses what cannot be noted.

    `strict` where the session's settings are ANSI's, `collated` where some strings may have a collation.
    """
    called = {name.lower() for name in _CALLED.findall(analyzed)}
    if others := sorted(called - set(LENIENT.values()) - TOLD):
        raise Unsupported("EXPRESSION_UNSUPPORTED", others[0], "lenient functions of this kind are not incremental yet")
    hidden = any(
        name in FORMATS or (name == "Literal" and (_is_composed(item) or item.get("dataType") == "object"))
        for name, item in class_names(optimized)
    )
    if called or hidden or _ESCAPES.search(analyzed):
        note_plan(optimized, plan, partial(_note, strict=strict))
    if collated:
        note_plan(optimized, plan, _note_collation)


def note_plan(items: list[dict[str, Any]], plan: JavaObject, note: _Noting) -> None:
    """Call `note` with each expression of a plan in both forms, those of scalar subqueries included."""
    for item, node in zip(items, java_nodes(plan), strict=True):
        said = [part for parts in _expressions(list(item.values())) for part in parts]
        meant = [one for expr in java_seq(node.expressions()) for one in _prefix(expr)]
        if len(said) != len(meant):
            raise _unknown(item)
        for part, one in zip(said, meant, strict=True):
            if isinstance(part.get("plan"), list):
                _check_class(part, one)
                note_plan(part["plan"], one.plan(), note)
            else:
                note(part, one)


def _unknown(part: dict[str, Any]) -> Unsupported:
    reason = "what Spark does not tell of its expressions cannot be found out"
    return Unsupported("EXPRESSION_UNSUPPORTED", str(part["class"]).rsplit(".", 1)[-1], reason)


def _expressions(value: list[Any]) -> Iterator[list[dict[str, Any]]]:
    """The expressions among an operator's properties, in order."""
    if value and all(isinstance(x, dict) and "class" in x for x in value):
        yield value
        return
    for item in value:
        if isinstance(item, list):
            yield from _expressions(item)


def _prefix(expr: JavaObject) -> Iterator[JavaObject]:
    yield expr
    for child in java_seq(expr.children()):
        yield from _prefix(child)


def _note(part: dict[str, Any], expr: JavaObject, *, strict: bool) -> None:
    name = str(part["class"]).rsplit(".", 1)[-1]
    if name in LENIENT or name in FORMATS or name in ("Like", "Literal"):
        _check_class(part, expr)
    if name == "ElementAt":
        part["lenient"] = not expr.failOnError()
    elif name in LENIENT:
        mode = str(expr.evalMode().toString())
        part["lenient"] = mode == "TRY" or (mode == "LEGACY" and strict)
        if mode == "LEGACY" and strict and not (name == "Cast" and _gives_null(expr)):
            raise Unsupported("EXPRESSION_UNSUPPORTED", name, "it is to be computed without ANSI's rules")
    elif name in FORMATS:
        part[OPTIONS] = _options(expr)
        part["requiredSchema"] = name == "CsvToStructs" and bool(expr.requiredSchema().isDefined())
    elif name == "Literal" and part.get("dataType") == "object":
        part[OBJECT] = _held(expr.value())
    elif name == "Like":
        part["escape"] = str(expr.escapeChar())
    elif name == "Literal" and _is_composed(part) and has_spelling(_parse_datatype_json_value(part["dataType"])):
        text = _constant(expr)
        if text is not None:
            part["sql"] = text


def _gives_null(cast: JavaObject) -> bool:
    """Whether a cast gives NULL for what it cannot read without ANSI's rules too; others would cut or wrap around."""
    source, target = (str(part.dataType().simpleString()) for part in (cast.child(), cast))
    return source == "string" and target in ("date", "timestamp", "timestamp_ntz")


def _constant(expr: JavaObject) -> str | None:
    """A constant as SQL; None where Spark itself cannot print it."""
    try:
        text = str(expr.sql())
        if _GARBLED.search(text):  # an array in the form in which Spark computes: put it into the one that it prints
            jvm: Any = SparkContext._active_spark_context._jvm  # type: ignore[union-attr]
            catalyst = jvm.org.apache.spark.sql.catalyst
            value = catalyst.CatalystTypeConverters.convertToScala(expr.value(), expr.dataType())
            text = str(catalyst.expressions.Literal.create(value, expr.dataType()).sql())
    except Py4JJavaError:
        return None
    return None if _GARBLED.search(text) else text


def _options(holder: JavaObject) -> dict[str, str]:
    return {str(pair._1()): str(pair._2()) for pair in java_seq(holder.options().toSeq())}


def _held(value: JavaObject) -> dict[str, Any]:
    """What is known of an object of Spark's code that a function has made of its constants."""
    kind = str(value.getClass().getSimpleName())
    held: dict[str, Any] = {"class": kind}
    if kind == "StructsToJsonEvaluator":
        held[OPTIONS] = _options(value)
    elif kind == "ParseUrlEvaluator":
        held["failOnError"] = bool(value.failOnError())
    elif kind.startswith("XPath"):
        held["path"] = str(value.path().toString())
    return held


def _note_collation(part: dict[str, Any], expr: JavaObject) -> None:
    if "dataType" not in part and not str(part["class"]).endswith(".Collate"):
        return
    _check_class(part, expr)
    name = _BYTES.sub("string", str(expr.dataType().simpleString()))
    if is_collated(name):
        part["dataType"] = {WRITTEN: name}


def _check_class(part: dict[str, Any], expr: JavaObject) -> None:
    if str(expr.getClass().getName()) != str(part["class"]):
        raise _unknown(part)


def _is_composed(literal: dict[str, Any]) -> bool:
    """Whether a constant is there whose value Spark's JSON garbles."""
    dtype = literal.get("dataType")
    return literal.get("value") is not None and (dtype == "binary" or isinstance(dtype, dict))


def has_spelling(dtype: DataType) -> bool:
    """Whether Spark prints constants of a type as SQL that means the same anywhere."""
    if isinstance(dtype, ArrayType):
        return has_spelling(dtype.elementType)
    if isinstance(dtype, MapType):
        return has_spelling(dtype.keyType) and has_spelling(dtype.valueType)
    if isinstance(dtype, StructType):
        return all(has_spelling(f.dataType) and _NAME.fullmatch(f.name) for f in dtype)
    return _SPELLED.fullmatch(dtype.simpleString()) is not None

"""Spark's expressions to ours. What cannot be written back as the same SQL is refused, never guessed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from pyspark.errors import PySparkException

from slackwater.algebra.aggregates import is_collated
from slackwater.algebra.expressions import Expr, call, col, field_text, lit, quote, string_text
from slackwater.capture.collations import by_bytes, with_collation
from slackwater.capture.literals import TIME_ARITHMETIC, special_literal, time_arithmetic
from slackwater.capture.spellings import OBJECT, spelled
from slackwater.capture.trees import Tree, attribute_id, type_name
from slackwater.capture.trees import Unsupported as Unsupported
from slackwater.capture.unsaid import LENIENT

_INFIX = {
    "Add": "+", "Subtract": "-", "Multiply": "*", "Divide": "/", "Remainder": "%", "EqualTo": "=",
    "EqualNullSafe": "<=>", "LessThan": "<", "LessThanOrEqual": "<=", "GreaterThan": ">", "GreaterThanOrEqual": ">=",
    "And": "and", "Or": "or", "BitwiseAnd": "&", "BitwiseOr": "|", "BitwiseXor": "^",
}  # fmt: skip
_UNARY = {"Not": "not", "IsNull": "is_null", "IsNotNull": "is_not_null", "UnaryMinus": "neg"}
_TRANSPARENT = (
    "KnownNotNull",
    "KnownNullable",
    "KnownNotContainsNull",
    "KnownFloatingPointNormalized",
    "NormalizeNaNAndZero",
    "TaggingExpression",
    "CollationKey",  # what Spark makes of both sides where strings are compared by a collation
)
_FUNCTIONS = {
    "StartsWith": "startswith", "EndsWith": "endswith", "Contains": "contains", "Coalesce": "coalesce",
    "IntegralDivide": "div", "Substring": "substring", "Year": "year", "Month": "month", "DayOfMonth": "day",
    "CreateNamedStruct": "named_struct", "CreateArray": "array", "CreateMap": "map", "Concat": "concat",
    "Hour": "hour", "Minute": "minute", "Second": "second",
    "Upper": "upper", "Lower": "lower", "Length": "length", "Abs": "abs", "Greatest": "greatest", "Least": "least",
}  # fmt: skip
# Properties that say nothing the SQL text would have to repeat: they follow from the session's pinned settings.
_SILENT = {
    "class", "num-children", "timeZoneId", "evalMode", "evalContext", "failOnError", "ansiEnabled", "nullOnOverflow",
    "legacySizeOfNull", "nullable", "stringResultType", "dataType", "useStringTypeWhenEmpty", "lenient",
}  # fmt: skip


_DEFAULTS = (("legacyNegativeIndex", False), ("followThreeValuedLogic", True), ("allowNullComparisonResult", False))
"""Properties that say nothing as long as they have these values."""


@dataclass(slots=True)
class NameBook:
    """Gives every column of a plan a name of its own, as near to the user's name as can be.

    Attributes:
        by_id: the name that a column has now; a union gives the columns of its first input new ones.
        used: all names given out.
        types: the type of a column.
        read: the type of each name that some expression read, whatever its column is called now.
    """

    by_id: dict[int, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    types: dict[int, str] = field(default_factory=dict)
    read: dict[str, str] = field(default_factory=dict)

    def name(self, ident: int, wish: str) -> str:
        """The name of the column with this id."""
        if ident not in self.by_id:
            self.by_id[ident] = self.fresh(wish)
        return self.by_id[ident]

    def fresh(self, wish: str) -> str:
        """A name that nobody has yet."""
        base = re.sub(r"[^0-9a-z_]+", "_", wish.lower()).strip("_")[:40] or "col"
        base = base if base[0] not in "_0123456789" else f"c{base}"
        name, count = base, 1
        while name in self.used:
            count += 1
            name = f"{base}_{count}"
        self.used.add(name)
        return name

    def alias(self, ident: int, of: str) -> None:
        """Let a plain renaming share the name of what it renames."""
        self.by_id.setdefault(ident, of)


@dataclass(slots=True)
class ExpressionReader:
    """Turns Spark's expression trees into ours.

    Attributes:
        names: the plan's names.
        functions: Spark's function name for an expression class, asked only for classes not known here.
        scalar: the column that stands for a scalar subquery.
        declared: the kinds of the user-defined functions that may be called.
    """

    names: NameBook
    functions: Callable[[], Mapping[str, str]]
    scalar: Callable[[Tree], Expr] | None = None
    declared: Mapping[str, str] = field(default_factory=dict)
    _variables: dict[int, Expr] = field(default_factory=dict)
    """What the parameters of the lambda functions around an expression are called."""

    def read(self, tree: Tree, replace: Callable[[Tree], Expr | None] | None = None) -> Expr:
        """Turn one expression; `replace` may answer for a subtree."""
        if replace is not None and (found := replace(tree)) is not None:
            return found
        name = tree.name
        if name == "AttributeReference":
            ident = attribute_id(tree.props)
            dtype = type_name(tree.props["dataType"])
            self.names.types.setdefault(ident, dtype)
            name = self.names.name(ident, tree.props["name"])
            self.names.read.setdefault(name, dtype)
            return col(name, dtype)
        if name == "Literal":
            return Expr("object", (), "") if OBJECT in tree.props else _literal(tree)
        if name == "ScalarSubquery" and self.scalar is not None:
            return self.scalar(tree)
        if name == "Alias" or name in _TRANSPARENT:
            return self.read(tree.children[0], replace)
        if name == "Collate":
            text = self.read(tree.children[0], replace)
            return (
                with_collation(text, type_name(tree.props["dataType"])) if "dataType" in tree.props else by_bytes(text)
            )
        if name == "LambdaFunction":
            return self._lambda(tree, replace)
        if name == "NamedLambdaVariable":
            return self._variables[attribute_id(tree.props)]
        args = tuple(self.read(child, replace) for child in tree.children)
        return self._combine(tree, args)

    def _lambda(self, tree: Tree, replace: Callable[[Tree], Expr | None] | None) -> Expr:
        """A function of its own: `(x, y) -> …`. Its parameters are named by depth, so that equal queries look equal.

        No column of a plan has a name that starts with an underscore (`NameBook`): no parameter can hide one.
        """
        body, *parameters = tree.children
        outer = self._variables
        named = {attribute_id(p.props): quote(f"_x{len(outer) + at}") for at, p in enumerate(parameters)}
        self._variables = {**outer, **{ident: Expr("variable", (), text) for ident, text in named.items()}}
        try:
            inner = self.read(body, replace)
        finally:
            self._variables = outer
        listed = ", ".join(named.values())
        return Expr("lambda", (inner,), f"{f'({listed})' if len(named) > 1 else listed} -> {inner.text}")

    def _combine(self, tree: Tree, args: tuple[Expr, ...]) -> Expr:
        name = tree.name
        found = spelled(tree, args)
        if found is not None:
            return found
        if tree.props.get("lenient"):
            _check_properties(tree)
            return _lenient(tree, args)
        if name in _INFIX:
            return call(_INFIX[name], *args, dtype=_predicate_type(name))
        if name in TIME_ARITHMETIC:
            return time_arithmetic(tree, args)
        if name in _UNARY:
            return call(_UNARY[name], *args, dtype="" if name == "UnaryMinus" else "boolean")
        if name == "Cast":
            dtype = type_name(tree.props["dataType"])
            return Expr("cast", args, f"CAST({args[0].text} AS {dtype})", dtype)
        if name == "PythonUDF":
            function, listed = str(tree.props["name"]), ", ".join(a.text for a in args)
            return Expr(f"udf {function}", args, f"{quote(function)}({listed})", type_name(tree.props["dataType"]))
        if name == "CaseWhen":
            return call("case", *args)
        if name == "If":
            return call("if", *args)
        if name == "In":
            return call("in", *args, dtype="boolean")
        if name == "InSet":
            raise Unsupported("EXPRESSION_UNSUPPORTED", "InSet", "a large IN list was folded into a set")
        if name in ("Like", "RLike"):
            return _like(tree, args)
        if name == "GetStructField":
            return Expr(name, args, field_text(args[0], _struct_field(tree, args[0])))
        if name == "GetArrayItem" and not tree.props.get("failOnError", True):
            return call("get", *args)
        if name in ("GetArrayItem", "GetMapValue"):
            return Expr(name, args, f"{args[0].text}[{args[1].text}]")
        return self._function(tree, args)

    def _function(self, tree: Tree, args: tuple[Expr, ...]) -> Expr:
        name = tree.name
        if name == "IntegralDivide":
            return Expr("div", args, f"({args[0].text} DIV {args[1].text})", "bigint")
        function = _FUNCTIONS.get(name) or self.functions().get(name)
        if function is None:
            raise Unsupported("EXPRESSION_UNSUPPORTED", name, "no SQL function stands for this expression")
        _check_properties(tree)
        if name == "Size" and not tree.props.get("legacySizeOfNull", False):
            # As `array_size` is; `size` itself would say -1 under some settings.
            return call("if", call("is_null", args[0], dtype="boolean"), lit(None), call("size", *args))
        if not function.isidentifier():
            # An operator such as << stands between its operands, one such as ~ before its only one.
            if len(args) == 2:
                return Expr(function, args, f"({args[0].text} {function} {args[1].text})")
            if len(args) != 1:
                raise Unsupported("EXPRESSION_UNSUPPORTED", name, f"the operator {function} has no safe spelling")
        return call(function, *args)


def _check_properties(tree: Tree) -> None:
    """Refuse an expression of which Spark tells something that its SQL would not say."""
    extra = {k: v for k, v in tree.props.items() if k not in _SILENT and not _is_child_index(v)}
    if any(v not in (None, [], {}) and (k, v) not in _DEFAULTS for k, v in extra.items()):
        raise Unsupported("EXPRESSION_UNSUPPORTED", tree.name, f"its properties {sorted(extra)} have no place in SQL")


def _is_child_index(value: object) -> bool:
    if isinstance(value, list):
        return all(_is_child_index(v) for v in value)
    return isinstance(value, int) and not isinstance(value, bool)


def _predicate_type(name: str) -> str:
    arithmetic = ("Add", "Subtract", "Multiply", "Divide", "Remainder", "BitwiseAnd", "BitwiseOr", "BitwiseXor")
    return "" if name in arithmetic else "boolean"


def _struct_field(tree: Tree, child: Expr) -> str:
    name = tree.props.get("name")
    if not name:
        raise Unsupported("EXPRESSION_UNSUPPORTED", "GetStructField", f"a field of {child.text} has no name")
    return str(name)


def _like(tree: Tree, args: tuple[Expr, ...]) -> Expr:
    if tree.name == "RLike":
        return Expr("rlike", args, f"({args[0].text} RLIKE {args[1].text})", "boolean")
    escape = tree.props.get("escape", "\\")  # noted where the query has one of its own
    own = "" if escape == "\\" else f" ESCAPE {string_text(escape)}"
    return Expr("like", args, f"({args[0].text} LIKE {args[1].text}{own})", "boolean")


def _lenient(tree: Tree, args: tuple[Expr, ...]) -> Expr:
    """NULL where the strict form would fail."""
    if tree.name == "Cast":
        dtype = type_name(tree.props["dataType"])
        return Expr("try_cast", args, f"TRY_CAST({args[0].text} AS {dtype})", dtype)
    return call(LENIENT[tree.name], *args)


def _literal(tree: Tree) -> Expr:
    try:
        dtype, value = type_name(tree.props["dataType"]), tree.props.get("value")
    except PySparkException as error:
        raise Unsupported("EXPRESSION_UNSUPPORTED", "Literal", "a constant that only Spark's code can hold") from error
    if value is None:
        return Expr("lit", (), f"CAST(NULL AS {dtype})", dtype)
    if "sql" in tree.props:
        return Expr("lit", (), f"CAST({tree.props['sql']} AS {dtype})", dtype)
    text = str(value)
    if dtype == "boolean":
        return Expr("lit", (), text.upper(), dtype, text == "true")
    if dtype == "int":
        return Expr("lit", (), text if int(text) >= 0 else f"({text})", dtype, int(text))
    if dtype in ("tinyint", "smallint", "bigint"):
        return Expr("lit", (), f"CAST({text} AS {dtype.upper()})", dtype, int(text))
    if dtype.startswith("decimal"):
        return Expr("lit", (), f"CAST('{Decimal(text):f}' AS {dtype.upper()})", dtype, Decimal(text))
    if dtype in ("float", "double"):
        return Expr("lit", (), f"CAST('{float(text)!r}' AS {dtype.upper()})", dtype, float(text))
    if is_collated(dtype) and "\ufffd" not in text:
        return with_collation(lit(text), dtype)
    if dtype == "string" and "\ufffd" not in text:  # which may stand for bytes that are no text
        return Expr("lit", (), string_text(text), dtype, text)
    if dtype == "date" and re.fullmatch(r"[-+]?\d{4,}-\d\d-\d\d", text):
        return Expr("lit", (), f"DATE '{text}'", dtype)
    if dtype == "timestamp" and re.fullmatch(r"[-+]?\d{4,}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?", text):
        return Expr("lit", (), f"TIMESTAMP '{text}Z'", dtype)  # printed in UTC, whatever the session's zone
    if (special := special_literal(dtype, text)) is not None:
        return special
    raise Unsupported("EXPRESSION_UNSUPPORTED", "Literal", f"a constant of type {dtype} has no safe spelling")

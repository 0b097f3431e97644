"""Expressions, as the rules see them: inputs, a type, a text, and whether they are deterministic.

An expression is a small immutable tree. Rules never look inside; the renderer prints `text`, and the reference
interpreter evaluates the operators it knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

Value = object
"""A value the interpreter can hold: None, bool, int, float, str, Decimal, date or datetime."""


def quote(name: str) -> str:
    """Quote an identifier for Spark SQL, whatever characters it has.

    >>> quote("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True, slots=True)
class Expr:
    """One expression tree node.

    Attributes:
        op: what the node does: `col`, `lit`, or an operator or function name.
        args: the operand expressions.
        text: Spark SQL text; parenthesised so that it can stand anywhere.
        dtype: Spark's type name, or an empty string where nobody asked for it.
        value: the column name of a `col`, the Python value of a `lit` (where one exists).
    """

    op: str
    args: tuple[Expr, ...]
    text: str
    dtype: str = ""
    value: Value = field(default=None, compare=False)

    @property
    def inputs(self) -> frozenset[str]:
        """The names of the columns that the expression reads."""
        return frozenset(str(node.value) for node in self.walk() if node.op == "col")

    @property
    def column(self) -> str | None:
        """The column's name where the expression is nothing but a column."""
        return str(self.value) if self.op == "col" else None

    def walk(self) -> Iterator[Expr]:
        """This node and all below it."""
        yield self
        for arg in self.args:
            yield from arg.walk()

    def conjuncts(self) -> tuple[Expr, ...]:
        """The terms of a top-level AND, left to right."""
        if self.op == "and":
            return tuple(term for arg in self.args for term in arg.conjuncts())
        return (self,)


def col(name: str, dtype: str = "") -> Expr:
    """A reference to a column."""
    return Expr("col", (), quote(name), dtype, name)


def lit(value: Value, text: str | None = None, dtype: str = "") -> Expr:
    """A constant; `text` is needed where Python's spelling is not Spark's."""
    return Expr("lit", (), text if text is not None else literal_text(value), dtype, value)


def literal_text(value: Value) -> str:
    """Spell a plain Python value in Spark SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return f"({value})" if value < 0 else str(value)
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE)"
    if isinstance(value, str):
        return string_text(value)
    raise TypeError(f"no Spark SQL text for {type(value).__name__}")


def string_text(value: str) -> str:
    r"""Spell a string literal so that no character of it can end the literal.

    >>> string_text("it's")
    "'it\\'s'"
    """
    escapes = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0", "\b": "\\b", "\x1a": "\\Z"}
    return "'" + "".join(escapes.get(c, c) for c in value) + "'"


def field_text(struct: Expr, name: str) -> str:
    """Spell a field of a struct, or of each struct in an array.

    Not with a dot: where the column is called like a relation of the query, `` `r`.`k` `` is that relation's column.

    >>> field_text(col("r"), "k")
    "`r`['k']"
    """
    return f"{struct.text}[{string_text(name)}]"


_INFIX = {
    "+": "+", "-": "-", "*": "*", "/": "/", "%": "%", "=": "=", "<=>": "<=>", "<": "<", "<=": "<=", ">": ">",
    ">=": ">=", "and": "AND", "or": "OR", "||": "||", "&": "&", "|": "|", "^": "^",
}  # fmt: skip


def call(op: str, *args: Expr, dtype: str = "") -> Expr:
    """Apply an operator or a function by its Spark name.

    >>> call("+", col("a"), lit(1)).text
    '(`a` + 1)'
    """
    if op in _INFIX and len(args) == 2:
        text = f"({args[0].text} {_INFIX[op]} {args[1].text})"
    elif op == "not":
        text = f"(NOT {args[0].text})"
    elif op == "neg":
        text = f"(- {args[0].text})"
    elif op == "is_null":
        text = f"({args[0].text} IS NULL)"
    elif op == "is_not_null":
        text = f"({args[0].text} IS NOT NULL)"
    elif op == "in":
        text = f"({args[0].text} IN ({', '.join(a.text for a in args[1:])}))"
    elif op == "case":
        text = _case_text(args)
    elif op == "cast":
        text = f"CAST({args[0].text} AS {dtype.upper()})"
    else:
        text = f"{op}({', '.join(a.text for a in args)})"
    return Expr(op, args, text, dtype)


def _case_text(args: tuple[Expr, ...]) -> str:
    pairs = [f"WHEN {args[i].text} THEN {args[i + 1].text}" for i in range(0, len(args) - 1, 2)]
    otherwise = f" ELSE {args[-1].text}" if len(args) % 2 else ""
    return f"(CASE {' '.join(pairs)}{otherwise} END)"


def conjunction(terms: tuple[Expr, ...]) -> Expr:
    """AND the terms together; an empty conjunction is TRUE."""
    if not terms:
        return lit(True, dtype="boolean")
    result = terms[0]
    for term in terms[1:]:
        result = call("and", result, term, dtype="boolean")
    return result


def substitute(expr: Expr, mapping: Mapping[str, Expr]) -> Expr:
    """Put other expressions in the place of columns, keeping the text of everything else as it was.

    Only possible where every node on the way was built by `call`; a node with a text of its own is rebuilt from a
    template of its arguments' texts.
    """
    if expr.op == "col":
        return mapping.get(str(expr.value), expr)
    if not expr.args:
        return expr
    args = tuple(substitute(arg, mapping) for arg in expr.args)
    if args == expr.args:
        return expr
    text = expr.text
    rebuilt = call(expr.op, *expr.args, dtype=expr.dtype)
    if rebuilt.text == text:
        return call(expr.op, *args, dtype=expr.dtype)
    # A foreign text: replace each argument's text, left to right, never looking at what was already replaced.
    out, rest = "", text
    for old, new in zip(expr.args, args, strict=True):
        before, found, rest = rest.partition(old.text)
        if not found:
            raise ValueError(f"cannot substitute inside {text}")
        out += before + new.text
    return Expr(expr.op, args, out + rest, expr.dtype, expr.value)

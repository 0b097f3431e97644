"""Random tables, plans and changes for the interpreter: small on purpose, full of NULLs, duplicates and odd floats."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import Expr, call, col, lit
from slackwater.algebra.first_rows import First
from slackwater.algebra.generate import Generate, Values
from slackwater.algebra.interpreter import Bag
from slackwater.algebra.joins import MatchJoin, OuterJoin

TYPES = ("int", "string", "double")
TABLES = {
    "r": ("int", "int", "string"),
    "s": ("int", "double", "string"),
    "t": ("int", "int", "double"),
}
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.sampled_from([None, -1, 0, 1, 1, 2]),
    "string": st.sampled_from([None, "", "a", "b"]),
    "double": st.sampled_from([None, -0.0, 0.0, 1.0, 2.0, math.nan]),
}


def rows(table: str) -> st.SearchStrategy[tuple[Any, ...]]:
    """One row of a table."""
    return st.tuples(*(VALUES[t] for t in TABLES[table]))


@st.composite
def histories(draw: st.DrawFn, steps: int) -> list[dict[str, Bag]]:
    """For each step, what changes in each table: rows added, and rows deleted that are there."""
    now = {t: [] for t in TABLES}
    out = []
    for _ in range(steps):
        changes = {}
        for table, have in now.items():
            doomed = draw(st.lists(st.sampled_from(range(len(have))), unique=True, max_size=2)) if have else []
            fresh = draw(st.lists(rows(table), max_size=3)) if draw(st.booleans()) else []
            if doomed or fresh:
                changes[table] = Bag([(have[i], -1) for i in doomed] + [(r, 1) for r in fresh])
                now[table] = [r for i, r in enumerate(have) if i not in doomed] + fresh
        out.append(changes)
    return out


class Names:
    """Fresh column names."""

    def __init__(self) -> None:
        self.count = 0

    def new(self) -> str:
        self.count += 1
        return f"c{self.count}"


def _pick(draw: st.DrawFn, rel: n.Rel, dtype: str | None = None) -> Expr:
    fields = [f for f in rel.schema if dtype is None or f.dtype == dtype]
    if not fields:
        return lit(None, dtype=dtype or "int") if dtype != "int" else lit(1, dtype="int")
    field = draw(st.sampled_from(fields))
    return col(field.name, field.dtype)


def _literal(draw: st.DrawFn, dtype: str) -> Expr:
    value = draw({"int": st.integers(-1, 2), "bigint": st.integers(-1, 2), "string": st.sampled_from(["", "a", "b"]),
                  "double": st.sampled_from([0.0, -0.0, 1.0]), "boolean": st.booleans()}[dtype])  # fmt: skip
    return lit(value, dtype=dtype)


def _predicate(draw: st.DrawFn, rel: n.Rel) -> Expr:
    a = _pick(draw, rel)
    kind = draw(st.sampled_from(["cmp", "cmp", "null", "not_null", "or"]))
    if kind == "null":
        return call("is_null", a, dtype="boolean")
    if kind == "not_null":
        return call("is_not_null", a, dtype="boolean")
    op = draw(st.sampled_from(["=", "<", ">=", "<=>"]))
    first = call(op, a, _literal(draw, a.dtype), dtype="boolean")
    if kind == "or":
        b = _pick(draw, rel)
        return call("or", first, call("is_null", b, dtype="boolean"), dtype="boolean")
    return first


def _scan(draw: st.DrawFn, names: Names) -> n.Rel:
    table = draw(st.sampled_from(sorted(TABLES)))
    fields = tuple(n.Field(names.new(), t) for t in TABLES[table])
    return n.Scan(table, fields, tuple(range(len(fields))))


def _computed(draw: st.DrawFn, rel: n.Rel, names: Names) -> n.Item:
    a = _pick(draw, rel)
    if a.dtype == "int" and draw(st.booleans()):
        return n.Item(names.new(), call(draw(st.sampled_from(["+", "*"])), a, lit(2, dtype="int"), dtype="int"))
    return n.Item(names.new(), a)


def _aggregate(draw: st.DrawFn, rel: n.Rel, names: Names) -> n.Rel:
    groups = tuple(_computed(draw, rel, names) for _ in range(draw(st.integers(0, 2))))
    aggs = []
    for _ in range(draw(st.integers(0 if groups else 1, 3))):
        func = draw(st.sampled_from(["count", "count_star", "sum", "avg", "min", "max", "count_distinct", "var_pop"]))
        where = _predicate(draw, rel) if draw(st.integers(0, 4)) == 0 else None
        if func == "count_star":
            aggs.append(AggCall(names.new(), "count", (), "bigint", where=where))
            continue
        dtype = "int" if func in ("sum", "avg", "var_pop") else None
        arg = _pick(draw, rel, dtype)
        if func == "count_distinct":
            aggs.append(AggCall(names.new(), "count", (arg,), "bigint", distinct=True, where=where))
        else:
            out = {"count": "bigint", "sum": "int", "avg": "double", "var_pop": "double"}.get(func, arg.dtype)
            aggs.append(AggCall(names.new(), func, (arg,), out, where=where))
    return n.Aggregate(rel, groups, tuple(aggs))


def _join(draw: st.DrawFn, left: n.Rel, right: n.Rel) -> n.Rel:
    if draw(st.integers(0, 9)) == 0:
        return n.Join(left, right, None)
    a = _pick(draw, left)
    b = _pick(draw, right, a.dtype)
    op = draw(st.sampled_from(["=", "=", "=", "<=>", "<"]))
    return n.Join(left, right, call(op, a, b, dtype="boolean"))


def _condition(draw: st.DrawFn, left: n.Rel, right: n.Rel) -> Expr:
    """Equalities, comparisons, what NOT IN becomes, constants, and mixtures of them, over either side or both."""

    def term() -> Expr:
        a = _pick(draw, left)
        b = _pick(draw, right, a.dtype)
        if draw(st.booleans()):
            a, b = b, a
        kind = draw(st.sampled_from(["=", "=", "=", "<=>", "<", "null_aware", "one_side"]))
        if kind == "null_aware":
            equal = call("=", a, b, dtype="boolean")
            return call("or", equal, call("is_null", equal, dtype="boolean"), dtype="boolean")
        if kind == "one_side":
            return _predicate(draw, draw(st.sampled_from([left, right])))
        return call(kind, a, b, dtype="boolean")

    shape = draw(st.sampled_from(["one", "one", "two", "two", "true"]))
    if shape == "true":
        return lit(True, dtype="boolean")
    return term() if shape == "one" else call("and", term(), term(), dtype="boolean")


def _keyed_join(draw: st.DrawFn, left: n.Rel, right: n.Rel, names: Names) -> n.Rel:
    condition = _condition(draw, left, right)
    kind = draw(st.sampled_from(["semi", "anti", "exists", "left", "right", "full", "full"]))
    if kind in ("left", "right", "full"):
        return OuterJoin(left, right, condition, kind)
    return MatchJoin(left, right, condition, kind, names.new() if kind == "exists" else "")


def _generate(draw: st.DrawFn, child: n.Rel, names: Names) -> n.Rel:
    """Explode an array of two columns, of nothing, or as many copies as a column says: NULL or negative too."""
    a = _pick(draw, child, "int")
    kind = draw(st.sampled_from(["array", "empty", "copies"]))
    if kind == "copies":
        values = call("array_repeat", lit(7, dtype="int"), a)
    else:
        values = call("array", *([a, lit(5, dtype="int")] if kind == "array" else []))
    kept = tuple(name for name in child.names if draw(st.booleans()))
    if draw(st.booleans()):
        return Generate(child, call("explode", values), (n.Field(names.new(), "int"),), kept, draw(st.booleans()))
    fields = (n.Field(names.new(), "int"), n.Field(names.new(), "int"))
    return Generate(child, call("posexplode", values), fields, kept, draw(st.booleans()))


def _values(draw: st.DrawFn, names: Names) -> n.Rel:
    rows = tuple((lit(draw(VALUES["int"]), dtype="int"),) for _ in range(draw(st.integers(0, 2))))
    return Values((n.Field(names.new(), "int"),), rows)


def _build(draw: st.DrawFn, depth: int, names: Names) -> n.Rel:
    if depth == 0:
        return _scan(draw, names)
    kind = draw(
        st.sampled_from(["scan", "filter", "project", "join", "keyed_join", "keyed_join", "keyed_join", "aggregate",
                         "aggregate", "union", "expand", "generate", "values"])
    )  # fmt: skip
    if kind == "scan":
        return _scan(draw, names)
    if kind == "values":
        return _values(draw, names)
    child = _build(draw, depth - 1, names)
    if kind == "filter":
        return n.Filter(child, _predicate(draw, child))
    if kind == "project":
        return n.Project(child, tuple(_computed(draw, child, names) for _ in range(draw(st.integers(1, 3)))))
    if kind == "aggregate":
        return _aggregate(draw, child, names)
    if kind == "expand":
        width = draw(st.integers(1, 2))
        cols = [_pick(draw, child) for _ in range(width)]
        rows = tuple(tuple(c if draw(st.booleans()) else lit(None, dtype=c.dtype) for c in cols) for _ in range(2))
        return n.Expand(child, rows, tuple(n.Field(names.new(), c.dtype) for c in cols))
    if kind == "generate":
        return _generate(draw, child, names)
    other = _build(draw, depth - 1, names)
    if kind == "keyed_join":
        return _keyed_join(draw, child, other, names)
    if kind == "join":
        return _join(draw, child, other)
    width = min(len(child.schema), len(other.schema))
    sides = [n.Project(s, n.pass_through(s.schema[:width])) for s in (child, other)]
    if [f.dtype for f in sides[0].schema] != [f.dtype for f in sides[1].schema]:
        return child
    return n.Union(tuple(sides), tuple(n.Field(names.new(), f.dtype) for f in sides[0].schema))


@st.composite
def plans(draw: st.DrawFn, depth: int = 3, top: bool = True) -> n.Rel:
    """A random query plan; sometimes ordered and limited at the top."""
    rel = _build(draw, draw(st.integers(1, depth)), Names())
    if top and draw(st.integers(0, 5)) == 0:
        keys = (n.SortKey(_pick(draw, rel), draw(st.booleans()), draw(st.booleans())),)
        rel = ordering(draw, rel, keys)
    return rel


def ordering(draw: st.DrawFn, rel: n.Rel, keys: tuple[n.SortKey, ...]) -> n.Rel:
    """ORDER BY … LIMIT … OFFSET, often over the first rows alone."""
    limit, offset = draw(st.integers(0, 3)), draw(st.integers(0, 1))
    if limit and rel.schema and draw(st.booleans()):
        rel = First(rel, keys, limit + offset, limit + offset + draw(st.integers(0, 3)))
    return n.TopK(rel, keys, limit, offset)

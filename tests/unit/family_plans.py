"""One small plan for each kind of operator, by family: what the golden files of plans are made from."""

from __future__ import annotations

from typing import Any

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import Expr, call, col, lit
from slackwater.algebra.first_rows import First
from slackwater.algebra.generate import Generate, Values
from slackwater.algebra.joins import MatchJoin, OuterJoin
from slackwater.algebra.lookups import LEFT, KeyPair, LookupJoin
from slackwater.algebra.ordering import completed
from slackwater.algebra.scalars import ScalarFilter
from slackwater.algebra.windows import Frame, Window, WindowCall


def _scan(table: str, *names: str) -> n.Scan:
    return n.Scan(table, tuple(n.Field(name, "int") for name in names), tuple(range(len(names))))


def _is(op: str, left: Expr, right: Expr) -> Expr:
    return call(op, left, right, dtype="boolean")


def _agg(name: str, func: str, arg: str, dtype: str = "bigint", **more: Any) -> AggCall:
    return AggCall(name, func, (col(arg, "int"),), dtype, **more)


def _copies(rel: n.Rel, times: Expr) -> n.Rel:
    """Each row as often as a column says: what INTERSECT ALL and EXCEPT ALL end with."""
    some = n.Filter(rel, _is(">", times, lit(0, "0L", "bigint")))
    return Generate(some, call("explode", call("array_repeat", ONE, times)), (n.Field("e", "int"),), ("x", "y"))


def _own(name: str, *args: Expr, dtype: str = "int") -> Expr:
    """A call of a function of one's own."""
    return Expr(f"udf {name}", args, f"`{name}`({', '.join(a.text for a in args)})", dtype)


def _by(rel: n.Rel, key: str, *aggs: AggCall) -> n.Aggregate:
    return n.Aggregate(rel, (n.Item(f"{key}_", col(key, "int")),), aggs)


A, B, C, D = (col(name, "int") for name in "abcd")
R, S = _scan("r", "a", "b"), _scan("s", "c", "d")
EQUAL, ONE = _is("=", A, C), lit(1, dtype="int")
TOTAL = _by(R, "a", _agg("total", "sum", "b"), AggCall("rows", "count", (), "bigint"))
LARGEST = _by(R, "a", _agg("largest", "max", "b", "int"))
MEAN = n.Aggregate(S, (), (_agg("mean", "avg", "d", "double"),))
ORDER = (n.SortKey(B, True, False),)
NUMBER = WindowCall("number", "row_number", (), "int", completed(ORDER, R.schema), completed=True)
NEAR = WindowCall("near", "sum", (B,), "bigint", ORDER, Frame("RANGE", "1 PRECEDING", "CURRENT ROW"))
SAME = _is("and", _is("<=>", A, C), _is("<=>", B, D))
SIGNED = n.Union(
    (n.Project(R, (*n.pass_through(R.schema), n.Item("w", lit(1, dtype="int")))),
     n.Project(S, (*n.pass_through(S.schema), n.Item("v", lit(-1, dtype="int"))))),
    (n.Field("x", "int"), n.Field("y", "int"), n.Field("w", "int")),
)  # fmt: skip
SIDES = n.Union(
    (n.Project(R, (*n.pass_through(R.schema), n.Item("l", lit(True, dtype="boolean")),
                   n.Item("r", lit(None, "CAST(NULL AS BOOLEAN)", "boolean")))),
     n.Project(S, (*n.pass_through(S.schema), n.Item("m", lit(None, "CAST(NULL AS BOOLEAN)", "boolean")),
                   n.Item("o", lit(True, dtype="boolean"))))),
    (n.Field("x", "int"), n.Field("y", "int"), n.Field("l", "boolean"), n.Field("r", "boolean")),
)  # fmt: skip
BOTH = n.Aggregate(SIDES, (n.Item("x", col("x", "int")), n.Item("y", col("y", "int"))), tuple(
    AggCall(name, "count", (col(side, "boolean"),), "bigint") for name, side in (("of l", "l"), ("of r", "r"))
))  # fmt: skip
COMMON = n.Project(
    n.Filter(BOTH, _is("and", _is(">=", col("of l", "bigint"), lit(1)), _is(">=", col("of r", "bigint"), lit(1)))),
    (*n.pass_through(BOTH.schema[:2]),
     n.Item("times", call("least", col("of l", "bigint"), col("of r", "bigint"), dtype="bigint"))),
)  # fmt: skip
LOOKUP = LookupJoin(R, S, EQUAL, pairs=(KeyPair(A, "c"),))
BEHIND = LookupJoin(S, _scan("t", "e"), _is("=", D, col("e", "int")), pairs=(KeyPair(D, "e"),))
FOUND = _by(S, "c", AggCall("many", "count", (), "bigint"), _agg("found", "min", "d", "int"))
SINGLE = OuterJoin(R, FOUND, _is("=", A, col("c_", "int")), "left")
MANY = _is(">", col("many", "bigint"), lit(1))
COUNTED = n.Aggregate(SIGNED, (n.Item("x", col("x", "int")), n.Item("y", col("y", "int"))), (_agg("sum", "sum", "w"),))

FAMILIES: dict[str, dict[str, n.Rel]] = {
    "linear": {
        "filter": n.Filter(R, _is(">", B, ONE)),
        "project": n.Project(R, (n.Item("x", call("+", A, ONE, dtype="int")),)),
        "union all": n.Union((R, S), (n.Field("x", "int"), n.Field("y", "int"))),
        "explode": Generate(R, call("explode", call("array", A, B)), (n.Field("e", "int"),), ("a",)),
        "explode of an empty array too": Generate(
            R, call("explode", call("array", A, B)), (n.Field("e", "int"),), ("a",), outer=True),
        "values beside a table": n.Union((n.Project(R, n.pass_through(R.schema[:1])),
                                          Values((n.Field("v", "int"),), ((ONE,),))), (n.Field("x", "int"),)),
    },
    "inner_joins": {
        "join": n.Join(R, S, EQUAL),
        "cross join": n.Join(R, S, None),
        "join of three": n.Join(n.Join(R, S, EQUAL), _scan("t", "e"), _is("=", D, col("e", "int"))),
        "join over an aggregate": n.Join(TOTAL, S, _is("=", col("a_", "int"), C)),
    },
    "match_joins": {
        "semi join": MatchJoin(R, S, EQUAL, "semi"),
        "anti join": MatchJoin(R, S, EQUAL, "anti"),
        "existence join": MatchJoin(R, S, EQUAL, "exists", "has"),
        "NOT IN": MatchJoin(R, S, _is("or", EQUAL, call("is_null", EQUAL, dtype="boolean")), "anti"),
        "not an equality": MatchJoin(R, S, _is("<", B, D), "semi"),
    },
    "outer_joins": {
        "left": OuterJoin(R, S, EQUAL, "left"),
        "right": OuterJoin(R, S, EQUAL, "right"),
        "full, mixed condition": OuterJoin(R, S, _is("and", EQUAL, _is("<", B, D)), "full"),
    },
    "aggregates": {
        "additive": TOTAL,
        "mergeable": LARGEST,
        "redone": _by(R, "a", _agg("kinds", "count", "b", distinct=True)),
        "floating": _by(R, "a", AggCall("f", "sum", (call("cast", B, dtype="double"),), "double")),
        "without keys": n.Aggregate(R, (), (_agg("total", "sum", "b"),)),
        "over an aggregate": n.Aggregate(LARGEST, (), (_agg("sum of largest", "sum", "largest"),)),
        "rollup": n.Aggregate(
            n.Expand(R, ((A, B, lit(0, dtype="int")), (lit(None, dtype="int"), B, ONE)),
                     (n.Field("x", "int"), n.Field("y", "int"), n.Field("gid", "int"))),
            (n.Item("k", col("x", "int")), n.Item("g", col("gid", "int"))), (_agg("total", "sum", "y"),)),
    },
    "set_operations": {
        "distinct": n.Aggregate(R, (n.Item("x", A),), ()),
        "intersect": n.Aggregate(MatchJoin(R, S, SAME, "semi"), (n.Item("x", A), n.Item("y", B)), ()),
        "except": n.Aggregate(MatchJoin(R, S, SAME, "anti"), (n.Item("x", A), n.Item("y", B)), ()),
        "except all": _copies(COUNTED, col("sum", "bigint")),
        "intersect all": _copies(COMMON, col("times", "bigint")),
    },
    "lookups": {
        "by key": LOOKUP,
        "by key, from the other side": LookupJoin(S, R, EQUAL, keyed=LEFT, pairs=(KeyPair(A, "c"),)),
        "of rows that are filtered": LookupJoin(R, n.Filter(S, _is(">", D, ONE)), EQUAL, pairs=(KeyPair(A, "c"),)),
        "one behind another": LookupJoin(R, BEHIND, EQUAL, pairs=(KeyPair(A, "c"),)),
        "below an aggregate": _by(LOOKUP, "d", _agg("total", "sum", "b")),
    },
    "user_functions": {
        "in a column": n.Project(R, (n.Item("x", _own("step", A)), n.Item("b", B))),
        "in a filter": n.Filter(R, _own("likes", A, B, dtype="boolean")),
        "in a join's condition": n.Join(R, S, _is("and", EQUAL, _own("likes", B, D, dtype="boolean"))),
        "an aggregate that merges": _by(R, "a", _agg("own", "total", "b", user="merge")),
        "an aggregate that does not": _by(R, "a", _agg("own", "spread", "b", user="kept")),
        "an aggregate of everything": n.Aggregate(R, (), (_agg("own", "spread", "b", user="kept"),)),
        "an aggregate whose results cannot be compared": _by(
            R, "a", _agg("own", "tally", "b", "map<int,int>", user="kept")),
    },
    "windows": {
        "with PARTITION BY": Window(R, (A,), (NUMBER, NEAR)),
        "without PARTITION BY": Window(R, (), (NUMBER,)),
        "over a join": Window(n.Join(R, S, EQUAL), (D,), (NEAR,)),
        "below a join": n.Join(Window(R, (), (NUMBER,)), S, EQUAL),
    },
    "orderings": {
        "top of a table": n.TopK(First(R, ORDER, 3, 106), ORDER, 3),
        "top of a table, too many to keep": n.TopK(R, ORDER, 20_000),
        "top of a join": n.TopK(First(n.Join(R, S, EQUAL), ORDER, 4, 108), ORDER, 3, 1),
        "top of an aggregate": n.TopK(TOTAL, (n.SortKey(col("total", "bigint"), True, False),), 3, 1),
        "top below a join": n.Join(n.TopK(R, ORDER, 3), S, EQUAL),
    },
    "scalar_subqueries": {
        "filter": ScalarFilter(R, MEAN, _is(">", B, col("mean", "double"))),
        "column": n.Join(R, MEAN, None),
        "correlated, of one row at most": n.Project(SINGLE, (*n.pass_through(R.schema), n.Item("v", call(
            "if", MANY, call("raise_error", lit("more than one row")), col("found", "int"), dtype="int")))),
    },
}  # fmt: skip

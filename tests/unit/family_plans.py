"""One small plan for each kind of operator, by family: what the golden files of plans are made from."""

from __future__ import annotations

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import Expr, call, col, lit
from slackwater.algebra.first_rows import First
from slackwater.algebra.generate import Generate, Values
from slackwater.algebra.joins import MatchJoin, OuterJoin
from slackwater.algebra.ordering import completed
from slackwater.algebra.scalars import ScalarFilter
from slackwater.algebra.windows import Frame, Window, WindowCall


def _scan(table: str, *names: str) -> n.Scan:
    return n.Scan(table, tuple(n.Field(name, "int") for name in names), tuple(range(len(names))))


def _is(op: str, left: Expr, right: Expr) -> Expr:
    return call(op, left, right, dtype="boolean")


def _agg(name: str, func: str, arg: str, dtype: str = "bigint", **more: bool) -> AggCall:
    return AggCall(name, func, (col(arg, "int"),), dtype, **more)


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
COUNTED = n.Aggregate(SIGNED, (n.Item("x", col("x", "int")), n.Item("y", col("y", "int"))), (_agg("sum", "sum", "w"),))

FAMILIES: dict[str, dict[str, n.Rel]] = {
    "linear": {
        "filter": n.Filter(R, _is(">", B, ONE)),
        "project": n.Project(R, (n.Item("x", call("+", A, ONE, dtype="int")),)),
        "union all": n.Union((R, S), (n.Field("x", "int"), n.Field("y", "int"))),
        "explode": Generate(R, call("explode", call("array", A, B)), (n.Field("e", "int"),), ("a",)),
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
        "except all": Generate(
            n.Filter(COUNTED, _is(">", col("sum", "bigint"), lit(0, "0L", "bigint"))),
            call("explode", call("array_repeat", ONE, col("sum", "bigint"))), (n.Field("e", "int"),), ("x", "y")),
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
    },
}  # fmt: skip

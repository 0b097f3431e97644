"""Every invariant of plans: the page names those that the code checks, and each check refuses a node by its number."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import slackwater.algebra
from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import call, col, lit
from slackwater.algebra.first_rows import First
from slackwater.algebra.generate import Generate, Values
from slackwater.algebra.joins import MatchJoin, OuterJoin
from slackwater.algebra.lookups import LEFT, RIGHT, KeyPair, LookupJoin, Probe, Waiting
from slackwater.algebra.multi_join import MultiJoin
from slackwater.algebra.scalars import ScalarFilter
from slackwater.algebra.windows import Window, WindowCall

ALGEBRA = Path(slackwater.algebra.__file__).parent
ONE = lit(1, dtype="int")
A, C, NOPE = (col(name, "int") for name in ("a", "c", "nope"))
R = n.Scan("r", (n.Field("a", "int"), n.Field("b", "int")), (0, 1))
S = n.Scan("s", (n.Field("c", "int"), n.Field("d", "int")), (0, 1))
EQUAL = call("=", A, C, dtype="boolean")
UNKNOWN = call("=", A, NOPE, dtype="boolean")
X, XY = (n.Field("x", "int"),), (n.Field("x", "int"), n.Field("y", "int"))
COUNT = n.Aggregate(S, (), (AggCall("n", "count", (), "bigint"),))
BY_A = (n.SortKey(A, False, True),)
KEY = (KeyPair(A, "c"),)
GROUPED = n.Aggregate(S, (n.Item("c", C),), (AggCall("n", "count", (), "bigint"),))
LOOKUP = LookupJoin(R, S, EQUAL, "", RIGHT, KEY)
INDEX = n.Input("index", (n.Field("sw@i0", "int"), n.Field("sw@i1", "int")))
NARROW = n.Input("index", (n.Field("sw@i0", "int"),))


def minus(rel: n.Rel) -> n.Rel:
    return n.Negate(rel)


def window(name: str, func: str, *order: n.SortKey) -> WindowCall:
    return WindowCall(name, func, (), "int", order)


Build = Callable[[], object]
ILLEGAL: list[tuple[str, Build]] = [
    ("I1: Project has duplicate", lambda: n.Project(R, (n.Item("x", A), n.Item("x", A)))),
    ("I1: Join has duplicate", lambda: n.Join(R, R, None)),
    ("I1: Window has duplicate", lambda: Window(R, (), (window("a", "count"),))),
    ("I1: Generate has duplicate", lambda: Generate(R, call("explode", A), (n.Field("b", "int"),), ("b",))),
    ("I1: both sides of a join", lambda: MatchJoin(R, R, lit(True), "semi")),
    ("I1: the inputs of a join share", lambda: MultiJoin((R, R), (), ("a",))),
    ("I1: a scalar subquery repeats", lambda: ScalarFilter(R, n.Aggregate(S, (), (AggCall("a", "max", (C,), "int"),)),
                                                           EQUAL)),
    ("I2: the predicate reads", lambda: n.Filter(R, UNKNOWN)),
    ("I2: a projection reads", lambda: n.Project(R, (n.Item("x", NOPE),))),
    ("I2: the join condition reads", lambda: n.Join(R, S, UNKNOWN)),
    ("I2: the join condition reads", lambda: MatchJoin(R, S, UNKNOWN, "semi")),
    ("I2: an expand reads", lambda: n.Expand(R, ((NOPE,),), X)),
    ("I2: a grouping reads", lambda: n.Aggregate(R, (n.Item("g", NOPE),), ())),
    ("I2: m reads", lambda: n.Aggregate(R, (), (AggCall("m", "max", (NOPE,), "int"),))),
    ("I2: a sort key reads", lambda: n.TopK(R, (n.SortKey(NOPE, False, True),), 1)),
    ("I2: PARTITION BY reads", lambda: Window(R, (NOPE,), (window("w", "count"),))),
    ("I2: the predicate reads", lambda: ScalarFilter(R, COUNT, UNKNOWN)),
    ("I2: a generator reads", lambda: Generate(R, call("explode", NOPE), X, ())),
    ("I2: a generator hands on", lambda: Generate(R, call("explode", A), X, ("nope",))),
    ("I2: a constant row reads", lambda: Values(X, ((A,),))),
    ("I2: .* reads what no input has", lambda: MultiJoin((R, S), (UNKNOWN,), ("a",))),
    ("I2: a join gives out columns", lambda: MultiJoin((R, S), (EQUAL,), ())),
    ("I2: a join gives out columns", lambda: MultiJoin((R, S), (EQUAL,), ("nope",))),
    ("I3: a scan needs one position", lambda: n.Scan("r", XY, (0,))),
    ("I3: no such time: now", lambda: n.Scan("r", X, (0,), "now")),
    ("I4: a union needs an input", lambda: n.Union((), X)),
    ("I4: inputs of a union differ", lambda: n.Union((R, S), X)),
    ("I4: projections of an expand", lambda: n.Expand(R, ((A, A),), X)),
    ("I4: constant rows differ", lambda: Values(X, ((),))),
    ("I5: no such side: both", lambda: n.Join(R, S, EQUAL, "both")),
    ("I6: an aggregate needs", lambda: n.Aggregate(R, (), ())),
    ("I7: LIMIT and OFFSET", lambda: n.TopK(R, BY_A, -1)),
    ("I7: LIMIT and OFFSET", lambda: n.TopK(R, BY_A, 1, -1)),
    ("I7: too few rows", lambda: First(R, BY_A, 3, 2)),
    ("I7: too few rows", lambda: First(R, BY_A, 0, 2)),
    ("I8: an aggregate reads", lambda: n.Aggregate(minus(R), (), (AggCall("n", "count", (), "bigint"),))),
    ("I8: an ordering reads", lambda: n.TopK(minus(R), BY_A, 1)),
    ("I8: an ordering reads", lambda: First(minus(R), BY_A, 1, 1)),
    ("I8: a window reads", lambda: Window(minus(R), (), (window("w", "count"),))),
    ("I8: a scalar is one plain row", lambda: ScalarFilter(R, minus(COUNT), EQUAL_TO_COUNT)),
    ("I9: no such kind of MatchJoin", lambda: MatchJoin(R, S, EQUAL, "left")),
    ("I9: no such kind of OuterJoin", lambda: OuterJoin(R, S, EQUAL, "semi")),
    ("I9: an existence join", lambda: MatchJoin(R, S, EQUAL, "exists")),
    ("I9: an existence join", lambda: MatchJoin(R, S, EQUAL, "anti", "flag")),
    ("I9: matches are looked for", lambda: MatchJoin(R, minus(S), EQUAL, "anti")),
    ("I9: matches are looked for", lambda: OuterJoin(R, minus(S), EQUAL, "left")),
    ("I9: matches are looked for", lambda: OuterJoin(minus(R), S, EQUAL, "full")),
    ("I10: a window needs a function", lambda: Window(R, (), ())),
    ("I10: rank needs an order", lambda: Window(R, (), (window("w", "rank"),))),
    ("I10: row_number needs an order", lambda: Window(R, (), (window("w", "row_number"),))),
    ("I11: a scalar subquery must", lambda: ScalarFilter(R, S, EQUAL)),
    ("I11: a scalar subquery must", lambda: ScalarFilter(R, GROUPED, EQUAL)),
    ("I12: a join needs two inputs", lambda: MultiJoin((R,), (), ("a",))),
    ("I12: .* does not join anything", lambda: MultiJoin((R, S), (call("=", A, A, dtype="boolean"),), ("a",))),
    ("I12: no part of a join", lambda: MultiJoin((R, S), (EQUAL,), ("a",), ((0, 1),))),
    ("I12: no part of a join", lambda: MultiJoin((R, S), (EQUAL,), ("a",), ((),))),
    ("I12: columns are missing", lambda: MultiJoin((R, S), (EQUAL,), ("a", "c")).joined(((0,),), lambda _: R)),
    ("I13: no such side: both", lambda: LookupJoin(R, S, EQUAL, "", "both", KEY)),
    ("I13: a lookup needs a key", lambda: LookupJoin(R, S, EQUAL, "", RIGHT, ())),
    ("I13: .* is not of the side that asks", lambda: LookupJoin(R, S, EQUAL, "", LEFT, KEY)),
    ("I13: no path to a key", lambda: LookupJoin(R, S, EQUAL, "", RIGHT, (KeyPair(A, "nope"),))),
    ("I13: no path to a key", lambda: LookupJoin(R, GROUPED, EQUAL, "", RIGHT, KEY)),
    ("I13: no path to a key", lambda: Waiting(R, GROUPED, KEY).path),
    ("I14: an index has no deletes", lambda: Probe(R, minus(INDEX), None, LOOKUP)),
    ("I14: deletes since an index", lambda: Probe(R, INDEX, minus(S), LOOKUP)),
    ("I14: an index has all columns", lambda: Probe(R, NARROW, None, LOOKUP)),
]  # fmt: skip
EQUAL_TO_COUNT = call("=", A, col("n", "bigint"), dtype="boolean")


@pytest.mark.parametrize(("told", "build"), ILLEGAL, ids=[told for told, _ in ILLEGAL])
def test_an_illegal_node_cannot_be_built(told: str, build: Build) -> None:
    with pytest.raises(n.IllegalNode, match=f"^{told}"):
        build()


def checks() -> Iterator[tuple[str, str]]:
    """Number and message of every `require` in the algebra, the message as a pattern."""
    for file in ALGEBRA.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "require":
                _, number, message = node.args
                assert isinstance(number, ast.Constant), ast.unparse(node)
                parts = message.values if isinstance(message, ast.JoinedStr) else [message]
                yield number.value, "".join(re.escape(p.value) if isinstance(p, ast.Constant) else ".*" for p in parts)


def test_the_page_names_what_is_checked() -> None:
    rows = re.findall(r"^\| (I\d+) \| .+ \|$", (ALGEBRA / "invariants.md").read_text(), re.MULTILINE)
    assert rows == [f"I{at}" for at in range(1, len(rows) + 1)]
    assert set(rows) == {number for number, _ in checks()}


def test_every_check_refuses_something_here() -> None:
    messages = set()
    for _, build in ILLEGAL:
        try:
            build()
        except n.IllegalNode as error:
            messages.add(str(error))
    found = list(checks())
    assert len(found) > 40
    unseen = [check for check in found if not any(re.fullmatch(f"{check[0]}: {check[1]}", m) for m in messages)]
    assert unseen == []

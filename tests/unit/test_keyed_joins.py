"""Match joins, outer joins, generators and constant rows: what they print and refuse, and what is planned for them."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from slackwater.algebra import nodes as n
from slackwater.algebra.expressions import Expr, call, col, lit
from slackwater.algebra.generate import Generate, Values
from slackwater.algebra.interpreter import Bag, Catalogue, evaluate
from slackwater.algebra.joins import EquiPair, MatchJoin, OuterJoin
from slackwater.algebra.printer import tree_text
from slackwater.algebra.serialize import from_json, to_json
from slackwater.delta.environment import Change, Environment
from slackwater.delta.rules import delta
from slackwater.execution.program import INCREMENTAL, compile_program
from slackwater.execution.render import render
from slackwater.planning.cardinality import Cardinalities, Expected
from slackwater.planning.costing import AtHand, Pricing
from slackwater.planning.join_order import order_joins
from slackwater.planning.rates import Rates
from slackwater.planning.strategies import plan_states


def scan(table: str, *columns: str) -> n.Scan:
    return n.Scan(table, tuple(n.Field(c, "int") for c in columns), tuple(range(len(columns))))


def term(op: str, a: str, b: str) -> Expr:
    return call(op, col(a, "int"), col(b, "int"), dtype="boolean")


L, R = scan("l", "a", "b"), scan("r", "c", "d")
MIXED = call("and", term("=", "c", "a"), term("<", "b", "d"), dtype="boolean")


def test_they_print_and_survive_json() -> None:
    copies = call("array_repeat", lit(1, dtype="int"), col("a", "int"))
    rows = Values((n.Field("v", "int"),), ((lit(1, dtype="int"),), (lit(None, dtype="int"),)))
    plan = OuterJoin(
        MatchJoin(L, R, MIXED, "exists", "has"),
        n.Join(Generate(scan("l", "e"), call("explode", call("array", col("e", "int"))), (n.Field("x", "int"),), ("e",),
                        outer=True), rows, None),
        term("=", "a", "e"), "full",
    )  # fmt: skip
    assert tree_text(plan).splitlines() == [
        "FullOuterJoin (`a` = `e`)",
        "  LeftExistsJoin as has ((`c` = `a`) AND (`b` < `d`))",
        "    Scan l [a:int@0, b:int@1]",
        "    Scan r [c:int@0, d:int@1]",
        "  CrossJoin",
        "    Generate outer [e, x] of explode(array(`e`))",
        "      Scan l [e:int@0]",
        "    Values [v:int] of [1; NULL]",
    ]
    assert from_json(json.loads(json.dumps(to_json(plan)))) == plan
    assert Generate(L, call("explode", copies), (n.Field("x", "int"),), ("b",)).names == ("b", "x")


def test_the_side_that_is_not_asked_may_have_weights() -> None:
    assert MatchJoin(n.Negate(L), R, MIXED, "anti").weighted
    assert OuterJoin(n.Negate(L), R, MIXED, "left").weighted
    assert OuterJoin(L, n.Negate(R), MIXED, "right").weighted
    assert not OuterJoin(L, R, MIXED, "full").weighted


def test_equalities_are_found_whichever_way_round() -> None:
    a, c = col("a", "int"), col("c", "int")
    assert MatchJoin(L, R, MIXED, "semi").equi_pairs == (EquiPair(a, c, nulls_match=False),)
    assert MatchJoin(L, R, term("<=>", "a", "c"), "semi").equi_pairs == (EquiPair(a, c, nulls_match=True),)
    for condition in (term("=", "a", "b"), call("=", a, lit(1)), call("or", MIXED, MIXED), term("<", "a", "c")):
        assert MatchJoin(L, R, condition, "semi").equi_pairs == ()


def test_joins_are_not_reordered_across_an_outer_join() -> None:
    outer = OuterJoin(L, R, term("=", "a", "c"), "left")
    plan = n.Join(n.Join(outer, scan("s", "e"), term("=", "d", "e")), scan("t", "f"), term("=", "b", "f"))
    ordered = order_joins(plan, lambda _: 10.0, lambda _: 10.0, lambda _: ())
    assert outer in list(ordered.walk())
    assert ordered.names == plan.names
    rows = {"l": [(1, 1), (2, 2), (3, 3)], "r": [(1, 7), (1, 8)], "s": [(7,), (8,), (9,)], "t": [(1,), (2,)]}
    cat = Catalogue({(t, ""): Bag.of(found) for t, found in rows.items()})
    assert evaluate(ordered, cat) == evaluate(plan, cat) == Bag.of([(1, 1, 1, 7, 7, 1), (1, 1, 1, 8, 8, 1)])


def test_inputs_are_kept_as_those_of_inner_joins() -> None:
    filtered = n.Filter(R, call(">", col("d", "int"), lit(5, dtype="int"), dtype="boolean"))

    def kept(join: n.Rel, changing: set[str]) -> set[str]:
        cards = Cardinalities({"l": 1e6, "r": 1e6}, {t: Expected(10) for t in changing})
        root = Pricing(cards, Rates(write=1e-9, step=1e-6, append=1e-6), AtHand()).root(join, by_delta=True)
        return {c.label for c in plan_states(root, "auto", 1e12).choices if c.keep}

    label = "Filter (`d` > 5)"
    equal = term("=", "a", "c")
    assert kept(MatchJoin(L, filtered, equal, "anti"), {"l"}) == {label}
    assert kept(MatchJoin(L, filtered, equal, "anti"), {"r"}) == {label}, "matches are looked for among its own rows"
    assert kept(OuterJoin(L, filtered, equal, "right"), {"r"}) == set()
    assert kept(OuterJoin(L, filtered, equal, "right"), {"l"}) == {label}
    assert kept(OuterJoin(L, filtered, equal, "full"), set()) == set()


def test_a_delta_reads_each_side_once() -> None:
    """Both sides are cut down by the changed keys first; whatever follows reads the small steps."""
    env = Environment({"l": Change(1, 1), "r": Change(1, 1)})
    root = delta(OuterJoin(L, R, MIXED, "full"), env)
    assert root is not None
    read = [x for rel in [root, *(s.rel for s in env.steps)] for x in rel.walk() if isinstance(x, n.Scan)]
    assert sorted((x.table, x.at) for x in read) == [("l", "delta"), ("l", "old"), ("r", "delta"), ("r", "new")]


@pytest.mark.parametrize(
    ("name", "plan"),
    [
        ("full_outer_join", OuterJoin(L, R, MIXED, "full")),
        ("semi_join", MatchJoin(L, R, term("=", "a", "c"), "semi")),
        ("not_in", MatchJoin(L, R, call("or", term("=", "a", "c"), call("is_null", term("=", "a", "c"))), "anti")),
        ("existence_join", MatchJoin(L, R, term("<=>", "a", "c"), "exists", "has")),
    ],
)
def test_programs(golden: Callable[[str, str], None], name: str, plan: n.Rel) -> None:
    changes = {"l": Change(3, 1, 1_000_000), "r": Change(2, 0, 1_000_000)}
    program = compile_program(plan, INCREMENTAL, changes, {}, frozenset(), {})
    golden(f"programs/{name}.sql", program.as_sql())


def test_constant_rows_as_sql() -> None:
    assert render(Values((), ((),))) == "SELECT EXPLODE(ARRAY_REPEAT(1, 1)) AS `_`"
    fields = (n.Field("v", "int"), n.Field("w", "string"))
    assert render(Values(fields, ())).endswith("WHERE FALSE")
    cells = ((lit(1), lit("it's")), (lit(None), lit("x")))
    assert render(Values(fields, cells)).endswith("FROM VALUES (1, 'it\\'s'), (NULL, 'x') AS v(`v`, `w`)")

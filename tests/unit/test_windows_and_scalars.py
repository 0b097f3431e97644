"""Windows and scalar filters as nodes: how they print, and which cannot be built."""

from __future__ import annotations

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall, Combine
from slackwater.algebra.expressions import call, col, lit
from slackwater.algebra.ordering import breaks_ties, completed, orderable
from slackwater.algebra.printer import describe
from slackwater.algebra.scalars import ScalarFilter
from slackwater.algebra.windows import Frame, Window, WindowCall
from slackwater.delta.environment import Change, Environment
from slackwater.delta.rules import delta, full
from slackwater.execution.render import render
from slackwater.planning.cardinality import Cardinalities, Expected
from slackwater.planning.costing import AtHand, Pricing
from slackwater.planning.rates import Rates
from slackwater.planning.strategies import plan_states

SCAN = n.Scan("t", (n.Field("p", "int"), n.Field("d", "double")), (0, 1))
ORDER = (n.SortKey(col("d", "double"), True, False),)
COUNT = n.Aggregate(n.Scan("u", (n.Field("k", "int"),), (0,)), (), (AggCall("c", "count", (), "bigint"),))


def number(order: tuple[n.SortKey, ...] = ORDER) -> WindowCall:
    return WindowCall("n", "row_number", (), "int", completed(order, SCAN.schema), completed=True)


def test_an_order_is_completed_by_what_can_tell_rows_apart() -> None:
    text = [k.text for k in completed(ORDER, SCAN.schema)]
    assert text == ["`d` DESC NULLS LAST", "`p` ASC NULLS FIRST", "CAST(`d` AS STRING) ASC NULLS FIRST"]
    partitioned = [k.text for k in completed(ORDER, SCAN.schema, (col("p"),))]
    assert partitioned == ["`d` DESC NULLS LAST", "CAST(`d` AS STRING) ASC NULLS FIRST"]
    assert [orderable(t) for t in ("int", "map<string,int>", "array<map<int,int>>", "struct<a:int>", "variant")] == [
        True, False, False, True, False,
    ]  # fmt: skip


def test_how_windows_print() -> None:
    around = WindowCall("s", "sum", (col("d"),), "double", ORDER, Frame("ROWS", "1 PRECEDING", "CURRENT ROW"))
    node = Window(SCAN, (col("p", "int"),), (WindowCall("r", "rank", (), "int", ORDER), around))
    assert describe(node) == (
        "Window [rank() OVER (PARTITION BY `p` ORDER BY `d` DESC NULLS LAST) AS r, sum(`d`) OVER (PARTITION BY `p`"
        " ORDER BY `d` DESC NULLS LAST ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s]"
    )
    assert node.names == ("p", "d", "r", "s")
    assert not breaks_ties(node)
    assert breaks_ties(Window(SCAN, (), (number(),)))
    assert [c.repeatable for c in node.calls] == [True, False]


def test_a_filter_with_a_scalar_that_cannot_change_reads_only_the_delta() -> None:
    node = ScalarFilter(SCAN, COUNT, call(">", col("p", "int"), col("c", "bigint"), dtype="boolean"))
    only_rows = delta(node, Environment({"t": Change(1, 1, 9)}))
    assert only_rows is not None
    assert {(x.table, x.at) for x in only_rows.walk() if isinstance(x, n.Scan)} == {("t", "delta"), ("u", "old")}
    env = Environment({"u": Change(1, 0, 9)})
    flipped = delta(node, env)
    assert flipped is not None
    assert "_was <> _is" in render(flipped)
    assert [s.name.split("_")[0] for s in env.steps] == ["scalar"]


def test_the_input_of_a_window_is_kept_where_it_joins() -> None:
    other = n.Scan("u", (n.Field("k", "int"),), (0,))
    joined = n.Join(SCAN, other, call("=", col("p", "int"), col("k", "int"), dtype="boolean"))
    for child, kept in ((SCAN, False), (joined, True)):
        node = Window(child, (col("p", "int"),), (number(),))
        cards = Cardinalities({"t": 1e6, "u": 1e3}, {"t": Expected(10)}, unique=lambda t: (0,) if t == "u" else ())
        root = Pricing(cards, Rates(write=1e-9, step=1e-6), AtHand()).root(node, by_delta=True)
        choices = plan_states(root, "auto", 1e12).choices
        assert any(c.keep and c.label == describe(child) for c in choices) is kept


def test_a_window_without_partitions_says_why_it_is_redone() -> None:
    env = Environment({}, initial=True)
    full(Window(SCAN, (), (number(),)), env, "new")
    assert any("no PARTITION BY" in reason for reason in env.reasons.values())


def test_forms_of_aggregates() -> None:
    listed = AggCall("l", "collect_list", (col("p", "int"),), "array<int>", where=call(">", col("p"), lit(1)),
                     form="sort_array(collect_list({0}){filter})", completed=True)  # fmt: skip
    assert listed.text == "sort_array(collect_list(`p`) FILTER (WHERE (`p` > 1)))"
    assert listed.combine is Combine.REDO
    middle = AggCall("m", "percentile", (col("p", "int"), lit(0.5)), "double", form="percentile({0}, {1})")
    assert middle.repeatable
    assert not AggCall("m", "percentile", (col("d", "double"), lit(0.5)), "double").repeatable
    assert breaks_ties(n.Aggregate(SCAN, (), (listed,)))

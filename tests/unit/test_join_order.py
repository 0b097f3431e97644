"""Join ordering: the same bag in any order, and no needless large intermediate results."""

from __future__ import annotations

from slackwater.algebra import nodes as n
from slackwater.algebra.expressions import call, col
from slackwater.algebra.interpreter import Bag, Catalogue, evaluate
from slackwater.algebra.printer import tree_text
from slackwater.planning.join_order import order_joins


def scan(table: str, *columns: str) -> n.Rel:
    return n.Scan(table, tuple(n.Field(c, "int") for c in columns), tuple(range(len(columns))))


def equal(a: str, b: str) -> object:
    return call("=", col(a, "int"), col(b, "int"), dtype="boolean")


ROWS = {"fact": 6_000_000, "orders": 1_500_000, "customer": 150_000, "supplier": 10_000, "nation": 25}


def base(node: n.Rel) -> float:
    return float(max(ROWS[x.table] for x in node.walk() if isinstance(x, n.Scan)))


def snowflake() -> n.Rel:
    joined = n.Join(scan("customer", "c_id", "c_nation"), scan("orders", "o_id", "o_cust"), equal("c_id", "o_cust"))
    joined = n.Join(joined, scan("fact", "f_order", "f_supp"), equal("o_id", "f_order"))
    both = call("and", equal("f_supp", "s_id"), equal("c_nation", "s_nation"), dtype="boolean")
    joined = n.Join(joined, scan("supplier", "s_id", "s_nation"), both)
    return n.Join(joined, scan("nation", "n_id"), equal("s_nation", "n_id"))


def keys(table: str) -> tuple[int, ...]:
    return () if table == "fact" else (0,)


def test_tables_that_share_a_coarse_column_are_not_joined_on_it_alone() -> None:
    ordered = order_joins(snowflake(), base, base, keys)
    for node in ordered.walk():
        if isinstance(node, n.Join):
            tables = {x.table for x in node.walk() if isinstance(x, n.Scan)}
            assert not ({"customer", "supplier"} <= tables and "fact" not in tables), tree_text(ordered)


def test_any_order_gives_the_same_bag_and_columns() -> None:
    plan = snowflake()
    ordered = order_joins(plan, base, base, keys)
    assert ordered.names == plan.names
    rows = {
        "fact": [(1, 1), (1, 2), (2, 1), (9, 9)],
        "orders": [(1, 7), (2, 8), (3, 7)],
        "customer": [(7, 0), (8, 1)],
        "supplier": [(1, 0), (2, 1)],
        "nation": [(0,), (1,)],
    }
    cat = Catalogue({(t, ""): Bag.of(r) for t, r in rows.items()})
    assert evaluate(ordered, cat) == evaluate(plan, cat)
    assert evaluate(plan, cat).rows()


def test_the_smallest_join_comes_first() -> None:
    ordered = order_joins(snowflake(), base, base, keys)
    deepest = [x for x in ordered.walk() if isinstance(x, n.Join)][-1]
    assert "fact" not in {x.table for x in deepest.walk() if isinstance(x, n.Scan)}

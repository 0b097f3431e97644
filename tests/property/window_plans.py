"""Random plans with window functions, orderings and scalar subqueries anywhere in them."""

from __future__ import annotations

from hypothesis import strategies as st

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import Expr, call, col, lit
from slackwater.algebra.ordering import completed
from slackwater.algebra.scalars import ScalarFilter
from slackwater.algebra.windows import POSITIONS, RANKS, VALUES, Frame, Window, WindowCall
from tests.property.plans import Names, _aggregate, _build, _join, _pick, _predicate, ordering

BOUNDS = ["UNBOUNDED PRECEDING", "1 PRECEDING", "CURRENT ROW", "1 FOLLOWING", "UNBOUNDED FOLLOWING"]
FUNCTIONS = [*sorted(RANKS), *sorted(POSITIONS), *sorted(VALUES), "sum", "count", "min", "max"]


def _key(draw: st.DrawFn, rel: n.Rel, dtype: str | None = None) -> n.SortKey:
    return n.SortKey(_pick(draw, rel, dtype), draw(st.booleans()), draw(st.booleans()))


def _frame(draw: st.DrawFn, func: str) -> Frame:
    lower, upper = sorted(draw(st.lists(st.integers(0, 4), min_size=2, max_size=2)))
    lower, upper = min(lower, 3), max(upper, 1)
    unit = "ROWS" if func in VALUES else draw(st.sampled_from(["ROWS", "RANGE"]))
    return Frame(unit, BOUNDS[lower], BOUNDS[upper])


def _call(draw: st.DrawFn, rel: n.Rel, names: Names) -> WindowCall:
    func = draw(st.sampled_from(FUNCTIONS))
    frame = _frame(draw, func) if func not in RANKS | POSITIONS else None
    by_value = frame is not None and frame.unit == "RANGE" and "1 " in frame.text
    order = (_key(draw, rel, "int" if by_value else None),)
    arg = _pick(draw, rel, "int" if func == "sum" else None)
    args: tuple[Expr, ...] = () if func in RANKS or func == "row_number" else (arg,)
    if func == "ntile":
        args = (lit(draw(st.integers(1, 3)), dtype="int"),)
    elif func == "nth_value":
        args = (arg, lit(draw(st.integers(1, 3)), dtype="int"))
    elif func in ("lag", "lead"):
        args = (arg, lit(draw(st.integers(0, 2)), dtype="int"), lit(None, dtype=arg.dtype))
    dtype = {"percent_rank": "double", "cume_dist": "double"}.get(func, "int")
    dtype = arg.dtype if func in VALUES or func in ("lag", "lead", "min", "max") else dtype
    nulls = func in VALUES | {"lag", "lead"} and draw(st.booleans())
    made = WindowCall(names.new(), func, args, dtype, order, frame, nulls)
    if not made.positional:
        return made
    return WindowCall(made.name, func, args, dtype, completed(order, rel.schema), frame, nulls, True)


def window(draw: st.DrawFn, rel: n.Rel, names: Names) -> n.Rel:
    """One window node; often with a partition."""
    keys = tuple(_pick(draw, rel) for _ in range(draw(st.sampled_from([0, 1, 1, 1, 2]))))
    return Window(rel, keys, tuple(_call(draw, rel, names) for _ in range(draw(st.integers(1, 3)))))


def _ordering(draw: st.DrawFn, rel: n.Rel) -> n.Rel:
    keys = (_key(draw, rel),) if draw(st.booleans()) else ()
    return ordering(draw, rel, keys)


def _scalar(draw: st.DrawFn, names: Names) -> n.Rel:
    """One row from a global aggregate."""
    other = _build(draw, draw(st.integers(0, 1)), names)
    func = draw(st.sampled_from(["sum", "count", "max", "min"]))
    made = AggCall(names.new(), func, (_pick(draw, other, "int"),), "int")
    return n.Project(n.Aggregate(other, (), (made,)), (n.Item(names.new(), col(made.name, "int")),))


def scalar_filter(draw: st.DrawFn, rel: n.Rel, names: Names) -> n.Rel:
    """A comparison with one or two scalar subqueries."""
    row = _scalar(draw, names)
    term = call(draw(st.sampled_from(["<", "=", ">="])), _pick(draw, rel, "int"), col(row.names[0]), dtype="boolean")
    if draw(st.booleans()):
        row = n.Join(row, _scalar(draw, names), None)
        second = call("is_null", col(row.names[1]), dtype="boolean")
        term = call(draw(st.sampled_from(["and", "or"])), term, second, dtype="boolean")
    return ScalarFilter(rel, row, term)


def _bounded(rel: n.Rel) -> n.Rel:
    """No more columns than make the next step interesting."""
    return rel if len(rel.schema) <= 6 else n.Project(rel, n.pass_through(rel.schema[-6:]))


@st.composite
def window_plans(draw: st.DrawFn) -> n.Rel:
    """Windows and orderings over random plans, with joins, filters and aggregates above them."""
    names = Names()
    rel = _build(draw, draw(st.integers(0, 2)), names)
    for _ in range(draw(st.integers(1, 3))):
        rel = _bounded(rel)
        kind = draw(st.sampled_from(["window", "window", "top", "filter", "scalar", "join", "aggregate"]))
        if kind == "window":
            rel = window(draw, rel, names)
        elif kind == "top":
            rel = _ordering(draw, rel)
        elif kind == "filter":
            rel = n.Filter(rel, _predicate(draw, rel))
        elif kind == "scalar":
            rel = scalar_filter(draw, rel, names)
        elif kind == "join":
            other = _build(draw, 1, names)
            rel = _join(draw, rel, other) if draw(st.booleans()) else _join(draw, other, rel)
        else:
            rel = _aggregate(draw, rel, names)
    if not any(isinstance(x, Window | n.TopK | ScalarFilter) for x in rel.walk()):
        rel = window(draw, _bounded(rel), names)
    return rel

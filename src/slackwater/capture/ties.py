"""Gives every window function one answer, where its ORDER BY leaves rows tied.

before:  row_number() OVER (PARTITION BY p ORDER BY o)
after:   row_number() OVER (PARTITION BY p ORDER BY o, the remaining columns)

before:  last_value(x) OVER (PARTITION BY p ORDER BY o)              -- RANGE … CURRENT ROW: the peers' last row
after:   max_by(x, n) OVER (PARTITION BY p ORDER BY o)  over  row_number() OVER (PARTITION BY p ORDER BY o, …) AS n

Precondition: every column can be sorted. Ranks and the sums of RANGE frames treat peers alike and keep their order.
Counter-example to completing the order of the second as well: the frame would end at the current row instead of at its
last peer, and two peers would see different rows; no order among peers makes Spark answer like that.
"""

from __future__ import annotations

from dataclasses import replace

from slackwater.algebra import nodes as n
from slackwater.algebra.expressions import Expr, call, col, lit
from slackwater.algebra.ordering import completed, orderable
from slackwater.algebra.windows import (
    CURRENT_ROW,
    UNBOUNDED_FOLLOWING,
    UNBOUNDED_PRECEDING,
    VALUES,
    Frame,
    Window,
    WindowCall,
)  # fmt: skip
from slackwater.errors import QueryRefused

_WHOLE = Frame("ROWS", UNBOUNDED_PRECEDING, UNBOUNDED_FOLLOWING)


def settle_ties(node: n.Rel) -> n.Rel | None:
    """Complete the orders of one window; None where nothing was open."""
    if isinstance(node, n.TopK):
        _check_orderable(node, "LIMIT")
    if not isinstance(node, Window) or not any(c.positional for c in node.calls):
        return None
    for made in node.calls:
        if made.positional:
            _check_orderable(node.child, made.func)
    if not any(_needs_numbers(c) for c in node.calls):
        return Window(node.child, node.partition, tuple(_settled(c, node) for c in node.calls))
    return _numbered(node)


def _check_orderable(rel: n.Rel, what: str) -> None:
    for f in rel.schema:
        if not orderable(f.dtype):
            raise QueryRefused(
                "QUERY_NONDETERMINISTIC",
                f"{what} needs one order of its rows, and the column {f.name} of type {f.dtype} cannot be sorted",
                "leave the column out of the subquery, or convert it with to_json",
            )


def _settled(made: WindowCall, node: Window) -> WindowCall:
    if not made.positional:
        return made
    frame = made.frame
    if made.func in VALUES and frame is not None and frame.unit == "RANGE":
        frame = _WHOLE if frame.whole else replace(frame, unit="ROWS")
    return replace(made, order=completed(made.order, node.child.schema, node.partition), frame=frame, completed=True)


def _needs_numbers(made: WindowCall) -> bool:
    """Whether the frame ends among peers on the side that the function looks at."""
    frame = made.frame
    if made.func not in VALUES or frame is None or frame.unit == "ROWS" or frame.whole:
        return False
    if made.ignore_nulls:
        return True
    starts = frame.lower == UNBOUNDED_PRECEDING and frame.upper == CURRENT_ROW
    ends = frame.lower == CURRENT_ROW and frame.upper == UNBOUNDED_FOLLOWING
    return not (starts if made.func == "first_value" else ends and made.func == "last_value")


def _numbered(node: Window) -> n.Rel:
    """Number the rows first, then take the value with the smallest or largest number in the frame."""
    taken, numbers = set(node.names), {}
    below: list[WindowCall] = []
    for order in dict.fromkeys(c.order for c in node.calls if _needs_numbers(c)):
        name = next(f"place_{i}" for i in range(1, len(taken) + 2) if f"place_{i}" not in taken)
        taken.add(name)
        numbers[order] = col(name, "int")
        full_order = completed(order, node.child.schema, node.partition)
        below.append(WindowCall(name, "row_number", (), "int", full_order, completed=True))
    numbered = Window(node.child, node.partition, tuple(below))
    calls = tuple(_by_number(c, numbers[c.order]) if _needs_numbers(c) else _settled(c, node) for c in node.calls)
    return n.Project(Window(numbered, node.partition, calls), n.pass_through(node.schema))


def _by_number(made: WindowCall, number: Expr) -> WindowCall:
    frame, value = made.frame, made.args[0]
    func = "max_by" if made.func == "last_value" else "min_by"
    place = number
    if made.func == "nth_value":
        if made.ignore_nulls or frame is None or frame.lower != UNBOUNDED_PRECEDING:
            raise QueryRefused(
                "QUERY_NONDETERMINISTIC",
                "nth_value over a RANGE frame that does not start with the partition depends on the order of ties",
                "use a ROWS frame",
            )
        place = call("if", call("=", number, made.args[1], dtype="boolean"), number, lit(None))
    elif made.ignore_nulls:
        place = call("if", call("is_null", value, dtype="boolean"), lit(None), number)
    return replace(made, func=func, args=(value, place), ignore_nulls=False, completed=True)

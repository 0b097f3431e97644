"""Window functions over plain bags: for each row the frame is looked for from scratch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import Expr
from slackwater.algebra.interpreter.functions import aggregate
from slackwater.algebra.interpreter.values import Row, compare, evaluate_expr, grouping_key, ordered
from slackwater.algebra.nodes import SortKey
from slackwater.algebra.windows import POSITIONS, RANKS, VALUES, Window, WindowCall


@dataclass(frozen=True, slots=True)
class Backwards:
    """A value that sorts the other way round."""

    value: Any

    def __lt__(self, other: Backwards) -> bool:
        """Reversed."""
        return bool(other.value < self.value)


def sort_cell(value: Any, key: SortKey) -> tuple[int, Any]:
    """What a value sorts by under a key."""
    if value is None:
        return (0 if key.nulls_first else 2, ordered(0))
    return (1, Backwards(ordered(value)) if key.descending else ordered(value))


def windowed(node: Window, rows: list[Row]) -> list[Row]:
    """The rows with the functions' values."""
    names = node.child.names
    partitions: dict[Row, list[Row]] = {}
    for row in rows:
        key = tuple(grouping_key(_eval(e, names, row)) for e in node.partition)
        partitions.setdefault(key, []).append(row)
    out = []
    for partition in partitions.values():
        numbered = list(enumerate(partition))
        columns = [_call(c, names, numbered) for c in node.calls]
        out += [row + tuple(column[i] for column in columns) for i, row in numbered]
    return out


def _eval(expr: Expr, names: tuple[str, ...], row: Row) -> Any:
    return evaluate_expr(expr, dict(zip(names, row, strict=True)))


def _call(made: WindowCall, names: tuple[str, ...], numbered: list[tuple[int, Row]]) -> dict[int, Any]:
    """The function's value for each row, by the row's number."""

    def cells(row: Row) -> tuple[Any, ...]:
        return tuple(sort_cell(_eval(k.expr, names, row), k) for k in made.order)

    in_order = sorted(numbered, key=lambda item: cells(item[1]))
    keys = [cells(row) for _, row in in_order]
    values = [_eval(made.args[0], names, row) if made.args else True for _, row in in_order]
    found: dict[int, Any] = {}
    for at, (number, row) in enumerate(in_order):
        first = next(i for i in range(len(keys)) if _equal(keys[i], keys[at]))
        last = max(i for i in range(len(keys)) if _equal(keys[i], keys[at]))
        if made.func in RANKS:
            found[number] = _rank(made.func, keys, at, first, last)
        elif made.func in POSITIONS:
            found[number] = _position(made, values, at, lambda e, row=row: _eval(e, names, row))  # type: ignore[misc]
        else:
            frame = _frame(made, names, in_order, at, first, last)
            found[number] = _over_frame(made, [values[i] for i in frame], lambda e, row=row: _eval(e, names, row))  # type: ignore[misc]
    return found


def _equal(a: Any, b: Any) -> bool:
    return not a < b and not b < a


def _rank(func: str, keys: list[Any], at: int, first: int, last: int) -> Any:
    if func == "rank":
        return first + 1
    if func == "dense_rank":
        return 1 + sum(1 for i in range(1, at + 1) if not _equal(keys[i - 1], keys[i]))
    if func == "percent_rank":
        return first / (len(keys) - 1) if len(keys) > 1 else 0.0
    return (last + 1) / len(keys)


def _position(made: WindowCall, values: list[Any], at: int, evaluated: Callable[[Expr], Any]) -> Any:
    if made.func == "row_number":
        return at + 1
    if made.func == "ntile":
        buckets, rows = int(evaluated(made.args[0])), len(values)
        size, larger = divmod(rows, buckets)
        edge = larger * (size + 1)
        return at // (size + 1) + 1 if at < edge else larger + (at - edge) // size + 1
    offset = int(evaluated(made.args[1])) if len(made.args) > 1 else 1
    step = 1 if made.func == "lead" else -1
    default = evaluated(made.args[2]) if len(made.args) > 2 else None
    if not made.ignore_nulls or not offset:
        target = at + step * offset
        return values[target] if 0 <= target < len(values) else default
    ahead = values[at + 1 :] if step > 0 else values[:at][::-1]
    present = [v for v in ahead if v is not None]
    return present[offset - 1] if len(present) >= offset else default


def _over_frame(made: WindowCall, values: list[Any], evaluated: Callable[[Expr], Any]) -> Any:
    if made.func not in VALUES:
        call = AggCall(made.name, made.func, made.args, made.dtype)
        return aggregate(call, values, len(values))
    present = [v for v in values if v is not None] if made.ignore_nulls else values
    place = {"first_value": 0, "last_value": len(present) - 1}.get(made.func)
    if place is None:
        place = int(evaluated(made.args[1])) - 1
    return present[place] if 0 <= place < len(present) else None


def _frame(
    made: WindowCall, names: tuple[str, ...], in_order: list[tuple[int, Row]], at: int, first: int, last: int
) -> list[int]:
    """The numbers of the frame's rows, in order."""
    frame = made.frame
    if frame is None or frame.whole:
        return list(range(len(in_order)))
    if frame.unit == "ROWS":
        lower, upper = _rows(frame.lower, at, at), _rows(frame.upper, at, at)
        return [i for i in range(len(in_order)) if lower <= i <= upper]
    if all(" ".join(b.split()[-2:]) in _PLAIN for b in (frame.lower, frame.upper)):
        lower, upper = _rows(frame.lower, first, first), _rows(frame.upper, last, last)
        return [i for i in range(len(in_order)) if lower <= i <= upper]
    return _by_value(made, names, in_order, at, first, last)


_PLAIN = ("UNBOUNDED PRECEDING", "CURRENT ROW", "UNBOUNDED FOLLOWING")


def _rows(bound: str, at: int, current: int) -> float:
    if bound == "CURRENT ROW":
        return current
    amount, direction = bound.split()
    if amount == "UNBOUNDED":
        return float("-inf") if direction == "PRECEDING" else float("inf")
    return at - int(amount) if direction == "PRECEDING" else at + int(amount)


def _by_value(
    made: WindowCall, names: tuple[str, ...], in_order: list[tuple[int, Row]], at: int, first: int, last: int
) -> list[int]:
    """RANGE with offsets: rows whose only key is near the current row's; for a NULL key the peers stand in."""
    (key,) = made.order
    mine = _eval(key.expr, names, in_order[at][1])
    assert made.frame is not None  # noqa: S101 - the caller looked
    inside = []
    for i, (_, row) in enumerate(in_order):
        theirs = _eval(key.expr, names, row)
        fits = [
            _within(bound, side, mine, theirs, i, (first, last), key.descending)
            for side, bound in (("lower", made.frame.lower), ("upper", made.frame.upper))
        ]
        if all(fits):
            inside.append(i)
    return inside


def _within(bound: str, side: str, mine: Any, theirs: Any, i: int, peers: tuple[int, int], descending: bool) -> bool:
    if bound.startswith("UNBOUNDED"):
        return True
    if bound == "CURRENT ROW" or mine is None:
        return i >= peers[0] if side == "lower" else i <= peers[1]
    if theirs is None:
        # NULLs stand before or behind all values; where they stand decides.
        return i > peers[1] if side == "lower" else i < peers[0]
    amount, direction = bound.split()
    signed = Fraction(amount) * (-1 if direction == "PRECEDING" else 1) * (-1 if descending else 1)
    order = compare(theirs, mine + signed) * (-1 if descending else 1)
    return order >= 0 if side == "lower" else order <= 0

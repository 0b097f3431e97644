"""Aggregates, partial aggregates and their changes as Spark SQL."""

from __future__ import annotations

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import (
    NEGATED_EXACTLY,
    AggCall,
    Combine,
    decimal_of,
    has_floats,
    is_float,
    is_interval,
)
from slackwater.algebra.expressions import Expr, col, quote
from slackwater.algebra.partials import (
    DELETES,
    OVERFLOW,
    ROWS,
    AggChange,
    Partial,
    PartialColumn,
    carried_fields,
    finish_text,
    partial_columns,
    partial_schema,
)  # fmt: skip
from slackwater.execution.render_user_aggregates import user_merged, user_partial

WEIGHT = "_w"


def key_columns(agg: n.Aggregate) -> tuple[Expr, ...]:
    """The key columns of partial rows."""
    return tuple(col(g.name, g.expr.dtype) for g in agg.groups)


def _input_keys(agg: n.Aggregate) -> list[str]:
    """The keys over input rows. A bare number would be taken for a position in the SELECT list."""
    return [f"CAST({g.expr.text} AS {g.expr.dtype})" if g.expr.op == "lit" else g.expr.text for g in agg.groups]


def _group_by(keys: list[str]) -> str:
    return f"\nGROUP BY {', '.join(keys)}" if keys else ""


def aggregate(node: n.Aggregate, source: str) -> str:
    """A plain aggregate over a plain bag."""
    columns = [f"{g.expr.text} AS {quote(g.name)}" for g in node.groups]
    columns += [f"{a.text} AS {quote(a.name)}" for a in node.aggs]
    return f"SELECT {', '.join(columns)}\nFROM {source}{_group_by(_input_keys(node))}"


def partial(node: Partial, source: str) -> str:
    """Partial rows from input rows; where the input has weights, deletes subtract."""
    weighted = node.child.weighted
    if any(call.user for call in node.agg.aggs):
        return user_partial(node, source, _input_keys(node.agg))
    columns = [f"{g.expr.text} AS {quote(g.name)}" for g in node.agg.groups]
    for call in node.agg.aggs:
        for column in partial_columns(call):
            if column.role == "result":  # of a change nothing can be said: the group is redone
                made = f"CAST(NULL AS {column.dtype})" if node.count_deletes else f"NAMED_STRUCT('v', {call.text})"
            else:
                made = _initial(call, column, weighted)
            columns.append(f"{made} AS {quote(column.name)}")
    if weighted:
        columns.append(f"COALESCE(SUM(CAST({WEIGHT} AS BIGINT)), 0L) AS {ROWS}")
    else:
        columns.append(f"COUNT(1) AS {ROWS}")
    if node.count_deletes and node.agg.combine is Combine.KEPT:
        columns.append(f"COUNT(1) AS {DELETES}")  # whatever changed, the group is redone
    elif node.count_deletes:
        columns.append(f"COUNT(IF({WEIGHT} < 0, 1, NULL)) AS {DELETES}" if weighted else f"0L AS {DELETES}")
    return f"SELECT {', '.join(columns)}\nFROM {source}{_group_by(_input_keys(node.agg))}"


def _initial(call: AggCall, column: PartialColumn, weighted: bool) -> str:
    """One partial column from input rows."""
    where = f" FILTER (WHERE {call.where.text})" if call.where is not None else ""
    arg = call.args[0].text if call.args else ""
    if column.role == "seen":
        if not weighted:
            return f"COUNT({arg or '1'}){where}"
        signed = f"IF({arg} IS NULL, 0, {WEIGHT})" if arg else WEIGHT
        return f"COALESCE(SUM(CAST({signed} AS BIGINT)){where}, 0L)"
    if column.role == "value":
        inserted = f"IF({WEIGHT} > 0, {arg}, NULL)" if weighted else arg
        return f"{column.merge.upper()}({inserted}){where}"
    dtype = call.args[0].dtype
    value = arg if decimal_of(dtype) or is_float(dtype) or is_interval(dtype) else f"CAST({arg} AS BIGINT)"
    if column.role == "square" or call.func not in ("sum", "avg"):
        exact = f"CAST({arg} AS {_small_decimal(call)})"
        value = f"{exact} * {exact}" if column.role == "square" else exact
    signed = f"IF({WEIGHT} > 0, {value}, {_negated(call, value)})" if weighted else value
    return _guarded(f"SUM({signed}){where}", f"COUNT({arg}){where}", column)


def _negated(call: AggCall, value: str) -> str:
    """A value with the other sign. A number with more digits than Spark negates exactly stops the program instead."""
    decimal = decimal_of(call.args[0].dtype)
    if decimal is None or decimal.precision <= NEGATED_EXACTLY:
        return f"-({value})"
    most = f"{'9' * NEGATED_EXACTLY}E-{decimal.scale}BD"
    return f"IF({value} BETWEEN -{most} AND {most}, -({value}), IF({value} IS NULL, NULL, raise_error('{OVERFLOW}')))"


def _small_decimal(call: AggCall) -> str:
    decimal = decimal_of(call.args[0].dtype)
    return f"DECIMAL({decimal.precision},{decimal.scale})" if decimal else "DECIMAL(10,0)"


def _guarded(total: str, present: str, column: PartialColumn) -> str:
    """A total in its fixed type. A decimal sum that overflows is NULL without ANSI: never keep that, stop instead."""
    cast = f"CAST({total} AS {column.dtype.upper()})"
    if decimal_of(column.dtype) is None:
        return cast
    return f"COALESCE({cast}, IF({present} > 0, raise_error('{OVERFLOW}'), NULL))"


def merge(agg: n.Aggregate, source: str) -> str:
    """One partial row a group from any number of them."""
    keys = [quote(g.name) for g in agg.groups]
    columns = keys + [
        f"{_merged(c, quote(c.name))} AS {quote(c.name)}" for call in agg.aggs for c in partial_columns(call)
    ]
    columns.append(f"COALESCE(SUM({ROWS}), 0L) AS {ROWS}")
    having = f"\nHAVING SUM({ROWS}) > 0" if keys else ""
    return f"SELECT {', '.join(columns)}\nFROM {source}{_group_by(keys)}{having}"


def _merged(column: PartialColumn, value: str) -> str:
    if column.role == "result":
        return user_merged(column, value)
    merged = f"{column.merge.upper()}({value})"
    return _guarded(merged, f"COUNT({value})", column) if column.merge == "sum" else merged


def finish(agg: n.Aggregate, source: str, *, carry: bool = False) -> str:
    """The aggregate's output from merged partial rows, and these beside it where they are carried along."""
    columns = [quote(g.name) for g in agg.groups] + [f"{finish_text(a)} AS {quote(a.name)}" for a in agg.aggs]
    if carry:
        shown = zip(partial_schema(agg), carried_fields(agg), strict=True)
        columns += [f"{quote(kept.name)} AS {quote(beside.name)}" for kept, beside in shown]
    return f"SELECT {', '.join(columns)} FROM {source}"


def change(node: AggChange, old: str, delta: str, redo: str | None) -> str:
    """Minus the old and plus the new row of each touched group.

    The rows of the state (`_src` 0), of the change (1) and of the redone groups (2) are merged in one pass; columns
    that start with `o$` hold the old and those with `m$` the new partials.
    """
    agg = node.agg
    keys = [quote(g.name) for g in agg.groups]
    columns = [c for call in agg.aggs for c in partial_columns(call)]
    columns.append(PartialColumn(ROWS, "sum", "seen", "bigint"))
    deletes = DELETES in node.change.names and redo is not None
    names = ", ".join(keys + [quote(c.name) for c in columns])
    parts = [f"SELECT {names}, 0L AS _d, 0 AS _src FROM {old}"]
    parts.append(f"SELECT {names}, {'_d' if deletes else '0L AS _d'}, 1 AS _src FROM {delta}")
    if redo is not None:
        parts.append(f"SELECT {names}, 0L AS _d, 2 AS _src FROM {redo}")
    merged = keys + [f"{text} AS {quote(prefix + c.name)}" for c in columns for prefix, text in _versions(c, deletes)]
    if node.carry:
        merged.append("MAX(_src) > 0 AS _touched")
    having = "" if node.carry else "\nHAVING MAX(_src) > 0"
    rows = " UNION ALL ".join(parts)
    if node.gather:
        rows = f"SELECT /*+ COALESCE(1) */ * FROM ({rows})"
    both = f"(SELECT {', '.join(merged)}\nFROM ({rows}){_group_by(keys)}{having})"
    return _unpivot(node, keys, both)


def _versions(column: PartialColumn, deletes: bool) -> list[tuple[str, str]]:
    name = quote(column.name)
    before = _merged(column, f"IF(_src = 0, {name}, NULL)")
    after = _merged(column, f"IF(_src < 2, {name}, NULL)") if deletes else _merged(column, name)
    if deletes:
        after = f"IF(MAX(_d) > 0, {_merged(column, f'IF(_src = 2, {name}, NULL)')}, {after})"
    return [("o$", before), ("m$", after)]


def _unpivot(node: AggChange, keys: list[str], both: str) -> str:
    """A row for the old and a row for the new output of each group, unless they are the same."""
    agg, carried = node.agg, _carried(node.agg) if node.carry else {}
    alive = {p: "TRUE" if not keys else f"COALESCE({quote(p + ROWS)}, 0L) > 0" for p in ("o$", "m$")}
    finished = [
        f"IF({alive[p]}, {finish_text(a, p)}, NULL) AS {quote(p + a.name)}" for p in ("o$", "m$") for a in agg.aggs
    ]
    flags = [f"{alive['o$']} AS _was", f"{alive['m$']} AS _is", *(["_touched"] if node.carry else [])]
    flags += [f"{text} AS {name}" for name, text in carried.items()]
    inner = f"(SELECT {', '.join([*keys, *finished, *flags])} FROM {both})"
    names = [f"_x{i}" for i in range(len(agg.aggs))]
    old, new = (
        "".join(f", {quote(p + a.name)} AS {x}" for x, a in zip(names, agg.aggs, strict=True)) for p in ("o$", "m$")
    )
    differs = ["_touched"] if node.carry else []
    if not any(has_floats(a.dtype) for a in agg.aggs):
        same = " AND ".join(["_was = _is", *(f"{quote('o$' + a.name)} <=> {quote('m$' + a.name)}" for a in agg.aggs)])
        differs.append(f"NOT ({same})")
    if node.carry:
        changed = " AND ".join(differs)
        rows = f"ARRAY(STRUCT(_was AND {changed} AS t, -1 AS w{old}), STRUCT(_is AS t, IF({changed}, 1, 0) AS w{new}))"
        where = "x._there"
    else:
        rows = f"ARRAY(STRUCT(_was AS t, -1 AS w{old}), STRUCT(_is AS t, 1 AS w{new}))"
        where = " AND ".join(["x._there", *differs])
    columns = keys + [f"x.{x} AS {quote(a.name)}" for x, a in zip(names, agg.aggs, strict=True)] + list(carried)
    view = f"{inner} AS b LATERAL VIEW INLINE({rows}) x AS {', '.join(['_there', WEIGHT, *names])}"
    return f"SELECT {', '.join([*columns, WEIGHT])}\nFROM {view}\nWHERE {where}"


def _carried(agg: n.Aggregate) -> dict[str, str]:
    """The columns that show a group's new partial row, and where it is found."""
    found = [f.name if i < len(agg.groups) else f"m${f.name}" for i, f in enumerate(partial_schema(agg))]
    return {quote(f.name): quote(name) for f, name in zip(carried_fields(agg), found, strict=True)}

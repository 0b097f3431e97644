"""Plans as Spark SQL that a person can read.

Every relation becomes one SELECT. A relation that can have weights other than +1 has a column `_w`, always +1 or -1.
Leaves are temporary views: `table@old`, `table@new`, `table@delta`, and one for each state and step.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from slackwater.algebra import nodes as n
from slackwater.algebra.expressions import Expr, quote
from slackwater.algebra.first_rows import First, FirstChange
from slackwater.algebra.gather import Gather
from slackwater.algebra.generate import Generate, Values
from slackwater.algebra.joins import MatchJoin, OuterJoin, Support
from slackwater.algebra.lookups import Probe
from slackwater.algebra.ordering import completed
from slackwater.algebra.partials import AggChange, Finish, MergePartials, Partial
from slackwater.algebra.scalars import Flip, ScalarFilter
from slackwater.algebra.windows import Window
from slackwater.execution import render_aggregates, render_first, render_joins, render_scalars
from slackwater.execution.told_apart import told_apart

WEIGHT = "_w"


def table_view(table: str, at: str) -> str:
    """The name of the temporary view that stands for a table at a time; where a query's own text reads it, its own."""
    return f"{table}@{at}" if at else table


def physical(position: int) -> str:
    """The name of a table's column inside its files: its position, so that no user's name reaches a file."""
    return f"c{position}"


def render(node: n.Rel) -> str:
    """The SELECT statement for a plan."""
    match node:
        case n.Scan():
            columns = [f"{physical(p)} AS {quote(f.name)}" for f, p in zip(node.fields, node.positions, strict=True)]
            return f"SELECT {_list(columns, node)} FROM {quote(table_view(node.table, node.at))}"
        case n.Input():
            return f"SELECT {_list(_names(node), node)} FROM {quote(node.name)}"
        case n.Filter():
            return f"SELECT * FROM {_sub(node.child)} WHERE {node.predicate.text}"
        case n.Project():
            columns = [_item(i.expr, i.name) for i in node.items]
            return f"SELECT {_list(columns, node)} FROM {_sub(node.child)}"
        case n.Union():
            return "\nUNION ALL\n".join(_aligned(child, node) for child in node.inputs)
        case n.Expand():
            return _expand(node)
        case n.Join():
            return _join(node)
        case n.SemiJoin():
            return _semi_join(node)
        case MatchJoin():
            return render_joins.match_join(node, _sub(node.left), _sub(node.right))
        case OuterJoin():
            return render_joins.outer_join(node, _sub(node.left), _sub(node.right))
        case Probe():
            since = _sub(node.since) if node.since is not None else None
            return render_joins.probe(node, _sub(node.asking), _sub(node.index), since)
        case Support():
            return f"SELECT {_list(_names(node), node)} FROM {_sub(node.child)}"
        case Generate():
            return render_joins.generate(node, _sub(node.child))
        case Values():
            return render_joins.values(node)
        case n.Negate():
            weight = f"-{WEIGHT}" if node.child.weighted else "-1"
            return f"SELECT {', '.join([*_names(node), f'{weight} AS {WEIGHT}'])} FROM {_sub(node.child)}"
        case n.Consolidate():
            return consolidated(render(node.child), node.schema, plain=True)
        case n.Difference():
            old = n.Negate(n.Union((node.old,), node.schema))
            both = render(n.Union((node.new, old), node.schema))
            return consolidated(in_one_task(both) if node.gather else both, node.schema, plain=False)
        case n.Aggregate():
            return render_aggregates.aggregate(node, _sub(node.child))
        case n.TopK():
            return _top_k(node)
        case First():
            return render_first.first(node, _sub(node.child))
        case FirstChange():
            return render_first.change(node, _sub(node.old), _sub(node.change))
        case ScalarFilter():
            return render_scalars.scalar_filter(node.child, node.predicate, _sub(node.child), _sub(node.scalar))
        case Flip():
            return render_scalars.flip(node.child, node.predicate, *map(_sub, (node.child, node.old, node.new)))
        case Window():
            columns = [f"{c.text(node.partition)} AS {quote(c.name)}" for c in node.calls]
            return f"SELECT {', '.join([*_names(node.child), *columns])} FROM {_sub(node.child)}"
        case n.Opaque():
            return f"SELECT * FROM (\n{node.sql}\n) AS q({', '.join(_names(node))})"
        case Partial():
            return render_aggregates.partial(node, _sub(node.child))
        case MergePartials():
            return render_aggregates.merge(node.agg, _sub(node.child))
        case Finish():
            merged = f"({render_aggregates.merge(node.agg, _sub(node.child))})"
            return render_aggregates.finish(node.agg, merged, carry=node.carry)
        case AggChange():
            return _agg_change(node)
        case Gather():
            return in_one_task(render(node.child), shuffle=node.parallel)
        case _:
            raise TypeError(f"no SQL for {type(node).__name__}")


def in_one_task(sql: str, *, shuffle: bool = False) -> str:
    """The same rows in one partition: made by one task or, with `shuffle`, by many and then moved."""
    hint = "REPARTITION(1)" if shuffle else "COALESCE(1)"
    return f"SELECT /*+ {hint} */ * FROM ({indent(sql)})"


def _sub(node: n.Rel) -> str:
    return f"({indent(render(node))})"


_SHOWN: ContextVar[bool] = ContextVar("shown", default=False)
"""Whether the text is for people."""


@contextmanager
def shown() -> Iterator[None]:
    """Within, nested SELECTs are shifted to the right.

    Such a text is not for Spark: a line break inside a constant would be shifted too.
    """
    token = _SHOWN.set(True)
    try:
        yield
    finally:
        _SHOWN.reset(token)


def indent(sql: str) -> str:
    """A nested SELECT; where it is shown, so that the nesting shows."""
    return sql.replace("\n", "\n  ") if _SHOWN.get() else sql


def _names(node: n.Rel) -> list[str]:
    return [quote(name) for name in node.names]


def _list(columns: list[str], node: n.Rel) -> str:
    return ", ".join([*columns, WEIGHT] if node.weighted else columns) or "1 AS `_`"


def _item(expr: Expr, name: str) -> str:
    return quote(name) if expr.column == name else f"{expr.text} AS {quote(name)}"


def _aligned(child: n.Rel, parent: n.Rel) -> str:
    """One branch of a union, under the parent's column names."""
    columns = [
        quote(c) if c == p else f"{quote(c)} AS {quote(p)}" for c, p in zip(child.names, parent.names, strict=True)
    ]
    if parent.weighted:
        columns.append(WEIGHT if child.weighted else f"1 AS {WEIGHT}")
    return f"SELECT {', '.join(columns) or '1 AS `_`'} FROM {_sub(child)}"


def _expand(node: n.Expand) -> str:
    def struct(exprs: tuple[Expr, ...]) -> str:
        cells = (f"CAST({e.text} AS {f.dtype})" for e, f in zip(exprs, node.fields, strict=True))
        return f"STRUCT({', '.join(cells)})"

    rows = ", ".join(struct(exprs) for exprs in node.projections)
    names = [f"x{i}" for i in range(len(node.fields))]
    columns = [f"x.{x} AS {quote(f.name)}" for x, f in zip(names, node.fields, strict=True)]
    source = f"{_sub(node.child)} AS e LATERAL VIEW INLINE(ARRAY({rows})) x AS {', '.join(names)}"
    return f"SELECT {_list(columns, node)} FROM {source}"


def _join(node: n.Join) -> str:
    columns = [f"l.{quote(name)}" for name in node.left.names] + [f"r.{quote(name)}" for name in node.right.names]
    left, right = node.left.weighted, node.right.weighted
    if left or right:
        weight = f"l.{WEIGHT} * r.{WEIGHT}" if left and right else f"{'l' if left else 'r'}.{WEIGHT}"
        columns.append(f"{weight} AS {WEIGHT}")
    hint = {"": "", "left": "/*+ BROADCAST(l) */ ", "right": "/*+ BROADCAST(r) */ "}[node.broadcast]
    kind = "CROSS JOIN" if node.condition is None else "JOIN"
    condition = "" if node.condition is None else f"\n  ON {node.condition.text}"
    listed = ", ".join(columns) or "1 AS `_`"
    return f"SELECT {hint}{listed}\nFROM {_sub(node.left)} AS l\n{kind} {_sub(node.right)} AS r{condition}"


def _semi_join(node: n.SemiJoin) -> str:
    keys = ", ".join(f"{theirs.text} AS _k{i}" for i, (_, theirs) in enumerate(node.pairs))
    condition = " AND ".join(f"{mine.text} <=> _k{i}" for i, (mine, _) in enumerate(node.pairs))
    hint = "/*+ BROADCAST(k) */ " if node.small else ""
    kind = "LEFT ANTI JOIN" if node.anti else "LEFT SEMI JOIN"
    source = f"(SELECT {keys} FROM {_sub(node.keys)}) AS k"
    return f"SELECT {hint}* FROM {_sub(node.child)} AS c\n{kind} {source}\n  ON {condition}"


def _top_k(node: n.TopK) -> str:
    keys = completed(node.keys, node.schema)
    order = f" ORDER BY {', '.join(k.text for k in keys)}" if keys else ""  # rows without columns are all alike
    offset = f" OFFSET {node.offset}" if node.offset else ""
    return f"SELECT * FROM {_sub(node.child)}{order} LIMIT {node.limit}{offset}"


def _agg_change(node: AggChange) -> str:
    old = node.old
    if node.restrict and node.agg.groups:
        pairs = tuple((k, k) for k in render_aggregates.key_columns(node.agg))
        old = n.SemiJoin(node.old, node.change, pairs)
    redo = _sub(node.redo) if node.redo is not None else None
    return render_aggregates.change(node, _sub(old), _sub(node.change), redo)


def consolidated(sql: str, fields: n.Schema, *, plain: bool, loose: bool = False) -> str:
    """Let deletes meet inserts: each row as often as its net weight says, as +1 rows or, if not `plain`, ±1 rows.

    Rows are told apart as `told_apart` says.
    """
    columns, keys = told_apart(fields, loose=loose)
    names = ", ".join(quote(f.name) for f in fields) or "1 AS `_`"
    groups = f" GROUP BY {', '.join(keys)}" if keys else ""
    net = f"SELECT {', '.join([*columns, f'SUM({WEIGHT}) AS _s'])} FROM ({indent(sql)}){groups}"
    rows = f"({indent(net)} HAVING SUM({WEIGHT}) <> 0) AS g LATERAL VIEW EXPLODE(SEQUENCE(1L, ABS(_s))) x AS _i"
    if plain:
        check = "IF(_s > 0, _i, raise_error('SLACKWATER_NEGATIVE_ROW'))"
        return f"SELECT {names} FROM {rows} WHERE {check} > 0"
    shown = f"{names}, " if fields else ""
    return f"SELECT {shown}CAST(SIGN(_s) AS INT) AS {WEIGHT} FROM {rows}"

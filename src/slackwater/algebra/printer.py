"""Stable text for plans, and the key of a node: the same operator over the same inputs has the same key."""

from __future__ import annotations

import hashlib

from slackwater.algebra import nodes as n
from slackwater.algebra.expressions import quote
from slackwater.algebra.first_rows import First
from slackwater.algebra.generate import Generate, Values
from slackwater.algebra.joins import MatchJoin, OuterJoin
from slackwater.algebra.lookups import Indexed, Probe, Waiting
from slackwater.algebra.multi_join import MultiJoin
from slackwater.algebra.partials import AggChange, Finish, MergePartials, Partial
from slackwater.algebra.remembering import ByNode
from slackwater.algebra.scalars import Flip, ScalarFilter
from slackwater.algebra.windows import Window


def _line(node: n.Rel) -> str:
    match node:
        case n.Scan():
            columns = ", ".join(f"{f.name}:{f.dtype}@{p}" for f, p in zip(node.fields, node.positions, strict=True))
            return f"Scan {node.table}{'.' + node.at if node.at else ''} [{columns}]"
        case n.Filter():
            return f"Filter {node.predicate.text}"
        case n.Project():
            return f"Project [{_items(node.items)}]"
        case n.Union():
            return f"Union [{', '.join(node.names)}]"
        case n.Expand():
            rows = "; ".join(", ".join(e.text for e in p) for p in node.projections)
            return f"Expand [{', '.join(node.names)}] of [{rows}]"
        case n.Join():
            kind = "Join" if node.condition is not None else "CrossJoin"
            hint = f" broadcast={node.broadcast}" if node.broadcast else ""
            return f"{kind}{hint} {node.condition.text if node.condition is not None else ''}".rstrip()
        case Waiting():
            keys = ", ".join(f"{p.asks.text} in {p.column}" for p in node.pairs)
            return f"Waiting {keys} of {node.path.scan.table}"
        case Indexed():
            return f"Index on {', '.join(quote(name) for name in node.columns)}"
        case Probe():
            return f"Probe {describe(node.lookup)}"
        case MultiJoin():
            terms = " AND ".join(c.text for c in node.conditions)
            return f"JoinOfMany {node.tables()} [{', '.join(node.columns)}] on {terms}"
        case MatchJoin():
            flag = f" as {node.flag}" if node.flag else ""
            return f"Left{node.kind.title()}Join{flag} {node.condition.text}"
        case OuterJoin():
            return f"{node.kind.title()}OuterJoin {node.condition.text}"
        case Generate():
            kept = ", ".join((*node.kept, *(f.name for f in node.fields)))
            return f"Generate{' outer' if node.outer else ''} [{kept}] of {node.generator.text}"
        case Values():
            rows = "; ".join(", ".join(cell.text for cell in row) for row in node.rows)
            return f"Values [{', '.join(f'{f.name}:{f.dtype}' for f in node.fields)}] of [{rows}]"
        case n.Aggregate():
            return f"Aggregate by [{_items(node.groups)}] of [{', '.join(f'{a.text} AS {a.name}' for a in node.aggs)}]"
        case n.TopK():
            keys = ", ".join(k.text for k in node.keys)
            return f"TopK by [{keys}] limit {node.limit} offset {node.offset}"
        case First():
            keys = ", ".join(k.text for k in node.keys)
            return f"First {node.need} to {node.most} by [{keys}]"
        case ScalarFilter() | Flip():
            return f"{type(node).__name__} {node.predicate.text}"
        case Window():
            return f"Window [{', '.join(f'{c.text(node.partition)} AS {c.name}' for c in node.calls)}]"
        case n.Opaque():
            return f"Opaque [{node.code}] {node.reason}"
        case n.Input():
            return f"Input {node.name}"
        case n.SemiJoin():
            pairs = ", ".join(f"{a.text} <=> {b.text}" for a, b in node.pairs)
            return f"{'AntiJoin' if node.anti else 'SemiJoin'} on [{pairs}]"
        case Partial() | MergePartials() | Finish() | AggChange():
            return f"{type(node).__name__} of {describe(node.agg)}"
        case _:
            return type(node).__name__


def _items(items: tuple[n.Item, ...]) -> str:
    return ", ".join(i.name if i.expr.column == i.name else f"{i.expr.text} AS {i.name}" for i in items)


def tree_text(node: n.Rel, depth: int = 0) -> str:
    """The whole tree, one line a node, inputs indented."""
    lines = ["  " * depth + describe(node)]
    lines += [tree_text(child, depth + 1) for child in node.children]
    return "\n".join(lines)


def _key(node: n.Rel) -> str:
    return hashlib.sha256(tree_text(node).encode()).hexdigest()[:12]


_keys: ByNode[n.Rel, str] = ByNode(_key)
_lines: ByNode[n.Rel, str] = ByNode(_line)


def node_key(node: n.Rel) -> str:
    """A short name for what a node computes; equal trees have equal keys."""
    return _keys(node)


def describe(node: n.Rel) -> str:
    """One line that says what a node does, without its inputs."""
    return _lines(node)

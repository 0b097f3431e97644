"""Rewrite: group by the key that is looked up, before it is looked up.

before:  γ[c.k, c.name, n.name; sum(x)](R ⋈ C ⋈ N on r.k = c.k and c.n = n.k)
after:   π(γ[r.k; sum(x)](R) ⋈ C ⋈ N)

The key of C tells all that C and N say of a group, so that R can be grouped without them. The state of the aggregate is
as narrow as the key, it takes in what comes without a lookup, and each group is looked up once instead of each row.
Precondition: C and N are reached by their keys, leave no row out by a filter, and are read by no function; the groups
contain each key that R names, or the column that names it; a group by their columns gives these back as they are.
Counter-examples: without the key among the groups, two customers of one name are one group, and would be two; a
customer's -0.0 is 0.0 once it is grouped by. Where R is a join that only C holds together it stays below as well, or
its parts would be multiplied with each other.
"""

from __future__ import annotations

from slackwater.algebra.expressions import Expr, col
from slackwater.algebra.nodes import Aggregate, Item, Project, Rel
from slackwater.planning.join_groups import UniqueKeys, connected, filters, flatten, joined, keys_of
from slackwater.planning.lookups import comes_back, is_exact


def group_first(plan: Rel, unique: UniqueKeys) -> Rel:
    """Apply the rewrite wherever it holds."""

    def rule(node: Rel) -> Rel | None:
        return _grouped(node, unique) if isinstance(node, Aggregate) and node.groups and node.aggs else None

    return plan.transform_up(rule)


def _grouped(node: Aggregate, unique: UniqueKeys) -> Rel | None:
    below = node.child
    while isinstance(below, Project) and all(i.expr.column == i.name for i in below.items):
        below = below.child
    if isinstance(below, Project):
        return None
    inputs, conditions = flatten(below)
    groups = {str(g.expr.column): g for g in node.groups if g.expr.column is not None}
    if len(inputs) < 2 or len(groups) < len(node.groups):
        return None
    read = frozenset[str]().union(*(a.inputs for a in node.aggs))
    names = _names(conditions)
    looked_up = [x for x in inputs if _by_single_key(x, unique) and not filters(x) and not read & set(x.names)]
    core = [x for x in inputs if x not in looked_up]
    looked_up, links = _reached(core, looked_up, names, unique)
    core = [x for x in inputs if x not in looked_up]
    own = {f.name: f.dtype for x in core for f in x.schema}
    if not looked_up or not core or not all(a in groups or b in groups for a, b in links):
        return None
    if not all(g.expr.column in own or comes_back(g.expr.dtype) for g in node.groups):
        return None
    inside = [c for c in conditions if c.inputs <= set(own)]
    outside = [c for c in conditions if not c.inputs <= set(own)]
    keys = dict.fromkeys([name for name in groups if name in own] + [a for a, _ in links])
    taken = set(keys).union(*(x.names for x in looked_up))
    needed = frozenset[str]().union(*(c.inputs for c in outside)) & set(own)
    equal = all(c.op == "=" and all(arg.column is not None for arg in c.args) for c in outside)
    if not equal or not needed <= set(keys) or any(a.name in taken for a in node.aggs) or not connected(core, inside):
        return None
    grouped = Aggregate(joined(core, inside), tuple(Item(name, col(name, own[name])) for name in keys), node.aggs)
    shown = [Item(g.name, g.expr) for g in node.groups] + [Item(a.name, col(a.name, a.dtype)) for a in node.aggs]
    return Project(joined([grouped, *looked_up], outside), tuple(shown))


def _names(conditions: list[Expr]) -> list[tuple[str, str]]:
    """The columns that must be equal, both ways around."""
    pairs = [tuple(str(a.column) for a in c.args) for c in conditions
             if c.op == "=" and len(c.args) == 2 and all(a.column is not None for a in c.args)]  # fmt: skip
    return [(a, b) for a, b in pairs] + [(b, a) for a, b in pairs]


def _by_single_key(rel: Rel, unique: UniqueKeys) -> str:
    """The column that is the whole key of a relation's table; empty where there is none."""
    types = {f.name: f.dtype for f in rel.schema}
    found = [next(iter(key)) for key in keys_of(rel, unique) if len(key) == 1]
    return next((name for name in found if is_exact(types[name])), "")


def _reached(
    core: list[Rel], candidates: list[Rel], names: list[tuple[str, str]], unique: UniqueKeys
) -> tuple[list[Rel], list[tuple[str, str]]]:
    """The inputs that are looked up from the core, or from each other, and how the core names their keys."""
    own = {name for x in core for name in x.names}
    known, found, links = set(own), list[Rel](), list[tuple[str, str]]()
    more = True
    while more:
        more = False
        for rel in (x for x in candidates if x not in found):
            key = _by_single_key(rel, unique)
            asks = [a for a, b in names if b == key and a in known]
            if asks:
                found.append(rel)
                known |= set(rel.names)
                links += [(a, key) for a in asks if a in own][:1]
                more = True
    return found, links

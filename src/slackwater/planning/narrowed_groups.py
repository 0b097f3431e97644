"""Rewrite: an aggregate that is joined with few keys of a table computes the groups of these keys only.

before:  P ⋈ γ[k; f(x)](R) on p.k = k, where k is the key of P's table and P has few of its rows
after:   P ⋈ γ[k; f(x)](π[R](R ⋈ π[k AS k'](P) on k = k')) on p.k = k

A group of another key has no row to be joined with. So the state of the aggregate has as many groups as P has rows, and
a refresh touches only these. Precondition: the join is an inner one, and P has each key once, so that R's rows stay as
many as they are. Counter-example: an outer join that keeps the groups has those of other keys in its result.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from operator import is_

from slackwater.algebra.expressions import Expr, call, col
from slackwater.algebra.nodes import Aggregate, Filter, Item, Join, Project, Rel, pass_through
from slackwater.planning.join_groups import UniqueKeys, flatten, keys_of, with_inputs
from slackwater.planning.join_order import LeafRows
from slackwater.planning.lookups import is_exact

FEW = 0.2
"""The share of a table's rows up to which it pays to look for them first."""


def narrow_groups(plan: Rel, leaf_rows: LeafRows, base_rows: LeafRows, unique: UniqueKeys) -> Rel:
    """Apply the rewrite to every group of joined inputs."""
    taken = {name for node in plan.walk() for name in node.names}

    def few(rel: Rel) -> bool:
        return base_rows(rel) > 0 and leaf_rows(rel) <= FEW * base_rows(rel)

    def visit(node: Rel) -> Rel:
        if isinstance(node, Join) or (isinstance(node, Project) and isinstance(node.child, Join)):
            inputs, conditions = flatten(node)
            keyed = {key: rel for rel in inputs if few(rel) for key in _single_keys(rel, unique)}
            return with_inputs(node, [visit(_narrowed(rel, conditions, keyed, taken)) for rel in inputs])
        children = tuple(visit(child) for child in node.children)
        return node if all(map(is_, children, node.children)) else node.with_children(children)

    return visit(plan)


def _single_keys(rel: Rel, unique: UniqueKeys) -> list[str]:
    """The column that is the key of a relation's table, where it is one."""
    types = {f.name: f.dtype for f in rel.schema}
    return [name for key in keys_of(rel, unique) if len(key) == 1 for name in key if is_exact(types[name])]


def _narrowed(rel: Rel, conditions: list[Expr], keyed: Mapping[str, Rel], taken: set[str]) -> Rel:
    for one, two in _equal_columns(conditions):
        for ours, other in ((one, two), (two, one)):
            if ours in rel.names and other in keyed and keyed[other] is not rel:
                made = _restricted(rel, ours, keyed[other], other, taken)
                if made is not None:
                    return made
    return rel


def _equal_columns(conditions: list[Expr]) -> list[tuple[str, str]]:
    found = []
    for term in conditions:
        if term.op == "=" and len(term.args) == 2 and all(a.column is not None for a in term.args):
            found.append((str(term.args[0].column), str(term.args[1].column)))
    return found


def _restricted(rel: Rel, column: str, keys: Rel, key: str, taken: set[str]) -> Rel | None:
    """The relation with its aggregate over rows of these keys alone; None where the column is no group of one."""
    if isinstance(rel, Filter):
        below = _restricted(rel.child, column, keys, key, taken)
        return None if below is None else Filter(below, rel.predicate)
    if isinstance(rel, Project):
        named = {i.name: i.expr.column for i in rel.items}
        inner = named.get(column)
        below = _restricted(rel.child, inner, keys, key, taken) if inner is not None else None
        return None if below is None else Project(below, rel.items)
    if not isinstance(rel, Aggregate):
        return None
    group = next((g for g in rel.groups if g.name == column and g.expr.column is not None), None)
    if group is None:
        return None
    dtype = next(f.dtype for f in keys.schema if f.name == key)
    if group.expr.dtype != dtype:
        return None
    name = _fresh(key, taken)
    wanted = Project(keys, (Item(name, col(key, dtype)),))
    joined = Join(rel.child, wanted, call("=", group.expr, col(name, dtype), dtype="boolean"))
    return Aggregate(Project(joined, pass_through(rel.child.schema)), rel.groups, rel.aggs)


def _fresh(wish: str, taken: set[str]) -> str:
    name = next(f"{wish}_{n}" for n in count(2) if f"{wish}_{n}" not in taken)
    taken.add(name)
    return name

"""D and F of a whole plan: the recursion that puts the operator families together and writes the program's steps."""

from __future__ import annotations

import math
from dataclasses import replace

from slackwater.algebra.aggregates import Combine
from slackwater.algebra.first_rows import First
from slackwater.algebra.joins import KeyedJoin, MatchJoin
from slackwater.algebra.lookups import LookupJoin
from slackwater.algebra.multi_join import MultiJoin
from slackwater.algebra.nodes import (
    Aggregate,
    Difference,
    Input,
    Join,
    Linearity,
    Opaque,
    Rel,
    Scan,
    TopK,
    plain_bag,
    union,
)  # fmt: skip
from slackwater.algebra.partials import AggChange, Finish, Partial, partial_schema
from slackwater.algebra.printer import node_key
from slackwater.algebra.scalars import ScalarFilter
from slackwater.algebra.windows import Window
from slackwater.delta import aggregate as agg
from slackwater.delta.environment import Asks, Environment, Purpose
from slackwater.delta.first_rows import first_rows
from slackwater.delta.indexed import build_index, keep_indexes, probed_full
from slackwater.delta.join import join_delta
from slackwater.delta.linear import linear_delta
from slackwater.delta.lookup import keep_waiting, lookup_delta
from slackwater.delta.matching import Sides, keyed_join_delta
from slackwater.delta.multi_join import multi_join_delta
from slackwater.delta.scalar import scalar_filter_delta
from slackwater.delta.window import WHOLE, window_delta

RESULT = "sw@result"
"""The input that stands for the view's last committed result."""


def delta(node: Rel, env: Environment) -> Rel | None:
    """D: the change of a node's output; None where nothing below it changed."""
    if not env.touches(node):
        return None
    slot = (node_key(node), "D")
    if slot not in env.memo:
        env.memo[slot] = _keep_change(node, _delta(node, env), env)
    return env.memo[slot]


def full(node: Rel, env: Environment, at: str) -> Rel:
    """F: the whole output of a node at the old or the new version."""
    if not env.initial and not env.touches(node):
        at = "old"
    key = node_key(node)
    slot = (key, f"F.{at}")
    if slot not in env.memo:
        env.memo[slot] = _full(node, key, env, at)
    found = env.memo[slot]
    assert found is not None  # noqa: S101 - a full output is never empty by construction
    return found


def _delta(node: Rel, env: Environment) -> Rel | None:
    if isinstance(node, Scan):
        change = env.changes[node.table]
        return Scan(node.table, node.fields, node.positions, "delta", change.deleted > 0)
    if node.linearity is Linearity.LINEAR:
        return linear_delta(node, tuple(delta(child, env) for child in node.children))
    if isinstance(node, LookupJoin):
        return lookup_delta(node, env, lookup_asks(env))
    if isinstance(node, Join):
        return _join(node, env)
    if isinstance(node, MultiJoin):
        return multi_join_delta(node, env, Asks(lambda x: _shared(x, env), lambda x, at: full(x, env, at)))
    if isinstance(node, KeyedJoin):
        return _keyed_join(node, env)
    if isinstance(node, Aggregate):
        return _aggregate(node, env)
    if isinstance(node, ScalarFilter):
        return _scalar_filter(node, env)
    if isinstance(node, Window) and not node.whole:
        return _window(node, env)
    return _compared(node, env)


def _compared(node: Rel, env: Environment) -> Rel:
    """Compare the two full outputs: orderings, windows without PARTITION BY, and what the algebra cannot follow.

    The new one is computed from the inputs, never from the node's own state: that would ask for this delta again.
    """
    return Difference(_plain_full(node, env, "new"), full(node, env, "old"))


def _scalar_filter(node: ScalarFilter, env: Environment) -> Rel | None:
    new = plain_bag(full(node.scalar, env, "new"))
    old = None
    if env.touches(node.scalar):
        new = env.add_step(f"scalar_{node_key(node)}", new, Purpose.SHARE)
        old = plain_bag(full(node.scalar, env, "old"))
    return scalar_filter_delta(node, delta(node.child, env), full(node.child, env, "old"), old, new)


def _window(node: Window, env: Environment) -> Rel | None:
    child = delta(node.child, env)
    if child is None:
        return None
    key = node_key(node)
    keys = env.add_step(f"touched_{key}", child, Purpose.SHARE)
    given_out = env.state(key, node.schema) if key in env.states else None
    old = full(node.child, env, "old") if given_out is None else None
    small = env.estimate(node.child) <= env.small
    return window_delta(node, keys, old, full(node.child, env, "new"), given_out, small=small)


def _keep_change(node: Rel, change: Rel | None, env: Environment) -> Rel | None:
    """Where the node's state lives on, its delta becomes a step: a segment of the state, used above as well."""
    key = node_key(node)
    if change is None or isinstance(node, Aggregate) or key not in env.wanted or key not in env.states:
        return change
    return env.add_step(f"delta_{key}", change, Purpose.APPEND, key)


def _join(node: Join, env: Environment) -> Rel | None:
    left, right = delta(node.left, env), delta(node.right, env)
    old_left = full(node.left, env, "old")
    new_right = full(node.right, env, "new")
    return join_delta(
        node, left, right, old_left, new_right,
        env.side_of_change(node.left, node.right, ("left", "right")),
        env.side_of_change(node.right, node.left, ("right", "left")),
    )  # fmt: skip


def lookup_asks(env: Environment) -> Asks:
    """What the rules for lookups ask of all the others."""
    return Asks(lambda x: delta(x, env), lambda x, at: full(x, env, at))


def _keyed_join(node: KeyedJoin, env: Environment) -> Rel | None:
    sides = Sides(
        _shared(node.left, env), _shared(node.right, env), full(node.left, env, "old"), full(node.right, env, "new"),
        env.estimate(node.left) <= env.small, env.estimate(node.right) <= env.small,
    )  # fmt: skip
    return keyed_join_delta(node, sides, env)


def _shared(node: Rel, env: Environment) -> Rel | None:
    """D as a step of its own, for those who read it more than once."""
    change = delta(node, env)
    if change is None or isinstance(change, Input):
        return change
    slot = (node_key(node), "D.shared")
    if slot not in env.memo:
        env.memo[slot] = env.add_step(f"change_{slot[0]}", change, Purpose.SHARE)
    return env.memo[slot]


def _aggregate(node: Aggregate, env: Environment) -> Rel | None:
    change, redo = _partial_change(node, env)
    if change is None:
        child = delta(node.child, env)
        if child is None:
            return None
        keys = env.add_step(f"touched_{node_key(node)}", child, Purpose.SHARE)
        return agg.redo_delta(node, keys, full(node.child, env, "old"), full(node.child, env, "new"),
                              small=_small(node, env))  # fmt: skip
    key = node_key(node)
    restrict = bool(node.groups) and env.rows.get(key, env.small) > env.scan_all
    return AggChange(env.state(key, partial_schema(node)), change, redo, node, restrict and _small(node, env))


def _small(node: Aggregate, env: Environment) -> bool:
    """Whether the touched groups are few enough to be broadcast."""
    return env.estimate(node.child) <= env.small


def _partial_change(node: Aggregate, env: Environment) -> tuple[Input | None, Rel | None]:
    """The change of the kept partial rows, and the redone groups; computed once for D and F."""
    key = node_key(node)
    if key not in env.states:
        return None, None
    slots = ((key, "dP"), (key, "R"))
    if slots[0] not in env.memo:
        change, redo = _new_partials(node, key, env)
        env.memo[slots[0]], env.memo[slots[1]] = change, redo
    kept, fresh = (env.memo[s] for s in slots)
    assert kept is None or isinstance(kept, Input)  # noqa: S101 - steps are inputs
    return kept, fresh


def _new_partials(node: Aggregate, key: str, env: Environment) -> tuple[Input | None, Rel | None]:
    child = delta(node.child, env)
    if child is None:
        return None, None
    state = env.state(key, partial_schema(node))
    kept = node.combine is Combine.KEPT
    if not (kept or (child.weighted and node.combine is Combine.MERGEABLE)):
        purpose = Purpose.APPEND if key in env.wanted else Purpose.SHARE
        return env.add_step(f"delta_{key}", Partial(child, node), purpose, key), None
    if any(a.user for a in node.aggs) and not isinstance(child, Input):
        child = env.add_step(f"change_of_{key}", child, Purpose.SHARE)  # its rows come and go by themselves: read twice
    change = env.add_step(f"delta_{key}", Partial(child, node, count_deletes=True), Purpose.SHARE, key)
    redo = agg.redone(node, change, full(node.child, env, "new"), small=_small(node, env))
    redo = env.add_step(f"redo_{key}", redo, Purpose.SHARE, key)
    which = "with a changed row" if kept else "that lost a row"
    env.reasons[key] = f"groups {which} are redone: " + ", ".join(
        a.func for a in node.aggs if a.combine >= node.combine
    )
    if key in env.wanted:
        state_after = agg.replaced_state(node, state, change, redo, small=_small(node, env))
        env.add_step(f"state_{key}_new", state_after, Purpose.REPLACE, key)
    return change, redo


def _full(node: Rel, key: str, env: Environment, at: str) -> Rel:
    if key in env.states:
        return _from_state(node, key, env, at)
    latest = at == "new" or not (env.initial or env.touches(node))
    if isinstance(node, Aggregate):
        return _aggregate_full(node, key, env, at, latest)
    built = _plain_full(node, env, at)
    if key in env.wanted and latest:
        return env.add_step(f"state_{key}", built, Purpose.BUILD, key)
    return built


def _plain_full(node: Rel, env: Environment, at: str) -> Rel:
    if isinstance(node, Scan):
        return Scan(node.table, node.fields, node.positions, at)
    if isinstance(node, Opaque):
        return node
    if isinstance(node, MultiJoin):
        return _multi_join_full(node, env, at)
    if isinstance(node, Window) and node.whole:
        env.reasons[node_key(node)] = WHOLE
    if isinstance(node, LookupJoin) and at == "new":
        _share_full(node, env)
        if node.index is not None:
            build_index(node.index, env, lookup_asks(env))
    if isinstance(node, LookupJoin):
        found = probed_full(node, env, lookup_asks(env), at)
        if found is not None:
            return found
    if isinstance(node, Join):
        sent = env.side_to_send(node.left, node.right)
        return Join(full(node.left, env, at), full(node.right, env, at), node.condition, sent)
    children = (full(child, env, at) for child in node.children)
    whole = node.with_children(tuple(plain_bag(c) if i in node.plain_inputs else c for i, c in enumerate(children)))
    if isinstance(whole, MatchJoin) and isinstance(node, MatchJoin) and not math.isinf(env.to_send(node.right)):
        return replace(whole, broadcast=True)
    return whole


def _share_full(node: LookupJoin, env: Environment) -> None:
    """Where what waits will be built from the rows as well, compute them once, unless they are a table or a state."""
    key = node_key(node.waiting)
    if key not in env.wanted or key in env.states:
        return
    found = full(node.rows, env, "new")
    if any(isinstance(x, Join) for x in found.walk()):
        key = node_key(node.rows)
        env.memo[key, "F.new"] = env.add_step(f"full_{key}", found, Purpose.SHARE)


def _multi_join_full(node: MultiJoin, env: Environment, at: str) -> Rel:
    """A join of many, in passing by the parts that are to be kept: not all of them are on the way to the whole."""
    for view in node.views if at == "new" else ():
        if node_key(view) in env.wanted:
            full(view, env, at)
    return node.full(lambda part: full(part, env, at))


def _aggregate_full(node: Aggregate, key: str, env: Environment, at: str, latest: bool) -> Rel:
    child = plain_bag(full(node.child, env, at))
    if key in env.wanted and latest:
        state = env.add_step(f"state_{key}", Partial(child, node), Purpose.BUILD, key)
        return Finish(state, node)
    return node.with_children((child,))


def _from_state(node: Rel, key: str, env: Environment, at: str) -> Rel:
    if isinstance(node, Aggregate):
        state = env.state(key, partial_schema(node))
        if at == "old":
            return Finish(state, node)
        change, redo = _partial_change(node, env)
        if change is None:
            return Finish(state, node)
        if redo is not None:
            return Finish(agg.replaced_state(node, state, change, redo, small=_small(node, env)), node)
        return Finish(union(state, agg.plain_partials(node, change)), node)
    if isinstance(node, First):
        return first_rows(node, key, delta(node.child, env) if at == "new" else None, env, at)
    state = env.state(key, node.schema)
    arrived = delta(node, env) if at == "new" else None
    return state if arrived is None else union(state, arrived)


def repeatable(node: Rel) -> bool:
    """Whether a node's old output can be computed again, bit by bit."""
    return not isinstance(node, Aggregate | Window) or node.repeatable


def keeps_state(node: Rel) -> bool:
    """Whether a node is an aggregate whose partial rows can be kept: what it reads can be computed again."""
    return isinstance(node, Aggregate) and agg.keeps_partials(node) and all(map(repeatable, node.child.walk()))


def difference(root: Rel, env: Environment) -> Rel:
    """The new result against the last one."""
    return Difference(full(root, env, "new"), Input(RESULT, root.schema, env.signed_result))


def _whole_at_the_top(root: Rel) -> bool:
    """Whether nothing but projections and filters stands above an ordering or a window without PARTITION BY."""
    while root.linearity is Linearity.LINEAR and len(root.children) == 1:
        root = root.children[0]
    return isinstance(root, TopK) or (isinstance(root, Window) and root.whole)


def has_delta(root: Rel) -> bool:
    """Whether a view's change can be had from the delta of its plan.

    What is redone as a whole at the top compares with the last result instead of redoing the old side. So do
    floating-point aggregates: a sum that is added up again in another order differs in its last digits, and would not
    be taken back.
    """
    return not isinstance(root, Opaque) and not _whole_at_the_top(root) and all(map(repeatable, root.walk()))


def compares_results(root: Rel) -> bool:
    """Whether a refresh must compare the new result with the last one."""
    return not has_delta(root)


def result_delta(root: Rel, env: Environment, *, compare: bool = False) -> Rel | None:
    """The change of a view's result: D of its root, or the new result against the last one."""
    if not isinstance(root, Opaque) and not env.touches(root):
        return None
    return difference(root, env) if compare or not has_delta(root) else delta(root, env)


def build_missing(root: Rel, env: Environment) -> None:
    """Build the states that are wanted next and that nothing has asked for so far."""
    for node in root.walk():
        key = node_key(node)
        if key in env.wanted and (key not in env.states or isinstance(node, First)):
            full(node, env, "new")
    keep_beside(root, env)


def keep_beside(root: Rel, env: Environment) -> None:
    """Build or carry on what joins keep beside the outputs of operators: what waits, and indexes."""
    keep_waiting(root, env, lookup_asks(env))
    keep_indexes(root, env, lookup_asks(env))

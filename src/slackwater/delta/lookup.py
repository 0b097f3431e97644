"""Joins that look up a key: what arrives on the side that is looked up meets only the rows that wait for a match.

    D(R ⋈ B)  =  D(R) ⋈ F_new(B)   ∪   W ⋈ D(B)          W' = W ∪ D(R)

where W holds at least the rows of F_old(R) whose key is not settled (see `algebra/lookups.py`), and the rest of it
matches nothing in D(B). So W may hold rows that have been settled since, and deletes of rows that it never held: they
wait in vain. From time to time, and whenever it is built, it is cut down to what waits indeed.

Precondition: nothing was deleted from the tables of B since W was built. A refresh that finds deletes there, updates
included, takes F_old(R) in W's place, and W is built anew.

Counter-examples to less:

* Deletes seen in D(B) only, not in its tables: an order that a filter rejects is deleted, and its line is settled. When
  the order comes back and passes the filter, nothing waits for it.
* Keys that are settled by the filtered side: every line whose order a filter rejects would wait for ever.
* Without a key: a second row of B can match what has been settled by the first.
"""

from __future__ import annotations

from slackwater.algebra.lookups import RIGHT, LookupJoin, Waiting, unsettled
from slackwater.algebra.nodes import Input, Rel, Scan, union
from slackwater.algebra.printer import node_key
from slackwater.delta.environment import Asks, Environment, Purpose
from slackwater.delta.indexed import change_of_index, probed

BROADCAST_KEYS = 3_000_000
"""The keys of a table of so many rows are sent to every task when what waits is looked for."""


def lookup_delta(node: LookupJoin, env: Environment, asks: Asks) -> Rel | None:
    """The two terms; old rows are met in full only where nothing says which of them wait."""
    came = change_of_rows(node.waiting, env, asks)
    arrived = change_of_index(node.index, env, asks) if node.index is not None else asks.change(node.looked_up)
    terms: list[Rel] = []
    right = node.keyed == RIGHT
    found = probed(node, came, env, asks) if came is not None else None
    if found is not None:
        terms.append(found)
    elif came is not None:
        new = asks.full(node.looked_up, "new")
        sent = env.side_of_change(node.rows, node.looked_up, ("left", "right") if right else ("right", "left"))
        terms.append(node.plain(came, new, sent) if right else node.plain(new, came, sent))
    if arrived is not None:
        old = _waiting_before(node.waiting, env) or asks.full(node.rows, "old")
        small = ("right" if right else "left") if env.estimate(node.looked_up) <= env.small else ""
        terms.append(node.plain(old, arrived, small) if right else node.plain(arrived, old, small))
    return union(*terms) if terms else None


def steady(node: Waiting, env: Environment) -> bool:
    """Whether what waits is known, and nothing was deleted from where its matches come from."""
    return node_key(node) in env.states and not any(
        change.deleted for table, change in env.changes.items() if table in node.tables
    )


def _waiting_before(node: Waiting, env: Environment) -> Input | None:
    return env.state(node_key(node), node.schema) if steady(node, env) else None


def change_of_rows(node: Waiting, env: Environment, asks: Asks) -> Rel | None:
    """D of the rows; where they will wait, as the step that adds them to those that do."""
    key = node_key(node)
    slot = (key, "D")
    if slot not in env.memo:
        change = asks.change(node.rows)
        if change is not None and key in env.wanted and steady(node, env):
            if key in env.settle:
                change = change if isinstance(change, Input) else env.add_step(f"came_{key}", change, Purpose.SHARE)
            else:
                change = env.add_step(f"delta_{key}", change, Purpose.APPEND, key)
        env.memo[slot] = change
    return env.memo[slot]


def waiting_full(node: Waiting, env: Environment, asks: Asks, at: str) -> Rel:
    """At least what waits at a version: from the state where it can be trusted, else from the tables."""
    key = node_key(node)
    slot = (key, f"W.{at}")
    if slot not in env.memo:
        env.memo[slot] = _waiting(node, key, env, asks, at)
    found = env.memo[slot]
    assert found is not None  # noqa: S101 - just made
    return found


def _waiting(node: Waiting, key: str, env: Environment, asks: Asks, at: str) -> Rel:
    state = _waiting_before(node, env)
    if state is not None:
        change = change_of_rows(node, env, asks) if at == "new" else None
        if change is None:
            return state
        if key in env.wanted and key in env.settle:
            settled = _cut_down(node, union(state, change), env, asks, at)
            return env.add_step(f"state_{key}_new", settled, Purpose.REPLACE, key)
        return union(state, change)
    built = _cut_down(node, asks.full(node.rows, at), env, asks, at)
    if at == "new" and key in env.wanted:
        purpose = Purpose.BUILD if key not in env.states else Purpose.REPLACE
        return env.add_step(f"state_{key}_new", built, purpose, key)
    return built


def _cut_down(node: Waiting, rows: Rel, env: Environment, asks: Asks, at: str) -> Rel:
    path = node.path
    version = at if env.initial or path.scan.table in env.changes else "old"
    table = Scan(path.scan.table, path.scan.fields, path.scan.positions, version)
    waiting = [waiting_full(lookup.waiting, env, asks, at) for lookup, _ in path.lookups]
    few = env.tables.get(path.scan.table, BROADCAST_KEYS + 1) <= BROADCAST_KEYS
    return unsettled(node, rows, table, waiting, broadcast=few)


def keep_waiting(plan: Rel, env: Environment, asks: Asks) -> None:
    """See that everything wanted that waits is there after the refresh, and right."""
    for node in plan.keepable():
        if isinstance(node, Waiting) and node_key(node) in env.wanted:
            before = _waiting_before(node, env)
            if before is not None and change_of_rows(node, env, asks) is None:
                env.carried.add(node_key(node))
            else:
                waiting_full(node, env, asks, "new")

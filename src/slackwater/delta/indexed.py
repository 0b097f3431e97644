"""Joins that look up a key in an index: what comes is looked up at once, and the side that is looked up is not read.

    D(R) ⋈ F_new(B)  =  D(R) ⋈ (I ∪ S ∪ D(B))          S' = S ∪ D(B)

where the index I holds the rows of B as of some earlier version, by key, and S what has come since. Rows that ask pass
by; nothing waits for them to be sent anywhere, so that any number of lookups is one pass.

Where S or D(B) has deletes, a key can have several rows, some of which take others back. Then the rows that ask meet
the index and what came since one after the other, and the weights add up:

    D(R) ⋈ I   ∪   D(R) ⋈ (S ∪ D(B))

Who asks for the join as a whole, its old output or its new one, has it the same way:

    F_old(R ⋈ B)  =  F_old(R) ⋈ (I ∪ S)

An index is never changed. When much has come since it was made, it is made anew.
"""

from __future__ import annotations

from slackwater.algebra.lookups import RIGHT, Indexed, LookupJoin, Probe
from slackwater.algebra.nodes import Input, Rel, plain_bag, union
from slackwater.algebra.printer import node_key
from slackwater.delta.environment import Asks, Environment, Purpose


def probed(node: LookupJoin, came: Rel, env: Environment, asks: Asks) -> Rel | None:
    """What came with its matches, by the index; None where there is none at hand."""
    index = node.index
    if index is None or node_key(index) not in env.states:
        return None
    key = node_key(index)
    held = Input(f"index_{key}", index.fields)
    since = _since(index, key, env, asks)
    if since is None or not since.weighted:
        return Probe(came, held, since, node)
    if not isinstance(came, Input):
        came = env.add_step(f"asks_{key}", came, Purpose.SHARE)
    later = node.plain(came, since, "right") if node.keyed == RIGHT else node.plain(since, came, "left")
    return union(Probe(came, held, None, node), later)


def probed_full(node: LookupJoin, env: Environment, asks: Asks, at: str) -> Rel | None:
    """The whole output at a version, by the index; None where there is none at hand, or deletes have come to it."""
    index = node.index
    if index is None or node_key(index) not in env.states:
        return None
    key = node_key(index)
    since = _since(index, key, env, asks) if at == "new" else _since_before(index, key, env)
    if since is not None and since.weighted:
        return None  # it would read the rows that ask twice
    return Probe(asks.full(node.rows, at), Input(f"index_{key}", index.fields), since, node)


def _since_before(index: Indexed, key: str, env: Environment) -> Rel | None:
    return Input(f"since_{key}", index.schema, env.states[key]) if key in env.since else None


def _since(index: Indexed, key: str, env: Environment, asks: Asks) -> Rel | None:
    parts = [part for part in (_since_before(index, key, env), change_of_index(index, env, asks)) if part is not None]
    return union(*parts) if parts else None


def change_of_index(index: Indexed, env: Environment, asks: Asks) -> Rel | None:
    """D of the rows; where the index lives on, as the step that adds them to what came since."""
    key = node_key(index)
    slot = (key, "D")
    if slot not in env.memo:
        change = asks.change(index.rows)
        if change is not None and key in env.states and key in env.wanted and key not in env.settle:
            change = env.add_step(f"delta_{key}", change, Purpose.APPEND, key)
        env.memo[slot] = change
    return env.memo[slot]


def build_index(index: Indexed, env: Environment, asks: Asks) -> None:
    """Make an index that is wanted and not there, or that is to be made anew; who reads all rows now reads its rows."""
    key = node_key(index)
    slot = (key, "F.new")
    if key not in env.wanted or slot in env.memo or (key in env.states and key not in env.settle):
        return
    rows = plain_bag(asks.full(index.rows, "new"))
    purpose = Purpose.BUILD if key not in env.states else Purpose.REPLACE
    env.memo[slot] = env.memo[node_key(index.rows), "F.new"] = env.add_step(f"index_{key}_new", rows, purpose, key)


def keep_indexes(plan: Rel, env: Environment, asks: Asks) -> None:
    """See that every index that is wanted is there after the refresh, and has all rows."""
    for node in plan.keepable():
        if isinstance(node, Indexed) and node_key(node) in env.wanted:
            build_index(node, env, asks)
            if node_key(node) in env.states:
                change_of_index(node, env, asks)

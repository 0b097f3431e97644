"""Equal states of several views are kept once.

Two states are equal if they are outputs of the same plan node, under the same pinned settings and the same code of
user-defined functions, over tables that have not changed between the versions of the two views. A new view starts with
those that others have, and after every refresh a view takes the rows of another over in place of its own copy. Rows in
use are never released.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from slackwater.algebra.lookups import Waiting
from slackwater.algebra.nodes import Scan
from slackwater.algebra.printer import node_key
from slackwater.execution.leaves import leaves
from slackwater.execution.states import State, StateSegment, release

if TYPE_CHECKING:
    from slackwater.engine import Engine
    from slackwater.view import View


def release_unused(engine: Engine, segments: Iterable[StateSegment]) -> None:
    """Give the memory of rows back that no view has a state in any more."""
    used = {i for view in engine.loaded_views() for state in view.states.values() for i in state.rdd_ids()}
    unused = [s for s in segments if s.rdd_id not in used]
    release(unused)
    for segment in unused:
        engine.segment_bytes.pop(segment.rdd_id, None)


def rows_of(states: Iterable[State]) -> frozenset[int]:
    """Spark's numbers for the rows of some states."""
    return frozenset(i for state in states for i in state.rdd_ids())


def bytes_of(views: Iterable[View], borne: frozenset[int] = frozenset()) -> int:
    """What the states of some views occupy; rows that several share count once, those that others bear not at all."""
    total, counted = 0, set(borne)
    for view in views:
        measured = view.known_bytes()
        for key in view.kept:
            total += _bytes_beside(view, key, measured.get(key, 0), counted)
            counted |= view.states[key].rdd_ids() if key in view.states else frozenset()
    return total


def _bytes_beside(view: View, key: str, measured: int, counted: set[int]) -> int:
    """The bytes of a state's rows that are not counted yet; where some are not known singly, those of all."""
    if key not in view.states:
        return measured
    singly = view.engine.segment_bytes
    sizes = [s.elsewhere or singly.get(s.rdd_id) for s in view.states[key].segments if s.rdd_id not in counted]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else measured


def bytes_of_others(engine: Engine, own: View | None, mine: frozenset[int] | None = None) -> int:
    """What the states of all other views occupy; rows that `own` uses too, or `mine`, are its own."""
    if mine is None:
        mine = rows_of(own.states.values()) if own is not None else frozenset()
    ident = own.id if own is not None else None
    return bytes_of((view for view in engine.loaded_views() if view.id != ident), mine)


def equal_states(view: View, version: int) -> dict[str, State]:
    """The states of other views that are what this one would have at a version."""
    if not view.engine.share_states:
        return {}
    others = [v for v in view.engine.loaded_views() if v.id != view.id and v.states and _computes_alike(v, view)]
    if not others:
        return {}
    present = {node_key(node): node for node in view.plan.keepable()}
    found: dict[str, State] = {}
    changed: dict[tuple[str, int], bool] = {}
    for other in others:
        for key in other.states.keys() & present.keys() - found.keys():
            state = other.states[key]
            tables = {scan.table for scan in present[key].walk() if isinstance(scan, Scan)}
            for table in tables:
                if (table, other.version) not in changed:
                    changed[table, other.version] = _changed(view.engine, table, other.version, version)
            if not any(changed[table, other.version] for table in tables) and _is_free(state):
                found[key] = state
    return found


def share_equal(view: View) -> None:
    """Take the rows of other views' equal states over in place of copies of this view's own."""
    doubles = [s for key, state in equal_states(view, view.version).items() if key in view.states
               for s in view.take_over(key, state)]  # fmt: skip
    release_unused(view.engine, doubles)


def replace_everywhere(view: View, old: State, merged: State) -> None:
    """A state was compacted: whoever shares all its rows has the merged ones instead.

    Of rows that wait in a lookup those are left out that have found their match by the version of `view`: they serve
    views of that version only.
    """
    settled = isinstance(view.state_node(old.key), Waiting)
    for other in (view, *view.engine.loaded_views()):
        held = other.states.get(old.key)
        if held is None or held.segments != old.segments or (settled and other.version != view.version):
            continue
        other.states[old.key] = merged


def _computes_alike(other: View, view: View) -> bool:
    """Whether the same node means the same rows: settings agree, and the code of functions that both call."""
    now = view.engine.functions.records(view.functions)
    return other.settings == view.settings and all(now.get(n, was) == was for n, was in other.functions.items())


def _is_free(state: State) -> bool:
    """Whether the rows hang on nothing that goes with the view that has them."""
    return not any(segment.from_disk for segment in state.segments)


def _changed(engine: Engine, table: str, one: int, two: int) -> bool:
    (leaf,) = leaves(engine, [table]).values()
    return bool(engine.catalog.segments_between(leaf.owner, min(one, two), max(one, two)))

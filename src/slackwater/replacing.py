"""Changing a view's query: which states live on, which would be lost, and the one commit that swaps old for new.

A state is the output of a plan node. Where the new plan has the same node (by its key), under the same settings, and no
table below it has changed since the state was made, the state is taken over as it is. All else is thrown away, and that
is asked for first.

The new view is computed beside the old one, which stays readable. The commit of its first result drops the old view and
records the new one under its name: whatever happens, there is the old view or the new one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slackwater.algebra.nodes import Opaque, Scan
from slackwater.algebra.printer import node_key
from slackwater.algebra.serialize import to_json
from slackwater.arrivals.watching import watch
from slackwater.capture import Captured
from slackwater.errors import ViewError
from slackwater.execution.equal_states import release_unused
from slackwater.execution.fitting import beyond_own, fit_all, too_large
from slackwater.execution.leaves import inputs_of, leaves, refuse_while_read, views_read
from slackwater.execution.plan_shape import made_for_another_strategy
from slackwater.execution.refresh import Refresher
from slackwater.execution.reports import table_html
from slackwater.settings import show_bytes
from slackwater.storage.records import ViewRecord
from slackwater.view import View

if TYPE_CHECKING:
    from slackwater.engine import Engine


@dataclass(frozen=True, slots=True)
class HeldState:
    """A state: what it is, its bytes (estimated where it is yet to be built), and why it lives on, is lost or built."""

    key: str
    label: str
    bytes: int
    why: str


@dataclass(frozen=True, slots=True)
class Replacement:
    """What replacing a view does to its states.

    Attributes:
        view: the view's name.
        same_query: the query is the same, so that its result is kept, and all states that are not lost.
        reused: states that the new view takes over.
        lost: states that are thrown away.
        rebuilt: states that the new view wants and that are not there yet.
        altered: the query is the same, and something else that is declared is not.
    """

    view: str
    same_query: bool
    reused: tuple[HeldState, ...] = ()
    lost: tuple[HeldState, ...] = ()
    rebuilt: tuple[HeldState, ...] = ()
    altered: bool = False

    @property
    def lost_bytes(self) -> int:
        """What would have to be built again."""
        return sum(s.bytes for s in self.lost)

    def to_json(self) -> dict[str, Any]:
        """Plain values for programs."""

        def listed(states: tuple[HeldState, ...]) -> list[dict[str, Any]]:
            return [{"state": s.label, "bytes": s.bytes, "why": s.why} for s in states]

        return {"view": self.view, "same_query": self.same_query, "altered": self.altered,
                "reused": listed(self.reused), "lost": listed(self.lost), "lost_bytes": self.lost_bytes,
                "rebuilt": listed(self.rebuilt)}  # fmt: skip

    def __str__(self) -> str:
        lines = [f"{self.view}: {self._summary()}"]
        lines += [f"  {word:<7} {show_bytes(s.bytes):>9}  {s.label[:100]}: {s.why}" for word, s in self._listed()]
        return "\n".join(lines)

    def _summary(self) -> str:
        if not self.same_query:
            return (f"{len(self.reused)} states are reused, {len(self.lost)} are lost,"
                    f" {len(self.rebuilt)} are rebuilt")  # fmt: skip
        kept = f"is kept, {len(self.lost)} states are lost" if self.lost else "and states are kept"
        return f"the query is the same; its result {kept}"

    def _listed(self) -> list[tuple[str, HeldState]]:
        named = (("reused", self.reused), ("lost", self.lost), ("rebuilt", self.rebuilt))
        return [(word, state) for word, states in named for state in states]

    def _repr_html_(self) -> str:
        states = self._listed()
        return table_html({
            self.view: [s.label for _, s in states],
            "bytes": [s.bytes for _, s in states],
            "": [word for word, _ in states],
            "why": [s.why for _, s in states],
        })  # fmt: skip


def plan_replacement(
    engine: Engine, old: View, captured: Captured, settings: Mapping[str, str], options: Mapping[str, Any]
) -> tuple[View, Replacement]:
    """The new view, not yet in the catalog, and what becomes of the old one's states; changes nothing."""
    query = json.dumps({"sql": captured.sql, "columns": captured.columns, "order": captured.order})
    record = ViewRecord(old.id, old.name, query, json.dumps(to_json(captured.plan)), json.dumps(dict(settings)),
                        json.dumps(dict(options)), 0, 0, None)  # fmt: skip
    new = View(engine, record)
    new.take_place_of(old, record)
    old.load_states()
    # Where nothing can come any more, to either view, no state is of use: nobody is asked whether it may go.
    over = all(engine.table(name).complete for name in {*old.tables, *new.tables})
    if _same_query(old, new) and (new.strategy != "rebatch" or old.strategy == "rebatch"):
        gone = () if over else _lost_by_options(old, new)
        return new, Replacement(old.name, True, lost=gone, altered=_altered(old, new, options))
    planned = Refresher(new).plan_first() if new.strategy != "rebatch" else ()
    wanted = frozenset(choice.key for choice in planned)
    present = frozenset(node_key(node) for node in new.plan.keepable())
    reused: list[HeldState] = []
    lost: list[HeldState] = []
    for key in () if over else sorted(old.kept):
        why = _obstacle(old, new, key, present, wanted)
        label = old.label_of(key)
        held = HeldState(key, label, old.known_bytes().get(key, 0), why or "the same rows are needed again")
        (lost if why else reused).append(held)
    there = {state.key for state in reused}
    rebuilt = tuple(
        HeldState(c.key, c.label, c.size, "it is computed with the first result")
        for c in planned if c.key not in there and not over
    )  # fmt: skip
    return new, Replacement(old.name, False, tuple(reused), tuple(lost), rebuilt)


def _same_query(old: View, new: View) -> bool:
    ours = (to_json(old.logical_plan), old.columns, old.order, old.settings, old.functions)
    return ours == (to_json(new.logical_plan), new.columns, new.order, new.settings, new.functions)


def _lost_by_options(old: View, new: View) -> tuple[HeldState, ...]:
    """The states that the same query loses because less room, or another strategy, is declared for it."""
    measured, budget = old.known_bytes(), new.declared.budget_bytes
    gone: dict[str, str] = {}
    if budget is not None and budget != old.declared.budget_bytes:
        gone = {key: too_large(measured.get(key, 0), budget) for key in beyond_own(old, budget)}
    if new.strategy != old.strategy and (why := made_for_another_strategy(old, new.strategy)):
        gone = dict.fromkeys(sorted(old.kept), f"{why}: the next refresh recomputes")
    return tuple(HeldState(key, old.label_of(key), measured.get(key, 0), why) for key, why in gone.items())


def _altered(old: View, new: View, options: Mapping[str, Any]) -> bool:
    before = json.loads(old.engine.catalog.view_by_id(old.id).options_json)
    after = {**before, **json.loads(json.dumps(dict(options)))}
    return bool(before != after or old.sql != new.sql)


def _obstacle(old: View, new: View, key: str, present: frozenset[str], wanted: frozenset[str]) -> str:
    """Why a state cannot be taken over; empty where it can."""
    if new.strategy == "rebatch" or isinstance(new.plan, Opaque):
        return "the new view keeps no states"
    if old.settings != new.settings:
        return "the settings of Spark that the view depends on have changed"
    if any(old.functions.get(name, now) != now for name, now in new.functions.items()):
        return "the code of a function has changed"
    if key not in present:
        return "no operator of the new query computes the same"
    if key not in wanted:
        return "the new view would not keep it"
    node = old.state_node(key)
    tables = {scan.table for scan in node.walk() if isinstance(scan, Scan)} if node is not None else set()
    catalog = old.engine.catalog
    for below in views_read(old.engine, sorted(tables)):
        if watch(below).pending_rows:
            return f"{below.name} has changes to come: refresh the view first"
    for name, read in leaves(old.engine, sorted(tables)).items():
        if catalog.segments_between(read.owner, old.version, catalog.version()):
            return f"{name} has changed since: refresh the view first"
    return ""


def replace_view(
    engine: Engine, old: View, captured: Captured, settings: Mapping[str, str], options: Mapping[str, Any], *,
    discard_states: bool,
) -> View:  # fmt: skip
    """Give a view another query, settings or options; its result is that of the new query when this returns."""
    for below in views_read(engine, inputs_of(captured.plan)):
        below.refresh()  # now, because a refresh after the plan was made would leave reused states behind
    new, replacement = plan_replacement(engine, old, captured, settings, options)
    if not replacement.same_query:
        refuse_while_read(old, "given another query")
    _ask(replacement, discard_states=discard_states)
    if replacement.same_query:
        if replacement.altered:
            _update_options(old, new, options)
        old.replacement = replacement
        return old
    new.inherit({s.key: old.states[s.key] for s in replacement.reused})
    replaced = old.id
    new.refresh()
    new.replacement = replacement
    held = [s for state in old.states.values() for s in state.segments]
    old.forget()
    engine.swap_view(replaced, new)
    release_unused(engine, held)
    return new


def _ask(replacement: Replacement, *, discard_states: bool) -> None:
    """Refuse to throw states away unless that was agreed to."""
    if replacement.lost and not discard_states:
        listed = "; ".join(f"{s.label[:80]} ({s.why})" for s in replacement.lost)
        raise ViewError(
            "STATES_AT_STAKE",
            f"replacing {replacement.view!r} would throw away {len(replacement.lost)} states of"
            f" {show_bytes(replacement.lost_bytes)}: {listed}",
            "agree with discard_states=True, DISCARD STATES in SQL, or --yes on the command line",
            {"replacement": replacement.to_json()},
        )


def _update_options(old: View, new: View, options: Mapping[str, Any]) -> None:
    """The same query with other declarations, in one commit."""
    after = {**json.loads(old.engine.catalog.view_by_id(old.id).options_json), **options}
    query = json.dumps({"sql": new.sql, "columns": new.columns, "order": new.order})
    with old.engine.catalog.commit("alter_view", old.name, {}, old.engine.lease) as tx:
        record = tx.update_view(old.id, query_json=query, options_json=json.dumps(after))
    old.declare(record)
    fit_all(old.engine)

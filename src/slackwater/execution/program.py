"""A refresh as a program: named steps, each one SELECT with a purpose, and the root that makes the result's change."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from slackwater.algebra.aggregates import decimal_of
from slackwater.algebra.gather import Gather
from slackwater.algebra.joins import EXISTS, MatchJoin
from slackwater.algebra.nodes import Aggregate, Input, Opaque, Project, Rel, Scan, pass_through, union
from slackwater.algebra.partials import AggChange, Finish, carried_fields, partial_schema
from slackwater.delta.environment import Change, Environment, Purpose, Step
from slackwater.delta.rules import build_missing, difference, full, keep_beside, result_delta
from slackwater.execution.gathering import MODERATE, InputRows, gather_root, gather_steps, shuffles_much
from slackwater.execution.render import render, shown

INITIAL, RECOMPUTE, INCREMENTAL = "initial", "recompute", "incremental"

_COLLECTED = ("tinyint", "smallint", "int", "bigint", "float", "double", "string", "boolean", "date", "binary")


def nothing(_: Rel) -> float:
    """Nothing is known to be small."""
    return math.inf


@dataclass(frozen=True, slots=True)
class Program:
    """What one refresh runs.

    Attributes:
        mode: initial, recompute or incremental; the first two are the same compiler with no states.
        steps: relations that are computed once, in order.
        root: the full result (initial) or its change; None where nothing can change.
        reasons: why a node is redone, by its key.
        heavy: a join moves many rows; a session for small work is not for it.
        carried: keys of the states that stay as they are, although something below them changed.
        collected: the aggregate whose new partial rows come with the root's, to be kept by the driver.
        whole: the root gives the whole new result beside these rows, for the driver to compare with the last one.
        origins: which node of the plan a relation of the program is the full output of, by the relation's identity.
    """

    mode: str
    steps: tuple[Step, ...]
    root: Rel | None
    reasons: Mapping[str, str] = field(default_factory=dict)
    origins: Mapping[int, str] = field(default_factory=dict)
    carried: frozenset[str] = frozenset()
    heavy: bool = False
    collected: Aggregate | None = None
    whole: bool = False

    @property
    def scans(self) -> frozenset[tuple[str, str]]:
        """The tables that are read, and at which time."""
        rels = [s.rel for s in self.steps] + ([self.root] if self.root is not None else [])
        found = {(x.table, x.at) for rel in rels for x in rel.walk() if isinstance(x, Scan)}
        found |= {(t, "") for rel in rels for x in rel.walk() if isinstance(x, Opaque) for t in x.tables}
        return frozenset(found)

    @property
    def inputs(self) -> frozenset[str]:
        """The names of states and of the old result that are read."""
        rels = [s.rel for s in self.steps] + ([self.root] if self.root is not None else [])
        made = {s.name for s in self.steps}
        return frozenset(x.name for rel in rels for x in rel.walk() if isinstance(x, Input) and x.name not in made)

    @property
    def flags(self) -> bool:
        """Whether a step asks for the matches of a row in a column of its own."""
        rels = [s.rel for s in self.steps] + ([self.root] if self.root is not None else [])
        return any(isinstance(x, MatchJoin) and x.kind == EXISTS for rel in rels for x in rel.walk())

    def as_sql(self) -> str:
        """The program as SQL text."""
        with shown():
            parts = [f"-- {s.purpose.value}: {s.name}\n{render(s.rel)};" for s in self.steps]
            if self.root is not None:
                purpose = Purpose.FULL if self.mode == INITIAL else Purpose.RESULT
                parts.append(f"-- {purpose.value}\n{render(self.root)};")
        return "\n\n".join(parts) or "-- nothing to do"


def compile_program(
    plan: Rel,
    mode: str,
    changes: Mapping[str, Change],
    states: Mapping[str, bool],
    wanted: frozenset[str],
    rows: Mapping[str, int],
    table_rows: Mapping[str, int] | None = None,
    *,
    to_send: Callable[[Rel], float] = nothing,
    settle: frozenset[str] = frozenset(),
    since: frozenset[str] = frozenset(),
    few_tasks: bool = True,
    signed_result: bool = False,
    compare: bool = False,
    few_groups: frozenset[str] = frozenset(),
    result_at_hand: bool = False,
) -> Program:
    """Compile a refresh from the plan, the states at hand, the states wanted next and what changed.

    With `table_rows` at hand and `few_tasks`, small work is put in few tasks. With `compare` the change comes from
    comparing results. Full outputs of which there are few rows `to_send` are sent to every task.
    Of the states to `settle`, what no longer waits is dropped, and indexes are made anew; to those in `since` rows have
    been added. Where the aggregate at the top is one of those with
    `few_groups`, the driver takes its partial rows over; with the last `result_at_hand` there, all it asks for beside
    them is the new result.
    """
    tables = table_rows or {}
    if mode == INCREMENTAL:
        env = Environment(changes, states, wanted, rows=rows, tables=tables, to_send=to_send, settle=settle,
                          signed_result=signed_result, since=since)  # fmt: skip
        delta = result_delta(plan, env, compare=compare)
        build_missing(plan, env)
        steps = tuple(env.steps)
        known = InputRows(tables, changes, rows)
        heavy = shuffles_much([s.rel for s in steps] + ([delta] if delta is not None else []), known)
        if table_rows is not None and few_tasks:
            steps = gather_steps(steps, known)
            delta = gather_root(delta, known) if delta is not None else None
        made = Program(mode, steps, delta, env.reasons, carried=frozenset(env.carried), heavy=heavy)
        return in_one_pass(made, few_groups, result_at_hand=result_at_hand)
    env = Environment({}, states, wanted, initial=True, rows=rows, to_send=to_send, tables=tables,
                      signed_result=signed_result, since=since)  # fmt: skip
    root = full(plan, env, "new") if mode == INITIAL else difference(plan, env)
    keep_beside(plan, env)
    origins = {id(rel): key for (key, what), rel in env.memo.items() if what == "F.new"}
    known, rels = InputRows(tables, changes, rows), [root, *(s.rel for s in env.steps)]
    # What a recomputed query does is its own affair: it runs as it would in Spark.
    unknown = isinstance(plan, Opaque)
    heavy = unknown or shuffles_much(rels, known) or sum(known.read(rel) for rel in rels) > MODERATE
    return Program(mode, tuple(env.steps), root, env.reasons, origins, heavy=heavy)


def in_one_pass(program: Program, few_groups: frozenset[str], *, result_at_hand: bool) -> Program:
    """Let the partial rows of a small aggregate at the top come with the result's change, or with the whole new result.

    Otherwise a step would compute what the change adds to them, and the root would read it: one more plan for Spark to
    make, which takes longer than the rows themselves. Nodes above the aggregate hand the partial rows on, so they must
    be projections; a filter would lose some. Where the driver has the last result, the new one is enough: half the
    columns to merge, and no old and new row of each group to tell apart.
    """
    above: list[Project] = []
    top = program.root
    while isinstance(top, Project):
        above.append(top)
        top = top.child
    if not isinstance(top, AggChange) or top.redo is not None or not isinstance(top.change, Input):
        return program
    agg, name = top.agg, top.change.name
    step = next((s for s in program.steps if s.name == name and s.purpose is Purpose.APPEND), None)
    if step is None or step.key not in few_groups or not _collectable(program.root, agg):
        return program
    others = [s for s in program.steps if s is not step]
    if any(isinstance(x, Input) and x.name == name for s in others for x in s.rel.walk()):
        return program
    root: Rel = replace(top, change=step.rel, restrict=False, carry=True)
    if result_at_hand:
        partials = union(top.old, step.rel)
        root = Finish(Gather(partials) if top.gather else partials, agg, carry=True)
    for node in reversed(above):
        root = Project(root, (*node.items, *pass_through(carried_fields(agg))))
    return replace(program, steps=tuple(others), root=root, collected=agg, whole=result_at_hand)


def _collectable(root: Rel | None, agg: Aggregate) -> bool:
    """Whether all that comes to the driver goes back to Spark as it came."""
    types = [f.dtype for f in (*(root.schema if root is not None else ()), *partial_schema(agg))]
    return not any(a.user for a in agg.aggs) and all(t in _COLLECTED or decimal_of(t) is not None for t in types)

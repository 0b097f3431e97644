"""A toy engine around the interpreter: it runs the programs that the real one compiles."""

from __future__ import annotations

from dataclasses import replace

from slackwater.algebra import nodes as n
from slackwater.algebra.first_rows import First, FirstRowsGone
from slackwater.algebra.interpreter import Bag, Catalogue, evaluate
from slackwater.algebra.lookups import Indexed, Waiting, unsettled, unsettled_among
from slackwater.algebra.partials import MergePartials, partial_schema
from slackwater.algebra.printer import node_key, tree_text
from slackwater.delta.aggregate import keeps_partials
from slackwater.delta.environment import Change, Purpose
from slackwater.delta.rules import RESULT
from slackwater.execution.program import INCREMENTAL, INITIAL, RECOMPUTE, Program, compile_program
from tests.property.plans import TABLES


def stateful(plan: n.Rel) -> list[n.Rel]:
    """The nodes that can keep a state."""
    return [x for x in plan.keepable() if not isinstance(x, n.Aggregate) or keeps_partials(x)]


class Refresher:
    """One view: its tables, its result, and the states that are kept, each with whether it may hold deletes."""

    def __init__(self, plan: n.Rel) -> None:
        self.plan = plan
        self.nodes = {node_key(x): x for x in stateful(plan)}
        self.tables = {t: Bag() for t in TABLES}
        self.states: dict[str, Bag] = {}
        self.weighted: dict[str, bool] = {}
        self.made: dict[str, Bag] = {}
        """What each index was made of; the rest of its state came since."""
        self.result = Bag()
        self.started = False
        self.gone = 0
        """How often too many of the first rows went."""
        self.looked_behind = 0
        """How often what waits behind was found in the tables."""

    def reference(self) -> Bag:
        """The query over the tables as they are."""
        return evaluate(self.plan, Catalogue({(t, ""): bag for t, bag in self.tables.items()}))

    def evaluate(self, node: n.Rel, cat: Catalogue) -> Bag:
        """How a part of a program is run."""
        return evaluate(node, cat)

    def refresh(self, changes: dict[str, Bag], wanted: frozenset[str], dropped: frozenset[str] = frozenset(),
                *, compare: bool = False, recompute: bool = False, settle: bool = False) -> None:  # fmt: skip
        """Apply changes, and keep the wanted states; those dropped are gone before."""
        self.states = {key: bag for key, bag in self.states.items() if key not in dropped}
        new = {t: bag + changes.get(t, Bag()) for t, bag in self.tables.items()}
        mode = INITIAL if not self.started else RECOMPUTE if recompute else INCREMENTAL
        program = self._compiled(mode, changes, wanted, compare=compare, settle=settle)
        cat = Catalogue(inputs={RESULT: self.result} | {f"state_{k}": b for k, b in self.states.items()})
        for key in self._indexes():
            cat.inputs[f"index_{key}"] = self.made[key]
            cat.inputs[f"since_{key}"] = self.states[key] + -self.made[key]
        for t in TABLES:
            cat.tables[t, "old"], cat.tables[t, "new"] = self.tables[t], new[t]
            cat.tables[t, "delta"] = changes.get(t, Bag())
        try:
            produced = self._run(program, cat)
            out = self.evaluate(program.root, cat) if program.root is not None else Bag()
        except FirstRowsGone:
            assert mode == INCREMENTAL
            self.gone += 1
            self.refresh(changes, wanted, dropped, recompute=True)
            return
        self.result = out if mode == INITIAL else self.result + out
        self.tables, self.started = new, True
        kept = {} if mode == RECOMPUTE else self.states
        self.states = {k: b for k, b in {**kept, **produced}.items() if k in wanted}

    def _compiled(self, mode: str, changes: dict[str, Bag], wanted: frozenset[str], *, compare: bool,
                  settle: bool) -> Program:  # fmt: skip
        counts = {
            t: Change(sum(w for _, w in b.items() if w > 0), sum(-w for _, w in b.items() if w < 0))
            for t, b in changes.items()
        }
        states = {k: self.weighted[k] for k in self.states} if mode == INCREMENTAL else {}
        again = frozenset(key for key, x in self.nodes.items() if settle and isinstance(x, Waiting | Indexed))
        since = frozenset(key for key in self._indexes() if self.states[key] is not self.made[key])
        return compile_program(self.plan, mode, counts, states, wanted, {}, dict.fromkeys(TABLES, 1), settle=again,
                               since=since, compare=compare)  # fmt: skip

    def _indexes(self) -> list[str]:
        return [key for key in self.states if isinstance(self.nodes[key], Indexed)]

    def _run(self, program: Program, cat: Catalogue) -> dict[str, Bag]:
        produced: dict[str, Bag] = {}
        for step in program.steps:
            bag = cat.inputs[step.name] = self.evaluate(step.rel, cat)
            assert step.rel.weighted or all(w > 0 for _, w in bag.items()), f"deletes in\n{tree_text(step.rel)}"
            if step.purpose is Purpose.APPEND:
                node = self.nodes[step.key]
                width = len(partial_schema(node)) if isinstance(node, n.Aggregate) else None
                produced[step.key] = self.states[step.key] + Bag((row[:width], w) for row, w in bag.items())
                self.weighted[step.key] |= step.rel.weighted
            elif step.purpose in (Purpose.BUILD, Purpose.REPLACE):
                produced[step.key] = self.made[step.key] = bag
                self.weighted[step.key] = step.rel.weighted
        return produced

    def compact(self) -> None:
        """Merge what the states are made of."""
        for key, bag in self.states.items():
            node = self.nodes[key]
            if isinstance(node, n.Aggregate):
                merged = MergePartials(n.Input("s", partial_schema(node)), node)
                self.states[key] = self.evaluate(merged, Catalogue(inputs={"s": bag}))
            elif isinstance(node, Waiting):
                self._settle(key, node)
            elif not isinstance(node, Indexed):
                self.weighted[key] = False

    def _settle(self, key: str, node: Waiting) -> None:
        """Leave out what no longer waits, as far as the states and tables at hand tell."""
        if self.weighted[key]:
            return
        now = Catalogue({(t, ""): b for t, b in self.tables.items()}, {"held": self.states[key]})
        missing = []

        def known(waiting: Waiting) -> n.Rel | None:
            behind = node_key(waiting)
            if behind not in self.states:
                missing.append(behind)
                return None
            now.inputs[behind] = self.states[behind]
            return n.Input(behind, waiting.schema, self.weighted[behind])

        left = unsettled_among(node, n.Input("held", node.schema), known)
        if left is not None:
            self.looked_behind += len(missing)
            self.states[key] = self.evaluate(left, now)

    def check_states(self) -> None:
        """Each state holds what its node gives."""
        for key, bag in self.states.items():
            node = self.nodes[key]
            now = Catalogue({(t, ""): b for t, b in self.tables.items()})
            if isinstance(node, Waiting):  # all that waits, and perhaps what is settled
                now.inputs["held"] = bag
                inside = [lookup.waiting for lookup, _ in node.path.lookups]
                held = n.Input("held", node.schema, self.weighted[key])
                assert evaluate(unsettled(node, held, node.path.scan, inside), now) == evaluate(node, now)
            elif isinstance(node, First):
                whole = evaluate(node.child, now)
                assert sum(w for _, w in bag.items()) >= min(node.need, sum(w for _, w in whole.items()))
                held = replace(node, most=max(node.need, sum(w for _, w in bag.items())))
                held = held if sum(w for _, w in bag.items()) >= node.need else node
                assert bag == evaluate(held, now), f"no prefix of\n{tree_text(node)}"
            elif not isinstance(node, n.Aggregate):
                assert bag == evaluate(node, now), f"state of\n{tree_text(node)}"


def assert_restored(plan: n.Rel, history: list[dict[str, Bag]], everything: bool) -> None:
    """A delta followed by its inverse leaves the result as it was, with all states kept or with none."""
    wanted = frozenset(node_key(x) for x in stateful(plan)) if everything else frozenset[str]()
    engine = Refresher(plan)
    engine.refresh(history[0], wanted)
    before = engine.result
    engine.refresh(history[1], wanted)
    engine.refresh({t: -b for t, b in history[1].items()}, wanted)
    assert engine.result == before

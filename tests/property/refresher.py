"""A toy engine around the interpreter: compiles and applies refreshes as the real one does."""

from __future__ import annotations

from slackwater.algebra import nodes as n
from slackwater.algebra.interpreter import Bag, Catalogue, evaluate
from slackwater.algebra.partials import MergePartials, partial_schema
from slackwater.algebra.printer import node_key, tree_text
from slackwater.delta.aggregate import keeps_partials
from slackwater.delta.environment import Change, Environment, Purpose
from slackwater.delta.rules import RESULT, build_missing, full, result_delta
from tests.property.plans import TABLES


def stateful(plan: n.Rel) -> list[n.Rel]:
    """The nodes that can keep a state."""
    return [x for x in plan.walk() if not isinstance(x, n.Aggregate) or keeps_partials(x)]


class Refresher:
    """A toy engine around the interpreter: the same compile and apply cycle as the real one."""

    def __init__(self, plan: n.Rel) -> None:
        self.plan = plan
        self.nodes = {node_key(x): x for x in stateful(plan)}
        self.tables = {t: Bag() for t in TABLES}
        self.states: dict[str, Bag] = {}
        self.result = Bag()
        self.started = False

    def reference(self) -> Bag:
        return evaluate(self.plan, Catalogue({(t, ""): bag for t, bag in self.tables.items()}))

    def refresh(self, changes: dict[str, Bag], wanted: frozenset[str], dropped: frozenset[str] = frozenset(),
                *, compare: bool = False) -> None:  # fmt: skip
        for key in dropped:
            self.states.pop(key, None)
        new = {t: bag + changes.get(t, Bag()) for t, bag in self.tables.items()}
        cat = Catalogue(inputs={RESULT: self.result} | {f"state_{k}": b for k, b in self.states.items()})
        for t in TABLES:
            cat.tables[t, "old"], cat.tables[t, "new"] = self.tables[t], new[t]
            cat.tables[t, "delta"] = changes.get(t, Bag())
        counts = {
            t: Change(sum(w for _, w in b.items() if w > 0), sum(-w for _, w in b.items() if w < 0))
            for t, b in changes.items()
        }
        initial = not self.started
        weighted = {k: any(w < 0 for _, w in b.items()) or True for k, b in self.states.items()}
        env = Environment(counts, {k: not isinstance(self.nodes[k], n.Aggregate) and v for k, v in weighted.items()},
                          wanted, initial=initial)  # fmt: skip
        root = full(self.plan, env, "new") if initial else result_delta(self.plan, env, compare=compare)
        if not initial:
            build_missing(self.plan, env)
        produced: dict[str, Bag] = {}
        for step in env.steps:
            cat.inputs[step.name] = evaluate(step.rel, cat)
            if step.purpose is Purpose.APPEND:
                width = (
                    len(partial_schema(self.nodes[step.key])) if isinstance(self.nodes[step.key], n.Aggregate) else None
                )
                bag = Bag((row[:width], w) for row, w in cat.inputs[step.name].items())
                produced[step.key] = self.states[step.key] + bag
            elif step.purpose in (Purpose.BUILD, Purpose.REPLACE):
                produced[step.key] = cat.inputs[step.name]
        out = evaluate(root, cat) if root is not None else Bag()
        self.result = out if initial else self.result + out
        self.tables, self.started = new, True
        self.states |= produced
        self.states = {k: b for k, b in self.states.items() if k in wanted}

    def compact(self) -> None:
        for key, bag in self.states.items():
            node = self.nodes[key]
            if isinstance(node, n.Aggregate):
                merged = MergePartials(n.Input("s", partial_schema(node)), node)
                self.states[key] = evaluate(merged, Catalogue(inputs={"s": bag}))

    def check_states(self) -> None:
        for key, bag in self.states.items():
            node = self.nodes[key]
            if not isinstance(node, n.Aggregate):
                now = Catalogue({(t, ""): b for t, b in self.tables.items()})
                assert bag == evaluate(node, now), f"state of\n{tree_text(node)}"

"""From a strategy's name to the states that are kept, each with what it saves, what it costs and what was not chosen.

auto         the exact choice: the next refresh plus what is built for it, within the budget
plain        by the plain rules, as many as fit
incremental  everything that a plan symmetric in its inputs needs, whatever it costs
higher_order everything that the change of a single input has to meet, recursively; all of it or nothing
recycler     the BENEFIT heuristic of result caches: seconds to make it again, times its uses, for each byte, in the
             order of the plan
rebatch      nothing
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from slackwater.planning.choices import Choice
from slackwater.planning.memo import Demand, Group
from slackwater.planning.staircase import MOST_POINTS
from slackwater.planning.state_choice import Root, choose, price

STRATEGIES = ("auto", "plain", "rebatch", "incremental", "higher_order", "recycler")

BY_RULE = ("plain", "incremental", "higher_order")
"""Strategies that choose between delta and recompute by plain rules, not by price."""


@dataclass(frozen=True, slots=True)
class StatePlan:
    """The states for the next refresh, and why.

    Attributes:
        choices: one for each node that could have a state.
        seconds: what the next refresh should take with them.
        build: seconds to build those that are not there.
        size: their bytes together.
        nothing: what the next refresh would take with no state at all.
        next_best: the best set of states that was not chosen, in words, with its price; and that some were left out.
    """

    choices: tuple[Choice, ...]
    seconds: float
    build: float
    size: int
    nothing: float
    next_best: str

    @property
    def kept(self) -> frozenset[str]:
        """The keys of the states to keep."""
        return frozenset(c.key for c in self.choices if c.keep)


LEFT_OUT = f"choices were left out that may be better: there were more than {MOST_POINTS:,} sizes to weigh"

STAYS = 1.1
"""States that are there stay if others would not be so many times cheaper."""


def plan_states(
    root: Root, strategy: str, budget: float, plain: frozenset[str] | None = None, there: frozenset[str] = frozenset()
) -> StatePlan:
    """Choose by a strategy; `plain` is what the plain rules say, and `there` the states that need not be built."""
    candidates = [g for g in _once(root.group.walk()) if g.keepings]
    among = candidates if plain is None else [g for g in candidates if g.key in plain]
    exact = True
    if strategy == "auto":
        found = choose(root, max(budget, 0.0))
        kept, exact = _steady(root, candidates, frozenset(found.decisions), there, budget), found.exact
    elif strategy == "recycler":
        kept = _recycler(root, among, max(budget, 0.0), there)
    else:
        kept = _SELECT[strategy](root, among, max(budget, 0.0))
    seconds = root.price(kept, building=False)
    build = sum(g.keepings[0].build for g in candidates if g.key in kept)
    size = sum(g.keepings[0].size for g in candidates if g.key in kept)
    choices = tuple(_choice(root, g, kept, budget - size) for g in candidates)
    told = (_next_best(root, candidates, kept, budget), "" if exact else LEFT_OUT)
    return StatePlan(choices, seconds, build, size, root.price(frozenset(), building=False),
                     "; ".join(filter(None, told)))  # fmt: skip


def _once(groups: list[Group]) -> list[Group]:
    """Each node once, however often the plan has it."""
    return list({g.key: g for g in groups}.values())


# --- the strategies --------------------------------------------------------------------------------------------------


def _steady(
    root: Root, candidates: list[Group], chosen: frozenset[str], there: frozenset[str], budget: float
) -> frozenset[str]:
    """The states that are there, as far as they help, unless the chosen ones are clearly cheaper.

    Forecasts differ a little from one refresh to the next. Counter-example to following each of them: two sets of
    states of nearly the same price take turns, and every refresh builds one and runs a program that never ran before.
    """
    sizes = {g.key: g.keepings[0].size for g in candidates}
    staying = frozenset(there & sizes.keys())
    for key in sorted(staying, key=lambda k: -sizes[k]):
        if root.price(staying - {key}) <= root.price(staying):
            staying -= {key}
    fits = sum(sizes[key] for key in staying) <= budget
    return staying if staying and fits and root.price(staying) <= STAYS * root.price(chosen) else chosen


def _rebatch(root: Root, candidates: list[Group], budget: float) -> frozenset[str]:
    return frozenset()


def _incremental(root: Root, candidates: list[Group], budget: float) -> frozenset[str]:
    kept = {g.key: g for g in candidates}
    while kept and sum(g.keepings[0].size for g in kept.values()) > budget:
        del kept[min(kept, key=lambda k: _benefit(kept[k], frozenset(kept) - {k}))]
    return frozenset(kept)


def _higher_order(root: Root, candidates: list[Group], budget: float) -> frozenset[str]:
    """Each view is made from smaller ones: with one of them missing, a refresh would cost more than a recompute."""
    fits = sum(g.keepings[0].size for g in candidates) <= budget
    return frozenset(g.key for g in candidates) if fits else frozenset()


def _recycler(root: Root, candidates: list[Group], budget: float, there: frozenset[str]) -> frozenset[str]:
    """States come by as the plan makes them, inputs first; each may push out others of a lower average benefit.

    The cache is not empty at first: it has the states that are `there`. A refresh brings each of them up to date, and a
    state that was updated is taken for a new one, which has to come in again. Every refresh uses a state once in each
    place where the plan has its node.
    """
    uses = Counter(group.key for group in root.group.walk())
    cached = {group.key: group for group in candidates if group.key in there}
    for group in reversed(candidates):
        cached.pop(group.key, None)
        benefit = {key: uses[key] * _benefit(g, frozenset(cached) - {key}) for key, g in cached.items()}
        own = uses[group.key] * _benefit(group, frozenset(cached))
        need = sum(g.keepings[0].size for g in cached.values()) + group.keepings[0].size - budget
        evicted: list[str] = []
        for key in sorted(cached, key=benefit.__getitem__):
            if need <= 0:
                break
            evicted.append(key)
            need -= cached[key].keepings[0].size
        if need > 0:
            continue
        lost = [benefit[key] for key in evicted]
        if not lost or sum(lost) / len(lost) < own:
            cached = {k: g for k, g in cached.items() if k not in evicted} | {group.key: group}
    return frozenset(cached)


def _benefit(group: Group, others: frozenset[str]) -> float:
    """Seconds to make the node's output again from what else is there, for each byte that it takes."""
    again = price(group, Demand.OLD, others - {group.key}, building=False)
    return again / max(group.keepings[0].size, 1)


_SELECT: dict[str, Callable[[Root, list[Group], float], frozenset[str]]] = {
    "plain": _incremental,
    "rebatch": _rebatch,
    "incremental": _incremental,
    "higher_order": _higher_order,
}


# --- the reasons -----------------------------------------------------------------------------------------------------


def _choice(root: Root, group: Group, kept: frozenset[str], left: float) -> Choice:
    """What one state saves with all the others as they are."""
    (state, *_) = group.keepings
    keep = group.key in kept
    with_it, without = root.price(kept | {group.key}, building=False), root.price(kept - {group.key}, building=False)
    saves = without - with_it
    if keep:
        made = "it is there" if not state.build else f"building it costs {seconds_text(state.build)}"
        reason = f"saves {seconds_text(saves)} at the next refresh; {made}"
    elif state.size > left:
        reason = f"would save {seconds_text(saves)}, but {state.size:,} bytes more do not fit the budget"
    elif saves <= 0:
        reason = "would save nothing at the next refresh"
    else:
        spread = f", spread over {state.serves:.0f} refreshes" if state.serves > 1 else ""
        reason = f"would save {seconds_text(saves)}, and building it costs {seconds_text(state.build)}{spread}"
    return Choice(group.key, group.label, keep, reason, state.size, saves, state.build, with_it, without)


def with_paid_builds(choices: Iterable[Choice], before: Iterable[Choice]) -> tuple[Choice, ...]:
    """Choices in which a state that is there still tells what it cost to build, as the choices before them told it.

    Counter-example to leaving it at what is to be paid now: the second refresh says that a state cost nothing.
    """
    paid = {c.key: c.build for c in before if c.keep and c.build}

    def told(choice: Choice) -> Choice:
        if not choice.keep or choice.build or choice.key not in paid:
            return choice
        build = paid[choice.key]
        return replace(choice, build=build, reason=f"{choice.reason} and cost {seconds_text(build)} to build")

    return tuple(map(told, choices))


def _next_best(root: Root, candidates: list[Group], kept: frozenset[str], budget: float) -> str:
    """The cheapest neighbour: one state more, one less, or nothing kept at all."""
    found: list[tuple[float, str]] = []
    left = budget - sum(g.keepings[0].size for g in candidates if g.key in kept)
    for group in candidates:
        other = kept ^ {group.key}
        if group.key not in kept and group.keepings[0].size > left:
            continue
        word = "without" if group.key in kept else "with"
        found.append((root.price(other), f"{word} {group.label[:80]}"))
    if kept:
        found.append((root.price(frozenset()), "with no state at all"))
    if not found:
        return ""
    cost, text = min(found)
    return f"{text}: {seconds_text(cost)} against {seconds_text(root.price(kept))}, building included"


def seconds_text(seconds: float) -> str:
    """A time that a person can read."""
    return f"{seconds * 1000:.0f} ms" if abs(seconds) < 1 else f"{seconds:.1f} s"

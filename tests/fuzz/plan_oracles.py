"""What must hold of a case on the interpreter: each step equals a recompute, and related runs agree."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import Combine
from slackwater.algebra.expressions import call
from slackwater.algebra.interpreter import Bag, Catalogue, evaluate
from slackwater.algebra.printer import node_key, tree_text
from slackwater.delta.rules import has_delta
from slackwater.planning.cardinality import Cardinalities, Expected
from slackwater.planning.costing import AtHand, Pricing
from slackwater.planning.join_order import order_joins
from slackwater.planning.plain_rules import plain_choice
from slackwater.planning.rates import Rates
from slackwater.planning.strategies import STRATEGIES, plan_states
from tests.fuzz.plan_cases import Changes, PlanCase
from tests.fuzz.programs_on_duck import DuckRefresher
from tests.property.plans import TABLES
from tests.property.refresher import Refresher, stateful


def check(case: PlanCase) -> None:
    """Raise an AssertionError that says what does not hold."""
    engine = Refresher(case.plan)
    keys = sorted(engine.nodes)
    for at, changes in enumerate(case.history):
        _refresh(engine, changes, _chosen(keys, case.kept[at]), _chosen(keys, case.lost[at]), case.ways[at])
        if case.ways[at] == "compare":
            engine.compact()
    _RELATIONS[case.relation](case, engine.result)


def run(plan: n.Rel, history: Iterable[Changes], wanted: frozenset[str]) -> Bag:
    """The result after all changes, each step compared with a recompute."""
    engine = Refresher(plan)
    for changes in history:
        _refresh(engine, changes, wanted)
    return engine.result


def _refresh(engine: Refresher, changes: Changes, wanted: frozenset[str], lost: frozenset[str] = frozenset(),
             way: str = "delta") -> None:  # fmt: skip
    engine.refresh(changes, wanted, lost, compare=way == "compare", recompute=way == "recompute")
    _same(engine.result, engine.reference(), "the refreshed result against a recompute", engine.plan)
    engine.check_states()


def _same(found: Bag, expected: Bag, what: str, plan: n.Rel) -> None:
    assert found == expected, f"{what}: {found} instead of {expected}\n{tree_text(plan)}"


def _chosen(keys: list[str], mask: int) -> frozenset[str]:
    return frozenset(key for at, key in enumerate(keys) if mask >> at & 1)


# --- relations between runs ------------------------------------------------------------------------------------------


def _everything(case: PlanCase) -> frozenset[str]:
    return frozenset(node_key(x) for x in stateful(case.plan))


def _with(case: PlanCase) -> frozenset[str]:
    return _chosen(sorted(_everything(case)), case.kept[0])


def _states(case: PlanCase, expected: Bag) -> None:
    """Everything kept, and nothing kept."""
    for wanted in (_everything(case), frozenset[str]()):
        _same(run(case.plan, case.history, wanted), expected, f"with {len(wanted)} states", case.plan)


def _merge(case: PlanCase, expected: Bag) -> None:
    """All deltas after the first as one."""
    total: Changes = {}
    for changes in case.history[1:]:
        for table, bag in changes.items():
            total[table] = total.get(table, Bag()) + bag
    merged = {t: b for t, b in total.items() if b.items()}
    _same(run(case.plan, (case.history[0], merged), _with(case)), expected, "deltas merged", case.plan)


def _permute(case: PlanCase, expected: Bag) -> None:
    """The tables of each step one after the other, the last first."""
    steps = [{t: changes[t]} for changes in case.history for t in sorted(changes, reverse=True)]
    _same(run(case.plan, [{}, *steps], _with(case)), expected, "one table at a time", case.plan)


def _split(case: PlanCase, expected: Bag) -> None:
    """What comes before what goes, row by row."""
    steps: list[Changes] = []
    for changes in case.history:
        for table, bag in changes.items():
            parts = sorted(bag.items(), key=lambda item: item[1] < 0)
            steps += [{table: Bag([part])} for part in parts]
    _same(run(case.plan, [{}, *steps], _with(case)), expected, "deltas split", case.plan)


def _invert(case: PlanCase, expected: Bag) -> None:
    """Back again, step by step."""
    engine = Refresher(case.plan)
    wanted, before = _with(case), []
    for changes in case.history:
        _refresh(engine, changes, wanted)
        before.append(engine.result)
    for at in range(len(case.history) - 1, 0, -1):
        _refresh(engine, {t: -b for t, b in case.history[at].items()}, wanted)
        _same(engine.result, before[at - 1], f"step {at} inverted", case.plan)


def _strategies(case: PlanCase, expected: Bag) -> None:
    """What every strategy would keep within the budget."""
    coming = {t: Expected(10.0, 0.5) for t in TABLES}
    cards = Cardinalities(dict.fromkeys(TABLES, 1e5), coming)
    root = Pricing(cards, Rates(), AtHand()).root(case.plan, by_delta=has_delta(case.plan))
    for strategy in STRATEGIES:
        plain = plain_choice(case.plan, coming, {}, lambda x: cards.of(x).full) if strategy == "plain" else None
        kept = plan_states(root, strategy, case.budget * 1e4, plain).kept & _everything(case)
        _same(run(case.plan, case.history, kept), expected, f"strategy {strategy}", case.plan)


def _partition(case: PlanCase, expected: Bag) -> None:
    """The rows for which a predicate is true, false and unknown add up."""
    p = case.predicate
    parts = (p, call("not", p, dtype="boolean"), call("is_null", p, dtype="boolean"))
    total = Bag()
    for part in parts:
        total += run(n.Filter(case.plan, part), case.history, _with(case))
    _same(total, expected, f"split by {p.text}", case.plan)


def _reorder(case: PlanCase, expected: Bag) -> None:
    """Joins in another order."""
    plan = order_joins(case.plan, lambda rel: float(len(tree_text(rel)) % 7), lambda _: 5.0, lambda _: ())
    _same(run(plan, case.history, frozenset()), expected, "joins reordered", plan)
    cat = Catalogue({(t, ""): sum((c[t] for c in case.history if t in c), Bag()) for t in TABLES})
    _same(evaluate(plan, cat), expected, "joins reordered, from scratch", plan)


def _duckdb(case: PlanCase, expected: Bag) -> None:
    """The programs as SQL, run by DuckDB, which has no word for the structs in which results are kept."""
    if any(isinstance(x, n.Aggregate) and x.combine is Combine.KEPT for x in case.plan.walk()):
        return
    engine = DuckRefresher(case.plan)
    keys = sorted(engine.nodes)
    for at, changes in enumerate(case.history):
        whole = {table: _without_negative_zeros(bag) for table, bag in changes.items()}
        way = case.ways[at]
        engine.refresh(whole, _chosen(keys, case.kept[at]), _chosen(keys, case.lost[at]), compare=way == "compare",
                       recompute=way == "recompute")  # fmt: skip
        _same(_rounded(engine.result), _rounded(engine.reference()), f"step {at} run by DuckDB", engine.plan)


def _without_negative_zeros(bag: Bag) -> Bag:
    return Bag((tuple(0.0 if isinstance(v, float) and v == 0 else v for v in row), w) for row, w in bag.items())


def _rounded(bag: Bag) -> Bag:
    """Without the last digits, in which two ways to a variance may differ."""
    return Bag((tuple(float(f"{v:.9g}") + 0.0 if isinstance(v, float) else v for v in r), w) for r, w in bag.items())


_RELATIONS: dict[str, Callable[[PlanCase, Bag], None]] = {
    "states": _states, "merge": _merge, "permute": _permute, "split": _split, "invert": _invert,
    "strategies": _strategies, "partition": _partition, "reorder": _reorder,
    "duckdb": _duckdb,
}  # fmt: skip

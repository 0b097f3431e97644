"""The refresh: from what changed to one commit that moves result, changes and version together."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from slackwater.algebra.first_rows import REFILL
from slackwater.algebra.lookups import Indexed, Waiting
from slackwater.algebra.nodes import Aggregate, Opaque, Project, Rel, Scan
from slackwater.algebra.printer import describe, node_key
from slackwater.algebra.serialize import stored_plan
from slackwater.arrivals.outlook import Outlook, look_ahead
from slackwater.capture.noise import quiet
from slackwater.delta.environment import Change, Purpose
from slackwater.errors import SlackwaterError, ViewError
from slackwater.execution.compaction import compact, piles_up
from slackwater.execution.equal_states import bytes_of_others, equal_states, rows_of
from slackwater.execution.estimates import estimates
from slackwater.execution.failures import first_line
from slackwater.execution.fitting import fit_beside_others, let_go, nothing_more, sizes_of
from slackwater.execution.leaves import TableLeaf, leaves, table_state
from slackwater.execution.modes import choose_mode, priced_ways
from slackwater.execution.plan_shape import WITH_LOOKUPS, narrowed, rewritten, shaped
from slackwater.execution.prepared import files_source
from slackwater.execution.program import INCREMENTAL, INITIAL, RECOMPUTE, Program, compile_program, nothing
from slackwater.execution.reports import Refresh
from slackwater.execution.runner import Bindings, Outcome, run
from slackwater.execution.sampling import filtered_scans, kept_shares
from slackwater.execution.sessions import WITH_FLAGS
from slackwater.execution.sharing import make_room
from slackwater.execution.small_results import last_rows
from slackwater.execution.state_planning import (
    Facts,
    Prices,
    Situation,
    coming,
    learned,
    next_stairs,
    passing_by,
    plan_next,
    serves,
)
from slackwater.execution.states import (
    FEW,
    State,
    added_to,
    few_groups,
    release,
    storage_memory,
    stored_bytes,
    untouched_states,
)
from slackwater.execution.threads import submitter
from slackwater.execution.timer import Timer
from slackwater.planning.cardinality import Expected
from slackwater.planning.choices import Choice
from slackwater.planning.costing import AtHand
from slackwater.planning.join_order import order_joins
from slackwater.planning.sending import rows_to_send
from slackwater.planning.state_choice import Root
from slackwater.planning.strategies import BY_RULE, StatePlan, with_paid_builds
from slackwater.storage.files import is_disk_full
from slackwater.storage.records import SegmentRecord
from slackwater.storage.uncommitted import remove_uncommitted

if TYPE_CHECKING:
    from slackwater.view import View

SMALL_DELTA = 300_000
"""Up to so many changed rows, one partition a shuffle is the fastest."""

GROWN = 1.25
"""What filters keep is sampled again when a table has become so many times larger or smaller."""


class Refresher:
    """One refresh of one view; to see what would be, under another budget than the engine's."""

    def __init__(self, view: View, budget: int | None = None) -> None:
        self.view, self.engine = view, view.engine
        self.budget = self.engine.budget if budget is None else budget
        self.timer = Timer()
        self.before = view.version
        self.prices: Prices | None = None
        self.planned: StatePlan | None = None
        self.outlook: Outlook | None = None
        self.at_hand: Mapping[str, State] = {}
        self.moved: tuple[str, ...] = ()
        self.result: tuple[SegmentRecord, ...] = ()
        self._opening: list[Future[Any]] = []
        self._usable: int | None = None
        self._roots: dict[Any, Root] = {}
        with self.engine.catalog.reading():
            self.upto = self.engine.catalog.version()
            self.engine.catalog.look_at(view.inputs, (f"v{view.id}",))
            self.leaves = leaves(self.engine, view.inputs)
            self.tables = {
                name: table_state(self.engine, self.leaves[name], self.before, self.upto) for name in view.inputs
            }
            if self.before:
                self.result = view.result_segments()

    @property
    def changes(self) -> dict[str, Change]:
        """The tables that changed."""
        return {name: t.change for name, t in self.tables.items() if t.change is not None}

    @property
    def result_is_signed(self) -> bool:
        """Whether the last result's segments hold deletes that have not been merged away yet."""
        return any(s.sign < 0 for s in self.result)

    def look_ahead(self, *, full: bool = False) -> None:
        """See what comes next, unless there is nothing to do; best in the transaction that the tables were read in.

        Spark looks at the files that came meanwhile.
        """
        self.moved = self.engine.functions.moved(self.view)
        if self._is_due(full):
            self._opening = self._open_deltas()
            self.outlook = self._look_ahead()

    @property
    def is_over(self) -> bool:
        """Whether nothing comes after what is read now: it is all complete."""
        return all(t.complete for t in self.tables.values())

    def _is_due(self, full: bool) -> bool:
        return not self.before or bool(self.changes) or full or bool(self.moved)

    def refresh(self, *, full: bool = False) -> Refresh:
        """Bring the view to the latest version."""
        if not self._is_due(full):
            return self._nothing()
        mode, reason = choose_mode(self, full=full)
        wait(self._opening)  # what fails here fails again where it is read
        attempts = [(mode, True, reason)]
        if mode == INCREMENTAL:
            attempts.append((RECOMPUTE, True, "the incremental program failed"))
        if self.view.strategy != "rebatch":
            attempts.append((INITIAL if not self.before else RECOMPUTE, False, "a program with states failed"))
        error: Exception | None = None
        for attempt, with_states, why in attempts:
            try:
                with quiet():
                    return self._attempt(attempt, with_states, why if error is None else _told(why, error))
            except (PySparkException, Py4JJavaError) as failure:
                if is_disk_full(failure):
                    raise SlackwaterError(
                        "STORAGE_FULL", "the disk is full", "free some space; nothing was applied"
                    ) from failure
                error = failure
        raise ViewError(
            "SPARK_FAILED",
            f"the query of {self.view.name!r} fails on the data at version {self.upto}: {first_line(error)}",
            "correct the rows it fails on, or the query; the last result stands",
        ) from error

    def _open_deltas(self) -> list[Future[Any]]:
        """Let Spark look at the files that came while the driver forecasts and plans; they are found again by path."""
        if not self.before or not self._small():
            return []
        spark = self.engine.sessions.get("delta", self.view.settings)
        came = [name for name, change in self.changes.items() if not change.deleted]
        start = submitter(spark)
        return [start(lambda n: files_source(self._frame(n, "delta", spark)), name)
                for name in came if isinstance(self.leaves[name], TableLeaf)]  # fmt: skip

    def _look_ahead(self) -> Outlook:
        """What the next delta will bring; what this one brought is put beside the last forecast, unless it is none."""
        taking = not self.before or bool(self.changes)
        present = {t: s.rows for t, s in self.tables.items()}
        found = look_ahead(self.view, self.engine.now(), taking=taking, present=present)
        self.timer.phase("forecast")
        return found

    def _nothing(self) -> Refresh:
        if self.is_over:
            let_go(self.view)
        self.timer.phase("plan")
        return Refresh(self.view.name, "none", self.before, self.before, seconds=self.timer.total(),
                       states=self.view.states_by_label(), state_bytes=self.view.state_bytes(),
                       budget_bytes=self.view.budget, reason="no table of the query has changed")  # fmt: skip

    def facts(self) -> Facts:
        """What the planner must know."""
        view = self.view
        rows = {t: s.rows for t, s in self.tables.items()}
        return Facts(view.plan, rows, view.counted.now(view.plan, rows), view.shares, self._unique,
                     view.known_bytes(), self.engine.rates,
                     view.corrections, view.only(view.plan) if view.only is not None else None,
                     self._roots, frozenset(t for t, s in self.tables.items() if s.lost_rows))  # fmt: skip

    # --- one attempt -----------------------------------------------------------------------------

    def _attempt(self, mode: str, with_states: bool, reason: str) -> Refresh:
        view = self.view
        self.at_hand = dict(view.states) if mode == INCREMENTAL or (mode == INITIAL and with_states) else {}
        if mode != INCREMENTAL and not isinstance(view.plan, Opaque) and not self.at_hand:
            self._plan_anew(as_asked=not with_states)
        borrows = mode == INITIAL and with_states and view.strategy != "rebatch"
        if borrows:
            self.at_hand = {**equal_states(view, self.upto), **view.states}
        self.planned = self._plan_states(mode) if with_states and not isinstance(view.plan, Opaque) else None
        if borrows:  # planning may have made room at the cost of the views that lend
            self.at_hand = {**equal_states(view, self.upto), **view.states}
        choices = with_paid_builds(self.planned.choices, view.choices) if self.planned is not None else ()
        wanted = frozenset(c.key for c in choices if c.keep)
        weights = {key: state.weighted for key, state in self.at_hand.items()}
        sizes = {t: s.rows for t, s in self.tables.items()}
        few = few_groups(view.plan, self.at_hand if self._small() else {}, view.known_bytes())
        program = compile_program(view.plan, mode, self.changes, weights, wanted, view.row_estimates(), sizes,
                                  to_send=self._to_send() if with_states else nothing,
                                  settle=self._to_settle(), since=added_to(self.at_hand), few_tasks=self._small(),
                                  signed_result=self.result_is_signed, compare=self._compares(),
                                  few_groups=few,
                                  result_at_hand=bool(few) and self.last_result() is not None)  # fmt: skip
        spark = self.engine.sessions.get(self._kind_of_work(program, with_states=with_states), view.settings)
        self.timer.phase("plan")
        outcome = run(program, spark, self._bindings(spark, program), self.engine.files, f"v{view.id}", view.schema)
        self.timer.phase("run")
        return self._commit(mode, program, outcome, choices, reason)

    def _kind_of_work(self, program: Program, *, with_states: bool) -> str:
        if isinstance(self.view.plan, Opaque):
            kind = "batch" if with_states else "proof"  # the first time as a user would run it
        elif program.heavy:
            kind = "heavy delta" if program.mode == INCREMENTAL else "full"
        else:
            kind = "delta" if program.mode == INCREMENTAL and self._small() else "large delta"
        return f"{kind}{WITH_FLAGS}" if program.flags else kind

    def _small(self) -> bool:
        return sum(c.inserted + c.deleted for c in self.changes.values()) <= SMALL_DELTA

    def _to_settle(self) -> frozenset[str]:
        """What has grown enough to be made anew: one state at a time, for it costs as much as several refreshes."""
        view = self.view
        grown = {key for key in view.grown & set(self.at_hand) if self._can_settle(key)}
        return frozenset(sorted(grown, key=lambda key: -view.known_bytes().get(key, 0))[:1])

    def _can_settle(self, key: str) -> bool:
        """Whether this refresh can make a state anew: rows that wait, and to which nothing comes, are carried on."""
        node, changed = self.view.state_node(key), self.changes.keys()
        if not isinstance(node, Waiting):
            return True
        return any(isinstance(x, Scan) and x.table in changed for x in node.rows.walk())

    def _to_send(self) -> Callable[[Rel], float]:
        """Which full outputs are few enough to be sent to every task, from what is known of the plan's rows."""
        cards = self.facts().cardinalities({})
        return lambda node: rows_to_send(cards, node)

    def plan_first(self) -> tuple[Choice, ...]:
        """Plan a view that has no result yet; gives the states that it would keep."""
        if isinstance(self.view.plan, Opaque):
            return ()
        self._plan_anew()
        return tuple(choice for choice in self._plan_states(INITIAL).choices if choice.keep)

    def _plan_anew(self, *, as_asked: bool = False) -> None:
        """With no states to respect, choose the join order again from what the tables hold now.

        As it was asked, a query computes nothing of rows that its joins leave out, and cannot fail on them.
        """
        view = self.view
        if not any(node.rereads for node in view.logical_plan.walk()):
            return
        strategy = "rebatch" if as_asked and view.strategy in WITH_LOOKUPS else view.strategy
        plan = rewritten(view.logical_plan, strategy, self._unique)
        self._sample(plan)

        def rows(node: Rel) -> float:
            below = node
            while node_key(below) not in view.shares and isinstance(below, Project):
                below = below.child
            return float(self._base_rows(node)) * view.shares.get(node_key(below), 1.0)

        def base_rows(node: Rel) -> float:
            return float(self._base_rows(node))

        changing = {name for name, table in self.tables.items() if not table.complete}
        plan = narrowed(plan, strategy, rows, base_rows, self._unique)
        ordered = order_joins(plan, rows, base_rows, self._unique)
        made = shaped(ordered, strategy, changing, self._unique, base_rows)
        if made != view.plan:  # what is remembered of a plan's nodes is remembered of these very nodes
            view.plan = made

    def _sample(self, plan: Rel) -> None:
        """See what the filters keep, unless the tables are about as large as when they were last looked at."""
        view, now = self.view, {t: s.rows for t, s in self.tables.items()}
        last = view.counted.sampled
        if last.keys() == now.keys() and all(1 / GROWN <= (now[t] + 1) / (n + 1) <= GROWN for t, n in last.items()):
            return
        spark = self.engine.sessions.get("delta", view.settings)
        leaves = filtered_scans(plan)
        view.shares = {**view.shares, **kept_shares(leaves, spark, self._frame, now)}
        view.counted.sampled = now

    def _base_rows(self, node: Rel) -> int:
        return max((self.tables[leaf.table].rows for leaf in node.walk() if isinstance(leaf, Scan)), default=1)

    def _unique(self, table: str) -> tuple[int, ...]:
        return self.tables[table].key

    def _compares(self) -> bool:
        if self.prices is None or self.prices.quick or self.view.strategy in BY_RULE:
            return False
        return self.prices.compare

    def _plan_states(self, mode: str) -> StatePlan:
        """The states for the next refresh, chosen before this one runs: it can build them in passing."""
        view, expected = self.view, self.expected()
        if self.is_over:
            return nothing_more(plan_next(self.facts(), "rebatch", 0, expected, AtHand()))
        at_hand = self.next_at_hand(mode, frozenset(self.at_hand), self.changes)

        def plan() -> StatePlan:
            if view.strategy == "auto" and self.engine.state_bytes(without=view.id):
                own = next_stairs(self.facts(), expected, at_hand, self.budget)
                if own is not None:
                    make_room(self, own)
            return plan_next(self.facts(), view.strategy, self.free(), expected, at_hand)

        # A plan that fits stays good while what is free and what is expected stay about the same.
        rows = {t: float(s.rows) for t, s in self.tables.items()}
        situation = Situation(mode, at_hand, self.free(), expected, node_key(view.plan), rows,
                              self.engine.rates)  # fmt: skip
        planned = view.planned_states(situation, plan)
        return planned if planned.size <= self.free() else plan()

    def next_at_hand(self, mode: str, states: frozenset[str], changes: Mapping[str, Change]) -> AtHand:
        """What a run in this mode has, and what it computes anyway."""
        by_price = mode == INCREMENTAL and self.view.strategy not in BY_RULE
        passing = passing_by(self.facts(), changes, states) if by_price else frozenset[str]()
        coming = self.outlook.forecast.tables if self.outlook is not None else ()
        return AtHand(states, mode != INCREMENTAL, self.view.known_bytes(), passing, serves(coming))

    @property
    def usable(self) -> int:
        """The budget, or what Spark's memory holds if that is less."""
        if self._usable is None:
            self._usable = min(self.budget, storage_memory(self.engine.spark))
        return self._usable

    def free(self) -> int:
        """What this view's states may occupy beside those of the others."""
        mine = rows_of((self.at_hand or self.view.states).values())
        return self.view.declared.capped(max(self.usable - bytes_of_others(self.engine, self.view, mine), 0))

    def expected(self) -> dict[str, Expected]:
        """The next delta, by the view's forecast."""
        if self.outlook is None:
            self.outlook = look_ahead(self.view, self.engine.now(), present={t: s.rows for t, s in self.tables.items()})
        return coming(self.tables, self.outlook.forecast)

    def _predicted(self, mode: str) -> float:
        """What this refresh should take, the states that it builds included."""
        build = self.planned.build if self.planned is not None else 0.0
        if self.prices is not None:
            return (self.prices.incremental if mode == INCREMENTAL else self.prices.recompute) + build
        return self.facts().corrected(mode, self.planned.nothing + build) if self.planned is not None else 0.0

    # --- inputs ----------------------------------------------------------------------------------

    def _bindings(self, spark: SparkSession, program: Program) -> Bindings:
        view = self.view
        return Bindings(
            table=lambda name, at: self._frame(name, at, spark),
            old_result=lambda: view.result_rows(spark, self.result),
            old_rows=self.last_result,
            states=self.at_hand,
            sizes=view.known_bytes(),
            labels={node_key(node): describe(node) for node in view.plan.keepable()},
            aggregates=frozenset(node_key(node) for node in view.plan.walk() if isinstance(node, Aggregate)),
            indexes={node_key(node): node.fields for node in view.plan.keepable() if isinstance(node, Indexed)},
            again=program.mode == INCREMENTAL and not program.heavy and not view.functions,
        )

    def last_result(self) -> pa.Table | None:
        """The rows of the last result where the driver can have them; read once."""
        if not self._small() or not self.before:
            return None
        known = self.view.last_rows
        if known is None or known[0] != self.before:  # not the view's version: another thread may have moved that on
            known = self.view.last_rows = self.before, last_rows(self.engine.files, self.result)
        return known[1]

    def _frame(self, name: str, at: str, spark: SparkSession) -> DataFrame:
        """A table as of the old version, the new one, or the changes between; by its own names where `at` is empty."""
        table = self.leaves[name]
        if at == "delta":
            return table.delta(spark, self.tables[name].delta, self.before)
        frame = table.snapshot(spark, self.before if at == "old" else self.upto)
        return frame if at else frame.toDF(*(f.name for f in table.schema))

    def _may_pile_up(self, made: int) -> bool:
        """Whether there may be many segments now, by those that were there before the run; the catalog is not asked."""
        if not all(isinstance(leaf, TableLeaf) for leaf in self.leaves.values()):
            return True  # the tables are further below
        return piles_up(len(self.result) + made, (len(table.segments) for table in self.tables.values()))

    # --- the commit ------------------------------------------------------------------------------

    def _commit(
        self, mode: str, program: Program, outcome: Outcome, choices: tuple[Choice, ...], reason: str
    ) -> Refresh:
        view, engine = self.view, self.engine
        inserted = sum(s.row_count for s in outcome.segments if s.sign > 0)
        deleted = sum(s.row_count for s in outcome.segments if s.sign < 0)
        carried = {key: self.at_hand[key] for key in program.carried}
        untouched = untouched_states(view.plan, self.at_hand, frozenset(self.changes))
        kept = outcome.states if mode == RECOMPUTE else {**untouched, **carried, **outcome.states}
        wanted = frozenset(c.key for c in choices if c.keep)
        kept = {key: state for key, state in kept.items() if key in wanted}
        stored = stored_bytes(engine.spark, [s for x in kept.values() for s in x.segments], engine.segment_bytes)
        sizes = sizes_of(kept, stored)
        seen = estimates(view, self.facts, choices, sizes, outcome.observed)
        kept, choices = fit_beside_others(view, self.usable, kept, choices, stored)
        rows_in = {t: c.inserted + c.deleted for t, c in self.changes.items()} or {
            t: s.rows for t, s in self.tables.items()
        }
        predicted = self._predicted(mode)
        seconds = self.timer.total()
        view.counted.add(outcome.observed, {t: s.rows for t, s in self.tables.items()})
        if mode in view.warm:  # the first run of a program is slow while Java compiles it: it teaches nothing
            view.corrections = learned(view.corrections, mode, predicted, seconds["total"])
        view.warm.add(mode)
        reason = "; ".join((reason, *self.outlook.notes)) if self.outlook is not None else reason
        functions = {"functions": engine.functions.records(view.functions)}
        try:
            kind = "create_view" if view.is_new else "refresh"
            with engine.catalog.commit(kind, view.name, {"mode": mode}, engine.lease) as tx:
                view.arrive(tx)
                tx.add_segments(f"v{view.id}", outcome.segments)
                report = Refresh(
                    view.name, mode, self.before, tx.version, rows_in, inserted, deleted, seconds,
                    {kept[k].label[:120]: sizes[k] for k in kept}, sum(sizes[k] for k in kept),
                    view.declared.capped(self.usable), reason,
                    predicted, self.planned.next_best if self.planned is not None else "",
                    priced_ways(mode, self.prices, predicted), seen,
                )  # fmt: skip
                tx.update_view(view.id, version=tx.version, plan_json=json.dumps(stored_plan(view.plan)),
                               options_json=json.dumps(view.options_with(choices, sizes) | functions))  # fmt: skip
                if self.outlook is not None:
                    replace(self.outlook, view_id=view.id).record(tx)
                tx.add_refresh(view.id, self.before, tx.version, report.total_seconds, report.to_dict())
        except BaseException as error:
            outcome.release()
            remove_uncommitted(engine.files, engine.catalog, [s.path for s in outcome.segments], error)
            raise
        view.functions = functions["functions"]
        view.adopt(tx.version, kept, choices, program, sizes)
        view.arrivals.note(view.states, {t: s.rows for t, s in self.tables.items()})
        view.last_rows = (tx.version, outcome.result) if _few_rows(outcome.result) else None
        view.grown -= {step.key for step in program.steps if step.purpose is Purpose.REPLACE}
        used = {s.rdd_id for state in kept.values() for s in state.segments}
        release(s for s in outcome.temporary if s.rdd_id not in used)
        wait(outcome.sending)  # what fails here fails again where it is read
        self.timer.phase("commit")
        compact(view, files=self._may_pile_up(len(outcome.segments)), room=self.free())
        self.timer.phase("compact")
        return replace(report, seconds=self.timer.total())


def _few_rows(rows: pa.Table | None) -> bool:
    return rows is not None and 0 < rows.num_rows <= FEW


def _told(why: str, error: Exception) -> str:
    """Why a refresh is tried another way."""
    if REFILL in str(error):
        return "too many of the first rows went, and those that follow them were not kept"
    return f"{why}: {first_line(error)}"

"""Views: standing queries whose result at version v is exactly the query over the tables at v."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType, _parse_datatype_string

from slackwater.algebra.nodes import Opaque, Rel
from slackwater.algebra.ordering import breaks_ties
from slackwater.algebra.printer import describe, node_key
from slackwater.algebra.serialize import from_json, stored_plan
from slackwater.arrivals.forecast import Forecast
from slackwater.arrivals.kinds import Forecaster, forecaster_from
from slackwater.arrivals.outlook import check_forecaster, look_ahead
from slackwater.arrivals.policies import Policy
from slackwater.arrivals.policy_text import as_policy, policy_from_json, policy_to_json
from slackwater.arrivals.scoring import ForecastReport
from slackwater.arrivals.situation import Verdict
from slackwater.arrivals.watching import watch
from slackwater.declared import Declared
from slackwater.errors import ViewError
from slackwater.execution import explaining, verifying
from slackwater.execution.counted import Counted, numbers, whole
from slackwater.execution.equal_states import release_unused, share_equal
from slackwater.execution.fitting import fit_all
from slackwater.execution.history import History
from slackwater.execution.leaves import inputs_of, readers_of, refuse_while_read, tables_read, views_read
from slackwater.execution.program import Program
from slackwater.execution.refresh import Refresher
from slackwater.execution.reports import Refresh, Report, Verification
from slackwater.execution.results import ResultReader, sort_column
from slackwater.execution.saving import load_states, save_states
from slackwater.execution.sessions import active_session_kept
from slackwater.execution.settling import Arrivals
from slackwater.execution.state_planning import CORRECTIONS
from slackwater.execution.states import State, StateSegment
from slackwater.execution.what_if import WhatIf, what_if
from slackwater.notebook import view_html
from slackwater.planning.cardinality import row_bytes
from slackwater.planning.choices import Choice, choices_from
from slackwater.planning.strategies import StatePlan
from slackwater.renaming import rename_view
from slackwater.schedules import policy_of, schedule_of
from slackwater.storage.records import SegmentRecord, ViewRecord
from slackwater.table import change_feed

if TYPE_CHECKING:
    from slackwater.engine import Engine
    from slackwater.execution.state_planning import Situation
    from slackwater.replacing import Replacement
    from slackwater.storage.transaction import Transaction

RENAMED = {"planned": "auto"}
"""Strategies that a catalog may know by an older name."""


class View:
    """A standing query. Get one from `Engine.create_view` or `Engine.view`.

    In an engine that only reads, each call looks first where the writer has brought the view by now.
    """

    def __init__(self, engine: Engine, record: ViewRecord) -> None:
        self.engine, self.id = engine, record.id
        self.only: Callable[[Rel], frozenset[str]] | None = None
        """The nodes of a plan that may be kept, where an experiment allows no others."""
        self.states: dict[str, State] = {}
        self.grown: set[str] = set()
        """The states of what waits in lookups that a refresh should cut down to what waits indeed."""
        self.arrivals = Arrivals()
        self.warm: set[str] = set()
        """The modes of refresh that have run in this process."""
        self._schema: StructType | None = None
        self._loaded = False
        self._dropped = False
        self._arrives: tuple[View | None, ViewRecord] | None = None
        self.replacement: Replacement | None = None
        """What became of the states of the view that this one replaced."""
        self._stand(record)

    def _stand(self, record: ViewRecord) -> None:
        """Be what the catalog says."""
        self._record = record
        self.name, self.version = record.name, record.version
        query = json.loads(record.query_json)
        self.columns: tuple[str, ...] = tuple(query["columns"])
        self.order: tuple[str, ...] = tuple(query["order"])
        self.settings: dict[str, str] = json.loads(record.settings_json)
        options = json.loads(record.options_json)
        self.declare(record)
        self.shares = numbers(options.get("shares"), most=1.0)
        self.choices = choices_from(options.get("choices"))
        self._known_bytes = whole(options.get("bytes"))
        self.counted = Counted.from_json(options)
        self.corrections = numbers(options.get("corrections"), *CORRECTIONS)
        self.functions: dict[str, dict[str, str]] = options.get("functions", {})
        self._planned: tuple[Situation, StatePlan] | None = None
        self.plan: Rel = from_json(json.loads(record.plan_json))
        self.logical_plan: Rel = from_json(options["logical"]) if "logical" in options else self.plan
        self.last_program: Program | None = None
        self.last_rows: tuple[int, pa.Table | None] | None = None
        """The result's rows at a version where they are few, to compare the next one with; none where Spark must."""

    def declare(self, record: ViewRecord) -> None:
        """Take over what can change without changing the result."""
        options = json.loads(record.options_json)
        self.sql: str | None = json.loads(record.query_json)["sql"]
        self.strategy: str = RENAMED.get(options["strategy"], options["strategy"])
        self.declared = Declared.from_json(options.get("declared", {}))
        self.policy: Policy = policy_from_json(options.get("refresh", {"kind": "manual"}))
        self.forecaster: Forecaster = forecaster_from(options.get("forecast"))

    def __repr__(self) -> str:
        return f"View({self.name!r}, version={self.version})"

    def _repr_html_(self) -> str:
        return view_html(self)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The tables and views that the query reads."""
        return inputs_of(self.plan)

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that the query reads, directly or through other views."""
        return tables_read(self.engine, self.inputs)

    @property
    def schema(self) -> StructType:
        """The result's columns."""
        if self._schema is None:
            types = [_parse_datatype_string(f.dtype) for f in self.plan.schema]
            self._schema = StructType([StructField(n, t, True) for n, t in zip(self.columns, types, strict=True)])
        return self._schema

    @property
    def budget(self) -> int:
        """What this view's states may occupy if no other view has any."""
        return self.declared.capped(self.engine.budget)

    @property
    def wanted(self) -> frozenset[str]:
        """The states that were chosen to be kept."""
        return frozenset(c.key for c in self.choices if c.keep)

    # --- what users call -------------------------------------------------------------------------

    def refresh(self, *, full: bool = False) -> Refresh:
        """Bring the result to the latest version, in one commit; `full` recomputes it."""
        self._check_alive()
        with self.engine.writing():
            with self.engine.catalog.reading():
                below = views_read(self.engine, self.inputs)
            for view in (*below, self):
                self.engine.functions.moved(view)  # before any of them is refreshed
            for view in below:
                view.refresh_alone()
            return self.refresh_alone(full=full)

    def refresh_alone(self, *, full: bool = False) -> Refresh:
        """Bring the result to the latest version; the views that it reads are there already."""
        if not self._loaded:
            self._catch_up()
            self.load_states()
        with self.engine.java_names.let_go():
            with self.engine.catalog.reading():
                self._catch_up()
                refresher = Refresher(self)
                refresher.look_ahead(full=full)
            return refresher.refresh(full=full)

    def result(self, version: int | None = None) -> DataFrame:
        """The last committed result, in the query's order; or that of a version as far back as history goes."""
        self._check_alive()
        if not self.version:
            raise ViewError("VIEW_EMPTY", f"view {self.name!r} has no result yet", "call refresh() first")
        at = self.version if version is None else self.engine.check_version(version)
        frame = self.result_frame(self.engine.spark, at).toDF(*self.columns)
        keys = [sort_column(*json.loads(key)) for key in self.order]
        return frame.orderBy(*keys) if keys else frame

    def changes(self, since: int = 0) -> DataFrame:
        """What was added to and taken from the result after a version; history may end, as `docs/errors.md` says."""
        self._check_alive()
        self.engine.check_version(since)
        segments = self.engine.catalog.segments_between(
            f"v{self.id}", since, self.engine.catalog.version(), per_version=True
        )
        return change_feed(self.result_reader(self.engine.spark), segments)

    def relation(self) -> DataFrame:
        """A symbolic, empty DataFrame that stands for the result in a view defined by DataFrames."""
        self._check_alive()
        return self.engine.symbol(self)

    def explain(self, *, sql: bool = True) -> Report:
        """The plan with the states kept and dropped, their bytes and reasons, and the next refresh's program as SQL."""
        self._check_alive()
        return Report(explaining.explain(self, with_sql=sql))

    def what_if(
        self, *, budget: str | int | None = None, forecast: Mapping[str, float] | Forecast | None = None
    ) -> WhatIf:
        """What would be kept, and what the next refresh would take, under another budget or forecast; runs nothing."""
        self._check_alive()
        return what_if(self, budget, forecast)

    def verify(self, *, examples: int = 10) -> Verification:
        """Compare the result with a recompute at the same version; tells which rows differ.

        The views that the query reads are compared first, and the first one that differs is what is told.
        """
        self._check_alive()
        with self.engine.java_names.let_go(), active_session_kept():
            for below in views_read(self.engine, self.inputs):
                found = verifying.verify(below.held_still(), examples)
                if not found:
                    return found
            return verifying.verify(self.held_still(), examples)

    def history(self, limit: int | None = None) -> History:
        """Every refresh, the latest first: what it took and should have taken, and the ways that were not taken."""
        return History(
            self.name, [dict(r.report) | {"at": r.at} for r in self.engine.catalog.refreshes(self.id, limit)]
        )

    def due(self) -> Verdict:
        """Whether the policy asks for a refresh now, since or from when, and why; from the catalog alone."""
        self._check_alive()
        return self.policy.judge(watch(self))

    def set_policy(self, policy: Policy | str | None, *, schedule: str = "") -> None:
        """Refresh the view by another policy from now on; `schedule` is the same in SQL's words, where it has any."""
        self._check_alive()
        policy = as_policy(policy)
        declared = replace(self.declared, schedule=schedule)
        with self.engine.writing() as lease:
            options = json.loads(self.engine.catalog.view_by_id(self.id).options_json)
            options |= {"refresh": policy_to_json(policy), "declared": declared.to_json()}
            with self.engine.catalog.commit("set_policy", self.name, {"policy": str(policy)}, lease) as tx:
                tx.update_view(self.id, options_json=json.dumps(options))
            self.policy, self.declared = policy, declared

    def set_schedule(self, schedule: str) -> None:
        """Refresh the view by a schedule, in the words of SQL's SCHEDULE; on request only for an empty one."""
        timing = schedule_of(schedule)
        self.set_policy(policy_of(timing), schedule="" if timing is None else timing.text)

    def forecast(self, horizon: str | float | None = None) -> Forecast:
        """What is expected to arrive from now on until the next trigger: the delta after one that is taken now.

        Args:
            horizon: the time until that trigger, such as "60s"; if not given, until the next time of the
                view's policy, or where that tells none the usual time between refreshes.
        """
        self._check_alive()
        return look_ahead(self, self.engine.now(), horizon).forecast

    def forecasts(self, limit: int | None = 100) -> ForecastReport:
        """What was expected of each table and what came, the latest first, with the error."""
        return ForecastReport(self.name, self.forecaster.kind, self.engine.catalog.forecasts(self.id, limit))

    def set_forecast(self, forecast: Forecaster) -> None:
        """Forecast in another way from now on."""
        self._check_alive()
        with self.engine.writing() as lease:
            forecaster = check_forecaster(forecast, self.engine.catalog.tables(), self.tables)
            options = json.loads(self.engine.catalog.view_by_id(self.id).options_json)
            options["forecast"] = forecaster.to_dict()
            with self.engine.catalog.commit("set_forecast", self.name, {"forecast": forecaster.kind}, lease) as tx:
                tx.update_view(self.id, options_json=json.dumps(options))
            self.forecaster = forecaster

    def rename(self, name: str) -> None:
        """Call the view otherwise; one that another view reads keeps its name. Result, states and history stay."""
        self._check_alive()
        rename_view(self, name)

    def drop(self) -> None:
        """Drop the view with its result and states; one that another view reads cannot be dropped."""
        self._check_alive()
        with self.engine.writing() as lease:
            refuse_while_read(self, "dropped")
            with self.engine.catalog.commit("drop_view", self.name, {}, lease) as tx:
                tx.drop_view(self.id)
            self.release_states()
            self.forget()
            self.engine.forget_view(self.id)
            self.engine.files.sweep(self.engine.catalog.all_paths())

    def status(self) -> dict[str, Any]:
        """Where the view stands, and when it is due next."""
        self._check_alive()
        situation = watch(self)
        verdict = self.policy.judge(situation)
        return {"name": self.name, "version": self.version, "pending_rows": situation.pending_rows,
                "tables": list(self.inputs), "state_bytes": self.state_bytes(),
                "incremental": not isinstance(self.plan, Opaque), "policy": str(self.policy),
                "due": verdict.due, "due_at": verdict.at, "due_reason": verdict.reason}  # fmt: skip

    # --- used by the refresh -------------------------------------------------------------------------

    def _check_alive(self) -> None:
        """Refuse a view that is no more; beside a running writer, stand where that has brought the view by now."""
        if self._dropped or self.engine.read_only:
            self.follow(self.engine.catalog.view_by_id(self.id))

    def follow(self, record: ViewRecord) -> None:
        """In an engine that only reads: be what the catalog says now, unless another thread has seen more of it."""
        if record != self._record and record.version >= self.version:
            self._stand(record)

    def held_still(self) -> View:
        """The view at the version it stands at, even if another thread makes it follow a writer meanwhile."""
        return View(self.engine, self._record) if self.engine.read_only else self

    def result_frame(self, spark: SparkSession, at: int | None = None) -> DataFrame:
        """The result's rows under the plan's column names."""
        segments = self.engine.catalog.segments(f"v{self.id}", at=self.version if at is None else at)
        names = [f.name for f in self.plan.schema]
        return self.result_reader(spark).bag(segments, names)

    def result_reader(self, spark: SparkSession) -> ResultReader:
        """Reads the result's segments in a session."""
        return ResultReader(spark, self.engine.files, self.schema)

    def result_segments(self) -> tuple[SegmentRecord, ...]:
        """Where the result's rows are."""
        return self.engine.catalog.segments(f"v{self.id}", at=self.version)

    def result_rows(self, spark: SparkSession, segments: Sequence[SegmentRecord]) -> DataFrame:
        """Segments of the result as they are: rows added and, with weights, rows taken away."""
        return self.result_reader(spark).signed(segments, [f.name for f in self.plan.schema])

    def row_estimates(self) -> dict[str, int]:
        """Roughly how many rows each state has, from its bytes."""
        sizes = self.known_bytes()
        widths = {node_key(n): row_bytes(n) for n in self.plan.keepable()}
        found = {key: max(1, size // widths[key]) for key, size in sizes.items() if key in widths}
        return {**found, **{key: max(1, int(rows)) for key, rows in self.counted.rows.items() if key in found}}

    def known_bytes(self) -> dict[str, int]:
        """The last measured bytes of each state, kept or dropped."""
        return dict(self._known_bytes)

    def settled(self) -> int:
        """The version up to which no view asks for single changes of this result any more."""
        return min((reader.version for reader in readers_of(self) if reader.version), default=self.version)

    def state_bytes(self) -> int:
        """What this view's states occupy, as Spark's storage said when they were last changed."""
        return sum(self._known_bytes.get(key, 0) for key in self.kept)

    @property
    def kept(self) -> frozenset[str]:
        """The nodes whose state is there; before this process has refreshed the view, what the catalog says."""
        return frozenset(self.states) if self._loaded else self.wanted

    def remeasured(self, sizes: Mapping[str, int]) -> None:
        """Take note of what states occupy by now."""
        self._known_bytes.update(sizes)

    def states_by_label(self) -> dict[str, int]:
        """Bytes of each state by what it is."""
        return {s.label[:120]: self._known_bytes.get(k, 0) for k, s in self.states.items()}

    def options_with(self, choices: tuple[Choice, ...], sizes: Mapping[str, int]) -> dict[str, Any]:
        """The options as the catalog keeps them."""
        listed = [asdict(c) for c in choices]
        return {"strategy": self.strategy, "declared": self.declared.to_json(),
                "refresh": policy_to_json(self.policy), "shares": self.shares,
                "forecast": self.forecaster.to_dict(), "choices": listed,
                "bytes": {**self._known_bytes, **sizes}, "logical": stored_plan(self.logical_plan),
                "corrections": self.corrections, "functions": self.functions, **self.counted.to_json()}  # fmt: skip

    def planned_states(self, situation: Situation, plan: Callable[[], StatePlan]) -> StatePlan:
        """The choice of states in a situation; planned once while the situation lasts."""
        if self._planned is None or not self._planned[0].like(situation):
            self._planned = (situation, plan())
        return self._planned[1]

    def adopt(self, version: int, states: dict[str, State], choices: tuple[Choice, ...], program: Program,
              sizes: Mapping[str, int]) -> None:  # fmt: skip
        """Take over what a committed refresh made, and give the memory of the rest back."""
        before = {s.rdd_id: s for state in self.states.values() for s in state.segments}
        after = {s.rdd_id for state in states.values() for s in state.segments}
        self.version, self.states, self.choices, self.last_program = version, states, choices, program
        self._known_bytes.update(sizes)
        self.engine.hold_view(self)
        release_unused(self.engine, (s for i, s in before.items() if i not in after))
        share_equal(self)

    def release_states(self) -> None:
        """Give the memory of all states back."""
        held, self.states = self.states, {}
        release_unused(self.engine, (s for state in held.values() for s in state.segments))

    def take_over(self, key: str, state: State) -> tuple[StateSegment, ...]:
        """Use the rows of an equal state; gives those of its own that it had."""
        own = self.states[key].segments
        self.states[key] = state
        return tuple(s for s in own if s.rdd_id not in state.rdd_ids())

    def give_back(self, keys: frozenset[str], reason: str) -> None:
        """Release some states; the next refresh does without them or builds them anew."""
        held = [state for key, state in self.states.items() if key in keys]
        self.states = {key: state for key, state in self.states.items() if key not in keys}
        release_unused(self.engine, (s for state in held for s in state.segments))
        self.choices = tuple(replace(c, keep=False, reason=reason) if c.key in keys else c for c in self.choices)

    def load_states(self) -> None:
        """Load the saved states, once; what the budget has no room for by now is left where it is."""
        if not self._loaded:
            fit_all(self.engine)
            self._loaded = True
            self.states = load_states(self)

    def _catch_up(self) -> None:
        """Stand where the catalog says: a refresh may have been committed whose end was not seen, as by Ctrl-C.

        From the version before it, its changes would be applied a second time.
        """
        if self._arrives is not None:
            return
        record = self.engine.catalog.view_by_id(self.id)
        if record.version != self.version:
            self.release_states()
            options = json.loads(record.options_json)
            self.choices = choices_from(options.get("choices"))
            self.functions = options.get("functions", {})
            self.version, self.last_rows = record.version, None

    def save_states(self) -> None:
        """Write the states to disk for the next start."""
        if not self._dropped:
            save_states(self, loaded=self._loaded)

    # --- coming with the first result ----------------------------------------------------------------

    @property
    def is_new(self) -> bool:
        """Whether the commit of the next result makes the view, where there is none."""
        return self._arrives is not None and self._arrives[0] is None

    def come_with_result(self, record: ViewRecord) -> None:
        """Be recorded, as the record says, in the commit of the first result; until then go by the record's id."""
        self._arrives, self._loaded = (None, record), True

    def take_place_of(self, old: View, record: ViewRecord) -> None:
        """The same, and in that commit the old view goes; until then this one goes by its id."""
        self._arrives, self._loaded = (old, record), True
        self._known_bytes = old.known_bytes()

    def inherit(self, states: dict[str, State]) -> None:
        """Start with states of the replaced view; their files go with it, so that the rows must be in memory."""
        for state in states.values():
            for segment in state.segments:
                if not segment.elsewhere:
                    segment.rdd.count()
        self.states = dict(states)

    def arrive(self, tx: Transaction) -> None:
        """In the commit of the first result: this view comes, and one that it replaces goes."""
        if self._arrives is not None:
            old, record = self._arrives
            if old is not None:
                tx.drop_view(old.id)
            self.id = tx.add_view(record.name, record.query_json, record.plan_json, record.settings_json,
                                  record.options_json).id  # fmt: skip
            self._arrives = None

    def forget(self) -> None:
        """There is no such view any more."""
        self.states, self._dropped = {}, True

    def label_of(self, key: str) -> str:
        """What a state is, for people."""
        node = self.state_node(key)
        return describe(node) if node is not None else key

    def state_node(self, key: str) -> Rel | None:
        """The plan node that a state belongs to."""
        return next((n for n in self.plan.keepable() if node_key(n) == key), None)

    @property
    def ordered(self) -> bool:
        """Whether the query leaves ties open somewhere, so that they must be broken the same way everywhere."""
        return any(breaks_ties(n) for n in self.plan.walk())

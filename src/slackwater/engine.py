"""The engine: one warehouse, its tables and views, and the Spark that works for them."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from slackwater.algebra.expressions import quote
from slackwater.algebra.serialize import to_json
from slackwater.arrivals.clock import Clock, SystemClock, read
from slackwater.arrivals.kinds import Forecaster
from slackwater.arrivals.learned import Learned
from slackwater.arrivals.outlook import ArrivalLog, check_forecaster
from slackwater.arrivals.policies import Policy
from slackwater.arrivals.policy_text import as_policy
from slackwater.arrivals.scheduler import Scheduler
from slackwater.arrivals.ticks import Tick
from slackwater.capture import Captured, capture
from slackwater.creating import NOT_YET, create_table, create_view
from slackwater.ddl import parse
from slackwater.ddl_running import Outcome, run_statement
from slackwater.declared import Declared, options_of, renamed
from slackwater.declaring import Declaring
from slackwater.eligibility import Eligibility, eligibility, refuse_contradiction, refused, require_incremental
from slackwater.errors import QueryRefused, SlackwaterError, ViewError
from slackwater.execution.calibration import calibrate, cluster_of
from slackwater.execution.equal_states import bytes_of_others
from slackwater.execution.fitting import fit_all
from slackwater.execution.functions import Functions
from slackwater.execution.java_names import JavaNames
from slackwater.execution.leaves import inputs_of, refuse_cycle, refuse_table_while_read, tables_read
from slackwater.execution.saving import release_all, save_all
from slackwater.execution.sessions import Sessions, active_session_kept, refuse_stopped, start_spark
from slackwater.intake import Rows, frame_schema, is_tabular
from slackwater.notebook import engine_html
from slackwater.planning.rates import Rates
from slackwater.planning.strategies import STRATEGIES
from slackwater.replacing import replace_view
from slackwater.schedules import policy_of, schedule_of
from slackwater.settings import parse_bytes, pinned_settings
from slackwater.storage.directory import open_catalog
from slackwater.storage.files import WarehouseFiles
from slackwater.storage.lease import WriterLease
from slackwater.storage.records import ViewRecord
from slackwater.symbols import Symbols, adopt, symbol
from slackwater.table import Table
from slackwater.table_schemas import check_table, table_schema
from slackwater.view import View

_log = logging.getLogger(__name__)


class Engine(Declaring):
    """Opens or creates a warehouse.

    Args:
        path: the warehouse directory.
        memory_budget: what the states of all views may occupy between refreshes, such as "1GB".
        spark: a Spark session to work with; a local one is started (and stopped on close) if none is given.
        catalog: an SQLAlchemy URL for the catalog; SQLite inside the warehouse by default.
        read_only: open beside a running writer, without taking the lease.
        save_states: on close, save states so that the next start need not rebuild them.
        clock: tells the time that policies go by and that commits are recorded with; the machine's by default.
    """

    def __init__(
        self,
        path: str | Path,
        memory_budget: str | int = "1GB",
        spark: SparkSession | None = None,
        catalog: str | None = None,
        *,
        read_only: bool = False,
        save_states: bool = True,
        clock: Clock | None = None,
    ) -> None:
        self.clock: Clock = clock if clock is not None else SystemClock()
        read(self.clock)  # refuses what is no clock before anything is made
        self._budget = parse_bytes(memory_budget)
        self.share_states = True
        self.path = Path(path).absolute()
        self.read_only, self._save_states = read_only, save_states
        self.catalog = open_catalog(self.path, catalog or None, create=not read_only, now=lambda: read(self.clock))
        self.files = WarehouseFiles(self.path)
        self.arrivals = ArrivalLog(self.catalog)
        self.java_names = JavaNames()
        self.lease: WriterLease | None = None
        self._lock = threading.RLock()
        self._views: dict[int, View] = {}
        self.table_names: dict[int, str] = {}
        """What the tables are called that were renamed here, by number."""
        self.segment_bytes: dict[int, int] = {}
        """What Spark's storage said of the rows of states, by Spark's number for them."""
        self._rates: Rates | None = None
        self._rates_of_elsewhere = False
        self._scheduler = Scheduler(self)
        self._symbols = Symbols()
        self._closed = False
        self.functions = Functions()
        self._spark, self._own_spark = spark, False
        self.around_start: Callable[[], AbstractContextManager[None]] = nullcontext
        """What goes around the start of Spark, whenever that is: the command line keeps it quiet there."""
        self._sessions: Sessions | None = None
        try:
            if not read_only:
                self.lease = WriterLease.acquire(self.catalog, f"slackwater engine on {self.path}")
                self.files.sweep(self.catalog.all_paths())
        except BaseException:
            self.catalog.close()
            raise

    # --- life --------------------------------------------------------------------------------------

    def __enter__(self) -> Engine:
        return self

    def _repr_html_(self) -> str:
        return engine_html(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Save states, give back the lease, and stop Spark if it was started here. Safe to call twice."""
        self.stop()
        with self._lock:
            if self._closed:
                return
            self._closed = True
            try:
                if self._save_states and not self.read_only:
                    save_all(self._views.values())
            finally:
                release_all(self._views.values())
                self._give_lease_back()
                self.catalog.close()
                if self._own_spark and self._spark is not None:
                    self._spark.stop()

    def _give_lease_back(self) -> None:
        try:
            if self.lease is not None:
                self.lease.release()
        except SlackwaterError as error:
            _log.warning("the writer's lease could not be given back and is left to run out: %s", error)

    @property
    def spark(self) -> SparkSession:
        """The Spark session; started when first needed."""
        if self._closed:
            raise SlackwaterError("ENGINE_CLOSED", "the engine is closed", "open it again with slackwater.Engine(…)")
        if self._spark is None:
            with self.around_start():
                self._own_spark = SparkSession.getActiveSession() is None
                self._spark = start_spark()
        refuse_stopped(self._spark)
        return self._spark

    @property
    def rates(self) -> Rates:
        """What work costs on this Spark: as `calibrate` measured it on this cluster, else the built-in numbers."""
        if self._rates is None:
            text = self.catalog.fact("rates")
            found = Rates() if text is None else Rates.from_json(text)
            self._rates_of_elsewhere = bool(found.cluster) and found.cluster != cluster_of(self.spark)
            self._rates = Rates() if self._rates_of_elsewhere else found
        return self._rates

    def calibrate(self) -> Rates:
        """Measure what work costs on this Spark and remember it; takes some seconds."""
        with self.writing() as lease:
            self._rates = calibrate(self.sessions.get("delta", {}), self.path)
            self.catalog.set_fact("rates", json.dumps(self._rates.to_dict()), lease)
            self._rates_of_elsewhere = False
        return self._rates

    def calibrate_anew(self) -> bool:
        """Calibrate if somebody once did so on another cluster and it has not been tried here; gives whether it was."""
        if not self._rates_of_elsewhere:  # nearly always: an idle look asks the catalog for nothing more
            return False
        with self.writing():
            self._rates_of_elsewhere = False
            self.calibrate()
            return True

    @property
    def sessions(self) -> Sessions:
        """Sessions for our own work."""
        if self._sessions is None:
            self._sessions = Sessions(self.spark, self.functions)
        refuse_stopped(self._sessions.user)
        return self._sessions

    @property
    def budget(self) -> int:
        """What the states of all views may occupy between refreshes, in bytes; a lower one releases states at once."""
        return self._budget

    @budget.setter
    def budget(self, size: str | int) -> None:
        found = parse_bytes(size)
        with self._lock:  # not in the middle of a refresh
            self._budget = found
            fit_all(self)

    def now(self) -> float:
        """The time that forecasts go by, in seconds since 1970."""
        return read(self.clock)

    @contextmanager
    def writing(self) -> Iterator[WriterLease]:
        """One writer at a time in this process, and the right to write at all."""
        with self._lock:
            if self._closed:
                raise SlackwaterError(
                    "ENGINE_CLOSED", "the engine is closed", "open it again with slackwater.Engine(…)"
                )
            if self.lease is None:
                raise SlackwaterError(
                    "WAREHOUSE_LOCKED", "the warehouse is open for reading only", "open it without read_only"
                )
            self.lease.check()
            with active_session_kept():
                yield self.lease

    # --- tables --------------------------------------------------------------------------------------

    def create_table(self, name: str, schema: str | StructType | Rows, key: Sequence[str] = ()) -> Table:
        """Create a table from a DDL string, a Spark schema, or rows that come in the same commit.

        Such rows are a Spark, pandas or polars DataFrame, or an Arrow table.
        """
        if isinstance(schema, str):
            assert self.spark is not None  # noqa: S101 - reading a DDL string needs a running Spark
        rows = schema if is_tabular(schema) else None
        fields = table_schema(schema) if rows is None else frame_schema(rows, self.spark)
        check_table(name, fields, key)
        with self.writing():
            return create_table(self, name, fields, key, rows)

    def table(self, name: str) -> Table:
        """An existing table."""
        return Table(self, self.catalog.table(name))

    def tables(self) -> list[Table]:
        """All tables."""
        return [Table(self, record) for record in self.catalog.tables()]

    def drop_table(self, name: str) -> None:
        """Drop a table that no view reads."""
        with self.writing() as lease:
            record = self.catalog.table(name)
            refuse_table_while_read(self, record.name, "dropped")
            with self.catalog.commit("drop_table", name, {}, lease) as tx:
                tx.drop_table(record.id)
            self.files.sweep(self.catalog.all_paths())

    def check_version(self, version: int | None) -> int:
        """A version that exists; the latest for None."""
        latest = self.catalog.version()
        if version is None:
            return latest
        if isinstance(version, bool) or not isinstance(version, int) or not 0 <= version <= latest:
            raise SlackwaterError(
                "VERSION_UNKNOWN", f"there is no version {version!r}", f"versions go from 0 to {latest}"
            )
        return version

    # --- views ---------------------------------------------------------------------------------------

    def create_view(
        self,
        name: str,
        query: str | DataFrame | Callable[[Mapping[str, DataFrame]], DataFrame],
        *,
        refresh: Policy | str | None = None,
        forecast: Forecaster | None = None,
        strategy: str = "auto",
        populate: bool = True,
        strict: bool = False,
        columns: Sequence[str] = (),
        comment: str = "",
        memory_budget: str | int | None = None,
        schedule: str = "",
        replace: bool = False,
        discard_states: bool = False,
    ) -> View:
        """Make a standing query and, unless told otherwise, compute its first result.

        Args:
            name: the view's name; tables and views share one namespace.
            query: SQL text, a DataFrame made from `Table.relation()`, or a function from the tables' relations to one.
            strategy: "auto" keeps the states that pay for themselves, by an exact search over estimated costs within
                the budget; "plain" keeps them by plain rules; "rebatch" keeps none and recomputes;
                "incremental" keeps all that fits and recomputes only if it must; "recycler" keeps as a cache would;
                "higher_order" keeps every join that the change of one table has to meet.
            refresh: when `tick` and `run` refresh it, such as `every("60s") | rows(10_000)`, or that as text; on
                request only by default.
            forecast: what the next delta will bring: `fixed(…)`, `late_arrivals(…)`, `paced()` or, by default,
                `learned()`.
            populate: compute the first result now.
            strict: refuse a query of which any operator would be recomputed, or what else is asked for would have it
                recomputed; see `check`.
            columns: names for the result's columns, instead of the query's.
            comment: a remark for people.
            memory_budget: what this view's states may occupy, within the engine's budget.
            schedule: when to refresh, in the words of SQL's SCHEDULE, such as "EVERY 5 MINUTES".
            replace: give a view of that name this query; its result stays readable until the new one commits. States
                that the new query needs are taken over; `View.replacement` says which.
            discard_states: agree that replacing throws away the states that cannot be taken over.
        """
        if strategy not in STRATEGIES:
            raise ViewError(
                "STRATEGY_UNKNOWN", f"there is no strategy {strategy!r}", f"use one of {', '.join(STRATEGIES)}"
            )
        if replace and not populate:
            raise ViewError(
                "SETTING_INVALID", "a view cannot be replaced by one without a result", "leave out populate=False"
            )
        declared = Declared.of(comment, strict, memory_budget, schedule)
        policy = as_policy(refresh) if refresh is not None else policy_of(schedule_of(declared.schedule))
        with self.writing():
            settings = pinned_settings(self.spark)
            captured = renamed(self.capture(query, settings), columns)
            refuse_cycle(self, name, captured.plan)
            if strict:
                require_incremental(eligibility(captured.plan), name)
                refuse_contradiction(name, captured.plan, strategy, declared.budget_bytes)
            read = tables_read(self, inputs_of(captured.plan))
            forecaster = check_forecaster(forecast or Learned(), self.catalog.tables(), read)
            options = options_of(strategy, declared, policy, forecaster, self.functions.records(captured.functions))
            if replace and (old := self._existing(name)) is not None:
                return replace_view(self, old, captured, settings, options, discard_states=discard_states)
            query_json = json.dumps({"sql": captured.sql, "columns": captured.columns, "order": captured.order})
            record = ViewRecord(NOT_YET, name, query_json, json.dumps(to_json(captured.plan)), json.dumps(settings),
                                json.dumps(options), 0, 0, None)  # fmt: skip
            return create_view(self, record, populate=populate)

    def check(self, query: str | DataFrame | Callable[[Mapping[str, DataFrame]], DataFrame]) -> Eligibility:
        """Tell how a query would be refreshed as a view, operator by operator, without making one.

        A query that cannot be a view is reported as refused, not raised.
        """
        with self._lock, active_session_kept():
            try:
                return eligibility(self.capture(query, pinned_settings(self.spark)).plan)
            except QueryRefused as error:
                return refused(error)

    def sql(self, text: str, *, discard_states: bool = False) -> Outcome:
        """Run one statement about materialized views and give its report; `docs/sql.md` has the grammar.

        Args:
            text: the statement, such as "CREATE MATERIALIZED VIEW … AS SELECT …" or "REFRESH MATERIALIZED VIEW …".
            discard_states: agree that CREATE OR REPLACE throws states away, as DISCARD STATES does.
        """
        return run_statement(self, parse(text), discard_states=discard_states)

    def capture(
        self, query: str | DataFrame | Callable[[Mapping[str, DataFrame]], DataFrame], settings: Mapping[str, str]
    ) -> Captured:
        """Turn a query into a plan under pinned settings."""
        spark = self.sessions.get("capture", settings)
        shapes = self._symbols.bind(spark, [*self.tables(), *self.views()])
        if callable(query) and not isinstance(query, DataFrame):
            query = query({shape.name: spark.table(quote(shape.name)) for shape in shapes.values()})
        if isinstance(query, DataFrame) and query.sparkSession is not spark:
            query = adopt(query, spark)
        return capture(query, spark, shapes, self.functions.for_capture())

    def symbol(self, relation: Table | View) -> DataFrame:
        """The symbolic DataFrame of one table or view, in the user's session."""
        return symbol(self.spark, relation)

    def view(self, name: str) -> View:
        """An existing view."""
        return self._opened(self.catalog.view(name))

    def views(self) -> list[View]:
        """All views."""
        return [self._opened(record) for record in self.catalog.views()]

    def _opened(self, record: ViewRecord) -> View:
        if record.id not in self._views:
            self._views[record.id] = View(self, record)
        found = self._views[record.id]
        if self.read_only:
            found.follow(record)
        return found

    def _existing(self, name: str) -> View | None:
        found = [record for record in self.catalog.views() if record.name.casefold() == name.casefold()]
        return self._opened(found[0]) if found else None

    def swap_view(self, view_id: int, new: View) -> None:
        """Called when a view was replaced by another."""
        self._views.pop(view_id, None)
        self._views[new.id] = new
        self.files.sweep(self.catalog.all_paths())

    def hold_view(self, view: View) -> None:
        """Called by a view that stands at a result, which may be its first."""
        self._views[view.id] = view

    def forget_view(self, view_id: int) -> None:
        """Called by a view that was dropped."""
        self._views.pop(view_id, None)

    def refresh(self) -> list[Any]:
        """Refresh every view, each after those that it reads, all at one version of the tables; gives their reports."""
        with self.writing():
            return [view.refresh() for view in self.views()]

    def tick(self, *, next_look: float = 0.0) -> Tick:
        """Poll the landing directories of all tables, then refresh the views that are due; gives their reports.

        A view or source that fails does not keep the others from their turn: it is in `Tick.failures`, and is tried
        again after a while. An error that concerns all of them, such as a lost lease, is raised.

        Args:
            next_look: seconds until the next call; what would be too late then is due now.
        """
        return self._scheduler.tick(next_look)

    def run(
        self,
        *,
        until_complete: bool = True,
        poll: str | float | timedelta = "1s",
        on_tick: Callable[[Tick], None] | None = None,
    ) -> None:
        """Tick until `stop` is called, until Ctrl-C, or until there is nothing left to wait for.

        That is so when every table that a view reads is complete and every view that is not `manual` is fresh. A view
        that fails three times on complete tables will not get well: its error is raised.

        Args:
            until_complete: whether to end when there is nothing left to wait for.
            poll: how often to look for arrivals.
            on_tick: called with the report of every tick.
        """
        self._scheduler.run(poll, until_complete, on_tick)

    def stop(self) -> None:
        """End a `run`, from any thread, after the view that it is refreshing; without one, do nothing."""
        self._scheduler.stop()

    @property
    def running(self) -> bool:
        """Whether `run` is going on."""
        return self._scheduler.running

    def state_bytes(self, without: int | None = None) -> int:
        """What the states of all views, or all but one, occupy now; rows that several share count once."""
        return bytes_of_others(self, self._views.get(without) if without is not None else None)

    def loaded_views(self) -> list[View]:
        """The views that this process has used so far: only they can hold states."""
        return list(self._views.values())

    def status(self) -> dict[str, Any]:
        """What is there: tables with rows, views with the version they stand at, bytes of state and the budget."""
        with self.catalog.reading():
            return self._status()

    def _status(self) -> dict[str, Any]:
        version = self.catalog.version()
        views = [v.status() for v in self.views()]  # first: the bytes of views that were not used yet count as well
        return {
            "warehouse": str(self.path),
            "version": version,
            "budget_bytes": self.budget,
            "state_bytes": self.state_bytes(),
            "tables": [
                {
                    "name": t.name,
                    "rows": t.count(),
                    "complete": t.complete,
                    "key": list(t.key),
                    "segments": len(self.catalog.segments(f"t{t.id}")),
                }
                for t in self.tables()
            ],
            "views": views,
        }

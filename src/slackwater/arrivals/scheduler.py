"""The scheduler: polls sources, refreshes what is due, and goes on doing so until it is stopped or all is complete."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from slackwater.arrivals.clock import read
from slackwater.arrivals.durations import parse_duration
from slackwater.arrivals.ticks import Failure, Tick
from slackwater.arrivals.timing import Beats
from slackwater.arrivals.watching import Lookout
from slackwater.errors import SlackwaterError
from slackwater.execution.fitting import let_go
from slackwater.sources.landing import KIND, LandingDirectory

if TYPE_CHECKING:
    from slackwater.arrivals.situation import Situation, Verdict
    from slackwater.engine import Engine
    from slackwater.sources.polls import Poll
    from slackwater.storage.records import SourceRecord, ViewRecord
    from slackwater.view import View

T = TypeVar("T")
_log = logging.getLogger(__name__)

FATAL = ("ENGINE_CLOSED", "LEASE_LOST", "WAREHOUSE_LOCKED", "CLOCK_INVALID")
"""Errors after which nothing else can succeed either."""
GONE = ("VIEW_DROPPED", "VIEW_UNKNOWN", "TABLE_UNKNOWN", "TABLE_COMPLETE")
"""What another thread may have done since we looked; nothing is wrong."""
LONGEST_WAIT = 60.0
"""Whatever fails is tried again after 1, 2, 4, … seconds, but at least so often."""
GIVE_UP = 3
"""Where no data can come any more that would help, a run ends after so many failures of a view."""


@dataclass(frozen=True, slots=True)
class Setback:
    """What failed, how often in a row, when last, and at which version of the view or source."""

    error: SlackwaterError
    attempts: int
    at: float
    version: int

    @property
    def wait(self) -> float:
        """Seconds to let pass before the next attempt."""
        return min(2.0 ** min(self.attempts - 1, 30), LONGEST_WAIT)

    def over(self, now: float) -> bool:
        """Whether it may be tried again; also after the clock was set back, since it cannot tell how long ago."""
        return now >= self.at + self.wait or now < self.at


class Scheduler:
    """Keeps the views of one engine as fresh as their policies ask for."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._ticking, self._starting = threading.RLock(), threading.Lock()
        self._lookout = Lookout(engine)
        self._setbacks: dict[tuple[str, int], Setback] = {}
        self._beats: Beats | None = None

    # --- one tick ---------------------------------------------------------------------------------

    def tick(self, next_look: float = 0.0) -> Tick:
        """Poll the sources, then refresh what is due; what fails is reported and does not stop the rest."""
        with self._ticking:
            with self._engine.writing():  # refuses an engine that is closed or reads only
                pass
            tick = Tick()
            self._poll_sources(tick)
            for view, reason in self._due_views(tick, next_look):
                if self._stopping:
                    break
                report = self._attempt(tick, ("view", view.id), view.name, view.version, view.refresh)
                if report is not None and report.mode != "none":  # somebody else may have been first
                    tick.append(report)
                    tick.reasons[view.name] = reason
            if tick.idle and not self._stopping:
                self._calibrate_anew(tick)
            return tick

    def _calibrate_anew(self, tick: Tick) -> None:
        """Where nothing else is to be done, measure what work costs, if the numbers kept are of another cluster.

        That takes some ten seconds, more than most refreshes. It is tried once: without it the built-in numbers serve.
        """
        try:
            if self._engine.calibrate_anew():
                tick.notes.append("measured what work costs: the numbers that were kept are of another cluster")
        except Exception as error:
            told = _in_our_words(error)
            if told.code in FATAL:
                raise
            tick.notes.append(f"what work costs on this cluster could not be measured: {told.message}")
        for note in tick.notes:
            _log.info(note)

    def _poll_sources(self, tick: Tick) -> None:
        for table, source in self._lookout.sources():
            if source.kind == KIND and not self._stopping:
                name = f"{table.name} from {source.config['path']}"
                poll = self._attempt(tick, ("source", source.id), name, 0, partial(self._poll, source))
                if poll is not None and (poll.version is not None or poll.rejected):
                    tick.polls.append(poll)

    def _poll(self, source: SourceRecord) -> Poll:
        with self._engine.writing():  # by number, and no other thread renames it meanwhile
            table = self._engine.table(self._engine.catalog.table_by_id(source.table_id).name)
            return LandingDirectory(table, source).poll()

    def _due_views(self, tick: Tick, next_look: float) -> list[tuple[View, str]]:
        """The due views, those first that have been due for longest."""
        found = []
        for record in self._lookout.views():
            judge = partial(self._judge, record, next_look)
            judged = self._attempt(tick, ("policy", record.id), record.name, record.version, judge)
            if judged is not None and judged[1].due:
                found.append(judged)
        found.sort(key=lambda judged: judged[1].at or 0.0)
        return [(view, verdict.reason) for view, verdict in found]

    def _judge(self, record: ViewRecord, next_look: float) -> tuple[View, Verdict]:
        view = self._lookout.view(record)
        return view, view.policy.judge(self._situation(view, next_look))

    def _situation(self, view: View, next_look: float = 0.0) -> Situation:
        """Where a view stands; one that has read all there is, and to which nothing comes any more, needs no states."""
        found = self._lookout.situation(view, next_look)
        if found.complete and not found.pending_rows:
            let_go(view)
        return found

    def _attempt(self, tick: Tick, key: tuple[str, int], name: str, version: int, action: Callable[[], T]) -> T | None:
        """Do something unless it failed a short while ago; a failure is put on the tick's record."""
        before = self._setbacks.get(key)
        if before is not None and before.version == version and not before.over(read(self._engine.clock)):
            return None
        try:
            result = action()
        except Exception as error:
            told = _in_our_words(error)
            if told.code in FATAL:
                raise
            if told.code in GONE:
                return None
            attempts = before.attempts + 1 if before is not None and before.version == version else 1
            setback = self._setbacks[key] = Setback(told, attempts, read(self._engine.clock), version)
            kind = "source" if key[0] == "source" else "view"
            tick.failures.append(Failure(kind, name, told, setback.attempts, setback.wait))
            return None
        self._setbacks.pop(key, None)
        return result

    # --- until stopped ----------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether a run is going on."""
        return self._beats is not None

    @property
    def _stopping(self) -> bool:
        beats = self._beats
        return beats is not None and beats.ended

    def stop(self) -> None:
        """End the run after the view it is at."""
        beats = self._beats
        if beats is not None:
            beats.end()

    def run(self, poll: str | float | timedelta, until_complete: bool, on_tick: Callable[[Tick], None] | None) -> None:
        """Tick again and again, in the calling thread, until stopped, interrupted or complete."""
        interval = parse_duration(poll)
        with self._starting:
            if self._beats is not None:
                raise SlackwaterError("ENGINE_RUNNING", "the engine runs already", "stop it first: engine.stop()")
            beats = self._beats = Beats(interval)
        try:
            with beats:
                while beats.wait():
                    if not self._beat(beats, interval, until_complete, on_tick):
                        break
        except KeyboardInterrupt:
            _log.info("interrupted")
        finally:
            self._beats = None

    def _beat(
        self, beats: Beats, interval: float, until_complete: bool, on_tick: Callable[[Tick], None] | None
    ) -> bool:
        """One tick; gives whether to go on."""
        try:
            tick = self.tick(interval)
        except SlackwaterError as error:
            if error.code == "ENGINE_CLOSED" and beats.ended:  # closing the engine ends its run
                return False
            raise
        if on_tick is not None:
            on_tick(tick)
        try:
            with self._ticking:
                return not (beats.ended or (until_complete and self._finished()))
        except SlackwaterError as error:
            if error.code in GONE or (error.code == "ENGINE_CLOSED" and beats.ended):
                return True  # a view was dropped since we looked; or the next wait ends the run
            raise

    def _finished(self) -> bool:
        """Whether nothing more will arrive and all that is kept fresh is fresh; a view that cannot be is an error."""
        stale: list[Setback | None] = []
        for record in self._lookout.views():
            if unreadable := self._setbacks.get(("policy", record.id)):
                stale.append(unreadable)
                continue
            view = self._lookout.view(record)
            situation = self._situation(view)
            if not situation.complete:
                return False
            if view.policy.judge(situation).at is not None:  # never due again: manual, or a cron whose years are over
                stale.append(self._setbacks.get(("view", view.id)))
        hopeless = [setback for setback in stale if setback is not None and setback.attempts >= GIVE_UP]
        if hopeless and len(hopeless) == len(stale):
            raise hopeless[0].error
        return not stale


def _in_our_words(error: Exception) -> SlackwaterError:
    if isinstance(error, SlackwaterError):
        return error
    _log.error("a tick met an error without a code", exc_info=error)
    from_spark = type(error).__module__.partition(".")[0] in ("pyspark", "py4j")
    line = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
    if from_spark:
        return SlackwaterError("SPARK_FAILED", line, "see whether Spark is still there")
    return SlackwaterError("UNEXPECTED", f"{type(error).__name__}: {line}", "please report it, with the log")

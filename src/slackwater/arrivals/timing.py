"""The beat of a run, kept by APScheduler and worked off in the thread that called it.

APScheduler decides when it is time and never has more than one beat under way, so a slow refresh delays the next beat
and nothing piles up. The work itself is done by the caller: Spark's job group and Ctrl-C belong to its thread.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta, timezone
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any

from apscheduler.executors.base import BaseExecutor
from apscheduler.job import Job
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger

_quiet = logging.getLogger("slackwater.beats")
_quiet.setLevel(logging.ERROR)  # that a beat was left out because the last one takes its time is no news

LONGEST_BEAT = 86_400.0


class Beats:
    """Regular beats, the first at once. Use as a context manager."""

    def __init__(self, interval: float) -> None:
        self._interval = min(interval, LONGEST_BEAT)
        self._hand_over = HandOver()
        self._under_way: Job | None = None
        self._ended = False
        self._scheduler = BackgroundScheduler(
            timezone=timezone.utc,
            executors={"slackwater": self._hand_over},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
            logger=_quiet,
        )

    def __enter__(self) -> Beats:
        self._scheduler.start()
        self._job = self._scheduler.add_job(
            lambda: None, _AfterNow(self._interval), executor="slackwater", next_run_time=_now(), name="beat"
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
        self._scheduler.shutdown(wait=False)

    @property
    def ended(self) -> bool:
        """Whether `end` was called."""
        return self._ended

    def end(self) -> None:
        """Let `wait` return at once and give False from now on; any thread may call it."""
        self._ended = True
        self._hand_over.waiting.put(None)

    def wait(self) -> bool:
        """Wait for the next beat; False when there will be none."""
        if self._under_way is not None:
            self._hand_over.done(self._under_way)
            self._under_way = None
        while not self._ended:
            try:
                self._under_way = self._hand_over.waiting.get(timeout=2 * self._interval + 1.0)
            except Empty:
                # APScheduler goes by the wall clock. If that was set back, it waits for a time that came already.
                self._job.modify(next_run_time=_now())
                continue
            if self._under_way is not None:
                return not self._ended
        return False


class HandOver(BaseExecutor):  # type: ignore[misc]
    """An executor that lets another thread do the work."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: SimpleQueue[Job | None] = SimpleQueue()

    def _do_submit_job(self, job: Job, run_times: list[datetime]) -> None:
        self.waiting.put(job)

    def done(self, job: Job) -> None:
        """Tell APScheduler that the job has been done, so that it may come again."""
        self._run_job_success(job.id, [])


class _AfterNow(BaseTrigger):  # type: ignore[misc]
    """The next beat comes one interval from now, however many were missed: a machine that slept does not catch up."""

    def __init__(self, interval: float) -> None:
        self._step = timedelta(seconds=interval)

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> Any:
        return now + self._step


def _now() -> datetime:
    return datetime.now(timezone.utc)

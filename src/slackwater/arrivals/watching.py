"""Where a view stands, read from the catalog alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from slackwater.arrivals.clock import read
from slackwater.arrivals.situation import Situation
from slackwater.storage.records import RefreshRecord

if TYPE_CHECKING:
    from slackwater.engine import Engine
    from slackwater.storage.records import SourceRecord, TableRecord, ViewRecord
    from slackwater.view import View

RECENT = 8
"""How many refreshes tell how long the next one takes."""


def watch(view: View, next_look: float = 0.0) -> Situation:
    """Where a view stands now.

    Args:
        view: the view.
        next_look: seconds until somebody looks again.
    """
    catalog = view.engine.catalog
    tables = [catalog.table(name) for name in view.tables]
    upto = catalog.version()
    pending = [s for table in tables for s in catalog.segments_between(table.owner, view.version, upto)]
    if not view.version:
        # The first result is owed from the beginning, even over empty tables.
        oldest = catalog.commit_time(catalog.view_by_id(view.id).created_version)
    else:
        oldest = catalog.commit_time(min(s.first_version for s in pending)) if pending else None
    refreshes = catalog.refreshes(view.id, RECENT)
    return Situation(
        now=read(view.engine.clock),
        last_refresh=refreshes[0].at if refreshes else None,
        pending_rows=sum(s.row_count for s in pending),
        oldest_pending=oldest,
        complete=all(table.complete for table in tables),
        durations=_durations(refreshes),
        next_look=next_look,
    )


class Lookout:
    """What there is to look after, read again only after a commit: a look at an idle warehouse is one small query."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._version: int | None = None
        self._views: tuple[ViewRecord, ...] = ()
        self._sources: tuple[tuple[TableRecord, SourceRecord], ...] = ()
        self._opened: dict[int, View] = {}
        self._situations: dict[int, Situation] = {}

    def sources(self) -> tuple[tuple[TableRecord, SourceRecord], ...]:
        """The sources of tables that are not complete."""
        self._catch_up()
        return self._sources

    def views(self) -> tuple[ViewRecord, ...]:
        """The views there are."""
        self._catch_up()
        return self._views

    def view(self, record: ViewRecord) -> View:
        """One of `views`, opened."""
        if record.id not in self._opened:
            self._opened[record.id] = self._engine.view(record.name)
        return self._opened[record.id]

    def situation(self, view: View, next_look: float = 0.0) -> Situation:
        """Where one of `views` stands now."""
        if view.id not in self._situations:
            self._situations[view.id] = watch(view)
        return replace(self._situations[view.id], now=read(self._engine.clock), next_look=next_look)

    def _catch_up(self) -> None:
        # What is read afterwards may be newer than this version, never older; then it is read again.
        catalog = self._engine.catalog
        version = catalog.version()
        if version != self._version:
            tables = [table for table in catalog.tables() if not table.complete]
            self._sources = tuple((table, source) for table in tables for source in catalog.sources(table.id))
            self._views, self._opened, self._situations = catalog.views(), {}, {}
            self._version = version


def _durations(refreshes: tuple[RefreshRecord, ...]) -> tuple[float, ...]:
    """Seconds of recent refreshes; the first result, which reads everything, counts only while there is no other."""
    later = tuple(r.seconds for r in refreshes if r.report["mode"] != "initial")
    return later or tuple(r.seconds for r in refreshes)

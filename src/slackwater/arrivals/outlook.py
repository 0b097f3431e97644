"""From the catalog to a view's next forecast, and back into the catalog with the refresh that goes by it."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from slackwater.arrivals import scoring
from slackwater.arrivals.durations import parse_span
from slackwater.arrivals.forecast import Forecast, TableForecast
from slackwater.arrivals.history import Delays, TableArrivals, Trigger, usual_horizon
from slackwater.arrivals.kinds import Forecaster
from slackwater.arrivals.measuring import delay_points, event_seconds
from slackwater.arrivals.naive import naive
from slackwater.arrivals.policies import Policy
from slackwater.errors import CatalogError, ForecastError
from slackwater.storage.catalog import Catalog
from slackwater.storage.forecasts import KEPT_DELAYS, ArrivalRecord, DelayRecord, ForecastRecord, NewForecast
from slackwater.storage.records import SegmentRecord, TableRecord

if TYPE_CHECKING:
    from slackwater.storage.transaction import Transaction
    from slackwater.view import View

MOST_CHANGES = 20_000
MOST_REFRESHES = 201
TIMES = ("timestamp", "timestamp_ntz", "date")
SHORTEST = 1.0
"""A policy whose time is about to come is looked ahead of by a second, so that there is something to look at."""
USUAL = "the horizon is the usual time between refreshes"


class ArrivalLog:
    """What arrived and was refreshed when: read once, then kept up to date. Shared by all views of an engine."""

    def __init__(self, catalog: Catalog) -> None:
        """Read from a catalog when asked."""
        self._catalog = catalog
        self._known: dict[int, tuple[tuple[ArrivalRecord, ...], bool]] = {}
        self._marks: dict[int, tuple[tuple[int, float], ...]] = {}
        self._upto: int | None = None
        self._current: dict[int, str] = {}
        self._one_at_a_time = threading.RLock()

    def look(self) -> int:
        """See which tables changed since the last look, for what is known of the others still holds; gives the version.

        Counter-example to asking only about the tables of a view: the change of another one passes by unseen, and the
        next look is after it.
        """
        with self._one_at_a_time:
            if self._upto is None:
                self._upto = self._catalog.version()
                return self._upto
            upto, changed = self._catalog.changed_since(self._upto)
            kept = self._current if changed is not None else {}
            self._current = {ident: name for ident, name in kept.items() if name not in (changed or ())}
            self._upto = upto
            return upto

    def marks(self, view_id: int) -> tuple[tuple[int, float], ...]:
        """The version and the time of a view's last refreshes, the oldest first."""
        with self._one_at_a_time:
            known = self._marks.get(view_id, ())
            known += self._catalog.refresh_points(view_id, MOST_REFRESHES, known[-1][0] if known else 0)
            self._marks[view_id] = known = known[-MOST_REFRESHES:]
            return known

    def of(self, table: TableRecord, seen: int | None = None) -> tuple[tuple[ArrivalRecord, ...], bool]:
        """A table's last changes, the oldest first, and whether they are all there were.

        Counter-example to reading without the lock: a thread that read before a change came puts back what another has
        read since, and as that table is said to be known nobody asks again.

        Args:
            table: the table.
            seen: the version that the reader's look gave, for what it finds to be known as of then.
        """
        with self._one_at_a_time:
            return self._of(table, seen)

    def _of(self, table: TableRecord, seen: int | None) -> tuple[tuple[ArrivalRecord, ...], bool]:
        changes, whole = self._known.get(table.id, ((), True))
        if table.id in self._current:
            return changes, whole
        after = changes[-1].version if changes else 0
        changes += self._catalog.arrivals(table, after, MOST_CHANGES + 1)
        if len(changes) > MOST_CHANGES:
            changes, whole = changes[-MOST_CHANGES:], False
        self._known[table.id] = (changes, whole)
        if seen is not None and seen == self._upto:  # another thread may have looked later than this one reads
            self._current[table.id] = table.name
        return changes, whole


@dataclass(frozen=True, slots=True)
class Outlook:
    """A forecast, and what a refresh records with it.

    Attributes:
        forecast: what is expected of the delta after the one at hand.
        notes: what the user should hear: that a kind of forecast was demoted, or is trusted again.
        records: the forecast as the catalog keeps it.
        delays: how late the rows of versions not measured before were.
        came: changed and deleted rows by table, to be put beside the last forecast; None where nothing came.
    """

    view_id: int
    forecast: Forecast
    notes: tuple[str, ...]
    records: tuple[NewForecast, ...]
    delays: tuple[DelayRecord, ...]
    came: Mapping[int, tuple[int, int]] | None

    def record(self, tx: Transaction) -> None:
        """Put what came beside the last forecast and record this one, in the refresh's own transaction."""
        tx.add_delays(self.delays)
        if self.came is not None:
            tx.settle_forecasts(self.view_id, self.came, self.forecast.made_at)
            tx.add_forecasts(self.view_id, self.records, self.forecast.made_at)


def look_ahead(
    view: View,
    now: float,
    horizon: str | float | None = None,
    *,
    taking: bool = False,
    present: Mapping[str, int] | None = None,
) -> Outlook:
    """Say what a view's next delta will bring, if it is refreshed now.

    Args:
        view: the view.
        now: the time, in seconds since 1970.
        horizon: how long until the next trigger; if not given, until the next time that the view's policy tells, else
            the usual time between refreshes.
        taking: whether a refresh is about to take what waits, so that this is what came of the last forecast.
        present: rows by table, where they are known already.
    """
    reading = _Reading(view, now)
    tables = [reading.arrivals(name, present or {}) for name in view.tables]
    came = {one.table: _waiting(one, view.version) for one in tables} if taking else None
    span, told = _reach(view.policy, tables, now, horizon)
    trigger = Trigger(now, span, bool(told))
    ids = {name: reading.tables[name].id for name in view.tables}
    most = None if horizon is not None or view.forecaster.kind == "fixed" else view.policy.most_rows
    said = []
    for arrivals in tables:
        own = _own(view.forecaster, arrivals, trigger)
        if taking and own.detail.get("at") == now:
            # Comparing models takes a good part of a second: a refresh waits for one table's, not for all.
            trigger = replace(trigger, compares=False)
        said.append(own)
    found, notes, details = [], [], []
    for arrivals, own in zip(tables, _no_more_than(most, said), strict=True):
        past = reading.settled(arrivals.table, came)
        used, judged = own, scoring.standing(past, view.forecaster.kind)
        detail: dict[str, Any] = {scoring.OWN_KIND: view.forecaster.kind, scoring.REMEMBERED: dict(own.detail)}
        if judged.demoted and not arrivals.complete:
            used = _demoted(naive(arrivals, trigger), own.kind, judged)
            detail[scoring.OWN_BOUNDS] = [own.low, own.high]
        notes += _news(past, used, own.kind, judged)
        found.append(used)
        details.append(detail)
    found = _no_more_than(most, found)
    records = [_record(used, ids[used.table], span, detail) for used, detail in zip(found, details, strict=True)]
    forecast = Forecast(tuple(found), view.forecaster.kind, now, span, told or USUAL)
    by_id = None if came is None else {ids[name]: rows for name, rows in came.items()}
    return Outlook(view.id, forecast, tuple(notes), tuple(records), tuple(reading.measured), by_id)


def _reach(
    policy: Policy, tables: Sequence[TableArrivals], now: float, horizon: str | float | None
) -> tuple[float, str]:
    """How far to look ahead, and who told so; nobody did where it is the usual time between refreshes."""
    if horizon is not None:
        return parse_span(horizon, "the horizon"), "the horizon was given"
    due = policy.due_after(now)
    if due is None:
        return usual_horizon(tables, now), ""
    return max(due - now, SHORTEST), f"the horizon is the next time of the policy: {policy}"


def _no_more_than(most: int | None, found: list[TableForecast]) -> list[TableForecast]:
    """What a refresh finds that comes with so many rows: the tables' shares of these, where more would arrive by then.

    A table has more to come after that, whatever was said of a longer time.
    """
    rows = sum(one.rows for one in found)
    if most is None or rows <= most:
        return found
    share, why = most / rows, f"; a refresh comes with {most:,} rows"
    return [
        replace(one, rows=one.rows * share, low=one.low * share, high=max(one.high * share, one.rows * share),
                complete_after=one.complete_after and not one.rows, reason=one.reason + why)
        for one in found
    ]  # fmt: skip


def check_forecaster(forecaster: object, tables: Sequence[TableRecord], read: Sequence[str]) -> Forecaster:
    """Refuse what is no forecaster, or names a table or a column that is not there."""
    if not all(callable(getattr(forecaster, name, None)) for name in ("expect", "measured", "tables", "to_dict")):
        raise ForecastError("FORECAST_INVALID", f"{forecaster!r} is no forecast",
                            "use sw.fixed, sw.late_arrivals, sw.paced or sw.learned")  # fmt: skip
    checked: Forecaster = forecaster  # type: ignore[assignment]
    columns = {table.name: _columns(table) for table in tables}
    for name in checked.tables():
        if name not in columns:
            raise ForecastError("FORECAST_TABLE_UNKNOWN", f"the forecast names {name!r}, which is no table",
                                f"there are: {', '.join(sorted(columns)) or 'none yet'}", {"table": name})  # fmt: skip
    wanted = {name: found[0] for name in read if (found := checked.measured(name)) is not None}
    by_table = bool(checked.tables())
    for name, column in wanted.items():
        if columns.get(name, {}).get(column, None if by_table else TIMES[0]) not in TIMES:
            raise ForecastError("FORECAST_COLUMN", f"{name!r} has no column {column!r} of times",
                                "name a TIMESTAMP or DATE column", {"table": name, "column": column})  # fmt: skip
    if wanted and not any(column in columns.get(name, {}) for name, column in wanted.items()):
        raise ForecastError("FORECAST_COLUMN", f"no table of the query has the column {next(iter(wanted.values()))!r}",
                            "name a TIMESTAMP or DATE column")  # fmt: skip
    return checked


class _Reading:
    """What a forecast needs to know about a view's tables, out of the catalog."""

    def __init__(self, view: View, now: float) -> None:
        self._view, self._engine, self._now = view, view.engine, now
        view.engine.catalog.look_at(view.tables)
        self._seen = view.engine.arrivals.look()
        self._marks = view.engine.arrivals.marks(view.id)
        self._records = view.engine.catalog.forecasts(view.id, (scoring.JUDGED + 1) * max(len(view.tables), 1))
        self.tables: dict[str, TableRecord] = {}
        self.measured: list[DelayRecord] = []

    def arrivals(self, name: str, present: Mapping[str, int]) -> TableArrivals:
        catalog, kind = self._engine.catalog, self._view.forecaster.kind
        table = self.tables[name] = catalog.table(name)
        changes, whole = self._engine.arrivals.of(table, self._seen)
        mine = [r for r in self._records if r.table_id == table.id and r.detail.get(scoring.OWN_KIND) == kind]
        rows = present[name] if name in present else self._engine.table(name).count()
        pace = catalog.pace(table.id) if kind == "paced" else None
        remembered = mine[0].detail.get(scoring.REMEMBERED, {}) if mine else {}
        return TableArrivals(name, rows, table.complete, changes, whole, self._marks, pace,
                             self._delays(table, changes), remembered)  # fmt: skip

    def settled(self, name: str, came: Mapping[str, tuple[int, int]] | None) -> list[ForecastRecord]:
        """The forecasts of a table, the newest first; the one that the delta at hand answers counts as answered."""
        found = [record for record in self._records if record.table_id == self.tables[name].id]
        if came is not None and found and found[0].actual_rows is None:
            found[0] = replace(found[0], actual_rows=came[name][0], actual_deleted=came[name][1])
        return found

    def _delays(self, table: TableRecord, changes: Sequence[ArrivalRecord]) -> Delays | None:
        wanted = self._view.forecaster.measured(table.name)
        columns = _columns(table)
        if wanted is None or wanted[0] not in columns:
            return None
        column, batch = wanted
        key = column if batch is None else f"{column} by {batch:g}"
        known = self._engine.catalog.delays(table.id, key, 0, KEPT_DELAYS)
        at = {change.version: change.at for change in changes}
        position = list(columns).index(column)
        fresh = self._measure(table, key, f"c{position}", batch, known[-1].version if known else 0, at)
        self.measured += fresh
        dated = [record for record in (*known, *fresh) if record.version in at]
        points = [(step, at[record.version], int(rows)) for record in dated for step, rows in record.points]
        seconds, arrived, rows = zip(*points, strict=True) if points else ((), (), ())
        return Delays(seconds, arrived, rows)

    def _measure(
        self, table: TableRecord, key: str, column: str, batch: float | None, after: int, at: Mapping[int, float]
    ) -> list[DelayRecord]:
        catalog, files = self._engine.catalog, self._engine.files
        segments = _told_apart(catalog, table.owner, after)
        by_version: dict[int, list[Any]] = {}
        for segment in segments:
            if segment.sign > 0 and segment.first_version in at:
                by_version.setdefault(segment.first_version, []).extend(files.parquet_files(segment.path))
        return [
            DelayRecord(table.id, key, version, delay_points(event_seconds(found, column), at[version], batch))
            for version, found in sorted(by_version.items())
        ]


def _told_apart(catalog: Catalog, owner: str, after: int) -> tuple[SegmentRecord, ...]:
    """The changes after a version; of those that were merged for good, nobody knows any more when a row came."""
    upto = catalog.version()
    while True:
        try:
            return catalog.segments_between(owner, after, upto, per_version=True)
        except CatalogError as error:
            if error.code != "HISTORY_COMPACTED":
                raise
            after = int(str(error.details["last_version"]))


def _columns(table: TableRecord) -> dict[str, str]:
    """The columns of a table with their types, from its schema's JSON; a nested type is no plain name."""
    fields = json.loads(table.schema_json)["fields"]
    return {field["name"]: field["type"] if isinstance(field["type"], str) else "nested" for field in fields}


def _waiting(arrivals: TableArrivals, version: int) -> tuple[int, int]:
    """Changed and deleted rows since a version."""
    later = [change for change in arrivals.changes if change.version > version]
    return sum(change.rows for change in later), sum(change.deleted for change in later)


def _own(forecaster: Forecaster, arrivals: TableArrivals, trigger: Trigger) -> TableForecast:
    if arrivals.complete:
        said = TableForecast.nothing(arrivals.table, "the table was marked complete", complete=True)
        return replace(said, kind=forecaster.kind)
    return forecaster.expect(arrivals, trigger)


def _demoted(fallback: TableForecast, kind: str, judged: scoring.Standing) -> TableForecast:
    why = f"{kind} was far off {judged.misses} of the last {judged.judged} times; {fallback.reason}"
    return replace(fallback, reason=why)


def _news(past: Sequence[ForecastRecord], used: TableForecast, own_kind: str, judged: scoring.Standing) -> list[str]:
    was = bool(past) and scoring.OWN_BOUNDS in past[0].detail and past[0].detail.get(scoring.OWN_KIND) == own_kind
    if judged.demoted and not was and used.kind != own_kind:
        return [
            f"the {own_kind} forecast of {used.table!r} was far off {judged.misses} of the last {judged.judged} times"
            f" and is demoted to {used.kind}; see view.forecasts()"
        ]
    if was and used.kind == own_kind:
        return [f"the {own_kind} forecast of {used.table!r} has become good enough again and is used"]
    return []


def _record(used: TableForecast, table_id: int, span: float, detail: Mapping[str, Any]) -> NewForecast:
    return NewForecast(table_id, used.table, span, used.kind, used.rows, used.low, used.high, used.deletes,
                       used.complete_after, used.reason, detail)  # fmt: skip

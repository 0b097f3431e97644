"""Tables: base relations that only ever receive changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from slackwater import intake
from slackwater.algebra.aggregates import has_floats, is_collated
from slackwater.algebra.expressions import quote
from slackwater.arrivals.forecast import check_number
from slackwater.errors import TableError
from slackwater.execution.compaction import compact_table
from slackwater.key_checks import check_given, check_written
from slackwater.notebook import base_table_html
from slackwater.renaming import rename_table
from slackwater.storage.files import STAGING, WarehouseFiles
from slackwater.storage.forecasts import PaceRecord
from slackwater.storage.records import NewSegment, SegmentRecord, TableRecord
from slackwater.storage.relations import BORN, FILE, POSITION, RelationReader, physical_schema
from slackwater.storage.uncommitted import remove_uncommitted

if TYPE_CHECKING:
    from slackwater.engine import Engine
    from slackwater.sources.landing import LandingDirectory
    from slackwater.storage.transaction import Transaction

CHANGE_TYPE, CHANGE_VERSION, CHANGE_WEIGHT = "_change_type", "_version", "_weight"
_SIGNS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}


class Table:
    """A base relation. Get one from `Engine.create_table` or `Engine.table`."""

    def __init__(self, engine: Engine, record: TableRecord) -> None:
        self._engine = engine
        self.id, self._name, self.key = record.id, record.name, record.key
        self.schema: StructType = StructType.fromJson(json.loads(record.schema_json))
        self._staged: list[str] = []
        """Files that one change reads from, gone when it ends."""

    def __repr__(self) -> str:
        key = f", key={list(self.key)}" if self.key else ""
        return f"Table({self.name!r}, {self.schema.simpleString()}{key})"

    def _repr_html_(self) -> str:
        return base_table_html(self)

    @property
    def name(self) -> str:
        """What it is called now, by whichever object it was renamed."""
        return self._engine.table_names.get(self.id, self._name)

    # --- changes ---------------------------------------------------------------------------------

    def insert(self, rows: intake.Rows) -> int:
        """Add rows; gives the new version. On a table with a key, a key that exists already is refused."""
        with self._changing() as spark:
            plus = self._write_plus(intake.to_frame(rows, self.schema, spark, self.name))
            return self._commit(plus, None, "insert")

    def delete(self, rows: intake.Rows) -> int:
        """Remove these rows, bag-wise: one stored row for each given one. A row that is not there is refused."""
        self._refuse_incomparable()
        with self._changing() as spark:
            staged = self._stage(intake.to_frame(rows, self.schema, spark, self.name))
            return self._commit(None, self._match_rows(staged), "delete")

    def delete_keys(self, rows: intake.Rows) -> int:
        """Remove the rows with these keys. A key that is not there is refused."""
        with self._changing() as spark:
            keys = self._stage(intake.to_frame(rows, self._key_schema(), spark, self.name))
            check_given(self, keys)
            return self._commit(None, self._match_keys(keys, required=True), "delete_keys")

    def upsert(self, rows: intake.Rows) -> int:
        """Insert rows, replacing those with the same key."""
        self._key_schema()
        with self._changing() as spark:
            plus = self._write_plus(intake.to_frame(rows, self.schema, spark, self.name))
            try:
                keys = self.files_frame(plus, self._engine.spark).select(*(f"c{p}" for p in self.key_positions()))
                check_given(self, keys)
                minus = self._match_keys(keys.toDF(*(f"c{i}" for i in range(len(self.key)))), required=False)
            except BaseException:
                self._engine.files.remove(plus)
                raise
            return self._commit(plus, minus, "upsert", check_keys=False)

    def apply(self, changes: intake.Rows) -> int:
        """Apply a feed of changes in one version.

        The rows have `_change_type` (insert, delete, update_preimage, update_postimage, as in Delta's change data feed)
        or `_weight` (+n inserted, −n deleted) beside the table's columns; tuples, which have no names, have it at their
        end. Changes of equal rows cancel out first.
        """
        self._refuse_incomparable()
        with self._changing() as spark:
            weighted = self._weights(changes, spark)
            staged = self._stage(self._net(weighted), extra=("_net",))
            fresh = staged.where("_net > 0").withColumn("_i", F.explode(F.sequence(F.lit(1), F.col("_net"))))
            plus = self._engine.files.write(fresh.select(*self._physical()), f"t{self.id}")
            try:
                gone = staged.where("_net < 0").withColumn("_i", F.explode(F.sequence(F.lit(1), -F.col("_net"))))
                minus = self._match_rows(gone.select(*self._physical()))
            except BaseException:
                self._engine.files.remove(plus)
                raise
            return self._commit(plus, minus, "apply")

    def _net(self, weighted: DataFrame) -> DataFrame:
        """Each row once with its net weight."""
        keys, shown = [], []
        for field in self.schema:
            column = F.col(quote(field.name))
            keys.append(_told_apart(column, field))
            shown.append(F.first(column).alias(field.name))
        names = [f"_k{i}" for i in range(len(keys))]
        grouped = weighted.select("*", *(k.alias(n) for k, n in zip(keys, names, strict=True))).groupBy(*names)
        net = grouped.agg(*shown, F.sum(CHANGE_WEIGHT).alias("_net")).drop(*names)
        return net.where("_net <> 0")

    def mark_complete(self) -> int:
        """Promise that no more changes will come; gives the new version."""
        with self._engine.writing() as lease, self._engine.catalog.commit("mark_complete", self.name, {}, lease) as tx:
            tx.mark_complete(self.id, True)
            return tx.version

    def report_pace(self, rows_per_second: float, remaining: int | None = None) -> None:
        """Say how fast this table is being delivered, for views with `forecast=paced()`; kept across restarts.

        Args:
            rows_per_second: the pace; 0 while another table has its turn.
            remaining: rows still to come, if that is known; the table is complete when they have arrived.
        """
        pace = check_number(rows_per_second, "the pace")
        left = None if remaining is None else int(check_number(remaining, "the number of remaining rows", most=2**62))
        with self._engine.writing() as lease:
            self._engine.catalog.report_pace(PaceRecord(self.id, pace, left, self._engine.now()), lease)

    @property
    def complete(self) -> bool:
        """Whether the table was marked complete."""
        return self._engine.catalog.table_by_id(self.id).complete

    # --- reading ---------------------------------------------------------------------------------

    def snapshot(self, version: int | None = None) -> DataFrame:
        """The bag of rows at a version; the latest by default. How far back that goes, `docs/errors.md` says."""
        self._check_alive()
        at = self._engine.check_version(version)
        frame = self.reader(self._engine.spark).snapshot(self._engine.catalog.segments(f"t{self.id}", at=at))
        return frame.toDF(*(f.name for f in self.schema))

    def changes(self, since: int = 0) -> DataFrame:
        """The changes after a version, with `_change_type` and `_version`; history may end as in `snapshot`."""
        self._check_alive()
        upto = self._engine.catalog.version()
        self._engine.check_version(since)
        segments = self._engine.catalog.segments_between(f"t{self.id}", since, upto, per_version=True)
        return change_feed(self.reader(self._engine.spark), segments)

    def relation(self) -> DataFrame:
        """A symbolic, empty DataFrame that stands for the table in a view defined by DataFrames."""
        self._check_alive()
        return self._engine.symbol(self)

    def rename(self, name: str) -> None:
        """Call the table otherwise; one that a view reads keeps its name. Its rows, sources and forecasts stay."""
        rename_table(self, name)

    def landing_directory(self, path: str, format: str | None = None, **options: str | float) -> LandingDirectory:
        """A folder whose new files become changes of this table; see `LandingDirectory.poll`."""
        from slackwater.sources.landing import LandingDirectory

        return LandingDirectory.attach(self, path, format, options)

    def count(self) -> int:
        """The number of rows now, from the catalog alone."""
        self._check_alive()
        return sum(s.sign * s.row_count for s in self.segments())

    def reader(self, spark: SparkSession) -> RelationReader:
        """Read this table's segments in a session."""
        return RelationReader(spark, self._engine.files, self.schema)

    # --- inside ----------------------------------------------------------------------------------

    def _check_alive(self) -> None:
        """Refuse a table that was dropped, here or by the writer beside us: it has no segments, as an empty one has."""
        self._engine.catalog.table_by_id(self.id)

    def _changing(self) -> _Changing:
        return _Changing(self)

    def _physical(self) -> list[str]:
        return [f"c{i}" for i in range(len(self.schema))]

    def key_positions(self) -> list[int]:
        """Where the columns of the key are."""
        names = [f.name for f in self.schema]
        return [names.index(k) for k in self.key]

    def _key_schema(self) -> StructType:
        if not self.key:
            raise TableError("KEY_REQUIRED", f"table {self.name!r} has no key",
                             "give key=[…] when the table is created, or delete whole rows")  # fmt: skip
        return StructType([self.schema[p] for p in self.key_positions()])

    def first_rows(self, rows: intake.Rows) -> NewSegment:
        """Write and check the rows of a table that is about to be made."""
        plus = self._write_plus(intake.to_frame(rows, self.schema, self._engine.spark, self.name))
        try:
            self.check_keys(plus)
            return self._engine.files.segment(1, plus)
        except BaseException:
            self._engine.files.remove(plus)
            raise

    def _write_plus(self, frame: DataFrame) -> str:
        return self._engine.files.write(frame.toDF(*self._physical()), f"t{self.id}")

    def _stage(self, frame: DataFrame, extra: Sequence[str] = ()) -> DataFrame:
        """Write rows aside, so that what the user gave is evaluated exactly once."""
        names = [f"c{i}" for i in range(len(frame.columns) - len(extra))]
        path = self._engine.files.write(frame.toDF(*names, *extra), f"t{self.id}", STAGING)
        self._staged.append(path)
        return self._engine.spark.read.schema(frame.toDF(*names, *extra).schema).parquet(
            self._engine.files.readable(path)
        )

    def unstage(self) -> None:
        """Remove what was written aside for a change that is done, or has failed."""
        while self._staged:
            self._engine.files.remove(self._staged.pop())

    @property
    def files(self) -> WarehouseFiles:
        """Where the rows are."""
        return self._engine.files

    def files_frame(self, path: str, spark: SparkSession) -> DataFrame:
        """Written rows, visible or not."""
        return spark.read.schema(physical_schema(self.schema)).parquet(self.files.readable(path))

    def session(self, *, few: bool) -> SparkSession:
        """A session to look at rows in: the user's, or one for small work."""
        return self._engine.sessions.get("delta", {}) if few else self._engine.spark

    def segments(self) -> tuple[SegmentRecord, ...]:
        """Where the rows are now."""
        return self._engine.catalog.segments(f"t{self.id}")

    def _live(self) -> DataFrame:
        return self.reader(self._engine.spark).positioned(self.segments())

    def _refuse_incomparable(self) -> None:
        for field in self.schema:
            name = field.dataType.simpleString()
            if "map<" in name or name == "variant":
                raise TableError(
                    "TYPE_UNSUPPORTED",
                    f"rows of {self.name!r} cannot be compared: {field.name!r} is a {name}",
                    "give the table a key, and use delete_keys and upsert",
                )

    def _match_rows(self, wanted: DataFrame) -> str:
        """Find a stored row for each given one; write them with their positions as a minus segment."""
        columns = self._physical()
        counted = self._exact(wanted).groupBy(*columns).agg(F.count(F.lit(1)).alias("_want"))
        live, keyed = self._live().alias("l"), counted.toDF(*(f"k{i}" for i in range(len(columns))), "_want")
        condition = [
            _told_apart(F.col(f"l.c{i}"), field).eqNullSafe(F.col(f"k{i}")) for i, field in enumerate(self.schema)
        ]
        order = Window.partitionBy(*(f"k{i}" for i in range(len(columns)))).orderBy(FILE, POSITION)
        found = live.join(F.broadcast(keyed), condition).withColumn("_nth", F.row_number().over(order))
        chosen = found.where("_nth <= _want").select(*columns, FILE, POSITION, BORN)
        path = self._engine.files.write(chosen, f"t{self.id}")
        matched, asked = self._engine.files.segment(-1, path).row_count, wanted.count()
        if matched < asked:
            example = self._example(counted, path, columns)
            self._engine.files.remove(path)
            raise TableError("ROW_ABSENT", f"{asked - matched} of {asked} rows to delete are not in {self.name!r}"
                             + (f", for example {example}" if example else ""),
                             "delete only rows that are there; nothing was applied")  # fmt: skip
        return path

    def _example(self, counted: DataFrame, path: str, columns: list[str]) -> str:
        schema = StructType([*physical_schema(self.schema), StructField(FILE, self.schema[0].dataType)])
        found = self._engine.spark.read.schema(StructType(schema.fields[:-1])).parquet(
            self._engine.files.readable(path)
        )
        have = (
            self._exact(found)
            .groupBy(*columns)
            .agg(F.count(F.lit(1)).alias("_have"))
            .toDF(*(f"h{c}" for c in columns), "_have")
        )
        on = [F.col(c).eqNullSafe(F.col(f"h{c}")) for c in columns]
        short = counted.join(have, on, "left").where("coalesce(_have, 0) < _want").select(*columns).limit(1).collect()
        if not short:
            return ""
        floats = [has_floats(field.dataType.simpleString()) for field in self.schema]
        said = [str(v["text"]) if f else repr(v) for v, f in zip(short[0], floats, strict=True)]
        return f"({', '.join(said)})"

    def _exact(self, rows: DataFrame) -> DataFrame:
        """Rows that are equal only where they are the same."""
        pairs = zip(self._physical(), self.schema, strict=True)
        return rows.select(*(_told_apart(F.col(name), field).alias(name) for name, field in pairs))

    def _match_keys(self, keys: DataFrame, *, required: bool) -> str:
        columns = self._physical()
        renamed = keys.toDF(*(f"k{i}" for i in range(len(self.key))))
        on = [F.col(f"c{p}").eqNullSafe(F.col(f"k{i}")) for i, p in enumerate(self.key_positions())]
        found = self._live().join(F.broadcast(renamed), on).select(*columns, FILE, POSITION, BORN)
        path = self._engine.files.write(found, f"t{self.id}")
        if required:
            matched, asked = self._engine.files.segment(-1, path).row_count, keys.count()
            if matched < asked:
                self._engine.files.remove(path)
                raise TableError("ROW_ABSENT", f"{asked - matched} of {asked} keys to delete are not in {self.name!r}",
                                 "delete only keys that are there; nothing was applied")  # fmt: skip
        return path

    def check_keys(self, plus: str, minus: str | None = None, beside: Sequence[str] = ()) -> None:
        """Refuse written rows whose keys are NULL, doubled, or taken by the table or by files written `beside`."""
        if self.key:
            check_written(self, plus, minus, beside)

    def _weights(self, changes: intake.Rows, spark: object) -> DataFrame:
        names = _column_names(changes)
        if CHANGE_TYPE in names and CHANGE_WEIGHT not in names:
            schema = StructType([*self.schema, StructField(CHANGE_TYPE, StringType())])
            frame = intake.to_frame(changes, schema, self._engine.spark, self.name)
            allowed = F.create_map(*(x for k, v in _SIGNS.items() for x in (F.lit(k), F.lit(v))))
            frame = frame.withColumn(CHANGE_WEIGHT, allowed[F.col(CHANGE_TYPE)].cast("bigint")).drop(CHANGE_TYPE)
            advice = f"_change_type is one of {', '.join(_SIGNS)}"
        elif CHANGE_WEIGHT in names:
            schema = StructType([*self.schema, StructField(CHANGE_WEIGHT, LongType())])
            frame = intake.to_frame(changes, schema, self._engine.spark, self.name)
            advice = "_weight is a whole number, + for inserted and - for deleted rows"
        else:
            raise TableError("CHANGE_INVALID", "the changes have neither _change_type nor _weight",
                             "say for each row whether it is inserted or deleted")  # fmt: skip
        checked = F.when(F.col(CHANGE_WEIGHT).isNull(), F.raise_error(F.lit("SLACKWATER_CHANGE_INVALID"))).otherwise(
            F.col(CHANGE_WEIGHT)
        )
        if frame.where(F.col(CHANGE_WEIGHT).isNull()).limit(1).collect():
            raise TableError("CHANGE_INVALID", f"a change of {self.name!r} is of no known kind", advice)
        return frame.withColumn(CHANGE_WEIGHT, checked)

    def _commit(self, plus: str | None, minus: str | None, kind: str, *, check_keys: bool = True) -> int:
        """Check, then make the written files visible in one version; if that fails remove them."""
        engine = self._engine
        paths = [p for p in (plus, minus) if p is not None]
        try:
            if plus is not None and check_keys:
                self.check_keys(plus, minus)
            segments = [engine.files.segment(s, p) for s, p in ((1, plus), (-1, minus)) if p is not None]
            version = self.commit_segments(segments, kind)
        except BaseException as error:
            remove_uncommitted(engine.files, engine.catalog, paths, error)
            raise
        compact_table(self)
        return version

    def commit_segments(
        self, segments: list[NewSegment], kind: str, also: Callable[[Transaction], None] | None = None
    ) -> int:
        """One version with these segments, and with what else `also` records; empty segments are not recorded."""
        engine = self._engine
        kept = [s for s in segments if s.row_count]
        detail = {"kind": kind, "inserted": sum(s.row_count for s in kept if s.sign > 0),
                  "deleted": sum(s.row_count for s in kept if s.sign < 0)}  # fmt: skip
        with engine.catalog.commit("change", self.name, detail, engine.lease) as tx:
            tx.add_segments(f"t{self.id}", kept)
            if also is not None:
                also(tx)
            version = tx.version
        for segment in segments:
            if not segment.row_count:
                engine.files.remove(segment.path)
        return version


def _told_apart(column: Column, field: StructField) -> Column:
    """What is equal only where the values are the same.

    A string under a collation as the text that it is: "Ann" and "ann" are two rows. Floating-point numbers, or values
    with some inside, together with their text: to Spark -0.0 equals 0.0.
    """
    name = field.dataType.simpleString()
    if has_floats(name):
        return F.struct(column.alias("value"), column.cast("string").alias("text"))
    collated = isinstance(field.dataType, StringType) and is_collated(name)
    return F.collate(column, "UTF8_BINARY") if collated else column


class _Changing:
    """The writer's lock around one change, with the checks that come first."""

    def __init__(self, table: Table) -> None:
        self._table, self._lock = table, table._engine.writing()

    def __enter__(self) -> SparkSession:
        self._lock.__enter__()
        try:
            if self._table.complete:
                raise TableError("TABLE_COMPLETE", f"table {self._table.name!r} was marked complete",
                                 "no more changes can come; create another table for them")  # fmt: skip
        except BaseException:
            self._lock.__exit__(None, None, None)
            raise
        return self._table._engine.spark

    def __exit__(self, *error: object) -> None:
        try:
            self._table.unstage()
        finally:
            self._lock.__exit__(None, None, None)


def _column_names(rows: intake.Rows) -> list[str]:
    if hasattr(rows, "column_names"):
        return list(rows.column_names)
    if hasattr(rows, "columns"):
        return [str(c) for c in rows.columns]
    if isinstance(rows, Sequence) and not isinstance(rows, str | bytes) and not rows:
        return [CHANGE_WEIGHT]  # no changes, which need no names
    if isinstance(rows, Sequence) and rows and isinstance(rows[0], dict):
        return list(rows[0])
    if isinstance(rows, Sequence) and rows and hasattr(rows[0], "__fields__"):
        return list(rows[0].asDict())
    if isinstance(rows, Sequence) and isinstance(rows[0], Sequence) and not isinstance(rows[0], str | bytes):
        # The number of values is checked with the rows: a row that only ends in a whole number lacks one.
        last = rows[0][-1] if rows[0] else None
        if isinstance(last, str):
            return [CHANGE_TYPE]
        if isinstance(last, int) and not isinstance(last, bool):
            return [CHANGE_WEIGHT]
        raise TableError("CHANGE_INVALID", f"a tuple that ends in {last!r} does not say what is changed",
                         "end each one, after the table's columns, with its _change_type or _weight")  # fmt: skip
    raise TableError("CHANGE_INVALID", "changes need named columns",
                     "give a DataFrame, an Arrow table, dicts, or tuples that end in the change")  # fmt: skip


def change_feed(reader: RelationReader, segments: Sequence[SegmentRecord]) -> DataFrame:
    """Segments as rows with `_change_type` and `_version`."""
    names = [f.name for f in reader.schema]
    fields = [
        *reader.schema,
        StructField(CHANGE_TYPE, StringType(), False),
        StructField(CHANGE_VERSION, LongType(), False),
    ]
    frame = reader.spark.createDataFrame([], StructType(fields))
    for segment in segments:
        rows = reader.plus([segment]) if segment.sign > 0 else reader.minus([segment])
        kind = "insert" if segment.sign > 0 else "delete"
        named = rows.select(*(f"c{i}" for i in range(len(names)))).toDF(*names)
        frame = frame.unionAll(
            named.withColumn(CHANGE_TYPE, F.lit(kind)).withColumn(
                CHANGE_VERSION, F.lit(segment.first_version).cast("bigint")
            )
        )
    return frame

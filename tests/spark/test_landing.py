"""Landing directories: every file once, bad ones set aside."""

from __future__ import annotations

import gzip
import json
import os
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from slackwater.execution import compaction
from slackwater.sources import Poll, candidates, polling
from tests.spark.landed import HEADER, SCHEMA, arrow, codes, ids, json_line, land, left_behind, line, refused

pytestmark = pytest.mark.spark

# --- applying ------------------------------------------------------------------------------------


def test_all_new_files_become_one_version(engine: sw.Engine, table: sw.Table, landing: Path) -> None:
    land(landing, "a.parquet", arrow(1, 2))
    land(landing, "b.csv", HEADER + line(3))
    land(landing, "c.json", json_line(4))
    land(landing, "d.csv.gz", gzip.compress((HEADER + line(5)).encode()))
    land(landing, "e.JSONL", json_line(6))
    land(landing, "f.ndjson.gz", gzip.compress(json_line(7).encode()))
    source = table.landing_directory(str(landing))
    before = engine.catalog.version()

    poll = source.poll()

    assert poll.version == before + 1 == engine.catalog.version()
    assert (poll.rows, poll.rejected, dict(poll.postponed)) == (7, (), {})
    assert sorted(poll.applied) == ["a.parquet", "b.csv", "c.json", "d.csv.gz", "e.JSONL", "f.ndjson.gz"]
    rows = sorted(tuple(map(str, row)) for row in table.snapshot().collect())
    assert rows == [(f"{n}", f"n{n}", f"{n}.50", "2024-01-02") for n in range(1, 8)]
    assert {f.file: f.version for f in source.files()} == dict.fromkeys(poll.applied, poll.version)
    assert engine.catalog.commits(1)[0].detail == {"kind": "landing", "inserted": 7, "deleted": 0}
    assert left_behind(engine) == []


def test_every_file_is_applied_once(
    engine: sw.Engine, table: sw.Table, landing: Path, tmp_path: Path, spark: SparkSession
) -> None:
    source = table.landing_directory(str(landing))
    assert source.poll() == Poll("orders")
    land(landing, "1.csv", HEADER + line(1))
    assert source.poll().applied == ("1.csv",)
    version = engine.catalog.version()
    assert source.poll().version is None
    land(landing, "2.csv", HEADER + line(2))
    assert source.poll().applied == ("2.csv",)
    assert table.landing_directory(str(landing / ".." / "landing")).id == source.id
    assert source.poll().version is None
    assert engine.catalog.version() == version + 1
    engine.close()

    with sw.Engine(tmp_path / "wh", spark=spark) as again:
        source = again.table("orders").landing_directory(str(landing))
        assert source.poll().version is None
        assert [f.file for f in source.files()] == ["1.csv", "2.csv"]
        assert ids(again.table("orders")) == [1, 2]


def test_a_renamed_table_keeps_its_directory(
    engine: sw.Engine, table: sw.Table, landing: Path, tmp_path: Path, spark: SparkSession
) -> None:
    source, frame = table.landing_directory(str(landing)), table.relation()
    engine.table("orders").rename("sales")
    other = engine.create_table("orders", "id BIGINT")
    land(landing, "a.parquet", arrow(1, 2))
    assert [poll.table for poll in engine.tick().polls] == ["sales"]
    assert (ids(table), other.count()) == ([1, 2], 0)
    view = engine.create_view("v", frame.select("id"))
    assert (view.inputs, view.result().count()) == (("sales",), 2)
    engine.close()

    with sw.Engine(tmp_path / "wh", spark=spark) as again:
        assert again.table("sales").landing_directory(str(landing)).id == source.id
        land(landing, "b.parquet", arrow(3))
        assert again.tick().polls[0].rows == 1
        assert (ids(again.table("sales")), again.view("v").refresh().rows_inserted) == ([1, 2, 3], 1)


def test_another_content_under_the_same_name_is_another_file(table: sw.Table, landing: Path) -> None:
    source = table.landing_directory(str(landing))
    land(landing, "a.csv", HEADER + line(1))
    source.poll()
    land(landing, "a.csv", HEADER + line(2) + line(3))
    assert source.poll().rows == 2
    assert ids(table) == [1, 2, 3]
    assert [f.file for f in source.files()] == ["a.csv", "a.csv"]


def test_unfinished_files_and_folders_are_left_alone(table: sw.Table, landing: Path) -> None:
    source = table.landing_directory(str(landing), format="csv")
    for name in (".a.csv", "_a.csv", "a.csv.tmp", "a.csv.crc", "a.csv.INPROGRESS"):
        land(landing, name, "half a f")
    (landing / "folder.csv").mkdir()
    land(landing / "folder.csv", "x.csv", HEADER + line(9))
    assert source.poll() == Poll("orders")
    land(landing, "a.csv.tmp", HEADER + line(1)).rename(landing / "a.csv")
    assert source.poll().applied == ("a.csv",)
    assert ids(table) == [1]


def test_a_file_that_changes_while_it_is_read_waits(
    table: sw.Table, landing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = table.landing_directory(str(landing))
    slow, steady = land(landing, "slow.csv", HEADER + line(1)), land(landing, "steady.csv", HEADER + line(2))
    copy = candidates.shutil.copyfileobj

    def copy_while_written(read: Any, write: Any, chunk: int) -> None:
        copy(read, write, chunk)
        if os.fstat(read.fileno()).st_ino == slow.stat().st_ino:
            with slow.open("a") as writer:
                writer.write(line(3))

    monkeypatch.setattr(candidates.shutil, "copyfileobj", copy_while_written)
    poll = source.poll()
    assert poll.applied == (steady.name,)
    assert dict(poll.postponed) == {"slow.csv": "it changed while it was read"}
    monkeypatch.undo()
    assert source.poll().applied == ("slow.csv",)
    assert ids(table) == [1, 2, 3]


def test_empty_files_are_applied_and_not_read_again(engine: sw.Engine, table: sw.Table, landing: Path) -> None:
    land(landing, "a.csv", HEADER)
    land(landing, "b.parquet", arrow().slice(0, 0))
    land(landing, "c.json", "\n \n")
    source = table.landing_directory(str(landing))
    poll = source.poll()
    assert (sorted(poll.applied), poll.rows, poll.rejected) == (["a.csv", "b.parquet", "c.json"], 0, ())
    assert source.poll() == Poll("orders")
    assert table.count() == 0
    assert left_behind(engine) == []


def test_options_reach_the_reader(engine: sw.Engine, table: sw.Table, landing: Path) -> None:
    source = table.landing_directory(str(landing), "CSV", header=False, sep=";", dateFormat="dd.MM.yyyy", nullValue="-")
    land(landing, "data.txt", "1;ä;2.5;02.01.2024\n2;-;-;-\n")
    assert source.poll().rows == 2
    assert sorted(tuple(map(str, r)) for r in table.snapshot().collect()) == [
        ("1", "ä", "2.50", "2024-01-02"), ("2", "None", "None", "None"),
    ]  # fmt: skip
    again = table.landing_directory(str(landing), "csv", header=False, sep=";", dateFormat="dd.MM.yyyy", nullValue="-")
    assert again.id == source.id
    assert repr(source) == f"LandingDirectory({str(landing)!r}, table='orders', format='csv')"


def test_polls_at_the_same_time(table: sw.Table, landing: Path) -> None:
    source = table.landing_directory(str(landing))
    land(landing, "a.csv", HEADER + line(1))
    polls: list[Poll] = []
    threads = [threading.Thread(target=lambda: polls.append(source.poll())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(len(poll.applied) for poll in polls) == [0, 1]
    assert ids(table) == [1]


# --- setting aside -------------------------------------------------------------------------------


def bad_files() -> dict[str, tuple[str | bytes | pa.Table, str]]:
    """Every way to be wrong that we know, with a word of the reason."""
    whole = pq_bytes(arrow(1, 2))
    missing = json.dumps({"id": 1, "name": "a", "amount": 1}) + "\n"
    return {
        "zero.csv": (b"", "0 bytes"),
        "zero.parquet": (b"", "0 bytes"),
        "type.csv": (HEADER + line(1) + "x,a,1,2024-01-01\n", "x"),
        "date.csv": (HEADER + "1,a,1,2024-13-01\n", "2024-13-01"),
        "range.csv": (HEADER + "1,a,123456789.5,2024-01-01\n", "123456789.5"),
        "few.csv": (HEADER + "1,a\n", "1,a"),
        "many.csv": (HEADER + "1,a,1,2024-01-01,9\n", "9"),
        "missing.csv": ("id,name,amount\n1,a,1\n", "header"),
        "extra.csv": ("id,name,amount,day,more\n1,a,1,2024-01-01,1\n", "header"),
        "renamed.csv": ("id,nom,amount,day\n1,a,1,2024-01-01\n", "nom"),
        "reordered.csv": ("name,id,amount,day\na,1,1,2024-01-01\n", "name"),
        "full.csv": (HEADER + "1,No space left on device,x,2024-01-01\n", "x"),
        "cut.csv.gz": (gzip.compress((HEADER + line(1) * 999).encode())[:-20], "end"),
        "cut.json.gz": (gzip.compress((json_line(1) * 999).encode())[:-20], "end"),
        "syntax.json": (json_line(1) + '{"id": 1\n', "1 lines"),
        "array.json": ("[" + json_line(1).strip() + "]\n", "1 lines"),
        "two.json": (json_line(1).strip() + json_line(2), "1 lines"),
        "doubled.json": ('{"id": 1, "id": 2, "name": "a", "amount": 1, "day": null}\n', "1 lines"),
        "type.json": (json_line(1, id="1"), "id"),
        "missing.json": (missing * 2, "'day'"),
        "extra.json": (json_line(1) + json_line(2, more=1), "'more'"),
        "cut.parquet": (whole[:-9], "footer"),
        "broken.parquet": (whole[:4] + b"\xff" * 60 + whole[64:], ""),
        "text.parquet": (HEADER + line(1), "footer"),
        "missing.parquet": (arrow(1).drop_columns(["day"]), "'day'"),
        "extra.parquet": (arrow(1).append_column("more", pa.array([1])), "'more'"),
        "type.parquet": (arrow(1).set_column(0, "id", pa.array(["1"])), "bigint"),
        "nanos.parquet": (arrow(1).set_column(3, "day", pa.array([1], pa.timestamp("ns"))), "NANOS"),
    }


def pq_bytes(content: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(content, sink)
    return bytes(sink.getvalue())


def test_malformed_files_are_set_aside_and_stop_nothing(engine: sw.Engine, table: sw.Table, landing: Path) -> None:
    source, bad = table.landing_directory(str(landing)), bad_files()
    for number, (name, (content, _)) in enumerate(bad.items()):
        land(landing, name, content)
        if number % 9 == 0:
            land(landing, f"good{number}.csv", HEADER + line(100 + number))
    land(landing, "notes.txt", "what is this?")
    version = engine.catalog.version()

    poll = source.poll()

    assert sorted(poll.applied) == ["good0.csv", "good18.csv", "good27.csv", "good9.csv"]
    assert ids(table) == [100, 109, 118, 127]
    assert engine.catalog.version() == version + 1
    assert codes(poll) == dict.fromkeys(bad, "SOURCE_FILE_MALFORMED") | {"notes.txt": "SOURCE_FORMAT"}
    for rejected in poll.rejected:
        if rejected.file in bad:
            assert bad[rejected.file][1] in rejected.details["reason"], rejected
            assert "staging" not in rejected.message, rejected
    causes = {r.file: r.details.get("cause") for r in poll.rejected}
    assert [causes[f"{n}.json"] for n in ("missing", "extra")] == ["COLUMN_MISSING", "COLUMN_EXTRA"]
    assert [causes[f"{n}.parquet"] for n in ("missing", "extra", "type")] == [
        "COLUMN_MISSING", "COLUMN_EXTRA", "COLUMN_TYPE",
    ]  # fmt: skip
    assert sorted(source.rejected(), key=str) == sorted(poll.rejected, key=str)
    assert left_behind(engine) == []
    assert source.poll() == Poll("orders")


def test_a_rejected_file_is_tried_again_when_it_changed(engine: sw.Engine, table: sw.Table, landing: Path) -> None:
    source = table.landing_directory(str(landing))
    land(landing, "a.csv", HEADER + "x\n")
    version = engine.catalog.version()
    poll = source.poll()
    assert (poll.version, codes(poll)) == (None, {"a.csv": "SOURCE_FILE_MALFORMED"})
    assert engine.catalog.version() == version
    assert "'a.csv': [SOURCE_FILE_MALFORMED]" in str(poll)
    assert source.poll() == Poll("orders")
    land(landing, "a.csv", HEADER + line(1))
    assert source.poll().applied == ("a.csv",)
    assert ids(table) == [1]


def test_a_format_that_cannot_hold_the_columns(engine: sw.Engine, landing: Path) -> None:
    table = engine.create_table("lists", "id BIGINT, xs ARRAY<INT>")
    land(landing, "a.csv", "id,xs\n1,2\n")
    land(landing, "b.json", '{"id": 1, "xs": [1, 2]}\n')
    land(landing, "c.parquet", pa.table({"id": [2], "xs": pa.array([[3]], pa.list_(pa.int32()))}))
    poll = table.landing_directory(str(landing)).poll()
    assert (sorted(poll.applied), codes(poll)) == (["b.json", "c.parquet"], {"a.csv": "SOURCE_FILE_MALFORMED"})
    assert sorted((row["id"], row["xs"]) for row in table.snapshot().collect()) == [(1, [1, 2]), (2, [3])]


def test_a_field_missing_from_some_lines_of_json_is_null(table: sw.Table, landing: Path) -> None:
    source = table.landing_directory(str(landing))
    land(landing, "a.json", json_line(1) + '{"id": 2}\n')
    assert source.poll().rows == 2
    assert [row["name"] for row in table.snapshot().orderBy("id").collect()] == ["n1", None]


def test_a_first_version_of_many_segments_is_merged(
    engine: sw.Engine, landing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A poll that sets files aside takes the others in parts; nothing came before that they could be merged into."""
    monkeypatch.setattr(compaction, "TABLE_SEGMENTS", 2)
    table = engine.create_table("keyed", SCHEMA, key=["id"])
    for at, number in enumerate([1, 1, 2, 2, 3, 3, 4, 4]):
        os.utime(land(landing, f"{at}.csv", HEADER + line(number)), ns=(at, at))
    view = engine.create_view("v", "SELECT id, name FROM keyed")
    table.landing_directory(str(landing)).poll()
    assert len(engine.catalog.segments(f"t{table.id}")) > 2
    view.refresh()
    assert len(engine.catalog.segments(f"t{table.id}")) <= 2
    table.insert([(9, "new", None, None)])
    assert view.refresh().mode != "none"
    assert view.verify()
    assert ids(table) == [1, 2, 3, 4, 9]
    assert left_behind(engine) == []


def test_a_poll_reads_no_reports_of_earlier_ones(
    engine: sw.Engine, landing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is one for each file that ever came: whoever asks for all of them waits longer every day."""
    table = engine.create_table("orders", SCHEMA)
    source = table.landing_directory(str(landing))
    land(landing, "1.csv", HEADER + line(1))
    land(landing, "bad.csv", HEADER + "x,y,z,w\n")
    assert source.poll().applied == ("1.csv",)
    monkeypatch.setattr(engine.catalog, "source_files", None)
    assert source.poll() == Poll("orders")
    land(landing, "2.csv", HEADER + line(2))
    assert source.poll().applied == ("2.csv",)
    assert ids(table) == [1, 2]


def test_files_whose_keys_collide_are_set_aside(engine: sw.Engine, landing: Path) -> None:
    table = engine.create_table("keyed", SCHEMA, key=["id"])
    table.insert([(1, "old", None, None)])
    source = table.landing_directory(str(landing))
    contents = {
        "1-good.csv": line(2) + line(3), "2-taken.csv": line(9) + line(1), "3-twice.csv": line(4) + line(4),
        "4-null.csv": ",n,1,2024-01-01\n", "5-same-as-1.csv": line(5) + line(3), "6-good.csv": line(9) + line(5),
    }  # fmt: skip
    for at, (name, content) in enumerate(contents.items()):
        path = land(landing, name, HEADER + content)
        os.utime(path, ns=(at, at))

    poll = source.poll()

    assert poll.applied == ("1-good.csv", "6-good.csv")  # 2 and 5 took no key, for they were not applied
    assert codes(poll) == {
        "2-taken.csv": "KEY_EXISTS", "3-twice.csv": "KEY_DUPLICATE", "4-null.csv": "KEY_NULL",
        "5-same-as-1.csv": "KEY_EXISTS",
    }  # fmt: skip
    assert ids(table) == [1, 2, 3, 5, 9]
    assert source.poll() == Poll("keyed")
    assert left_behind(engine) == []


def test_what_is_not_the_files_fault_is_not_held_against_them(
    engine: sw.Engine, landing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = engine.create_table("keyed", SCHEMA, key=["id"])
    table.insert([(1, "old", None, None), (3, "old", None, None)])
    source = table.landing_directory(str(landing))
    land(landing, "a.csv", HEADER + line(2))

    def failing(*args: Any) -> Any:
        return engine.spark.range(1).select(*(F.raise_error(F.lit("no")).alias(f.name) for f in table.schema))

    with monkeypatch.context() as patch:
        patch.setattr(polling.BatchReader, "rows", failing)
        assert refused(source.poll) == "SPARK_FAILED"

    segment = engine.path / engine.catalog.segments(f"t{table.id}")[0].path
    for checksum in segment.glob(".*.crc"):
        checksum.unlink()
    contents = {file: file.read_bytes() for file in segment.glob("*.parquet")}
    for file, content in contents.items():
        file.write_bytes(content[:-9])
    assert refused(source.poll) == "SPARK_FAILED"
    assert source.rejected() == source.files() == []
    assert left_behind(engine) == []

    for file, content in contents.items():
        file.write_bytes(content)
    assert source.poll().applied == ("a.csv",)

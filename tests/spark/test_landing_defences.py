"""Landing directories that are hostile, cannot be attached, or are being read when we are killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.sources import LandingDirectory, Poll, candidates, polling
from slackwater.storage.faults import CRASH_STATUS
from tests.spark.landed import HEADER, SCHEMA, codes, ids, land, left_behind, line, refused

pytestmark = pytest.mark.spark

# --- hostile directories -------------------------------------------------------------------------


def test_hostile_names(engine: sw.Engine, table: sw.Table, landing: Path) -> None:
    source = table.landing_directory(str(landing), format="csv")
    names = [
        "with space.csv", "it's.csv", 'say "hi".csv', "naïve-日本語-🙂.csv", "; DROP TABLE source_files; --.csv",
        "[*].csv", "{a,b}.csv", "*", "?.csv", "back\\slash.csv", "%2e%2e%2f.csv", "a:b.csv", "id=7.csv", "new\nl.csv",
        "$(reboot)", "`id`.csv", "<script>.csv", "x" * 250, "-rf", "~", "#fragment.csv", "a=1", "tab\t.csv", "A.CSV",
        "a.csv",
    ]  # fmt: skip
    for number, name in enumerate(names):
        land(landing, name, HEADER + line(number))
    not_text = os.fsdecode(b"\xff\xfe.csv")
    land(landing, not_text, HEADER + line(len(names)))

    poll = source.poll()

    assert sorted(poll.applied) == sorted([*names, "./%FF%FE.csv"])
    assert ids(table) == list(range(len(names) + 1))
    assert source.poll() == Poll("orders")
    assert sorted(f.file for f in source.files()) == sorted(poll.applied)


def test_a_hostile_directory_name(table: sw.Table, tmp_path: Path) -> None:
    for number, name in enumerate(["a b'\"[*]{x}; DROP TABLE", "new\nline", "x" * 200 + "/" + "y" * 200]):
        directory = tmp_path / name
        directory.mkdir(parents=True)
        land(directory, "a.csv", HEADER + line(number))
        source = table.landing_directory(str(directory))
        assert source.poll().applied == ("a.csv",)
        assert table.landing_directory(str(directory)).id == source.id
    assert ids(table) == [0, 1, 2]


def test_links_and_pipes_are_refused(table: sw.Table, landing: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text(HEADER + line(1))
    (landing / "out.csv").symlink_to(secret)
    (landing / "in.csv").symlink_to(land(landing, "real.csv", HEADER + line(2)))
    (landing / "nowhere.csv").symlink_to(tmp_path / "nowhere")
    (landing / "folder.csv").symlink_to(tmp_path)
    os.mkfifo(landing / "pipe.csv")
    source = table.landing_directory(str(landing))

    poll = source.poll()

    assert poll.applied == ("real.csv",)
    assert codes(poll) == dict.fromkeys(
        ["out.csv", "in.csv", "nowhere.csv", "folder.csv", "pipe.csv"], "SOURCE_FILE_MALFORMED"
    )
    assert source.poll() == Poll("orders")


def test_a_file_replaced_by_a_link_after_it_was_listed(
    table: sw.Table, landing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = table.landing_directory(str(landing))
    file = land(landing, "a.csv", HEADER + line(1))
    (tmp_path / "secret.csv").write_text(HEADER + line(2))
    freeze = polling.freeze

    def swapping(directory: int, candidate: candidates.Candidate, target: Path) -> str | None:
        file.unlink()
        file.symlink_to(tmp_path / "secret.csv")
        return freeze(directory, candidate, target)

    monkeypatch.setattr(polling, "freeze", swapping)
    poll = source.poll()
    assert list(poll.postponed) == ["a.csv"]
    assert poll.version is None
    assert table.count() == 0


def test_a_report_cannot_smuggle_html(table: sw.Table, landing: Path) -> None:
    source = table.landing_directory(str(landing))
    land(landing, "<script>alert(1)<%2fscript>.csv", HEADER + "<b>\n")
    poll = source.poll()
    assert "<script>" not in poll._repr_html_()
    assert "&lt;script&gt;" in poll._repr_html_()
    assert json.loads(json.dumps(poll.to_dict()))["rejected"][0]["code"] == "SOURCE_FILE_MALFORMED"
    assert str(Poll("t", 7, 1234, ("a",))) == "t: version 7, 1,234 rows from 1 file"


# --- attaching -----------------------------------------------------------------------------------


def test_what_cannot_be_attached(engine: sw.Engine, table: sw.Table, landing: Path, tmp_path: Path) -> None:
    attach = table.landing_directory
    path = str(landing)
    (tmp_path / "file").write_text("")
    for missing in (str(tmp_path / "none"), str(tmp_path / "file"), "", "nul\0", "s3://bucket/x"):
        assert refused(lambda p=missing: attach(p)) == "SOURCE_MISSING"  # type: ignore[misc]
    assert refused(lambda: attach(path, "orc")) == "SOURCE_FORMAT"
    for options in ({"mode": "PERMISSIVE"}, {"Path": "/etc"}, {"multiLine": True}, {"header": "maybe"}, {"sep": None}):
        assert refused(lambda o=options: attach(path, **o)) == "SETTING_INVALID"  # type: ignore[misc]
    for options in ({"timeZone": "Mars"}, {"encoding": "klingon"}, {"quote": "many"}):
        assert refused(lambda o=options: attach(path, "csv", **o)) == "SETTING_INVALID"  # type: ignore[misc]
    lists = engine.create_table("lists", "xs ARRAY<INT>")
    assert refused(lambda: lists.landing_directory(path, "csv")) == "SOURCE_FORMAT"
    for area in ("", "data", "staging/x"):
        (engine.path / area).mkdir(parents=True, exist_ok=True)
        assert refused(lambda a=area: attach(str(engine.path / a))) == "NAME_INVALID"  # type: ignore[misc]
    assert engine.catalog.sources(table.id) == ()


def test_another_format_for_the_same_directory_is_refused(table: sw.Table, landing: Path) -> None:
    source = table.landing_directory(str(landing), "csv", sep=";")
    assert table.landing_directory(str(landing), "csv", SEP=";").id == source.id
    assert refused(lambda: table.landing_directory(str(landing), "csv")) == "SOURCE_FORMAT"
    assert refused(lambda: table.landing_directory(str(landing), "json", sep=";")) == "SOURCE_FORMAT"
    assert refused(lambda: table.landing_directory(str(landing))) == "SOURCE_FORMAT"


def test_two_tables_can_share_a_directory(engine: sw.Engine, table: sw.Table, landing: Path) -> None:
    other = engine.create_table("other", SCHEMA)
    land(landing, "a.csv", HEADER + line(1))
    for each in (table, other):
        assert each.landing_directory(str(landing)).poll().rows == 1
    assert ids(table) == ids(other) == [1]


def test_when_a_poll_is_refused(
    engine: sw.Engine, table: sw.Table, landing: Path, tmp_path: Path, spark: SparkSession
) -> None:
    source = table.landing_directory(str(landing))
    land(landing, "a.csv", HEADER + line(1))
    with sw.Engine(tmp_path / "wh", spark=spark, read_only=True) as reader:
        beside = reader.table("orders").landing_directory(str(landing))
        assert beside.files() == []
        assert refused(beside.poll) == "WAREHOUSE_LOCKED"
    landing.rename(tmp_path / "moved")
    assert refused(source.poll) == "SOURCE_MISSING"
    landing.symlink_to(tmp_path / "moved")
    assert refused(source.poll) == "SOURCE_MISSING"
    table.mark_complete()
    assert refused(source.poll) == "TABLE_COMPLETE"
    engine.drop_table("orders")
    assert refused(source.poll) == "TABLE_UNKNOWN"


# --- faults --------------------------------------------------------------------------------------


@pytest.mark.fault
@pytest.mark.parametrize(
    ("point", "applied"),
    [("segment.after_write", 0), ("source.after_read", 0), ("commit.inside", 0), ("commit.after", 1)],
)
def test_a_poll_that_fails_leaves_nothing_or_all(
    engine: sw.Engine, table: sw.Table, landing: Path, monkeypatch: pytest.MonkeyPatch, point: str, applied: int
) -> None:
    source = table.landing_directory(str(landing))
    land(landing, "a.csv", HEADER + line(1))
    with monkeypatch.context() as patch:
        patch.setenv("SLACKWATER_FAIL_AT", point)
        assert refused(source.poll) == "STORAGE_FULL"
    assert len(source.files()) == table.count() == applied
    assert left_behind(engine) == []
    assert len(source.poll().applied) == 1 - applied
    assert ids(table) == [1]


@pytest.mark.fault
def test_a_poll_that_is_killed_is_made_up_for_by_the_next(tmp_path: Path, landing: Path, spark: SparkSession) -> None:
    warehouse = tmp_path / "wh"
    with sw.Engine(warehouse, spark=spark) as engine:
        engine.create_table("orders", SCHEMA).landing_directory(str(landing))
    land(landing, "a.csv", HEADER + line(1))
    land(landing, "bad.csv", "x\n")
    program = textwrap.dedent("""
        import sys, slackwater as sw
        from pyspark.sql import SparkSession
        spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
        sw.Engine(sys.argv[1], spark=spark).table("orders").landing_directory(sys.argv[2]).poll()
    """)
    environment = {**os.environ, "SLACKWATER_CRASH_AT": "source.after_read"}
    done = subprocess.run([sys.executable, "-c", program, str(warehouse), str(landing)], env=environment,
                          capture_output=True, timeout=180, check=False)  # fmt: skip
    assert done.returncode == CRASH_STATUS, done.stderr.decode()[-2000:]
    assert list((warehouse / "staging").glob("*/*"))

    with sw.Engine(warehouse, spark=spark) as engine:
        table = engine.table("orders")
        assert left_behind(engine) == []
        source: LandingDirectory = table.landing_directory(str(landing))
        assert source.files() == source.rejected() == []
        poll = source.poll()
        assert (poll.applied, codes(poll)) == (("a.csv",), {"bad.csv": "SOURCE_FILE_MALFORMED"})
        assert source.poll() == Poll("orders")
        assert ids(table) == [1]

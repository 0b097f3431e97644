"""What is found in the text of CSV and JSON files before Spark reads them: patterns, and quotes that stay open."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from pyspark.sql.types import StructType

from slackwater.sources.quotes import open_quotes
from slackwater.sources.screening import DAY_WITH_TIME, FINER_THAN_MICROSECONDS, NOT_ZERO, NUMBER, Screen


def lines(tmp_path: Path, text: str, **options: str) -> int | None:
    path = tmp_path / "0.csv"
    path.write_bytes(text.encode(options.get("encoding", "utf-8")))
    return open_quotes(path, options)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('id,name\n1,"one\ntwo"\n', 2),
        ('name\n"one\n\ntwo"\n', 2),
        ('1,"a, b\n2,c"\n', 1),
        ('1,"say ""yes""\nor no"\n', 1),
        ('1,"say \\"yes\\"\nor no"\n', 1),
        ('1,"a"\r\n2,"b\r\nc"\r\n', 2),
        ('"a","b\n', 1),
        ('1,"a"\n2,"b"\n', None),
        ('1,5" pipe,x\n2,"6"" pipe"\n', None),
        ('1,"say \\"yes\\""\n', None),
        ('1,"a, "\n2,", b"\n', None),
        ('1,""\n"",""\n', None),
        ('1,"a"b,c"\n', None),
        ("1,it's\n", None),
        ("", None),
    ],
)  # fmt: skip
def test_a_line_that_ends_inside_of_quotes(tmp_path: Path, text: str, line: int | None) -> None:
    assert lines(tmp_path, text) == line


def test_the_options_say_what_a_quote_is(tmp_path: Path) -> None:
    assert lines(tmp_path, '1,"a\nb"\n', multiline="true") is None
    assert lines(tmp_path, '1,"a\nb"\n', quote="") is None
    assert lines(tmp_path, '1,"a\nb"\n', quote="'") is None
    assert lines(tmp_path, "1,'a\nb'\n", quote="'") == 1
    assert lines(tmp_path, '1;5"\n2;"a\nb"\n', sep=";") == 2
    assert lines(tmp_path, '1\t"a\nb"\n', sep="\\t") == 1
    assert lines(tmp_path, '1||"a\nb"\n', sep="||") == 1
    assert lines(tmp_path, '# don"t\n1,2\n', comment="#") is None
    assert lines(tmp_path, '1, "a\n', ignoreleadingwhitespace="true") == 1
    assert lines(tmp_path, '1, "a\n') is None
    assert lines(tmp_path, '"C:\\"\n', escape='"') is None
    assert lines(tmp_path, '1,"ä\nb"\n', encoding="utf-16") == 1
    assert lines(tmp_path, '1,"a\n', charset="klingon") is None


def test_compressed_files_are_looked_into(tmp_path: Path) -> None:
    whole = gzip.compress(b'id\n1\n"a\nb"\n' * 999)
    path = tmp_path / "0.csv.gz"
    path.write_bytes(whole)
    assert open_quotes(path, {}) == 3
    path.write_bytes(gzip.compress(b"id\n1\n" * 9999)[:-9])
    assert open_quotes(path, {}) is None  # Spark says what is wrong with it


def test_many_quotes_take_no_time(tmp_path: Path) -> None:
    assert lines(tmp_path, ",".join(['"a""b"'] * 20_000) + ',"\n') == 1


@pytest.mark.parametrize(
    ("pattern", "found", "others"),
    [
        (DAY_WITH_TIME, ["2024-01-02 10:00:00", "2024-1-2T00:00:01", "2024-01-02T00:00:00Z", "2024-01-02 x"],
         ["2024-01-02", " 2024-01-02 ", "2024-01-02T00:00", "2024-01-02 00:00:00.000", "x"]),
        (FINER_THAN_MICROSECONDS, ["10:00:00.1234567", "10:00:00.00000000001Z"],
         ["10:00:00.123456", "10:00:00.123456000", "10:00:00", "2024-01-02"]),
        (NUMBER, ["1", "-1.5", "+.5", "1.", "1e9", "1.50E-3"], ["1,5", "x", "1e", "NaN", "Infinity", " 1", "0x1"]),
        (NOT_ZERO, ["1e-400", "0.001", "-.5"], ["0", "0.0", "0e9", "-0", "NaN"]),
    ],
)  # fmt: skip
def test_the_patterns(pattern: str, found: list[str], others: list[str]) -> None:
    assert [text for text in found + others if re.search(pattern, text)] == found


def schema(text: str) -> StructType:
    """Without Spark's parser of DDL, which needs Spark."""
    return StructType.fromJson({"type": "struct", "fields": [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in (part.split(" ") for part in text.split("; "))
    ]})  # fmt: skip


def test_only_what_may_be_changed_is_read_as_text() -> None:
    plain = schema("i integer; s string; b boolean")
    assert Screen(plain, "csv", {}).as_text() is None
    assert Screen(plain, "json", {}).as_text() is None
    table = schema("i integer; t byte; d decimal(10,2); at timestamp")
    assert Screen(table, "csv", {}).as_text() == schema("i string; t string; d string; at string")
    assert Screen(table, "json", {}).as_text() == schema("t string; d string; at string")
    assert Screen(table, "json", {"locale": "de", "timestampformat": "x"}).as_text() == schema("t string")

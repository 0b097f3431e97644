"""Values in landed CSV and JSON files that Spark would take and change: their files are set aside."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from slackwater.sources import Poll
from tests.spark.landed import codes, ids, land, left_behind

pytestmark = pytest.mark.spark

MALFORMED = "SOURCE_FILE_MALFORMED"


def causes(poll: Poll) -> dict[str, Any]:
    return {rejected.file: rejected.details.get("cause") for rejected in poll.rejected}


def test_text_in_csv_that_would_be_changed(engine: sw.Engine, landing: Path) -> None:
    types = {"d": "DECIMAL(10,2)", "f": "FLOAT", "x": "DOUBLE", "day": "DATE", "at": "TIMESTAMP"}
    good = {"d": ["1.5", "1.500", "-0.010", "15e-1", "100e-2", '"1,234.5"', "", "1e3"],
            "f": ["1.1", "0", "-0.0", "NaN", "Inf", "1e38"], "x": ["1e300", "0.0"],
            "day": ["2024-01-02", "2024-01-02 00:00:00"],
            "at": ["2024-01-02 10:00:00.123456", "2024-01-02T10:00:00.123456000"]}  # fmt: skip
    bad = {"d": ["1.005", "15e-3", "0.001", '"1,234.567"', "-1.119"],
           "f": ["1e300", "1e-300"], "x": ["1e400", "1e-400"],
           "day": ["2024-01-02 10:00:00", "2024-01-02T00:00:01"], "at": ["2024-01-02 10:00:00.1234567"]}  # fmt: skip
    table = engine.create_table("t", "id INT, " + ", ".join(f"{c} {t}" for c, t in types.items()))
    header = ",".join(["id", *types])

    def line(number: int, column: str, value: str) -> str:
        return ",".join([str(number), *(value if name == column else "" for name in types)])

    number, wanted = 0, {}
    for column in types:
        for value in bad[column]:
            number += 1
            name = f"bad-{number}.csv"
            # Beside lines that are good, which are not taken either.
            land(landing, name, f"{header}\n{line(0, column, good[column][0])}\n{line(number, column, value)}\n")
            wanted[name] = value.strip('"')
    rows = [line(1000 + at, c, v) for at, (c, v) in enumerate((c, v) for c in types for v in good[c])]
    land(landing, "good.csv", "\n".join([header, *rows, ""]))
    source = table.landing_directory(str(landing))

    poll = source.poll()

    assert poll.applied == ("good.csv",)
    assert codes(poll) == dict.fromkeys(wanted, MALFORMED)
    assert set(causes(poll).values()) == {"COLUMN_TYPE"}
    for rejected in poll.rejected:
        assert wanted[rejected.file] in rejected.message, rejected
    assert len(ids(table)) == len(rows)
    decimals = [row["d"] for row in table.snapshot().where("d IS NOT NULL").orderBy("id").collect()]
    assert decimals == [Decimal(d) for d in ("1.50", "1.50", "-0.01", "1.50", "1.00", "1234.50", "1000.00")]
    assert source.poll() == Poll("t")
    assert left_behind(engine) == []


def test_values_in_json_that_would_be_changed(engine: sw.Engine, landing: Path) -> None:
    table = engine.create_table(
        "t",
        "id INT, t TINYINT, d DECIMAL(20,2), day DATE, s STRUCT<a: DECIMAL(5,1), t: TINYINT, `b.c`: STRUCT<e: INT>>, "
        "xs ARRAY<TINYINT>, m MAP<STRING, DECIMAL(5,1)>, ss ARRAY<STRUCT<e: INT>>",
    )
    bad = [
        '"t": 200', '"t": 128', '"t": 255', '"d": 1.005', '"d": "1.005"', '"d": 123456789012345678.125',
        '"d": 1e-3', '"day": "2024-01-02T10:00:00"', '"s": {"a": 1.25}', '"s": {"t": 130}', '"xs": [1, 200]',
        '"m": {"k": 1.25}', '"s": {"z": 1}', '"s": {"a": 1.5, "b.c": {"f": 1}}', '"s": {"a": 1, "a": 2}',
        '"ss": [{"e": 1}, {"e": 1, "f": 2}]', '"s": {"A": 1}',
    ]  # fmt: skip
    good = [
        '"t": 127', '"t": -128', '"t": null', '"d": 123456789012345678.12', '"d": 1.500', '"d": "1.5"', '"d": 15e-1',
        '"day": "2024-01-02"', '"s": {"a": 1.5, "t": 1, "b.c": {"e": 1}}', '"s": {}', '"s": null', '"s": {"b.c": null}',
        '"xs": [1, null]', '"xs": []', '"m": {"k": 1.5, "other": null}', '"ss": [{"e": 1}, {}, null]', '"ss": []',
    ]  # fmt: skip

    def line(number: int, fields: str) -> str:
        named = dict.fromkeys(["t", "d", "day", "s", "xs", "m", "ss"])
        rest = {name: None for name in named if not fields.startswith(f'"{name}"')}
        return f'{{"id": {number}, {fields}, {json.dumps(rest)[1:-1]}}}\n'

    for number, fields in enumerate(bad):
        land(landing, f"bad-{number}.json", line(0, good[0]) + line(number, fields))
    land(landing, "good.json", "".join(line(number, fields) for number, fields in enumerate(good)))
    source = table.landing_directory(str(landing))

    poll = source.poll()

    assert poll.applied == ("good.json",), [str(r) for r in poll.rejected if r.file == "good.json"]
    assert codes(poll) == {f"bad-{number}.json": MALFORMED for number in range(len(bad))}
    assert set(causes(poll).values()) == {"COLUMN_TYPE"}
    rows = {row["id"]: row for row in table.snapshot().collect()}
    assert [rows[number]["t"] for number in range(3)] == [127, -128, None]
    assert [str(rows[number]["d"]) for number in range(3, 7)] == ["123456789012345678.12", "1.50", "1.50", "1.50"]
    assert rows[8]["s"].asDict(recursive=True) == {"a": Decimal("1.5"), "t": 1, "b.c": {"e": 1}}
    assert left_behind(engine) == []


def test_a_format_for_dates_decides_what_they_hold(engine: sw.Engine, landing: Path) -> None:
    table = engine.create_table("t", "id INT, day DATE")
    land(landing, "a.csv", "id,day\n1,02.01.2024 10:00\n")
    assert table.landing_directory(str(landing), "csv", dateFormat="dd.MM.yyyy HH:mm").poll().rows == 1


def test_a_value_with_a_line_break_is_not_taken_for_two_rows(engine: sw.Engine, landing: Path) -> None:
    table = engine.create_table("t", "id STRING, name STRING")
    land(landing, "a.csv", 'id,name\n1,"one, or\n2,two"\n')
    land(landing, "b.csv", 'id,name\n3,"6"" pipe"\n4,5" pipe\n')
    poll = table.landing_directory(str(landing)).poll()
    assert (poll.applied, codes(poll)) == (("b.csv",), {"a.csv": MALFORMED})
    assert "line 2 ends inside of quotes" in poll.rejected[0].message
    assert sorted(row["id"] for row in table.snapshot().collect()) == ["3", "4"]

    other = engine.create_table("other", "id STRING, name STRING")
    (landing / "b.csv").unlink()
    assert other.landing_directory(str(landing), "csv", multiLine=True).poll().rows == 1
    assert [tuple(row) for row in other.snapshot().collect()] == [("1", "one, or\n2,two")]

"""Functions that Spark's optimizer replaces by what they do: written back, they must mean the same.

A view that is not an ordering is verified against the query's own text, so a wrong spelling shows as a difference.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.algebra.nodes import Opaque
from tests.spark.settling import session_with
from tests.spark.test_capture import GOLDEN_SPARK

COLUMNS = """i INT, s STRING, good STRING, num STRING, hx STRING, js STRING, b BINARY, day DATE, at TIMESTAMP,
    ntz TIMESTAMP_NTZ, m DECIMAL(9,2), d DOUBLE, st STRUCT<x: INT, t: TIMESTAMP>, sts ARRAY<STRUCT<x: INT, `a b`: INT>>,
    mp MAP<STRING, INT>, fl ARRAY<FLOAT>, words ARRAY<STRING>"""

_AT = datetime(2024, 2, 29, 23, 59, 58, 765432)
_DAY = date(2024, 2, 29)
ROWS = [
    (1, "a,b,,d", "2024-02-29", "454", "1C7F", '{"a": 1, "b": [2]}', b"ab", _DAY, _AT, _AT, Decimal("-1.55"), -1.5,
     (1, _AT), [(1, 2), (3, 4)], {"k": 1}, [1.0, 2.0], ["x", None, "y"]),
    (2, "no %zz number", "1999-12-31", "-7", "00", "[1, 2, 3]", b"", date(1, 1, 1), datetime(1582, 10, 4), _AT,
     Decimal("99.99"), 2.25, (None, None), [], {}, [0.0, 0.0], []),
    (3, "", "2000-01-01", "0", "FFFF", "{}", b"\xff\x00", _DAY, _AT, _AT, Decimal("0.00"), 0.0, None, None, None, None,
     None),
    (None, None, None, None, None, None, None, None, None, None, None, None, None, None, None, None, None),
]  # fmt: skip
LATER = [
    (7, "https%3A%2F%2Fx", "2024-06-30", "12", "ab", "nonsense", b"xyz", _DAY, _AT, _AT, Decimal("7.49"), 7.5, (9, _AT),
     [(None, 5)], {"k": None, "j": 2}, [3.5, -4.0], ["z"]),
    (13, "2024-13-77", "2024-01-31", "99", "zz", '{"a": "x"}', b"a", _DAY, _AT, _AT, Decimal("1.05"), 1e9, (0, _AT),
     [(7, None)], {"z": 3}, [1.5, 2.5], [None]),
]  # fmt: skip

EXPRESSIONS = """
floor(d) | floor(m) | ceil(d) | ceil(m) | floor(m, 1) | ceil(m, 1) | floor(d, -1) | lpad(s, 5, '0') | rpad(s, 3, 'ab')
lpad(b, 4, X'01') | rpad(b, 1) | btrim(s, 'a') | trim(LEADING 'a' FROM s) | trim(TRAILING 'd' FROM s) | trim(s)
split_part(s, ',', 2) | split_part(s, ',', -1) | split_part(s, ',', i)
to_date(good, 'yyyy-MM-dd') | to_timestamp(good, 'yyyy-MM-dd') | to_timestamp_ntz(good, 'yyyy-MM-dd')
try_to_timestamp(s, 'yyyy-MM-dd') | try_to_timestamp(s) | to_unix_timestamp(good, 'yyyy-MM-dd')
timestampdiff(MINUTE, at, timestampadd(HOUR, i, at)) | timestampadd(MONTH, i, at) | dateadd(MONTH, 1, day)
date_diff(DAY, day, at) | extract(SECOND FROM at) | date_part('SECONDS', ntz) | extract(WEEK FROM day)
make_timestamp(2024, i % 12 + 1, 1, 2, 3, 4.5) | make_timestamp_ntz(2024, 2, i, 0, 0, 0) | try_make_timestamp(2024, 13, i, 0, 0, 0)
CAST(make_interval(1, i) AS STRING) | CAST(try_make_interval(1, i) AS STRING) | unhex(hx) | unbase64(base64(b)) | base64(b) | encode(s, 'UTF-16')
decode(encode(good, 'utf-8'), 'utf-8') | url_encode(s) | try_url_decode(s) | url_decode(good) | json_array_length(js)
json_object_keys(js) | quote(s) | sentences(s) | luhn_check(num) | to_binary(good, 'utf-8') | try_to_binary(hx, 'hex')
is_valid_utf8(s) | make_valid_utf8(s) | validate_utf8(s) | try_validate_utf8(s) | contains(b, X'00') | startswith(b, X'61')
endswith(b, X'') | vector_norm(fl, 2.0F) | vector_inner_product(fl, fl) | vector_l2_distance(fl, fl)
bitmap_bit_position(i) | bitmap_bucket_number(i) | to_json(st) | to_json(st, map('timestampFormat', 'dd/MM/yyyy'))
to_json(sts) | from_json(js, 'a INT') | from_json(js, 'a STRING, `b c` ARRAY<INT>').a | from_json(js, 'ARRAY<INT>')
from_json(js, 'a INT', map('mode', 'PERMISSIVE')) | from_csv(s, 'x STRING, y STRING')
from_csv(s, 'x STRING, y STRING', map('sep', '%')) | to_csv(st) | to_csv(st, map('sep', ';', 'timestampFormat', 'yyyy'))
to_char(m, '99.99') | to_number(num, 'S999') | try_to_number(s, '999') | sequence(1, i, 2) | sequence(day, day + 3)
sts.x | sts.`a b` | array_join(words, '-', '?') | array_join(words, '-') | array_compact(words) | levenshtein(s, good, 2)
levenshtein(s, good) | mask(s) | mask(s, 'Q', 'q', 'd', 'o') | if(i > 100, raise_error('too large'), s)
assert_true(coalesce(i, 0) < 100, 'too large') | try_add(day, i) | try_subtract(day, i) | try_divide(INTERVAL 2 MONTH, i - 2)
try_multiply(INTERVAL 2 YEAR, i) | try_add(at, INTERVAL 1 DAY) | xpath_string('<a><b>1</b></a>', 'a/b') || s
xpath_int(concat('<a><b>', num, '</b></a>'), 'a/b') | xpath(concat('<a><b>', num, '</b></a>'), 'a/b/text()')
try_parse_url(good, 'HOST') | parse_url(concat('http://h/p?k=', num), 'QUERY', 'k') | variant_get(try_parse_json(js), '$.a', 'string')
try_variant_get(try_parse_json(js), '$.a', 'int') | is_variant_null(try_parse_json(js)) | schema_of_variant(try_parse_json(js))
array_contains(sequence(1, 5), i) | map_from_arrays(sequence(1, 20), transform(sequence(1, 20), x -> x * x))[i]
"""  # noqa: E501 - one list


def _expressions() -> list[str]:
    found = [part.strip() for line in EXPRESSIONS.strip().splitlines() for part in line.split(" | ")]
    assert len(set(found)) == len(found)
    return found


def test_functions_mean_the_same_when_written_back(engine: sw.Engine, spark: SparkSession) -> None:
    table = engine.create_table("t", COLUMNS)
    table.insert(ROWS)
    found = {e: engine.check(f"SELECT {e} AS x FROM t") for e in _expressions()}
    exprs = [e for e, told in found.items() if "UNRESOLVED_ROUTINE" not in str(told.refusal)]
    if spark.version.startswith(GOLDEN_SPARK):  # other versions of Spark may lack some functions
        assert exprs == list(found)
    alone = [e for e in exprs if not found[e]]
    assert alone == [], "not followed alone, where no other expression has it looked at more closely"
    chunks = [exprs[at : at + 30] for at in range(0, len(exprs), 30)]
    views = [
        engine.create_view(f"v{n}", f"SELECT {', '.join(f'{e} AS x{at}' for at, e in enumerate(chunk))} FROM t")
        for n, chunk in enumerate(chunks)
    ]
    table.insert(LATER)
    for view in views:
        view.refresh()
        assert view.verify(), view.verify()
        assert not isinstance(view.plan, Opaque)


def test_lenient_forms_stay_lenient_without_ansi(engine: sw.Engine, spark: SparkSession) -> None:
    """Without ANSI the strict forms give NULL: a view keeps that meaning when the session's settings change."""
    with session_with(spark, ansi__enabled="false"):
        table = engine.create_table("t", "s STRING, i INT")
        view = engine.create_view(
            "v",
            "SELECT to_date(s, 'yyyy-MM-dd') AS a, to_timestamp(s, 'yyyy') AS b,"
            " make_timestamp(2024, i, 1, 0, 0, 0) AS c,"
            " CAST(make_interval(i) AS STRING) AS d, unhex(s) AS e, element_at(array(1, 2), i) AS f FROM t",
        )
    table.insert([("2024-01-31", 1), ("junk", 13)])
    view.refresh()
    assert view.verify()
    assert not isinstance(view.plan, Opaque)
    assert sum(row["a"] is None for row in view.result().collect()) == 1


def test_formats_keep_their_options(engine: sw.Engine) -> None:
    """Spark's JSON says nothing of options: without a look at the plan itself, `sep` would be lost."""
    table = engine.create_table("t", "st STRUCT<x: INT, y: INT>")
    view = engine.create_view("v", "SELECT to_csv(st, map('sep', ';')) AS x FROM t")
    table.insert([((1, 2),)])
    view.refresh()
    assert [row.x for row in view.result().collect()] == ["1;2"]
    assert not isinstance(view.plan, Opaque)


def test_a_random_vector_is_refused(engine: sw.Engine) -> None:
    """Spark calls `aes_encrypt` deterministic, but draws an initialization vector for every value."""
    engine.create_table("t", "s STRING")
    found = engine.check("SELECT aes_encrypt(s, '0000111122223333') AS x FROM t")
    assert found.codes == ("QUERY_NONDETERMINISTIC",)
    assert engine.check("SELECT current_path() AS x, s FROM t").codes == ("QUERY_NONDETERMINISTIC",)

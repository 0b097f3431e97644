"""Expressions as Spark gives them and as we write them back: the same values, whatever Spark's JSON leaves out."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.algebra.nodes import Opaque
from tests.spark.settling import session_with
from tests.spark.test_capture import GOLDEN_SPARK, captured

pytestmark = pytest.mark.spark

EXPRESSIONS = r"""
i + l * 2 - 1
i / 4
i % 3
i DIV 2
-i
+i
abs(i - 5)
i & 6
i | 1
i ^ 3
~i
shiftleft(i, 2)
m * m
m / 7
m + 1.005
m - i
m % 0.3
round(m, 1)
bround(d, 1)
floor(d)
ceil(m)
sqrt(abs(d))
pow(d, 2)
exp(d / 100)
ln(abs(d) + 1)
d + f
d / 3
greatest(i, 3, l)
least(d, 1.5D)
coalesce(s, 'none')
nvl(i, 0)
nullif(i, 3)
if(b, 1, 2)
CASE WHEN i > 5 THEN 'x' WHEN b THEN s END
CASE s WHEN 'ab' THEN 1 ELSE 0 END
i > 3 AND (b OR s IS NULL)
NOT b
i <=> NULL
i IS DISTINCT FROM 3
i IN (1, 3, NULL)
i NOT IN (1, 3)
s IN ('ab', 'it''s')
i BETWEEN 2 AND 5
s LIKE 'a%'
s LIKE '%b'
s LIKE '%it%'
s LIKE 'a_'
s LIKE 'x\\_y\\%'
s LIKE 'x!_y!%' ESCAPE '!'
s LIKE 'x''_y%' ESCAPE ''''
s ILIKE 'X!_Y%' ESCAPE '!'
s ILIKE 'A%'
s RLIKE '^a.?\\w$'
s LIKE ANY ('a%', '%y%')
s LIKE ALL ('%t%', '%s')
upper(s)
lower(s)
length(s)
substring(s, 2, 3)
left(s, 1)
concat(s, '-', i)
s || '!'
trim(s)
trim(BOTH 'a' FROM s)
lpad(s, 5, '*')
replace(s, 'a', 'b')
reverse(s)
split(s, '_')[0]
regexp_replace(s, '[_%]', '\\\\')
instr(s, 'b')
md5(s)
sha2(s, 256)
hash(i, s)
xxhash64(d)
year(day)
month(at)
extract(DOW FROM day)
date_add(day, 3)
day + INTERVAL '1' MONTH
at + INTERVAL '90' MINUTE
datediff(day, DATE '2024-01-01')
date_trunc('hour', at)
trunc(day, 'MM')
date_format(at, 'yyyy/MM/dd HH:mm')
to_date('2024-02-29')
at > TIMESTAMP '2024-02-29 12:00:00'
at > TIMESTAMP '2024-02-29 12:00:00+05:00'
unix_timestamp(at)
day = DATE '2024-02-29'
CAST(day AS TIMESTAMP)
CAST(at AS DATE)
CAST(at AS STRING)
at - INTERVAL '1' DAY < at
CAST(i AS STRING)
CAST(d AS INT)
CAST(m AS DOUBLE)
CAST(i AS DECIMAL(5,2))
CAST(concat(i, '') AS INT)
CAST(b AS INT)
try_cast(s AS INT)
try_add(i, 2147483647)
try_divide(i, i - 3)
try_element_at(arr, 9)
try_cast(concat('2024-02-', i) AS DATE)
try_cast(d AS TINYINT) + CAST(i AS TINYINT)
try_subtract(-2147483647, i)
try_multiply(i, 1000000000)
try_mod(i, i - 3)
try_add(day, i)
try_element_at(map('k', i), s)
try_to_timestamp(s)
arrays_zip(arr, array(i))
st.x
st.y || 'z'
arr[0]
element_at(arr, 1)
size(arr)
array_contains(arr, 2)
array_contains(array(2, 3), i)
array('a', 'it''s', NULL, 'back\\slash')
array(1.5D, double('NaN'), -0.0D)
array(DATE '2024-02-29', NULL)
map('k', 1.50, 'l', NULL)[s]
named_struct('p', X'00', 'q', array(1Y)).q[0] + i
array(TIMESTAMP '2024-02-29 12:00:00')
transform(arr, x -> x + 1)
transform(arr, (x, at) -> x * at + i)
filter(arr, x -> x > 2 AND x < l)
exists(arr, x -> x = i)
forall(arr, x -> x > 0)
aggregate(arr, 0, (total, x) -> total + x)
aggregate(arr, CAST(0 AS BIGINT), (total, x) -> total + x, total -> total * i)
array_sort(arr)
array_sort(arr, (x, y) -> y - x)
zip_with(arr, array(1, 2), (x, y) -> coalesce(x, 0) + coalesce(y, i))
transform(array(arr, array(i)), x -> transform(x, y -> y + size(x) + i))
map_filter(map('k', i, 'm', 2), (key, x) -> x > 1 AND key = 'k')
transform_values(map('k', i), (key, x) -> concat(key, x))
transform_keys(map('k', i), (key, x) -> concat(key, size(arr)))
map_zip_with(map('k', i), map('k', 2), (key, x, y) -> x + y)
array(i, 2)
named_struct('p', i, 'q', s)
map('k', i)
st
arr
1Y + i
2S
3L
1.50
1.5D
CAST(1.5 AS FLOAT)
1e400D IS NULL
'it''s'
'tab\tnew\nline \\ back'
'null'
'ünï⚓'
TRUE
CAST(NULL AS INT)
DATE '0001-01-01'
X'1FfF'
INTERVAL '3' DAY
TIMESTAMP_NTZ '2024-02-29 12:00:00'
get_json_object('{"a": 1}', '$.a')
to_json(st)
stack(1, i)
country_id
retry_ + 1
'try_this(1)'
'x ESCAPE '''
""".strip().splitlines()
TYPED = """i INT, l BIGINT, d DOUBLE, f FLOAT, m DECIMAL(12,2), b BOOLEAN, s STRING, day DATE, at TIMESTAMP,
    st STRUCT<x: INT, y: STRING>, arr ARRAY<INT>, country_id INT, retry_ INT"""
NOON = dt.datetime(2024, 2, 29, 12, tzinfo=dt.timezone.utc)
TYPED_ROWS = [
    (n, 2**33 + n, n / 8 - 0.5, n / 4, Decimal(n) / 4, n % 2 == 0, text, dt.date(2024, 2, 27) + dt.timedelta(days=n),
     NOON + dt.timedelta(minutes=17 * (n - 3)), (n, text), [n, 2, 3], n, n)
    for n, text in enumerate(["ab", "it's", "x_y%", "", "aXb", " a a ", "abs", "null"], start=1)
] + [(None,) * 8 + (None, None, [0], None, None)]  # fmt: skip


def test_expressions_mean_the_same_when_written_back(
    engine: sw.Engine, spark: SparkSession, golden: Callable[[str, str], None]
) -> None:
    engine.create_table("typed", TYPED).insert(TYPED_ROWS)
    lines, kept = [], []
    for expression in EXPRESSIONS:
        try:
            plan = captured(engine, f"SELECT {expression} AS x FROM typed").plan
        except sw.SlackwaterError as error:
            lines.append(f"{expression}\n    refused: [{error.code}] {error.message.splitlines()[0]}")
            continue
        if isinstance(plan, Opaque):
            lines.append(f"{expression}\n    recomputed: [{plan.code}] {plan.reason.splitlines()[0]}")
        else:
            kept.append(expression)
            lines.append(expression)
    view = engine.create_view("kept", "SELECT " + ", ".join(f"{e} AS x{n}" for n, e in enumerate(kept)) + " FROM typed")
    assert not isinstance(view.plan, Opaque)
    assert view.verify(), str(view.verify())
    assert {"country_id", "retry_ + 1", "s LIKE 'a_'", "i IN (1, 3, NULL)"} <= set(kept)
    assert "arrays_zip(arr, array(i))" not in kept
    if spark.version.startswith(GOLDEN_SPARK):
        golden("capture/expressions.txt", "\n".join(lines))


ALONE = {
    "SELECT s FROM typed WHERE s ILIKE 'X!_Y%' ESCAPE '!'": True,
    "SELECT i, split_part('a,b,c', ',', i) AS x FROM typed": False,
    "SELECT s, i FROM typed WHERE array_contains(array('a\nb', 'it''s'), s)": True,
    "SELECT i, array('a\nb') AS x FROM typed": True,
    "SELECT i, n FROM typed LATERAL VIEW explode(sequence(1, 3)) x AS n": True,
    "SELECT i FROM typed WHERE array_contains(sequence(1, 5), i)": True,
    "SELECT map_from_arrays(sequence(1, 20), transform(sequence(1, 20), x -> x * x))[i] AS x FROM typed": True,
    "SELECT i, get(arr, 9) AS x, get(arr, i - 1) AS y FROM typed": True,
    "SELECT b, try_cast(s AS INT) AS n, count(*) AS c FROM typed GROUP BY ROLLUP (b, try_cast(s AS INT))": True,
    "SELECT i FROM typed WHERE st = named_struct('a b', 3, 'it''s', 'x_y%')": False,
    "SELECT i, hex(concat(s, CAST(X'FF' AS STRING))) AS x FROM typed": False,
    "SELECT i, max(try_divide(l, i - 3)) OVER (PARTITION BY b) AS x FROM typed": True,
    "SELECT i FROM typed WHERE i = (SELECT max(try_cast(s AS INT)) FROM typed) OR s LIKE '#_%' ESCAPE '#'": True,
    "SELECT i, 'two\nlines' AS x, try_to_number('7', '9') AS y FROM typed": True,
}
"""Queries with one thing each that Spark's JSON does not say, and whether they are followed: alone, because the others
would see to it that it is found out."""


@pytest.mark.slow
def test_what_json_does_not_say_is_found_out_for_each_query_alone(engine: sw.Engine) -> None:
    table = engine.create_table("typed", TYPED)
    table.insert(TYPED_ROWS[:5])
    views = {sql: engine.create_view(f"v{n}", sql) for n, sql in enumerate(ALONE)}
    table.insert([*TYPED_ROWS[5:], (21, *TYPED_ROWS[0][1:6], "a\nb", *TYPED_ROWS[0][7:])])
    wrong = []
    for sql, view in views.items():
        view.refresh()
        if not view.verify() or isinstance(view.plan, Opaque) is ALONE[sql]:
            wrong.append(f"{sql}\n{view.plan}\n{view.verify()}")
    assert not wrong, "\n\n".join(wrong)


def test_an_array_that_is_null_has_no_size_under_any_settings(engine: sw.Engine, spark: SparkSession) -> None:
    with session_with(spark, ansi__enabled="false"):
        table = engine.create_table("lists", "id INT, x ARRAY<INT>")
        table.insert([(1, [1, 2]), (2, None)])
        view = engine.create_view("sizes", "SELECT id, array_size(x) AS n, size(x) AS m FROM lists")
    table.insert([(3, None)])
    view.refresh()
    assert sorted(map(tuple, view.result().collect())) == [(1, 2, 2), (2, None, -1), (3, None, -1)]

"""Functions of one column, by its type: those that Spark and DuckDB answer alike, and those for Spark alone."""

from __future__ import annotations

from tests.fuzz.sql import ONLY_SPARK, OWN, Column
from tests.fuzz.tables import (
    BYTES,
    CLOCK,
    DAY,
    FLAG,
    FOLDED,
    INT,
    LIST,
    LONG,
    MAP,
    MOMENT,
    MONEY,
    PAIR,
    QUARTERS,
    REAL,
    SPAN,
    TEXT,
)  # fmt: skip

_ALIKE: dict[str, list[tuple[str, str]]] = {
    INT: [("{} + 1", INT), ("{} * 2", INT), ("abs({})", INT), ("coalesce({}, -5)", INT), ("nullif({}, 1)", INT),
          ("CASE WHEN {0} > 0 THEN 1 WHEN {0} IS NULL THEN 7 END", INT), ("greatest({}, 1)", INT),
          ("least({}, 2, 0)", INT), ("{} / 2", ""), ("ifnull({}, 3) % 2", INT), ("CAST({} AS STRING)", TEXT)],
    TEXT: [("upper({})", TEXT), ("{} || '-x'", TEXT), ("coalesce({}, 'none')", TEXT), ("substr({}, 1, 1)", TEXT),
           ("lpad({}, 3, '*')", TEXT), ("trim({})", TEXT), ("length({})", INT), ("reverse({})", TEXT),
           ("concat_ws('-', {0}, 'y', {0})", TEXT), ("split_part({}, 't', 1)", TEXT), ("replace({}, 'a', 'bb')", TEXT),
           ("repeat({}, 2)", TEXT), ("instr({}, 's')", INT), ("md5({})", TEXT), ("left({}, 1)", TEXT)],
    MONEY: [("{} + 1.25", ""), ("coalesce({}, 0.00)", ""), ("-{}", ""), ("floor({})", ""), ("ceil({})", "")],
    REAL: [("{} * 2", REAL), ("coalesce({}, CAST('4.5' AS DOUBLE))", REAL)],
    DAY: [("coalesce({}, DATE '2000-01-01')", DAY), ("year({})", INT), ("month({}) * 100 + day({})", INT)],
    FLAG: [("NOT {}", FLAG), ("coalesce({}, FALSE)", FLAG), ("CASE WHEN {} THEN 'y' ELSE 'n' END", TEXT)],
    LONG: [("{} + 1", LONG), ("{} % 3", LONG)],
    LIST: [("{}", "")],
    QUARTERS: [("{} * 2", QUARTERS), ("{} + CAST('0.5' AS DOUBLE)", QUARTERS), ("floor({})", ""), ("ceil({})", ""),
               ("abs({})", QUARTERS), ("coalesce({}, CAST('0.75' AS DOUBLE))", QUARTERS)],
    MOMENT: [("{}", MOMENT)],
    CLOCK: [("{} + INTERVAL '90' MINUTE", CLOCK), ("hour({})", INT), ("minute({}) + day({})", INT),
            ("coalesce({}, CAST('2024-03-10 00:00:00' AS TIMESTAMP_NTZ))", CLOCK), ("CAST({} AS DATE)", DAY)],
    BYTES: [("hex({})", TEXT), ("octet_length({})", INT), ("coalesce({}, unhex('00'))", BYTES)],
    SPAN: [("{}", SPAN)],
    PAIR: [("{}", PAIR), ("{}.y || '!'", TEXT)],
    FOLDED: [("{}", FOLDED)],
    MAP: [("{}", MAP)],
}  # fmt: skip

_ONLY_SPARK: dict[str, list[tuple[str, str]]] = {
    INT: [("try_add({}, 2147483600)", ""), ("transform(array({0}, 2), x -> x + {0})", ""), ("pmod({}, 3)", INT),
          ("try_divide(1, {})", ""), ("named_struct('x', {}, 'y', 'a')", PAIR), ("map('a', {})", MAP),
          ("to_json(named_struct('a', {}))", TEXT), ("date_add(DATE '2024-02-28', {} % 999)", DAY),
          ("make_dt_interval({})", ""), ("CAST(make_ym_interval(0, {} % 99) AS STRING)", TEXT),
          ("DATE '2024-01-31' + make_ym_interval(0, {} % 99)", DAY),
          ("bround({} / 4, 1)", ""), (OWN + "step({})", INT), (OWN + "twice({})", LONG)],
    TEXT: [("try_cast({} AS INT)", INT), ("array_contains(array('a', 'it''s'), {})", FLAG), ("initcap({})", TEXT),
           ("trim(TRAILING 's' FROM {})", TEXT), ("{} COLLATE UTF8_LCASE", FOLDED), ("{} RLIKE '^[ab]'", FLAG),
           ("to_json(map('k', {}))", TEXT), ("split({}, 't')", ""), ("levenshtein({}, 'ab')", INT),
           ("encode({}, 'UTF-8')", BYTES), (OWN + "shout({})", TEXT)],
    MONEY: [("round({}, 1)", ""), ("CAST({} AS INT)", ""), ("CAST({} AS STRING)", TEXT)],
    DAY: [("{} + INTERVAL '1' MONTH", DAY), ("date_sub({}, 3)", DAY), ("datediff({}, DATE '2024-01-01')", INT),
          ("to_date(date_format({}, 'yyyyMMdd'), 'yyyyMMdd')", DAY), ("trunc({}, 'MM')", DAY), ("last_day({})", DAY),
          ("CAST({} AS TIMESTAMP_NTZ)", CLOCK), ("{} - DATE '2024-02-28'", ""),
          ("months_between({}, DATE '2024-01-31')", "")],
    LIST: [("transform({}, (x, at) -> concat(x, at))", ""), ("filter({}, x -> x IS NOT NULL)", ""),
           ("exists({0}, x -> x > get({0}, 0))", FLAG), ("size({})", INT), ("sort_array({})", ""),
           ("aggregate({}, 0, (s, x) -> s + coalesce(x, 1))", INT), ("try_element_at({}, -1)", INT)],
    QUARTERS: [("CAST({} AS DECIMAL(12,2))", ""), ("round({}, 1)", QUARTERS)],
    MOMENT: [("date_trunc('HOUR', {})", MOMENT), ("{} + INTERVAL '1' DAY", MOMENT), ("hour({})", INT),
             ("CAST({} AS TIMESTAMP_NTZ)", CLOCK), ("{} - TIMESTAMP '2024-01-01 00:00:00Z'", SPAN),
             ("date_format({}, 'yyyy-MM-dd HH')", TEXT), ("CAST({} AS DATE)", DAY), ("unix_micros({})", LONG)],
    CLOCK: [("{} - CAST('2024-03-10 00:00:00' AS TIMESTAMP_NTZ)", SPAN), ("{} + INTERVAL '1' MONTH", CLOCK),
            ("date_trunc('DAY', {})", ""), ("CAST({} AS TIMESTAMP)", MOMENT)],
    BYTES: [("base64({})", TEXT), ("{} || X'01'", BYTES), ("md5({})", TEXT)],
    SPAN: [("{} * 2", SPAN), ("{} + INTERVAL '26' HOUR", SPAN), ("-{}", SPAN), ("extract(DAY FROM {})", INT),
           ("DATE '2024-02-28' + {}", "")],
    PAIR: [("to_json({})", TEXT), ("named_struct('k', {0}.x, 'v', {0})", ""), ("struct({0}.x, {0}.y).x", INT)],
    FOLDED: [("upper({})", FOLDED), ("length({})", INT), ("{} COLLATE UTF8_BINARY", TEXT), ("{} LIKE 'a%'", FLAG)],
    MAP: [("{}['a']", INT), ("size({})", INT), ("map_contains_key({}, 'b')", FLAG),
          ("map_filter({}, (k, v) -> v > 1)", MAP), ("sort_array(map_keys({}))", ""), ("to_json({})", "")],
}  # fmt: skip

MARKED = (MOMENT, FOLDED, MAP)
"""Types of which DuckDB has no like, or which leave Spark as something else: what is made of them is Spark's alone."""


def alike(dtype: str, column: str) -> list[Column]:
    """What both engines answer alike; a plain column of some types."""
    return [_column(text, column, made, dtype) for text, made in _ALIKE[dtype]]


def only_spark(dtype: str, column: str) -> list[Column]:
    """What only Spark is asked."""
    found = [_column(f"{text} {ONLY_SPARK}", column, made, dtype) for text, made in _ONLY_SPARK.get(dtype, [])]
    return found or alike(dtype, column)


def _column(text: str, column: str, made: str, dtype: str) -> Column:
    kind = "float" if REAL in (made, dtype) else "exact"
    return Column(text.replace("{0}", column).replace("{}", column), kind, made)

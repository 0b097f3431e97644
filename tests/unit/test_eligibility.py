"""The way of each operator follows from the algebra it declares and from what is asked of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import call, col, lit
from slackwater.algebra.first_rows import First
from slackwater.algebra.nodes import (
    Aggregate,
    Field,
    Filter,
    Item,
    Join,
    Linearity,
    Opaque,
    Project,
    Rel,
    Scan,
    Schema,
    SortKey,
    TopK,
    Union,
    pass_through,
)
from slackwater.delta.reasons import REASONS, Way
from slackwater.eligibility import Eligibility, eligibility, refused, require_incremental
from slackwater.errors import QueryRefused

DOCS = Path(__file__).parents[2] / "docs" / "reasons.md"


def scan(table: str, *columns: str, dtype: str = "int") -> Scan:
    return Scan(table, tuple(Field(f"{table}_{c}", dtype) for c in columns), tuple(range(len(columns))))


def total(child: Rel, func: str, key: str | None, value: str, dtype: str = "int", out: str = "bigint") -> Aggregate:
    groups = (Item(key, col(key, "int")),) if key else ()
    return Aggregate(child, groups, (AggCall("x", func, (col(value, dtype),), out),))


def top(child: Rel) -> TopK:
    return TopK(child, (SortKey(col(child.names[0], "int"), False, True),), 10)


T, U = scan("t", "a", "b"), scan("u", "a", "b")
SOME = Filter(T, call(">", col("t_a", "int"), lit(0), dtype="boolean"))
JOIN = Join(SOME, U, call("=", col("t_a", "int"), col("u_a", "int"), dtype="boolean"))
FLOATS = scan("f", "a", "b", dtype="double")


@dataclass(frozen=True, slots=True)
class Invented(Rel):
    """An operator that nobody has heard of, but for what it declares."""

    child: Rel
    partition: tuple[str, ...] = ()
    linearity: ClassVar[Linearity] = Linearity.KEYED
    child_names: ClassVar[tuple[str, ...]] = ("child",)

    @property
    def schema(self) -> Schema:
        return self.child.schema


@dataclass(frozen=True, slots=True)
class Undeclared(Invented):
    """Says nothing of its algebra."""

    linearity: ClassVar[Linearity] = Linearity.OPAQUE


@dataclass(frozen=True, slots=True)
class Constant(Rel):
    """Rows that stand in the query."""

    linearity: ClassVar[Linearity] = Linearity.LEAF

    @property
    def schema(self) -> Schema:
        return T.schema


def codes(plan: Rel) -> list[str]:
    return [o.code for o in eligibility(plan).operators]


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (T, ["TABLE_CHANGES"]),
        (Project(JOIN, pass_through(JOIN.schema)), ["LINEAR", "BILINEAR", "LINEAR", "TABLE_CHANGES", "TABLE_CHANGES"]),
        (Union((T, U), T.schema), ["LINEAR", "TABLE_CHANGES", "TABLE_CHANGES"]),
        (total(SOME, "sum", "t_a", "t_b"), ["PARTIALS_ADD", "LINEAR", "TABLE_CHANGES"]),
        (total(SOME, "max", None, "t_b", out="int"), ["PARTIALS_MERGE", "LINEAR", "TABLE_CHANGES"]),
        (total(T, "median", "t_a", "t_b", out="int"), ["GROUPS_REDONE", "TABLE_CHANGES"]),
        (top(total(JOIN, "count", "t_a", "u_b")),
         ["ORDER_REDONE", "PARTIALS_ADD", "BILINEAR", "LINEAR", "TABLE_CHANGES", "TABLE_CHANGES"]),
        # The rows of a join are kept where an ordering above reads them again.
        (top(JOIN), ["ORDER_REDONE", "BILINEAR", "LINEAR", "TABLE_CHANGES", "TABLE_CHANGES"]),
        (top(First(SOME, (), 2, 4)), ["ORDER_REDONE", "FIRST_KEPT", "LINEAR", "TABLE_CHANGES"]),
        (Invented(SOME, ("t_a",)), ["KEYS_REDONE", "LINEAR", "TABLE_CHANGES"]),
        (Union((T, Constant()), T.schema), ["LINEAR", "TABLE_CHANGES", "CONSTANT"]),
        # A floating-point sum: its new row is compared with the last result, not with a sum added up again.
        (total(FLOATS, "sum", None, "f_b", "double", "double"), ["PARTIALS_MERGE", "TABLE_CHANGES"]),
    ],
)  # fmt: skip
def test_incremental(plan: Rel, expected: list[str]) -> None:
    found = eligibility(plan)
    assert (found.verdict, codes(plan)) == ("incremental", expected)
    assert found
    require_incremental(found, "v")


@pytest.mark.parametrize(
    ("plan", "verdict", "expected"),
    [
        (top(SOME), "recomputed", ["ORDER_READS_ALL", "INPUT_RECOMPUTED", "FULL_OUTPUT"]),
        (total(SOME, "median", None, "t_b", out="int"), "recomputed", ["NO_KEYS", "INPUT_RECOMPUTED", "FULL_OUTPUT"]),
        (Invented(total(T, "count", "t_a", "t_b")), "partly incremental", ["NO_KEYS", "PARTIALS_ADD", "TABLE_CHANGES"]),
        # Pairs of two results over everything: the join follows them, but nothing follows the tables.
        (
            Join(total(T, "median", None, "t_b", out="int"), Project(total(U, "median", None, "u_b", out="int"),
                 (Item("y", col("x", "int")),)), None),
            "recomputed",
            ["BILINEAR", "NO_KEYS", "FULL_OUTPUT", "LINEAR", "NO_KEYS", "FULL_OUTPUT"],
        ),
        (
            Join(total(T, "median", None, "t_b", out="int"), U, None),
            "partly incremental",
            ["BILINEAR", "NO_KEYS", "FULL_OUTPUT", "TABLE_CHANGES"],
        ),
        (Undeclared(T), "recomputed", ["NO_RULE", "FULL_OUTPUT"]),
        (
            total(total(FLOATS, "sum", None, "f_b", "double", "double"), "max", None, "x", "double", "double"),
            "partly incremental",
            ["FLOATING_INPUT", "PARTIALS_MERGE", "TABLE_CHANGES"],
        ),
        (
            Join(T, total(FLOATS, "sum", None, "f_b", "double", "double"), None),
            "partly incremental",
            ["FULL_OUTPUT", "FULL_OUTPUT", "PARTIALS_MERGE", "TABLE_CHANGES"],
        ),
        (Opaque("SELECT 1", ("t",), T.schema, "OPERATOR_UNSUPPORTED", "X: no"), "recomputed", ["OPERATOR_UNSUPPORTED"]),
        (Opaque("SELECT 1", ("t",), T.schema, "NEW_CODE", "X: no"), "recomputed", ["OPERATOR_UNSUPPORTED"]),
    ],
)  # fmt: skip
def test_recomputed(plan: Rel, verdict: str, expected: list[str]) -> None:
    found = eligibility(plan)
    assert (found.verdict, codes(plan)) == (verdict, expected)
    assert not found
    with pytest.raises(QueryRefused) as caught:
        require_incremental(found, "v")
    assert caught.value.code == "QUERY_NOT_INCREMENTAL"
    assert caught.value.details["eligibility"] == found.to_json()
    assert next(o.code for o in found.recomputed) in caught.value.message


def test_the_report_prints_as_a_tree_and_as_json() -> None:
    found = eligibility(total(SOME, "max", "t_a", "t_b", out="int"))
    assert str(found).splitlines() == [
        "incremental",
        "  Aggregate by [t_a] of [max(`t_b`) AS x]  · merge [PARTIALS_MERGE] max",
        "    Filter (`t_a` > 0)  · delta [LINEAR]",
        "      Scan t [t_a:int@0, t_b:int@1]  · delta [TABLE_CHANGES]",
        "",
        f"PARTIALS_MERGE: {REASONS['PARTIALS_MERGE'].text}",
        f"LINEAR: {REASONS['LINEAR'].text}",
        f"TABLE_CHANGES: {REASONS['TABLE_CHANGES'].text}",
    ]
    document = found.to_json()
    assert (document["verdict"], document["incremental"], document["refusal"]) == ("incremental", True, None)
    assert document["operators"]["way"] == "merge"
    assert document["operators"]["inputs"][0]["inputs"][0]["code"] == "TABLE_CHANGES"
    assert "<td>merge</td>" in found._repr_html_()


@pytest.mark.parametrize("code", ["OPERATOR_UNSUPPORTED", "EXPRESSION_UNSUPPORTED"])
def test_the_report_says_that_one_expression_makes_the_whole_query_recomputed(code: str) -> None:
    found = eligibility(Opaque("SELECT 1", ("t",), T.schema, code, "ArraysZip: no"))
    first, line, _, why = str(found).splitlines()
    assert (first, line) == ("recomputed", f"  Whole query  · recompute [{code}] ArraysZip: no")
    assert "all of it is recomputed" in why


def test_html_is_escaped_and_long_lines_are_cut() -> None:
    found = eligibility(Filter(scan("<b>", *"abcdefghijklmnopqrstuvwxyz"), lit(True)))
    assert "<b>" not in found._repr_html_()
    assert max(map(len, str(found).splitlines())) < 200


def test_a_refused_query_is_a_report_too() -> None:
    found: Eligibility = refused(QueryRefused("QUERY_NONDETERMINISTIC", "now() moves", "write the date"))
    assert (found.verdict, bool(found), found.codes, found.operators) == (
        "refused",
        False,
        ("QUERY_NONDETERMINISTIC",),
        (),
    )
    assert str(found) == "refused: [QUERY_NONDETERMINISTIC] now() moves\n  → write the date"
    assert found.to_json()["refusal"]["code"] == "QUERY_NONDETERMINISTIC"
    assert "now() moves" in found._repr_html_()


def test_docs_and_code_name_the_same_reasons() -> None:
    text = DOCS.read_text(encoding="utf-8").partition("## Reasons")[2]
    documented = re.findall(r"^\| `(\w+)` \| ([a-z ]+) \| (.+) \|$", text, re.MULTILINE)
    assert documented == [(code, reason.way.value, reason.text) for code, reason in REASONS.items()]
    assert {way.value for way in Way} == {way for _, way, _ in documented}

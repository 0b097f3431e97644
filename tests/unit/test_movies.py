"""The movie database and its queries: the shape of IMDB, skewed and correlated, and every query finds something."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import duckdb
import numpy as np
import pytest

from slackwater.bench.movie_data import COMPLETE, HELD_BACK, KEYS, generate, tables
from slackwater.bench.movie_queries import JOINS, MOVIES, TEXTS
from slackwater.bench.movie_words import COUNTRY_CODES


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    place: Path = tmp_path_factory.mktemp("movies")
    generate(place, 0.1)
    found = duckdb.connect()
    for name in KEYS:
        found.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{place / name}.parquet')")
    return found


def test_there_are_the_21_tables_and_they_grow_with_the_size() -> None:
    small, large = tables(0.005), tables(0.02)
    assert set(small) == set(KEYS) == {*COMPLETE, *HELD_BACK}
    assert len(small) == 21
    for name in HELD_BACK:
        assert 2 <= len(large[name]["id"]) / len(small[name]["id"]) <= 8, name
    assert all(len(small[name]["id"]) == len(large[name]["id"]) < 10_000 for name in COMPLETE)


def test_a_seed_always_gives_the_same_rows() -> None:
    one, two, other = tables(0.002, 1), tables(0.002, 1), tables(0.002, 2)
    for name in KEYS:
        for column, values in one[name].items():
            assert list(values) == list(two[name][column]), (name, column)
    assert list(one["cast_info"]["person_id"]) != list(other["cast_info"]["person_id"])


def test_every_reference_leads_somewhere(database: duckdb.DuckDBPyConnection) -> None:
    for name, (table, condition) in JOINS.items():
        if not condition:
            continue
        left, right = condition.split(" = ")
        other = next(n for n in (left.split(".")[0], right.split(".")[0]) if n != name)
        source = JOINS[other][0]
        pointing, to = (right, left) if left.endswith(".id") else (left, right)
        owner, target = pointing.split(".")[0], to.split(".")[0]
        names = {name: table, other: source}
        lost = database.execute(
            f"SELECT count(*) FROM {names[owner]} {owner} ANTI JOIN {names[target]} {target} ON {pointing} = {to}"
            f" WHERE {pointing} IS NOT NULL"
        ).fetchone()
        assert lost == (0,), condition


def test_a_few_titles_have_most_of_everything() -> None:
    made = tables(0.1)
    for name, least in (("cast_info", 0.05), ("movie_keyword", 0.05), ("movie_companies", 0.05)):
        each = np.sort(np.bincount(made[name]["movie_id"]))[::-1]
        assert each[: len(each) // 100].sum() > least * each.sum(), name
        assert each[0] > 10 * each.mean()


def test_a_title_and_its_companies_are_of_one_country(database: duckdb.DuckDBPyConnection) -> None:
    """Independent columns would meet in some 23% of the rows."""
    pairs = database.execute(
        "SELECT mi.info, cn.country_code FROM movie_info mi, movie_companies mc, company_name cn"
        " WHERE mi.info_type_id = 8 AND mi.movie_id = mc.movie_id AND cn.id = mc.company_id AND country_code NOT NULL"
    ).fetchall()
    from slackwater.bench.movie_words import COUNTRIES

    at_home = sum(COUNTRIES.index(country) == COUNTRY_CODES.index(code) for country, code in pairs)
    assert at_home > 0.8 * len(pairs)


def test_there_are_33_queries_with_3_to_16_joins() -> None:
    assert list(MOVIES) == list(range(1, 34))
    assert set(Counter(query.joins for query in MOVIES.values())) == set(range(3, 17))
    assert len(set(TEXTS.values())) == 33
    for query in MOVIES.values():
        names = query.tables.split()
        for at, name in enumerate(names):
            read = {part.split(".")[0] for part in JOINS[name][1].split(" = ") if part}
            assert read <= set(names[: at + 1]), f"{name} is joined with what is not there yet"


@pytest.mark.parametrize("number", MOVIES)
def test_every_query_finds_something(database: duckdb.DuckDBPyConnection, number: int) -> None:
    (row,) = database.execute(TEXTS[number]).fetchall()
    assert row[-1] > 0
    assert None not in row

"""A movie database in the shape of IMDB's 21 tables: made up, skewed, correlated, of any size, the same for a seed.

Real data is hard on a planner in two ways, and both are here on purpose.

* Skew: a few titles have hundreds of cast members and dozens of keywords, most have a handful. People, keywords and
  companies are picked by Zipf's law.
* Correlation across joins: a title's country decides most of its companies, languages and people, its genre decides
  keywords and rating, its kind the size of its cast. Estimates that multiply selectivities are far off.

At size 1 there are 100,000 titles and some three million rows in all; IMDB has 25 times as many titles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from slackwater.bench.movie_words import (
    CAST_STATES,
    COMPANY_TYPES,
    COUNTRIES,
    COUNTRY_CODES,
    COUNTRY_SHARES,
    GENRE_SHARES,
    GENRES,
    INFO_TYPES,
    KEYWORDS,
    KIND_SHARES,
    KINDS,
    LANGUAGES,
    LINKS,
    ROLE_SHARES,
    ROLES,
)  # fmt: skip

TITLES = 100_000
"""Titles at size 1."""

NAMES = ("aka_name", "aka_title", "cast_info", "char_name", "comp_cast_type", "company_name", "company_type",
         "complete_cast", "info_type", "keyword", "kind_type", "link_type", "movie_companies", "movie_info",
         "movie_info_idx", "movie_keyword", "movie_link", "name", "person_info", "role_type", "title")  # fmt: skip
KEYS: dict[str, tuple[str, ...]] = dict.fromkeys(NAMES, ("id",))
"""All 21 tables have a number of their own for each row."""

COMPLETE = ("comp_cast_type", "company_type", "info_type", "kind_type", "link_type", "role_type")
"""The small tables, with fewer than 10,000 rows even in IMDB: nothing more will come."""

HELD_BACK = tuple(name for name in KEYS if name not in COMPLETE)

Columns = dict[str, Any]


def generate(directory: Path, size: float, seed: int = 7) -> None:
    """Write the 21 tables as Parquet, unless they are there."""
    if (directory / "title.parquet").exists():
        return
    directory.mkdir(parents=True, exist_ok=True)
    for name, columns in tables(size, seed).items():
        pq.write_table(pa.table(columns), directory / f"{name}.parquet")


def tables(size: float, seed: int = 7) -> dict[str, Columns]:
    """The columns of all tables."""
    world = _world(max(round(TITLES * size), 200), seed)
    return {name: make(world) for name, make in _TABLES.items()}


@dataclass(frozen=True, slots=True)
class _World:
    """What ties the tables together: for each title its country, genre, kind, year and popularity.

    Attributes:
        seed: where all random numbers come from.
        person_country: for each person.
        company_country: for each company.
        keywords: how many there are.
    """

    seed: int
    country: np.ndarray
    genre: np.ndarray
    kind: np.ndarray
    year: np.ndarray
    popularity: np.ndarray
    person_country: np.ndarray
    company_country: np.ndarray
    keywords: int

    @property
    def titles(self) -> int:
        return len(self.country)

    @property
    def people(self) -> int:
        return len(self.person_country)

    @property
    def companies(self) -> int:
        return len(self.company_country)

    def rng(self, stream: int) -> np.random.Generator:
        """A stream of random numbers of its own for each table, so that one can change without the others."""
        return np.random.default_rng((self.seed, stream))

    def spread(self, rng: np.random.Generator, mean: float, most: int = 400) -> np.ndarray:
        """Titles, each as often as its popularity says."""
        times = np.minimum(rng.poisson(mean * self.popularity), most)
        return np.repeat(np.arange(self.titles), times)

    def matching(self, rng: np.random.Generator, titles: np.ndarray, countries: np.ndarray, share: float) -> np.ndarray:
        """For each title somebody, or some company, of its own country mostly; the first ones are picked most often."""
        found = _zipf(rng, len(countries), len(titles))
        at_home = rng.random(len(titles)) < share
        for country in range(len(COUNTRIES)):
            local = np.flatnonzero(countries == country)
            wanted = np.flatnonzero(at_home & (self.country[titles] == country))
            if len(local):
                found[wanted] = local[_zipf(rng, len(local), len(wanted))]
        return found


def _world(titles: int, seed: int) -> _World:
    rng = np.random.default_rng((seed, 0))
    country, genre, kind = (_pick(rng, shares, titles) for shares in (COUNTRY_SHARES, GENRE_SHARES, KIND_SHARES))
    year = 2015 - np.minimum(rng.geometric(0.055, titles), 110)
    liked = np.where(kind == 0, 2.0, 0.7) * np.where(year > 1990, 1.5, 0.7)
    popularity = liked * (titles / (rng.permutation(titles) + 1)) ** 0.55
    people, companies = (_pick(rng, COUNTRY_SHARES, n) for n in (round(1.7 * titles), max(titles // 10, 40)))
    return _World(seed, country, genre, kind, year, popularity / popularity.mean(), people, companies,
                  max(titles // 20, 2 * len(KEYWORDS)))  # fmt: skip


def _pick(rng: np.random.Generator, shares: Sequence[float], count: int) -> np.ndarray:
    return rng.choice(len(shares), size=count, p=np.array(shares) / sum(shares))


def _zipf(rng: np.random.Generator, things: int, count: int) -> np.ndarray:
    """Numbers below `things`, the small ones far more often."""
    return np.minimum((things * rng.random(count) ** 2.5).astype(np.int64), things - 1)


def _names(words: Sequence[str]) -> np.ndarray:
    return np.array(words, dtype=object)


def _ids(count: int) -> np.ndarray:
    return np.arange(1, count + 1)


def _listed(column: str, values: Sequence[str]) -> Callable[[_World], Columns]:
    return lambda _: {"id": _ids(len(values)), column: _names(values)}


def _some(rng: np.random.Generator, values: np.ndarray, share: float) -> pa.Array:
    """The values, NULL but for a share of them."""
    return pa.array(values.tolist(), mask=rng.random(len(values)) >= share)


# --- things ----------------------------------------------------------------------------------------------------------


def _title(w: _World) -> Columns:
    rng, n = w.rng(1), w.titles
    words = _names(("The", "A", "Last", "Lost", "Dark", "Great", "Little", "Red", "Money", "Champion"))
    first, second = words[_zipf(rng, len(words), n)], words[_zipf(rng, len(words), n)]
    names = [f"{a} {b} {i}" for a, b, i in zip(first, second, _ids(n), strict=True)]
    episode = w.kind == 6
    return {
        "id": _ids(n), "title": names, "kind_id": w.kind + 1,
        "production_year": _some(rng, w.year, 0.97),
        "season_nr": pa.array(rng.integers(1, 12, n).tolist(), mask=~episode),
        "episode_nr": pa.array(rng.integers(1, 100, n).tolist(), mask=~episode),
    }  # fmt: skip


def _name(w: _World) -> Columns:
    rng, n = w.rng(2), w.people
    letters = _names(tuple("ABCDEFGHJKLMNPRSTVWXYZ"))[_zipf(rng, 22, n)]
    return {
        "id": _ids(n), "name": [f"{a}{i % 97:02d}, {COUNTRIES[c][:3]} {i}" for a, i, c in
                                zip(letters, _ids(n), w.person_country, strict=True)],
        "gender": _some(rng, _names(("m", "f"))[rng.integers(0, 2, n)], 0.8),
        "name_pcode_cf": [f"{a}{i % 97:02d}" for a, i in zip(letters, _ids(n), strict=True)],
    }  # fmt: skip


def _char_name(w: _World) -> Columns:
    count = round(0.9 * w.titles)
    return {"id": _ids(count), "name": [f"{'Queen' if i % 50 == 0 else 'Character'} {i}" for i in _ids(count)]}


def _company_name(w: _World) -> Columns:
    codes = _names(COUNTRY_CODES)[w.company_country]
    kinds = ("Film", "Pictures", "Warner", "Productions", "Television")
    names = [f"{kinds[i % 5]} {i}" for i in _ids(w.companies)]
    return {"id": _ids(w.companies), "name": names, "country_code": _some(w.rng(3), codes, 0.95)}


def _keyword(w: _World) -> Columns:
    made = [*KEYWORDS, *(f"keyword-{i}" for i in range(len(KEYWORDS) + 1, w.keywords + 1))]
    return {"id": _ids(w.keywords), "keyword": made}


def _info_type(_: _World) -> Columns:
    return {"id": _ids(113), "info": [INFO_TYPES.get(i, f"info {i}") for i in range(1, 114)]}


# --- what ties them together -----------------------------------------------------------------------------------------


def _cast_info(w: _World) -> Columns:
    rng = w.rng(4)
    movie = w.spread(rng, 10)
    n = len(movie)
    role = _pick(rng, ROLE_SHARES, n)
    notes = _names(
        ("(voice)", "(uncredited)", "(producer)", "(executive producer)", "(written by)", "(archive footage)")
    )
    animated = w.genre[movie] == GENRES.index("Animation")
    note = np.where(animated & (rng.random(n) < 0.8), 0, _zipf(rng, len(notes), n))
    return {
        "id": _ids(n), "person_id": w.matching(rng, movie, w.person_country, 0.85) + 1, "movie_id": movie + 1,
        "person_role_id": pa.array((_zipf(rng, round(0.9 * w.titles), n) + 1).tolist(), mask=role > 1),
        "note": _some(rng, notes[note], 0.4), "nr_order": rng.integers(1, 60, n), "role_id": role + 1,
    }  # fmt: skip


def _movie_info(w: _World) -> Columns:
    """Genre, language and country for nearly every title, release dates and budgets for the popular ones."""
    rng = w.rng(5)
    every = np.arange(w.titles)
    parts: list[tuple[np.ndarray, int, list[str]]] = []

    def add(movies: np.ndarray, kind: int, texts: np.ndarray) -> None:
        parts.append((movies, kind, texts.tolist()))

    add(every, 3, _names(GENRES)[w.genre])
    second = every[rng.random(w.titles) < 0.4]
    add(second, 3, _names(GENRES)[_pick(rng, GENRE_SHARES, len(second))])
    add(every, 4, _names(LANGUAGES)[w.country])
    add(every, 8, _names(COUNTRIES)[w.country])
    add(every[::2], 1, _names([str(60 + i % 90) for i in every[::2]]))
    released = w.spread(rng, 2.0, 60)
    where = np.where(rng.random(len(released)) < 0.6, w.country[released], rng.integers(0, 10, len(released)))
    add(released, 16, _names([f"{COUNTRIES[c]}:{y}" for c, y in zip(where, w.year[released], strict=True)]))
    rich = every[w.popularity > 1.5]
    add(rich, 105, _names([f"${round(p * 1e6):,}" for p in w.popularity[rich]]))
    movie = np.concatenate([m for m, _, _ in parts])
    kinds = np.concatenate([np.full(len(m), k) for m, k, _ in parts])
    texts = [text for _, _, some in parts for text in some]
    note = _some(rng, _names(("(internet)", "(re-release)", "(festival)"))[_zipf(rng, 3, len(movie))], 0.2)
    return {"id": _ids(len(movie)), "movie_id": movie + 1, "info_type_id": kinds, "info": texts, "note": note}


def _movie_info_idx(w: _World) -> Columns:
    """Ratings and votes of what people have heard of; a genre has its own level."""
    rng = w.rng(6)
    known = np.flatnonzero(w.popularity > 0.6)
    rating = np.clip(6.0 + (w.genre[known] % 5 - 2) * 0.7 + rng.normal(0, 1.0, len(known)), 1, 10)
    votes = (w.popularity[known] ** 2 * 1000).astype(int)
    best = known[np.argsort(-votes)[: max(len(known) // 100, 5)]]
    movie = np.concatenate([known, known, best])
    kinds = np.concatenate([np.full(len(known), 101), np.full(len(known), 100), np.full(len(best), 112)])
    texts = [f"{r:.1f}" for r in rating] + [str(v) for v in votes] + [str(i + 1) for i in range(len(best))]
    return {"id": _ids(len(movie)), "movie_id": movie + 1, "info_type_id": kinds, "info": texts}


def _movie_keyword(w: _World) -> Columns:
    rng = w.rng(7)
    movie = w.spread(rng, 2.5, 120)
    own = rng.random(len(movie)) < 0.3
    word = np.where(own, w.genre[movie], _zipf(rng, w.keywords, len(movie)))
    return {"id": _ids(len(movie)), "movie_id": movie + 1, "keyword_id": word + 1}


def _movie_companies(w: _World) -> Columns:
    rng = w.rng(8)
    movie = w.spread(rng, 1.5, 60)
    n = len(movie)
    notes = [f"({y}) ({COUNTRIES[c]}) {m}" for y, c, m in zip(
        w.year[movie], w.country[movie], _names(("(theatrical)", "(DVD)", "(TV)", "(worldwide)"))[_zipf(rng, 4, n)],
        strict=True)]  # fmt: skip
    return {
        "id": _ids(n), "movie_id": movie + 1, "company_id": w.matching(rng, movie, w.company_country, 0.9) + 1,
        "company_type_id": _pick(rng, (0.5, 0.4, 0.05, 0.05), n) + 1, "note": _some(rng, _names(notes), 0.6),
    }  # fmt: skip


def _movie_link(w: _World) -> Columns:
    rng = w.rng(9)
    movie = w.spread(rng, 0.08, 20)
    other = np.where(rng.random(len(movie)) < 0.5, np.argsort(-w.popularity)[_zipf(rng, w.titles, len(movie))],
                     rng.integers(0, w.titles, len(movie)))  # fmt: skip
    return {"id": _ids(len(movie)), "movie_id": movie + 1, "linked_movie_id": other + 1,
            "link_type_id": _zipf(rng, len(LINKS), len(movie)) + 1}  # fmt: skip


def _complete_cast(w: _World) -> Columns:
    rng = w.rng(10)
    movie = w.spread(rng, 0.2, 4)
    return {"id": _ids(len(movie)), "movie_id": movie + 1, "subject_id": rng.integers(1, 3, len(movie)),
            "status_id": rng.integers(3, 5, len(movie))}  # fmt: skip


def _aka_name(w: _World) -> Columns:
    rng = w.rng(11)
    person = _zipf(rng, w.people, round(0.35 * w.people))
    names = [f"{'abcde'[i % 5]}ka {p}" for i, p in enumerate(person)]
    return {"id": _ids(len(person)), "person_id": person + 1, "name": names}


def _aka_title(w: _World) -> Columns:
    movie = w.spread(w.rng(12), 0.25, 12)
    names = [f"Also {m} in {LANGUAGES[c]}" for m, c in zip(movie + 1, w.country[movie], strict=True)]
    return {"id": _ids(len(movie)), "movie_id": movie + 1, "title": names}


def _person_info(w: _World) -> Columns:
    rng = w.rng(13)
    person = _zipf(rng, w.people, round(0.8 * w.people))
    kinds = np.array((19, 21, 20, 17))[_zipf(rng, 4, len(person))]
    texts = [f"{COUNTRIES[w.person_country[p]]}, {1900 + p % 100}" for p in person]
    notes = _some(rng, _names(("Volker Boehm", "Anonymous", "The publicist"))[_zipf(rng, 3, len(person))], 0.5)
    return {"id": _ids(len(person)), "person_id": person + 1, "info_type_id": kinds, "info": texts, "note": notes}


_TABLES: dict[str, Callable[[_World], Columns]] = {
    "title": _title, "name": _name, "char_name": _char_name, "company_name": _company_name, "keyword": _keyword,
    "info_type": _info_type, "kind_type": _listed("kind", KINDS), "role_type": _listed("role", ROLES),
    "company_type": _listed("kind", COMPANY_TYPES), "link_type": _listed("link", LINKS),
    "comp_cast_type": _listed("kind", CAST_STATES), "cast_info": _cast_info, "movie_info": _movie_info,
    "movie_info_idx": _movie_info_idx, "movie_keyword": _movie_keyword, "movie_companies": _movie_companies,
    "movie_link": _movie_link, "complete_cast": _complete_cast, "aka_name": _aka_name, "aka_title": _aka_title,
    "person_info": _person_info,
}  # fmt: skip

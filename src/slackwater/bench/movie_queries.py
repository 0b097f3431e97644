"""Thirty-three queries over the movie database: flat joins of 4 to 17 tables with filters and plain aggregates.

Each names its tables by their short names; how a table is joined is the same in all of them and said once, in `JOINS`.
`sql(3)` is the text that Spark gets.
"""

from __future__ import annotations

from dataclasses import dataclass

JOINS = {
    "t": ("title", ""),
    "kt": ("kind_type", "kt.id = t.kind_id"),
    "mc": ("movie_companies", "mc.movie_id = t.id"),
    "cn": ("company_name", "cn.id = mc.company_id"),
    "ct": ("company_type", "ct.id = mc.company_type_id"),
    "mi": ("movie_info", "mi.movie_id = t.id"),
    "it": ("info_type", "it.id = mi.info_type_id"),
    "mx": ("movie_info_idx", "mx.movie_id = t.id"),
    "ix": ("info_type", "ix.id = mx.info_type_id"),
    "mk": ("movie_keyword", "mk.movie_id = t.id"),
    "k": ("keyword", "k.id = mk.keyword_id"),
    "ci": ("cast_info", "ci.movie_id = t.id"),
    "n": ("name", "n.id = ci.person_id"),
    "rt": ("role_type", "rt.id = ci.role_id"),
    "ch": ("char_name", "ch.id = ci.person_role_id"),
    "an": ("aka_name", "an.person_id = n.id"),
    "pi": ("person_info", "pi.person_id = n.id"),
    "ip": ("info_type", "ip.id = pi.info_type_id"),
    "ak": ("aka_title", "ak.movie_id = t.id"),
    "cc": ("complete_cast", "cc.movie_id = t.id"),
    "cs": ("comp_cast_type", "cs.id = cc.subject_id"),
    "cf": ("comp_cast_type", "cf.id = cc.status_id"),
    "ml": ("movie_link", "ml.movie_id = t.id"),
    "lt": ("link_type", "lt.id = ml.link_type_id"),
    "t2": ("title", "t2.id = ml.linked_movie_id"),
    "k2": ("kind_type", "k2.id = t2.kind_id"),
    "mx2": ("movie_info_idx", "mx2.movie_id = t2.id"),
    "ix2": ("info_type", "ix2.id = mx2.info_type_id"),
    "mc2": ("movie_companies", "mc2.movie_id = t2.id"),
    "cn2": ("company_name", "cn2.id = mc2.company_id"),
}
"""Short name, table, and what it is joined by; the tables named in a condition come before it in every query."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query: what it gives out, the tables by their short names, and the filters."""

    gives: str
    tables: str
    where: str

    @property
    def joins(self) -> int:
        """How many joins it has."""
        return len(self.tables.split()) - 1

    def sql(self) -> str:
        """The query as text."""
        names = self.tables.split()
        conditions = [JOINS[name][1] for name in names if JOINS[name][1]]
        listed = ", ".join(f"{JOINS[name][0]} {name}" for name in names)
        return f"SELECT {self.gives}\nFROM {listed}\nWHERE {' AND '.join((*conditions, self.where))}"


COUNT = "count(*) AS matches"

MOVIES: dict[int, Query] = {
    # three and four joins
    1: Query(f"min(t.title) AS title, {COUNT}", "t mk k mx",
             "k.keyword = 'sequel' AND mx.info_type_id = 101 AND mx.info > '5.0' AND t.production_year > 2000"),
    2: Query(f"min(t.title) AS title, {COUNT}", "t mk k mi",
             "k.keyword LIKE '%love%' AND mi.info IN ('Sweden', 'Germany', 'USA') AND t.production_year > 2005"),
    3: Query(f"min(t.title) AS title, min(cn.name) AS company, {COUNT}", "t mc cn mk k",
             "cn.country_code = '[de]' AND k.keyword = 'character-name-in-title'"),
    4: Query(f"min(mx.info) AS rating, min(t.title) AS title, {COUNT}", "t mx ix mk k",
             "ix.info = 'rating' AND k.keyword LIKE '%sequel%' AND mx.info > '6.0' AND t.production_year > 1995"),
    5: Query(f"min(t.title) AS title, max(t.production_year) AS latest, {COUNT}", "t mc ct mi it",
             "ct.kind = 'production companies' AND it.info = 'languages' AND mi.info IN ('Swedish', 'Italian')"
             " AND mc.note LIKE '%(theatrical)%' AND t.production_year > 1990"),
    6: Query(f"min(n.name) AS person, min(t.title) AS title, {COUNT}", "t mk k ci n",
             "k.keyword IN ('superhero', 'marvel-comics') AND n.name LIKE '%USA%' AND t.production_year > 2008"),
    # five joins
    7: Query(f"min(mc.note) AS note, min(t.title) AS title, {COUNT}", "t mc ct mx ix kt",
             "ct.kind = 'production companies' AND ix.info = 'top 250 rank' AND kt.kind = 'movie'"),
    8: Query(f"min(an.name) AS alias, min(t.title) AS title, {COUNT}", "t ci n an rt kt",
             "rt.role = 'costume designer' AND ci.note IS NOT NULL AND kt.kind = 'movie' AND an.name LIKE 'a%'"),
    9: Query(f"min(ch.name) AS character, min(t.title) AS title, {COUNT}", "t ci ch rt mc cn",
             "ci.note = '(voice)' AND rt.role = 'actor' AND cn.country_code = '[jp]' AND t.production_year > 2005"),
    10: Query(f"min(t.title) AS title, min(t2.title) AS other, {COUNT}", "t mk k ml lt t2",
              "k.keyword = 'explosion' AND lt.link IN ('follows', 'followed by', 'remake of')"),
    # six joins
    11: Query(f"min(cn.name) AS company, min(lt.link) AS link, {COUNT}", "t mc cn ct ml lt mk",
              "cn.country_code <> '[us]' AND ct.kind = 'production companies' AND lt.link LIKE '%follow%'"
              " AND t.production_year BETWEEN 1970 AND 2014"),
    12: Query(f"min(cn.name) AS company, min(mx.info) AS rating, {COUNT}", "t mc cn mi it mx ix",
              "cn.country_code = '[us]' AND it.info = 'genres' AND mi.info IN ('Drama', 'Horror')"
              " AND ix.info = 'rating' AND mx.info > '7.5' AND t.production_year BETWEEN 2000 AND 2010"),
    13: Query(f"min(n.name) AS person, {COUNT}", "t ci n an mc cn mk",
              "cn.country_code = '[fr]' AND n.gender = 'f' AND an.name LIKE 'b%' AND mc.note LIKE '%(DVD)%'"
              " AND t.production_year > 2010"),
    14: Query(f"min(mx.info) AS rating, min(t.title) AS northern, {COUNT}", "t kt mi it mx ix mk",
              "kt.kind = 'movie' AND it.info = 'countries' AND mi.info IN ('Sweden', 'Germany', 'UK')"
              " AND ix.info = 'rating' AND mx.info < '6.5' AND t.production_year > 2008"),
    # seven joins
    15: Query(f"min(mi.info) AS released, min(t.title) AS title, {COUNT}", "t ak mc cn mi it mk k",
              "cn.country_code = '[us]' AND it.info = 'release dates' AND mi.info LIKE 'USA:%'"
              " AND mi.note LIKE '%internet%' AND t.production_year > 2000 AND k.keyword = 'love'"),
    16: Query(f"min(an.name) AS alias, min(t.title) AS title, {COUNT}", "t mc cn mk k ci n an",
              "cn.country_code = '[us]' AND k.keyword = 'character-name-in-title' AND ci.nr_order < 20"),
    17: Query(f"min(n.name) AS member, {COUNT}", "t mc cn mk k ci n kt",
              "cn.country_code = '[us]' AND k.keyword = 'murder' AND n.name LIKE 'B%' AND kt.kind = 'movie'"),
    18: Query(f"min(mi.info) AS budget, min(mx.info) AS votes, {COUNT}", "t mi it mx ix ci n rt",
              "it.info = 'budget' AND ix.info = 'votes' AND n.gender = 'm' AND rt.role = 'producer'"
              " AND ci.note IN ('(producer)', '(executive producer)')"),
    # eight joins
    19: Query(f"min(n.name) AS actress, min(t.title) AS title, {COUNT}", "t ci n rt ch mi it mc cn",
              "ci.note = '(voice)' AND n.gender = 'f' AND rt.role = 'actress' AND it.info = 'release dates'"
              " AND mi.info LIKE 'Japan:%' AND cn.country_code = '[us]' AND t.production_year > 2000"),
    20: Query(f"min(t.title) AS title, {COUNT}", "t cc cs cf ci ch mk k kt",
              "cs.kind = 'cast' AND cf.kind LIKE '%complete%' AND ch.name LIKE '%Queen%'"
              " AND k.keyword IN ('superhero', 'sequel', 'revenge') AND kt.kind = 'movie'"),
    21: Query(f"min(cn.name) AS company, min(lt.link) AS link, {COUNT}", "t mc cn ct mi mk k ml lt",
              "cn.country_code <> '[us]' AND ct.kind = 'production companies' AND lt.link LIKE '%follow%'"
              " AND mi.info IN ('Germany', 'France', 'UK', 'Japan')"),
    # nine joins
    22: Query(f"min(cn.name) AS company, min(mx.info) AS rating, min(t.title) AS title, {COUNT}",
              "t mc cn kt mi it mx ix mk k",
              "cn.country_code <> '[us]' AND it.info = 'countries' AND mi.info IN ('Germany', 'UK', 'France')"
              " AND ix.info = 'rating' AND mx.info < '7.0' AND k.keyword IN ('murder', 'blood', 'death')"
              " AND kt.kind IN ('movie', 'episode') AND t.production_year > 2005"),
    23: Query(f"min(kt.kind) AS kind, min(t.title) AS title, {COUNT}", "t kt cc cf mi it mc cn ct mk",
              "cf.kind = 'complete+verified' AND it.info = 'release dates' AND mi.info LIKE 'USA:%'"
              " AND mi.note LIKE '%internet%' AND cn.country_code = '[us]' AND kt.kind = 'movie'"
              " AND t.production_year > 2011"),
    24: Query(f"min(ch.name) AS character, min(n.name) AS voice, {COUNT}", "t ci n rt ch mi it mk k mc",
              "ci.note = '(voice)' AND rt.role IN ('actor', 'actress') AND it.info = 'genres'"
              " AND k.keyword IN ('talking-animal', 'superhero', 'dog') AND mi.info = 'Animation'"),
    # ten joins
    25: Query(f"min(mi.info) AS genre, min(n.name) AS writer, {COUNT}", "t mi it mx ix mk k ci n rt kt",
              "it.info = 'genres' AND mi.info = 'Horror' AND ix.info = 'votes' AND n.gender = 'm'"
              " AND rt.role = 'writer' AND k.keyword IN ('murder', 'blood', 'death', 'vampire')"),
    26: Query(f"min(ch.name) AS character, min(mx.info) AS rating, {COUNT}", "t cc cs ci n ch mx ix mk k kt",
              "cs.kind = 'cast' AND ix.info = 'rating' AND mx.info > '6.0' AND n.gender = 'm'"
              " AND k.keyword IN ('superhero', 'sequel', 'revenge', 'explosion') AND kt.kind = 'movie'"),
    # eleven joins
    27: Query(f"min(cn.name) AS company, min(lt.link) AS link, {COUNT}", "t mc cn ct mi mk k ml lt cc cs cf",
              "cn.country_code <> '[us]' AND ct.kind = 'production companies' AND cs.kind IN ('cast', 'crew')"
              " AND cf.kind LIKE 'complete%' AND k.keyword IN ('sequel', 'love', 'murder', 'friendship', 'death')"
              " AND mi.info IN ('Germany', 'UK', 'Japan') AND t.production_year > 1970"),
    28: Query(f"min(n.name) AS person, min(t.title) AS title, {COUNT}", "t ci n rt an pi ip mi it mk k kt",
              "ip.info = 'mini biography' AND pi.note = 'Volker Boehm' AND it.info = 'genres' AND mi.info = 'Drama'"
              " AND rt.role = 'director' AND kt.kind = 'movie' AND k.keyword = 'death' AND n.gender = 'f'"),
    # twelve to sixteen joins
    29: Query(f"min(t.title) AS title, min(t2.title) AS other, min(mx.info) AS rating, {COUNT}",
              "t kt ml lt t2 k2 mx ix mx2 ix2 mc cn mk",
              "ix.info = 'rating' AND ix2.info = 'rating' AND lt.link IN ('follows', 'followed by')"
              " AND mx2.info < '7.0' AND cn.country_code = '[us]' AND k2.kind IN ('movie', 'tv series')"),
    30: Query(f"min(mi.info) AS genre, min(n.name) AS writer, {COUNT}", "t cc cs cf mi it mx ix mk k ci n rt kt",
              "cs.kind IN ('cast', 'crew') AND cf.kind = 'complete+verified' AND it.info = 'genres'"
              " AND mi.info IN ('Horror', 'Thriller', 'Crime') AND ix.info = 'votes' AND n.gender = 'm'"
              " AND rt.role = 'writer' AND k.keyword IN ('murder', 'blood', 'conspiracy', 'death')"),
    31: Query(f"min(cn.name) AS company, min(n.name) AS writer, {COUNT}", "t mi it mx ix mk k ci n rt mc cn ct kt an",
              "it.info = 'genres' AND mi.info = 'Thriller' AND ix.info = 'votes' AND rt.role = 'writer'"
              " AND k.keyword IN ('murder', 'conspiracy') AND ct.kind = 'production companies' AND kt.kind = 'movie'"),
    32: Query(f"min(n.name) AS voice, min(ch.name) AS character, {COUNT}",
              "t kt cc cs cf ci n rt ch mi it mc cn mk k an",
              "cs.kind = 'cast' AND cf.kind = 'complete+verified' AND ci.note = '(voice)' AND it.info = 'genres'"
              " AND rt.role IN ('actor', 'actress') AND mi.info IN ('Animation', 'Comedy', 'Family')"
              " AND cn.country_code = '[us]' AND k.keyword IN ('talking-animal', 'friendship', 'dog', 'love')"
              " AND an.name LIKE 'a%' AND t.production_year > 2008"),
    33: Query(f"min(n.name) AS voice, min(ch.name) AS character, {COUNT}",
              "t cc cs cf ci n rt ch an pi ip mi it mc cn mk k",
              "cs.kind = 'cast' AND cf.kind LIKE 'complete%' AND ci.note = '(voice)' AND mi.info = 'Action'"
              " AND rt.role IN ('actor', 'actress') AND ip.info = 'mini biography' AND it.info = 'genres'"
              " AND cn.country_code = '[us]' AND k.keyword = 'explosion' AND pi.note = 'Volker Boehm'"
              " AND n.gender = 'f' AND an.name LIKE 'a%' AND t.production_year > 2010"),
}  # fmt: skip

TEXTS = {number: query.sql() for number, query in MOVIES.items()}
"""The queries as text."""

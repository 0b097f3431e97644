"""Joins that look up a key: each row of one side names at most one row of the other.

`lineitem ⋈ orders ON l_orderkey = o_orderkey` is one, where `o_orderkey` is the key of `orders`. As long as nothing is
deleted from `orders`, an order that arrives can only match lines that came before it. A line whose order is there is
*settled*: no later order will match it. What waits for a match is all that an arriving order has to meet.

The side that is looked up may be filtered, and may look up others in turn. A key of it is settled if its row is in the
table, passes no matter what filter, and waits for nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from slackwater.algebra.expressions import Expr, call, col, conjunction, quote
from slackwater.algebra.joins import ANTI, SEMI, MatchJoin, Support
from slackwater.algebra.nodes import (
    Field,
    Filter,
    Item,
    Join,
    Linearity,
    Project,
    Rel,
    Scan,
    Schema,
    plain_bag,
    require,
    union,
)  # fmt: skip
from slackwater.algebra.remembering import ByNode

LEFT, RIGHT = "left", "right"


@dataclass(frozen=True, slots=True)
class KeyPair:
    """An expression over the rows that wait, and the column of the side that is looked up which it must equal."""

    asks: Expr
    column: str


@dataclass(frozen=True, slots=True)
class LookupJoin(Join):
    """An inner join in which the columns of `pairs` are the key of a table on the side that is looked up."""

    keyed: str = RIGHT
    pairs: tuple[KeyPair, ...] = ()

    def __post_init__(self) -> None:
        """The pairs lead to the key of a table; the condition implies them."""
        require(self.keyed in (LEFT, RIGHT), "I13", f"no such side: {self.keyed}")
        require(bool(self.pairs), "I13", "a lookup needs a key")
        for pair in self.pairs:
            require(pair.asks.inputs <= set(self.rows.names), "I13", f"{pair.asks.text} is not of the side that asks")
        require(key_path(self.looked_up, tuple(p.column for p in self.pairs)) is not None, "I13", "no path to a key")
        Join.__post_init__(self)

    @property
    def rows(self) -> Rel:
        """The side that names keys."""
        return self.left if self.keyed == RIGHT else self.right

    @property
    def looked_up(self) -> Rel:
        """The side whose keys are named."""
        return self.right if self.keyed == RIGHT else self.left

    @property
    def side_states(self) -> tuple[Rel, ...]:
        """The rows that wait, and the index that the others are looked up in."""
        index = self.index
        return (self.waiting,) if index is None else (self.waiting, index)

    @property
    def index(self) -> Indexed | None:
        """The side that is looked up, by key; None where the condition asks for more than equal keys can tell.

        Every term reads the side that asks, so that an index of all rows gives what one of fewer rows would. What is
        asked of the looked-up rows above the join is for whoever puts the index in its place (`execution/hashed.py`).
        """
        return _index(self)

    @property
    def waiting(self) -> Waiting:
        """The rows whose match may still come."""
        return _waiting(self)

    def plain(self, left: Rel, right: Rel, broadcast: str = "") -> Join:
        """The join as any other."""
        return Join(left, right, self.condition, broadcast)


@dataclass(frozen=True, slots=True)
class Waiting(Rel):
    """The rows of a lookup's one side that a row which is inserted on the other side may still match."""

    rows: Rel
    looked_up: Rel
    pairs: tuple[KeyPair, ...]
    linearity: ClassVar[Linearity] = Linearity.KEYED
    child_names: ClassVar[tuple[str, ...]] = ("rows", "looked_up")

    @property
    def schema(self) -> Schema:
        """The columns of the rows."""
        return self.rows.schema

    @property
    def path(self) -> KeyPath:
        """How the named keys lead to a table."""
        found = key_path(self.looked_up, tuple(p.column for p in self.pairs))
        require(found is not None, "I13", "no path to a key")
        assert found is not None  # noqa: S101 - required
        return found

    @property
    def tables(self) -> frozenset[str]:
        """The tables that a match can come from."""
        return frozenset(x.table for x in self.looked_up.walk() if isinstance(x, Scan))


@dataclass(frozen=True, slots=True)
class Indexed(Rel):
    """The rows of the side that is looked up, to be found by key: what others call a hash table."""

    rows: Rel
    columns: tuple[str, ...]
    linearity: ClassVar[Linearity] = Linearity.LINEAR
    child_names: ClassVar[tuple[str, ...]] = ("rows",)

    @property
    def schema(self) -> Schema:
        """The columns of the rows."""
        return self.rows.schema

    @property
    def fields(self) -> Schema:
        """The same under names that no query has: a key is looked up beside rows that have come since."""
        return tuple(Field(f"sw@i{at}", f.dtype) for at, f in enumerate(self.schema))


@dataclass(frozen=True, slots=True)
class Probe(Rel):
    """Rows with the match of each, from an index or from what came since the index was made.

        asking ⋈ (index ∪ since)

    Attributes:
        asking: the rows.
        index: the rows of the index, under the names of `Indexed.fields`.
        since: the rows that are not in it, under the names of the side that is looked up; None if there are none.
        lookup: the join that this is a part of.

    Precondition: no two rows of index and since together have the same key, and neither has deletes. Counter-example:
    with a delete among what came since, the row that was deleted would still be found in the index.
    """

    asking: Rel
    index: Rel
    since: Rel | None
    lookup: LookupJoin
    linearity: ClassVar[Linearity] = Linearity.LINEAR
    child_names: ClassVar[tuple[str, ...]] = ("asking", "index", "since")

    def __post_init__(self) -> None:
        """What is looked up has no deletes and is as wide as it should be."""
        require(not self.index.weighted, "I14", "an index has no deletes")
        require(self.since is None or not self.since.weighted, "I14", "deletes since an index was made are no lookup")
        require(len(self.index.schema) == len(self.lookup.looked_up.schema), "I14", "an index has all columns")
        Rel.__post_init__(self)

    @property
    def schema(self) -> Schema:
        """The columns of the join."""
        return self.lookup.schema

    def plain(self) -> Rel:
        """The same as a join of the rows with all that can be found."""
        named = self.lookup.looked_up.schema
        items = (Item(f.name, col(i.name, i.dtype)) for f, i in zip(named, self.index.schema, strict=True))
        known: Rel = Project(self.index, tuple(items))
        found = known if self.since is None else union(known, self.since)
        right = self.lookup.keyed == RIGHT
        return self.lookup.plain(self.asking, found) if right else self.lookup.plain(found, self.asking)


@dataclass(frozen=True, slots=True)
class KeyPath:
    """From columns of a relation down to the table whose rows they tell apart.

    Attributes:
        scan: the table.
        columns: the columns there, in the order asked for.
        lookups: the lookups that its rows go through on the way up, and what the columns are called in their rows.
    """

    scan: Scan
    columns: tuple[str, ...]
    lookups: tuple[tuple[LookupJoin, tuple[str, ...]], ...] = ()

    @property
    def positions(self) -> tuple[int, ...]:
        """Where the table has the columns."""
        at = {f.name: p for f, p in zip(self.scan.fields, self.scan.positions, strict=True)}
        return tuple(at[name] for name in self.columns)


def key_path(rel: Rel, columns: tuple[str, ...]) -> KeyPath | None:
    """Follow columns down to a table: through filters, renamings, and the rows of lookups.

    Every row of the relation then comes from one row of that table, and no two from the same.
    """
    lookups: list[tuple[LookupJoin, tuple[str, ...]]] = []
    while not isinstance(rel, Scan):
        if isinstance(rel, Project):
            named = {i.name: i.expr.column for i in rel.items}
            below = tuple(named.get(name) for name in columns)
            if not all(below):
                return None
            columns, rel = tuple(str(name) for name in below), rel.child
        elif isinstance(rel, Filter):
            rel = rel.child
        elif isinstance(rel, LookupJoin):
            if not set(columns) <= set(rel.rows.names):
                return None
            lookups.append((rel, columns))
            rel = rel.rows
        else:
            return None
    return KeyPath(rel, columns, tuple(lookups)) if set(columns) <= set(rel.names) else None


def unsettled(
    node: Waiting, rows: Rel, table: Scan, waiting: Sequence[Rel], *, broadcast: bool = False, few: bool = False
) -> Rel:
    """The rows whose key is not settled, as a plain bag.

    Args:
        node: whose rows they are.
        rows: the rows, with weights or without; what has been settled before may be missing or wrong.
        table: the table that the keys are looked up in, at the version meant.
        waiting: what waits, at that version, in each of the lookups of the path.
        broadcast: the keys are few enough to be sent to every task.
        few: the rows are, so that of the table's keys only those that they name need be sent.
    """
    path = node.path
    asked = [p.asks for p in node.pairs]
    names = tuple(f"sw@k{i}" for i in range(len(path.columns)))
    types = {f.name: f.dtype for f in path.scan.fields}
    settled: Rel = Project(table, tuple(Item(n, col(c, types[c])) for n, c in zip(names, path.columns, strict=True)))
    if few:
        named = Project(Support(rows), tuple(Item(f"sw@a{i}", e) for i, e in enumerate(asked)))
        wanted = (
            call("=", col(n, types[c]), col(f"sw@a{i}", e.dtype), dtype="boolean")
            for i, (n, c, e) in enumerate(zip(names, path.columns, asked, strict=True))
        )
        settled = MatchJoin(settled, named, conjunction(tuple(wanted)), SEMI, "", True)
    held = []
    for rel, (lookup, columns) in zip(waiting, path.lookups, strict=True):
        dtypes = {f.name: f.dtype for f in lookup.rows.schema}
        items = (Item(f"sw@w{i}", col(c, dtypes[c])) for i, c in enumerate(columns))
        held.append(Project(Support(rel), tuple(items)))  # rows of one key, added and taken away, would cancel out
    if held:
        same = (
            call("=", col(n, types[c]), col(f"sw@w{i}", types[c]), dtype="boolean")
            for i, (n, c) in enumerate(zip(names, path.columns, strict=True))
        )
        settled = MatchJoin(settled, union(*held), conjunction(tuple(same)), ANTI, "", broadcast)
    there = conjunction(tuple(call("is_not_null", e, dtype="boolean") for e in asked))
    matched = conjunction(
        tuple(
            call("=", e, col(n, types[c]), dtype="boolean") for e, n, c in zip(asked, names, path.columns, strict=True)
        )
    )
    return plain_bag(MatchJoin(Filter(rows, there), settled, matched, ANTI, "", broadcast or few))


def unsettled_among(node: Waiting, rows: Rel, known: Callable[[Waiting], Rel | None], at: str = "") -> Rel | None:
    """Those of a few rows whose match may still come; None where that cannot be told.

    Args:
        node: whose rows they are.
        rows: the rows, without deletes.
        known: what waits in another lookup; None where it is not kept, and is then sought in the tables.
        at: the time of the tables, as `Scan.at` tells it.
    """
    keys = Project(Support(rows), tuple(Item(f"sw@b{i}", pair.asks) for i, pair in enumerate(node.pairs)))
    held = []
    for lookup, columns in node.path.lookups:
        behind = known(lookup.waiting)
        if behind is None:
            behind = _waiting_for_keys(lookup.waiting, columns, keys, at)
        if behind is None:
            return None
        held.append(behind)
    return unsettled(node, rows, replace(node.path.scan, at=at), held, few=True)


def _waiting_for_keys(node: Waiting, columns: Sequence[str], keys: Rel, at: str) -> Rel | None:
    """What waits, of the rows whose columns are among some keys.

    None where the rows are more than a table's that were filtered and renamed, or wait for others in turn.
    """
    if node.path.lookups or not all(isinstance(x, Scan | Filter | Project) for x in node.rows.walk()):
        return None
    rows = node.rows.transform_up(lambda x: replace(x, at=at) if isinstance(x, Scan) else None)
    dtypes = {f.name: f.dtype for f in rows.schema}
    same = (
        call("=", col(c, dtypes[c]), col(f.name, f.dtype), dtype="boolean")
        for c, f in zip(columns, keys.schema, strict=True)
    )
    found = MatchJoin(rows, keys, conjunction(tuple(same)), SEMI, "", True)
    return unsettled(node, found, replace(node.path.scan, at=at), (), few=True)


def _index_of(node: LookupJoin) -> Indexed | None:
    terms = node.condition.conjuncts() if node.condition is not None else ()
    equal = {frozenset(arg.text for arg in t.args) for t in terms if t.op == "="}
    named = all(frozenset((p.asks.text, quote(p.column))) in equal for p in node.pairs)
    both = all(term.inputs & set(node.rows.names) for term in terms)
    return Indexed(node.looked_up, tuple(p.column for p in node.pairs)) if named and both else None


_waiting: ByNode[LookupJoin, Waiting] = ByNode(lambda node: Waiting(node.rows, node.looked_up, node.pairs))
_index: ByNode[LookupJoin, Indexed | None] = ByNode(_index_of)

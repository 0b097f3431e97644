"""A model of merged and forgotten segments that remembers all, and tries every choice of segments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations

from hypothesis import strategies as st

from slackwater.errors import SlackwaterError
from slackwater.storage import Catalog, SegmentRecord, TableRecord
from tests.unit.catalog_suite import segment

Bag = dict[str, int]


def total(parts: Iterable[Bag]) -> Bag:
    """Add up weighted rows; what cancels out is gone."""
    weights: Counter[str] = Counter()
    for part in parts:
        weights.update(part)
    return {row: weight for row, weight in weights.items() if weight}


@dataclass(eq=False)
class Group:
    """What is used as a whole or not at all: one version's changes, or what a merge made of several."""

    versions: frozenset[int]
    ids: frozenset[int]
    merged_into: Group | None = None
    usable: bool = True


@dataclass
class Model:
    """The owner's history, remembered in full, beside the catalog that may forget."""

    catalog: Catalog
    table: TableRecord
    changes: dict[int, Bag] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)
    contents: dict[int, Bag] = field(default_factory=dict)
    whole_forgets: bool = True

    def write(self, change: Bag) -> None:
        signs = [sign for sign in (1, -1) if any(weight * sign > 0 for weight in change.values())]
        with self.catalog.commit("change", self.table.name) as tx:
            made = tx.add_segments(self.table.owner, [segment(f"{tx.version}/{sign}", sign) for sign in signs])
        if made:
            self.changes[tx.version] = change
            self._remember(frozenset({tx.version}), made, change)

    def live(self) -> list[Group]:
        return sorted(
            (group for group in self.groups if group.merged_into is None), key=lambda group: min(group.versions)
        )

    def merge(self, start: int, count: int) -> None:
        chosen = self.live()[start : start + count]
        if not any(group.ids for group in chosen):
            return
        # A merge spans its segments; a group without any at either end is left as it is.
        while not chosen[0].ids:
            chosen.pop(0)
        while not chosen[-1].ids:
            chosen.pop()
        versions = frozenset().union(*(group.versions for group in chosen))
        content = total(self.changes[version] for version in versions)
        signs = [sign for sign in (1, -1) if any(weight * sign > 0 for weight in content.values())]
        with self.catalog.commit("compact", self.table.name) as tx:
            ids = [found for group in chosen for found in group.ids]
            new = [segment(f"{tx.version}/m{sign}", sign) for sign in signs]
            made = tx.merge_segments(self.table.owner, ids, new)
        merged = self._remember(versions, made, content)
        for group in chosen:
            group.merged_into = merged

    def forget_before(self, version: int) -> None:
        self._forget({found.id for found in self.catalog.superseded(self.table.owner, version)})

    def forget_one(self, index: int) -> None:
        found = self.catalog.superseded(self.table.owner, self.catalog.version() + 1)
        if found:
            self.whole_forgets = False
            self._forget({found[index % len(found)].id})

    def compare(self, after: int, upto: int) -> None:
        wanted = frozenset(version for version in self.changes if after < version <= upto)
        fewest = self._fewest_groups(wanted)
        try:
            found = self.catalog.segments_between(self.table.owner, after, upto)
        except SlackwaterError as error:
            if error.code != "HISTORY_COMPACTED":
                raise
            # What is left of a merge's inputs may do, or nothing be wanted; nothing in the catalog could tell that.
            assert fewest is None or not wanted or not self.whole_forgets
            return
        assert fewest is not None
        ids = {segment.id for segment in found}
        assert len(ids) == len(found)
        assert total(self.contents[found] for found in ids) == total(self.changes[version] for version in wanted)
        assert sum(1 for group in self.groups if group.ids and group.ids <= ids) <= fewest
        assert found == tuple(sorted(found, key=lambda segment: (segment.first_version, -segment.sign, segment.id)))
        if after == 0:
            assert self.catalog.segments(self.table.owner, at=upto) == found
        self._compare_per_version(after, upto, wanted)

    def _compare_per_version(self, after: int, upto: int, wanted: frozenset[int]) -> None:
        try:
            found = self.catalog.segments_between(self.table.owner, after, upto, per_version=True)
        except SlackwaterError as error:
            if error.code != "HISTORY_COMPACTED":
                raise
            return
        for version in wanted:
            ids = [segment.id for segment in found if segment.first_version == segment.last_version == version]
            assert total(self.contents[found] for found in ids) == self.changes[version]
        assert {segment.first_version for segment in found} == wanted

    def _fewest_groups(self, wanted: frozenset[int]) -> int | None:
        """Try every choice of groups that hold the wanted versions, each exactly once."""
        inside = [group for group in self.groups if group.usable and group.versions <= wanted]
        for count in range(len(wanted) + 1):
            for choice in combinations(inside, count):
                versions = [version for group in choice for version in group.versions]
                if len(versions) == len(wanted) and set(versions) == wanted:
                    return count
        return None

    def _remember(self, versions: frozenset[int], made: tuple[SegmentRecord, ...], content: Bag) -> Group:
        group = Group(versions, frozenset(found.id for found in made))
        self.groups.append(group)
        for found in made:
            self.contents[found.id] = {row: n for row, n in content.items() if n * found.sign > 0}
        return group

    def _forget(self, ids: set[int]) -> None:
        assert self.catalog.forget_segments(ids) == len(ids)
        for group in self.groups:
            group.usable = group.usable and not group.ids & ids
        for group in self.groups:
            # A merge without outputs is forgotten together with what it was merged with.
            if group.merged_into is not None and not group.ids:
                siblings = [other for other in self.groups if other.merged_into is group.merged_into]
                group.usable = group.usable and all(other.usable for other in siblings)


def changes() -> st.SearchStrategy[Bag]:
    one_row = st.sampled_from([{"a": 1}, {"a": -1}])  # often, so that changes cancel out
    return one_row | st.dictionaries(st.sampled_from("ab"), st.sampled_from([-1, 1]), min_size=1)


def steps() -> st.SearchStrategy[list[tuple[str, object, object]]]:
    number = st.integers(0, 6)
    write = st.tuples(st.just("write"), changes(), st.none())
    merge = st.tuples(st.just("merge"), number, st.integers(1, 4))
    forget = st.tuples(st.just("forget"), st.integers(1, 16), st.none())
    forget_one = st.tuples(st.just("forget one"), number, st.none())
    step: st.SearchStrategy[tuple[str, object, object]] = st.one_of(write, write, merge, merge, forget, forget_one)
    return st.lists(step, min_size=3, max_size=16)

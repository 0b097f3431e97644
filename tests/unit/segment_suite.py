"""Which segments answer for which versions, on whichever database."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, note, settings
from sqlalchemy import text

from slackwater.errors import SlackwaterError
from slackwater.storage import Catalog, TableRecord
from tests.unit.catalog_suite import WithCatalog, add_table, refused, segment
from tests.unit.segment_model import Model, steps


class SegmentSuite(WithCatalog):
    """Merging and forgetting, and what can be read then."""

    examples = 100

    @pytest.fixture
    def table(self, catalog: Catalog) -> TableRecord:
        return add_table(catalog)

    def write(self, catalog: Catalog, table: TableRecord, count: int) -> list[int]:
        """Write one segment per version, and give their ids."""
        ids = []
        for _ in range(count):
            with catalog.commit("change", table.name) as tx:
                ids.append(tx.add_segments(table.owner, [segment(f"t1/{tx.version}")])[0].id)
        return ids

    def merge(self, catalog: Catalog, table: TableRecord, ids: list[int], *signs: int) -> list[int]:
        """Merge segments into one per sign, and give the new ids."""
        with catalog.commit("compact", table.name) as tx:
            made = tx.merge_segments(table.owner, ids, [segment(f"t1/{tx.version}m{sign}", sign) for sign in signs])
        return [found.id for found in made]

    def found(self, catalog: Catalog, table: TableRecord, after: int, upto: int) -> list[int]:
        return [found.id for found in catalog.segments_between(table.owner, after, upto)]

    def test_a_merge_stands_for_its_range_and_only_for_it(self, catalog: Catalog, table: TableRecord) -> None:
        a, b, c = self.write(catalog, table, 3)  # versions 2, 3, 4
        plus, minus = self.merge(catalog, table, [a, b], 1, -1)
        assert self.found(catalog, table, 0, 4) == [plus, minus, c]
        assert self.found(catalog, table, 1, 3) == [plus, minus]
        assert self.found(catalog, table, 0, 2) == [a]
        assert self.found(catalog, table, 2, 4) == [b, c]
        assert [found.id for found in catalog.segments(table.owner)] == [plus, minus, c]
        assert [found.id for found in catalog.segments(table.owner, at=2)] == [a]
        merged = catalog.segments(table.owner)[0]
        assert (merged.merged, merged.first_version, merged.last_version) == (True, 2, 3)
        assert [found.id for found in catalog.segments_between(table.owner, 0, 9, per_version=True)] == [a, b, c]

    def test_merges_nest(self, catalog: Catalog, table: TableRecord) -> None:
        a, b, c, d = self.write(catalog, table, 4)  # versions 2 to 5
        ab = self.merge(catalog, table, [a, b], 1)
        abc = self.merge(catalog, table, [*ab, c], 1)
        assert self.found(catalog, table, 0, 5) == [*abc, d]
        assert self.found(catalog, table, 0, 3) == ab
        assert self.found(catalog, table, 2, 5) == [b, c, d]
        assert [found.id for found in catalog.superseded(table.owner, 7)] == [a, b]
        assert [found.id for found in catalog.superseded(table.owner, 8)] == [a, b, c, *ab]

    def test_forgotten_history_is_coded(self, catalog: Catalog, table: TableRecord) -> None:
        a, b, c = self.write(catalog, table, 3)
        ab = self.merge(catalog, table, [a, b], 1)
        assert catalog.forget_segments([a, b]) == 2
        assert self.found(catalog, table, 0, 4) == [*ab, c]
        assert self.found(catalog, table, 3, 4) == [c]
        with pytest.raises(SlackwaterError, match="versions 2 to 3 were merged") as caught:
            catalog.segments(table.owner, at=2)
        assert caught.value.code == "HISTORY_COMPACTED"
        with refused("HISTORY_COMPACTED"):
            self.found(catalog, table, 2, 4)
        with refused("HISTORY_COMPACTED"):
            catalog.segments_between(table.owner, 0, 4, per_version=True)
        assert catalog.all_paths() == {"t1/4", "t1/5m1"}
        assert catalog.forget_segments([a, b]) == 0

    def test_changes_that_cancel_out_leave_no_segment(self, catalog: Catalog, table: TableRecord) -> None:
        a, b, c = self.write(catalog, table, 3)
        assert self.merge(catalog, table, [a, b]) == []
        assert self.found(catalog, table, 0, 4) == [c]
        assert self.found(catalog, table, 0, 2) == [a]
        assert self.found(catalog, table, 0, 3) == []

    def test_a_merge_takes_all_or_is_refused(self, catalog: Catalog, table: TableRecord) -> None:
        a, b, c = self.write(catalog, table, 3)
        other = add_table(catalog, "other")
        (d,) = self.write(catalog, other, 1)
        for ids in ([], [a, c], [a, d], [a, 999]):
            with refused("INVARIANT_BROKEN"):
                self.merge(catalog, table, ids, 1)
        plus, _ = self.merge(catalog, table, [a, b], 1, -1)
        for ids in ([a], [plus], [plus, c]):
            with refused("INVARIANT_BROKEN"):
                self.merge(catalog, table, ids, 1)
        assert catalog.version() == 7

    def test_what_is_in_use_is_not_forgotten(self, catalog: Catalog, table: TableRecord) -> None:
        a, b, c = self.write(catalog, table, 3)
        self.merge(catalog, table, [a, b], 1)
        with refused("INVARIANT_BROKEN"):
            catalog.forget_segments([a, c])
        assert self.found(catalog, table, 0, 2) == [a]

    def test_owners_do_not_see_each_other(self, catalog: Catalog, table: TableRecord) -> None:
        other = add_table(catalog, "other")
        (a,) = self.write(catalog, table, 1)
        (b,) = self.write(catalog, other, 1)
        assert (self.found(catalog, table, 0, 9), self.found(catalog, other, 0, 9)) == ([a], [b])

    def test_many_segments_can_be_merged_and_forgotten(self, catalog: Catalog, table: TableRecord) -> None:
        with catalog.commit("change", table.name) as tx:
            made = tx.add_segments(table.owner, [segment(f"t1/{number}") for number in range(1200)])
        ids = [found.id for found in made]
        (merged,) = self.merge(catalog, table, ids, 1)
        assert catalog.forget_segments(ids) == 1200
        assert self.found(catalog, table, 0, 9) == [merged]

    def test_compacting_for_ever_leaves_no_trail(self, catalog: Catalog, table: TableRecord) -> None:
        kept = self.write(catalog, table, 1)
        for number in range(6):
            kept = self.merge(
                catalog, table, [*kept, *self.write(catalog, table, 1)], *([1] if number % 2 else [1, -1])
            )
            catalog.forget_segments([found.id for found in catalog.superseded(table.owner, catalog.version() - 2)])
        catalog.forget_segments([found.id for found in catalog.superseded(table.owner, catalog.version() + 1)])
        with catalog.database.read() as connection:
            counts = [connection.scalar(text(f"SELECT count(*) FROM {name}")) for name in ("segments", "merges")]
        assert counts == [1, 1]
        assert self.found(catalog, table, 0, 99) == kept

    def test_any_history_is_answered_exactly(self, catalog: Catalog) -> None:
        numbers = iter(range(1_000_000))

        @settings(max_examples=self.examples, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        @given(steps())
        def check(history: list[tuple[str, object, object]]) -> None:
            model = Model(catalog, add_table(catalog, f"table {next(numbers)}"))
            base = catalog.version()
            for step in history:
                note(f"{step}")
                match step:
                    case ("write", dict(change), _):
                        if len(model.changes) < 6:
                            model.write(change)
                    case ("merge", int(start), int(count)):
                        model.merge(start, count)
                    case ("forget", int(version), _):
                        model.forget_before(base + version)
                    case ("forget one", int(index), _):
                        model.forget_one(index)
            points = sorted({base, *model.changes, *(version - 1 for version in model.changes), catalog.version()})
            for after in (0, *points):
                for upto in points:
                    if after < upto:
                        model.compare(after, upto)

        check()

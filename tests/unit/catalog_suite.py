"""What every catalog holds, on whichever database: inherited by the tests of each."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import FrozenInstanceError, replace

import pytest
from sqlalchemy import URL

from slackwater.errors import SlackwaterError
from slackwater.storage import Catalog, NewSegment, NewSourceFile, NewState, TableRecord, ViewRecord

HOSTILE = [
    "plain",
    "Robert'); DROP TABLE commits;--",
    'a "quoted" `name`',
    "with.dots.and/slashes/../..",
    "back\\slash %s %(x)s :bind ?",
    "données 数据 🌊 e\u0301",
    " spaces ",
    "SELECT",
    "x" * 255,
]


@contextmanager
def refused(code: str) -> Iterator[None]:
    """Expect an error with this code."""
    with pytest.raises(SlackwaterError) as caught:
        yield
    assert caught.value.code == code


def segment(path: str, sign: int = 1, rows: int = 1) -> NewSegment:
    return NewSegment(sign, path, rows, rows * 100)


def add_table(catalog: Catalog, name: str = "orders") -> TableRecord:
    with catalog.commit("create_table", name) as tx:
        return tx.add_table(name, '{"id": "BIGINT"}', ["id"])


def add_view(catalog: Catalog, name: str = "revenue") -> ViewRecord:
    with catalog.commit("create_view", name) as tx:
        return tx.add_view(name, '{"sql": "SELECT 1"}', "{}", "{}", "{}")


class WithCatalog:
    """Tests of a catalog; the module of a subclass gives the `url` of an empty database."""

    @pytest.fixture
    def catalog(self, url: URL) -> Iterator[Catalog]:
        with Catalog.open(url) as catalog:
            yield catalog


class CatalogSuite(WithCatalog):
    """Every record, written and read back."""

    def test_a_new_catalog_is_empty(self, catalog: Catalog) -> None:
        assert catalog.version() == 0
        assert (catalog.tables(), catalog.views(), catalog.commits()) == ((), (), ())
        assert catalog.all_paths() == frozenset()

    def test_reopening_finds_the_same_warehouse(self, catalog: Catalog, url: URL) -> None:
        add_table(catalog)
        with Catalog.open(url, create=False) as again:
            assert again.warehouse_id == catalog.warehouse_id
            assert again.tables() == catalog.tables()

    def test_an_absent_catalog_is_not_made_unless_asked(self, url: URL) -> None:
        for _ in range(2):
            with refused("WAREHOUSE_INVALID"):
                Catalog.open(url, create=False)

    def test_closed_is_closed(self, catalog: Catalog) -> None:
        catalog.close()
        catalog.close()
        with refused("ENGINE_CLOSED"):
            catalog.version()
        with refused("ENGINE_CLOSED"), catalog.commit("change", "x"):
            pass

    def test_every_commit_is_a_version(self, catalog: Catalog) -> None:
        table = add_table(catalog)
        with catalog.commit("change", "orders", {"rows": [2, 1], "note": "é\0"}) as tx:
            assert tx.version == 2
            made = tx.add_segments(table.owner, [segment("t1/a"), segment("t1/b", -1)])
        assert [found.sign for found in made] == [1, -1]
        assert catalog.version() == 2
        newest, oldest = catalog.commits()
        assert (newest.version, newest.kind, newest.detail) == (2, "change", {"rows": [2, 1], "note": "é\0"})
        assert oldest.subject == "orders"
        assert catalog.commits(1) == (newest,)
        assert newest.at >= oldest.at > 0
        assert catalog.segments(table.owner) == made
        assert catalog.all_paths() == {"t1/a", "t1/b"}

    def test_commits_are_recorded_with_the_time_they_are_told(self, url: URL) -> None:
        times = iter([500.0, 400.0, 450.0])  # a clock may go back
        with Catalog.open(url, now=lambda: next(times)) as catalog:
            add_table(catalog)
            view = add_view(catalog)
            with catalog.commit("refresh", "revenue") as tx:
                refresh = tx.add_refresh(view.id, 0, tx.version, 1.5, {})
            assert [catalog.commit_time(version) for version in range(5)] == [None, 500.0, 400.0, 450.0, None]
            assert refresh.at == 450.0

    def test_an_exception_leaves_no_trace(self, catalog: Catalog) -> None:
        table = add_table(catalog)
        for failure in (ValueError, KeyboardInterrupt):
            with pytest.raises(failure), catalog.commit("change", "orders") as tx:  # noqa: PT012 - it must fail last
                tx.add_segments(table.owner, [segment("t1/a")])
                tx.add_table("other", "{}")
                raise failure
        assert catalog.version() == 1
        assert catalog.tables() == (table,)
        assert catalog.all_paths() == frozenset()
        with catalog.commit("change", "orders") as tx:
            assert tx.version == 2

    def test_a_value_that_is_not_json_is_the_callers_bug(self, catalog: Catalog) -> None:
        with pytest.raises(TypeError, match="not JSON serializable"), catalog.commit("change", "x", {"bad": object()}):
            pass
        assert catalog.version() == 0

    @pytest.mark.parametrize("name", HOSTILE)
    def test_names_are_data(self, catalog: Catalog, name: str) -> None:
        made = add_table(catalog, name)
        assert catalog.table(name) == made
        assert [found.name for found in catalog.tables()] == [name]
        with catalog.commit("source", name) as tx:
            source = tx.add_source(made.id, name, name, {name: name})
            tx.add_source_files(source.id, [NewSourceFile(name, 1, 2, {name: name})])
        assert catalog.sources(made.id) == (source,)
        assert catalog.source_files(source.id)[0].file == name
        with catalog.commit("drop_table", name) as tx:
            tx.drop_table(made.id)
        view = add_view(catalog, name)
        assert catalog.view(name) == view
        assert catalog.commits(1)[0].subject == name

    @pytest.mark.parametrize("name", ["", "  ", "a\0b", "tab\there", "\ud800", "x" * 256])
    def test_names_that_cannot_be_stored_are_refused(self, catalog: Catalog, name: str) -> None:
        with refused("NAME_INVALID"):
            add_table(catalog, name)
        assert catalog.version() == 0

    def test_a_file_name_that_is_not_text_is_refused(self, catalog: Catalog) -> None:
        table = add_table(catalog)
        with catalog.commit("source", "orders") as tx:
            source = tx.add_source(table.id, "in", "files", {})
        with refused("NAME_INVALID"):
            catalog.record_rejected_files(source.id, [NewSourceFile("caf\udce9.csv", 1, 1)])

    def test_tables_and_views_share_their_names_in_any_case(self, catalog: Catalog) -> None:
        add_table(catalog, "Orders")
        add_view(catalog, "Größe")
        for name in ("orders", "ORDERS", "Orders", "GRÖSSE"):
            with refused("TABLE_EXISTS"):
                add_table(catalog, name)
            with refused("VIEW_EXISTS"):
                add_view(catalog, name)
        assert catalog.version() == 2

    def test_names_are_matched_exactly(self, catalog: Catalog) -> None:
        add_table(catalog, "Orders")
        add_view(catalog, "Revenue")
        with pytest.raises(SlackwaterError, match=r"TABLE_UNKNOWN(.|\n)*did you mean 'Orders'"):
            catalog.table("orders")
        with pytest.raises(SlackwaterError, match=r"VIEW_UNKNOWN(.|\n)*There are: 'Revenue'"):
            catalog.view("Orders")

    def test_a_dropped_table_frees_its_name_and_its_files(self, catalog: Catalog) -> None:
        table = add_table(catalog)
        with catalog.commit("change", "orders") as tx:
            made = tx.add_segments(table.owner, [segment("t1/a"), segment("t1/b")])
        with catalog.commit("compact", "orders") as tx:
            tx.merge_segments(table.owner, [found.id for found in made], [segment("t1/c")])
        with catalog.commit("source", "orders") as tx:
            source = tx.add_source(table.id, "files", "files", {})
            tx.add_source_files(source.id, [NewSourceFile("f", 1, 1)])
        with catalog.commit("drop_table", "orders") as tx:
            tx.drop_table(table.id)
        assert (catalog.tables(), catalog.sources(table.id), catalog.source_files(source.id)) == ((), (), ())
        assert catalog.all_paths() == frozenset()
        again = add_table(catalog)
        assert again.id != table.id
        with refused("TABLE_UNKNOWN"):
            catalog.table_by_id(table.id)
        with refused("TABLE_UNKNOWN"), catalog.commit("change", "orders") as tx:
            tx.add_segments(table.owner, [segment("t1/d")])
        assert catalog.table_by_id(again.id) == again

    def test_a_table_can_be_complete(self, catalog: Catalog) -> None:
        table = add_table(catalog)
        assert (table.key, table.complete) == (("id",), False)
        for complete in (True, False):
            with catalog.commit("mark_complete", "orders") as tx:
                tx.mark_complete(table.id, complete)
            assert catalog.table("orders").complete is complete

    def test_a_view_moves_on(self, catalog: Catalog) -> None:
        view = add_view(catalog)
        assert view.version == 0
        with catalog.commit("refresh", "revenue") as tx:
            tx.add_segments(view.owner, [segment("v1/a")])
            moved = tx.update_view(view.id, version=tx.version, plan_json='{"b": 1}')
            first = tx.add_refresh(view.id, 0, tx.version, 1.5, {"why": "asked"})
        assert catalog.view("revenue") == moved
        assert (moved.version, moved.plan_json, moved.options_json) == (2, '{"b": 1}', "{}")
        with catalog.commit("refresh", "revenue") as tx:
            second = tx.add_refresh(view.id, 2, 3, 0.5, {}, at=7.0)
        assert catalog.refreshes(view.id) == (second, first)
        assert catalog.refreshes(view.id, 1) == (second,)
        assert second.at == 7.0
        with refused("INVARIANT_BROKEN"), catalog.commit("refresh", "revenue") as tx:
            tx.update_view(view.id, version=1)

    def test_a_view_takes_the_place_of_another_in_one_commit(self, catalog: Catalog) -> None:
        old = add_view(catalog)
        add_view(catalog, "other")
        with refused("VIEW_EXISTS"), catalog.commit("refresh", "revenue") as tx:
            tx.drop_view(old.id)
            tx.add_view("Other", '{"sql": "SELECT 2"}', "{}", "{}", "{}")
        assert catalog.view("revenue") == old
        with catalog.commit("refresh", "revenue") as tx:
            tx.drop_view(old.id)
            new = tx.add_view("Revenue", '{"sql": "SELECT 2"}', "{}", "{}", "{}")
        assert (catalog.view("Revenue"), catalog.view_names()) == (new, {"Revenue", "other"})
        with catalog.commit("alter_view", "Revenue") as tx:
            assert tx.update_view(new.id, query_json='{"sql": "SELECT 3"}').query_json == '{"sql": "SELECT 3"}'

    def test_a_rename_keeps_all_but_the_name(self, catalog: Catalog) -> None:
        table, view = add_table(catalog), add_view(catalog)
        with catalog.commit("refresh", "revenue") as tx:
            segments = tx.add_segments(view.owner, [segment("v1/a")])
            tx.replace_states(view.id, [NewState("n1", tx.version, "s/1", 1, 1)])
            tx.add_refresh(view.id, 0, tx.version, 1.0, {})
            source = tx.add_source(table.id, "files", "files", {})
        states = catalog.states(view.id)
        with catalog.commit("rename_view", "income") as tx:
            renamed = tx.rename_view(view.id, "income")
        with catalog.commit("rename_table", "sales") as tx:
            sales = tx.rename_table(table.id, "sales")
        assert (renamed, sales) == (replace(view, name="income"), replace(table, name="sales"))
        assert (catalog.view("income"), catalog.table("sales")) == (renamed, sales)
        with refused("VIEW_UNKNOWN"):
            catalog.view("revenue")
        with refused("TABLE_UNKNOWN"):
            catalog.table("orders")
        assert (catalog.segments(view.owner), catalog.states(view.id)) == (segments, states)
        assert (len(catalog.refreshes(view.id)), catalog.sources(table.id)) == (1, (source,))
        assert (add_view(catalog, "orders").name, add_table(catalog, "revenue").name) == ("orders", "revenue")

    def test_a_rename_takes_no_name_that_is_taken_or_invalid(self, catalog: Catalog) -> None:
        table, view = add_table(catalog), add_view(catalog)
        version = catalog.version()
        for name, code in (("Orders", "VIEW_EXISTS"), ("revenue", "VIEW_EXISTS"), (" ", "NAME_INVALID")):
            with refused(code), catalog.commit("rename_view", name) as tx:
                tx.rename_view(view.id, name)
        for name, code in (("REVENUE", "TABLE_EXISTS"), ("orders", "TABLE_EXISTS"), ("a\nb", "NAME_INVALID")):
            with refused(code), catalog.commit("rename_table", name) as tx:
                tx.rename_table(table.id, name)
        assert (catalog.version(), catalog.view("revenue"), catalog.table("orders")) == (version, view, table)
        with catalog.commit("rename_view", "Revenue") as tx:
            tx.rename_view(view.id, "Revenue")
            tx.rename_table(table.id, "ORDERS")
        assert (catalog.view_names(), catalog.tables()[0].name) == ({"Revenue"}, "ORDERS")
        with catalog.commit("drop_view", "Revenue") as tx:
            tx.drop_view(view.id)
            tx.drop_table(table.id)
        with refused("VIEW_DROPPED"), catalog.commit("rename_view", "x") as tx:
            tx.rename_view(view.id, "x")
        with refused("TABLE_UNKNOWN"), catalog.commit("rename_table", "x") as tx:
            tx.rename_table(table.id, "x")

    def test_a_dropped_view_says_so(self, catalog: Catalog) -> None:
        view = add_view(catalog)
        with catalog.commit("refresh", "revenue") as tx:
            tx.add_segments(view.owner, [segment("v1/a")])
            tx.replace_states(view.id, [NewState("n1", tx.version, "s/1", 1, 1)])
            tx.add_refresh(view.id, 0, 2, 1.0, {})
        with catalog.commit("drop_view", "revenue") as tx:
            tx.drop_view(view.id)
        with refused("VIEW_UNKNOWN"):
            catalog.view("revenue")
        with refused("VIEW_DROPPED"):
            catalog.view_by_id(view.id)
        with refused("VIEW_DROPPED"), catalog.commit("refresh", "revenue") as tx:
            tx.update_view(view.id, version=9)
        assert catalog.all_paths() == frozenset()
        assert len(catalog.refreshes(view.id)) == 1
        add_view(catalog)

    def test_states_are_replaced_with_or_without_a_version(self, catalog: Catalog) -> None:
        view = add_view(catalog)
        catalog.save_states(
            view.id, [NewState("n1", 1, "s/1", 5, 50, {"kind": "hash"}), NewState("n2", 1, "s/2", 6, 60)]
        )
        assert [(s.node, s.path, s.detail) for s in catalog.states(view.id)] == [
            ("n1", "s/1", {"kind": "hash"}),
            ("n2", "s/2", {}),
        ]
        assert catalog.version() == 1
        with catalog.commit("refresh", "revenue") as tx:
            tx.replace_states(view.id, [NewState("n1", tx.version, "s/3", 7, 2**40)])
        assert [(s.version, s.path, s.byte_count) for s in catalog.states(view.id)] == [(2, "s/3", 2**40)]
        catalog.save_states(view.id, [])
        assert catalog.states(view.id) == ()

    def test_a_source_file_is_applied_once(self, catalog: Catalog) -> None:
        table = add_table(catalog)
        with catalog.commit("source", "orders") as tx:
            source = tx.add_source(table.id, "in", "files", {"path": "/in"})
        with refused("SOURCE_EXISTS"), catalog.commit("source", "orders") as tx:
            tx.add_source(table.id, "in", "files", {})
        file = NewSourceFile("a.csv", 2**33, 1_700_000_000_123_456_789, {"rows": 3})
        for report in ({"bad": 1}, {"bad": 2}):
            catalog.record_rejected_files(source.id, [NewSourceFile("a.csv", file.size, file.mtime_ns, report)])
        (rejected,) = catalog.source_files(source.id)
        assert (rejected.status, rejected.version, rejected.report) == ("rejected", None, {"bad": 2})
        with catalog.commit("change", "orders") as tx:
            tx.add_source_files(source.id, [file])
        (applied,) = catalog.source_files(source.id)
        assert (applied.status, applied.version, applied.report) == ("applied", 3, {"rows": 3})
        with refused("INVARIANT_BROKEN"), catalog.commit("change", "orders") as tx:
            tx.add_source_files(source.id, [file])
        with refused("INVARIANT_BROKEN"):
            catalog.record_rejected_files(source.id, [file])
        with catalog.commit("change", "orders") as tx:
            tx.add_source_files(source.id, [NewSourceFile("a.csv", file.size, file.mtime_ns + 1)])
        assert len(catalog.source_files(source.id)) == 2
        both = {("a.csv", file.size, file.mtime_ns), ("a.csv", file.size, file.mtime_ns + 1)}
        assert catalog.seen_files(source.id, ["a.csv", "b.csv"]) == both
        assert catalog.seen_files(source.id, ["b.csv"]) == catalog.seen_files(source.id, []) == frozenset()
        assert catalog.seen_files(source.id, ["a.csv", *(f"{n}.csv" for n in range(40_000))]) == both
        assert catalog.seen_files(source.id + 1, ["a.csv"]) == frozenset()
        with catalog.commit("source", "orders") as tx:
            tx.drop_source(source.id)
        assert (catalog.sources(table.id), catalog.source_files(source.id)) == ((), ())

    def test_records_cannot_be_changed(self, catalog: Catalog) -> None:
        table = add_table(catalog)
        with pytest.raises(FrozenInstanceError):
            table.name = "other"  # type: ignore[misc]

    def test_references_are_enforced(self, catalog: Catalog) -> None:
        with refused("INVARIANT_BROKEN"), catalog.commit("refresh", "nothing") as tx:
            tx.add_refresh(999, 0, 1, 1.0, {})
        with refused("INVARIANT_BROKEN"), catalog.commit("change", "nothing") as tx:
            tx.add_segments("x'; --", [segment("a")])
        assert catalog.version() == 0

    def test_reads_that_share_a_transaction_see_one_state(self, catalog: Catalog, url: URL) -> None:
        orders = add_table(catalog)
        with Catalog.open(url) as writer, catalog.reading():
            version = catalog.version()
            assert catalog.segments(orders.owner) == ()
            with writer.commit("change", "orders") as tx:
                tx.add_segments(orders.owner, [segment("t1/x")])
                tx.add_table("customers", "{}", [])
            assert catalog.version() == version
            assert catalog.segments(orders.owner) == ()
            with refused("TABLE_UNKNOWN"):
                catalog.table("customers")
            with catalog.reading():
                assert catalog.table("orders") == catalog.table_by_id(orders.id) == orders
        assert catalog.version() == version + 1
        assert [found.path for found in catalog.segments(orders.owner)] == ["t1/x"]
        assert catalog.table("customers").name == "customers"

    def test_what_is_looked_at_beforehand_is_what_single_reads_find(self, catalog: Catalog) -> None:
        orders, view = add_table(catalog), add_view(catalog)
        empty = add_table(catalog, "empty")
        for at in range(4):
            with catalog.commit("change", "orders") as tx:
                tx.add_segments(orders.owner, [segment(f"t1/{at}")])
                tx.add_segments(f"v{view.id}", [segment(f"v1/{at}")])
        with catalog.commit("compact", "orders") as tx:
            tx.merge_segments(orders.owner, [s.id for s in catalog.segments(orders.owner)[:2]], [segment("t1/m")])
        owners = (orders.owner, empty.owner, f"v{view.id}")
        singly = [catalog.segments(owner) for owner in owners]
        catalog.look_at(["orders"])  # outside of a shared transaction there is nothing to keep it for
        for known in (["orders", "empty", "nobody"], []):
            with catalog.reading():
                catalog.look_at(known, (f"v{view.id}", "v999"))
                assert [catalog.segments(owner) for owner in owners] == singly
                assert (catalog.table("orders"), catalog.table_by_id(empty.id)) == (orders, empty)
                with refused("TABLE_UNKNOWN"):
                    catalog.table("nobody")

    def test_segments_added_at_once_come_back_in_their_order(self, catalog: Catalog) -> None:
        orders = add_table(catalog)
        given = [segment(f"t1/{at:03}", sign=-1 if at % 3 else 1, rows=at + 1) for at in range(120)]
        with catalog.commit("change", "orders") as tx:
            made = tx.add_segments(orders.owner, given)
            assert tx.add_segments(orders.owner, []) == ()
        assert [(m.path, m.sign, m.row_count) for m in made] == [(g.path, g.sign, g.row_count) for g in given]
        assert {m.id: m.path for m in made} == {s.id: s.path for s in catalog.segments(orders.owner)}

    def test_what_is_dropped_in_a_transaction_takes_nothing_more_in_it(self, catalog: Catalog) -> None:
        view = add_view(catalog)
        with refused("VIEW_DROPPED"), catalog.commit("refresh", "revenue") as tx:
            tx.add_segments(view.owner, [segment("v1/0")])
            tx.drop_view(view.id)
            tx.add_segments(view.owner, [segment("v1/1")])
        assert catalog.view("revenue") == view
        with refused("VIEW_DROPPED"), catalog.commit("refresh", "revenue") as tx:
            tx.drop_view(view.id)
            tx.add_forecasts(view.id, [], 0.0)
        assert catalog.segments(view.owner) == ()

    def test_the_names_of_views_are_those_of_one_state(self, catalog: Catalog) -> None:
        add_view(catalog)
        with catalog.reading():
            assert catalog.view_names() == {"revenue"}
            with ThreadPoolExecutor(1) as other:
                other.submit(add_view, catalog, "costs").result()
            assert catalog.view_names() == {"revenue"}
        assert catalog.view_names() == {"revenue", "costs"}

    def test_what_changed_since_a_version_is_told_by_table(self, catalog: Catalog) -> None:
        orders, other = add_table(catalog), add_table(catalog, "other")
        before = catalog.version()
        assert catalog.changed_since(before) == (before, frozenset())
        for table in (orders, other, orders):
            with catalog.commit("change", table.name) as tx:
                tx.add_segments(table.owner, [segment(f"{table.owner}/{tx.version}")])
        assert catalog.changed_since(before) == (before + 3, {"orders", "other"})
        assert catalog.changed_since(before + 2) == (before + 3, {"orders"})
        with catalog.commit("rename_table", "sales", {"from": "orders"}) as tx:
            tx.rename_table(orders.id, "sales")
        assert catalog.changed_since(before) == (before + 4, None)

    def test_a_shared_transaction_ends_with_an_error_too(self, catalog: Catalog) -> None:
        with pytest.raises(ZeroDivisionError), catalog.reading():
            raise ZeroDivisionError
        add_table(catalog)
        assert catalog.table("orders").name == "orders"

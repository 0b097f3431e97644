"""Forecasts in the catalog, on whichever database, and the upgrade of a catalog that has none."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest
from sqlalchemy import URL, inspect, text

from slackwater.storage import Catalog, TableRecord, schema
from slackwater.storage.forecasts import ArrivalRecord, DelayRecord, NewForecast, PaceRecord
from slackwater.storage.records import RENAME_TABLE
from tests.unit.catalog_suite import WithCatalog, add_table, add_view, refused

EXPECTED = NewForecast(1, "orders", 60.0, "fixed", 100.0, 80.5, 120.0, 0.25, True, "said so", {"model": {"a": [1]}})


def change(catalog: Catalog, table: TableRecord, inserted: int, deleted: int = 0) -> int:
    with catalog.commit("change", table.name, {"inserted": inserted, "deleted": deleted}) as tx:
        return tx.version


def rename(catalog: Catalog, table: TableRecord, name: str) -> TableRecord:
    with catalog.commit(RENAME_TABLE, name, {"from": table.name}) as tx:
        return tx.rename_table(table.id, name)


def as_version_1(catalog: Catalog) -> None:
    """Make a catalog what the first release wrote."""
    with catalog.database.write() as connection:
        for name in ("forecasts", "paces", "delays"):
            connection.execute(text(f"DROP TABLE {name}"))
        connection.execute(text("DROP INDEX ix_commits_subject"))
        connection.execute(text("UPDATE meta SET value = '1' WHERE key = 'schema_version'"))


class ForecastSuite(WithCatalog):
    def test_a_forecast_is_recorded_and_settled(self, catalog: Catalog) -> None:
        orders, other, view = add_table(catalog), add_table(catalog, "other"), add_view(catalog)
        with catalog.commit("refresh", view.name) as tx:
            tx.add_forecasts(view.id, [EXPECTED, replace(EXPECTED, table_id=other.id, table_name="other")], at=5.0)
            made = tx.version
        found = {one.table_name: one for one in catalog.forecasts(view.id)}
        one = found["orders"]
        assert {name: getattr(one, name) for name in EXPECTED.__slots__} == {
            name: getattr(EXPECTED, name) for name in EXPECTED.__slots__
        }
        assert (one.made_version, one.made_at, one.actual_rows, one.settled_version) == (made, 5.0, None, None)

        with catalog.commit("refresh", view.name) as tx:
            tx.settle_forecasts(view.id, {orders.id: (90, 30)}, at=6.5)
            tx.add_forecasts(view.id, [EXPECTED], at=6.5)
            settled = tx.version
        newest, *older = catalog.forecasts(view.id)
        assert newest.actual_rows is None
        by_name = {one.table_name: one for one in older}
        assert (by_name["orders"].actual_rows, by_name["orders"].actual_deleted) == (90, 30)
        assert (by_name["other"].actual_rows, by_name["other"].actual_deleted) == (0, 0)
        assert {(one.settled_version, one.settled_at) for one in older} == {(settled, 6.5)}
        assert catalog.forecasts(view.id, limit=1) == (newest,)

    def test_a_forecast_that_waits_is_replaced_and_others_views_stay(self, catalog: Catalog) -> None:
        add_table(catalog)
        one, two = add_view(catalog), add_view(catalog, "two")
        for view in (one, two, one):
            with catalog.commit("refresh", view.name) as tx:
                tx.add_forecasts(view.id, [EXPECTED], at=1.0)
        assert (len(catalog.forecasts(one.id)), len(catalog.forecasts(two.id))) == (1, 1)
        with catalog.commit("refresh", "x") as tx:
            tx.settle_forecasts(one.id, {}, at=2.0)
        assert catalog.forecasts(two.id)[0].settled_version is None

    def test_a_failed_refresh_leaves_its_forecast_waiting(self, catalog: Catalog) -> None:
        add_table(catalog)
        view = add_view(catalog)
        with catalog.commit("refresh", view.name) as tx:
            tx.add_forecasts(view.id, [EXPECTED], at=1.0)
        before = catalog.forecasts(view.id)
        with refused("TABLE_EXISTS"), catalog.commit("refresh", view.name) as tx:
            tx.settle_forecasts(view.id, {}, at=2.0)
            tx.add_forecasts(view.id, [EXPECTED], at=2.0)
            tx.add_table("orders", "{}")
        assert catalog.forecasts(view.id) == before

    def test_arrivals_are_a_tables_own(self, catalog: Catalog) -> None:
        first = add_table(catalog)
        change(catalog, first, 1)
        with catalog.commit("drop_table", first.name) as tx:
            tx.drop_table(first.id)
        orders, other = add_table(catalog), add_table(catalog, "other")
        versions = [change(catalog, orders, 10), change(catalog, other, 99), change(catalog, orders, 5, 3)]
        found = catalog.arrivals(orders, after=0, limit=10)
        assert [(a.version, a.inserted, a.deleted, a.rows) for a in found] == [
            (versions[0], 10, 0, 10),
            (versions[2], 5, 3, 8),
        ]
        assert isinstance(found[0], ArrivalRecord)
        assert found[0].at <= found[1].at
        assert catalog.arrivals(orders, after=versions[0], limit=10) == found[1:]
        assert catalog.arrivals(orders, after=0, limit=1) == found[1:]

    def test_arrivals_follow_a_table_through_its_names(self, catalog: Catalog) -> None:
        orders, other = add_table(catalog), add_table(catalog, "other")
        versions = [change(catalog, orders, 1), change(catalog, other, 50)]
        orders = rename(catalog, orders, "sales")
        versions.append(change(catalog, orders, 2))
        # The names change hands: what came to one of them is not what came to the other.
        other = rename(catalog, other, "orders")
        versions.append(change(catalog, other, 60))
        orders = rename(catalog, orders, "other")
        versions.append(change(catalog, orders, 3))
        assert [a.rows for a in catalog.arrivals(orders, 0, 10)] == [1, 2, 3]
        assert [a.rows for a in catalog.arrivals(other, 0, 10)] == [50, 60]
        assert [a.rows for a in catalog.arrivals(orders, versions[0], 10)] == [2, 3]
        assert [[a.rows for a in catalog.arrivals(orders, 0, limit)] for limit in (1, 2)] == [[3], [2, 3]]
        assert [a.version for a in catalog.arrivals(other, 0, 10)] == [versions[1], versions[3]]

    def test_a_pace_is_the_last_one_reported_and_goes_with_its_table(self, catalog: Catalog, url: URL) -> None:
        table = add_table(catalog)
        assert catalog.pace(table.id) is None
        for pace in (PaceRecord(table.id, 10.0, 500, 1.0), PaceRecord(table.id, 2.5, None, 2.0)):
            catalog.report_pace(pace)
            with Catalog.open(url) as again:
                assert again.pace(table.id) == pace
        version = catalog.version()
        with refused("TABLE_UNKNOWN"):
            catalog.report_pace(PaceRecord(table.id + 1, 1.0, None, 1.0))
        assert catalog.version() == version
        with catalog.commit("change", "orders") as tx:
            tx.add_delays([DelayRecord(table.id, "ts", 1, [[1.0, 2]])])
            tx.drop_table(table.id)
        assert (catalog.pace(table.id), catalog.delays(table.id, "ts", 0, 10)) == (None, ())

    def test_delays_are_kept_by_version_and_measure(self, catalog: Catalog) -> None:
        table = add_table(catalog)
        records = [DelayRecord(table.id, "ts", v, [[0.5, v], [60.0, 1]]) for v in (1, 2, 3)]
        with catalog.commit("change", "orders") as tx:
            tx.add_delays([*records, DelayRecord(table.id, "other", 1, [])])
        with catalog.commit("change", "orders") as tx:
            tx.add_delays([replace(records[0], points=[])])  # stays as it is
        assert catalog.delays(table.id, "ts", 0, 10) == tuple(records)
        assert catalog.delays(table.id, "ts", 1, 1) == tuple(records[2:])

    def test_refresh_points_are_the_last_ones_oldest_first(self, catalog: Catalog) -> None:
        view = add_view(catalog)
        for at in (1.0, 2.0, 3.0):
            with catalog.commit("refresh", view.name) as tx:
                tx.add_refresh(view.id, 0, tx.version, 0.1, {}, at=at)
        assert catalog.refresh_points(view.id, 2) == ((3, 2.0), (4, 3.0))

    def test_a_writer_upgrades_an_old_catalog_and_keeps_what_it_holds(self, catalog: Catalog, url: URL) -> None:
        table, view = add_table(catalog), add_view(catalog)
        change(catalog, table, 7)
        as_version_1(catalog)
        with Catalog.open(url) as upgraded:
            assert upgraded.schema_version == schema.SCHEMA_VERSION
            assert (upgraded.version(), upgraded.table("orders"), upgraded.view("revenue")) == (3, table, view)
            assert [a.rows for a in upgraded.arrivals(table, 0, 10)] == [7]
            with upgraded.commit("refresh", view.name) as tx:
                tx.add_forecasts(view.id, [EXPECTED], at=1.0)
            upgraded.report_pace(PaceRecord(table.id, 1.0, None, 1.0))
            with upgraded.database.read() as connection:
                indexes = {index["name"] for index in inspect(connection).get_indexes("commits")}
            assert "ix_commits_subject" in indexes
        with Catalog.open(url) as again:
            assert len(again.forecasts(view.id)) == 1

    def test_a_reader_of_an_old_catalog_changes_nothing(self, catalog: Catalog, url: URL) -> None:
        table, view = add_table(catalog), add_view(catalog)
        change(catalog, table, 7)
        as_version_1(catalog)
        with Catalog.open(url, create=False) as reader:
            assert reader.schema_version == 1
            assert (reader.forecasts(view.id), reader.pace(table.id), reader.delays(table.id, "ts", 0, 9)) == (
                (),
                None,
                (),
            )
            assert [a.rows for a in reader.arrivals(table, 0, 10)] == [7]
            with reader.database.read() as connection:
                assert "forecasts" not in inspect(connection).get_table_names()
                assert schema.schema_version(connection) == 1

    def test_an_upgrade_that_fails_leaves_the_old_catalog(
        self, catalog: Catalog, url: URL, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        add_table(catalog)
        as_version_1(catalog)

        def fail(*_: object, **__: object) -> None:
            raise RuntimeError

        monkeypatch.setattr(schema.delays, "create", fail)
        with pytest.raises(RuntimeError):
            Catalog.open(url)
        monkeypatch.undo()
        with catalog.database.read() as connection:
            assert "forecasts" not in inspect(connection).get_table_names()
        with Catalog.open(url) as upgraded:
            assert upgraded.table("orders")

    def test_two_processes_may_upgrade_at_once(self, catalog: Catalog, url: URL) -> None:
        as_version_1(catalog)
        code = "import sys; from slackwater.storage import Catalog; print(Catalog.open(sys.argv[1]).schema_version)"
        arguments = [sys.executable, "-c", code, url.render_as_string(hide_password=False)]
        running = [subprocess.Popen(arguments, stdout=subprocess.PIPE) for _ in range(2)]
        assert [int(process.communicate(timeout=60)[0]) for process in running] == [schema.SCHEMA_VERSION] * 2

    def test_a_version_2_catalog_without_forecasts_is_damaged(self, catalog: Catalog, url: URL) -> None:
        with catalog.database.write() as connection:
            connection.execute(text("DROP TABLE forecasts"))
        with refused("WAREHOUSE_INVALID"):
            Catalog.open(url)

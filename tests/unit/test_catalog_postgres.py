"""The catalog and the lease on PostgreSQL: the same tests as on SQLite, and what only a server can do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import URL, text

from slackwater.errors import SlackwaterError
from slackwater.storage import Catalog, database
from slackwater.storage.directory import open_catalog
from tests.postgres import PostgresServer, running_postgres
from tests.unit.catalog_suite import CatalogSuite, add_table, refused, segment
from tests.unit.durability_suite import DurabilitySuite
from tests.unit.forecast_suite import ForecastSuite
from tests.unit.lease_suite import LeaseSuite
from tests.unit.segment_suite import SegmentSuite

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture
def url(server: PostgresServer) -> URL:
    return server.new_database()


class TestPostgresCatalog(CatalogSuite):
    pass


class TestPostgresDurability(DurabilitySuite):
    pass


class TestPostgresForecasts(ForecastSuite):
    pass


class TestPostgresSegments(SegmentSuite):
    examples = 25


class TestPostgresLease(LeaseSuite):
    pass


def test_a_wrong_password_is_said_without_the_password(server: PostgresServer) -> None:
    for wrong in (server.url().set(password="hunter2"), server.url("no_such_database")):
        with pytest.raises(SlackwaterError) as caught:
            Catalog.open(wrong)
        error = caught.value
        assert error.code == "CATALOG_UNREACHABLE"
        assert error.__cause__ is None
        said = f"{error} {error.to_dict()}"
        assert "hunter2" not in said
        assert server.password not in said


def test_tables_of_others_stay_beside_ours_unless_they_have_our_names(server: PostgresServer) -> None:
    url = server.new_database()
    with server.connect(str(url.database)) as connection:
        connection.execute("CREATE TABLE photos (id INT)")
        with Catalog.open(url) as catalog:
            add_table(catalog)
    other = server.new_database()
    with server.connect(str(other.database)) as connection:
        connection.execute("CREATE TABLE sources (id INT)")
    with refused("WAREHOUSE_INVALID"):
        Catalog.open(other)


def test_two_warehouses_share_a_database_by_schema(server: PostgresServer) -> None:
    url = server.new_database()
    with server.connect(str(url.database)) as connection:
        connection.execute("CREATE SCHEMA one")
        connection.execute("CREATE SCHEMA two")
    urls = [url.set(query={"options": f"-csearch_path={name}"}) for name in ("one", "two")]
    with Catalog.open(urls[0]) as one, Catalog.open(urls[1]) as two:
        add_table(one)
        assert one.warehouse_id != two.warehouse_id
        assert (one.version(), two.version()) == (1, 0)


def test_a_strict_server_default_does_not_break_versions(server: PostgresServer) -> None:
    url = server.new_database()
    with server.connect() as connection:
        connection.execute(
            f"ALTER DATABASE {url.database} SET default_transaction_isolation = 'repeatable read'"  # type: ignore[arg-type,unused-ignore]
        )
    with Catalog.open(url) as catalog:
        DurabilitySuite().test_two_writers_never_take_the_same_version(catalog, url)


def test_waiting_for_a_lock_ends(url: URL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.2)
    with Catalog.open(url) as catalog:
        with catalog.commit("change", "x"), refused("CATALOG_BUSY"), catalog.commit("change", "y"):
            pass
        assert catalog.version() == 1


def test_a_connection_lost_in_the_middle_is_coded_and_recovered(server: PostgresServer, url: URL) -> None:
    with Catalog.open(url) as catalog:
        table = add_table(catalog)

        def hang_up() -> None:
            with server.connect() as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s", [url.database]
                )

        with refused("CATALOG_UNREACHABLE"), catalog.commit("change", "orders") as tx:
            hang_up()
            tx.add_segments(table.owner, [segment("t1/a")])
        hang_up()
        assert catalog.version() == 1
        with catalog.commit("change", "orders") as tx:
            assert tx.version == 2


def test_a_connection_lost_during_the_commit_leaves_the_outcome_open(server: PostgresServer, url: URL) -> None:
    # A deferred check that hangs up stands for a network that fails after COMMIT was sent.
    with Catalog.open(url) as catalog:
        with catalog.database.write() as connection:
            connection.execute(
                text(
                    "CREATE FUNCTION hang_up() RETURNS trigger LANGUAGE plpgsql AS "
                    "$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(5); RETURN NEW; END $$"
                )
            )
            connection.execute(
                text(
                    "CREATE CONSTRAINT TRIGGER hang_up AFTER INSERT ON commits "
                    "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION hang_up()"
                )
            )
        with (
            pytest.raises(SlackwaterError, match="may or may not have happened") as caught,
            catalog.commit("change", "x"),
        ):
            pass
        assert caught.value.code == "CATALOG_UNREACHABLE"
        assert caught.value.details["committed"] == "unknown"
        assert catalog.version() == 0


def test_a_forgotten_url_is_refused(server: PostgresServer, url: URL, tmp_path: Path) -> None:
    with open_catalog(tmp_path / "wh", url) as catalog:
        table = add_table(catalog)
        with catalog.commit("change", "orders") as tx:
            tx.add_segments(table.owner, [segment("data/t1/a")])
    (tmp_path / "wh/data/t1/a").mkdir(parents=True)
    with refused("WAREHOUSE_INVALID"):
        open_catalog(tmp_path / "wh")
    empty = server.new_database()
    with refused("WAREHOUSE_INVALID"):
        open_catalog(tmp_path / "wh", empty)
    with refused("WAREHOUSE_INVALID"):
        Catalog.open(empty, create=False)  # none was made
    assert not (tmp_path / "wh/catalog.db").exists()
    with open_catalog(tmp_path / "wh", url) as catalog:
        assert catalog.all_paths() == {"data/t1/a"}


def test_a_server_that_went_away_is_coded() -> None:
    with running_postgres() as server:
        catalog = Catalog.open(server.url())
    with refused("CATALOG_UNREACHABLE"):
        catalog.version()
    catalog.close()

"""A real application's PostgreSQL database comes back exactly, whatever the turn did to it."""

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
import sqlalchemy

from postgres import PG_DUMP, PostgresServer, dumped, run_psql
from shop_database import MIGRATION, script
from takeback.errors import ParticipantError, UsageError
from takeback.participants.postgres.participant import PostgresDatabase, configured
from takeback.participants.postgres.server import require_near
from takeback.participants.registry import without_secrets
from takeback.testing.shelves import FolderShelf


class Undo:
    """A participant and its shelf, used as a project uses them."""

    def __init__(self, url: str, folder: Path, **options: object) -> None:
        self.shelf = FolderShelf(str(folder / "shelf"))
        named = {"url": url, "pg_dump": PG_DUMP, "seconds": 60, **options}
        self.participant: PostgresDatabase = configured("app", named)
        self.participant.attach(self.shelf)
        self._number = 0

    def capture(self) -> str:
        return self.shelf.capture(self.participant)

    def restore(self, token: str) -> None:
        self.prepare(token)
        self.participant.commit(str(self._number))

    def prepare(self, token: str) -> None:
        self._number += 1
        self.capture()
        self.participant.describe(token)
        self.participant.prepare(str(self._number), token)


def migrate_with_an_orm(url: str) -> None:
    """What an agent does in Python: it makes tables, and drops others."""
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    meta = sqlalchemy.MetaData()
    customers = sqlalchemy.Table("customers", meta, autoload_with=engine)
    sqlalchemy.Table(
        "profiles",
        meta,
        sqlalchemy.Column("id", sqlalchemy.Integer, primary_key=True),
        sqlalchemy.Column("customer", sqlalchemy.ForeignKey("customers.id")),
        sqlalchemy.Column("mood", sqlalchemy.Enum("good", "bad", name="mood")),
    )
    meta.create_all(engine)
    with engine.begin() as session:
        session.execute(customers.update().values(note="by the ORM"))
        session.execute(sqlalchemy.text("DROP TABLE settings"))
    engine.dispose()


def check_migration(url: str, folder: Path, rows: int) -> None:
    """A database of so many rows, a migration, undo, redo, undo."""
    run_psql(url, script(rows))
    undo = Undo(url, folder)
    before, old = undo.capture(), dumped(url)
    run_psql(url, MIGRATION)
    migrate_with_an_orm(url)
    after, new = undo.capture(), dumped(url)
    assert after != before
    undo.restore(before)
    assert dumped(url) == old
    assert undo.capture() == before
    undo.restore(after)
    assert dumped(url) == new
    undo.restore(before)
    assert dumped(url) == old


def test_a_destructive_migration_is_taken_back(own_url: str, tmp_path: Path) -> None:
    """It added tables, types and foreign keys, dropped others; dumps before and after are equal."""
    check_migration(own_url, tmp_path, 20)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_so_is_one_of_a_large_database(own_url: str, tmp_path: Path) -> None:
    """The same with more than 100,000 rows."""
    check_migration(own_url, tmp_path, 4_200)


def test_rows_come_back_into_the_same_tables(own_url: str, tmp_path: Path) -> None:
    """Where only rows differ: dumps are equal, and prepared statements on an enum go on."""
    run_psql(own_url, script(20).replace("CREATE RULE", "--"))
    undo = Undo(own_url, tmp_path)
    before, old = undo.capture(), dumped(own_url)
    with psycopg.connect(own_url, autocommit=True) as session:
        query = "SELECT id, status FROM sales.orders ORDER BY id"
        rows = session.execute(query, prepare=True).fetchall()
        run_psql(own_url, "UPDATE sales.orders SET status = 'back', net = 0; DELETE FROM prices")
        run_psql(own_url, "SELECT nextval('sales.invoice_number'); INSERT INTO tree VALUES (99, 3)")
        run_psql(own_url, "DELETE FROM sales.events WHERE at < '2025-08-01'")
        assert session.execute(query, prepare=True).fetchall() != rows
        undo.restore(before)
        assert session.execute(query, prepare=True).fetchall() == rows
    assert dumped(own_url) == old


def test_a_dropped_schema_comes_back(url: str, tmp_path: Path) -> None:
    """`DROP SCHEMA public CASCADE; CREATE SCHEMA public`, as agents do to begin anew."""
    run_psql(url, "CREATE TABLE t (id serial PRIMARY KEY); INSERT INTO t VALUES (1), (2)")
    undo = Undo(url, tmp_path)
    before, old = undo.capture(), dumped(url)
    run_psql(url, "DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE TABLE u (x int)")
    after, new = undo.capture(), dumped(url)
    undo.restore(before)
    assert dumped(url) == old
    undo.restore(after)
    assert dumped(url) == new


def test_an_owner_who_is_no_superuser_restores(
    postgres: PostgresServer, own_url: str, tmp_path: Path
) -> None:
    """A role that owns its database needs no more."""
    name = own_url.partition("?")[0].rpartition("/")[2]
    postgres.admin(f"CREATE ROLE {name}_dev LOGIN")
    postgres.admin(f"ALTER DATABASE {name} OWNER TO {name}_dev")
    owned = own_url.replace("postgres:@", f"{name}_dev@")
    run_psql(owned, "CREATE TABLE t (id serial PRIMARY KEY, up int REFERENCES t, note text)")
    run_psql(owned, "INSERT INTO t VALUES (1, 1, 'a'), (2, 1, 'b')")
    undo = Undo(owned, tmp_path)
    before, old = undo.capture(), dumped(own_url)
    run_psql(owned, "UPDATE t SET note = 'c'; INSERT INTO t VALUES (3, 2, 'd')")
    undo.restore(before)
    assert dumped(own_url) == old


def test_an_idle_transaction_that_blocks_is_named(url: str, tmp_path: Path) -> None:
    """Nothing moves; when it has ended, the same restore works."""
    run_psql(url, "CREATE TABLE t (x int); INSERT INTO t VALUES (1)")
    undo = Undo(url, tmp_path)
    before = undo.capture()
    run_psql(url, "UPDATE t SET x = 2")
    with psycopg.connect(url, application_name="my console") as other:
        assert other.execute("SELECT x FROM t").fetchone() == (2,)
        undo.participant._patience = 0.5
        with pytest.raises(ParticipantError, match=r"by process \d+ \(`my console`, .*idle"):
            undo.prepare(before)
        assert other.execute("SELECT x FROM t").fetchone() == (2,)
    undo.restore(before)
    with psycopg.connect(url) as other:
        assert other.execute("SELECT x FROM t").fetchone() == (1,)


def test_a_write_behind_the_safety_capture_is_not_lost(url: str, tmp_path: Path) -> None:
    """What nobody captured is not restored over: nothing moves."""
    run_psql(url, "CREATE TABLE t (x int)")
    undo = Undo(url, tmp_path)
    before = undo.capture()
    run_psql(url, "INSERT INTO t VALUES (1)")
    undo.capture()
    run_psql(url, "INSERT INTO t VALUES (2)")
    with pytest.raises(ParticipantError, match="was written while its restore was prepared"):
        undo.participant.prepare("late", before)
    with psycopg.connect(url) as other:
        assert other.execute("SELECT count(*) FROM t").fetchone() == (2,)


def test_nobody_is_in_the_way_of_dropdb(
    postgres: PostgresServer, own_url: str, tmp_path: Path
) -> None:
    """The connection that stays open is not to the database: an agent may drop or copy it."""
    name = own_url.partition("?")[0].rpartition("/")[2]
    run_psql(own_url, "CREATE TABLE t (x int)")
    undo = Undo(own_url, tmp_path)
    undo.capture()
    postgres.admin(f"CREATE DATABASE {name}_copy TEMPLATE {name}")
    postgres.admin(f"DROP DATABASE {name}")
    with pytest.raises(ParticipantError, match=f"the database `{name}` is not there"):
        undo.capture()
    postgres.admin(f"ALTER DATABASE {name}_copy RENAME TO {name}")
    undo.capture()


def test_a_dump_takes_what_did_not_change_from_the_store(url: str, tmp_path: Path) -> None:
    """One new row in a large table stores little."""
    run_psql(url, "CREATE TABLE t (x int, note text)")
    run_psql(url, "INSERT INTO t SELECT n, md5(n::text) FROM generate_series(1, 20000) n")
    undo = Undo(url, tmp_path)
    undo.capture()
    first, undo.shelf.stored = undo.shelf.stored, 0
    run_psql(url, "INSERT INTO t VALUES (0, 'new')")
    undo.capture()
    assert undo.shelf.stored < first / 4


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"url": "postgresql://me:secret@localhost/app"}, "holds a password"),
        ({"url": "postgresql://db.example.org/app"}, "on another machine, `db.example.org`"),
        ({"url": "host=127.0.0.1,10.0.0.1 dbname=app"}, "on another machine, `10.0.0.1`"),
        ({"url": "postgresql://me@[2001:db8::1]:5432/app"}, "on another machine"),
        ({"url": "postgresql:///app?host=db.example.org"}, "on another machine"),
        ({"url": "host=localhost password=secret dbname=app"}, "holds a password"),
        ({"url": "nonsense of somebody"}, "cannot be read"),
        ({"url": ""}, "needs the address"),
        ({"url": "dbname=app", "password": "x"}, "unknown setting `password`"),
    ],
)
def test_what_is_refused_in_settings(options: dict[str, object], told: str) -> None:
    """A password, and another machine that nobody allowed."""
    with pytest.raises(UsageError, match=told):
        configured("app", options).require_usable()
    if "on another machine" in told:
        with pytest.raises(UsageError, match=told):
            configured("app", options)  # which a door asks before it stores anything
    configured("app", {"url": "postgresql://db.example.org/app", "remote": True}).require_usable()


def test_an_old_pg_dump_is_named(url: str, tmp_path: Path) -> None:
    """It says which version is needed."""
    old = tmp_path / "pg_dump"
    old.write_text("#!/bin/sh\necho 'pg_dump (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)'\n")
    old.chmod(0o755)
    with pytest.raises(ParticipantError, match="is of version 15, and PostgreSQL 16 needs"):
        Undo(url, tmp_path, pg_dump=str(old)).capture()
    with pytest.raises(ParticipantError, match="cannot be run"):
        Undo(url, tmp_path, pg_dump="/nowhere/pg_dump").capture()


def test_a_password_comes_from_a_variable(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings name the variable; without it, the database is left out and named."""
    run_psql(url, "CREATE TABLE t (x int)")
    undo = Undo(url, tmp_path, variable="APP_PASSWORD")
    with pytest.raises(ParticipantError, match="`APP_PASSWORD` with the password is not set"):
        undo.capture()
    monkeypatch.setenv("APP_PASSWORD", "secret: \\")
    undo.capture()
    assert not list((tmp_path / "shelf" / "way").iterdir())


def test_a_password_is_not_on_the_disk_nor_in_the_list_of_processes(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while pg_dump runs, which somebody may kill together with us."""
    run_psql(url, "CREATE TABLE t (x int)")
    monkeypatch.setenv("APP_PASSWORD", "hunter2")
    spy, seen = tmp_path / "pg_dump", tmp_path / "seen"
    spy.write_text(
        f"""#!/bin/sh
echo "$@" >> {seen}
cat {tmp_path}/shelf/way/* >> {seen}
exec {PG_DUMP} "$@"
"""
    )
    spy.chmod(0o755)
    Undo(url, tmp_path, variable="APP_PASSWORD", pg_dump=str(spy)).capture()
    assert "--format=plain" in seen.read_text()
    assert "hunter2" not in seen.read_text()


@pytest.mark.parametrize(
    "url", ["postgresql://u:hunter2@[::1/db", "postgresql://u:hunter2%zz@h/db", "hunter2"]
)
def test_no_message_quotes_a_password(url: str) -> None:
    """Where libpq quotes what it cannot read, we don't."""
    with pytest.raises(UsageError, match="cannot be read") as problem:
        without_secrets({"type": "postgres", "url": url})
    assert "hunter2" not in str(problem.value)
    with pytest.raises(UsageError) as problem:
        require_near(url, remote=False)
    assert "hunter2" not in str(problem.value)


def test_the_driver_is_loaded_when_it_is_needed() -> None:
    """Who only opens a project that names a database does not wait for it."""
    code = (
        "import sys\n"
        "from takeback.participants import registry\n"
        "found = registry.configured('app', {'type': 'postgres', 'url': 'postgresql:///app'})\n"
        "assert 'psycopg' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql:///app",
        "postgresql://me@localhost:5433,127.0.0.1/app",
        "postgresql://me@[::1]/app",
        "postgresql://%2Fvar%2Frun%2Fpostgresql/app",
        "postgresql:///app?host=/var/run/postgresql",
        "host=/tmp dbname=app",
        "service=app",
    ],
)
def test_this_machine_is_not_refused(url: str) -> None:
    """A socket, the loopback, and what a service file may say."""
    configured("app", {"url": url}).require_usable()

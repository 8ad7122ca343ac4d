"""SQLite databases as participants: real files, real connections, real locks."""

import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from takeback.errors import ParticipantError, UsageError
from takeback.participants.sqlite.participant import SqliteDatabase, configured
from takeback.testing import participant_suite
from takeback.testing.shelves import FolderShelf


class Rows:
    """A database with a few hundred rows, whose application keeps a connection."""

    def __init__(self, folder: str, mode: str) -> None:
        self.path = f"{folder}/app.db"
        self._db = sqlite3.connect(self.path, isolation_level=None, timeout=0.1)
        self._db.execute(f"PRAGMA journal_mode = {mode}")
        self._db.execute("PRAGMA synchronous = OFF")

    def participant(self) -> SqliteDatabase:
        return SqliteDatabase("app", self.path)

    def write(self, number: int) -> None:
        self._db.execute("BEGIN")
        for (table,) in self._db.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'sqlite_sequence'"
        ).fetchall():
            self._db.execute(f"DROP TABLE {table}")
        self._db.execute(f"CREATE TABLE state{number} (id INTEGER PRIMARY KEY, note TEXT)")
        rows = [(f"{number}: {row}" * 9,) for row in range(200)]
        self._db.executemany(f"INSERT INTO state{number} (note) VALUES (?)", rows)
        self._db.execute(f"PRAGMA user_version = {number + 1}")
        self._db.execute("COMMIT")

    def read(self) -> object:
        try:
            return [*self._db.iterdump(), self._db.execute("PRAGMA user_version").fetchone()]
        except sqlite3.OperationalError as problem:
            raise participant_suite.Blocked from problem

    def close(self) -> None:
        self._db.close()


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
@pytest.mark.parametrize("promise", participant_suite.PROMISES, ids=lambda each: each.__name__)
def test_it_keeps_every_promise(
    promise: participant_suite.Promise, mode: str, tmp_path: Path
) -> None:
    """In both ways in which SQLite logs transactions, with a connection open all the time."""
    participant_suite.check_one(promise, lambda folder: Rows(folder, mode), str(tmp_path))


class Undo:
    """A participant and its shelf, used as a project uses them."""

    def __init__(self, path: Path) -> None:
        self.shelf = FolderShelf(str(path.parent / "shelf"))
        self.participant = SqliteDatabase("app", path, patience=0.3)
        self.participant.attach(self.shelf)

    def capture(self) -> str:
        return self.shelf.capture(self.participant)

    def restore(self, token: str) -> None:
        self.capture()
        self.participant.describe(token)
        self.participant.prepare("one", token)
        self.participant.commit("one")


def make(path: Path, *statements: str) -> None:
    """Run statements on a database, and close it."""
    db = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        db.execute(statement)
    db.close()


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    db = sqlite3.connect(path)
    try:
        return db.execute(query).fetchall()
    finally:
        db.close()


def test_nothing_is_copied_if_nothing_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once its stamps are old enough to be believed, a look at them is enough."""
    path = tmp_path / "app.db"
    make(path, "PRAGMA journal_mode = WAL", "CREATE TABLE t (x)")
    past = time.time_ns() - 10**9
    os.utime(path, ns=(past, past))
    time.sleep(0.15)
    undo = Undo(path)
    undo.capture()
    token = undo.capture()
    assert {each.name for each in tmp_path.iterdir()} == {"app.db", "shelf"}
    monkeypatch.setattr(SqliteDatabase, "_copy_out", None)
    assert undo.capture() == token
    make(path, "INSERT INTO t VALUES (1)")
    with pytest.raises(TypeError):
        undo.capture()


def test_equal_pages_are_stored_once(tmp_path: Path) -> None:
    """One new row in a large table stores little."""
    path = tmp_path / "app.db"
    many = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 50000)"
    make(path, "CREATE TABLE t (x, y)", f"INSERT INTO t {many} SELECT n, hex(n * 977) FROM r")
    undo = Undo(path)
    undo.capture()
    first, undo.shelf.stored = undo.shelf.stored, 0
    make(path, "INSERT INTO t VALUES (0, 'new')")
    undo.capture()
    assert 0 < undo.shelf.stored < first / 4


def test_what_belongs_to_the_database_comes_back(tmp_path: Path) -> None:
    """Schema, numbers, encoding, page layout after a VACUUM; the journal mode is the live one."""
    path = tmp_path / "app.db"
    make(
        path,
        "PRAGMA encoding = 'UTF-16le'",
        "PRAGMA user_version = 7",
        "PRAGMA application_id = 9",
        "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, note TEXT)",
        "CREATE TRIGGER g AFTER INSERT ON t BEGIN UPDATE t SET note = 'made'; END",
        "CREATE VIEW v AS SELECT note FROM t",
        "INSERT INTO t (note) VALUES ('a'), ('b')",
        "DELETE FROM t WHERE id = 2",
    )
    db = sqlite3.connect(path)
    before = list(db.iterdump())
    db.close()
    undo = Undo(path)
    token = undo.capture()
    make(path, "DROP TABLE t", "PRAGMA user_version = 8", "PRAGMA application_id = 1", "VACUUM")
    make(path, "PRAGMA journal_mode = WAL")
    undo.restore(token)
    db = sqlite3.connect(path)
    assert list(db.iterdump()) == before
    settings = [
        db.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("user_version", "application_id", "encoding", "journal_mode")
    ]
    assert settings == [7, 9, "UTF-16le", "wal"]
    assert db.execute("INSERT INTO t (note) VALUES ('c') RETURNING id").fetchone() == (3,)
    db.close()


def test_a_deleted_database_comes_back_and_a_new_one_is_emptied(tmp_path: Path) -> None:
    """Where there was none, an empty one is left."""
    path = tmp_path / "app.db"
    undo = Undo(path)
    none = undo.capture()
    make(path, "PRAGMA journal_mode = WAL", "CREATE TABLE t (x)", "INSERT INTO t VALUES (1)")
    token = undo.capture()
    undo.restore(none)
    assert rows(path, "SELECT * FROM sqlite_master") == []
    assert undo.capture() == none
    path.unlink()
    undo.restore(token)
    assert rows(path, "SELECT x FROM t") == [(1,)]
    assert rows(path, "PRAGMA journal_mode") == [("wal",)]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_program_that_blocks_is_named(tmp_path: Path) -> None:
    """Another process writes for long: it is named, and nothing moves."""
    path = tmp_path / "app.db"
    make(path, "PRAGMA journal_mode = WAL", "CREATE TABLE t (x)")
    undo = Undo(path)
    token = undo.capture()
    make(path, "INSERT INTO t VALUES (1)")
    code = (
        "import sqlite3, sys; db = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "db.execute('BEGIN IMMEDIATE'); print('ready', flush=True); sys.stdin.read()"
    )
    words = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"ready\n"
        with pytest.raises(ParticipantError) as told:
            undo.restore(token)
    if sys.platform == "linux":
        assert f"is locked by {os.path.basename(sys.executable)} ({other.pid})" in str(told.value)
    assert rows(path, "SELECT x FROM t") == [(1,)]
    undo.restore(token)
    assert rows(path, "SELECT x FROM t") == []


def test_a_write_behind_the_safety_capture_is_not_lost(tmp_path: Path) -> None:
    """What nobody captured is not restored over: nothing moves."""
    path = tmp_path / "app.db"
    make(path, "CREATE TABLE t (x)")
    undo = Undo(path)
    token = undo.capture()
    make(path, "INSERT INTO t VALUES (1)")
    undo.capture()
    make(path, "INSERT INTO t VALUES (2)")
    with pytest.raises(ParticipantError, match="was written while its restore was prepared"):
        undo.participant.prepare("late", token)
    assert rows(path, "SELECT x FROM t") == [(1,), (2,)]


def test_a_changed_page_size_in_wal_mode_is_refused(tmp_path: Path) -> None:
    """SQLite cannot do it; the error says what to do."""
    path = tmp_path / "app.db"
    make(path, "PRAGMA page_size = 4096", "CREATE TABLE t (x)")
    undo = Undo(path)
    token = undo.capture()
    make(path, "PRAGMA page_size = 8192", "VACUUM", "PRAGMA journal_mode = WAL")
    with pytest.raises(ParticipantError, match="its page size changed"):
        undo.restore(token)
    make(path, "PRAGMA journal_mode = DELETE")
    undo.restore(token)
    assert rows(path, "SELECT * FROM t") == []


def test_settings_need_a_whole_path() -> None:
    """A process may be anywhere."""
    assert configured("app", {"type": "sqlite", "path": "/srv/app.db"}).files[0] == "/srv/app.db"
    for options in ({}, {"path": "app.db"}, {"path": "/srv/app.db", "limit": 1}):
        with pytest.raises(UsageError):
            configured("app", options)

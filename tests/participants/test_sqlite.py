"""SQLite databases as participants: real files, real connections, real locks."""

import sqlite3
from pathlib import Path

import pytest

from takeback.participants.sqlite import SqliteDatabase
from takeback.testing import participant_suite


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

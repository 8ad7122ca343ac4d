"""PostgreSQL databases as participants: a real server, real sessions, real locks."""

from pathlib import Path

import psycopg
import pytest

from postgres import PG_DUMP
from takeback.participants.postgres.participant import PostgresDatabase
from takeback.testing import participant_suite


class Rows:
    """A database whose application keeps a session."""

    def __init__(self, url: str, *, same_tables: bool) -> None:
        self.url = url
        self._same_tables = same_tables
        self._session = psycopg.connect(url, autocommit=True)
        self._session.execute("DROP SCHEMA public CASCADE")
        self._session.execute("CREATE SCHEMA public")
        self._session.execute("SET lock_timeout = '200ms'")

    def participant(self) -> PostgresDatabase:
        return PostgresDatabase("app", self.url, pg_dump=PG_DUMP)

    def write(self, number: int) -> None:
        table = "kept" if self._same_tables else f"state{number}"
        drop = [] if self._same_tables else [f"DROP TABLE IF EXISTS state{n}" for n in range(5)]
        make = f"CREATE TABLE IF NOT EXISTS {table} (id serial PRIMARY KEY, note text)"
        clear = f"TRUNCATE {table}"
        fill = f"INSERT INTO {table} (note) SELECT '{number}' || n FROM generate_series(1, 50) n"
        with self._session.transaction():
            for statement in (*drop, make, clear, fill):
                self._session.execute(statement.encode())

    def read(self) -> object:
        try:
            names = "SELECT relname FROM pg_stat_user_tables ORDER BY 1"
            tables = [name for (name,) in self._session.execute(names).fetchall()]
            rows = [
                self._session.execute(f"SELECT * FROM {name} ORDER BY id".encode()).fetchall()
                for name in tables
            ]
            ends = "SELECT sequencename, last_value FROM pg_sequences ORDER BY 1"
            return tables, rows, self._session.execute(ends).fetchall()
        except psycopg.errors.LockNotAvailable as problem:
            raise participant_suite.Blocked from problem

    def close(self) -> None:
        self._session.close()


def name_of(value: object) -> str:
    """A promise by its name."""
    return getattr(value, "__name__", "")


@pytest.mark.parametrize("promise", participant_suite.PROMISES, ids=name_of)
def test_it_keeps_every_promise(
    promise: participant_suite.Promise, one_url: str, tmp_path: Path
) -> None:
    """Where only rows differ, with a session open all the time."""
    participant_suite.check_one(promise, lambda _: Rows(one_url, same_tables=True), str(tmp_path))


WITH_TABLES = (
    participant_suite.restores_what_was_captured,
    participant_suite.prepare_shows_nothing,
    participant_suite.abort_undoes_prepare,
    participant_suite.a_crash_behind_the_decision,
)


@pytest.mark.parametrize(
    "promise",
    [
        each if each in WITH_TABLES else pytest.param(each, marks=pytest.mark.slow)
        for each in participant_suite.PROMISES
    ],
    ids=name_of,
)
def test_it_keeps_them_with_other_tables(
    promise: participant_suite.Promise, one_url: str, tmp_path: Path
) -> None:
    """Where the tables differ, too."""
    participant_suite.check_one(promise, lambda _: Rows(one_url, same_tables=False), str(tmp_path))

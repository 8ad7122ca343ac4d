"""A failing step takes its writes to a database with it, and nothing else."""

import sqlite3
from pathlib import Path
from typing import Any

import psycopg
import pytest

from takeback.participants.savepoints import savepoint


def fail(connection: Any, number: int, problem: BaseException) -> None:  # noqa: ANN401
    """A step that writes a row and fails."""
    with savepoint(connection):
        connection.execute(f"INSERT INTO t VALUES ({number})")
        raise problem


def check(connection: Any, *, begins: bool) -> list[Any]:  # noqa: ANN401 -- of two drivers
    """Two good steps, one that fails, and one within another; the rows that stay."""
    if begins:
        connection.execute("BEGIN")
    with savepoint(connection):
        connection.execute("CREATE TABLE t (x int)")
    with savepoint(connection):
        connection.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(ZeroDivisionError):
        fail(connection, 2, ZeroDivisionError())
    with savepoint(connection):
        connection.execute("INSERT INTO t VALUES (3)")
        with pytest.raises(KeyboardInterrupt):
            fail(connection, 4, KeyboardInterrupt())
    if begins:
        connection.execute("COMMIT")
    return list(connection.execute("SELECT x FROM t ORDER BY x").fetchall())


@pytest.mark.parametrize("begins", [False, True])
@pytest.mark.parametrize("level", [None, "DEFERRED"])
def test_sqlite(tmp_path: Path, level: Any, begins: bool) -> None:  # noqa: ANN401 -- its own type
    """Whether Python or the harness begins transactions."""
    with sqlite3.connect(tmp_path / "app.db", isolation_level=level) as connection:
        assert check(connection, begins=begins) == [(1,), (3,)]
        assert not connection.in_transaction
    connection.close()


@pytest.mark.parametrize("begins", [False, True])
def test_postgres(one_url: str, begins: bool) -> None:
    """In a transaction of the harness, and without one."""
    with psycopg.connect(one_url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS t")
        assert check(connection, begins=begins) == [(1,), (3,)]

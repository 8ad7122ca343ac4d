"""Databases and a project: a server that has one open goes on through undo and redo."""

import sqlite3
from pathlib import Path

import psycopg
import pytest

import takeback
from dev_server import DevServer
from postgres import PG_DUMP, run_psql
from takeback import ParticipantError
from takeback.participants.postgres.participant import PostgresDatabase
from takeback.participants.sqlite.participant import SqliteDatabase
from takeback.project import Project


def turn(project: Project, label: str, tree: Path, database: "SqliteFile") -> None:
    """An agent writes a file and a row."""
    with project.session("agent").turn(label):
        (tree / "page.html").write_text(label)
        database.write(label)


class SqliteFile:
    """A database, as programs write to it that open it for a moment."""

    def __init__(self, path: Path, mode: str) -> None:
        self.path = path
        with sqlite3.connect(path) as db:
            db.execute(f"PRAGMA journal_mode = {mode}")
            db.execute("CREATE TABLE notes (note TEXT)")
        db.close()

    def write(self, note: str) -> None:
        with sqlite3.connect(self.path) as db:
            db.execute("INSERT INTO notes VALUES (?)", (note,))
        db.close()


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
@pytest.mark.parametrize("place", ["inside", "outside"])
def test_a_server_with_an_open_sqlite_database_goes_on(
    tree: Path, home: Path, mode: str, place: str
) -> None:
    """Inside the tree or outside, it reads the restored rows, and writes more."""
    folder = tree if place == "inside" else tree.parent
    database = SqliteFile(folder / "app.db", mode)
    with (
        DevServer("sqlite", str(database.path)) as server,
        takeback.open(tree, home=home) as project,
    ):
        project.register(SqliteDatabase("app", database.path))
        turn(project, "one", tree, database)
        turn(project, "two", tree, database)
        assert server.notes() == ["one", "two"]
        project.undo()
        assert server.notes() == ["one"]
        assert (tree / "page.html").read_text() == "one"
        project.undo()
        assert server.notes() == []
        project.redo()
        project.redo()
        assert server.notes() == ["one", "two"]
        server.add("three")
        assert server.notes() == ["one", "two", "three"]
        project.rollback("@~1", yes=True)
        assert server.notes() == ["one"]
        left_out = {path.path: path.reason for path in project.checkpoint().left_out}
        assert left_out == ({"app.db": "participant"} if place == "inside" else {})
        assert project.checkpoint().changed == 0, "its log and its journal are not even listed"


def test_a_server_with_a_postgres_pool_goes_on(tree: Path, home: Path, url: str) -> None:
    """Three sessions with prepared statements read the restored rows; nobody is disconnected."""
    run_psql(url, "CREATE TYPE mood AS ENUM ('good'); CREATE TABLE notes (note text, m mood)")
    with DevServer("postgres", url) as server, takeback.open(tree, home=home) as project:
        project.register(PostgresDatabase("app", url, pg_dump=PG_DUMP))
        for label in ("one", "two"):
            with project.session("agent").turn(label):
                (tree / "page.html").write_text(label)
                run_psql(url, f"INSERT INTO notes VALUES ('{label}', 'good')")
        assert server.notes() == ["one", "two"]
        project.undo()
        assert server.notes() == ["one"]
        project.undo()
        assert server.notes() == []
        project.redo()
        project.redo()
        assert server.notes() == ["one", "two"]
        server.add("three")
        assert server.notes() == ["one", "two", "three"]


def test_what_blocks_is_named_and_nothing_moves(tree: Path, home: Path, url: str) -> None:
    """Of a file, a SQLite and a PostgreSQL database, all stay as they are."""
    run_psql(url, "CREATE TABLE notes (note text)")
    database = SqliteFile(tree / "app.db", "WAL")
    with takeback.open(tree, home=home) as project:
        project.register(SqliteDatabase("lite", database.path, patience=0.3))
        project.register(PostgresDatabase("big", url, pg_dump=PG_DUMP, patience=0.3))
        turn(project, "one", tree, database)
        with project.session("agent").turn("two"):
            (tree / "page.html").write_text("two")
            database.write("two")
            run_psql(url, "INSERT INTO notes VALUES ('two')")
        with psycopg.connect(url, application_name="psql of Ana") as other:
            other.execute("SELECT * FROM notes")
            with pytest.raises(ParticipantError, match=r"locked by process .*psql of Ana"):
                project.undo()
        holder = sqlite3.connect(database.path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(ParticipantError, match=r"app.db` is locked by this process"):
            project.undo()
        assert holder.execute("SELECT note FROM notes").fetchall() == [("one",), ("two",)]
        holder.execute("ROLLBACK")
        assert (tree / "page.html").read_text() == "two"
        with psycopg.connect(url) as other:
            assert other.execute("SELECT note FROM notes").fetchall() == [("two",)]
        project.undo()
        assert holder.execute("SELECT note FROM notes").fetchall() == [("one",)]
        holder.close()


def test_a_database_that_was_captured_as_a_file_stays(tree: Path, home: Path) -> None:
    """A rollback to a time before it was a participant leaves its files and its rows alone."""
    database = SqliteFile(tree / "app.db", "DELETE")
    with takeback.open(tree, home=home) as project:
        turn(project, "one", tree, database)
        turn(project, "two", tree, database)
        project.register(SqliteDatabase("app", database.path))
        turn(project, "three", tree, database)
        before = (tree / "app.db").read_bytes()
        project.rollback("@~2", paths=["page.html"], yes=True)
        assert (tree / "page.html").read_text() == "one"
        assert (tree / "app.db").read_bytes() == before


def test_the_settings_count_for_the_tree_at_once(tree: Path, home: Path) -> None:
    """A database that is added is left to its participant, and captured as a file no more."""
    database = SqliteFile(tree / "app.db", "DELETE")
    with takeback.open(tree, home=home) as project:
        turn(project, "one", tree, database)
        assert not project.checkpoint().left_out
        project.upkeep.add_participant(
            "app", {"type": "sqlite", "path": str(database.path)}, user=False
        )
        reader = sqlite3.connect(database.path, isolation_level=None)
        turn(project, "two", tree, database)
        assert [each.path for each in project.checkpoint().left_out] == ["app.db"]
        project.undo()
        assert reader.execute("SELECT note FROM notes").fetchall() == [("one",)]
        reader.close()

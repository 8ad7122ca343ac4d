"""A live SQLite database is captured as one unit of bytes."""

import os
import sqlite3
from pathlib import Path

import pytest

import takeback
from takeback.worktree import content


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_database_and_journal_are_of_one_instant(
    tree: Path, home: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits that fall between the reading of a database and its journal never tear it."""
    db = sqlite3.connect(tree / "app.db", isolation_level=None)
    db.execute(f"PRAGMA journal_mode = {mode}")
    db.execute("CREATE TABLE pair (a INTEGER, b INTEGER)")
    db.execute("INSERT INTO pair VALUES (0, 0)")
    db.execute("CREATE TABLE filler (x BLOB)")
    moves = 0

    def commit(step: str, name: bytes) -> None:
        nonlocal moves
        if step == "read" and name.startswith(b"app.db") and moves < 4:
            moves += 1
            db.execute("BEGIN")
            db.execute("UPDATE pair SET a = a + 1, b = b + 1")
            db.execute("INSERT INTO filler VALUES (zeroblob(30000))")
            db.execute("COMMIT")
            if mode == "WAL" and moves % 2:
                db.execute("PRAGMA wal_checkpoint")

    monkeypatch.setattr(content, "hook", commit)
    with takeback.open(tree, home=home) as project:
        made = project.checkpoint()
        out = tree.with_name("out")
        project.extract("@", out)
    db.close()
    assert moves > 0
    if any(path.startswith(b"app.db") for path in made.raw_unstable):
        return
    with sqlite3.connect(out / "app.db") as copy:
        assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        a, b = copy.execute("SELECT a, b FROM pair").fetchone()
        assert a == b
    copy.close()


def test_a_quiet_database_comes_back_with_its_wal(tree: Path, home: Path) -> None:
    """What was committed only to the WAL is in the checkpoint."""
    db = sqlite3.connect(tree / "app.db", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA wal_autocheckpoint = 0")
    db.execute("CREATE TABLE t (x)")
    db.execute("INSERT INTO t VALUES (42)")
    with takeback.open(tree, home=home) as project:
        made = project.checkpoint()
        out = tree.with_name("out")
        project.extract("@", out)
    assert set(made.unstable) <= {"app.db", "app.db-wal", "app.db-shm"}, "it is held open"
    assert os.path.getsize(out / "app.db-wal") > 0
    copy = sqlite3.connect(out / "app.db")
    assert copy.execute("SELECT x FROM t").fetchone() == (42,)
    copy.close()
    db.close()

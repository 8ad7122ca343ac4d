"""What databases cost that move with the files: boundaries, and restores.

PostgreSQL is a real server from a wheel, with syncs. `SELECT 1` on a warm connection and a boundary
without a write take turns in going first. The rest grows with the rows of one table: a boundary
after one row was written, an undo of that, and an undo of a turn that also changed the table.
"""

import os
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
from contenders import Contender
from timing import Series, Times, take_turns

import takeback
from takeback.participants.postgres.participant import PostgresDatabase
from takeback.participants.sqlite.participant import SqliteDatabase
from takeback.ports import Participant
from takeback.project import Project

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/support"))

from postgres import PG_DUMP, PostgresServer

MOST = 3.0
"""How many `SELECT 1` a boundary may cost if nothing was written."""
ASKED, QUIET, QUIET_SQLITE = "`SELECT 1`", "PostgreSQL, boundary", "SQLite, boundary"
SIZES = (1_000, 10_000, 100_000)
QUICK_SIZES = (1_000, 10_000)
_FILL = "INSERT INTO t SELECT n, md5(n::text) FROM generate_series(1, {}) n"
_COUNT = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < {})"
_FILL_SQLITE = f"INSERT INTO t {_COUNT} SELECT n, hex(randomblob(16)) FROM r"


class Timed(Contender):
    """Something that is called, and timed."""

    def __init__(self, name: str, call: Callable[[], object]) -> None:
        self.name = name
        self._call = call

    def take(self) -> float:
        """The seconds of one call."""
        before = time.perf_counter()
        self._call()
        return time.perf_counter() - before


class Costs:
    """Seconds: of what a boundary costs without a write, and by kind and rows of all else."""

    def __init__(self) -> None:
        self.quiet: Times = {}
        self.grown: dict[tuple[str, int], dict[str, Series]] = {}


class Subject:
    """A database with one table, and a project that it moves with."""

    def __init__(self, kind: str, rows: int, work: Path, server: PostgresServer) -> None:
        self.is_sqlite = kind == "SQLite"
        work.mkdir()
        self._tree = work / "tree"
        self._tree.mkdir()
        self._participant: Participant
        if self.is_sqlite:
            db = sqlite3.connect(work / "app.db", isolation_level=None)
            db.execute("PRAGMA journal_mode = WAL")
            self._execute: Callable[[str], object] = db.execute
            self._participant = SqliteDatabase("app", work / "app.db")
        else:
            self.session = psycopg.connect(server.new_database(), autocommit=True)
            self._execute = lambda text: self.session.execute(text.encode())
            url = server.url(self.session.info.dbname)
            self._participant = PostgresDatabase("app", url, pg_dump=PG_DUMP, seconds=60)
        self._execute("CREATE TABLE t (id int PRIMARY KEY, note text)")
        self._execute((_FILL_SQLITE if self.is_sqlite else _FILL).format(rows))
        self.project: Project = takeback.open(self._tree, home=work / "home")
        self.project.register(self._participant)
        self.number = 0
        self.boundary()

    def boundary(self) -> None:
        """What the end of a turn asks of participants, with the lock that it takes anyway."""
        with self.project.workspace.held():
            self.capture()

    def capture(self) -> None:
        """The share of participants in it."""
        self.project.workspace.participants.capture()

    def write(self) -> None:
        """One row."""
        self.number += 1
        self._execute(f"INSERT INTO t (id, note) VALUES (-{self.number}, 'new')")

    def turn(self, *, alters: bool) -> None:
        """An agent writes a row, and perhaps changes the table."""
        with self.project.session("bench").turn(f"turn {self.number}"):
            self.write()
            if alters:
                self._execute(f"ALTER TABLE t ADD COLUMN c{self.number} int")


def timed(call: Callable[[], object]) -> float:
    """The seconds of one call."""
    before = time.perf_counter()
    call()
    return time.perf_counter() - before


def measure(work: Path, *, quick: bool) -> Costs:
    """All of it, on a server of our own."""
    work.mkdir()
    costs, server = Costs(), PostgresServer()
    try:
        server.admin("ALTER SYSTEM SET fsync = on")
        server.admin("SELECT pg_reload_conf()")
        measure_quiet(costs, work, server, 50 if quick else 300)
        for rows in QUICK_SIZES if quick else SIZES:
            for kind in ("PostgreSQL", "SQLite"):
                subject = Subject(kind, rows, work / f"{kind}{rows}", server)
                costs.grown[kind, rows] = measure_grown(subject, 3 if quick else 7)
                subject.project.close()
    finally:
        server.stop()
    return costs


def measure_quiet(costs: Costs, work: Path, server: PostgresServer, rounds: int) -> None:
    """A boundary without a write beside `SELECT 1`, in alternated pairs."""
    big, small = (Subject(kind, 10_000, work / kind, server) for kind in ("PostgreSQL", "SQLite"))
    time.sleep(0.3)
    small.boundary()  # its stamps are old enough now to be believed
    session = big.session
    contenders = [
        Timed(ASKED, lambda: session.execute(b"SELECT 1").fetchone()),
        Timed(QUIET, big.capture),
        Timed(QUIET_SQLITE, small.capture),
    ]
    with big.project.workspace.held(), small.project.workspace.held():
        take_turns(contenders, 10)
        costs.quiet = take_turns(contenders, rounds)
    for each in (big, small):
        each.project.close()


def measure_grown(subject: Subject, rounds: int) -> dict[str, Series]:
    """A boundary after a write, an undo of rows, and one of a changed table."""
    found = {name: Series() for name in ("boundary, one row", "undo, one row", "undo, table")}
    for _ in range(rounds):
        subject.write()
        os.sync()
        found["boundary, one row"].seconds.append(timed(subject.boundary))
        for name, alters in (("undo, one row", False), ("undo, table", True)):
            subject.turn(alters=alters)
            os.sync()
            found[name].seconds.append(timed(subject.project.undo))
    return found


def render(costs: Costs) -> str:
    """The results in a few lines of Markdown."""
    asked, quiet = costs.quiet[ASKED], costs.quiet[QUIET]
    ratio = quiet.median / asked.median
    verdict = "kept" if ratio <= MOST else "missed"
    told = f"A boundary of PostgreSQL takes {ratio:.2f} `SELECT 1`; promised are {MOST:.0f} at most"
    lines = [
        f"| nothing written, {len(asked.seconds)} alternated rounds | median | p90 |",
        "|---|---:|---:|",
    ]
    for name, each in costs.quiet.items():
        lines.append(f"| {name} | {1e6 * each.median:.0f} µs | {1e6 * each.p90:.0f} µs |")
    heads = " | ".join(next(iter(costs.grown.values())))
    lines += ["", f"{told}: {verdict}.", "", f"| median ms | {heads} |", "|---|---:|---:|---:|"]
    for (kind, rows), series in costs.grown.items():
        cells = " | ".join(f"{1e3 * each.median:.0f}" for each in series.values())
        lines.append(f"| {kind}, {rows:,} rows | {cells} |")
    return "\n".join(lines)

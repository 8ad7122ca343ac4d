"""The ledger's tables, and which ledgers this program may use.

`events` is the truth, `archive` holds the oldest of them, compressed, and `origin` names the store
that wrote them. `details` holds what events say at length, for as long as files are kept. `journal`
has a row while a restore is under way, `forgetting` while something is being forgotten, `plans` for
each plan that was shown in the last minutes. All other tables are projections: they follow from the
events alone (see `projections`) and are written in the same transaction.

A store may hold several lines: the states of one tree each. Checkpoints are numbered in the order
of their commits, over all lines; the state before one is its `parent`, in the same line, or where
the line began. Turns, restores and coordinates are of the line of their checkpoints.

What many rows would repeat stands once: each path in `paths`. Who reads asks the views `deltas` and
`changes`, which put it together. They look it up by subqueries, not by joins:
so only who asks for a path pays for it, and SQLite always begins with the rows, by their keys.
"""

import os
from zlib import crc32

from takeback.disk import operations
from takeback.errors import DamagedStoreError, NewerStoreError, OldStoreError
from takeback.ledger.beyond import tables as beyond
from takeback.model.reasons import Action
from takeback.model.value import path_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.disk.sqlite import Connection

APPLICATION = 0x544B4236
"""`TKB6`: marks the file as ours, since format 6, which no release wrote either."""
_UNRELEASED = 0x544B4231
"""`TKB1`: formats 1 to 5, which no release wrote."""
VERSION = 11
MAIN = "main"
"""The id of the line that each store begins with."""

ORIGIN = """
CREATE TABLE origin (id TEXT NOT NULL);
"""
EVENTS = """
CREATE TABLE events (
    seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, at INTEGER NOT NULL,
    salt BLOB NOT NULL, commitment BLOB NOT NULL, chain BLOB NOT NULL, payload TEXT,
    author TEXT, request TEXT, parents TEXT, redacted INTEGER);
CREATE UNIQUE INDEX requests ON events (request) WHERE request IS NOT NULL;
"""
DETAILS = """
CREATE TABLE details (event INTEGER PRIMARY KEY, salt BLOB NOT NULL, text BLOB NOT NULL);
"""
ARCHIVE = """
CREATE TABLE archive (
    first INTEGER PRIMARY KEY, last INTEGER NOT NULL, began INTEGER NOT NULL,
    ended INTEGER NOT NULL, link BLOB NOT NULL, data BLOB NOT NULL);
"""
JOURNAL = """
CREATE TABLE journal (
    id TEXT PRIMARY KEY, phase TEXT NOT NULL, said TEXT NOT NULL, line INTEGER NOT NULL);
"""
FORGETTING = """
CREATE TABLE forgetting (id TEXT PRIMARY KEY, phase TEXT NOT NULL, said TEXT NOT NULL);
"""
PLANS = """
CREATE TABLE plans (
    id TEXT PRIMARY KEY, expires INTEGER NOT NULL, said TEXT NOT NULL, line INTEGER NOT NULL);
"""
PROJECTIONS = """
CREATE TABLE packs (
    name TEXT PRIMARY KEY, event INTEGER NOT NULL, bytes INTEGER NOT NULL,
    objects INTEGER NOT NULL);
CREATE TABLE needs (
    event INTEGER NOT NULL, object BLOB NOT NULL, PRIMARY KEY (event, object)) WITHOUT ROWID;
CREATE TABLE lines (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, event INTEGER, parent INTEGER);
INSERT INTO lines VALUES (1, 'main', NULL, NULL);
CREATE TABLE checkpoints (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
    event INTEGER NOT NULL, tree BLOB NOT NULL, root BLOB NOT NULL,
    view BLOB NOT NULL,
    created INTEGER NOT NULL, label TEXT NOT NULL,
    entries INTEGER NOT NULL, changed INTEGER NOT NULL, gone INTEGER,
    line INTEGER NOT NULL, parent INTEGER);
CREATE INDEX checkpoints_of_line ON checkpoints (line);
CREATE INDEX checkpoints_after ON checkpoints (parent);
CREATE INDEX checkpoints_gone ON checkpoints (number) WHERE gone IS NOT NULL;
CREATE TABLE kept (
    checkpoint INTEGER PRIMARY KEY, at INTEGER NOT NULL, label TEXT NOT NULL);
CREATE TABLE names (
    line INTEGER NOT NULL, name TEXT NOT NULL, checkpoint INTEGER NOT NULL,
    event INTEGER NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (line, name)) WITHOUT ROWID;
CREATE INDEX names_of_checkpoint ON names (checkpoint);
CREATE TABLE care (
    number INTEGER PRIMARY KEY, event INTEGER NOT NULL, at INTEGER NOT NULL, kind TEXT NOT NULL,
    said TEXT NOT NULL);
CREATE TABLE coordinates (
    cursor INTEGER PRIMARY KEY, checkpoint INTEGER NOT NULL, looked INTEGER NOT NULL,
    session INTEGER, turn INTEGER, step INTEGER, line INTEGER NOT NULL);
CREATE INDEX coordinates_of_line ON coordinates (line);
CREATE TABLE sessions (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, agent TEXT NOT NULL,
    own_id TEXT NOT NULL, title TEXT NOT NULL, author TEXT NOT NULL, holder TEXT NOT NULL,
    inside INTEGER,
    started INTEGER NOT NULL, seen INTEGER NOT NULL, ended INTEGER,
    opened INTEGER NOT NULL, turns INTEGER NOT NULL, process TEXT NOT NULL,
    reports INTEGER NOT NULL);
CREATE UNIQUE INDEX sessions_of_agents ON sessions (agent, own_id) WHERE own_id <> '';
CREATE INDEX sessions_held ON sessions (number) WHERE ended IS NULL AND holder <> '';
CREATE INDEX sessions_open ON sessions (seen) WHERE ended IS NULL;
CREATE INDEX sessions_inside ON sessions (inside) WHERE inside IS NOT NULL;
CREATE TABLE pauses (
    session INTEGER PRIMARY KEY, event INTEGER NOT NULL, at INTEGER NOT NULL);
CREATE TABLE turns (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, session INTEGER NOT NULL,
    label TEXT NOT NULL, status TEXT NOT NULL, whole INTEGER NOT NULL,
    started INTEGER NOT NULL, ended INTEGER, opened INTEGER NOT NULL, closed INTEGER,
    before INTEGER NOT NULL, after INTEGER, steps INTEGER NOT NULL,
    paths INTEGER NOT NULL, files INTEGER NOT NULL, added INTEGER NOT NULL,
    removed INTEGER NOT NULL, uncounted INTEGER NOT NULL, git_before TEXT, git_after TEXT,
    undone INTEGER, covered INTEGER, line INTEGER NOT NULL);
CREATE INDEX turns_of_session ON turns (session, number);
CREATE INDEX turns_by_end ON turns (closed, session);
CREATE INDEX turns_with_changes ON turns (number) WHERE paths > 0;
CREATE INDEX turns_covered ON turns (covered) WHERE covered IS NOT NULL;
CREATE INDEX turns_undone ON turns (undone) WHERE undone IS NOT NULL;
CREATE TABLE steps (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, turn INTEGER NOT NULL, parent INTEGER,
    tool TEXT NOT NULL, kind TEXT NOT NULL, summary TEXT NOT NULL, paths TEXT NOT NULL,
    status TEXT NOT NULL, background INTEGER NOT NULL,
    started INTEGER NOT NULL, ended INTEGER, opened INTEGER NOT NULL, closed INTEGER,
    first INTEGER NOT NULL, last INTEGER, interactive INTEGER NOT NULL);
CREATE INDEX steps_of_turn ON steps (turn, number);
CREATE INDEX steps_by_end ON steps (closed);
CREATE TABLE paths (number INTEGER PRIMARY KEY, hash INTEGER NOT NULL, path BLOB NOT NULL);
CREATE INDEX paths_by_hash ON paths (hash);
CREATE TABLE secret_files (path INTEGER PRIMARY KEY, event INTEGER NOT NULL);
CREATE TABLE delta_rows (
    checkpoint INTEGER NOT NULL, place INTEGER NOT NULL, path INTEGER NOT NULL,
    verb TEXT NOT NULL, origin INTEGER,
    who TEXT NOT NULL, how TEXT NOT NULL, session INTEGER, turn INTEGER, step INTEGER,
    sessions TEXT NOT NULL, PRIMARY KEY (checkpoint, place)) WITHOUT ROWID;
CREATE INDEX deltas_of_turn ON delta_rows (turn, checkpoint) WHERE turn IS NOT NULL;
CREATE INDEX deltas_left_out ON delta_rows (turn) WHERE verb = 'omit';
CREATE INDEX deltas_shared ON delta_rows (checkpoint) WHERE who = 'shared';
CREATE TABLE losses (
    number INTEGER PRIMARY KEY, event INTEGER NOT NULL, at INTEGER NOT NULL, path INTEGER NOT NULL,
    what TEXT NOT NULL, reason TEXT NOT NULL, folder INTEGER NOT NULL, size INTEGER,
    entries INTEGER, source INTEGER, grave INTEGER NOT NULL,
    who TEXT NOT NULL, how TEXT NOT NULL, session INTEGER, turn INTEGER, step INTEGER,
    sessions TEXT NOT NULL, line INTEGER);
CREATE INDEX losses_of_turn ON losses (turn) WHERE turn IS NOT NULL;
CREATE INDEX losses_by_event ON losses (event);
CREATE INDEX losses_shared ON losses (event) WHERE who = 'shared';
CREATE VIEW deltas AS SELECT r.checkpoint,
    (SELECT p.path FROM paths p WHERE p.number = r.path) AS path, r.verb,
    (SELECT p.path FROM paths p WHERE p.number = r.origin) AS origin,
    r.who, r.how, r.session, r.turn, r.step, r.sessions,
    (SELECT c.line FROM checkpoints c WHERE c.number = r.checkpoint) AS line FROM delta_rows r;
CREATE TABLE change_rows (
    turn INTEGER NOT NULL, path INTEGER NOT NULL, verb TEXT NOT NULL, origin INTEGER,
    added INTEGER, removed INTEGER, how TEXT NOT NULL, PRIMARY KEY (turn, path)) WITHOUT ROWID;
CREATE VIEW changes AS SELECT r.turn,
    (SELECT p.path FROM paths p WHERE p.number = r.path) AS path, r.verb,
    (SELECT p.path FROM paths p WHERE p.number = r.origin) AS origin,
    r.added, r.removed, r.how FROM change_rows r;
CREATE TABLE restores (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, event INTEGER NOT NULL,
    at INTEGER NOT NULL, verb TEXT NOT NULL, turn INTEGER, entry INTEGER, target INTEGER,
    turns TEXT NOT NULL, partly TEXT NOT NULL, marks INTEGER NOT NULL,
    before INTEGER NOT NULL, after INTEGER NOT NULL, partial INTEGER NOT NULL,
    goal TEXT NOT NULL, because TEXT NOT NULL, session INTEGER,
    undone INTEGER, covered INTEGER, reversed INTEGER, line INTEGER NOT NULL,
    shared INTEGER NOT NULL, running TEXT NOT NULL);
CREATE INDEX restores_of_turn ON restores (turn) WHERE turn IS NOT NULL;
CREATE INDEX restores_by_event ON restores (event);
CREATE INDEX restores_by_state ON restores (after);
CREATE INDEX restores_covered ON restores (covered) WHERE covered IS NOT NULL;
CREATE TABLE outside (
    number INTEGER PRIMARY KEY, turn INTEGER, step INTEGER, restore INTEGER,
    path BLOB NOT NULL, before TEXT, after TEXT, reason TEXT NOT NULL, changed INTEGER NOT NULL);
CREATE INDEX outside_of_turn ON outside (turn) WHERE turn IS NOT NULL;
CREATE INDEX outside_of_restore ON outside (restore) WHERE restore IS NOT NULL;
CREATE INDEX outside_of_path ON outside (path, number);
CREATE INDEX outside_waiting ON outside (step)
    WHERE before IS NOT NULL AND after IS NULL AND reason = '';
CREATE TABLE git_seen (line INTEGER PRIMARY KEY, seen TEXT NOT NULL);
CREATE TABLE git_refs (
    line INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (line, name)) WITHOUT ROWID;
CREATE TABLE git_moves (
    event INTEGER NOT NULL, name TEXT NOT NULL, old TEXT, new TEXT, line INTEGER NOT NULL,
    idle INTEGER NOT NULL, PRIMARY KEY (event, name)) WITHOUT ROWID;
"""
PROJECTIONS += beyond.ALL
TABLES = (
    "packs", "needs", "lines", "checkpoints", "kept", "names", "care", "coordinates", "sessions",
    "pauses", "turns", "steps", "paths", "secret_files", "delta_rows", "losses", "change_rows",
    "restores", "outside", "git_seen", "git_refs", "git_moves", *beyond.NAMES,
)  # fmt: skip
"""The projections, in the order in which they are made."""
ALL = ORIGIN + EVENTS + DETAILS + ARCHIVE + JOURNAL + FORGETTING + PLANS + PROJECTIONS
VIEWS = ("deltas", "changes")
"""What is read in the place of tables whose rows name things by number."""

DETACHED, WITH_ITS_PARENT = 1, 2
"""Why a step is in the background: its tool said so, or a step around it is there."""


def prepare(db: "Connection", writable: bool) -> None:
    """Make a new ledger; an error for one of another format."""
    if require_format(db) == 0 and writable:
        _make_new(db)


def require_format(db: "Connection") -> int:
    """The format: this one, or 0 for a ledger still to be made; an error for any other."""
    application = _number(db, "PRAGMA application_id")
    version = _number(db, "PRAGMA user_version")
    if version > VERSION:
        raise NewerStoreError(
            f"this project's history was written by a newer Takeback (format {version}, this "
            f"one reads up to {VERSION})",
            hint="update Takeback; nothing was changed",
        )
    if application in (_UNRELEASED, APPLICATION) and 0 < version < VERSION:
        raise OldStoreError(
            f"this project's history was written by an older, unreleased Takeback (format "
            f"{version}, this one reads {VERSION})",
            hint=Action("new-history"),
        )
    if (application, version) not in ((0, 0), (APPLICATION, VERSION)):
        raise DamagedStoreError("the ledger is not a Takeback ledger")
    return version


def _make_new(db: "Connection") -> None:
    operations.sql(db, "BEGIN IMMEDIATE")
    try:
        # Another process may have made it while this one waited, perhaps one of another format.
        if require_format(db) == 0:
            make(db, ALL)
            operations.sql(db, "INSERT INTO origin VALUES (?)", (os.urandom(16).hex(),))
            operations.sql(db, f"PRAGMA application_id = {APPLICATION}")
            operations.sql(db, f"PRAGMA user_version = {VERSION}")
        operations.sql(db, "COMMIT")
    except BaseException:
        if db.in_transaction:
            operations.sql(db, "ROLLBACK")
        raise


def drop_projections(db: "Connection") -> None:
    """Remove what follows from the events, whether it is a table or a view."""
    query = "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view')"
    for name, kind in db.execute(query).fetchall():
        if name in TABLES or name in VIEWS:
            operations.sql(db, f"DROP {kind} {name}")


def make(db: "Connection", tables: str) -> None:
    """Make tables and indexes, statement by statement."""
    for statement in tables.strip().split(";\n"):
        operations.sql(db, statement)


def _number(db: "Connection", pragma: str) -> int:
    return int(db.execute(pragma).fetchone()[0])


_KNOWN = "SELECT path, number FROM paths WHERE hash IN (SELECT value FROM json_each(?))"
_HASH = 0x7FFFFF
"""So much of a checksum takes three bytes in SQLite. An index of whole paths would double them."""


def path_hash(path: bytes) -> int:
    """What a path is found by."""
    return crc32(path) & _HASH


class Tables:
    """The tables that follow the log, and the numbers that ids have in them.

    Ids, and what belongs to what, never change, so what was looked up once is known.
    """

    __slots__ = ("_above", "_next", "_numbers", "db")

    def __init__(self, db: "Connection") -> None:
        self.db = db
        self._numbers: dict[tuple[str, str], int] = {}
        self._next: dict[str, int] = {}
        self._above: dict[tuple[str, int], int] = {}

    def next(self, table: str) -> int:
        """The number that the next row of a table gets."""
        if table not in self._next:
            query = f"SELECT coalesce(max(number), 0) FROM {table}"
            self._next[table] = int(self.db.execute(query).fetchone()[0])
        self._next[table] += 1
        return self._next[table]

    def number(self, table: str, id: object) -> "int | None":
        """The number of the row with an id; None if there is none."""
        if not isinstance(id, str) or not id:
            return None
        known = self._numbers.get((table, id))
        if known is None:
            query = f"SELECT number FROM {table} WHERE id = ?"
            row = self.db.execute(query, (id,)).fetchone()
            if row is None:
                return None
            known = self._numbers[table, id] = int(row[0])
        return known

    def paths(self, names: "Iterable[object]") -> "dict[object, int]":
        """The numbers of paths as events tell them; new ones get the next numbers, in their order.

        Ten thousand are asked for at once when an agent unpacks something, so it is one question.
        """
        paths = {name: path_bytes(str(name)) for name in names}
        hashes = {path: path_hash(path) for path in paths.values()}
        rows = self.db.execute(_KNOWN, (str(list(hashes.values())),)).fetchall()
        known = {path: int(number) for path, number in rows}
        new = [path for path in hashes if path not in known]
        if new:
            known.update((path, self.next("paths")) for path in new)
            rows = [(known[path], hashes[path], path) for path in new]
            operations.sql_many(self.db, "INSERT INTO paths VALUES (?, ?, ?)", rows)
        return {name: known[path] for name, path in paths.items()}

    def line_of(self, checkpoint: "int | None") -> "int | None":
        """The line that a checkpoint belongs to."""
        return self._belongs("SELECT line FROM checkpoints WHERE number = ?", checkpoint)

    def line_of_turn(self, turn: "int | None") -> "int | None":
        """The line that a turn belongs to."""
        return self._belongs("SELECT line FROM turns WHERE number = ?", turn)

    def turn_of(self, step: "int | None") -> "int | None":
        """The turn that a step belongs to."""
        return self._belongs("SELECT turn FROM steps WHERE number = ?", step)

    def session_of(self, turn: "int | None") -> "int | None":
        """The session that a turn belongs to."""
        return self._belongs("SELECT session FROM turns WHERE number = ?", turn)

    def _belongs(self, query: str, number: "int | None") -> "int | None":
        if number is None:
            return None
        known = self._above.get((query, number))
        if known is None:
            row = self.db.execute(query, (number,)).fetchone()
            if row is None or row[0] is None:
                return None
            known = self._above[query, number] = int(row[0])
        return known

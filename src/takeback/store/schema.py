"""The ledger's tables, and how an older ledger becomes a newer one."""

from takeback.errors import DamagedStoreError, NewerStoreError
from takeback.store import fsops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.store.sqlite import Connection

APPLICATION = 0x544B4231
"""`TKB1`: marks the file as ours."""
VERSION = 1

_TABLES = """
CREATE TABLE events (
    seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, at INTEGER NOT NULL,
    salt BLOB NOT NULL, commitment BLOB NOT NULL, chain BLOB NOT NULL, payload TEXT);
CREATE TABLE packs (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, bytes INTEGER NOT NULL,
    objects INTEGER NOT NULL);
CREATE TABLE checkpoints (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
    event INTEGER NOT NULL REFERENCES events, tree BLOB NOT NULL, root BLOB NOT NULL,
    pack INTEGER NOT NULL, view BLOB NOT NULL, keep BLOB NOT NULL,
    created INTEGER NOT NULL, label TEXT NOT NULL,
    entries INTEGER NOT NULL, changed INTEGER NOT NULL);
"""


def prepare(db: "Connection", writable: bool) -> None:
    """Make a new ledger, or check that this one can be used."""
    version = _number(db, "PRAGMA user_version")
    if version > VERSION:
        raise NewerStoreError(
            f"this project's history was written by a newer Takeback (format {version}, this "
            f"one reads up to {VERSION})",
            hint="update Takeback; nothing was changed",
        )
    application = _number(db, "PRAGMA application_id")
    if version and application != APPLICATION:
        raise DamagedStoreError("the ledger is not a Takeback ledger")
    if not version and writable:
        _create(db)


def _create(db: "Connection") -> None:
    fsops.sql(db, "BEGIN IMMEDIATE")
    if _number(db, "PRAGMA user_version") == 0:
        for statement in _TABLES.strip().split(";\n"):
            fsops.sql(db, statement)
        fsops.sql(db, f"PRAGMA application_id = {APPLICATION}")
        fsops.sql(db, f"PRAGMA user_version = {VERSION}")
    fsops.sql(db, "COMMIT")


def _number(db: "Connection", pragma: str) -> int:
    return int(db.execute(pragma).fetchone()[0])

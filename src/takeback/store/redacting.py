"""Take words out of the ledger for good: out of events, tables, log and free space.

An event keeps its number, its kind, its time and its link. It gets a new salt and says something
else; the commitment to that stands in the event `Forgotten`, so that nobody can change it later.
"""

import os

from takeback.model import jsontext
from takeback.store import events, eventtext, forgetting, fsops, projections
from takeback.store.events import NewEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from takeback.model.jsontext import Json
    from takeback.store.sqlite import Connection

_CHANGE = "UPDATE events SET salt = ?, payload = ?, redacted = ? WHERE seq = ?"


def redact(
    db: "Connection",
    fact: NewEvent,
    said: "Mapping[int, Mapping[str, Json]]",
    author: str,
    id: str,
) -> "tuple[int, bytes]":
    """Let events say something else, and all tables follow; in the caller's transaction.

    Number and link of the event that tells so.
    """
    texts = {seq: (os.urandom(16), jsontext.dumps(said[seq])) for seq in sorted(said)}
    listed: list[Json] = [[seq, events.commit_to(*pair).hex()] for seq, pair in texts.items()]
    fact.payload = {**fact.payload, "events": listed}
    number, link = events.append(db, fact, author)
    rows = [(salt, eventtext.pack(text), number, seq) for seq, (salt, text) in texts.items()]
    if rows:
        fsops.sql_many(db, _CHANGE, rows)
    projections.follow_anew(db)
    forgetting.advance(db, id, forgetting.COMMITTED)
    return number, link


def shrink(db: "Connection", path: bytes) -> str:
    """Write the file anew, without free pages, and empty its log. Who reads meanwhile is named."""
    # What SQLite puts aside meanwhile must not reach any disk.
    fsops.sql(db, "PRAGMA temp_store = MEMORY")
    fsops.sql(db, "VACUUM")
    busy = fsops.sql(db, "PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    return _readers(path) if busy else ""


def _readers(path: bytes) -> str:
    """The processes that have the ledger open, as far as the system tells."""
    found = []
    for pid in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if not pid.isdigit() or int(pid) == os.getpid():
            continue
        try:
            links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        except OSError:
            continue
        if os.path.realpath(os.fsdecode(path)) in links:
            found.append(pid)
    return "process " + ", ".join(found) if found else "another process"

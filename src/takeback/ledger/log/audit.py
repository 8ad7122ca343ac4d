"""Check the ledger: its pages, its chain, and that its tables say what its events say.

Take words out of the ledger for good: out of events, tables, log and free space.

An event keeps its number, its kind, its time and its link. It gets a new salt and says something
else; the commitment to that stands in the event `Forgotten`, so that nobody can change it later.
"""

import os

from takeback.disk import operations, sqlite
from takeback.errors import DamagedStoreError
from takeback.ledger import retention, schema
from takeback.ledger.log import archive, events, projections
from takeback.ledger.log.events import NewEvent
from takeback.model import reasons
from takeback.model.reasons import Reason
from takeback.model.text import json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from takeback.disk.sqlite import Connection
    from takeback.ledger.ledger import Ledger
    from takeback.model.text.json_text import Json


_MOST_TOLD = 20
_KEYS = {
    "delta_rows": "checkpoint, place",
    "change_rows": "turn, path",
    "git_seen": "line",
    "git_refs": "line, name",
    "git_moves": "event, name",
    "coordinates": "cursor",
    "kept": "checkpoint",
    "names": "line, name",
    "packs": "name",
    "needs": "event, object",
    "secret_files": "path",
    "pauses": "session",
    "lessons_told": "session, lesson",
    "allowances": "event",
    "guard_modes": "event",
    "moves": "restore, name",
    "aborts": "restore, name",
    "plan_steps": "turn",
}


def check(db: "Connection") -> "Iterator[Reason]":
    """What is wrong."""
    try:
        yield from _check_pages(db)
        yield from check_chain(db)
        if archive.is_readable(db):
            yield from differences(db)
    except (sqlite.DatabaseError, DamagedStoreError) as problem:
        yield Reason(reasons.LEDGER_UNREADABLE, problem=str(problem))
    except (TypeError, ValueError, KeyError, AttributeError) as problem:
        yield Reason(reasons.LEDGER_KINDS, problem=repr(problem))


def _check_pages(db: "Connection") -> "Iterator[Reason]":
    for (said,) in db.execute("PRAGMA integrity_check(20)"):
        if said != "ok":
            yield Reason(reasons.PAGES_DAMAGED, problem=str(said))


def refuse_broken_chain(db: "Connection") -> None:
    """An error if the log is not as it was written: nothing should be made to follow it."""
    try:
        problem = next(check_chain(db), None)
    except (TypeError, ValueError, AttributeError) as trouble:
        problem = Reason(reasons.LEDGER_KINDS, problem=repr(trouble))
    if problem is not None:
        facts = ", ".join(f"{name} {fact}" for name, fact in problem.facts)
        raise DamagedStoreError(
            f"the log is not as it was written: {problem.code} ({facts})",
            hint="the tables may be more accurate than the log, so they are kept",
        )


def check_chain(db: "Connection") -> "Iterator[Reason]":
    """Whether each event is there, as it was written, and follows from the one before."""
    expected, chain = 1, events.first_link(db)
    redacted = archive.redactions(db)
    for segment in archive.segments(db):
        yield from archive.check(segment, expected, chain, redacted)
        expected, chain = segment.last + 1, segment.link
    first = db.execute("SELECT min(seq) FROM events").fetchone()[0]
    if first is not None and first > expected + 1:
        yield Reason(reasons.ARCHIVE_MISSING, first=expected, last=first - 1)
        expected = first
    let_go = archive.details_let_go(db)
    for seq, kind, at, salt, commitment, link, text, by, *rest in db.execute(
        "SELECT seq, kind, at, e.salt, commitment, chain, payload, redacted, d.salt, d.text,"
        " author, request, parents FROM events e LEFT JOIN details d ON d.event = seq ORDER BY seq"
    ):
        detail, envelope = rest[:2], rest[2:]
        if seq != expected:
            yield Reason(reasons.EVENT_MISSING, event=expected)
        written = commitment if by is None else redacted.get((by, seq))
        if text is None or not _says(salt, text, written):
            yield Reason(reasons.EVENT_CHANGED, event=seq)
        elif not _has_detail(text, *detail, is_let_go=seq <= let_go):
            yield Reason(reasons.DETAIL_CHANGED, event=seq)
        said = events.envelope_of(*envelope)
        if events.chain_over(chain, seq, kind, at, said, commitment) != link:
            yield Reason(reasons.EVENT_UNCHAINED, event=seq)
        expected, chain = seq + 1, link


def _says(salt: bytes, payload: object, written: "bytes | None") -> bool:
    """Whether an event says what was committed to."""
    try:
        return events.commit_to(salt, events.as_text(payload)) == written
    except ValueError:
        return False


def _has_detail(payload: object, salt: "bytes | None", text: object, *, is_let_go: bool) -> bool:
    """Whether the detail of an event is what its payload committed to."""
    said = events.as_text(payload)
    written = json_text.loads(said).get("detail") if '"detail"' in said else None
    if salt is None:
        return written is None or is_let_go
    return written is not None and _says(salt, text, bytes.fromhex(written))


def differences(db: "Connection") -> "Iterator[Reason]":
    """Where the tables are not what the events say, found by making them again in memory."""
    again = sqlite.connect(":memory:", isolation_level=None)
    try:
        schema.make(again, schema.ALL)
        yield from _misshapen(db, again)
        projections.replay(db, again)
        for table in schema.TABLES:
            yield from _compare(db, again, table)
    finally:
        again.close()


def _misshapen(db: "Connection", again: "Connection") -> "Iterator[Reason]":
    """What is made otherwise than it should be: also words that nobody asks for can be damaged."""
    found = _statements(db)
    for name, statement in _statements(again).items():
        if found.get(name) != statement:
            yield Reason(reasons.STATEMENT_WRONG, statement=name)


def _statements(db: "Connection") -> "dict[str, bytes]":
    """By which statement each table, index and view is made. Damaged words may be no text."""
    query = "SELECT CAST(name AS BLOB), CAST(sql AS BLOB) FROM sqlite_master WHERE sql IS NOT NULL"
    return {name.decode(errors="replace"): sql for name, sql in db.execute(query)}


def _compare(db: "Connection", again: "Connection", table: str) -> "Iterator[Reason]":
    query = f"SELECT * FROM {table} ORDER BY {_KEYS.get(table, 'number')}"
    found = {repr(row): row for row in db.execute(query)}
    expected = {repr(row): row for row in again.execute(query)}
    for text in sorted(found.keys() ^ expected.keys())[:_MOST_TOLD]:
        row = found.get(text) or expected[text]
        code = reasons.ROW_WRONG if text in found else reasons.ROW_MISSING
        yield Reason(code, row=f"{row[0]} {row[1]}", table=table)


_CHANGE = "UPDATE events SET salt = ?, payload = ?, redacted = ? WHERE seq = ?"
_DETAIL = "UPDATE details SET salt = ?, text = ? WHERE event = ?"


def redact(
    db: "Connection",
    fact: NewEvent,
    said: "Mapping[int, Mapping[str, Json]]",
    details: "Mapping[int, Mapping[str, Json] | None]",
    author: str,
    id: str,
) -> "tuple[int, bytes]":
    """Let events say something else, and all tables follow; in the caller's transaction.

    `details` are those that change, None for one that goes. Number and link of the event that
    tells so.
    """
    said = {**said, **{seq: _redact_detail(db, seq, said[seq], details[seq]) for seq in details}}
    texts = {seq: (os.urandom(16), json_text.dumps(said[seq])) for seq in sorted(said)}
    listed: list[Json] = [[seq, events.commit_to(*pair).hex()] for seq, pair in texts.items()]
    fact = fact.replace(payload={**fact.payload, "events": listed})
    appended, link = events.append(db, fact, author)
    rows = [(salt, events.pack(text), appended.seq, seq) for seq, (salt, text) in texts.items()]
    if rows:
        operations.sql_many(db, _CHANGE, rows)
        archive.redact(db, texts, appended.seq)
    # A plan may name what is forgotten; it can be made again.
    operations.sql(db, "DELETE FROM plans")
    projections.follow_anew(db)
    retention.advance(db, id, retention.COMMITTED)
    return appended.seq, link


def _redact_detail(
    db: "Connection", seq: int, said: "Mapping[str, Json]", detail: "Mapping[str, Json] | None"
) -> "Mapping[str, Json]":
    """Replace or remove the detail of an event; what the event says then."""
    if detail is None:
        operations.sql(db, "DELETE FROM details WHERE event = ?", (seq,))
        return {key: value for key, value in said.items() if key != "detail"}
    salt, text = os.urandom(16), json_text.dumps(detail)
    operations.sql(db, _DETAIL, (salt, events.pack(text), seq))
    return {**said, "detail": events.commit_to(salt, text).hex()}


def shrink(db: "Connection", path: bytes) -> str:
    """Write the file anew, without free pages, and empty its log. Who reads meanwhile is named."""
    # What SQLite puts aside meanwhile must not reach any disk.
    operations.sql(db, "PRAGMA temp_store = MEMORY")
    operations.sql(db, "VACUUM")
    busy = operations.sql(db, "PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
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


class Snapshot:
    """A ledger that stands still while it is read; others go on writing."""

    __slots__ = ("_ledger",)

    def __init__(self, path: bytes, line: str) -> None:
        from takeback.ledger.ledger import Ledger

        self._ledger = Ledger(path, writable=False, line=line)

    def __enter__(self) -> "Ledger":
        self._ledger._begin_reading()
        return self._ledger

    def __exit__(self, *_: object) -> None:
        self._ledger.close()

"""Check the ledger: its pages, its chain, and that its tables say what its events say."""

from takeback.errors import DamagedStoreError
from takeback.store import events, projections, schema, sqlite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from takeback.store.sqlite import Connection

_MOST_TOLD = 20
_KEYS = {
    "delta_rows": "checkpoint, place",
    "change_rows": "turn, path",
    "coordinates": "cursor",
    "kept": "checkpoint",
    "packs": "name",
}


def check(db: "Connection") -> "Iterator[str]":
    """What is wrong, in words."""
    try:
        yield from _check_pages(db)
        yield from check_chain(db)
        yield from differences(db)
    except (sqlite.DatabaseError, DamagedStoreError) as problem:
        yield f"the ledger cannot be read: {problem}"
    except (TypeError, ValueError, KeyError, AttributeError) as problem:
        yield f"the ledger holds values of the wrong kind: {problem!r}"


def _check_pages(db: "Connection") -> "Iterator[str]":
    for (said,) in db.execute("PRAGMA integrity_check(20)"):
        if said != "ok":
            yield f"the ledger is damaged: {said}"


def refuse_broken_chain(db: "Connection") -> None:
    """An error if the log is not as it was written: nothing should be made to follow it."""
    try:
        problem = next(check_chain(db), "")
    except (TypeError, ValueError, AttributeError) as trouble:
        problem = f"the ledger holds values of the wrong kind: {trouble!r}"
    if problem:
        raise DamagedStoreError(
            problem, hint="the tables may tell better than the log does by now, so they stay"
        )


def check_chain(db: "Connection") -> "Iterator[str]":
    """Whether each event is there, as it was written, and follows from the one before."""
    expected, chain = 1, events.NO_CHAIN
    redacted = events.redactions(db)
    for seq, kind, at, salt, commitment, link, text, by, *envelope in db.execute(
        "SELECT seq, kind, at, salt, commitment, chain, payload, redacted, author, request,"
        " parents FROM events ORDER BY seq"
    ):
        if seq != expected:
            yield f"event {expected} of the ledger is missing"
        written = commitment if by is None else redacted.get((by, seq))
        if text is None or not _says(salt, text, written):
            yield f"event {seq} of the ledger was changed after it was written"
        said = events.envelope_of(*envelope)
        if events.chain_over(chain, seq, kind, at, said, commitment) != link:
            yield f"event {seq} of the ledger does not follow from the one before"
        expected, chain = seq + 1, link


def _says(salt: bytes, payload: object, written: "bytes | None") -> bool:
    """Whether an event says what was committed to."""
    try:
        return events.commit_to(salt, events.as_text(payload)) == written
    except ValueError:
        return False


def differences(db: "Connection") -> "Iterator[str]":
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


def _misshapen(db: "Connection", again: "Connection") -> "Iterator[str]":
    """What is made otherwise than it should be: also words that nobody asks for can be damaged."""
    found = _statements(db)
    for name, statement in _statements(again).items():
        if found.get(name) != statement:
            yield f"the statement of the table, index or view `{name}` is not as it was made"


def _statements(db: "Connection") -> "dict[str, bytes]":
    """By which statement each table, index and view is made. Damaged words may be no text."""
    query = "SELECT CAST(name AS BLOB), CAST(sql AS BLOB) FROM sqlite_master WHERE sql IS NOT NULL"
    return {name.decode(errors="replace"): sql for name, sql in db.execute(query)}


def _compare(db: "Connection", again: "Connection", table: str) -> "Iterator[str]":
    query = f"SELECT * FROM {table} ORDER BY {_KEYS.get(table, 'number')}"  # noqa: S608
    found = {repr(row): row for row in db.execute(query)}
    expected = {repr(row): row for row in again.execute(query)}
    for text in sorted(found.keys() ^ expected.keys())[:_MOST_TOLD]:
        row = found.get(text) or expected[text]
        how = "is not what" if text in found else "is missing, which"
        yield f"the row `{row[0]} {row[1]}` of the table `{table}` {how} the events say"

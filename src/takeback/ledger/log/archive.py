"""The archive: old events, compressed, in segments of the same length.

Nothing can undo what they are about, and the projections keep what they say. A segment replaces the
rows of `events` in one transaction. The chain goes through all segments, in their order, and on
through the live events: a segment keeps the link of its last event, and the others follow from
what it holds.
"""

import time
import zlib
from contextlib import suppress
from itertools import islice

from takeback.disk import operations
from takeback.errors import DamagedStoreError
from takeback.ledger.log import events
from takeback.model import reasons
from takeback.model.reasons import Reason
from takeback.model.text import json_text
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from takeback.disk.sqlite import Connection
    from takeback.ledger.log.events import Event

    Redactions = Mapping[tuple[int, int], bytes]

SEGMENT = 4096
"""Events. Fewer are not archived."""
_SELECT = "SELECT first, last, began, ended, link, data FROM archive "
_INSERT = "INSERT INTO archive VALUES (?, ?, ?, ?, ?, ?)"
_LIVE = (
    "SELECT seq, kind, at, salt, commitment, payload, author, request, parents, redacted, chain"
    " FROM events WHERE seq BETWEEN ? AND ? ORDER BY seq"
)
_FIRST_NEEDED = (
    "SELECT min(event) FROM checkpoints WHERE number >"
    " (SELECT coalesce(max(number), 0) FROM checkpoints WHERE gone NOT NULL)"
)


class Archived(Value):
    """An event as a segment holds it; `commitment` is that to what it said first."""

    seq: int
    kind: str
    at: int
    salt: bytes
    commitment: bytes
    text: str
    author: "str | None"
    request: "str | None"
    parents: "str | None"
    redacted: "int | None"

    @classmethod
    def checked(cls, row: "tuple[Any, ...]") -> "Archived":
        """A row of the table `events`, or a ValueError or TypeError if it is not as written."""
        found = cls(*row).replace(text=events.as_text(row[5]))
        if found.redacted is None and found.commitment != events.commit_to(found.salt, found.text):
            raise ValueError("an event was changed after it was written")
        return found

    def facts(self) -> "list[Any]":
        """What a segment keeps of it: no number, and no commitment that follows from the text."""
        old = self.commitment.hex() if self.redacted is not None else None
        envelope = (self.author, self.request, self.parents, self.redacted)
        return [self.kind, self.at, self.salt.hex(), old, self.text, *envelope]

    @classmethod
    def from_facts(cls, seq: int, facts: "Any") -> "Archived":  # noqa: ANN401 - as JSON gave it
        """The same, read."""
        kind, at, salt, old, text, *envelope = facts
        salt = bytes.fromhex(salt)
        commitment = events.commit_to(salt, text) if old is None else bytes.fromhex(old)
        return cls(seq, str(kind), int(at), salt, commitment, text, *envelope)

    def link_after(self, before: bytes) -> bytes:
        """The link that ties it to the event before."""
        envelope = events.envelope_of(self.author, self.request, self.parents)
        return events.chain_over(before, self.seq, self.kind, self.at, envelope, self.commitment)

    def event(self, origin: str) -> "Event":
        """The event."""
        envelope = (self.author, self.request, self.parents, self.text)
        return events.as_event((origin, self.seq, self.kind, self.at, *envelope))


class Segment(Value):
    """Some thousand events: their numbers, from when to when, and the link of the last one."""

    first: int
    last: int
    began: int
    ended: int
    link: bytes
    data: bytes

    def rows(self) -> "list[Archived]":
        """The events, or a DamagedStoreError that names them."""
        return self._read(range(self.last - self.first + 1))

    def row(self, seq: int) -> Archived:
        """One of them."""
        return self._read(range(seq - self.first, seq - self.first + 1))[0]

    def _read(self, places: range) -> "list[Archived]":
        try:
            facts = json_text.loads(zlib.decompress(self.data).decode())
            if len(facts) != self.last - self.first + 1:
                raise DamagedStoreError(f"{self.name} are not complete")
            return [Archived.from_facts(self.first + n, facts[n]) for n in places]
        except (TypeError, ValueError, zlib.error, RecursionError):
            raise DamagedStoreError(f"{self.name} cannot be read") from None

    @property
    def name(self) -> str:
        """Which events it holds, in words."""
        days = (time.strftime("%Y-%m-%d", time.localtime(at / 1e9)) for at in self._times())
        return f"events {self.first} to {self.last} of the archive ({' to '.join(days)})"

    def _times(self) -> "tuple[int, int]":
        return self.began, self.ended


def segments(db: "Connection", where: str = "", *values: int) -> "Iterator[Segment]":
    """The segments, the oldest first."""
    for row in db.execute(_SELECT + where + " ORDER BY first", values).fetchall():
        if not all(map(isinstance, row, (int, int, int, int, bytes, bytes))):
            raise DamagedStoreError("the archive of the ledger holds values of the wrong kind")
        yield Segment(*row)


def read_all(db: "Connection", after: int = 0) -> "Iterator[Event]":
    """All events after a number, archived and live."""
    live, began = _begun(events.read(db, "WHERE seq > ? ORDER BY seq", (after,)))
    origin = events.origin(db)
    for segment in segments(db, "WHERE last > ?", after):
        for row in segment.rows():
            if row.seq > after:
                yield row.event(origin)
    yield from began
    yield from live


def read_kind(db: "Connection", kind: str, after: int = 0) -> "Iterator[Event]":
    """All events of one kind after a number, as far as segments can be read."""
    where = "WHERE kind = ? AND seq > ? ORDER BY seq"
    live, began = _begun(events.read(db, where, (kind, after)))
    origin = events.origin(db)
    for segment in segments(db, "WHERE last > ?", after):
        with suppress(DamagedStoreError):
            for row in segment.rows():
                if row.kind == kind and row.seq > after:
                    yield row.event(origin)
    yield from began
    yield from live


def _begun(live: "Iterator[Event]") -> "tuple[Iterator[Event], list[Event]]":
    """What is read of the live events, begun: from here on this connection sees one moment.

    Else an event that `gc` archives between the two reads would be in neither.
    """
    return live, list(islice(live, 1))


def is_readable(db: "Connection") -> bool:
    """Whether all events can be read."""
    try:
        return all(segment.rows() for segment in segments(db))
    except DamagedStoreError:
        return False


def details_let_go(db: "Connection") -> int:
    """The event up to which details were deleted, with the files of their time."""
    trims = (trim.payload or {} for trim in read_kind(db, events.HISTORY_TRIMMED))
    return max((int(str(trim.get("details", 0))) for trim in trims), default=0)


def redactions(db: "Connection") -> "dict[tuple[int, int], bytes]":
    """The commitments to what stands in the place of forgotten words, by (forgotten by, event).

    The commitment to what was there before stays in the chain, and nobody has its salt any more.
    """
    found: dict[tuple[int, int], bytes] = {}
    for event in read_kind(db, events.FORGOTTEN):
        told: Any = (event.payload or {}).get("events")
        found |= {(event.seq, int(seq)): bytes.fromhex(said) for seq, said in told or ()}
    return found


def find(db: "Connection", seq: int) -> "Event | None":
    """The archived event with this number."""
    for segment in segments(db, "WHERE ? BETWEEN first AND last", seq):
        return segment.row(seq).event(events.origin(db))
    return None


def check(
    segment: Segment, expected: int, chain: bytes, redacted: "Redactions"
) -> "Iterator[Reason]":
    """What is wrong with a segment that should begin with an event, chained to a link."""
    if segment.first != expected:
        yield Reason(reasons.ARCHIVE_MISSING, first=expected, last=segment.first - 1)
        return
    try:
        rows = segment.rows()
    except DamagedStoreError as problem:
        yield Reason(reasons.DAMAGED, problem=str(problem))
        return
    for row in rows:
        chain = row.link_after(chain)
        if row.redacted is not None:
            told = redacted.get((row.redacted, row.seq))
            if events.commit_to(row.salt, row.text) != told:
                yield Reason(reasons.ARCHIVED_EVENT_CHANGED, event=row.seq)
    if chain != segment.link:
        yield Reason(reasons.ARCHIVE_CHANGED, segment=segment.name)


def add(db: "Connection") -> int:
    """Move the oldest live events to a new segment, in the caller's transaction; how many went.

    They go if nothing can undo what they are about. A log that is damaged stays as it is, and so
    does what a newer program wrote: only that one knows how long it is needed.
    """
    newest = db.execute("SELECT last, link FROM archive ORDER BY last DESC LIMIT 1").fetchone()
    last, chain = newest or (0, events.first_link(db))
    first, last = last + 1, last + SEGMENT
    needed = db.execute(_FIRST_NEEDED).fetchone()[0]
    if needed is None or needed <= last:
        return 0
    try:
        live = db.execute(_LIVE, (first, last)).fetchall()
        rows = [Archived.checked(row[:-1]) for row in live]
        for row in rows:
            chain = row.link_after(chain)
        is_sound = [row.seq for row in rows] == [*range(first, last + 1)] and chain == live[-1][-1]
    except (TypeError, ValueError, AttributeError):
        return 0
    if not is_sound or any(row.kind not in events.KINDS for row in rows):
        return 0
    values = (first, last, rows[0].at, rows[-1].at, chain, _pack(rows))
    operations.sql(db, _INSERT, values)
    operations.sql(db, "DELETE FROM events WHERE seq <= ?", (last,))
    return len(rows)


def redact(db: "Connection", texts: "Mapping[int, tuple[bytes, str]]", by: int) -> None:
    """Let archived events say something else: new salts and texts, by number.

    Commitments and links stay. `by` is the event that tells so.
    """
    for segment in segments(db):
        if not any(segment.first <= seq <= segment.last for seq in texts):
            continue
        rows = segment.rows()
        for place, row in enumerate(rows):
            if row.seq in texts:
                salt, text = texts[row.seq]
                rows[place] = row.replace(salt=salt, text=text, redacted=by)
        change = "UPDATE archive SET data = ? WHERE first = ?"
        operations.sql(db, change, (_pack(rows), segment.first))


def _pack(rows: "list[Archived]") -> bytes:
    text = json_text.dumps([row.facts() for row in rows])
    return zlib.compress(text.encode(), 9)

"""The event log: append, chain, read.

Each event is chained to the one before over a *commitment* to its payload, so that a payload can
be forgotten later without breaking the chain. Kinds that this program does not know, written by
a newer one, are kept and chained like all others.
"""

import os
from hashlib import sha256

from takeback.errors import DamagedStoreError
from takeback.model import jsontext
from takeback.store import eventtext, fsops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from takeback.model.jsontext import Json
    from takeback.store.sqlite import Connection

CHECKPOINT_TAKEN = "CheckpointTaken"
CHECKPOINT_NAMED = "CheckpointNamed"
SESSION_STARTED = "SessionStarted"
SESSION_RESUMED = "SessionResumed"
SESSION_ENDED = "SessionEnded"
TURN_STARTED = "TurnStarted"
TURN_RESUMED = "TurnResumed"
TURN_ENDED = "TurnEnded"
STEP_STARTED = "StepStarted"
STEP_DETACHED = "StepDetached"
STEP_ASKED = "StepAsked"
STEP_BEGAN = "StepBegan"
STEP_ENDED = "StepEnded"
RESTORE_APPLIED = "RestoreApplied"
RESTORE_TAKEN_BACK = "RestoreTakenBack"
RESTORE_SET_ASIDE = "RestoreSetAside"
SAVES_RESCUED = "SavesRescued"
TEXTS_MERGED = "TextsMerged"
OUTSIDE_SEEN = "OutsideSeen"
CHECKPOINT_KEPT = "CheckpointKept"
CHECKPOINT_RELEASED = "CheckpointReleased"
HISTORY_TRIMMED = "HistoryTrimmed"
PACKS_MERGED = "PacksMerged"
FORGOTTEN = "Forgotten"
CONVERSATION_REWOUND = "ConversationRewound"
CONVERSATION_COPIED = "ConversationCopied"
SESSION_TOLD = "SessionTold"
HOOK_HANDLED = "HookHandled"

KINDS = (
    CHECKPOINT_TAKEN,
    CHECKPOINT_NAMED,
    SESSION_STARTED,
    SESSION_RESUMED,
    SESSION_ENDED,
    TURN_STARTED,
    TURN_RESUMED,
    TURN_ENDED,
    STEP_STARTED,
    STEP_ASKED,
    STEP_BEGAN,
    STEP_DETACHED,
    STEP_ENDED,
    RESTORE_APPLIED,
    RESTORE_TAKEN_BACK,
    RESTORE_SET_ASIDE,
    SAVES_RESCUED,
    TEXTS_MERGED,
    OUTSIDE_SEEN,
    CHECKPOINT_KEPT,
    CHECKPOINT_RELEASED,
    HISTORY_TRIMMED,
    PACKS_MERGED,
    FORGOTTEN,
    CONVERSATION_REWOUND,
    CONVERSATION_COPIED,
    SESSION_TOLD,
    HOOK_HANDLED,
)
"""Every kind that this program knows; newer ones may write others."""

NO_CHAIN = bytes(32)
_MOST = 1 << 62
_INSERT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)"
_UNKNOWN = f"WHERE seq > ? AND kind NOT IN ({', '.join('?' * len(KINDS))}) ORDER BY seq"
_SELECT = "SELECT seq, kind, at, author, request, parents, payload FROM events "


class NewEvent:
    """A fact that is about to be appended."""

    __slots__ = ("at", "kind", "parents", "payload", "request")

    def __init__(
        self,
        kind: str,
        payload: "Mapping[str, Json]",
        at: int,
        *,
        parents: "tuple[int, ...]" = (),
        request: "str | None" = None,
    ) -> None:
        self.kind = kind
        self.payload = payload
        self.at = at
        self.parents = parents
        self.request = request


class Event:
    """A fact in the log; `payload` is None when it was forgotten."""

    __slots__ = ("at", "author", "kind", "parents", "payload", "request", "seq")

    def __init__(
        self,
        seq: int,
        kind: str,
        at: int,
        author: "str | None",
        request: "str | None",
        parents: "tuple[int, ...]",
        payload: "Mapping[str, Json] | None",
    ) -> None:
        self.seq = seq
        self.kind = kind
        self.at = at
        self.author = author
        self.request = request
        self.parents = parents
        self.payload = payload


def append(db: "Connection", event: NewEvent, author: str) -> "tuple[int, bytes]":
    """Write an event at the end of the log; its number and its link."""
    last = db.execute("SELECT seq, chain FROM events ORDER BY seq DESC LIMIT 1")
    seq, chain = last.fetchone() or (0, NO_CHAIN)
    seq = int(seq) + 1
    text, salt = jsontext.dumps(event.payload), os.urandom(16)
    parents = jsontext.dumps(event.parents)
    commitment = commit_to(salt, text)
    envelope = envelope_of(author, event.request, parents)
    link = chain_over(as_link(chain), seq, event.kind, event.at, envelope, commitment)
    values = (seq, event.kind, event.at, salt, commitment, link, eventtext.pack(text))
    fsops.sql(db, _INSERT, (*values, author, event.request, parents))
    return seq, link


def commit_to(salt: bytes, text: str) -> bytes:
    """The commitment to a payload; without the salt it says nothing about the text."""
    return sha256(salt + text.encode("utf-8", "surrogatepass")).digest()


def as_text(payload: object) -> str:
    """What an event says, packed or plain (or a ValueError)."""
    return eventtext.unpack(payload) if isinstance(payload, bytes) else str(payload)


def envelope_of(author: "str | None", request: "str | None", parents: "str | None") -> bytes:
    """What is chained of an event's envelope, if it has one."""
    if author is None and request is None and parents is None:
        return b""
    return jsontext.dumps((author, request, parents)).encode() + b" "


def chain_over(
    before: bytes, seq: int, kind: str, at: int, envelope: bytes, commitment: bytes
) -> bytes:
    """The link that ties an event to all events before it."""
    said = b"%d %s %d " % (seq, kind.encode("utf-8", "surrogatepass"), at)
    return sha256(before + said + envelope + commitment).digest()


def redactions(db: "Connection") -> "dict[tuple[int, int], bytes]":
    """The commitments to what stands in the place of forgotten words, by (forgotten by, event).

    The commitment to what was there before stays in the chain, and nobody has its salt any more.
    """
    found: dict[tuple[int, int], bytes] = {}
    for event in read(db, "WHERE kind = ? ORDER BY seq", (FORGOTTEN,)):
        told: Any = (event.payload or {}).get("events")
        found |= {(event.seq, int(seq)): bytes.fromhex(said) for seq, said in told or ()}
    return found


def as_link(value: object) -> bytes:
    """A link as the database gave it; a flipped bit can make something else of it."""
    if not isinstance(value, bytes):
        raise DamagedStoreError("an event of the ledger holds values of the wrong kind")
    return value


def read(
    db: "Connection", where: str = "ORDER BY seq", values: "tuple[str | int, ...]" = ()
) -> "Iterator[Event]":
    """Events, in the order of their numbers unless told otherwise."""
    for row in db.execute(_SELECT + where, values):
        yield _as_event(row)


def _as_event(row: "tuple[object, ...]") -> Event:
    seq, kind, at, author, request, parents, payload = row
    if not (isinstance(seq, int) and isinstance(kind, str) and isinstance(at, int)):
        raise DamagedStoreError("an event of the ledger holds values of the wrong kind")
    try:
        above = tuple(map(int, jsontext.loads(str(parents)))) if parents is not None else ()
        said = jsontext.loads(as_text(payload)) if payload is not None else None
    except (TypeError, ValueError, RecursionError):
        raise DamagedStoreError(f"event {seq} of the ledger cannot be read") from None
    texts = [None if text is None else str(text) for text in (author, request)]
    return Event(seq, kind, at, texts[0], texts[1], above, said)


def unknown(db: "Connection", since: int = 0) -> "Iterator[Event]":
    """Events of kinds that this program does not know, after the event `since`."""
    yield from read(db, _UNKNOWN, (since, *KINDS))


def packs_in(payload: object) -> "list[tuple[str, int, int]]":
    """The packs that an event of any kind brings: name, bytes, objects, as far as told as usual.

    It is part of every event's envelope, whatever its kind: a store that does not know the kind
    keeps its packs.
    """
    told = payload.get("packs") if isinstance(payload, dict) else None
    rows = [row[:3] for row in told if isinstance(row, list)] if isinstance(told, list) else []
    return [
        (name, size, objects)
        for name, size, objects in (row for row in rows if len(row) == 3)
        if isinstance(name, str)
        and name.startswith("pack-")
        and all(type(n) is int and 0 <= n < _MOST for n in (size, objects))
    ]


def with_request(db: "Connection", request: str) -> "Event | None":
    """The event that was appended for a request, if it was."""
    return next(read(db, "WHERE request = ?", (request,)), None)

"""The event log: append, chain, read.

Each event is chained to the one before over a *commitment* to its payload, so that a payload can
be forgotten later without breaking the chain. Kinds that this program does not know, written by
a newer one, are kept and chained like all others.

The payload of any event, of a known kind or not, may name what the event needs: `packs`, which it
brings, and `objects`, by id. gc keeps these, `verify` looks for them, `forget` takes them out.

What an event says at length (the input and the output of a tool) is its `detail`: a text of its
own, which the payload commits to, so that it can be deleted with the files of its time.

The chain begins at the store's origin, a random id: (origin, number) names an event among those of
many machines, so that their logs can be put together without new numbers.

What events say, in less space.

The text of an event is deflated, with the words that all events share as a dictionary; that is a
third of it, for some microseconds. The commitment in the chain is over the text, and each event
is deflated by itself, so that it can be read, or forgotten, without the others.
"""

import os
import zlib
from hashlib import sha256

from takeback.disk import operations
from takeback.errors import DamagedStoreError
from takeback.model.text import json_text
from takeback.model.tree import Entry
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from takeback.disk.sqlite import Connection
    from takeback.ledger.ledger import Ledger
    from takeback.model.text.json_text import Json
    from takeback.objects.pack_write import SealedPack

    EventId = tuple[str, int]
    """Origin and number."""


_FIRST_WORDS = 1
"""Which dictionary a text was deflated with: its first byte. Dictionaries never change."""
_WINDOW = -13
"""8 KiB, without a head. To set up a larger one takes ten times as long as most texts."""
_LONGEST_TEXT, _STEP = 1 << 16, 64
_WORDS = {
    _FIRST_WORDS: b'"outside":[],"partial":false,"because":"","goal":"","target":null,"entry":null,'
    b'"turns":["","before":"","after":"","restore":"","saves":[["","verb":"undo","redo","rollback",'
    b'"agent":"","own_id":"","title":"","holder":"","inside":null,"parent":null,"tool":"Bash",'
    b'"kind":"shell","summary":"","paths":[],"background":false,"status":"failed","interrupted",'
    b'"omit",0],["","create",0],["","delete",0],["","rename",0],["","mode",0],["","link",0],["src/'
    b'{"step":"","turn":"","tool":"Edit","kind":"edit","summary":"","paths":[""],"looked":179'
    b'{"turn":"","session":"","label":"","whole":true,"checkpoint":"","looked":179,"git":null}'
    b'{"checkpoint":"","label":"","tree":"","root":"","view":"","entries":,'
    b'"changed":,"packs":[[,"pack-","session":null,"turn":"","step":null,"looked":179,"authors":'
    b'[["you","",null,null,null,[]],["step","edit","","","",[]],["step","turn","","",null,[]]],'
    b'"deltas":[["","write",0],["","write",0],["'
    b'{"turn":"","status":"done","git":null,"changes":[["","write",1,0,"edit"],["","write",2,3,'
    b'"shell"],["","write",1,1,"turn"],["","write",1,1,"turn"]],"ended":179,"checkpoint":"",'
    b'"looked":179'
}


def pack(text: str) -> bytes:
    """Return what an event says, deflated."""
    data = text.encode("utf-8", "surrogatepass")
    words = _WORDS[_FIRST_WORDS]
    stream = zlib.compressobj(6, zlib.DEFLATED, _WINDOW, 6, zlib.Z_DEFAULT_STRATEGY, words)
    packed = bytes((_FIRST_WORDS,)) + stream.compress(data) + stream.flush()
    return packed + zlib.crc32(packed).to_bytes(4, "big")


def unpack(data: bytes) -> str:
    """Return what an event says; a ValueError if nobody packed that."""
    words = _WORDS.get(data[0]) if data else None
    # Not every bit of a deflated stream matters to what it inflates to; here each does.
    if words is None or zlib.crc32(data[:-4]).to_bytes(4, "big") != data[-4:]:
        raise ValueError("the words of an event cannot be read")
    stream = zlib.decompressobj(_WINDOW, words)
    try:
        text = stream.decompress(data[1:-4])
    except zlib.error:
        raise ValueError("the words of an event cannot be inflated") from None
    if not stream.eof or stream.unused_data:
        raise ValueError("the words of an event are cut off")
    return text.decode("utf-8", "surrogatepass")


def anywhere_in(data: bytes) -> "Iterator[bytes]":
    """Whatever inflates in some bytes as the text of an event would, whole or cut off.

    For who looks whether something is left of a text where nothing should be.
    """
    view = memoryview(data)
    for first, words in _WORDS.items():
        at = data.find(first)
        while at >= 0:
            found = _inflated(view[at + 1 :], words)
            if found:
                yield found
            at = data.find(first, at + 1)


def _inflated(view: memoryview, words: bytes) -> bytes:
    """What some bytes inflate to, as far as they do."""
    stream, found = zlib.decompressobj(_WINDOW, words), []
    for at in range(0, min(len(view), _LONGEST_TEXT), _STEP):
        try:
            found.append(stream.decompress(view[at : at + _STEP]))
        except zlib.error:
            break
        if stream.eof:
            break
    return b"".join(found)


LINE_STARTED = "LineStarted"
CHECKPOINT_TAKEN = "CheckpointTaken"
CHECKPOINT_NAMED = "CheckpointNamed"
SESSION_STARTED = "SessionStarted"
SESSION_RESUMED = "SessionResumed"
SESSION_ENDED = "SessionEnded"
SESSION_PAUSED = "SessionPaused"
SESSION_RELEASED = "SessionReleased"
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
LOSSES_SEEN = "LossesSeen"
CHECKPOINT_KEPT = "CheckpointKept"
CHECKPOINT_RELEASED = "CheckpointReleased"
HISTORY_TRIMMED = "HistoryTrimmed"
PACKS_MERGED = "PacksMerged"
FORGOTTEN = "Forgotten"
CONVERSATION_REWOUND = "ConversationRewound"
CONVERSATION_COPIED = "ConversationCopied"
SESSION_TOLD = "SessionTold"
CALL_REFUSED = "CallRefused"
HOOK_HANDLED = "HookHandled"
LESSON_NOTED = "LessonNoted"
LESSON_CHANGED = "LessonChanged"
LESSONS_TOLD = "LessonsTold"
RELAPSE_SEEN = "RelapseSeen"
EFFECT_REPORTED = "EffectReported"
EFFECT_COMPENSATED = "EffectCompensated"
GUARD_MODE_SET = "GuardModeSet"
GUARD_ALLOWED = "GuardAllowed"
GUARD_ASKED = "GuardAsked"
PARTICIPANTS_CAPTURED = "ParticipantsCaptured"
PARTICIPANTS_MOVED = "ParticipantsMoved"
MEMORY_CHANGED = "MemoryChanged"
MUTATION_RECORDED = "MutationRecorded"
MUTATION_SETTLED = "MutationSettled"
RESCUE_MADE = "RescueMade"
RESCUE_SETTLED = "RescueSettled"
RESCUES_DROPPED = "RescuesDropped"
WORK_PLAN_STARTED = "WorkPlanStarted"
WORK_PLAN_RESUMED = "WorkPlanResumed"
WORK_PLAN_ENDED = "WorkPlanEnded"
PLAN_STEP_STARTED = "PlanStepStarted"
PLAN_STEP_ENDED = "PlanStepEnded"
PLAN_STEPS_TAKEN_BACK = "PlanStepsTakenBack"

KINDS = {
    LINE_STARTED: "",
    CHECKPOINT_TAKEN: "",
    CHECKPOINT_NAMED: "",
    SESSION_STARTED: "",
    SESSION_RESUMED: "",
    SESSION_ENDED: "",
    SESSION_PAUSED: "",
    SESSION_RELEASED: "",
    TURN_STARTED: "",
    TURN_RESUMED: "",
    TURN_ENDED: "",
    STEP_STARTED: "",
    STEP_ASKED: "",
    STEP_BEGAN: "",
    STEP_DETACHED: "",
    STEP_ENDED: "",
    RESTORE_APPLIED: "",
    RESTORE_TAKEN_BACK: "",
    RESTORE_SET_ASIDE: "",
    SAVES_RESCUED: "",
    TEXTS_MERGED: "",
    OUTSIDE_SEEN: "",
    LOSSES_SEEN: "",
    CHECKPOINT_KEPT: "",
    CHECKPOINT_RELEASED: "",
    HISTORY_TRIMMED: "",
    PACKS_MERGED: "",
    FORGOTTEN: "",
    CONVERSATION_REWOUND: "",
    CONVERSATION_COPIED: "",
    CALL_REFUSED: "",
    HOOK_HANDLED: "",
    SESSION_TOLD: "lessons",
    LESSON_NOTED: "lessons",
    LESSON_CHANGED: "lessons",
    LESSONS_TOLD: "lessons",
    RELAPSE_SEEN: "lessons",
    EFFECT_REPORTED: "effects",
    EFFECT_COMPENSATED: "effects",
    GUARD_MODE_SET: "effects",
    GUARD_ALLOWED: "effects",
    GUARD_ASKED: "effects",
    PARTICIPANTS_CAPTURED: "participants",
    PARTICIPANTS_MOVED: "participants",
    MEMORY_CHANGED: "memory",
    MUTATION_RECORDED: "mutations",
    MUTATION_SETTLED: "mutations",
    RESCUE_MADE: "rescues",
    RESCUE_SETTLED: "rescues",
    RESCUES_DROPPED: "rescues",
    WORK_PLAN_STARTED: "work_plans",
    WORK_PLAN_RESUMED: "work_plans",
    WORK_PLAN_ENDED: "work_plans",
    PLAN_STEP_STARTED: "work_plans",
    PLAN_STEP_ENDED: "work_plans",
    PLAN_STEPS_TAKEN_BACK: "work_plans",
}
"""Every kind that this program knows; newer ones may write others.

A module of `ledger/beyond` is named with each kind that its tables follow: most events need none,
so each is imported on first use.
"""

_MOST = 1 << 62
_ID = 40
"""Digits of the id of an object."""
_INSERT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)"
_UNKNOWN = f"WHERE seq > ? AND kind NOT IN ({', '.join('?' * len(KINDS))}) ORDER BY seq"
_SELECT = (
    "SELECT (SELECT id FROM origin), seq, kind, at, author, request, parents, payload FROM events "
)


class NewEvent(Value):
    """A fact that is about to be appended.

    `parents` are the events that led to it: numbers of this log, or (origin, number).
    """

    kind: str
    payload: "Mapping[str, Json]"
    at: int
    parents: "tuple[int | EventId, ...]" = ()
    request: "str | None" = None
    detail: "Mapping[str, Json] | None" = None


class Event(Value):
    """A fact in the log; `payload` is None when it was forgotten."""

    origin: str
    seq: int
    kind: str
    at: int
    author: "str | None"
    request: "str | None"
    parents: "tuple[int | EventId, ...]"
    payload: "Mapping[str, Json] | None"

    @property
    def id(self) -> "EventId":
        """What no other event has, on any machine."""
        return self.origin, self.seq


def origin(db: "Connection") -> str:
    """The random id of the store that the log belongs to."""
    row = db.execute("SELECT id FROM origin").fetchone()
    if row is None or not isinstance(row[0], str):
        raise DamagedStoreError("the ledger lost the id of its origin")
    return row[0]


def first_link(db: "Connection") -> bytes:
    """What the first event is chained to."""
    return sha256(b"origin " + origin(db).encode("utf-8", "surrogatepass")).digest()


def append(db: "Connection", new: NewEvent, author: str) -> "tuple[Event, bytes]":
    """Write an event at the end of the log; return it, and its link."""
    last = db.execute("SELECT seq, chain FROM events ORDER BY seq DESC LIMIT 1")
    seq, chain = last.fetchone() or (0, first_link(db))
    seq = int(seq) + 1
    payload = new.payload if new.detail is None else _add_detail(db, seq, new)
    text, salt = json_text.dumps(payload), os.urandom(16)
    parents = json_text.dumps(new.parents)
    commitment = commit_to(salt, text)
    envelope = envelope_of(author, new.request, parents)
    link = chain_over(as_link(chain), seq, new.kind, new.at, envelope, commitment)
    values = (seq, new.kind, new.at, salt, commitment, link, pack(text))
    operations.sql(db, _INSERT, (*values, author, new.request, parents))
    rest = (author, new.request, new.parents, payload)
    return Event(origin(db), seq, new.kind, new.at, *rest), link


def _add_detail(db: "Connection", seq: int, new: NewEvent) -> "Mapping[str, Json]":
    """Store the detail of an event; what the event says, with the commitment to it."""
    text, salt = json_text.dumps(new.detail), os.urandom(16)
    operations.sql(db, "INSERT INTO details VALUES (?, ?, ?)", (seq, salt, pack(text)))
    return {**new.payload, "detail": commit_to(salt, text).hex()}


def detail(db: "Connection", seq: int) -> "dict[str, Any] | None":
    """The detail of an event; None if it has none, or none any more."""
    row = db.execute("SELECT text FROM details WHERE event = ?", (seq,)).fetchone()
    try:
        found = json_text.loads(as_text(row[0])) if row else None
    except (TypeError, ValueError, RecursionError):
        raise DamagedStoreError(f"the detail of event {seq} of the ledger cannot be read") from None
    return found if isinstance(found, dict) else None


def commit_to(salt: bytes, text: str) -> bytes:
    """The commitment to a payload; without the salt it says nothing about the text."""
    return sha256(salt + text.encode("utf-8", "surrogatepass")).digest()


def as_text(payload: object) -> str:
    """What an event says, packed or plain (or a ValueError)."""
    return unpack(payload) if isinstance(payload, bytes) else str(payload)


def envelope_of(author: "str | None", request: "str | None", parents: "str | None") -> bytes:
    """What is chained of an event's envelope, if it has one."""
    if author is None and request is None and parents is None:
        return b""
    return json_text.dumps((author, request, parents)).encode() + b" "


def chain_over(
    before: bytes, seq: int, kind: str, at: int, envelope: bytes, commitment: bytes
) -> bytes:
    """The link that ties an event to all events before it."""
    said = b"%d %s %d " % (seq, kind.encode("utf-8", "surrogatepass"), at)
    return sha256(before + said + envelope + commitment).digest()


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
        yield as_event(row)


def as_event(row: "tuple[object, ...]") -> Event:
    """An event as the database gave it."""
    origin, seq, kind, at, author, request, parents, payload = row
    if not (
        isinstance(origin, str)
        and isinstance(seq, int)
        and isinstance(kind, str)
        and isinstance(at, int)
    ):
        raise DamagedStoreError("an event of the ledger holds values of the wrong kind")
    try:
        above = tuple(map(_as_parent, json_text.loads(str(parents)))) if parents else ()
        said = json_text.loads(as_text(payload)) if payload is not None else None
    except (TypeError, ValueError, RecursionError):
        raise DamagedStoreError(f"event {seq} of the ledger cannot be read") from None
    texts = [None if text is None else str(text) for text in (author, request)]
    return Event(origin, seq, kind, at, texts[0], texts[1], above, said)


def _as_parent(value: "Any") -> "int | EventId":  # noqa: ANN401 - as JSON gave it
    if isinstance(value, list):
        origin, seq = value
        return str(origin), int(seq)
    return int(value)


def unknown(db: "Connection", since: int = 0) -> "Iterator[Event]":
    """Events of kinds that this program does not know, after the event `since`."""
    yield from read(db, _UNKNOWN, (since, *KINDS))


def packs_in(payload: object) -> "list[tuple[str, int, int]]":
    """The packs that an event of any kind brings: name, bytes, number of objects."""
    told = payload.get("packs") if isinstance(payload, dict) else None
    rows = [row[:3] for row in told if isinstance(row, list)] if isinstance(told, list) else []
    return [
        (name, size, objects)
        for name, size, objects in (row for row in rows if len(row) == 3)
        if isinstance(name, str)
        and name.startswith("pack-")
        and all(type(n) is int and 0 <= n < _MOST for n in (size, objects))
    ]


def objects_in(payload: object) -> "list[bytes]":
    """The ids of the objects that an event of any kind needs, besides the tree of a checkpoint."""
    told = payload.get("objects") if isinstance(payload, dict) else None
    ids = told if isinstance(told, list) else []
    return [bytes.fromhex(id) for id in ids if isinstance(id, str) and _is_id(id)]


def _is_id(text: str) -> bool:
    return len(text) == _ID and not text.strip("0123456789abcdef")


def with_request(db: "Connection", request: str) -> "Event | None":
    """The event that was appended for a request, if it was."""
    return next(read(db, "WHERE request = ?", (request,)), None)


# -- what events say of checkpoints, packs and entries ------------------------------------

_TYPES = (int, str, int, bytes, bytes, bytes, int, str, int, int, int | None, int, int | None)


class CheckpointRow(Value):
    """One committed checkpoint as the ledger holds it.

    `gone` is the event that let its files go; they can no longer be read then. `line` is the tree
    that it is a state of, and `parent` the state before it.
    """

    number: int
    id: str
    event: int
    tree: bytes
    root: bytes
    view: bytes
    created: int
    label: str
    entries: int
    changed: int
    gone: "int | None" = None
    line: int = 1
    parent: "int | None" = None

    @classmethod
    def checked(cls, values: "tuple[object, ...]") -> "CheckpointRow":
        """A row as the database gave it; a flipped bit can make a number out of a text."""
        if len(values) != len(_TYPES) or not all(map(isinstance, values, _TYPES)):
            raise DamagedStoreError("a row of the ledger holds values of the wrong kind")
        return cls(*values)  # type: ignore[arg-type]

    def values(self) -> "tuple[bytes | str | int | None, ...]":
        """What the row holds, in the order of the table's columns."""
        place = (self.number, self.id, self.event, self.tree, self.root)
        shown = (self.view, self.created, self.label)
        rest = (self.entries, self.changed, self.gone, self.line, self.parent)
        return *place, *shown, *rest


def row_from(
    place: "tuple[int, int | None, int | None]", event: int, at: int, said: "Mapping[str, Json]"
) -> CheckpointRow:
    """The row that an event of a checkpoint speaks of; its number, line and parent."""
    number, line, parent = place
    return CheckpointRow.checked(
        (
            number,
            said["checkpoint"],
            event,
            bytes.fromhex(str(said["tree"])),
            bytes.fromhex(str(said["root"])),
            bytes.fromhex(str(said["view"])),
            at,
            said["label"],
            said["entries"],
            said["changed"],
            None,
            line,
            parent,
        )
    )


def row_facts(row: CheckpointRow) -> "dict[str, Json]":
    """What the event of a checkpoint says about its row."""
    return {
        "checkpoint": row.id,
        "label": row.label,
        "tree": row.tree.hex(),
        "root": row.root.hex(),
        "view": row.view.hex(),
        "entries": row.entries,
        "changed": row.changed,
    }


def pack_facts(packs: "Iterable[SealedPack]") -> "Json":
    """What any event says about the packs that come with it: name, bytes, number of objects."""
    return [[p.name.decode(), p.size, p.objects] for p in packs]


def entry_facts(entry: "Entry | None") -> "Json":
    """An entry as an event or a row of the journal says it; without its name."""
    if entry is None:
        return None
    hashes = (entry.strong.hex(), entry.oid.hex())
    return [entry.mode, entry.flags, entry.size, *hashes, entry.mtime]


def entry_from(facts: "list[int | str] | None") -> "Entry | None":
    """The entry that such facts speak of."""
    if facts is None:
        return None
    mode, flags, size, strong, oid, mtime = facts
    hashes = bytes.fromhex(str(strong)), bytes.fromhex(str(oid))
    return Entry(b"", int(mode), int(flags), int(size), hashes[0], int(mtime), hashes[1])


def rewind_request(turn: str) -> str:
    """The request of the event that tells that somebody went back inside the agent for a turn."""
    return f"rewound {turn}"


def conversation_of(ledger: "Ledger", opened: int) -> "tuple[str, str]":
    """Where an agent keeps the conversation of a turn, and what it calls its prompt."""
    event = ledger.event(opened)
    known = (event.payload or {}).get("conversation") if event else None
    if isinstance(known, dict):
        return str(known.get("transcript") or ""), str(known.get("prompt") or "")
    return "", ""

"""Saves that came in between a restore and have no place in the tree any more: into the store.

The newest save of a path stays in the tree. An older one, or bytes that somebody wrote through a
descriptor to a file that was displaced, would be gone with our folder; so they get a pack and
an event that names them.
"""

import hashlib

from takeback.errors import UnknownReferenceError
from takeback.model.plan import Remark
from takeback.model.tree import LINK, REGULAR, Entry
from takeback.store import events
from takeback.store.events import NewEvent
from takeback.store.gitobjects import BLOB
from takeback.store.packwrite import SizeMismatchError
from takeback.store.rows import pack_facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from takeback.model.jsontext import Json
    from takeback.store.journal import Journal
    from takeback.store.ledger import Ledger
    from takeback.store.packwrite import PackWriter
    from takeback.store.restoring import Restoring
    from takeback.store.store import Store


_SHORT = 8
_TRIES = 3


def into_store(store: "Store", restoring: "Restoring", row: "Journal", now: int) -> "list[Remark]":
    """Keep what lies in our folder and is no state that the store knows; what was kept."""
    writer = store.pack_writer()
    saves: list[Json] = []
    told: list[Remark] = []
    try:
        for op, name, state in restoring.strangers():
            if state.kind not in (REGULAR, LINK):
                continue
            path = restoring.named(op.path)
            saves.append([_text(path), *_keep(writer, restoring, name, state.kind | state.mode)])
            told.append(Remark(path, _in_words(state.size, row.id)))
        if not saves:
            writer.abort()
            return []
        said: dict[str, Json] = {"restore": row.id, "saves": saves}
        said["packs"] = pack_facts(writer.finish())
        store.ledger.record(NewEvent(events.SAVES_RESCUED, said, now, parents=row.parents))
    except BaseException:
        store.ledger.abandon()
        writer.abort()
        raise
    return told


def _in_words(size: int, restore: str) -> str:
    read = f"`takeback show {restore[:_SHORT]} --rescued PATH` prints it"
    return f"a save of {size:,} bytes that came in between is in the store; {read}"


def _keep(
    writer: "PackWriter", restoring: "Restoring", name: bytes, mode: int
) -> "tuple[Json, ...]":
    """Put one save into a pack; somebody may still write to it."""
    for _ in range(_TRIES if mode & 0o170000 == REGULAR else 0):
        strong = hashlib.sha256()
        size = restoring.stage.size(name)
        try:
            oid = writer.add_large(size, _hashed(restoring.stage.read(name), size, strong))
        except SizeMismatchError:
            continue
        return mode, size, strong.hexdigest(), oid.hex()
    # A link, or a file that somebody empties again and again.
    data = b"".join(restoring.stage.read(name))
    oid = writer.add(BLOB, data)
    return mode, len(data), hashlib.sha256(data).hexdigest(), oid.hex()


def _hashed(pieces: "Iterator[bytes]", size: int, strong: "hashlib._Hash") -> "Iterator[bytes]":
    """So many bytes; what somebody appends meanwhile comes when the file is closed."""
    for piece in pieces:
        piece = piece[:size]
        size -= len(piece)
        strong.update(piece)
        yield piece
        if not size:
            return


def saves(ledger: "Ledger", restore: str) -> "list[tuple[bytes, Entry]]":
    """The saves that came in between a restore, newest first, as entries that can be read.

    `restore` is its id or the beginning of it, also of one that was taken back.
    """
    found = []
    for event in ledger.events("WHERE kind = ? ORDER BY seq DESC", (events.SAVES_RESCUED,)):
        said = event.payload or {}
        if restore and str(said.get("restore")).startswith(restore):
            found += [as_entry(*save) for save in said.get("saves", ())]  # type: ignore[misc, union-attr]
    return found


def as_entry(path: str, mode: int, size: int, strong: str, oid: str) -> "tuple[bytes, Entry]":
    """A save as its event tells it: its path, and an entry that can be read."""
    hashes = bytes.fromhex(strong), bytes.fromhex(oid)
    entry = Entry(b"", mode, 0, size, hashes[0], 0, hashes[1])
    return path.encode("utf-8", "surrogateescape"), entry


def is_kept(ledger: "Ledger", restore: str) -> bool:
    """Whether saves that came in between a restore are young enough to be still kept."""
    from takeback.engine import retention

    row = ledger.checkpoint(retention.floor(ledger))
    last = row.event if row is not None else 0
    where = "WHERE kind = ? AND seq > ? ORDER BY seq"
    found = ledger.events(where, (events.SAVES_RESCUED, last))
    return any(str((e.payload or {}).get("restore")).startswith(restore) for e in found)


def find_save(ledger: "Ledger", restore: str, paths: "Sequence[bytes]") -> Entry:
    """The newest save of a path that came in between a restore."""
    found = saves(ledger, restore)
    for path, entry in found:
        if path in paths:
            return entry
    others = ", ".join(sorted({f"`{path.decode('utf-8', 'replace')}`" for path, _ in found}))
    raise UnknownReferenceError(
        f"no save of that file came in between the restore `{restore}`",
        hint=f"there are saves of {others}" if others else "the report of a restore names them",
    )


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")

"""Saves that came in between a restore and have no place in the tree any more: into the store.

The newest save of a path stays in the tree. An older one, or bytes that somebody wrote through a
descriptor to a file that was displaced, would be gone with our folder; so they get a pack and
an event that names them.
"""

import hashlib

from takeback.errors import UnknownReferenceError
from takeback.model.plan import Remark
from takeback.model.tree import FOLDER, LINK, REGULAR, Entry
from takeback.store import events
from takeback.store.events import NewEvent
from takeback.store.gitobjects import BLOB
from takeback.store.packwrite import SizeMismatchError
from takeback.store.rows import pack_facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from takeback.model.jsontext import Json
    from takeback.store.journal import Journal
    from takeback.store.ledger import Ledger
    from takeback.store.packwrite import PackWriter
    from takeback.store.restoring import Restoring
    from takeback.store.store import Store

_KEPT = "a save that came in between is kept in the store"


def into_store(store: "Store", restoring: "Restoring", row: "Journal", now: int) -> "list[Remark]":
    """Keep what lies in our folder and is no state that the store knows; what was kept."""
    writer = store.pack_writer()
    saves: list[Json] = []
    told: list[Remark] = []
    try:
        for op, name, state in restoring.strangers():
            if state.kind not in (REGULAR, LINK):
                continue
            saves.append([_text(op.path), *_keep(writer, restoring, name, state.kind | state.mode)])
            told.append(Remark(op.path, f"{_KEPT}, {state.size:,} bytes"))
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


def _keep(
    writer: "PackWriter", restoring: "Restoring", name: bytes, mode: int
) -> "tuple[Json, ...]":
    """Put one save into a pack; somebody may still write to it."""
    while True:
        strong = hashlib.sha256()
        data = b"".join(restoring.stage.read(name)) if mode & 0o170000 == LINK else None
        if data is not None:
            strong.update(data)
            oid, number = writer.add(BLOB, data)
            return mode, len(data), strong.hexdigest(), oid.hex(), number
        size = restoring.stage.size(name)
        try:
            oid, number = writer.add_large(size, _hashed(restoring.stage.read(name), strong))
        except SizeMismatchError:
            continue
        return mode, size, strong.hexdigest(), oid.hex(), number


def _hashed(pieces: "Iterator[bytes]", strong: "hashlib._Hash") -> "Iterator[bytes]":
    for piece in pieces:
        strong.update(piece)
        yield piece


def saves_of(ledger: "Ledger", restore: str) -> "list[tuple[bytes, Entry]]":
    """The saves that came in between a restore, oldest first, as entries that can be read."""
    found = []
    for event in ledger.events("WHERE kind = ? ORDER BY seq", (events.SAVES_RESCUED,)):
        said = event.payload or {}
        saves = said.get("saves")
        if said.get("restore") != restore or not isinstance(saves, list):
            continue
        for path, mode, size, strong, oid, number in saves:
            hashes = bytes.fromhex(str(strong)), bytes.fromhex(str(oid))
            entry = Entry(b"", int(mode), 0, int(size), hashes[0], 0, int(number), hashes[1])
            found.append((str(path).encode("utf-8", "surrogateescape"), entry))
    return found


def get_save(ledger: "Ledger", restore: str, path: bytes) -> Entry:
    """The newest save of a path that came in between a restore."""
    for found, entry in reversed(saves_of(ledger, restore)):
        if found == path and entry.kind != FOLDER:
            return entry
    raise UnknownReferenceError("no save of that file came in between this restore")


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")

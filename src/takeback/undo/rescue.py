"""Saves that came in between a restore and have no place in the tree any more: into the store.

The newest save of a path stays in the tree. An older one, or bytes that somebody wrote through a
descriptor to a file that was displaced, would be gone with our folder; so they get a pack and
an event that names them.

A restore that nobody can take back: kept and out of the way, if somebody says so.

Its journal cannot be read, or a path of it cannot be written any more. So nothing in the tree is
changed. Its row goes into the log as an event, byte for byte. Our folder, which may hold saves that
are nowhere else, gets a name that everybody can see: from then on it is a folder like any other,
and checkpoints hold it.
"""

import hashlib
import os

from takeback.disk import descent, operations
from takeback.errors import NoLongerKeptError, UnknownReferenceError
from takeback.history.lookup import Place
from takeback.ledger import journal
from takeback.ledger.log import events
from takeback.ledger.log.events import NewEvent, pack_facts
from takeback.model import reasons
from takeback.model.ids import PREFIX, is_stage
from takeback.model.plan import Remark
from takeback.model.reasons import Action, Reason
from takeback.model.tree import LINK, REGULAR, Entry
from takeback.model.value import path_bytes, path_text
from takeback.objects.git_objects import BLOB
from takeback.objects.pack_write import SizeMismatchError
from takeback.worktree.roots import Roots
from takeback.worktree.stage import Stage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from takeback.ledger.journal import Damaged, Journal
    from takeback.ledger.ledger import Ledger
    from takeback.model.text.json_text import Json
    from takeback.objects.pack_write import PackWriter
    from takeback.store import Store
    from takeback.worktree.swap import PathSwapper


_SHORT = 8
_TRIES = 3


def into_store(store: "Store", swapper: "PathSwapper", row: "Journal", now: int) -> "list[Remark]":
    """Keep what lies in our folder and is no state that the store knows; what was kept."""
    writer = store.pack_writer()
    saves: list[Json] = []
    told: list[Remark] = []
    try:
        for op, name, state in swapper.strangers():
            if state.kind not in (REGULAR, LINK):
                continue
            path = swapper.named(op.path)
            saves.append([path_text(path), *_keep(writer, swapper, name, state.kind | state.mode)])
            told.append(Remark(path, _in_store(state.size, row.id)))
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


def _in_store(size: int, restore: str) -> Reason:
    return Reason(reasons.SAVE_IN_STORE, size=size, restore=restore[:_SHORT])


def of_path(save: Remark, code: str) -> Reason:
    """A save with its path among the facts, to be told by itself."""
    return Reason(code, path=os.fsdecode(save.path), **dict(save.reason.facts))


def _keep(
    writer: "PackWriter", swapper: "PathSwapper", name: bytes, mode: int
) -> "tuple[Json, ...]":
    """Put one save into a pack; somebody may still write to it."""
    for _ in range(_TRIES if mode & 0o170000 == REGULAR else 0):
        strong = hashlib.sha256()
        size = swapper.stage.size(name)
        try:
            oid = writer.add_large(size, _hashed(swapper.stage.read(name), size, strong))
        except SizeMismatchError:
            continue
        return mode, size, strong.hexdigest(), oid.hex()
    # A link, or a file that somebody empties again and again.
    data = b"".join(swapper.stage.read(name))
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
    for event in ledger.events_of(events.SAVES_RESCUED, newest_first=True):
        said = event.payload or {}
        if restore and str(said.get("restore")).startswith(restore):
            found += [as_entry(*save) for save in said.get("saves", ())]  # type: ignore[misc, union-attr]
    return found


def as_entry(path: str, mode: int, size: int, strong: str, oid: str) -> "tuple[bytes, Entry]":
    """A save as its event tells it: its path, and an entry that can be read."""
    hashes = bytes.fromhex(strong), bytes.fromhex(oid)
    entry = Entry(b"", mode, 0, size, hashes[0], 0, hashes[1])
    return path_bytes(path), entry


def is_kept(ledger: "Ledger", restore: str) -> bool:
    """Whether saves that came in between a restore are young enough to be still kept."""
    from takeback.history import retention

    row = ledger.checkpoints.numbered(retention.floor(ledger))
    last = row.event if row is not None else 0
    found = ledger.events_of(events.SAVES_RESCUED, after=last)
    return any(str((e.payload or {}).get("restore")).startswith(restore) for e in found)


def find_kept(ledger: "Ledger", restore: str, root: bytes, inside: bytes, path: bytes) -> Entry:
    """The newest save of a path, counted from `inside`, if it is still kept."""
    whole = descent.whole(root, inside, path)
    is_outside = any(whole == saved for saved, _ in saves(ledger, restore))
    entry = find_save(
        ledger, restore, [whole] if is_outside else Place(root, inside).candidates(path)
    )
    if not is_kept(ledger, restore):
        raise NoLongerKeptError(
            f"files saved during the restore `{restore}` are no longer kept",
            hint=Action("log-tells"),
        )
    return entry


def find_save(ledger: "Ledger", restore: str, paths: "Sequence[bytes]") -> Entry:
    """The newest save of a path that came in between a restore."""
    found = saves(ledger, restore)
    for path, entry in found:
        if path in paths:
            return entry
    others = ", ".join(sorted({f"`{path.decode('utf-8', 'replace')}`" for path, _ in found}))
    raise UnknownReferenceError(
        f"that file was not saved during the restore `{restore}`",
        hint=f"these files were saved: {others}"
        if others
        else "the report of a restore lists such files",
    )


_MOST_SHOWN = 10


def left_alone(row: "Damaged") -> Reason:
    """A row that cannot be read, whenever somebody comes across it."""
    return Reason(reasons.JOURNAL_DAMAGED, stage=row.stage)


def stuck(row: "Journal") -> Reason:
    """A restore that could not be taken back yet."""
    paths = tuple(map(os.fsdecode, row.paths))
    return Reason(reasons.RESTORE_STUCK, verb=row.verb, title=row.title, paths=paths)


def shown(paths: "Sequence[bytes]") -> str:
    """Some paths by name, and how many more there are."""
    named = [f"`{os.fsdecode(path or b'.')}`" for path in paths[:_MOST_SHOWN]]
    more = [f"{len(paths) - _MOST_SHOWN:,} more"] if len(paths) > _MOST_SHOWN else []
    return ", ".join(named + more)


def set_aside(store: "Store", root: int, now: int) -> "list[Reason]":
    """Let work go on without the rows that nobody can act on; what became of each."""
    unread, rows = store.ledger.journal.damaged(), store.ledger.journal.unfinished()
    if not unread and not rows:
        return []
    # First the folders, durably: without a row the next start would take them for litter.
    folders = _show_folders(store, root, now) + _show_outside(store, [*unread, *rows])
    _sync(root)
    for row in (*unread, *rows):
        said: dict[str, Json] = {"restore": path_text(row.id), "phase": path_text(row.phase)}
        said |= {"row": path_text(row.said), "folders": [path_text(name) for name in folders]}
        fact = NewEvent(events.RESTORE_SET_ASIDE, said, now)
        store.ledger.record(fact, setting_aside=row.number)
    named = tuple(map(os.fsdecode, folders))
    codes = [reasons.SET_ASIDE_UNREAD] * len(unread) + [reasons.SET_ASIDE] * len(rows)
    return [Reason(code, folders=named) for code in codes]


def _show_folders(store: "Store", root: int, now: int) -> "list[bytes]":
    """Give the folders of restores that no row speaks of names that everybody can see."""
    rows = store.ledger.journal.read()
    known = {row.stage for row in rows if row.phase != journal.APPLYING}
    by_stage = {row.stage: row for row in rows}
    found = []
    for name in sorted(map(os.fsencode, os.listdir(root))):
        if not is_stage(name) or name in known:
            continue
        try:
            found.append(Stage(root, name, store.objects).show())
        except OSError:
            if name not in by_stage:
                raise
            # Nothing can be renamed here: what is nowhere else goes into the store instead.
            _rescue(store, root, by_stage[name], now)
    return found


def _rescue(store: "Store", root: int, row: "Journal", now: int) -> None:
    roots = Roots(root, store.objects, row, is_way_back=True)
    try:
        roots.open_stages()
        for swapper in roots.each:
            into_store(store, swapper, row, now)
    finally:
        roots.close()


def _sync(root: int) -> None:
    try:
        operations.fsync(root)
    except OSError:
        if not os.fstatvfs(root).f_flag & os.ST_RDONLY:
            raise


def _show_outside(store: "Store", rows: "list[Damaged]") -> "list[bytes]":
    """The same beside files outside the project, as far as the rows still tell their ids."""
    stages = {PREFIX + row.id for row in rows if is_stage(PREFIX + row.id)}
    found = []
    for folder in store.ledger.outside.folders() if stages else ():
        try:
            fd = descent.open_folder(folder)
        except OSError:
            continue
        try:
            there = [Stage(fd, name, store.objects) for name in sorted(stages)]
            found += [os.path.join(folder, each.show()) for each in there if each.is_there()]
        finally:
            os.close(fd)
    return found

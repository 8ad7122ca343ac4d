"""The stat cache: what every known folder and file looked like when it was last captured.

It is disposable. It is used only if its checksum holds, it was written in this boot of the
machine, for this store and these rules, and for a checkpoint that the ledger knows; otherwise
everything is looked at again. So it is never synced, and a crash at any moment costs time only.

    header, 128 bytes: magic, length of the records, number of the checkpoint, state, checksum of
                       the records, checksum of the header, tree, identity, number of entries
    records: see `folders`. They follow each other in pre-order and say how deep they are, not
                       where their parent is, so pieces are cut out or put in by copying bytes
"""

import os
import zlib
from hashlib import sha256
from struct import Struct

from takeback.disk import operations
from takeback.disk.home import replace_file
from takeback.model.tree import REASON, UNSTABLE
from takeback.worktree import folders, stat_loop
from takeback.worktree.folders import ENTRY, RACY, RECORD, unpack_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from takeback.worktree.folders import Folder
    from takeback.worktree.stat_loop import Report

    Records = bytes | bytearray

    Pieces = list[tuple[int, int, bytes]]

    Wanted = dict[bytes, "Wanted"]


_HEAD = Struct("<IHHI")
_HEAD_AND_FLAGS = Struct("<IHHII")
_FOLDER_FLAGS, _FOLDER_FLAGS_AT = Struct("<I"), 12
_ENTRY_FLAGS, _ENTRY_FLAGS_AT = Struct("<H"), 36

TELLS = 0x0200
"""Flag of a folder that holds something left out or unstable itself."""


def below(records: "Records", offset: int) -> "Iterator[tuple[int, int, int]]":
    """(offset, depth, entries) of a record and of all records below it."""
    _, top, _, _ = _HEAD.unpack_from(records, offset)
    at, end = offset, len(records)
    while at < end:
        length, depth, _, count = _HEAD.unpack_from(records, at)
        if depth <= top and at != offset:
            return
        yield at, depth, count
        at += length


def end_of(records: "Records", offset: int) -> int:
    end = offset
    for at, _, _ in below(records, offset):
        end = at + int(_HEAD.unpack_from(records, at)[0])
    return end


def subfolders(records: "Records", offset: int) -> "dict[bytes, int]":
    """The records of the direct subfolders of the folder at `offset`, by name."""
    wanted = _HEAD.unpack_from(records, offset)[1] + 1
    return {_name(records, at): at for at, depth, _ in below(records, offset) if depth == wanted}


def paths(records: "Records") -> "Iterator[bytes]":
    """The path of each folder, those above first."""
    above: list[bytes] = []
    for at, depth, _ in below(records, 0) if records else ():
        del above[depth:]
        name = _name(records, at)
        path = above[-1] + b"/" + name if depth > 1 else name
        above.append(path)
        yield path


def cut(records: "Records", paths: "Iterable[bytes]") -> "tuple[bytes, dict[int, int]]":
    """The records of some folders and of those above them; where each of them was.

    They stay in their order and say how deep they are, so they are records of a smaller tree.
    Paths that are no folders are passed over.
    """
    wanted: Wanted = {}
    for path in paths:
        at = wanted
        for name in path.split(b"/") if path else ():
            at = at.setdefault(name, {})
    taken: list[bytes] = []
    places: dict[int, int] = {}
    view, way, at_new = memoryview(records), [wanted], 0
    for at_old, depth, _ in below(records, 0) if wanted else ((0, 0, 0),):
        if depth > len(way):
            continue  # below a folder that is not wanted
        if depth:
            del way[depth:]
            found = way[-1].get(_name(records, at_old))
            if found is None:
                continue
            way.append(found)
        piece = bytes(view[at_old : at_old + _HEAD.unpack_from(records, at_old)[0]])
        places[at_new] = at_old
        taken.append(piece)
        at_new += len(piece)
    return b"".join(taken), places


def reports(records: "Records", root: int, within: "Iterable[bytes] | None") -> "list[Report]":
    """What the stat loop says of the records; with `within`, of these folders only."""
    if within is None:
        return stat_loop.scan(records, root)
    some, places = cut(records, within)
    return [
        (places[offset], status, tuple(places[above] for above in ancestors), indices)
        for offset, status, ancestors, indices in stat_loop.scan(some, root)
    ]


def distrust(records: bytearray, paths: "Iterable[bytes]") -> None:
    """Mark entries, and the folders they are in, as too young to trust: they are read again."""
    below_of: dict[int, dict[bytes, int]] = {}
    for path in paths:
        *way, name = path.split(b"/")
        at = 0
        for step in way:
            if at not in below_of:
                below_of[at] = subfolders(records, at)
            deeper = below_of[at].get(step)
            if deeper is None:
                break
            at = deeper
        else:
            _mark_entry(records, at, name)
        _or_flag(_FOLDER_FLAGS, records, at + _FOLDER_FLAGS_AT)


def _mark_entry(records: bytearray, at: int, name: bytes) -> None:
    for place, (_, found) in enumerate(unpack_record(records, at)[2]):
        if found == name:
            _or_flag(_ENTRY_FLAGS, records, at + RECORD.size + place * ENTRY.size + _ENTRY_FLAGS_AT)


def _or_flag(kind: Struct, records: bytearray, at: int) -> None:
    kind.pack_into(records, at, kind.unpack_from(records, at)[0] | RACY)


def is_big(records: "Records", offset: int, limit: int) -> bool:
    total = 0
    for _, _, count in below(records, offset):
        total += count
        if total > limit:
            return True
    return False


def count_entries(records: "Records", start: int = 0, end: "int | None" = None) -> int:
    """How many captured entries the records between two offsets hold."""
    total, at = 0, start
    end = len(records) if end is None else end
    while at < end:
        length, _, _, count, flags = _HEAD_AND_FLAGS.unpack_from(records, at)
        total += count
        if flags & TELLS:
            total -= sum(1 for f, _ in unpack_record(records, at)[2] if f[5] & REASON)
        at += length
    return total


def entries_added(records: "Records", pieces: "Pieces") -> int:
    """By how much the number of entries grows when the pieces are replaced."""
    return sum(
        count_entries(fresh) - count_entries(records, start, end) for start, end, fresh in pieces
    )


def flagged(records: "Records") -> "Iterator[tuple[bytes, int]]":
    """(path, flags) of every entry that was left out or did not hold still."""
    above: list[int] = []
    at, end = 0, len(records)
    while at < end:
        length, depth, _, _, flags = _HEAD_AND_FLAGS.unpack_from(records, at)
        del above[depth:]
        above.append(at)
        if flags & TELLS:
            names = [_name(records, offset) for offset in above[1:]]
            for fields, name in unpack_record(records, at)[2]:
                if fields[5] & (REASON | UNSTABLE):
                    yield b"/".join((*names, name)), fields[5]
        at += length


def changes_flagged(records: "Records", pieces: "Pieces") -> bool:
    """Whether replacing the pieces may change what `flagged` gives."""
    heads = [(records, start) for start, _, _ in pieces]
    heads += [(fresh, 0) for _, _, fresh in pieces]
    return any(_HEAD_AND_FLAGS.unpack_from(head, at)[4] & TELLS for head, at in heads)


def edits(records: "Records", root: "Folder", removed: "Iterable[int]") -> "Pieces":
    """The pieces of `records` to replace, as (start, end, new bytes), in order and disjoint."""
    pieces = [(at, end_of(records, at), b"") for at in removed]
    for folder in touched(root):
        if folder.offset >= 0:
            depth = folder.depth()
            fresh = [folders.record(folder, depth)]
            for child in folder.children.values():
                if child.offset < 0:
                    fresh += whole(child, depth + 1)
            end = folder.offset + int(_HEAD.unpack_from(records, folder.offset)[0])
            pieces.append((folder.offset, end, b"".join(fresh)))
    return _disjoint(sorted(pieces))


def touched(root: "Folder") -> "Iterator[Folder]":
    """The folders that were loaded from records and have something to write back."""
    stack = [root]
    while stack:
        folder = stack.pop()
        if folder.touched:
            yield folder
        stack += (child for child in folder.children.values() if child.offset >= 0)


def whole(root: "Folder", depth: int = 0) -> "list[bytes]":
    made, stack = [], [(root, depth)]
    while stack:
        folder, depth = stack.pop()
        made.append(folders.record(folder, depth))
        stack += ((child, depth + 1) for child in folder.children.values())
    return made


def splice(records: "Records", pieces: "Pieces") -> bytearray:
    made = bytearray()
    view, at = memoryview(records), 0
    for start, end, fresh in pieces:
        made += view[at:start]
        made += fresh
        at = end
    made += view[at:]
    return made


def _disjoint(pieces: "Pieces") -> "Pieces":
    """Without what lies inside a removed folder."""
    kept: list[tuple[int, int, bytes]] = []
    for piece in pieces:
        if not kept or piece[0] >= kept[-1][1]:
            kept.append(piece)
    return kept


def _name(records: "Records", at: int) -> bytes:
    _, _, length, count = _HEAD.unpack_from(records, at)
    start = at + RECORD.size + count * ENTRY.size
    return bytes(records[start : start + length])


_MAGIC = b"TBINDEX2"
_HEADER = Struct("<8sQQIII32s32sQ20x")
_CLEAN, _BEING_WRITTEN = 0, 1
_LARGEST = 1 << 30


class StatCache:
    """The stat cache of one project, in memory."""

    def __init__(self, path: bytes, identity: bytes) -> None:
        self._path = path
        self.identity = identity
        self.forget()

    def forget(self) -> None:
        self.records = bytearray()
        self._flagged: list[tuple[bytes, int]] | None = None
        self._on_disk = b""
        self.checkpoint = 0
        self.tree = b""
        self.entries = 0

    def discard(self) -> None:
        self.forget()
        if os.path.lexists(self._path):
            operations.unlink(self._path)

    def load(self, newest: int, tree: bytes) -> bool:
        """Read the file; False, and nothing known, if it is not about the newest checkpoint."""
        if self.records and self.checkpoint == newest and self.tree == tree:
            return True
        self.forget()
        header, body = _read(self._path)
        if len(header) < _HEADER.size:
            return False
        (magic, length, checkpoint, state, checksum, own, known_tree, identity, entries) = (
            _HEADER.unpack(header)
        )
        if (
            (magic, state) != (_MAGIC, _CLEAN)
            or _header_checksum(header) != own
            or (checkpoint, known_tree, identity) != (newest, tree, self.identity)
            or length != len(body)
            or zlib.crc32(body) != checksum
        ):
            return False
        self.records = body
        self._on_disk = header
        self.checkpoint, self.tree, self.entries = checkpoint, tree, entries
        return True

    def distrust(self, paths: "Iterable[bytes]") -> None:
        """Let the next look read these again, whatever their stamps say."""
        distrust(self.records, paths)
        self._on_disk = b""  # the file does not say so, and is written anew

    def flagged(self) -> "list[tuple[bytes, int]]":
        if self._flagged is None:
            self._flagged = list(flagged(self.records))
        return self._flagged

    def replace(self, fresh: "bytes | bytearray", checkpoint: int, tree: bytes) -> None:
        self.records = fresh if isinstance(fresh, bytearray) else bytearray(fresh)
        self._flagged = None
        self.checkpoint, self.tree = checkpoint, tree
        self.entries = count_entries(fresh)
        header = self._header(_CLEAN)
        replace_file(self._path, header, self.records, durable=False)
        self._on_disk = header

    def patch(self, pieces: "Pieces", checkpoint: int, tree: bytes) -> None:
        self.entries += entries_added(self.records, pieces)
        if any(end - start != len(fresh) for start, end, fresh in pieces):
            self.records, self._flagged = splice(self.records, pieces), None
            # From the first of them on everything has another place.
            changed = [(pieces[0][0], len(self.records))]
        else:
            if changes_flagged(self.records, pieces):
                self._flagged = None
            for start, end, fresh in pieces:
                self.records[start:end] = fresh
            changed = [(start, end) for start, end, _ in pieces]
        self.checkpoint, self.tree = checkpoint, tree
        if not self._write_in_place(changed):
            self.replace(self.records, checkpoint, tree)

    def _write_in_place(self, changed: "list[tuple[int, int]]") -> bool:
        """Write the changed records only; False if the file is not the one we know.

        A new file under the same name would take six times as long where the file system, to be
        on the safe side, writes it out first (ext4).
        """
        fd = operations.open_or_create(self._path)
        try:
            # Another process may have written it since; its records are not ours to mix with.
            if not self._on_disk or os.pread(fd, _HEADER.size, 0) != self._on_disk:
                return False
            header = self._header(_CLEAN)
            if changed:
                operations.write_at(fd, self._header(_BEING_WRITTEN), 0)
            view = memoryview(self.records)
            for start, end in changed:
                operations.write_at(fd, view[start:end], _HEADER.size + start)
            if os.fstat(fd).st_size > _HEADER.size + len(self.records):
                operations.truncate(fd, _HEADER.size + len(self.records))
            operations.write_at(fd, header, 0)
            self._on_disk = header
        finally:
            os.close(fd)
        return True

    def _header(self, state: int) -> bytes:
        checksum = zlib.crc32(self.records) if state == _CLEAN else 0
        fields = (_MAGIC, len(self.records), self.checkpoint, state, checksum)
        rest = (self.tree, self.identity, self.entries)
        blank = _HEADER.pack(*fields, 0, *rest)
        return _HEADER.pack(*fields, _header_checksum(blank), *rest)


def identity(
    store: str, root: "tuple[int, int]", not_ours: "Iterable[bytes]", rules: bytes
) -> bytes:
    """What a stat cache must have been written for to be believed.

    Mounting or unmounting something moves no stamp, and neither does another project in here,
    so what is not ours belongs to it.
    """
    place = b"%d %d" % root
    said = (store.encode(), place, _boot(), rules, *sorted(not_ours))
    return sha256(b"\0".join(said)).digest()


def _boot() -> bytes:
    """Something that is another at every start of the machine, where the system tells."""
    try:
        fd = os.open(b"/proc/sys/kernel/random/boot_id", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, 64)
    finally:
        os.close(fd)


def _header_checksum(header: bytes) -> int:
    return zlib.crc32(header[:32] + header[36:])


def _read(path: bytes) -> "tuple[bytes, bytearray]":
    """The header and the records, read straight to where they stay."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b"", bytearray()
    try:
        size = min(os.fstat(fd).st_size - _HEADER.size, _LARGEST)
        if size < 0:
            return b"", bytearray()
        header, body = bytearray(_HEADER.size), bytearray(size)
        done = os.readv(fd, [header, body])
        return (bytes(header), body) if done == _HEADER.size + size else (b"", bytearray())
    except OSError:
        return b"", bytearray()
    finally:
        os.close(fd)

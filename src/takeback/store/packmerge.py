"""Puts what many packs hold into few, where versions of one thing are deltas on each other.

What is packed well already is copied as it stands; the rest is told by the version before it, or
compressed anew, for which there is time here and none in a checkpoint. Nothing is removed: when
`merge` returns, the new packs are on disk beside the old ones, every object of them has been read
again and hashed, and who called decides what is no longer needed.
"""

import os
from array import array
from bisect import bisect_left
from zlib import crc32

from takeback.errors import DamagedStoreError
from takeback.store import fsops, packwrite
from takeback.store.compact import Entries, Ids
from takeback.store.gitobjects import sha1
from takeback.store.packentry import PackBytes, scan
from takeback.store.packread import PackFile
from takeback.store.packwrite import SealedPack
from takeback.store.repacking import Repacking, Row, Sources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from takeback.ports import Progress

LIMIT = 512 * 1024 * 1024
"""A new pack is begun once one holds so many bytes."""
_AT_ONCE = 1024 * 1024
_TELL_EVERY = 512
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_NONE = -1


class Piece:
    """An object that shall be in a new pack, the pack that holds it now, and of what it is a
    version: a file, a folder's manifest, a folder's git tree, a line of commits.
    """

    __slots__ = ("oid", "series", "source")

    def __init__(self, oid: bytes, source: bytes, series: bytes) -> None:
        self.oid = oid
        self.source = source
        self.series = series


def merge(
    directory: bytes,
    pieces: "Iterable[Piece]",
    *,
    progress: "Progress | None" = None,
    limit: int = LIMIT,
) -> "list[SealedPack]":
    """Write new packs that hold the pieces, each series in the order in which its pieces come.

    All pieces of one source come to the same new pack. Who removes the sources must leave alone
    what has the name of a new pack: a source of which everything was wanted as it stands is its
    own copy. An error, such as damage in what should be copied, leaves nothing behind.
    """
    plan = _Plan(directory, pieces)
    made: list[SealedPack] = []
    placed: list[bytes] = []
    try:
        for group in plan.groups(limit):
            with Sources(directory, plan.sources) as sources:
                made.append(_write(directory, plan, group, sources, placed, progress))
        if made:
            fsops.fsync_dir(directory)
    except BaseException:
        for base in placed:
            packwrite.discard_pack(base)
        raise
    return made


class _Plan:
    """What is to be copied from where; small enough for hundreds of thousands of objects."""

    def __init__(self, directory: bytes, pieces: "Iterable[Piece]") -> None:
        self.sources: list[bytes] = []
        self.ids = Ids()
        self._objects, self._sources, self._series = array("I"), array("I"), array("I")
        """Of each piece the number of its id, its source and its series."""
        self._take(pieces)
        empty = bytes(8 * len(self._objects))
        self._offsets, self._lengths = array("Q", empty), array("Q", empty)
        self._bases = array("i", [_NONE]) * len(self._objects)
        self._find_all(directory)

    def _take(self, pieces: "Iterable[Piece]") -> None:
        names: dict[bytes, int] = {}
        series: dict[bytes, int] = {}
        for piece in pieces:
            source = names.setdefault(piece.source, len(names))
            if source == len(self.sources):
                self.sources.append(piece.source)
            self._objects.append(self.ids.add(piece.oid))
            self._sources.append(source)
            self._series.append(series.setdefault(piece.series, len(series)))
        order = array("I", sorted(range(len(self._series)), key=self._series.__getitem__))
        self._objects = array("I", (self._objects[place] for place in order))
        self._sources = array("I", (self._sources[place] for place in order))
        self._series = array("I", (self._series[place] for place in order))

    def _find_all(self, directory: bytes) -> None:
        """Look up where each object stands; one source at a time is open."""
        wanted = [array("I") for _ in self.sources]
        for place, source in enumerate(self._sources):
            wanted[source].append(place)
        for name, places in zip(self.sources, wanted, strict=True):
            with PackFile(os.path.join(directory, name)) as pack:
                self._find(pack, places)

    def _find(self, pack: PackFile, places: "Sequence[int]") -> None:
        starts = pack.starts()
        taken = array("i", [_NONE]) * len(starts)
        """Which object is taken along of those that stand in the pack, one behind the other."""
        for place in places:
            oid = self.ids[self._objects[place]]
            offset = pack.find(oid)
            if offset is None:
                raise DamagedStoreError(f"pack `{pack.name}` does not hold `{oid.hex()}`")
            at = bisect_left(starts, offset)
            self._offsets[place] = offset
            self._lengths[place] = starts[at + 1] - offset
            taken[at] = self._objects[place]
        for place in places:
            base = pack.base_of(self._offsets[place])
            at = bisect_left(starts, base)
            if starts[at] == base:
                self._bases[place] = taken[at]

    def groups(self, limit: int) -> "Iterator[set[int]]":
        """Which sources go together into one new pack."""
        sizes = [0] * len(self.sources)
        for place, source in enumerate(self._sources):
            sizes[source] += self._lengths[place]
        group: set[int] = set()
        held = 0
        for source, size in enumerate(sizes):
            if group and held + size > limit:
                yield group
                group, held = set(), 0
            group.add(source)
            held += size
        if group:
            yield group

    def of(self, group: "set[int]") -> "Iterator[Row]":
        """What goes into one pack, each object once."""
        for at in self._once(group):
            number = self._objects[at]
            place = (self._sources[at], self._offsets[at], self._lengths[at])
            yield Row(number, self.ids[number], self._series[at], place, self._bases[at])

    def count(self, group: "set[int]") -> int:
        """How many objects go into one pack."""
        return sum(1 for _ in self._once(group))

    def _once(self, group: "set[int]") -> "Iterator[int]":
        seen = bytearray(len(self.ids))
        for at, source in enumerate(self._sources):
            if source in group and not seen[self._objects[at]]:
                seen[self._objects[at]] = True
                yield at


class _Target:
    """A new pack on its way to disk."""

    __slots__ = ("_buffer", "_buffered", "_fd", "_hash", "checksum", "entries", "size")

    def __init__(self, fd: int, count: int) -> None:
        self._fd = fd
        self._hash = sha1()
        self._buffer: list[bytes] = []
        self._buffered = 0
        self.size = 0
        self.checksum = b""
        self.entries = Entries()
        self._write(b"PACK\0\0\0\x02" + count.to_bytes(4, "big"))

    def add(self, oid: bytes, parts: "Iterable[bytes]") -> None:
        """Append one packed object."""
        offset, crc = self.size, 0
        for part in parts:
            crc = crc32(part, crc)
            self._write(part)
        self.entries.append((oid, crc, offset))

    def finish(self) -> None:
        """Write the rest and the checksum."""
        self._flush()
        self.checksum = self._hash.digest()
        fsops.write(self._fd, self.checksum)
        self.size += len(self.checksum)

    def _write(self, data: bytes) -> None:
        self._buffer.append(data)
        self._buffered += len(data)
        self.size += len(data)
        if self._buffered >= _AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        data = b"".join(self._buffer)
        self._hash.update(data)
        fsops.write(self._fd, data)
        self._buffer, self._buffered = [], 0


def _write(
    directory: bytes,
    plan: _Plan,
    group: "set[int]",
    sources: Sources,
    placed: "list[bytes]",
    progress: "Progress | None",
) -> SealedPack:
    """Write, sync, check and name one new pack."""
    total = plan.count(group)
    path, fd = packwrite.create_temporary(directory)
    try:
        try:
            target = _Target(fd, total)
            repacking = Repacking(sources, len(plan.ids))
            for done, row in enumerate(plan.of(group)):
                target.add(row.oid, repacking.packed(row, target.size))
                if progress is not None and done % _TELL_EVERY == 0:
                    progress("Merging packs", done, total)
            target.finish()
            fsops.fsync(fd)
        finally:
            os.close(fd)
        _read_again(path, target)
        name = b"pack-" + target.checksum.hex().encode()
        base = os.path.join(directory, name)
        if not os.path.lexists(base + b".pack"):
            placed.append(base)
        fsops.rename(path, base + b".pack")
    except BaseException:
        fsops.discard(path)
        raise
    packwrite.write_index(base, target.entries.index(target.checksum))
    return SealedPack(name, target.size, total)


def _read_again(path: bytes, target: _Target) -> None:
    """An error unless every object of a new pack inflates to what its id says."""
    fd = os.open(path, _READ)
    try:
        pack = PackBytes(fd, os.fstat(fd).st_size, "that was just merged", hashing=True)
        entries = Entries()
        damage = scan(pack, entries)
    finally:
        os.close(fd)
    if damage is not None:
        raise damage
    for old, new in zip(entries, target.entries, strict=True):
        if old != new:
            raise DamagedStoreError(f"the object `{new[0].hex()}` is damaged and cannot be merged")

"""Puts what many packs hold into few, where versions of one thing stand beside each other.

Nothing is removed here: when `merge` returns, the new packs are on disk beside the old ones, every
object of them has been read again and hashed, and who called decides what is no longer needed.
"""

import os
from array import array
from zlib import crc32

from takeback.errors import DamagedStoreError
from takeback.store import fsops, packindex, packwrite
from takeback.store.gitobjects import sha1
from takeback.store.packentry import PackBytes, scan
from takeback.store.packread import PackFile
from takeback.store.packwrite import SealedPack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Self

    from takeback.ports import Progress
    from takeback.store.packindex import Entry

LIMIT = 512 * 1024 * 1024
"""A new pack is begun once one holds so many bytes."""
_OPEN_AT_ONCE = 64
_AT_ONCE = 1024 * 1024
_TELL_EVERY = 512
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


class Piece:
    """An object that shall be in a new pack, the pack that holds it now, and of what it is a
    version: a file, a folder's manifest, a folder's git tree, a line of commits.
    """

    __slots__ = ("oid", "series", "source")

    def __init__(self, oid: bytes, source: bytes, series: bytes) -> None:
        self.oid = oid
        self.source = source
        self.series = series


class Merged:
    """What a merge made: the new packs, and for each source the number of the one it went to.

    Who removes the sources must leave alone what has the name of a new pack: a source of which
    everything was wanted as it stands is its own copy.
    """

    __slots__ = ("packs", "places")

    def __init__(self, packs: "list[SealedPack]", places: "dict[bytes, int]") -> None:
        self.packs = packs
        self.places = places


def merge(
    directory: bytes,
    pieces: "Iterable[Piece]",
    *,
    first_number: int,
    progress: "Progress | None" = None,
    limit: int = LIMIT,
) -> Merged:
    """Write new packs that hold the pieces, each series in the order in which its pieces come.

    All pieces of one source come to the same new pack. An error, such as damage in what should
    be copied, leaves nothing behind.
    """
    plan = _Plan(directory, pieces)
    made = Merged([], {})
    placed: list[bytes] = []
    try:
        for number, group in enumerate(plan.groups(limit), first_number):
            with _Sources(directory, plan.sources) as sources:
                made.packs.append(_write(directory, plan, group, sources, number, placed, progress))
            made.places.update((plan.sources[source], number) for source in group)
        if made.packs:
            fsops.fsync_dir(directory)
    except BaseException:
        for base in placed:
            fsops.discard(base + b".idx")
            fsops.discard(base + b".pack")
        raise
    return made


class _Plan:
    """What is to be copied from where; small enough for hundreds of thousands of objects."""

    def __init__(self, directory: bytes, pieces: "Iterable[Piece]") -> None:
        self.sources: list[bytes] = []
        self._rows: list[tuple[int, int, bytes]] = []
        """(series, source, oid)"""
        names: dict[bytes, int] = {}
        series: dict[bytes, int] = {}
        for piece in pieces:
            source = names.setdefault(piece.source, len(names))
            if source == len(self.sources):
                self.sources.append(piece.source)
            of = series.setdefault(piece.series, len(series))
            self._rows.append((of, source, piece.oid))
        self._rows.sort(key=lambda row: row[0])
        self._offsets = array("Q", bytes(8 * len(self._rows)))
        self._lengths = array("Q", bytes(8 * len(self._rows)))
        self._find_all(directory)

    def _find_all(self, directory: bytes) -> None:
        """Look up where each object stands; one source at a time is open."""
        wanted: list[list[int]] = [[] for _ in self.sources]
        for place, (_, source, _) in enumerate(self._rows):
            wanted[source].append(place)
        for name, places in zip(self.sources, wanted, strict=True):
            with PackFile(os.path.join(directory, name)) as pack:
                ends = pack.extents()
                for place in places:
                    oid = self._rows[place][2]
                    offset = pack.find(oid)
                    if offset is None:
                        said = name.decode("ascii", "backslashreplace")
                        raise DamagedStoreError(f"pack `{said}` does not hold `{oid.hex()}`")
                    self._offsets[place] = offset
                    self._lengths[place] = ends[offset] - offset

    def groups(self, limit: int) -> "Iterator[set[int]]":
        """Which sources go together into one new pack."""
        sizes = [0] * len(self.sources)
        for place, (_, source, _) in enumerate(self._rows):
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

    def of(self, group: "set[int]") -> "Iterator[tuple[int, bytes, int, int, int]]":
        """(series, oid, source, offset, length) of what goes into one pack, each object once."""
        seen: set[bytes] = set()
        for place, (series, source, oid) in enumerate(self._rows):
            if source in group and oid not in seen:
                seen.add(oid)
                yield series, oid, source, self._offsets[place], self._lengths[place]


class _Sources:
    """The packs that are copied from, a few of them open at a time."""

    def __init__(self, directory: bytes, names: "list[bytes]") -> None:
        self._directory = directory
        self._names = names
        self._open: dict[int, int] = {}

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        for fd in self._open.values():
            os.close(fd)
        self._open.clear()

    def pieces(self, source: int, offset: int, length: int) -> "Iterator[bytes]":
        """The packed bytes of one object."""
        fd = self._descriptor(source)
        while length:
            data = os.pread(fd, min(length, _AT_ONCE), offset)
            if not data:
                name = self._names[source].decode("ascii", "backslashreplace")
                raise DamagedStoreError(f"pack `{name}` is cut short")
            yield data
            offset += len(data)
            length -= len(data)

    def _descriptor(self, source: int) -> int:
        fd = self._open.pop(source, -1)
        if fd < 0:
            if len(self._open) >= _OPEN_AT_ONCE:
                os.close(self._open.pop(next(iter(self._open))))
            fd = os.open(os.path.join(self._directory, self._names[source]) + b".pack", _READ)
        self._open[source] = fd
        return fd


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
        self.entries: list[Entry] = []
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
    sources: _Sources,
    number: int,
    placed: "list[bytes]",
    progress: "Progress | None",
) -> SealedPack:
    """Write, sync, check and name one new pack."""
    total = sum(1 for _ in plan.of(group))
    path, fd = packwrite.create_temporary(directory)
    try:
        try:
            target = _Target(fd, total)
            for done, (_, oid, source, offset, length) in enumerate(plan.of(group)):
                target.add(oid, sources.pieces(source, offset, length))
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
    packwrite.write_index(base, packindex.build(target.entries, target.checksum))
    return SealedPack(number, name, target.size, total)


def _read_again(path: bytes, target: _Target) -> None:
    """An error unless every object of a new pack inflates to what its id says."""
    fd = os.open(path, _READ)
    try:
        pack = PackBytes(fd, os.fstat(fd).st_size, "that was just merged", hashing=True)
        entries, damage = scan(pack)
    finally:
        os.close(fd)
    if damage is not None:
        raise damage
    if entries != target.entries:
        wrong = next(new[0] for old, new in zip(entries, target.entries, strict=True) if old != new)
        raise DamagedStoreError(f"the object `{wrong.hex()}` is damaged and cannot be merged")

"""Merge many packs into few, where versions of one thing are deltas on each other.

What is packed well already is copied; the rest becomes a delta on the version before it, or is
compressed again, for which a checkpoint has no time. Nothing is removed: when `merge` returns, the
new packs are on disk beside the old ones, and every object of them was read again and hashed.

`Order` decides, without touching the disk, which packs are written anew.
"""

import os
from array import array
from bisect import bisect_left
from zlib import crc32

from takeback.disk import operations
from takeback.errors import DamagedStoreError
from takeback.model.value import Value
from takeback.model.words import MERGING_PACKS
from takeback.objects import pack_write
from takeback.objects.git_objects import sha1
from takeback.objects.pack_entry import PackBytes, scan
from takeback.objects.pack_index import Entries, Ids
from takeback.objects.pack_read import PackFile
from takeback.objects.pack_write import SealedPack
from takeback.objects.repack import Repacking, Row, Sources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from takeback.ports import Progress

    Mark = tuple[int, int, int, int]


LIMIT = 512 * 1024 * 1024
"""A new pack is begun once one holds so many bytes."""
_AT_ONCE = 1024 * 1024
_TELL_EVERY = 512
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_NONE = -1


class Piece(Value):
    """An object that shall be in a new pack, the pack that holds it now, and of what it is a
    version: a file, a folder's manifest, a folder's git tree, a line of commits.
    """

    oid: bytes
    source: bytes
    series: bytes


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
            operations.fsync_dir(directory)
    except BaseException:
        for base in placed:
            pack_write.discard_pack(base)
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
        for at in self._once(group):
            number = self._objects[at]
            place = (self._sources[at], self._offsets[at], self._lengths[at])
            yield Row(number, self.ids[number], self._series[at], place, self._bases[at])

    def count(self, group: "set[int]") -> int:
        return sum(1 for _ in self._once(group))

    def _once(self, group: "set[int]") -> "Iterator[int]":
        seen = bytearray(len(self.ids))
        for at, source in enumerate(self._sources):
            if source in group and not seen[self._objects[at]]:
                seen[self._objects[at]] = True
                yield at


class _Target:
    """A new pack on its way to disk."""

    def __init__(self, fd: int, count: int) -> None:
        self._fd = fd
        self._hash = sha1()
        self._buffer: list[bytes] = []
        self._buffered = 0
        self.size = 0
        self.checksum = b""
        self.entries = Entries()
        self._write(pack_write.MAGIC + count.to_bytes(4, "big"))

    def add(self, oid: bytes, parts: "Iterable[bytes]") -> None:
        offset, crc = self.size, 0
        for part in parts:
            crc = crc32(part, crc)
            self._write(part)
        self.entries.append((oid, crc, offset))

    def finish(self) -> None:
        self._flush()
        self.checksum = self._hash.digest()
        operations.write(self._fd, self.checksum)
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
        operations.write(self._fd, data)
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
    path, fd = pack_write.create_temporary(directory)
    try:
        try:
            target = _Target(fd, total)
            repacking = Repacking(sources, len(plan.ids))
            for done, row in enumerate(plan.of(group)):
                target.add(row.oid, repacking.packed(row, target.size))
                if progress is not None and done % _TELL_EVERY == 0:
                    progress(MERGING_PACKS, done, total)
            target.finish()
            operations.fsync(fd)
        finally:
            os.close(fd)
        _read_again(path, target)
        name = b"pack-" + target.checksum.hex().encode()
        base = os.path.join(directory, name)
        if not os.path.lexists(base + b".pack"):
            placed.append(base)
        operations.rename(path, base + b".pack")
    except BaseException:
        operations.discard(path)
        raise
    pack_write.write_index(base, target.entries.index(target.checksum))
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


GARBAGE = 3
"""A pack is written anew when more than one part in so many of it is not needed."""


_FACTOR = 8
"""How much larger a pack is than the next smaller one that is left alone."""


class Catalog:
    """Which packs there are, and which of them hold an object; objects have numbers."""

    def __init__(self, directory: bytes) -> None:
        self._directory = directory
        self.names: list[bytes] = []
        self.bytes: list[int] = []
        """What the objects of each take, packed."""
        self.ids = Ids()
        self.sizes, self.places = array("Q"), array("I")
        """What each object takes in the newest pack that holds it, and which pack that is."""

    def follow(self, packs: "Iterable[str]") -> None:
        known = set(self.names)
        for name in map(str.encode, packs):
            if name not in known:
                self.names.append(name)
                self.bytes.append(self._read(len(self.names) - 1))

    def open(self, place: int) -> PackFile:
        """One of the packs; it is the caller's to close."""
        return PackFile(self._directory + b"/" + self.names[place])

    def _read(self, place: int) -> int:
        total = 0
        with self.open(place) as pack:
            for oid, size in pack.sizes():
                total += size
                number = self.ids.add(oid)
                if number == len(self.sizes):
                    self.places.append(place)
                    self.sizes.append(size)
                else:
                    # The newest copy counts: an older one may be why it was stored again.
                    self.places[number], self.sizes[number] = place, size
        return total


class Marks:
    """What was marked, in the order in which it was: object, pack, series, newest checkpoint."""

    def __init__(self) -> None:
        self._objects, self._places, self._series = array("I"), array("I"), array("I")
        self._checkpoints = array("q")
        self._names: dict[bytes, int] = {}
        self.foreign: set[int] = set()
        """The packs of which only a newer program knows what is needed."""

    def __len__(self) -> int:
        return len(self._objects)

    def add(self, found: int, place: int, series: bytes, checkpoint: int) -> None:
        self._objects.append(found)
        self._places.append(place)
        self._series.append(self._names.setdefault(series, len(self._names)))
        self._checkpoints.append(checkpoint)

    def __iter__(self) -> "Iterator[Mark]":
        return zip(self._objects, self._places, self._series, self._checkpoints, strict=True)

    def __getitem__(self, at: int) -> "Mark":
        return self._objects[at], self._places[at], self._series[at], self._checkpoints[at]

    def series(self) -> "list[bytes]":
        """The names of series by their numbers."""
        return list(self._names)


class Order:
    """Which packs are written anew, and of which nothing is needed."""

    def __init__(
        self,
        catalog: Catalog,
        marks: Marks,
        share: int,
        *,
        full: bool,
        gone: "Callable[[int], bool]",
    ) -> None:
        self._catalog = catalog
        self._marks = marks
        self._seen = len(marks)
        self._live = live = [0] * len(catalog.names)
        for found, place, _, checkpoint in marks:
            if not gone(checkpoint):
                live[place] += catalog.sizes[found]
        for place in marks.foreign:
            live[place] = 0  # it is left alone, so others need not be put in order with it
        self.dead = {place for place, size in enumerate(live) if not size} - marks.foreign
        chosen = _chosen(live, catalog.bytes, share, full=full)
        self.rewritten = chosen - self.dead - marks.foreign
        self.freed = sum(
            self._catalog.bytes[place] - live[place] for place in self.dead | self.rewritten
        )
        self.fewer = len(self.dead) + max(len(self.rewritten) - 1, 0)

    def fit(self, room: int) -> None:
        """Write anew only packs with garbage, those with the most first, in so many bytes."""
        sizes, live, fitting = self._catalog.bytes, self._live, set()
        for place in sorted(self.rewritten, key=lambda place: live[place] - sizes[place]):
            if sizes[place] > live[place] and live[place] <= room:
                fitting.add(place)
                room -= live[place]
        self.rewritten = fitting

    def pieces(self) -> "Iterable[Piece]":
        """What is copied, versions of one thing with the oldest first."""
        names, ids, things = self._catalog.names, self._catalog.ids, self._marks.series()
        for at in range(self._seen - 1, -1, -1):
            found, place, series, _ = self._marks[at]
            if place in self.rewritten:
                yield Piece(ids[found], names[place], things[series])

    def is_current(self) -> bool:
        """Whether nothing that was marked since is in a pack that goes."""
        going, marks = self.rewritten | self.dead, self._marks
        since = range(self._seen, len(marks))
        return going.isdisjoint(marks.foreign) and all(marks[at][1] not in going for at in since)

    def dropped(self) -> "list[bytes]":
        return [self._catalog.names[place] for place in sorted(self.dead | self.rewritten)]


def _chosen(live: "list[int]", sizes: "list[int]", share: int, *, full: bool) -> "set[int]":
    """The packs to write anew: those with much garbage, and small ones until all are in order.

    In order means that each pack is at least eight times as large as the next smaller one: few
    have to begin series anew, whose first versions are whole, and no byte is copied in each run.
    """
    if full:
        return set(range(len(sizes)))
    chosen = {p for p, size in enumerate(sizes) if (size - live[p]) * share > size}
    order = sorted((p for p in range(len(sizes)) if live[p]), key=lambda p: live[p])
    split = 0
    for at in range(len(order) - 1, 0, -1):
        if live[order[at]] < _FACTOR * live[order[at - 1]]:
            split = at + 1
            break
    total = sum(live[p] for p in order[:split])
    while split and split < len(order) and live[order[split]] < _FACTOR * total:
        total += live[order[split]]
        split += 1
    return chosen | set(order[:split])

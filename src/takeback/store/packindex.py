"""Where each object of a pack begins: git's index files (version 2), and how to make them.

An index is derived from its pack, so it is written without a sync, checked when it is read,
and made again from the pack when it is missing or damaged.
"""

import hashlib
import os
import struct
from itertools import accumulate
from zlib import crc32

from takeback.errors import DamagedStoreError
from takeback.store import deflate, gitobjects

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Entry = tuple[bytes, int, int]
    """(id, crc32 of the packed bytes, offset in the pack)"""

PACK_HEAD = 12
CHECKSUM = 20
SMALLEST_ENTRY = 9
"""Bytes of the smallest entry that a pack can hold: one of head, eight of an empty stream."""

_MAGIC = b"\xfftOc\0\0\0\x02"
_FANOUT = 256 * 4
_NAMES = len(_MAGIC) + _FANOUT
_LARGE = 1 << 31
_WINDOW = 1024 * 1024


def build(entries: "Iterable[Entry]", checksum: bytes) -> bytes:
    """Return the index of a pack with these entries and this checksum at its end."""
    ordered = sorted(entries)
    counts = [0] * 256
    for oid, _, _ in ordered:
        counts[oid[0]] += 1
    offsets = [offset for _, _, offset in ordered]
    large = [offset for offset in offsets if offset >= _LARGE]
    if large:
        places = iter(range(_LARGE, _LARGE + len(large)))
        offsets = [offset if offset < _LARGE else next(places) for offset in offsets]
    numbers = f">{len(ordered)}I"
    body = b"".join(
        (
            _MAGIC,
            struct.pack(">256I", *accumulate(counts)),
            *[oid for oid, _, _ in ordered],
            struct.pack(numbers, *[crc for _, crc, _ in ordered]),
            struct.pack(numbers, *offsets),
            struct.pack(f">{len(large)}Q", *large),
            checksum,
        )
    )
    return body + gitobjects.sha1(body).digest()


def largest_index(pack_size: int) -> int:
    """Return how big the index of a pack of this size can be at most."""
    return _NAMES + 2 * CHECKSUM + (pack_size // SMALLEST_ENTRY + 1) * 36


class PackIndex:
    """A parsed index; a DamagedStoreError if `data` is not one."""

    __slots__ = ("_crcs", "_data", "_fanout", "_large", "_large_count", "_offsets",
                 "checksum", "count")  # fmt: skip

    def __init__(self, data: bytes) -> None:
        if len(data) < _NAMES + 2 * CHECKSUM or not data.startswith(_MAGIC):
            raise DamagedStoreError("the file is not a pack index")
        if gitobjects.sha1(memoryview(data)[:-CHECKSUM]).digest() != data[-CHECKSUM:]:
            raise DamagedStoreError("the checksum of the pack index does not match")
        fanout: tuple[int, ...] = struct.unpack_from(">256I", data, len(_MAGIC))
        count = fanout[-1]
        large_bytes = len(data) - _NAMES - count * 28 - 2 * CHECKSUM
        if list(fanout) != sorted(fanout) or not 0 <= large_bytes <= count * 8 or large_bytes % 8:
            raise DamagedStoreError("the parts of the pack index do not fit together")
        self._data = data
        self._fanout = (0, *fanout)
        self._crcs = _NAMES + count * gitobjects.OID_LENGTH
        self._offsets = self._crcs + count * 4
        self._large = self._offsets + count * 4
        self._large_count = large_bytes // 8
        self.count: int = count
        self.checksum = data[-2 * CHECKSUM : -CHECKSUM]

    def find(self, oid: bytes) -> "int | None":
        """Return the offset of an object in the pack, None if the pack does not hold it."""
        place = self._find_place(oid)
        return None if place is None else self._offset(place)

    def find_entry(self, oid: bytes) -> "tuple[int, int] | None":
        """Return (crc32, offset) of an object, None if the pack does not hold it."""
        place = self._find_place(oid)
        return None if place is None else (self._number(self._crcs, place), self._offset(place))

    def __iter__(self) -> "Iterator[Entry]":
        for place in range(self.count):
            start = _NAMES + place * gitobjects.OID_LENGTH
            oid = self._data[start : start + gitobjects.OID_LENGTH]
            yield oid, self._number(self._crcs, place), self._offset(place)

    def __len__(self) -> int:
        return self.count

    def _find_place(self, oid: bytes) -> "int | None":
        low, high = self._fanout[oid[0]], self._fanout[oid[0] + 1]
        data = self._data
        while low < high:
            middle = (low + high) // 2
            start = _NAMES + middle * gitobjects.OID_LENGTH
            there = data[start : start + gitobjects.OID_LENGTH]
            if there == oid:
                return middle
            if there < oid:
                low = middle + 1
            else:
                high = middle
        return None

    def _number(self, table: int, place: int) -> int:
        start = table + place * 4
        return int.from_bytes(self._data[start : start + 4], "big")

    def _offset(self, place: int) -> int:
        offset = self._number(self._offsets, place)
        if offset < _LARGE:
            return offset
        row = offset - _LARGE
        if row >= self._large_count:
            raise DamagedStoreError("the pack index points outside itself")
        start = self._large + row * 8
        return int.from_bytes(self._data[start : start + 8], "big")


class PackBytes:
    """The bytes of an open pack, read through a window so that memory stays small.

    With `hashing`, all bytes go through SHA-1 once, in order, on their way: a walk over the
    objects then needs no second reading to check the pack as a whole.
    """

    __slots__ = ("_fd", "_hash", "_hashed", "_length", "_start", "_window", "end", "name")

    def __init__(
        self, fd: int, size: int, name: str, *, window: int = _WINDOW, hashing: bool = False
    ) -> None:
        self._fd = fd
        self._length = window
        self._window = b""
        self._start = 0
        self._hash = gitobjects.sha1() if hashing else None
        self._hashed = 0
        self.name = name
        self.end = size - CHECKSUM
        """Where the last object ends and the checksum begins."""
        if self.end < PACK_HEAD:
            raise self.damaged("is cut short")

    def damaged(self, what: str) -> DamagedStoreError:
        """Return the error that says what is wrong with this pack."""
        return DamagedStoreError(f"pack `{self.name}` {what}")

    def fetch(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`, none only where the objects end."""
        place = offset - self._start
        if not 0 <= place < len(self._window):
            self._move(offset, length)
            place = 0
        return self._window[place : place + min(length, self.end - offset)]

    def count(self) -> int:
        """Return how many objects the head of the pack promises."""
        head = self.fetch(0, PACK_HEAD)
        if head[:8] != b"PACK\0\0\0\x02" or len(head) < PACK_HEAD:
            raise self.damaged("does not begin like a pack")
        return int.from_bytes(head[8:], "big")

    def checksum(self) -> bytes:
        """Return the checksum that stands at the end of the pack."""
        return self._read(self.end, CHECKSUM)

    def is_whole(self) -> bool:
        """Whether all bytes have the checksum at the end (only with `hashing`)."""
        assert self._hash is not None
        self._hash_up_to(self.end)
        return self._hash.digest() == self.checksum()

    def _move(self, offset: int, length: int) -> None:
        self._hash_up_to(offset)
        wanted = max(0, min(max(length, self._length), self.end - offset))
        self._window = self._read(offset, wanted)
        self._start = offset
        reached = offset + len(self._window)
        if self._hash is not None and reached > self._hashed:
            self._hash.update(memoryview(self._window)[self._hashed - offset :])
            self._hashed = reached

    def _hash_up_to(self, offset: int) -> None:
        while self._hash is not None and self._hashed < offset:
            data = self._read(self._hashed, min(_WINDOW, offset - self._hashed))
            if not data:
                return
            self._hash.update(data)
            self._hashed += len(data)

    def _read(self, offset: int, length: int) -> bytes:
        try:
            return os.pread(self._fd, length, offset)
        except OSError as error:
            raise self.damaged(f"cannot be read: {error.strerror}") from error


class PackedObject:
    """One object as found by walking over a pack."""

    __slots__ = ("crc", "end", "kind", "oid", "sha256", "size")

    def __init__(
        self, kind: int, size: int, oid: bytes, crc: int, end: int, sha256: "bytes | None"
    ) -> None:
        self.kind = kind
        self.size = size
        self.oid = oid
        self.crc = crc
        self.end = end
        self.sha256 = sha256


def read_head(pack: PackBytes, offset: int) -> tuple[int, int, int]:
    """Return (kind, size, offset of the compressed bytes) of the object at `offset`."""
    if not PACK_HEAD <= offset < pack.end:
        raise pack.damaged(f"has no object at {offset}")
    head = pack.fetch(offset, gitobjects.LONGEST_ENTRY_HEAD)
    if 0 < len(head) < gitobjects.LONGEST_ENTRY_HEAD and head[-1] & 0x80:
        head += pack.fetch(offset + len(head), gitobjects.LONGEST_ENTRY_HEAD - len(head))
    try:
        kind, size, length = gitobjects.parse_entry_head(head)
    except ValueError:
        raise pack.damaged(f"has no readable object at {offset}") from None
    if kind in (6, 7):
        raise pack.damaged(f"holds a delta at {offset}, which Takeback never writes")
    if kind not in (gitobjects.COMMIT, gitobjects.TREE, gitobjects.BLOB):
        raise pack.damaged(f"holds an object of unknown kind {kind} at {offset}")
    start = offset + length
    if not deflate.is_plausible(size, pack.end - start):
        raise pack.damaged(f"has an object of impossible size at {offset}")
    return kind, size, start


def walk_object(pack: PackBytes, offset: int, *, strong: bool = False) -> PackedObject:
    """Inflate and hash the object at `offset`; with `strong`, blobs get a SHA-256 as well."""
    kind, size, start = read_head(pack, offset)
    tally = _Tally(pack, offset, start)
    weak_hash = gitobjects.sha1(gitobjects.object_head(kind, size))
    strong_hash = hashlib.sha256() if strong and kind == gitobjects.BLOB else None
    stream = deflate.Inflation(tally.fetch, start, size)
    try:
        for piece in stream:
            weak_hash.update(piece)
            if strong_hash is not None:
                strong_hash.update(piece)
    except deflate.BadStreamError as error:
        raise pack.damaged(f"holds an object at {offset} that {error}") from None
    crc = tally.crc_up_to(stream.end)
    sha256 = None if strong_hash is None else strong_hash.digest()
    return PackedObject(kind, size, weak_hash.digest(), crc, stream.end, sha256)


def scan(pack: PackBytes) -> "tuple[list[Entry], DamagedStoreError | None]":
    """Walk over a pack (opened with `hashing`); return what was found and what is wrong."""
    entries: list[Entry] = []
    offset = PACK_HEAD
    try:
        count = pack.count()
        while offset < pack.end:
            found = walk_object(pack, offset)
            entries.append((found.oid, found.crc, offset))
            offset = found.end
        if len(entries) != count:
            raise pack.damaged(f"holds {len(entries)} objects instead of {count}")
        if not pack.is_whole():
            raise pack.damaged("does not have the checksum that it should have")
    except DamagedStoreError as damage:
        return entries, damage
    return entries, None


def rebuild(fd: int, name: str) -> bytes:
    """Return the index of an open pack, made from nothing but the pack, which must be sound."""
    pack = PackBytes(fd, os.fstat(fd).st_size, name, hashing=True)
    entries, damage = scan(pack)
    if damage is not None:
        raise damage
    return build(entries, pack.checksum())


class _Tally:
    """Fetches for an inflater, and takes the crc32 of what it used."""

    __slots__ = ("_crc", "_last", "_pack", "_start")

    def __init__(self, pack: PackBytes, offset: int, start: int) -> None:
        self._pack = pack
        self._crc = 0
        self._last = pack.fetch(offset, start - offset)
        self._start = offset

    def fetch(self, offset: int, length: int) -> bytes:
        self._crc = crc32(self._last, self._crc)
        self._last = self._pack.fetch(offset, length)
        self._start = offset
        return self._last

    def crc_up_to(self, end: int) -> int:
        return crc32(self._last[: end - self._start], self._crc)

"""The objects of a pack, one by one: their heads, their streams, and deltas on others.

A delta stands behind its base in the same pack, so every chain of them ends. Chains are followed
without recursion, only so far and only for small objects, so that no damage costs much time or
memory. What comes out is not known to be right before it is hashed.
"""

import os
from hashlib import sha256
from zlib import crc32

from takeback.errors import DamagedStoreError
from takeback.model.value import Value
from takeback.objects import deflate, delta, git_objects, pack_index
from takeback.objects.pack_index import CHECKSUM, PACK_HEAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from takeback.objects.pack_index import Entries, Entry

DELTA = 6
"""The kind of an entry that is a delta on one that stands before it."""
_DELTA_BY_NAME = 7
_WHOLE = (git_objects.COMMIT, git_objects.TREE, git_objects.BLOB)
_LONGEST_DISTANCE = 10
_LARGEST = 16 * 1024 * 1024
"""Nothing larger is, or rests on, a delta."""
_LONGEST_CHAIN = 256
_CACHED = 4 * 1024 * 1024
_SMALL_WINDOW = 4096
_WINDOW = 1024 * 1024


class PackBytes:
    """The bytes of an open pack, read through a window so that memory stays small.

    With `hashing`, all bytes go through SHA-1 once, in order, on their way: a walk over the
    objects then needs no second reading to check the pack as a whole.
    """

    def __init__(
        self, fd: int, size: int, name: str, *, window: int = _WINDOW, hashing: bool = False
    ) -> None:
        self._fd = fd
        self._length = window
        self._window = b""
        self._start = 0
        self._hash = git_objects.sha1() if hashing else None
        self._hashed = 0
        self.name = name
        self.end = size - CHECKSUM
        """Where the last object ends and the checksum begins."""
        if self.end < PACK_HEAD:
            raise self.damaged("is cut short")

    def again(self, window: int) -> "PackBytes":
        """The same bytes through a window of their own, for a reader who jumps about."""
        return PackBytes(self._fd, self.end + CHECKSUM, self.name, window=window)

    def damaged(self, what: str) -> DamagedStoreError:
        return DamagedStoreError(f"pack `{self.name}` {what}")

    def fetch(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`, none only where the objects end."""
        place = offset - self._start
        if not 0 <= place < len(self._window):
            self._move(offset, length)
            place = 0
        return self._window[place : place + min(length, self.end - offset)]

    def count(self) -> int:
        head = self.fetch(0, PACK_HEAD)
        if head[:8] != b"PACK\0\0\0\x02" or len(head) < PACK_HEAD:
            raise self.damaged("does not begin like a pack")
        return int.from_bytes(head[8:], "big")

    def checksum(self) -> bytes:
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


class PackedObject(Value):
    """One object as found by walking over a pack."""

    kind: int
    size: int
    oid: bytes
    crc: int
    end: int
    sha256: "bytes | None"


class Head(Value):
    """What stands before the stream of an entry. `base` is where the base of a delta is, or 0."""

    kind: int
    size: int
    start: int
    base: int


def read_head(pack: PackBytes, offset: int) -> Head:
    if not PACK_HEAD <= offset < pack.end:
        raise pack.damaged(f"has no object at {offset}")
    head = _fetch_all(pack, offset, git_objects.LONGEST_ENTRY_HEAD + _LONGEST_DISTANCE)
    try:
        kind, size, length = git_objects.parse_entry_head(head)
        distance = 0
        if kind == DELTA:
            distance, length = parse_distance(head, length)
    except ValueError:
        raise pack.damaged(f"has no readable object at {offset}") from None
    if kind == _DELTA_BY_NAME:
        raise pack.damaged(
            f"holds a delta at {offset} that names its base, which Takeback never writes"
        )
    if kind != DELTA and kind not in _WHOLE:
        raise pack.damaged(f"holds an object of unknown kind {kind} at {offset}")
    if kind == DELTA and not PACK_HEAD <= offset - distance < offset:
        raise pack.damaged(f"holds a delta at {offset} on something outside")
    start = offset + length
    limit = _LARGEST if kind == DELTA else pack.end * deflate.MOST_INFLATION
    if size > limit or not deflate.is_plausible(size, pack.end - start):
        raise pack.damaged(f"has an object of impossible size at {offset}")
    return Head(kind, size, start, offset - distance if distance else 0)


def _fetch_all(pack: PackBytes, offset: int, length: int) -> bytes:
    """So many bytes, also where the window ends between them; fewer only at the pack's end."""
    data = pack.fetch(offset, length)
    while 0 < len(data) < length:
        more = pack.fetch(offset + len(data), length - len(data))
        if not more:
            break
        data += more
    return data


def parse_distance(data: bytes, at: int) -> "tuple[int, int]":
    distance = -1
    for byte in data[at : at + _LONGEST_DISTANCE]:
        at += 1
        distance = (distance + 1) << 7 | byte & 0x7F
        if byte < 0x80:
            return distance, at
    raise ValueError("the distance to the base breaks off")


def encode_distance(distance: int) -> bytes:
    parts = [distance & 0x7F]
    while distance := distance >> 7:
        distance -= 1
        parts.append(distance & 0x7F | 0x80)
    return bytes(reversed(parts))


class Chains:
    """Follows deltas to what they rest on; remembers a few MiB of what it found last."""

    def __init__(self, pack: PackBytes) -> None:
        self._pack = pack.again(_SMALL_WINDOW)
        self._known: dict[int, _Found] = {}
        self._size = 0

    def content(self, offset: int) -> "tuple[int, bytes]":
        """Return (kind, content) of a small object, which nobody has hashed yet."""
        found = self._find(offset)
        return found.kind, found.data

    def on_base(self, offset: int, head: Head, told: bytes) -> "tuple[int, bytes]":
        """Return (kind, content) of an object whose delta was inflated already."""
        found = self._apply(offset, self._find(head.base), told)
        return found.kind, found.data

    def _find(self, offset: int) -> "_Found":
        chain: list[tuple[int, Head]] = []
        found = self._recall(offset)
        while found is None:
            head = read_head(self._pack, offset)
            if head.size > _LARGEST:
                raise self._pack.damaged(f"holds a delta on something large at {offset}")
            if not head.base:
                found = _Found(head.kind, self._inflate(offset, head), 0)
                self._remember(offset, found)
                break
            chain.append((offset, head))
            if len(chain) > _LONGEST_CHAIN:
                raise self._too_deep(offset)
            offset = head.base
            found = self._recall(offset)
        for offset, head in reversed(chain):
            found = self._apply(offset, found, self._inflate(offset, head))
        return found

    def _apply(self, offset: int, base: "_Found", told: bytes) -> "_Found":
        if base.depth >= _LONGEST_CHAIN:
            raise self._too_deep(offset)
        try:
            data = delta.apply(base.data, told, _LARGEST)
        except delta.BadDeltaError as error:
            raise self._pack.damaged(f"holds a delta at {offset} that {error}") from None
        found = _Found(base.kind, data, base.depth + 1)
        self._remember(offset, found)
        return found

    def _too_deep(self, offset: int) -> DamagedStoreError:
        return self._pack.damaged(f"holds too many deltas on each other at {offset}")

    def _inflate(self, offset: int, head: Head) -> bytes:
        try:
            return b"".join(deflate.Inflation(self._pack.fetch, head.start, head.size))
        except deflate.BadStreamError as error:
            raise self._pack.damaged(f"holds an object at {offset} that {error}") from None

    def _recall(self, offset: int) -> "_Found | None":
        found = self._known.pop(offset, None)
        if found is not None:
            self._known[offset] = found
        return found

    def _remember(self, offset: int, found: "_Found") -> None:
        if offset in self._known or len(found.data) > _CACHED // 4:
            return
        self._known[offset] = found
        self._size += len(found.data)
        while self._size > _CACHED:
            self._size -= len(self._known.pop(next(iter(self._known))).data)


class _Found(Value):
    """The content of an object, and how many deltas it took to get there."""

    kind: int
    data: bytes
    depth: int


def walk_object(
    pack: PackBytes, offset: int, chains: Chains, *, strong: bool = False
) -> PackedObject:
    """Inflate and hash the object at `offset`; with `strong`, blobs get a SHA-256 as well."""
    head = read_head(pack, offset)
    tally = _Tally(pack, offset, head.start)
    stream = deflate.Inflation(tally.fetch, head.start, head.size)
    try:
        if head.base:
            kind, data = chains.on_base(offset, head, b"".join(stream))
            pieces, size = iter((data,)), len(data)
        else:
            kind, pieces, size = head.kind, iter(stream), head.size
        weak, strong_hash = _hash(kind, size, pieces, strong=strong)
    except deflate.BadStreamError as error:
        raise pack.damaged(f"holds an object at {offset} that {error}") from None
    crc = tally.crc_up_to(stream.end)
    return PackedObject(kind, size, weak, crc, stream.end, strong_hash)


def _hash(
    kind: int, size: int, pieces: "Iterator[bytes]", *, strong: bool
) -> "tuple[bytes, bytes | None]":
    """Return the id of an object and, if that is asked for, the strong hash of a blob."""
    weak_hash = git_objects.sha1(git_objects.object_head(kind, size))
    strong_hash = sha256() if strong and kind == git_objects.BLOB else None
    for piece in pieces:
        weak_hash.update(piece)
        if strong_hash is not None:
            strong_hash.update(piece)
    return weak_hash.digest(), None if strong_hash is None else strong_hash.digest()


def scan(pack: PackBytes, entries: "list[Entry] | Entries") -> "DamagedStoreError | None":
    """Walk over a pack (opened with `hashing`), add what is found, and return what is wrong."""
    offset = PACK_HEAD
    chains = Chains(pack)
    try:
        count = pack.count()
        while offset < pack.end:
            found = walk_object(pack, offset, chains)
            entries.append((found.oid, found.crc, offset))
            offset = found.end
        if len(entries) != count:
            raise pack.damaged(f"holds {len(entries)} objects instead of {count}")
        if not pack.is_whole():
            raise pack.damaged("has the wrong checksum")
    except DamagedStoreError as damage:
        return damage
    return None


def rebuild(fd: int, name: str) -> bytes:
    """Return the index of an open pack, made from nothing but the pack, which must be sound."""
    pack = PackBytes(fd, os.fstat(fd).st_size, name, hashing=True)
    entries: list[Entry] = []
    damage = scan(pack, entries)
    if damage is not None:
        raise damage
    return pack_index.build(entries, pack.checksum())


class _Tally:
    """Fetches for an inflater, and takes the crc32 of what it used."""

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

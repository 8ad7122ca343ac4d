"""Writes new objects into packs: few files, few system calls, one sync each.

A pack gets its final name only after its bytes are on disk, so a name always stands for a
whole pack. Its index is derived data and is neither synced nor needed to read the pack.
"""

import os
from itertools import count
from zlib import crc32

from takeback.disk import operations
from takeback.model.value import Value
from takeback.objects import deflate, pack_index
from takeback.objects.git_objects import BLOB, entry_head, object_head, object_id, sha1
from takeback.objects.pack_index import PACK_HEAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from takeback.objects.pack_index import Entry

    Data = bytes | bytearray | memoryview

_WRITE_AT_ONCE = 1 << 20
_MOST_BUFFERED = 16 * 1024 * 1024
SUFFIXES = (b".keep", b".idx", b".pack")
"""The files of a pack, in the order in which they are removed."""
MAGIC = b"PACK\0\0\0\x02"
_temporary_numbers = count()


def _nothing(oid: bytes) -> bool:
    del oid
    return False


class SizeMismatchError(ValueError):
    """A streamed blob had more or fewer bytes than announced."""


class SealedPack(Value):
    """A pack that is written: its name (without suffix), bytes and objects."""

    name: bytes
    size: int
    objects: int


class PackWriter:
    """Takes objects and puts them into one pack, or several when they are many or large.

    What `holds` says to be stored already is not stored again. After an error the writer is as
    it was before the call: try again, or `abort`.
    """

    def __init__(
        self,
        directory: bytes,
        holds: "Callable[[bytes], bool]" = _nothing,
        *,
        limit: int = _MOST_BUFFERED,
    ) -> None:
        self._directory = directory
        self._holds = holds
        self._limit = limit
        self._taken: set[bytes] = set()
        self._placed: list[bytes] = []
        self._sealed: list[SealedPack] = []
        self._parts: list[bytes] = []
        self._entries: list[Entry] = []
        self._buffered = PACK_HEAD

    def is_empty(self) -> bool:
        return not self._taken

    def contains(self, oid: bytes) -> bool:
        return oid in self._taken or self._holds(oid)

    def add(self, kind: int, data: "Data") -> bytes:
        oid = object_id(kind, data)
        self.add_hashed(oid, kind, data)
        return oid

    def add_hashed(self, oid: bytes, kind: int, data: "Data") -> None:
        if not self.contains(oid):
            self.add_known(oid, kind, len(data), deflate.compress(data))

    def add_known(self, oid: bytes, kind: int, size: int, compressed: bytes) -> None:
        if oid in self._taken:
            return
        if self._buffered > self._limit:
            self._seal()
        part = entry_head(kind, size) + compressed
        self._entries.append((oid, crc32(part), self._buffered))
        self._parts.append(part)
        self._buffered += len(part)
        self._taken.add(oid)

    def add_large(self, size: int, chunks: "Iterable[Data]") -> bytes:
        """Stream one blob of `size` bytes into a pack of its own; return its id.

        An error out of `chunks` passes through and leaves nothing behind.
        """
        path, fd = create_temporary(self._directory)
        try:
            try:
                stream = _BlobStream(fd, size)
                oid = stream.write_all(chunks)
                is_new = not self.contains(oid)
                if is_new:
                    operations.fsync(fd)
            finally:
                os.close(fd)
            if is_new:
                self._place(path, stream.checksum, stream.length, [stream.entry])
                self._taken.add(oid)
                return oid
        except BaseException:
            operations.discard(path)
            raise
        operations.discard(path)
        return oid

    def finish(self) -> list[SealedPack]:
        """Make everything durable; return the packs, none if nothing was added."""
        if self._entries:
            self._seal()
        if self._sealed:
            operations.fsync_dir(self._directory)
        return list(self._sealed)

    def abort(self) -> None:
        """Remove what this writer wrote, as far as that can be done.

        Only for packs that nothing refers to: never after a commit that may have succeeded.
        A pack that was there before, with the very same objects, stays.
        """
        for base in self._placed:
            discard_pack(base)
        self._placed = []
        self._sealed = []
        self._taken = set()
        self._begin()

    def _begin(self) -> None:
        self._parts = []
        self._entries = []
        self._buffered = PACK_HEAD

    def _seal(self) -> None:
        path, fd = create_temporary(self._directory)
        try:
            try:
                checksum = self._write_parts(fd)
                operations.fsync(fd)
            finally:
                os.close(fd)
            size = self._buffered + len(checksum)
            self._place(path, checksum, size, self._entries)
        except BaseException:
            operations.discard(path)
            raise
        self._begin()

    def _write_parts(self, fd: int) -> bytes:
        """Write the buffered pack, a small one in one go; return its checksum."""
        digest = sha1()
        pieces, size = [MAGIC + len(self._entries).to_bytes(4, "big")], 0
        for part in self._parts:
            pieces.append(part)
            size += len(part)
            if size > _WRITE_AT_ONCE:
                joined = b"".join(pieces)
                digest.update(joined)
                operations.write(fd, joined)
                pieces, size = [], 0
        joined = b"".join(pieces)
        digest.update(joined)
        operations.write(fd, joined + digest.digest())
        return digest.digest()

    def _place(self, path: bytes, checksum: bytes, size: int, entries: "list[Entry]") -> None:
        name = b"pack-" + checksum.hex().encode()
        base = os.path.join(self._directory, name)
        if not os.path.lexists(base + b".pack"):
            self._placed.append(base)
        operations.rename(path, base + b".pack")
        write_index(base, pack_index.build(entries, checksum))
        self._sealed.append(SealedPack(name, size, len(entries)))


class _BlobStream:
    """One blob on its way into a pack of its own."""

    def __init__(self, fd: int, size: int) -> None:
        self._fd = fd
        self._size = size
        self._pack_hash = sha1()
        self.length = 0
        self.checksum = b""
        self.entry: Entry = (b"", 0, PACK_HEAD)

    def write_all(self, chunks: "Iterable[Data]") -> bytes:
        """Write the whole pack; return the blob's id."""
        head = entry_head(BLOB, self._size)
        self._write(MAGIC + (1).to_bytes(4, "big") + head)
        crc = crc32(head)
        digest = sha1(object_head(BLOB, self._size))
        compressor = deflate.compressor(self._size)
        left = self._size
        for chunk in chunks:
            left -= len(chunk)
            if left < 0:
                raise SizeMismatchError(f"more than the {self._size} bytes announced")
            digest.update(chunk)
            packed = compressor.compress(chunk)
            if packed:
                crc = crc32(packed, crc)
                self._write(packed)
        if left:
            raise SizeMismatchError(f"{left} of the {self._size} bytes announced are missing")
        packed = compressor.flush()
        self._write(packed)
        self.checksum = self._pack_hash.digest()
        self._write(self.checksum)
        self.entry = (digest.digest(), crc32(packed, crc), PACK_HEAD)
        return self.entry[0]

    def _write(self, data: bytes) -> None:
        self._pack_hash.update(data)
        operations.write(self._fd, data)
        self.length += len(data)


def create_temporary(directory: bytes) -> tuple[bytes, int]:
    """Make a new file in `directory` under a name that begins with `tmp-`; return path and fd."""
    while True:
        name = b"tmp-%d-%d" % (os.getpid(), next(_temporary_numbers))
        path = os.path.join(directory, name)
        try:
            return path, operations.create(path)
        except FileExistsError:
            continue  # left by a crashed process that had our number


def discard_pack(base: bytes) -> None:
    for suffix in SUFFIXES:
        operations.discard(base + suffix)


def write_index(base: bytes, data: bytes) -> None:
    """Put an index beside its pack, unsynced; it replaces one that is there."""
    path, fd = create_temporary(os.path.dirname(base))
    try:
        try:
            operations.write(fd, data)
        finally:
            os.close(fd)
        operations.rename(path, base + b".idx")
    except BaseException:
        operations.discard(path)
        raise
    keep(base)


def keep(base: bytes) -> None:
    """Tell git to leave a pack alone, whatever is reached from its refs. Not synced."""
    if not os.path.lexists(base + b".keep"):
        os.close(operations.create(base + b".keep"))

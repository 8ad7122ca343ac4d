"""The stat cache: what every known folder and file looked like when it was last captured.

It is disposable. It is used only if its checksum holds, it was written in this boot of the
machine, for this store and these rules, and for a checkpoint that the ledger knows; otherwise
everything is looked at again. So it is never synced, and a crash at any moment costs time only.

    header, 128 bytes: magic, length of the records, number of the checkpoint, state, checksum of
                       the records, checksum of the header, tree, identity, number of entries
    records: see `layout`
"""

import os
import zlib
from hashlib import sha256
from struct import Struct

from takeback.store import fsops, records
from takeback.store.home import replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Pieces = list[tuple[int, int, bytes]]

_MAGIC = b"TBINDEX2"
_HEADER = Struct("<8sQQIII32s32sQ20x")
_CLEAN, _BEING_WRITTEN = 0, 1
_LARGEST = 1 << 30


class StatCache:
    """The stat cache of one project, in memory."""

    __slots__ = (
        "_on_disk",
        "_path",
        "_told",
        "checkpoint",
        "entries",
        "identity",
        "records",
        "tree",
    )

    def __init__(self, path: bytes, identity: bytes) -> None:
        self._path = path
        self.identity = identity
        self.forget()

    def forget(self) -> None:
        """Know nothing."""
        self.records = bytearray()
        self._told: list[tuple[bytes, int]] | None = None
        self._on_disk = b""
        self.checkpoint = 0
        self.tree = b""
        self.entries = 0

    def discard(self) -> None:
        """Know nothing, now and next time."""
        self.forget()
        if os.path.lexists(self._path):
            fsops.unlink(self._path)

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
        records.distrust(self.records, paths)
        self._on_disk = b""  # the file does not say so, and is written anew

    def told(self) -> "list[tuple[bytes, int]]":
        """(path, flags) of every entry that was left out or did not hold still."""
        if self._told is None:
            self._told = list(records.told(self.records))
        return self._told

    def replace(self, fresh: "bytes | bytearray", checkpoint: int, tree: bytes) -> None:
        """Know `fresh` records instead, and write them."""
        self.records = fresh if isinstance(fresh, bytearray) else bytearray(fresh)
        self._told = None
        self.checkpoint, self.tree = checkpoint, tree
        self.entries = records.count_entries(fresh)
        header = self._header(_CLEAN)
        replace_file(self._path, header, self.records, durable=False)
        self._on_disk = header

    def patch(self, pieces: "Pieces", checkpoint: int, tree: bytes) -> None:
        """Change some records, in memory and in the file."""
        self.entries += records.entries_added(self.records, pieces)
        if any(end - start != len(fresh) for start, end, fresh in pieces):
            self.records, self._told = records.splice(self.records, pieces), None
            # From the first of them on everything has another place.
            changed = [(pieces[0][0], len(self.records))]
        else:
            if records.tells(self.records, pieces):
                self._told = None
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
        fd = fsops.open_or_create(self._path)
        try:
            # Another process may have written it since; its records are not ours to mix with.
            if not self._on_disk or os.pread(fd, _HEADER.size, 0) != self._on_disk:
                return False
            header = self._header(_CLEAN)
            if changed:
                fsops.write_at(fd, self._header(_BEING_WRITTEN), 0)
            view = memoryview(self.records)
            for start, end in changed:
                fsops.write_at(fd, view[start:end], _HEADER.size + start)
            if os.fstat(fd).st_size > _HEADER.size + len(self.records):
                fsops.truncate(fd, _HEADER.size + len(self.records))
            fsops.write_at(fd, header, 0)
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

"""Reads packs: every byte that leaves has been hashed, and damage is always named as such."""

import errno
import os
import stat

from takeback.errors import DamagedStoreError
from takeback.model.reasons import Reason
from takeback.objects import deflate, pack_index, pack_write
from takeback.objects.git_objects import object_head, sha1
from takeback.objects.pack_entry import Chains, PackBytes, read_head, rebuild, scan, walk_object
from takeback.objects.pack_index import PACK_HEAD, PackIndex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Self

    from takeback.objects.pack_index import Entry

    OnObject = Callable[[bytes, int, bytes | None], None]
    """Called with (id, kind, SHA-256 of the content if it is a blob)."""

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_SMALL_WINDOW = 4096
_HEAD_WINDOW = 32
_PIECE = 1024 * 1024
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EIO, errno.ENXIO)


class PackFile:
    """One pack and its index, opened when first needed; reading never writes.

    An index that is missing or damaged is made again in memory. If the pack is damaged too,
    what can still be found is served, and asking for anything else raises instead of saying
    that it is not there.
    """

    def __init__(self, base: bytes) -> None:
        self._base = base
        self._fd = -1
        self._size = 0
        self._index: PackIndex | None = None
        self._chains: Chains | None = None
        self._damage: DamagedStoreError | None = None
        self.name = os.path.basename(base).decode("ascii", "backslashreplace")

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1
        self._index = self._damage = self._chains = None

    def is_gone(self) -> bool:
        """Whether there is no such file; one that is open is there, whatever its name is now."""
        return self._fd < 0 and not os.path.lexists(self._base + b".pack")

    def find(self, oid: bytes) -> "int | None":
        offset = self._loaded_index().find(oid)
        if offset is None and self._damage is not None:
            raise self._damaged(f"is damaged and may have held `{oid.hex()}`: {self._damage}")
        return offset

    def read(self, oid: bytes) -> tuple[int, bytes]:
        kind, _, pieces = self.stream(oid)
        return kind, b"".join(pieces)

    def stream(self, oid: bytes) -> "tuple[int, int, Iterator[bytes]]":
        """Return (kind, size, pieces of at most 1 MiB) of an object.

        Whether the pieces are what they should be is known, and an error raised, only at the
        end: nothing may be made final from them before the iterator is exhausted.
        """
        offset = self.find(oid)
        if offset is None:
            raise self._damaged(f"does not hold `{oid.hex()}`")
        pack = self._bytes(window=_SMALL_WINDOW)
        try:
            head = read_head(pack, offset)
            if head.base:
                kind, data = self._loaded_chains(pack).content(offset)
                return kind, len(data), self._checked(oid, kind, len(data), _cut(data))
        except DamagedStoreError as error:
            raise self._bad_object(oid, str(error)) from error
        stream = iter(deflate.Inflation(pack.fetch, head.start, head.size))
        return head.kind, head.size, self._checked(oid, head.kind, head.size, stream)

    def objects(self) -> "Iterator[bytes]":
        """Return the ids of all objects; raises at the end if some cannot be found."""
        for oid, _, _ in self._loaded_index():
            yield oid
        if self._damage is not None:
            raise self._damage

    def starts(self) -> "Sequence[int]":
        """Return where each object begins, in order, and where the last ends; all must be known."""
        from array import array

        index = self._loaded_index()
        if self._damage is not None:
            raise self._damage
        return array("Q", [*sorted([offset for _, _, offset in index]), self._bytes().end])

    def sizes(self) -> "Iterator[tuple[bytes, int]]":
        from bisect import bisect_right

        starts = self.starts()
        for oid, _, offset in self._loaded_index():
            yield oid, starts[bisect_right(starts, offset)] - offset

    def base_of(self, offset: int) -> int:
        """Return where the base of the delta at `offset` is; 0 if the object there is whole."""
        return read_head(self._bytes(window=_HEAD_WINDOW), offset).base

    def head_problem(self, size: "int | None") -> "Reason | None":
        """What is wrong with the file, at first sight; it should have this size."""
        try:
            fd = os.open(self._base + b".pack", _OPEN)
        except OSError as problem:
            return Reason("pack-unopened", why=str(problem.strerror))
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return Reason("pack-no-file")
            if os.pread(fd, len(pack_write.MAGIC), 0) != pack_write.MAGIC:
                return Reason("pack-no-pack")
            found = os.fstat(fd).st_size
        finally:
            os.close(fd)
        if size is not None and found != size:
            return Reason("pack-size", found=found, expected=size)
        return None

    def index_problem(self) -> str:
        """Return what is wrong with the index file, '' if nothing is.

        No content is lost by it and reading works without; `rewrite_index` puts it right.
        """
        try:
            if self._matches(self._stored_index()):
                return ""
        except DamagedStoreError as error:
            return str(error)
        return f"pack `{self.name}` has the index of another pack"

    def name_problem(self) -> str:
        """Return what is wrong with the name, which tells the checksum; '' if nothing is."""
        found = self._bytes().checksum().hex()
        said = self.name.removeprefix("pack-")
        return (
            "" if said in (self.name, found) else f"pack `{self.name}` is `pack-{found}`, misnamed"
        )

    def rewrite_index(self) -> None:
        """Write a fresh index file, made from the pack, which must be sound."""
        self._open()
        data = rebuild(self._fd, self.name)
        pack_write.write_index(self._base, data)
        self._index, self._damage = PackIndex(data), None

    def check(
        self, on_object: "OnObject | None" = None, on_place: "Callable[[int], None] | None" = None
    ) -> list[str]:
        """Read and hash the whole pack; return a sentence for each thing that is wrong.

        `on_object` hears of every object that is sound, `on_place` how far it has come. A missing
        or torn index is no problem of the pack's (see `index_problem`); a whole one that
        contradicts the pack is.
        """
        try:
            pack = self._bytes(hashing=True)
            found = _Examination(pack, self._find_stored_index(), on_object).run(on_place)
            # The checksum of a damaged pack says nothing about its name.
            return found or [what for what in (self.name_problem(),) if what]
        except DamagedStoreError as error:
            return [str(error)]

    def _checked(
        self, oid: bytes, kind: int, size: int, pieces: "Iterator[bytes]"
    ) -> "Iterator[bytes]":
        digest = sha1(object_head(kind, size))
        try:
            for piece in pieces:
                digest.update(piece)
                yield piece
        except deflate.BadStreamError as error:
            raise self._bad_object(oid, f"its stream {error}") from None
        except DamagedStoreError as error:
            raise self._bad_object(oid, str(error)) from error
        if digest.digest() != oid:
            raise self._bad_object(oid, "its content is not what was stored")

    def _loaded_chains(self, pack: PackBytes) -> Chains:
        if self._chains is None:
            self._chains = Chains(pack)
        return self._chains

    def _loaded_index(self) -> PackIndex:
        if self._index is None:
            self._index = self._load_index()
        return self._index

    def _load_index(self) -> PackIndex:
        self._open()
        index = self._find_stored_index()
        if index is not None and self._matches(index):
            return index
        pack = self._bytes(hashing=True)
        entries: list[Entry] = []
        damage = scan(pack, entries)
        if damage is not None and index is not None:
            return index
        self._damage = damage
        return PackIndex(pack_index.build(entries, pack.checksum()))

    def _matches(self, index: PackIndex) -> bool:
        return index.checksum == self._bytes().checksum()

    def _find_stored_index(self) -> "PackIndex | None":
        try:
            return self._stored_index()
        except DamagedStoreError:
            return None

    def _stored_index(self) -> PackIndex:
        self._open()
        try:
            fd = os.open(self._base + b".idx", _OPEN)
        except OSError as error:
            raise self._damaged(f"has no usable index: {error.strerror}") from error
        try:
            size = os.fstat(fd).st_size
            if size > pack_index.largest_index(self._size):
                raise self._damaged("has an index of impossible size")
            return PackIndex(os.read(fd, size))
        except OSError as error:
            raise self._damaged(f"has an unreadable index: {error.strerror}") from error
        finally:
            os.close(fd)

    def _bytes(self, *, window: int = 1024 * 1024, hashing: bool = False) -> PackBytes:
        self._open()
        return PackBytes(self._fd, self._size, self.name, window=window, hashing=hashing)

    def _open(self) -> None:
        if self._fd >= 0:
            return
        try:
            fd = os.open(self._base + b".pack", _OPEN)
        except OSError as error:
            if error.errno not in _GONE:
                raise
            raise self._damaged(f"cannot be opened: {error.strerror}") from error
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            os.close(fd)
            raise self._damaged("is not a regular file")
        self._fd = fd
        self._size = status.st_size

    def _bad_object(self, oid: bytes, why: str) -> DamagedStoreError:
        return self._damaged(f"holds `{oid.hex()}` damaged: {why}")

    def _damaged(self, what: str) -> DamagedStoreError:
        return DamagedStoreError(f"pack `{self.name}` {what}")


def _cut(data: bytes) -> "Iterator[bytes]":
    return (data[at : at + _PIECE] for at in range(0, len(data), _PIECE))


class _Examination:
    """One full check of a pack, going on behind damage where the index shows the way."""

    def __init__(
        self, pack: PackBytes, index: "PackIndex | None", on_object: "OnObject | None"
    ) -> None:
        self._pack = pack
        self._chains = Chains(pack)
        self._index = index
        self._on_object = on_object
        self._problems: list[str] = []
        self._seen = 0
        self._oids: dict[int, bytes] = {}
        self._offsets: list[int] = []

    def run(self, on_place: "Callable[[int], None] | None") -> list[str]:
        promised = self._promised()
        offset = PACK_HEAD
        while offset < self._pack.end:
            offset = self._examine(offset)
            if on_place is not None:
                on_place(offset)
        if promised is not None and self._seen != promised and not self._problems:
            self._note(f"holds {self._seen} objects instead of {promised}")
        if not self._pack.is_whole():
            self._note("has the wrong checksum")
        self._compare_index()
        return self._problems

    def _promised(self) -> "int | None":
        try:
            return self._pack.count()
        except DamagedStoreError as error:
            self._problems.append(str(error))
            return None

    def _examine(self, offset: int) -> int:
        """Check the object at `offset`; return where the next one begins."""
        try:
            strong = self._on_object is not None
            found = walk_object(self._pack, offset, self._chains, strong=strong)
        except DamagedStoreError as error:
            self._problems.append(f"{error}{self._known_as(offset)}")
            from bisect import bisect_right

            known = self._known_offsets()
            later = bisect_right(known, offset)
            return known[later] if later < len(known) else self._pack.end
        if self._index is not None and self._index.find_entry(found.oid) != (found.crc, offset):
            what = f"holds `{found.oid.hex()}` at {offset}, unlike its index"
            self._note(what + self._known_as(offset))
            return found.end
        self._seen += 1
        if self._on_object is not None:
            self._on_object(found.oid, found.kind, found.sha256)
        return found.end

    def _known_as(self, offset: int) -> str:
        self._known_offsets()
        oid = self._oids.get(offset)
        return "" if oid is None else f" (its index says `{oid.hex()}`)"

    def _known_offsets(self) -> list[int]:
        if not self._offsets and self._index is not None:
            self._oids = {offset: oid for oid, _, offset in self._index}
            self._offsets = sorted(self._oids)
        return self._offsets

    def _compare_index(self) -> None:
        if self._index is None or self._problems:
            return
        if self._index.checksum != self._pack.checksum() or self._index.count != self._seen:
            self._note("and its index are not of one piece")

    def _note(self, what: str) -> None:
        self._problems.append(f"pack `{self._pack.name}` {what}")

"""What the packs hold, by id. Where an object lies is known here and nowhere else.

Packs are asked newest first, by their indexes: the ids of small ones stand in one dictionary, large
ones are bisected. An index is read when first needed, and gc bounds their number.

A reader may know a pack that was merged meanwhile. As long as it has the file open it goes on
reading; if it finds the file gone, it asks the ledger as it is now, which named the new pack before
the old one was removed. Every read is checked against the hash it was asked for.
"""

import os
import sys
from hashlib import sha256

from takeback.disk import home, operations
from takeback.errors import DamagedStoreError
from takeback.model.reasons import Action
from takeback.objects import pack_index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Protocol, TypeVar

    from takeback.model.tree import Entry, Manifest
    from takeback.objects.pack_index import PackIndex
    from takeback.objects.pack_merge import Catalog, Piece
    from takeback.objects.pack_read import PackFile
    from takeback.objects.pack_write import PackWriter, SealedPack
    from takeback.ports import Progress

    T = TypeVar("T")

    class PackNames(Protocol):
        """Who knows which packs there are, the newest last."""

        def packs(self) -> list[str]:
            """As of the moment that is being read."""

        def packs_now(self) -> list[str]:
            """At this moment, whatever is being read."""

        def foreign_packs(self) -> set[str]:
            """Packs that only events of unknown kinds name."""


_OPEN_AT_ONCE = 32
_SMALL = 4096
"""Objects: the ids of a pack with fewer are kept in the dictionary."""
_MOST_ASKED = 256
"""For a writer no more indexes are read than this; what only older packs hold is stored again."""


class ObjectStore:
    """The objects of one project."""

    def __init__(self, directory: bytes, ledger: "PackNames") -> None:
        self._directory = directory
        self._ledger = ledger
        self._open: dict[str, PackFile] = {}
        self._start_over([])
        self._is_asked = False

    def _start_over(self, names: "list[str]") -> None:
        self._names = dict.fromkeys(names)
        self._unread = list(names)
        self._small: dict[bytes, str] = {}
        self._large: list[tuple[str, PackIndex]] = []
        self._present: set[str] = set()
        self._asked = 0
        """How many indexes were read since it was last asked which packs there are."""

    def close(self) -> None:
        for pack in self._open.values():
            pack.close()
        self._open.clear()
        self._start_over([])
        self._is_asked = False

    # -- reading -------------------------------------------------------------------------------

    def read(self, oid: bytes) -> "tuple[int, bytes]":
        """Kind and content of an object, from the first pack that holds it sound."""
        return self._from_some_pack(oid, lambda pack: pack.read(oid))

    def manifest(self, oid: bytes, strong: bytes) -> "Manifest":
        from takeback.model import tree

        manifest = tree.decode(self._blob(oid))
        if manifest.strong != strong:
            raise DamagedStoreError(f"the manifest `{oid.hex()}` is not the one that was stored")
        return manifest

    def content(self, entry: "Entry") -> bytes:
        """The bytes of a small file or the target of a link, checked against the strong hash."""
        data = self._blob(entry.oid)
        if sha256(data).digest() != entry.strong:
            raise DamagedStoreError(f"the object `{entry.oid.hex()}` is not what was stored")
        return data

    def stream(self, entry: "Entry") -> "Iterator[bytes]":
        """The bytes of a file piece by piece; `DamagedStoreError` at the end if they are wrong."""
        from takeback.objects.git_objects import BLOB

        oid = entry.oid
        kind, size, chunks = self._from_some_pack(oid, lambda pack: pack.stream(oid))
        strong = sha256()
        for chunk in chunks:
            strong.update(chunk)
            yield chunk
        if kind != BLOB or size != entry.size or strong.digest() != entry.strong:
            raise DamagedStoreError(f"the object `{entry.oid.hex()}` is not what was stored")

    def walk(self, oid: bytes, strong: bytes) -> "Iterator[tuple[bytes, Manifest]]":
        """(path, manifest) of every folder of a tree, each before those below it."""
        stack = [(b"", oid, strong)]
        while stack:
            path, oid, strong = stack.pop()
            manifest = self.manifest(oid, strong)
            yield path, manifest
            for entry in manifest.folders():
                below = path + b"/" + entry.name if path else entry.name
                stack.append((below, entry.oid, entry.strong))

    def is_sound(self, oid: bytes) -> bool:
        for pack in self._packs_with(oid):
            try:
                for _ in pack.stream(oid)[2]:
                    pass
            except DamagedStoreError:
                continue
            return True
        return False

    def _blob(self, oid: bytes) -> bytes:
        from takeback.objects.git_objects import BLOB

        kind, data = self.read(oid)
        if kind != BLOB:
            raise DamagedStoreError(f"the object `{oid.hex()}` is of the wrong kind")
        return data

    # -- writing -------------------------------------------------------------------------------

    def writer(self, holds: "Callable[[bytes], bool] | None" = None) -> "PackWriter":
        """A writer that leaves out what the store holds; with the lock held until the commit.

        Without the lock a pack that holds an object now may be merged without it.
        """
        from takeback.objects.pack_write import PackWriter

        self.refresh()
        return PackWriter(self._directory, holds or self.holds)

    def holds(self, oid: bytes) -> bool:
        """Whether a pack that the ledger names has an object, as of the last `refresh`."""
        name = self._find(oid, _MOST_ASKED)
        return name is not None and self._is_present(name)

    def refresh(self) -> None:
        self._follow(self._ledger.packs())

    # -- packs as files ------------------------------------------------------------------------

    def pack(self, name: str) -> "PackFile":
        """One pack, to check or repair it; the caller closes it."""
        from takeback.objects.pack_read import PackFile

        return PackFile(self._base(name))

    def catalog(self) -> "Catalog":
        from takeback.objects.pack_merge import Catalog

        return Catalog(self._directory)

    def merge(
        self, pieces: "Iterable[Piece]", progress: "Progress | None" = None
    ) -> "list[SealedPack]":
        """Write packs that hold the pieces, beside those that hold them now."""
        from takeback.objects import pack_merge

        return pack_merge.merge(self._directory, pieces, progress=progress)

    def discard(self, packs: "Iterable[SealedPack]") -> None:
        """Remove new packs that nothing refers to, as far as that can be done."""
        from takeback.objects.pack_write import discard_pack

        for pack in packs:
            discard_pack(self._base(pack.name.decode()))

    def size(self) -> int:
        folder = self._directory
        return sum(home.size_of(folder + b"/" + name) for name in os.listdir(folder))

    def pack_size(self, name: str) -> int:
        """Bytes; 0 if the pack is gone."""
        return home.size_of(self._base(name) + b".pack")

    def free_space(self) -> int:
        """Bytes that new packs may take."""
        disk = os.statvfs(self._directory)
        return disk.f_bavail * disk.f_frsize

    def has_on_disk(self, packs: "Iterable[SealedPack]") -> bool:
        """Whether new packs are there, whole, before the ledger leads to them."""
        return all(self.pack_size(pack.name.decode()) == pack.size for pack in packs)

    def has_all_packs(self) -> bool:
        there = set(os.listdir(self._directory))
        return all(name.encode() + b".pack" in there for name in self._ledger.packs())

    def stray_packs(self) -> "list[str]":
        """The packs on disk that no event names; none if an event cannot be read that may."""
        try:
            foreign = self._ledger.foreign_packs()
        except DamagedStoreError:
            return []
        names = map(os.fsdecode, os.listdir(self._directory))
        there = {name.rsplit(".", 1)[0] for name in names if name.startswith("pack-")}
        return sorted(there.difference(self._ledger.packs(), foreign))

    def is_stray(self, oid: bytes) -> bool:
        for name in self.stray_packs():
            with self.pack(name) as pack:
                if holds(pack, oid):
                    return True
        return False

    def half_written(self) -> "list[bytes]":
        """The paths of files that a process is writing, or left when it died."""
        return [
            self._directory + b"/" + name
            for name in sorted(os.listdir(self._directory))
            if name.startswith(b"tmp-") or name.endswith(b".tmp")
        ]

    def unknown_files(self) -> "list[bytes]":
        """The paths of all files beside the present packs: old ones, half-written, git's own."""
        from takeback.objects.pack_write import SUFFIXES

        known = {*self._ledger.packs(), *self._ledger.foreign_packs()}
        ours = {self._base(name) + suffix for name in known for suffix in SUFFIXES}
        paths = {self._directory + b"/" + name for name in os.listdir(self._directory)}
        return sorted(paths - ours)

    def sweep(self, most: int, *, with_strays: bool) -> bool:
        """Remove up to `most` files that nothing refers to; whether some are left.

        With both locks held: no pack is being written.
        """
        from takeback.objects.pack_write import SUFFIXES

        paths = self.half_written()
        for name in self.stray_packs() if with_strays else ():
            paths += filter(os.path.lexists, (self._base(name) + suffix for suffix in SUFFIXES))
        for path in paths[:most]:
            operations.unlink(path)
        return len(paths) > most

    # -- where objects lie ---------------------------------------------------------------------

    def _follow(self, names: "list[str]") -> None:
        self._is_asked, self._asked = True, 0
        self._present.clear()
        if not self._names.keys() <= set(names):
            self._start_over(names)
            return
        self._unread += [name for name in names if name not in self._names]
        self._names.update(dict.fromkeys(names))

    def _from_some_pack(self, oid: bytes, read: "Callable[[PackFile], T]") -> "T":
        damage = None
        for pack in self._packs_with(oid):
            try:
                return read(pack)
            except DamagedStoreError as problem:
                # It may have been stored again since, for instance by `checkpoint --rehash`.
                damage = damage or problem
        raise damage or _missing(oid)

    def _packs_with(self, oid: bytes) -> "Iterator[PackFile]":
        """All packs that hold an object; the rest is looked at only if the first does not do.

        A reader without the lock begins again when gc replaced the packs meanwhile.
        """
        tried: list[str] | None = None
        while tried != list(self._names):
            name = self._find(oid)
            if name is None or self._pack(name).is_gone():
                self._follow(self._ledger.packs_now())
                name = self._find(oid)
            tried = list(self._names)
            if name is not None:
                yield self._pack(name)
            for other in reversed(tried):
                if other != name and holds(self._pack(other), oid):
                    yield self._pack(other)
            self._follow(self._ledger.packs_now())

    def _find(self, oid: bytes, most: int = sys.maxsize) -> "str | None":
        """The name of a pack whose index has an object; so many indexes may be read."""
        if not self._is_asked:
            self.refresh()
        found = self._small.get(oid)
        if found is not None:
            return found
        for name, index in self._large:
            if index.find(oid) is not None:
                return name
        while self._unread and self._asked < most:
            name = self._unread.pop()
            if self._has_read(name, oid):
                return name
        return None

    def _has_read(self, name: str, oid: bytes) -> bool:
        """Read an index; whether it has an object. A pack without one is read as a last resort."""
        self._asked += 1
        try:
            index = pack_index.read(self._base(name))
        except DamagedStoreError:
            return False
        if len(index) >= _SMALL:
            self._large.append((name, index))
            return index.find(oid) is not None
        ids = index.ids()
        for each in ids:
            self._small.setdefault(each, name)
        return oid in ids

    def _is_present(self, name: str) -> bool:
        if name not in self._present:
            if not os.path.lexists(self._base(name) + b".pack"):
                return False
            self._present.add(name)
        return True

    def _pack(self, name: str) -> "PackFile":
        pack = self._open.get(name)
        if pack is None:
            if len(self._open) >= _OPEN_AT_ONCE:
                oldest = next(iter(self._open))
                self._open.pop(oldest).close()
            pack = self._open[name] = self.pack(name)
        return pack

    def _base(self, name: str) -> bytes:
        return self._directory + b"/" + os.fsencode(name)


def holds(pack: "PackFile", oid: bytes) -> bool:
    try:
        return pack.find(oid) is not None
    except DamagedStoreError:
        # Another pack may hold the object, too; if none does, it is reported as missing.
        return False


def _missing(oid: bytes) -> DamagedStoreError:
    return DamagedStoreError(
        f"the object `{oid.hex()}` is missing from the store",
        hint=Action("verify"),
    )

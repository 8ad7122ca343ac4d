"""Read what the packs hold. Every read is checked against the hash it was asked for.

Numbers of packs are aliases: after a merge many lead to one file. A reader may know a number by
the name of a file that was merged meanwhile, because it asked long ago or reads the ledger as of
some moment. As long as it has the file open it goes on reading; if it finds the file gone, it
asks the ledger as it is now, which had the new name before the old file was removed.
"""

from hashlib import sha256

from takeback.errors import DamagedStoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from takeback.model.tree import Entry, Manifest
    from takeback.store.ledger import Ledger
    from takeback.store.packread import PackFile

_OPEN_AT_ONCE = 32


class Objects:
    """The objects of one project. An entry says in which pack its object was first stored."""

    def __init__(self, directory: bytes, ledger: "Ledger") -> None:
        self.directory = directory
        self._ledger = ledger
        self._open: dict[str, PackFile] = {}
        self._names: dict[int, str] = {}

    def close(self) -> None:
        """Close all packs."""
        for pack in self._open.values():
            pack.close()
        self._open.clear()
        self._names.clear()

    def manifest(self, oid: bytes, number: int, strong: bytes) -> "Manifest":
        """The manifest of a folder, checked against its strong hash."""
        from takeback.model import tree

        manifest = tree.decode(self._blob(oid, number))
        if manifest.strong != strong:
            raise DamagedStoreError(f"the manifest `{oid.hex()}` is not the one that was stored")
        return manifest

    def content(self, entry: "Entry") -> bytes:
        """The bytes of a small file or the target of a link, checked against the strong hash."""
        data = self._blob(entry.oid, entry.number)
        if sha256(data).digest() != entry.strong:
            raise DamagedStoreError(f"the object `{entry.oid.hex()}` is not what was stored")
        return data

    def stream(self, entry: "Entry") -> "Iterator[bytes]":
        """The bytes of a file piece by piece; `DamagedStoreError` at the end if they are wrong."""
        from takeback.store.gitobjects import BLOB

        kind, size, chunks = self.pack_with(entry.oid, entry.number).stream(entry.oid)
        strong = sha256()
        for chunk in chunks:
            strong.update(chunk)
            yield chunk
        if kind != BLOB or size != entry.size or strong.digest() != entry.strong:
            raise DamagedStoreError(f"the object `{entry.oid.hex()}` is not what was stored")

    def walk(self, oid: bytes, number: int, strong: bytes) -> "Iterator[tuple[bytes, Manifest]]":
        """(path, manifest) of every folder of a tree, each before those below it."""
        stack = [(b"", oid, number, strong)]
        while stack:
            path, oid, number, strong = stack.pop()
            manifest = self.manifest(oid, number, strong)
            yield path, manifest
            for entry in manifest.folders():
                below = path + b"/" + entry.name if path else entry.name
                stack.append((below, entry.oid, entry.number, entry.strong))

    def pack_with(self, oid: bytes, number: int) -> "PackFile":
        """The pack that holds an object: the one it was stored in, else any that has it."""
        pack = self._numbered(number, oid) or next(self._others(oid), None)
        if pack is not None:
            return pack
        raise DamagedStoreError(
            f"the object `{oid.hex()}` is missing from the store",
            hint="run `takeback verify` to see which checkpoints it touches",
        )

    def _blob(self, oid: bytes, number: int) -> bytes:
        from takeback.store.gitobjects import BLOB

        kind, data = self._read(oid, number)
        if kind != BLOB:
            raise DamagedStoreError(f"the object `{oid.hex()}` is of the wrong kind")
        return data

    def _read(self, oid: bytes, number: int) -> "tuple[int, bytes]":
        pack = self.pack_with(oid, number)
        try:
            return pack.read(oid)
        except DamagedStoreError as problem:
            # It may have been stored again since, for instance by `checkpoint --rehash`.
            for copy in self._others(oid):
                if copy is not pack:
                    return copy.read(oid)
            raise problem from None

    def is_sound(self, oid: bytes, number: int) -> bool:
        """Whether an object can be read as it was stored."""
        try:
            for _ in self.pack_with(oid, number).stream(oid)[2]:
                pass
        except DamagedStoreError:
            return False
        return True

    def _numbered(self, number: int, oid: bytes) -> "PackFile | None":
        """The pack of a number, if it holds the object; looked up again if it was merged."""
        name = self._names.get(number) or self._ledger.pack_name(number)
        if name is None:
            return None
        self._names[number] = name
        pack = self._pack(name)
        if pack.is_gone():
            now = self._names_now().get(number)
            if now is None or now == name:
                return None
            self._names[number] = now
            pack = self._pack(now)
        return pack if holds(pack, oid) else None

    def _others(self, oid: bytes) -> "Iterator[PackFile]":
        """All packs that hold an object, whatever their numbers."""
        known = dict.fromkeys(self._ledger.packs().values())
        for name in known:
            pack = self._pack(name)
            if holds(pack, oid):
                yield pack
        for name in dict.fromkeys(self._names_now().values()):
            if name not in known and holds(self._pack(name), oid):
                yield self._pack(name)

    def _names_now(self) -> "dict[int, str]":
        """The names of all packs at this moment, whichever moment the ledger is read as of."""
        from takeback.store.ledger import Ledger

        live = Ledger(self._ledger.path, writable=False)
        try:
            return live.packs()
        finally:
            live.close()

    def _pack(self, name: str) -> "PackFile":
        pack = self._open.get(name)
        if pack is None:
            if len(self._open) >= _OPEN_AT_ONCE:
                oldest = next(iter(self._open))
                self._open.pop(oldest).close()
            from takeback.store.packread import PackFile

            pack = self._open[name] = PackFile(self.directory + b"/" + name.encode())
        return pack


def holds(pack: "PackFile", oid: bytes) -> bool:
    """Whether an object can be found in a pack."""
    try:
        return pack.find(oid) is not None
    except DamagedStoreError:
        # Another pack may hold the object, too; if none does, it is reported as missing.
        return False

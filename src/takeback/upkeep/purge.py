"""Trees without what is forgotten: manifests and git trees, made anew where something goes.

The trees of all checkpoints are gone through once; what they share is looked at once. What
nobody wants forgotten keeps its bytes and its place.
"""

import os
from hashlib import sha256

from takeback.model import ids, tree
from takeback.model.forgotten import ForgottenLines, purged
from takeback.model.tree import FOLDER, INCOMPLETE_BELOW, LINK, NAMELESS, NO_HASH, NO_OBJECT, Entry
from takeback.objects.git_objects import BLOB, TREE, encode_tree, escape_name, object_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from takeback.ledger.log.events import CheckpointRow
    from takeback.model.forgotten import ForgetRequest
    from takeback.model.tree import Manifest
    from takeback.objects.object_store import ObjectStore
    from takeback.ports import ObjectTaker

    Key = tuple[bytes | None, bytes]
    """A folder: its path, if that matters, and the id of its manifest."""


_LARGEST, _MOST = 1 << 20, 1 << 26
"""Bytes of one content, and of all, whose lines are looked for."""
_EVERYTHING = NAMELESS + b"everything)"


class Folder:
    """What became of a folder, in all states in which it is the same."""

    __slots__ = ("below", "entries", "is_incomplete", "oid", "strong", "view")

    def __init__(
        self,
        place: "tuple[bytes, bytes]",
        view: bytes,
        below: "list[Folder]",
        entries: int,
        *,
        is_incomplete: bool,
    ) -> None:
        self.oid, self.strong = place
        self.view = view
        self.below = below
        self.entries = entries
        self.is_incomplete = is_incomplete


class Purge:
    """Goes through the trees of checkpoints; `marks` are the objects that they need then."""

    def __init__(
        self,
        objects: "ObjectStore",
        writer: "ObjectTaker",
        wish: "ForgetRequest",
        known: "Collection[bytes]",
    ) -> None:
        self._objects = objects
        self._writer = writer
        self._wish = wish
        self._known = known
        self._made: dict[Key, Folder] = {}
        self._holds: dict[bytes, bool] = {}
        self._hashes_kept: set[bytes] = set()
        self.marks: set[bytes] = set()
        self.names: dict[bytes, bytes] = {}
        """A path of each content that stays."""
        self.series: dict[bytes, bytes] = {}
        """Of what each object is a version."""
        self.taken: dict[bytes, tuple[int, bytes]] = {}
        """The size of each content that was forgotten somewhere, and a path that it had."""
        self.hashes: dict[bytes, bytes] = {}
        """Their SHA-256."""
        self.paths: set[bytes] = set()
        """Where something was forgotten."""

    def tree(self, row: "CheckpointRow") -> Folder:
        """The tree of a checkpoint without what is forgotten."""
        root = (b"", (row.root, row.tree))
        pending = [root]
        read: dict[Key, Manifest] = {}
        while pending:
            path, place = pending[-1]
            key = self._key(path, place[0])
            if key in self._made:
                pending.pop()
                continue
            manifest = read.get(key)
            if manifest is None:
                manifest = read[key] = self._objects.manifest(*place)
                below = [
                    (_join(path, entry.name), (entry.oid, entry.strong))
                    for entry in manifest.folders()
                    if not self._takes(_join(path, entry.name), entry)
                ]
                pending += below
                if below:
                    continue
            self._made[key] = self._remake(path, manifest, place)
            del read[key]
            pending.pop()
        return self._made[self._key(b"", row.root)]

    @property
    def needed(self) -> "set[bytes]":
        """The ids of all objects, and the hashes of all contents, that stay."""
        return self.marks | self._hashes_kept

    @property
    def gone(self) -> "dict[bytes, int]":
        """The size of each content that is forgotten and needed nowhere else."""
        return {oid: size for oid, (size, _) in self.taken.items() if oid not in self.marks}

    def lines_gone(self) -> ForgottenLines:
        """The lines of these; of what is large none, which nobody prints, nor has so much room."""
        small, total = [], 0
        for oid, size in sorted(self.gone.items(), key=lambda item: item[1]):
            total += size
            if size > _LARGEST or total > _MOST:
                break
            small += [oid] if oid in self._known else []  # old ones may have been let go
        return ForgottenLines(self._objects.read(oid)[1] for oid in small)

    def nothing_known(self, row: "CheckpointRow") -> Folder:
        """A tree of which nobody knows anything, in the place of that of a checkpoint."""
        old = self._objects.manifest(row.root, row.tree)
        for above, manifest in self._objects.walk(row.root, row.tree):
            for inner in manifest.entries:
                if not inner.reason and inner.kind != FOLDER:
                    self.take(_join(above, inner.name), inner)
        unknown = purged(Entry(b"", 0, 0, 0, NO_HASH, 0, NO_OBJECT), _EVERYTHING)
        strong, data = tree.encode(old.mode, [unknown])
        place = (row.root, strong)
        if strong != row.tree:
            place = (self._writer.add(BLOB, data), strong)
        view = self._view(b"", [unknown], [])
        self.marks |= {place[0], view}
        return Folder(place, view, [], 0, is_incomplete=True)

    def contains(self, entry: Entry) -> bool:
        """Whether the content of a file, or the target of a link, is what shall be forgotten."""
        if entry.strong in self._wish.contents:
            return True
        if not self._wish.in_files or entry.oid not in self._known:
            return False  # what old events name may have been let go
        known = self._holds.get(entry.oid)
        if known is None:
            known = holds_any(self._objects.stream(entry), self._wish.texts)
            self._holds[entry.oid] = known
        return known

    def take(self, path: bytes, entry: Entry) -> None:
        """Note that an entry is forgotten."""
        self.paths.add(path)
        if entry.kind != FOLDER:
            self.taken.setdefault(entry.oid, (entry.size, path))
            self.hashes[entry.oid] = entry.strong

    def keep(self, path: bytes, entry: Entry) -> None:
        """Note that the content of an entry is needed."""
        self.marks.add(entry.oid)
        self._hashes_kept.add(entry.strong)
        self.names.setdefault(entry.oid, path)
        self.series.setdefault(entry.oid, b"f" + path)

    def takes_object(self, oid: bytes) -> bool:
        """Whether an object that an event names is forgotten; once all trees were gone through."""
        if oid in self._wish.objects or (oid in self.taken and oid not in self.marks):
            return True
        if not self._wish.in_files or oid not in self._known:
            return False
        data = self._objects.read(oid)[1]
        return any(text in data for text in self._wish.texts)

    def take_object(self, oid: bytes) -> None:
        """Note that an object which an event named is forgotten, unless a tree needs it."""
        if oid in self._known and oid not in self.marks:
            data = self._objects.read(oid)[1]
            self.taken.setdefault(oid, (len(data), b""))
            self.hashes.setdefault(oid, sha256(data).digest())

    # -- one folder ----------------------------------------------------------------------------

    def _key(self, path: bytes, oid: bytes) -> "Key":
        # Elsewhere than on the way to a forgotten path, all that counts is what a folder holds.
        return (path if self._wish.leads_to(path) else None, oid)

    def _takes(self, path: bytes, entry: Entry) -> bool:
        if entry.reason:
            return self._wish.hides(path)
        if self._wish.covers(path) or self._wish.hides(path):
            return True
        return entry.kind != FOLDER and self.contains(entry)

    def _remake(self, path: bytes, manifest: "Manifest", place: "tuple[bytes, bytes]") -> Folder:
        entries: list[Entry] = []
        below: list[Folder] = []
        count = 0
        is_new = False
        for entry in manifest.entries:
            at = _join(path, entry.name)
            if self._takes(at, entry):
                entries.append(self._taken(at, entry))
                is_new = True
                continue
            if not entry.reason:
                count += 1
                if entry.kind == FOLDER:
                    inner = self._made[self._key(at, entry.oid)]
                    below.append(inner)
                    count += inner.entries
                    if inner.oid != entry.oid:
                        entry, is_new = _follow(entry, inner), True
                else:
                    self.keep(at, entry)
            entries.append(entry)
        if is_new:
            entries.sort(key=lambda entry: entry.name)
            strong, data = tree.encode(manifest.mode, entries)
            place = (self._writer.add(BLOB, data), strong)
        view = self._view(path, entries, below)
        self.marks |= {place[0], view}
        self.series.setdefault(place[0], b"m" + path)
        incomplete = any(e.flags & (tree.REASON | INCOMPLETE_BELOW) for e in entries)
        return Folder(place, view, below, count, is_incomplete=incomplete)

    def _taken(self, path: bytes, entry: Entry) -> Entry:
        """What stays of a forgotten entry; without its name, if that goes, too."""
        if not entry.reason:
            self.take(path, entry)
            if entry.kind == FOLDER:
                self._take_below(path, entry)
        else:
            self.paths.add(path)
        if not self._wish.hides(path):
            return purged(entry, entry.name)
        stand_in = NAMELESS + ids.from_entropy(os.urandom(8)).encode() + b")"
        return purged(entry, stand_in)

    def _take_below(self, path: bytes, entry: Entry) -> None:
        for above, manifest in self._objects.walk(entry.oid, entry.strong):
            for inner in manifest.entries:
                if not inner.reason and inner.kind != FOLDER:
                    self.take(_join(_join(path, above), inner.name), inner)

    def _view(self, path: bytes, entries: "list[Entry]", below: "list[Folder]") -> bytes:
        """The git tree of a folder; written if no pack has it."""
        views = iter(below)
        rows = []
        for entry in entries:
            if entry.reason:
                continue
            name = escape_name(entry.name)
            if entry.kind == FOLDER:
                rows.append((0o040000, name, next(views).view))
            else:
                plain = 0o100755 if entry.mode & 0o100 else 0o100644
                rows.append((0o120000 if entry.kind == LINK else plain, name, entry.oid))
        data = encode_tree(rows)
        oid = object_id(TREE, data)
        if oid not in self._known:
            self._writer.add(TREE, data)
        self.series.setdefault(oid, b"t" + path)
        return oid


def _follow(entry: Entry, folder: Folder) -> Entry:
    """The entry of a folder in which something went."""
    flags = entry.flags | (INCOMPLETE_BELOW if folder.is_incomplete else 0)
    return Entry(entry.name, entry.mode, flags, entry.size, folder.strong, entry.mtime, folder.oid)


def holds_any(pieces: "Iterator[bytes]", texts: "Iterable[bytes]") -> bool:
    """Whether one of these texts stands in what comes piece by piece; all of it is read."""
    wanted = tuple(texts)
    longest = max(map(len, wanted), default=1)
    tail, found = b"", False
    for piece in pieces:
        window = tail + piece
        found = found or any(text in window for text in wanted)
        tail = window[-(longest - 1) :] if longest > 1 else b""
    return found


class Sizing:
    """Takes objects only to say what their ids would be; for a preview."""

    def add(self, kind: int, data: bytes, /) -> bytes:
        """The id that an object would have."""
        return object_id(kind, data)


def _join(path: bytes, name: bytes) -> bytes:
    if not path or not name:
        return path or name
    return path + b"/" + name

"""Find single paths in the trees of checkpoints, reading only the folders on the way."""

from takeback.model import reasons
from takeback.model.tree import FOLDER, NO_HASH, NO_OBJECT, Entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.model.tree import Manifest
    from takeback.store.objects import Objects
    from takeback.store.rows import CheckpointRow

_BELOW_LEFT_OUT = Entry(b"", 0, reasons.IGNORED, 0, NO_HASH, 0, 0, NO_OBJECT)
"""Stands for everything below a folder that was left out."""


class Trees:
    """The trees of several checkpoints; what they share is read once."""

    def __init__(self, objects: "Objects") -> None:
        self._objects = objects
        self._manifests: dict[bytes, dict[bytes, Entry]] = {}

    def find(self, row: "CheckpointRow", path: bytes) -> "Entry | None":
        """What a path was; None if it was not there, or below something left out."""
        entry = self.at(row, path)
        return None if entry is _BELOW_LEFT_OUT else entry

    def at(self, row: "CheckpointRow", path: bytes) -> "Entry | None":
        """What a path was; below something left out it is an entry with a reason, too.

        Unknown is not absent.
        """
        oid, number, strong = row.root, row.pack, row.tree
        entry: Entry | None = None
        for name in path.split(b"/"):
            if entry is not None:
                if entry.reason and entry.kind in (FOLDER, 0):
                    return _BELOW_LEFT_OUT
                if entry.kind != FOLDER:
                    return None
                oid, number, strong = entry.oid, entry.number, entry.strong
            entry = self._entries(oid, number, strong).get(name)
            if entry is None:
                return None
        return entry

    def root(self, row: "CheckpointRow") -> "Manifest":
        """The folder at the top."""
        return self._objects.manifest(row.root, row.pack, row.tree)

    def below(self, row: "CheckpointRow", path: bytes) -> "list[Entry]":
        """What a captured folder held."""
        entry = self.at(row, path)
        if entry is None or entry.kind != FOLDER or entry.reason:
            return []
        return list(self._entries(entry.oid, entry.number, entry.strong).values())

    def content(self, entry: "Entry") -> bytes:
        """The bytes of a file, or the target of a link."""
        return self._objects.content(entry)

    def _entries(self, oid: bytes, number: int, strong: bytes) -> "dict[bytes, Entry]":
        known = self._manifests.get(strong)
        if known is None:
            manifest: Manifest = self._objects.manifest(oid, number, strong)
            known = self._manifests[strong] = {entry.name: entry for entry in manifest.entries}
        return known

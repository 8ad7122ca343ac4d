"""Find single paths in the trees of checkpoints, reading only the folders on the way."""

from takeback.model.made import Made
from takeback.model.tree import FOLDER, NO_HASH, NO_OBJECT, Entry, as_entry, nameless

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.model.tree import Manifest
    from takeback.store.objects import ObjectStore
    from takeback.store.rows import CheckpointRow

    Entries = dict[bytes, Entry]

_EVERYTHING = b""
"""No entry is called that: it stands for all that is below a folder that was left out."""
_UNLISTED = b"/"
"""Nor that: it stands for all that a folder does not list, if names in it were forgotten."""
_NOTHING: "Entries" = {}


class Trees:
    """The trees of several checkpoints; what they share is read once."""

    def __init__(self, objects: "ObjectStore") -> None:
        self.objects = objects
        self._manifests: dict[tuple[bytes, bytes], Manifest] = {}
        self._known: dict[tuple[bytes, bytes], Entries] = {}
        self._folders: dict[tuple[bytes, bytes], Entries] = {}

    def find(self, row: "CheckpointRow", path: bytes) -> "Entry | None":
        """What a path was; None if it was not there, or below something left out."""
        entry = self.at(row, path)
        return None if entry is not None and entry.reason and not entry.name else entry

    def at(self, row: "CheckpointRow", path: bytes) -> "Entry | None":
        """What a path was; below something left out it is an entry with a reason, too.

        Unknown is not absent.
        """
        if not path:
            return as_entry(self.root(row))
        folder, _, name = path.rpartition(b"/")
        entries = self._folders.get((row.root, folder))
        if entries is None:
            entries = self._folders[row.root, folder] = self._descend(row, folder)
        return entries.get(_EVERYTHING) or entries.get(name) or entries.get(_UNLISTED)

    def _descend(self, row: "CheckpointRow", folder: bytes) -> "Entries":
        """What a folder held: nothing if it was none, something unknown if nobody knows."""
        _require_kept(row)
        entries = self._entries(row.root, row.tree)
        for name in folder.split(b"/") if folder else ():
            entry = entries.get(name) or entries.get(_UNLISTED)
            if entry is None:
                return _NOTHING
            if entry.reason and entry.kind in (FOLDER, 0):
                return {_EVERYTHING: Entry(b"", 0, entry.reason, 0, NO_HASH, 0, NO_OBJECT)}
            if entry.kind != FOLDER:
                return _NOTHING
            entries = self._entries(entry.oid, entry.strong)
        return entries

    def root(self, row: "CheckpointRow") -> "Manifest":
        """The folder at the top."""
        _require_kept(row)
        return self._manifest(row.root, row.tree)

    def below(self, row: "CheckpointRow", path: bytes) -> "list[Entry]":
        """What a captured folder held."""
        entry = self.at(row, path)
        if entry is None or entry.kind != FOLDER or entry.reason:
            return []
        return self._manifest(entry.oid, entry.strong).entries

    def content(self, entry: "Entry") -> bytes:
        """The bytes of a file, or the target of a link."""
        return entry.content if isinstance(entry, Made) else self.objects.content(entry)

    def _entries(self, oid: bytes, strong: bytes) -> "Entries":
        known = self._known.get((oid, strong))
        if known is None:
            manifest = self._manifest(oid, strong)
            known = self._known[oid, strong] = {entry.name: entry for entry in manifest.entries}
            unknown = nameless(manifest.entries)
            if unknown is not None:
                known[_UNLISTED] = unknown
        return known

    def _manifest(self, oid: bytes, strong: bytes) -> "Manifest":
        # By both: one strong hash may come with several times of its files.
        known = self._manifests.get((oid, strong))
        if known is None:
            known = self._manifests[oid, strong] = self.objects.manifest(oid, strong)
        return known


def _require_kept(row: "CheckpointRow") -> None:
    if row.gone is not None:
        from takeback.engine import kept

        kept.refuse(row)

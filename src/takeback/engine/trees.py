"""Find single paths in the trees of checkpoints, reading only the folders on the way."""

from takeback.model.tree import FOLDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.model.tree import Entry, Manifest
    from takeback.store.objects import Objects
    from takeback.store.rows import CheckpointRow


class Trees:
    """The trees of several checkpoints; what they share is read once."""

    def __init__(self, objects: "Objects") -> None:
        self._objects = objects
        self._manifests: dict[bytes, dict[bytes, Entry]] = {}

    def find(self, row: "CheckpointRow", path: bytes) -> "Entry | None":
        """What a path was; None if it was not there, or below something left out."""
        oid, number, strong = row.root, row.pack, row.tree
        entry: Entry | None = None
        for name in path.split(b"/"):
            if entry is not None:
                if entry.kind != FOLDER or entry.reason:
                    return None
                oid, number, strong = entry.oid, entry.number, entry.strong
            entry = self._entries(oid, number, strong).get(name)
            if entry is None:
                return None
        return entry

    def content(self, entry: "Entry") -> bytes:
        """The bytes of a file, or the target of a link."""
        return self._objects.content(entry)

    def _entries(self, oid: bytes, number: int, strong: bytes) -> "dict[bytes, Entry]":
        known = self._manifests.get(strong)
        if known is None:
            manifest: Manifest = self._objects.manifest(oid, number, strong)
            known = self._manifests[strong] = {entry.name: entry for entry in manifest.entries}
        return known

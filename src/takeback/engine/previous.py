"""What the checkpoint before held, for a scan that starts without a stat cache."""

from takeback.errors import DamagedStoreError
from takeback.model.tree import INCOMPLETE_BELOW, REASON, UNSTABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from takeback.model.tree import Manifest
    from takeback.store.objects import ObjectStore
    from takeback.store.rows import CheckpointRow


class Previous:
    """The manifests of the checkpoint before, by path; read when first asked for."""

    def __init__(self, objects: "ObjectStore", row: "CheckpointRow | None") -> None:
        self._objects = objects
        self._row = row
        self.damaged = False
        """Whether some manifest could not be read; then nothing of it is relied on."""
        self._read: dict[bytes, Manifest] | None = None

    def manifests(self) -> "dict[bytes, Manifest]":
        """The manifest of every folder; empty when there is no checkpoint before."""
        if self._read is None:
            self._read = {}
            if self._row is not None:
                self._read_all(self._row)
        return self._read

    def _read_all(self, row: "CheckpointRow") -> None:
        found = self._read = {}
        stack = [(b"", row.root, row.tree)]
        while stack:
            path, oid, strong = stack.pop()
            try:
                manifest = found[path] = self._objects.manifest(oid, strong)
            except DamagedStoreError:
                # A flipped bit in the past must not end the protection of the present.
                self.damaged = True
                continue
            for entry in manifest.folders():
                below = path + b"/" + entry.name if path else entry.name
                stack.append((below, entry.oid, entry.strong))

    def was_captured(self, path: bytes) -> bool:
        """Whether the path was in the checkpoint before, with its content."""
        folder, _, name = path.rpartition(b"/")
        manifest = self.manifests().get(folder)
        entry = manifest.find(name) if manifest is not None else None
        return entry is not None and not entry.reason

    def stored(self) -> "dict[bytes, bytes]":
        """The object id of every manifest, by its strong hash."""
        row, manifests = self._row, self.manifests()
        if self.damaged or row is None:
            return {}
        held = {row.tree: row.root}
        for manifest in manifests.values():
            held |= {entry.strong: entry.oid for entry in manifest.folders()}
        return held


def told(objects: "ObjectStore", row: "CheckpointRow") -> "Iterator[tuple[bytes, int]]":
    """(path, flags) of everything that a checkpoint left out or that did not hold still.

    Folders whose entry says that nothing below them was left out are not read.
    """
    stack = [(b"", row.root, row.tree)]
    while stack:
        path, oid, strong = stack.pop()
        for entry in objects.manifest(oid, strong).entries:
            below = path + b"/" + entry.name if path else entry.name
            if entry.flags & (REASON | UNSTABLE):
                yield below, entry.flags
            elif entry.flags & INCOMPLETE_BELOW:
                stack.append((below, entry.oid, entry.strong))

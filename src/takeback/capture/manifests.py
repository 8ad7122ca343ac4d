"""What the checkpoint before held, for a scan that starts without a stat cache.

Say what folders hold: their manifests, which are the tree, and their git trees, the view.
"""

from takeback.errors import DamagedStoreError
from takeback.model import tree
from takeback.model.tree import INCOMPLETE_BELOW, REASON, UNSTABLE
from takeback.objects import git_view
from takeback.objects.git_objects import BLOB, TREE, object_id
from takeback.worktree import stat_cache
from takeback.worktree.folders import mark_racy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from takeback.disk.machine import FsClock
    from takeback.ledger.log.events import CheckpointRow
    from takeback.model.tree import Manifest
    from takeback.objects.object_store import ObjectStore
    from takeback.ports import ObjectWriter
    from takeback.worktree.folders import Folder

    Stored = dict[bytes, bytes]


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


def everything(root: "Folder") -> "list[Folder]":
    """A folder and all folders in memory below it, each before those below it."""
    order, stack = [], [root]
    while stack:
        folder = stack.pop()
        order.append(folder)
        stack += folder.children.values()
    return order


def describe(root: "Folder", writer: "ObjectWriter", clock: "FsClock", stored: "Stored") -> None:
    """Write the manifest and git tree of every folder that changed.

    `stored` tells which manifests are in the store already, by their strong hash.
    """
    for folder in reversed(everything(root)):
        if folder.changed:
            _describe_one(folder, writer, stored)
        if folder.touched:
            mark_racy(folder, folder.unsure or clock.is_racy(folder.mtime, folder.ctime))
        if folder.parent is not None:
            _tell_parent(folder, folder.parent)


def _describe_one(folder: "Folder", writer: "ObjectWriter", stored: "Stored") -> None:
    nodes = folder.sorted_nodes()
    folder.flags &= ~stat_cache.TELLS
    if any(node.flags & (REASON | UNSTABLE) for node in nodes):
        folder.flags |= stat_cache.TELLS
    folder.touched = True
    strong, data = tree.encode(folder.mode, nodes)
    if strong == folder.strong:
        return
    folder.strong = strong
    git_tree = git_view.tree_of(folder)
    held = stored.get(strong)
    if held is not None:
        folder.oid = held
        folder.view = object_id(TREE, git_tree)
        return
    folder.oid = writer.add(BLOB, data)
    folder.view = writer.add(TREE, git_tree)


def _tell_parent(folder: "Folder", parent: "Folder") -> None:
    """Let the parent's entry say what the folder is now."""
    node = parent.nodes[folder.name]
    incomplete = any(n.flags & (REASON | INCOMPLETE_BELOW) for n in folder.nodes.values())
    flags = node.flags & ~INCOMPLETE_BELOW | (INCOMPLETE_BELOW if incomplete else 0)
    now = (folder.strong, folder.mode, flags, folder.view)
    if (node.strong, node.mode, node.flags) != now[:3] or node.view() != folder.view:
        node.strong, node.mode, node.flags = folder.strong, folder.mode, flags
        node.oid, node.mtime = folder.oid, folder.mtime
        node.set_view(folder.view)
        parent.changed = parent.touched = True

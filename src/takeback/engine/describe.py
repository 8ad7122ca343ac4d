"""Say what folders hold: their manifests, which are the tree, and their git trees, the view."""

from takeback.model import tree
from takeback.model.tree import INCOMPLETE_BELOW, REASON, UNSTABLE
from takeback.store import records, view
from takeback.store.folders import mark_racy
from takeback.store.gitobjects import BLOB, TREE, object_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.ports import ObjectWriter
    from takeback.store.folders import Folder
    from takeback.store.fsclock import FsClock

    Stored = dict[bytes, bytes]


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
    folder.flags &= ~records.TELLS
    if any(node.flags & (REASON | UNSTABLE) for node in nodes):
        folder.flags |= records.TELLS
    folder.touched = True
    strong, data = tree.encode(folder.mode, nodes)
    if strong == folder.strong:
        return
    folder.strong = strong
    git_tree = view.tree_of(folder)
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

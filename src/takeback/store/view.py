"""The view: a bare git repository over the same blobs, for anyone who trusts git.

Each new tree is a commit on a branch, so that `git --git-dir=… log`, `show`, `diff` and `fsck`
work. It is never read by Takeback itself, except that a branch which is ahead of the ledger
tells that the ledger lost its end. The manifests hang on a ref of their own, so that no git
command considers them garbage; `preciousObjects` makes git refuse to remove anything at all.
"""

import os

from takeback.model.tree import FOLDER, KIND, LINK
from takeback.store import fsops
from takeback.store.home import make_folder, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.store.folders import Folder
    from takeback.store.packwrite import PackWriter

BRANCH = b"refs/heads/checkpoints"
MANIFESTS = b"refs/takeback/manifests"
_LOST = b"/refs/takeback/lost"

_CONFIG = b"""[core]
\trepositoryformatversion = 1
\tfilemode = true
\tbare = true
[extensions]
\tpreciousObjects = true
[gc]
\tauto = 0
"""
_FOLDERS = (b"", b"/objects", b"/objects/pack", b"/objects/info", b"/refs", b"/refs/heads")
_FILES = ((b"/HEAD", b"ref: " + BRANCH + b"\n"), (b"/config", _CONFIG))
FILES = dict(_FILES)
"""What the fixed files of the view hold, by path below its folder."""


def create(git_dir: bytes) -> None:
    """Make the bare repository; what is there already stays."""
    for folder in (*_FOLDERS, b"/refs/takeback"):
        if not os.path.lexists(git_dir + folder):
            make_folder(git_dir + folder)
    for name, content in _FILES:
        if not os.path.lexists(git_dir + name):
            replace_file(git_dir + name, content, durable=False)


def tree_of(folder: "Folder") -> bytes:
    """The git tree of a folder whose subfolders have theirs."""
    from takeback.store import gitobjects

    entries = []
    for node in folder.nodes.values():
        if node.reason:
            continue
        kind = node.mode & KIND
        if kind == FOLDER:
            entries.append((0o040000, gitobjects.escape_name(node.name), node.view()))
        else:
            mode = 0o120000 if kind == LINK else 0o100755 if node.mode & 0o100 else 0o100644
            entries.append((mode, gitobjects.escape_name(node.name), node.oid))
    return gitobjects.encode_tree(entries)


def add_commit(
    writer: "PackWriter", tree: bytes, parent: "bytes | None", at: int, message: bytes
) -> bytes:
    """Put the commit of a checkpoint into the pack."""
    from takeback.store import gitobjects

    parents = [parent] if parent else []
    return writer.add(gitobjects.COMMIT, gitobjects.encode_commit(tree, parents, at, message))[0]


def add_manifest_commit(
    writer: "PackWriter", manifests: "Iterable[bytes]", parent: "bytes | None", at: int
) -> bytes:
    """Put a commit into the pack that keeps new manifests reachable."""
    from takeback.store import gitobjects

    entries = [(0o100644, oid.hex().encode(), oid) for oid in set(manifests)]
    tree = writer.add(gitobjects.TREE, gitobjects.encode_tree(entries))[0]
    return add_commit(writer, tree, parent, at, b"manifests\n")


def read_ref(git_dir: bytes, name: bytes) -> "bytes | None":
    """The commit that a ref names; None if it names none."""
    try:
        fd = os.open(git_dir + b"/" + name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        text = os.read(fd, 64).strip()
    finally:
        os.close(fd)
    try:
        commit = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        return None
    return commit if len(commit) == 20 else None


def write_ref(git_dir: bytes, name: bytes, commit: bytes) -> None:
    """Let a ref name a commit. Not synced: it is written again from the ledger when lost."""
    path, text = git_dir + b"/" + name, commit.hex().encode() + b"\n"
    if not os.path.lexists(path):
        replace_file(path, text, durable=False)
        return
    fd = fsops.open_or_create(path)
    try:
        fsops.write_at(fd, text, 0)
    finally:
        os.close(fd)


def keep_lost(git_dir: bytes, commit: bytes) -> None:
    """Note a commit that the ledger does not know: the ledger must have lost its end."""
    if not os.path.lexists(git_dir + _LOST):
        fsops.mkdir(git_dir + _LOST)
    write_ref(git_dir, _LOST[1:] + b"/" + commit.hex().encode(), commit)


def lost(git_dir: bytes) -> "list[bytes]":
    """The commits that the ledger should know and does not."""
    try:
        names = os.listdir(git_dir + _LOST)
    except FileNotFoundError:
        return []
    return [bytes.fromhex(name.decode()) for name in sorted(names) if len(name) == 40]

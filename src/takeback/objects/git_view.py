"""The view: a bare git repository over the same blobs, for anyone who trusts git.

Each new tree is a commit on a branch, so that `git --git-dir=… log`, `show`, `diff` and `fsck`
work. It is never read by Takeback itself, except that a branch which is ahead of the ledger
tells that the ledger lost its end. No tree of git's leads to the manifests: a `.keep` beside each
pack tells git to leave it alone, and `preciousObjects` makes it refuse to remove anything at all.
"""

import os

from takeback.disk import operations
from takeback.disk.home import make_folder, read_small, replace_file
from takeback.model.tree import FOLDER, KIND, LINK, NO_OBJECT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.ledger.ledger import Ledger
    from takeback.ports import ObjectTaker
    from takeback.worktree.folders import Folder

BRANCH = b"refs/heads/checkpoints"
KEPT = b"refs/takeback/kept"
"""Below it, states that somebody keeps."""
SHALLOW = b"shallow"
"""Tells git which commits have parents that are gone."""
_LOST = b"/refs/takeback/lost"
_OURS = (b"refs/takeback/", b"refs/heads/")
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


def branch(line: str) -> bytes:
    """The branch that shows a line."""
    return BRANCH if line == "main" else b"refs/heads/" + line.encode()


def create(git_dir: bytes) -> None:
    """Make the bare repository; what is there already stays."""
    for folder in (*_FOLDERS, b"/refs/takeback"):
        if not os.path.lexists(git_dir + folder):
            make_folder(git_dir + folder)
    for name, content in _FILES:
        if not os.path.lexists(git_dir + name):
            replace_file(git_dir + name, content, durable=False)


def tree_of(folder: "Folder") -> bytes:
    from takeback.objects import git_objects

    entries = []
    for node in folder.nodes.values():
        if node.reason:
            continue
        kind, oid = node.mode & KIND, node.oid
        if kind == FOLDER:
            mode, oid = git_objects.MODE_TREE, node.view()
        elif kind == LINK:
            mode = git_objects.MODE_LINK
        else:
            is_program = node.mode & 0o100
            mode = git_objects.MODE_EXECUTABLE if is_program else git_objects.MODE_FILE
        entries.append((mode, git_objects.escape_name(node.name), oid))
    return git_objects.encode_tree(entries)


def add_commit(
    writer: "ObjectTaker", tree: bytes, parent: "bytes | None", at: int, message: bytes
) -> bytes:
    from takeback.objects import git_objects

    parents = [parent] if parent else []
    return writer.add(git_objects.COMMIT, git_objects.encode_commit(tree, parents, at, message))


def read_ref(git_dir: bytes, name: bytes) -> "bytes | None":
    """The commit that a ref names; None if it names none."""
    text = read_small(git_dir + b"/" + name, limit=64).strip()
    try:
        commit = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        return None
    return commit if len(commit) == 20 else None


def write_ref(git_dir: bytes, name: bytes, commit: bytes) -> None:
    """Let a ref name a commit. Not synced: it is written again from the ledger when lost."""
    path, text = git_dir + b"/" + name, commit.hex().encode() + b"\n"
    if os.path.islink(path) or not os.path.isfile(path):
        replace_file(path, text, durable=False)
        return
    fd = operations.open_or_create(path)
    try:
        operations.write_at(fd, text, 0)
    finally:
        os.close(fd)


def keep_lost(git_dir: bytes, commit: bytes) -> None:
    if not os.path.lexists(git_dir + _LOST):
        operations.mkdir(git_dir + _LOST)
    write_ref(git_dir, _LOST[1:] + b"/" + commit.hex().encode(), commit)


def lost(git_dir: bytes) -> "list[bytes]":
    try:
        names = os.listdir(git_dir + _LOST)
    except FileNotFoundError:
        return []
    return [bytes.fromhex(name.decode()) for name in sorted(names) if len(name) == 40]


def wanted_files(ledger: "Ledger") -> "dict[bytes, bytes]":
    """What the files of the view shall hold, by path below its folder: all follows from the ledger.

    Where the files of checkpoints are gone, git is told that the history begins after them.
    """
    wanted = dict(FILES)
    for line, newest in ledger.checkpoints.newest_of_lines().items():
        wanted[b"/" + branch(line)] = _line(newest.view)
    for row in ledger.care.kept():
        wanted[b"/%s/%s" % (KEPT, row.id.encode())] = _line(row.commit)
    cut = ledger.care.cut_commits()
    if cut:
        wanted[b"/" + SHALLOW] = b"".join(map(_line, sorted(cut)))
    return wanted


def _line(commit: bytes) -> bytes:
    return commit.hex().encode() + b"\n"


def remove_others(git_dir: bytes, wanted: "Iterable[bytes]") -> None:
    """Remove what speaks of states that nobody keeps any more, also where git put it together."""
    known = set(wanted)
    there = [b"/" + SHALLOW]
    if os.path.isdir(git_dir + b"/" + KEPT):
        there += [b"/" + KEPT + b"/" + name for name in os.listdir(git_dir + b"/" + KEPT)]
    for name in there:
        if name not in known and os.path.lexists(git_dir + name):
            operations.unlink(git_dir + name)
    packed = read_small(git_dir + b"/packed-refs", limit=1 << 24)
    lines = packed.splitlines(keepends=True) if packed else []
    left = [line for line in lines if not line[41:].startswith(_OURS)]
    if len(left) < len(lines):
        replace_file(git_dir + b"/packed-refs", b"".join(left), durable=False)


class Commit:
    """What a commit of the view says."""

    def __init__(self, data: bytes) -> None:
        head, _, self.message = data.partition(b"\n\n")
        lines = [line.split(b" ", 1) for line in head.split(b"\n")]
        self.parents = [_hex(line[1]) for line in lines if line[0] == b"parent"]
        self.tree = _hex(lines[0][1])

    def stands_on(self, parent: "bytes | None") -> bool:
        return self.parents == ([parent] if parent is not None else [])


def _hex(text: bytes) -> bytes:
    try:
        return bytes.fromhex(text.decode("ascii"))
    except ValueError:
        return NO_OBJECT

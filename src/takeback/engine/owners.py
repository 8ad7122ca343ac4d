"""Whose a setuid program was when it was captured: only for that owner it may be setuid again.

The manifest of a folder does not say whose its files are. So the event of a checkpoint names the
owner of each file with such a bit that it captured.
"""

import os

from takeback.model.tree import KIND, REGULAR, SETUID
from takeback.store.events import CHECKPOINT_TAKEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from takeback.model.jsontext import Json
    from takeback.model.swap import Owner
    from takeback.store.descent import Descent
    from takeback.store.folders import Folder, Node
    from takeback.store.ledger import Ledger


def facts(folders: "Iterable[Folder]", descent: "Descent") -> "list[Json]":
    """Path, owner and group of each setuid or setgid file in folders that changed."""
    found: list[Json] = []
    for folder in folders:
        for node in folder.nodes.values() if folder.changed else ():
            if node.mode & SETUID and node.mode & KIND == REGULAR and not node.reason:
                found += _facts(folder, node, descent)
    return found


def _facts(folder: "Folder", node: "Node", descent: "Descent") -> "list[Json]":
    try:
        now = os.stat(node.name, dir_fd=descent.open(folder.way()), follow_symlinks=False)
    except OSError:
        return []
    if (now.st_ino, now.st_ctime_ns, now.st_mode) != (node.inode, node.ctime, node.mode):
        return []  # not what was captured
    path = folder.path_of(node.name).decode("utf-8", "surrogateescape")
    return [[path, now.st_uid, now.st_gid]]


def captured(ledger: "Ledger") -> "dict[bytes, Owner]":
    """Whose each setuid or setgid file was; not those that were of several, one after the other."""
    found: dict[bytes, set[Owner]] = {}
    for event in ledger.events("WHERE kind = ?", (CHECKPOINT_TAKEN,)):
        said: Any = event.payload or {}
        for path, uid, gid in said.get("owners", ()):
            found.setdefault(path.encode("utf-8", "surrogateescape"), set()).add((uid, gid))
    return {path: owner for path, (owner, *others) in found.items() if not others}


def dropped(path: bytes) -> str:
    """What is said of a file that is not setuid again."""
    return (
        f"`{os.fsdecode(path)}` is not setuid or setgid any more: it has another owner than when it"
        " was captured, or nobody knows whose it was; `chmod` gives that back"
    )

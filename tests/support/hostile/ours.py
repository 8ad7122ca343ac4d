"""Attacks on Takeback's own files, and trees and stores that lie in each other's way."""

import os
import shutil
from collections.abc import Callable, Mapping
from typing import NamedTuple

from hostile.ground import Ground
from hostile.tree import Deed

WORKS = "works"
REFUSED = "refused"
SAFE = "works or is refused"

Tamper = Callable[[Ground, bytes], None]
"""Given the ground and the path of the project's store."""


class Ours(NamedTuple):
    """A case: what is arranged before the first use, what is done to the store after it.

    `verdict` says how the next use must end. However it ends, nothing outside the store is
    touched, and no error but Takeback's own comes out.
    """

    name: str
    arrange: Deed
    tamper: Tamper | None = None
    verdict: str = WORKS
    left_out: Mapping[bytes, str] = {}


def _ordinary(ground: Ground) -> None:
    ground.file(b"file", b"content\n")
    ground.file(b"folder/inside", b"more\n")
    ground.folder(b"empty")


def _store_inside(where: bytes) -> Deed:
    def arrange(ground: Ground) -> None:
        _ordinary(ground)
        if os.path.dirname(where):
            ground.folder(os.path.dirname(where))
        ground.home = ground.path(where)

    return arrange


def _tree_inside(ground: Ground) -> None:
    os.mkdir(ground.home, 0o700)
    ground.root = ground.home + b"/tree"
    os.mkdir(ground.root)
    _ordinary(ground)


def _tree_is_home(ground: Ground) -> None:
    _ordinary(ground)
    os.chmod(ground.root, 0o700)
    ground.home = ground.root


def _home_is_link(ground: Ground) -> None:
    _ordinary(ground)
    os.chmod(ground.outside, 0o700)
    os.symlink(ground.outside, ground.home)


def _home_is_open(ground: Ground) -> None:
    _ordinary(ground)
    os.mkdir(ground.home)
    os.mkdir(ground.home + b"/mine")  # an empty one is closed, and used
    os.chmod(ground.home, 0o755)


def _home_is_file(ground: Ground) -> None:
    _ordinary(ground)
    with open(ground.home, "wb") as file:
        file.write(b"not a folder\n")


def _root_called(name: bytes) -> Deed:
    """The folder itself has the odd name; its store has to remember it."""

    def arrange(ground: Ground) -> None:
        ground.root = ground.base + b"/" + name
        os.mkdir(ground.root)
        os.chmod(ground.root, 0o755)
        _ordinary(ground)

    return arrange


def _files(store: bytes) -> list[bytes]:
    return [
        os.path.join(folder, name) for folder, _, names in os.walk(store) for name in sorted(names)
    ]


def _named(store: bytes, ending: bytes) -> bytes:
    """Find the one file or folder of the store that has this name."""
    for folder, folders, names in os.walk(store):
        if ending in (*folders, *names):
            return os.path.join(folder, ending)
    raise FileNotFoundError(ending)


def _litter(_ground: Ground, store: bytes) -> None:
    """Leftovers of crashes, of another version and of other programs, in every folder.

    Except where every file is a ref: there git itself takes litter for damage.
    """
    for folder in [folder for folder, _, _ in os.walk(store) if b"/refs" not in folder]:
        for name in (b"tmp_pack_a1b2c3", b"pack-1.pack.tmp", b".stale", b"x.123.tmp", b"x.lock"):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(b"stale")
        os.mkdir(os.path.join(folder, b"staging-0.0.1"), 0o700)


def _becomes_link(name: bytes) -> Tamper:
    """Move a file or folder of the store out and leave a link to it."""

    def tamper(ground: Ground, store: bytes) -> None:
        path = _named(store, name)
        os.rename(path, ground.beyond(b"taken"))
        os.symlink(ground.beyond(b"taken"), path)

    return tamper


def _links_to_secret(name: bytes) -> Tamper:
    def tamper(ground: Ground, store: bytes) -> None:
        path = _named(store, name)
        os.unlink(path)
        os.symlink(ground.beyond(b"secret"), path)

    return tamper


def _overwritten(name: bytes, data: bytes) -> Tamper:
    def tamper(_ground: Ground, store: bytes) -> None:
        with open(_named(store, name), "wb") as file:
            file.write(data)

    return tamper


def _cut_in_half(name: bytes) -> Tamper:
    def tamper(_ground: Ground, store: bytes) -> None:
        path = _named(store, name)
        os.truncate(path, os.stat(path).st_size // 2)

    return tamper


def _removed(name: bytes) -> Tamper:
    def tamper(_ground: Ground, store: bytes) -> None:
        os.unlink(_named(store, name))

    return tamper


def _home_file(name: bytes, data: bytes | None) -> Tamper:
    """Change a file of the home folder; None removes it."""

    def tamper(ground: Ground, _store: bytes) -> None:
        path = ground.home + b"/" + name
        os.unlink(path)
        if data is not None:
            with open(path, "wb") as file:
                file.write(data)
            os.chmod(path, 0o600)

    return tamper


def _copied_into_tree(ground: Ground, store: bytes) -> None:
    """A copy of the store in the tree is just files."""
    shutil.copytree(os.fsdecode(store), os.fsdecode(ground.path(b"backup of the store")))


def _opened_to_others(_ground: Ground, store: bytes) -> None:
    os.chmod(store, 0o755)


OURS = (
    Ours("ours-store-in-tree", _store_inside(b".takeback"), left_out={b".takeback": "store"}),
    Ours("ours-store-deep-in-tree", _store_inside(b"a/b/s"), left_out={b"a/b/s": "store"}),
    Ours("ours-tree-in-store", _tree_inside, verdict=REFUSED),
    Ours("ours-tree-is-home", _tree_is_home, verdict=REFUSED),
    Ours("ours-home-is-link", _home_is_link, verdict=REFUSED),
    Ours("ours-home-is-open", _home_is_open, verdict=REFUSED),
    Ours("ours-home-is-file", _home_is_file, verdict=REFUSED),
    Ours("ours-root-newline", _root_called(b"two\nlines")),
    Ours("ours-root-return", _root_called(b"over\rwritten")),
    Ours("ours-root-not-utf8", _root_called(b"\xff\xfe \xc0\xaf")),
    Ours("ours-root-percent", _root_called(b"%0A%25%\x85\x1c")),
    Ours("ours-root-spaces", _root_called(b"  two  spaces ")),
    Ours("ours-root-option", _root_called(b"--help")),
    Ours("ours-root-255", _root_called(b"r" * 255)),
    Ours("ours-litter", _ordinary, _litter),
    Ours("ours-lock-linked", _ordinary, _links_to_secret(b"lock"), SAFE),
    Ours("ours-ledger-moved-and-linked", _ordinary, _becomes_link(b"ledger.db"), SAFE),
    Ours("ours-ledger-linked", _ordinary, _links_to_secret(b"ledger.db"), REFUSED),
    Ours("ours-ledger-garbage", _ordinary, _overwritten(b"ledger.db", b"x" * 9000), REFUSED),
    Ours("ours-index-linked", _ordinary, _links_to_secret(b"index")),
    Ours("ours-index-garbage", _ordinary, _overwritten(b"index", b"\xff" * 5000)),
    Ours("ours-index-empty", _ordinary, _overwritten(b"index", b"")),
    Ours("ours-index-half", _ordinary, _cut_in_half(b"index")),
    Ours("ours-index-gone", _ordinary, _removed(b"index")),
    Ours("ours-packs-linked", _ordinary, _becomes_link(b"pack"), SAFE),
    Ours("ours-registry-gone", _ordinary, _home_file(b"registry", None)),
    Ours("ours-registry-garbage", _ordinary, _home_file(b"registry", b"\xff\n 1 2\nx")),
    Ours("ours-copied-into-tree", _ordinary, _copied_into_tree),
    Ours("ours-store-opened", _ordinary, _opened_to_others, SAFE),
)

"""Permission bits that a copy loses, files that nobody may read, folders that nobody may enter."""

import os

from hostile.ground import APPEND_ONLY, IMMUTABLE, PLAIN_USER, Ground, set_flags
from hostile.tree import PLAIN, ROOT, Deed, Tree, nothing

_BITS = {
    "sticky-everyone": 0o1777,
    "set-user": 0o4755,
    "set-group": 0o2755,
    "set-both": 0o6711,
    "all-bits": 0o7777,
    "private": 0o600,
    "everyone": 0o666,
    "read-only": 0o444,
    "owner-least": 0o477,
}


def _both(mode: int) -> Deed:
    """Give a file and a folder these bits; below the folder is one with ordinary bits."""

    def build(ground: Ground) -> None:
        ground.file(b"file", b"bits\n", mode)
        ground.file(b"folder/inside", b"ordinary\n")
        ground.folder(b"folder/plain")
        ground.chmod(b"folder", mode | 0o500)

    return build


def _every_mode(ground: Ground) -> None:
    """One file for each way the owner may read; among them every special bit."""
    for mode in range(0o400, 0o7777, 0o37):
        ground.file(b"%04o" % (mode | 0o400), b"same content\n", mode | 0o400)


def _every_folder_mode(ground: Ground) -> None:
    for mode in range(0o500, 0o7777, 0o113):
        ground.file(b"%04o/inside" % (mode | 0o500))
        ground.chmod(b"%04o" % (mode | 0o500), mode | 0o500)


def _closed_file(ground: Ground) -> None:
    ground.file(b"closed", b"nobody reads me\n", 0)
    ground.file(b"open", b"everybody does\n")


def _write_only(ground: Ground) -> None:
    ground.file(b"a/written", b"log\n", 0o200)


def _closed_folder(mode: int) -> Deed:
    def build(ground: Ground) -> None:
        ground.file(b"folder/inside", b"hidden\n")
        ground.file(b"beside", b"seen\n")
        ground.chmod(b"folder", mode)

    return build


def _read_only_folders(ground: Ground) -> None:
    ground.file(b"a/b/c/inside", b"deep in read-only folders\n")
    ground.folder(b"a/b/empty")
    for folder in (b"a/b/empty", b"a/b/c", b"a/b", b"a"):
        ground.chmod(folder, 0o555)


def _root_with(mode: int) -> Deed:
    def build(ground: Ground) -> None:
        ground.file(b"file")
        ground.file(b"folder/inside")
        ground.chmod(b"", mode)

    return build


def _write_below(ground: Ground) -> None:
    ground.file(b"folder/new", b"between the checkpoints\n")


def _only_the_mode(ground: Ground) -> None:
    ground.chmod(b"file", 0o640)
    ground.chmod(b"folder", 0o750)


def _nothing_special(ground: Ground) -> None:
    ground.file(b"file", b"stays as it is\n")
    ground.file(b"folder/inside")


def _closes(ground: Ground) -> None:
    """Lock a file and a folder that an earlier checkpoint holds."""
    ground.chmod(b"file", 0)
    ground.chmod(b"folder", 0)


def _immutable(ground: Ground) -> None:
    ground.file(b"file", b"for ever\n")
    ground.file(b"folder/inside")
    set_flags(ground.path(b"file"), IMMUTABLE)
    set_flags(ground.path(b"folder"), IMMUTABLE)


def _append_only(ground: Ground) -> None:
    ground.file(b"log", b"first line\n")
    set_flags(ground.path(b"log"), APPEND_ONLY)


def _append(ground: Ground) -> None:
    ground.append(b"log", b"second line\n")


def _others(ground: Ground) -> None:
    """Files of somebody else: one open, one shut."""
    ground.file(b"open", b"theirs, to be read\n", 0o644)
    ground.file(b"shut", b"theirs alone\n", 0o600)
    ground.file(b"room/inside", b"theirs alone\n")
    ground.chmod(b"room", 0o700)
    for name in (b"open", b"shut", b"room"):
        os.chown(ground.path(name), 12345, 12345)


def _others_of_root(ground: Ground) -> None:
    _others(ground)
    os.chown(ground.path(b"open"), PLAIN_USER, PLAIN_USER)


PERMISSIONS = (
    *(Tree(f"mode-{what}", _both(mode)) for what, mode in _BITS.items()),
    Tree("mode-every-file", _every_mode),
    Tree("mode-every-folder", _every_folder_mode),
    Tree("mode-changes-only", _nothing_special, edit=_only_the_mode),
    Tree("mode-root-read-only", _root_with(0o555), edit=_write_below),
    Tree("mode-root-sticky", _root_with(0o1777)),
    Tree("mode-root-private", _root_with(0o700)),
    Tree("mode-read-only-folders", _read_only_folders),
    Tree("closed-file", _closed_file, {b"closed": "unreadable"}, PLAIN),
    Tree("closed-file-root", _closed_file, who=ROOT),
    Tree("closed-write-only", _write_only, {b"a/written": "unreadable"}, PLAIN),
    Tree("closed-folder", _closed_folder(0), {b"folder": "unreadable"}, PLAIN),
    Tree("closed-folder-root", _closed_folder(0), who=ROOT),
    Tree("closed-folder-enter-only", _closed_folder(0o111), {b"folder": "unreadable"}, PLAIN),
    Tree("closed-folder-list-only", _closed_folder(0o444), {b"folder/inside": "unreadable"}, PLAIN),
    Tree("closed-folder-write-only", _closed_folder(0o333), {b"folder": "unreadable"}, PLAIN),
    Tree(
        "closed-later",
        _nothing_special,
        who=PLAIN,
        edit=_closes,
        left_out_after={b"file": "unreadable", b"folder": "unreadable"},
    ),
    Tree("flag-immutable", _immutable, who=ROOT),
    Tree("flag-append-only", _append_only, who=ROOT, edit=_append),
    Tree(
        "owner-other",
        nothing,
        {b"shut": "unreadable", b"room": "unreadable"},
        PLAIN,
        prepare=_others,
    ),
    Tree("owner-other-root", _others_of_root, who=ROOT),
)
